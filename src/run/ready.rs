//! Can each chain be attested now? Asked by `/readyz`, which is quick and changes nothing.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::join_all};

use crate::{
    attest::journal::Journal,
    chains::{Chains, Opened},
    config::Config,
    http::system::{ChainReadiness, Readiness, ReadinessCheck},
};

/// How long a chain may take to show its head.
const PATIENCE: Duration = Duration::from_secs(2);
const SINGLE: &str = "a single provider decides about this chain: name several in production";

/// Says which configured chains nothing is attested for, and why.
pub fn warn_about_closed_chains(chains: &Chains) {
    for ChainReadiness { id, reason, .. } in closed(chains) {
        let reason = reason.unwrap_or_default();
        tracing::warn!(chain = id, reason, "chain cannot be read");
    }
}

/// Says loudly which chains rest on one provider although real money is at stake.
pub fn warn_about_single_providers(chains: &Chains, config: &Config) {
    let mut count = 0_u32;
    for (id, opened) in opened(chains) {
        if config.is_production() && opened.single_decider() {
            tracing::warn!(chain = id, "{SINGLE}");
            count += 1;
        }
    }
    metrics::gauge!("intentd_single_provider_chains").set(count);
}

/// The check. A chain that nobody configured a provider for is shown, but keeps nobody waiting.
pub fn check(chains: Arc<Chains>, journal: Arc<Journal>, production: bool) -> ReadinessCheck {
    Arc::new(move || {
        let (chains, journal) = (chains.clone(), journal.clone());
        async move {
            let asked = opened(&chains).map(|(id, opened)| async {
                let shown = chain(id, opened, &journal, production).await;
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

/// Every chain that has providers, the settlement chain last.
fn opened(chains: &Chains) -> impl Iterator<Item = (&str, &Opened)> {
    let listed = chains.list().iter();
    let listed = listed.filter_map(|l| l.chain.as_ref().ok().map(|opened| (l.id.as_str(), opened)));
    listed.chain(
        chains
            .hub()
            .ok()
            .map(|hub| (hub.chain.spec.id.as_str(), hub)),
    )
}

fn closed(chains: &Chains) -> impl Iterator<Item = ChainReadiness> {
    let listed = chains.list().iter();
    let listed = listed.filter_map(|l| {
        l.chain
            .as_ref()
            .err()
            .map(|why| (l.id.clone(), why.clone()))
    });
    let hub = chains
        .hub()
        .err()
        .map(|why| ("hub".to_owned(), why.to_owned()));
    listed.chain(hub).map(|(id, why)| ChainReadiness {
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
    let single = production && opened.single_decider();
    ChainReadiness {
        id: id.to_owned(),
        ready: reason.is_none(),
        reason,
        warnings: single.then(|| SINGLE.to_owned()).into_iter().collect(),
    }
}
