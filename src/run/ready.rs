//! Whether the hub and each served chain can be attested now: for `/readyz`, which is quick and changes nothing, and for
//! the log at the start.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::join_all};

use crate::{
    attest::journal::Journal,
    chains::{ALLOCATOR, Chains, Closed, Loaded, Opened},
    config::Config,
    http::system::{ChainReadiness, Readiness, ReadinessCheck},
    index::tail_states::TailStates,
};

/// How long a chain may take to show its head.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the settlement chain is called here, whatever its name.
const HUB: &str = "hub";
const SINGLE: &str = "a single provider decides about this chain: name several in production";

const MINORITY: &str = "fewer than a majority of the providers decide about this chain: two groups \
    of them could agree on opposite answers; raise its RPC_QUORUM";
const ROUTERS: &str = "the chains file lists no fillRouters of this chain: no fill through a router is \
    attested";
const UNCHECKED: &str = "no genesisHash or contractAddress names this chain's network: a \
    node of another network is not noticed";
const NOTHING: &str = "no chain is served: name providers of one, or say which with CHAINS";

/// Says in one line what is served, what is not, and what of it cannot be attested as things stand.
pub fn log_served(chains: &Chains) {
    let (served, others): (Vec<_>, Vec<_>) = chains.list().iter().partition(|one| one.served);
    let names = |list: &[&Loaded]| {
        let names = list.iter().map(|loaded| loaded.id.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let (serves, not) = (names(&served), names(&others));
    let closed: Vec<_> = asked(chains)
        .filter_map(|(id, chain)| Some(format!("{id}: {}", chain.err()?)))
        .collect();
    if served.is_empty() || !closed.is_empty() {
        let closed = closed.join("; ");
        tracing::warn!(serves, not, closed, "some statements cannot be made");
    } else {
        tracing::info!(serves, not, "chains");
    }
}

/// Says which chains rest on one provider although real money is at stake, which do not need a majority of theirs,
/// of which no fill router is listed, and of which nothing names the network: a line each kind.
pub fn warn_about_chains(chains: &Chains, config: &Config) {
    let keys = || {
        chains
            .keys()
            .map(|keys| (keys.chain.spec.id.as_str(), keys))
    };
    let opened = || {
        let asked = asked(chains).filter_map(|(id, chain)| Some((id, chain.ok()?)));
        asked.chain(keys())
    };
    let warned = |what: &str, is: &dyn Fn(&Opened) -> bool| {
        let found: Vec<_> = opened()
            .filter(|(_, one)| is(one))
            .map(|(id, _)| id)
            .collect();
        if !found.is_empty() {
            tracing::warn!(chains = found.join(", "), "{what}");
        }
        found.len()
    };
    let money = config.moves_real_money();
    let single = warned(SINGLE, &|opened| money && opened.single_decider());
    warned(MINORITY, &Opened::minority_decides);
    warned(ROUTERS, &Opened::lacks_routers);
    let unchecked = chains.list().iter().filter(|one| one.lacks_network());
    let unchecked: Vec<_> = unchecked.map(|one| one.id.as_str()).collect();
    if !unchecked.is_empty() {
        tracing::warn!(chains = unchecked.join(", "), "{UNCHECKED}");
    }
    metrics::gauge!("intentd_single_provider_chains")
        .set(u32::try_from(single).unwrap_or(u32::MAX));
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

/// The check. What is not served is not asked about.
pub fn check(
    (chains, journal, tail_states): (Arc<Chains>, Arc<Journal>, Arc<TailStates>),
    money: bool,
) -> ReadinessCheck {
    Arc::new(move || {
        let (chains, journal, tail_states) = (chains.clone(), journal.clone(), tail_states.clone());
        async move {
            let shown = asked(&chains).map(|(id, chain)| {
                let (journal, tail_states) = (&journal, &tail_states);
                async move {
                    let mut shown = match chain {
                        Ok(opened) => look(id, opened, journal, money).await,
                        Err(why) => closed(id, &why),
                    };
                    let index = tail_states.trouble(id);
                    let behind = index.map(|why| format!("not indexed: {why}"));
                    shown.warnings.extend(behind);
                    shown
                }
            });
            let mut shown = join_all(shown).await;
            let served = chains.list().iter().any(|loaded| loaded.served);
            let ready = served && shown.iter().all(|chain| chain.ready);
            // Without it withdrawals are refused, which keeps nobody waiting who did not name it.
            shown.extend(unnamed(&chains).map(|why| closed(ALLOCATOR, &why)));
            Readiness {
                ready,
                reason: (!served).then(|| NOTHING.to_owned()),
                chains: shown,
            }
        }
        .boxed()
    })
}

/// What the operator wants attested, those of settlement last.
fn asked(chains: &Chains) -> impl Iterator<Item = (&str, Result<&Opened, Closed>)> {
    let served = chains.list().iter().filter(|loaded| loaded.served);
    let served = served.map(|loaded| (loaded.id.as_str(), loaded.attested()));
    let hub = match chains.attested_hub() {
        Ok(opened) => (opened.chain.spec.id.as_str(), Ok(opened)),
        Err(why) => (HUB, Err(why)),
    };
    let allocator = chains
        .allocator_named()
        .then(|| (ALLOCATOR, chains.allocator()));
    served.chain([hub]).chain(allocator)
}

/// Why the allocator is not there that nobody named.
fn unnamed(chains: &Chains) -> Option<Closed> {
    let allocator = chains.allocator().err();
    allocator.filter(|_| !chains.allocator_named())
}

fn closed(id: &str, why: &Closed) -> ChainReadiness {
    ChainReadiness {
        id: id.to_owned(),
        ready: false,
        reason: Some(why.to_string()),
        warnings: Vec::new(),
    }
}

async fn look(id: &str, opened: &Opened, journal: &Journal, money: bool) -> ChainReadiness {
    let reason = match journal.halted(&opened.chain.spec.id).await {
        Err(error) => Some(error.to_string()),
        Ok(Some(halt)) => Some(format!("signing is halted: {}", halt.why)),
        Ok(None) => match tokio::time::timeout(PATIENCE, opened.chain.reader.head()).await {
            Err(_) => Some("no head within 2 s".to_owned()),
            Ok(Err(error)) => Some(error.to_string()),
            Ok(Ok(_)) => None,
        },
    };
    let single = (money && opened.single_decider()).then_some(SINGLE);
    let minority = opened.minority_decides().then_some(MINORITY);
    let routers = opened.lacks_routers().then_some(ROUTERS);
    let unchecked = (!opened.checks_network).then_some(UNCHECKED);
    ChainReadiness {
        id: id.to_owned(),
        ready: reason.is_none(),
        reason,
        warnings: [single, minority, routers, unchecked]
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect(),
    }
}
