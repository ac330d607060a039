//! Can each chain be attested now? Asked by `/readyz`, which is quick and changes nothing.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::join_all};

use crate::{
    attest::journal::Journal,
    chains::{ALLOCATOR, Chains, Opened},
    config::Config,
    http::system::{ChainReadiness, Readiness, ReadinessCheck},
    index::troubles::Troubles,
};

/// How long a chain may take to show its head.
const PATIENCE: Duration = Duration::from_secs(2);
const SINGLE: &str = "a single provider decides about this chain: name several in production";

const MINORITY: &str = "fewer than a majority of the providers decide about this chain: two groups \
    of them could agree on opposite answers; raise its RPC_QUORUM";

/// Says which configured chains nothing is attested for, and why.
pub fn warn_about_closed_chains(chains: &Chains) {
    for ChainReadiness { id, reason, .. } in closed(chains) {
        let reason = reason.unwrap_or_default();
        tracing::warn!(chain = id, reason, "chain cannot be read");
    }
}

/// Says loudly which chains rest on one provider although real money is at stake, and which do not
/// need a majority of theirs.
pub fn warn_about_quorums(chains: &Chains, config: &Config) {
    let mut count = 0_u32;
    for (id, opened) in opened(chains) {
        if config.is_production() && opened.single_decider() {
            tracing::warn!(chain = id, "{SINGLE}");
            count += 1;
        }
        if opened.minority_decides() {
            let (required, providers) = (opened.required, opened.providers);
            tracing::warn!(chain = id, required, providers, "{MINORITY}");
        }
    }
    metrics::gauge!("intentd_single_provider_chains").set(count);
}

/// Says when no answer can ever have as many of the multisig's signatures as are waited for.
pub fn warn_about_multisig(config: &Config) {
    if let Some(multisig) = config.multisig.as_ref().filter(|m| m.is_unreachable()) {
        let (threshold, signers) = (multisig.threshold, multisig.members.len());
        tracing::warn!(
            threshold,
            signers,
            "ORACLE_SIGNERS_THRESHOLD is above the number of signers: every answer waits for all peers"
        );
    }
}

/// The check. A chain that nobody configured a provider for is shown, but keeps nobody waiting.
pub fn check(
    (chains, journal, troubles): (Arc<Chains>, Arc<Journal>, Arc<Troubles>),
    production: bool,
) -> ReadinessCheck {
    Arc::new(move || {
        let (chains, journal, troubles) = (chains.clone(), journal.clone(), troubles.clone());
        async move {
            let asked = opened(&chains).map(|(id, opened)| async {
                let mut shown = chain(id, opened, &journal, production).await;
                let index = troubles.of(id);
                shown
                    .warnings
                    .extend(index.map(|why| format!("not indexed: {why}")));
                (opened.named, shown)
            });
            let asked = join_all(asked).await;
            // A public endpoint that nobody chose is shown, but keeps nobody waiting.
            let ready = asked.iter().all(|(named, chain)| chain.ready || !named);
            let mut shown: Vec<_> = asked.into_iter().map(|(_, chain)| chain).collect();
            shown.extend(closed(&chains));
            Readiness {
                ready,
                chains: shown,
            }
        }
        .boxed()
    })
}

/// Every chain that has providers, those of settlement last.
fn opened(chains: &Chains) -> impl Iterator<Item = (&str, &Opened)> {
    let listed = chains.list().iter();
    let listed = listed.filter_map(|l| l.chain.as_ref().ok().map(|opened| (l.id.as_str(), opened)));
    let settlement = [chains.hub(), chains.allocator()].into_iter().flatten();
    listed.chain(settlement.map(|opened| (opened.chain.spec.id.as_str(), opened)))
}

fn closed(chains: &Chains) -> impl Iterator<Item = ChainReadiness> {
    let listed = chains.list().iter();
    let listed = listed.filter_map(|l| {
        l.chain
            .as_ref()
            .err()
            .map(|why| (l.id.clone(), why.clone()))
    });
    let settlement = [("hub", chains.hub()), (ALLOCATOR, chains.allocator())];
    let settlement = settlement
        .into_iter()
        .filter_map(|(id, chain)| chain.err().map(|why| (id.to_owned(), why.to_owned())));
    listed.chain(settlement).map(|(id, why)| ChainReadiness {
        id,
        ready: false,
        reason: Some(why),
        warnings: Vec::new(),
    })
}

async fn chain(id: &str, opened: &Opened, journal: &Journal, production: bool) -> ChainReadiness {
    let reason = match journal.halted(&opened.chain.spec.id).await {
        Err(error) => Some(error.to_string()),
        Ok(Some(halt)) => Some(format!("signing is halted: {}", halt.why)),
        Ok(None) => match tokio::time::timeout(PATIENCE, opened.chain.reader.head()).await {
            Err(_) => Some("no head within 2 s".to_owned()),
            Ok(Err(error)) => Some(error.to_string()),
            Ok(Ok(_)) => None,
        },
    };
    let single = (production && opened.single_decider()).then_some(SINGLE);
    let minority = opened.minority_decides().then_some(MINORITY);
    ChainReadiness {
        id: id.to_owned(),
        ready: reason.is_none(),
        reason,
        warnings: [single, minority]
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect(),
    }
}
