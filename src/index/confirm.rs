//! Asks each network's quorum about deposits that single providers have shown. Only what the quorum confirms is
//! final, and a deposit is gone only if a quorum misses it after the time that finality takes. What no quorum agrees
//! about for days is listed for the operator: [`shelf`].

mod due;
mod settle;
mod shelf;
mod soon;
#[cfg(test)]
mod tests;
mod verdict;

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use futures::stream::{self, StreamExt};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use vm::{Chain, Finality, Head, Kept, Large, ReadError, Seen, aside};

use self::{
    due::{Due, Waiting, block},
    shelf::Pauses,
    soon::Soon,
    verdict::{Reading, Verdict},
};
use super::{IndexError, Wakeup, looks::Looks};
use crate::{
    market,
    request::{Request, fact::Deposit},
    store::requests::Requests,
};

/// Transactions that are asked about at the same time.
const AT_ONCE: usize = 8;
/// Transactions that are asked about before the confirmer looks for more urgent ones.
const A_PASS: usize = 64;
/// The pause between two looks while no facts change; heads move meanwhile.
const POLL: Duration = Duration::from_secs(1);

/// A network as the confirmer knows it.
#[derive(Clone)]
pub struct Network {
    pub chain: Chain,
    /// Wakes the network's tail when it has to read something again.
    pub wakeup: Arc<Wakeup>,
    /// The network in the market file, which says which deposits are acted on in their first block; unset: none.
    pub listed: Option<Arc<market::Network>>,
}

impl Network {
    /// What a deposit must have on top of it before it may be acted on: less than its chain asks where [`Soon`] has
    /// room for it.
    fn finality(&self, deposit: &Deposit) -> Cow<'_, Finality> {
        let listed = self.listed.as_ref();
        let soon = listed.is_some_and(|it| it.acts_in_one_block(&deposit.currency, deposit.amount));
        match soon {
            true => Cow::Owned(Finality {
                blocks: 0,
                seconds: 0,
                tag: None,
            }),
            false => Cow::Borrowed(&self.chain.spec.finality),
        }
    }
}

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Deposits that are final now.
    pub confirmed: usize,
    /// Deposits that do not exist.
    pub gone: usize,
    /// Deposits for which it is too early to tell.
    pub early: usize,
    /// Deposits about which no quorum answered.
    pub unanswered: usize,
    /// Deposits whose result the store refused.
    pub refused: usize,
}

/// A deposit that is not final, with its request.
type Pending = (Arc<Request>, Arc<Deposit>);

/// Asks quorums about deposits, and records what they say.
pub struct Confirmer {
    requests: Requests,
    networks: HashMap<String, Network>,
    waiting: Waiting,
    pauses: Pauses,
    soon: Soon,
}

impl Confirmer {
    /// `networks` by the name that orders use.
    pub fn new(requests: Requests, networks: HashMap<String, Network>) -> Self {
        Self {
            requests,
            networks,
            waiting: Waiting::default(),
            pauses: Pauses::default(),
            soon: Soon::default(),
        }
    }

    /// Looks again and again until `shutdown`, at each network on its own: a network that does not answer delays no
    /// other. `clock` gives unix milliseconds.
    pub async fn run(self, clock: fn() -> u64, shutdown: CancellationToken) {
        let confirmer = Arc::new(self);
        let mut changes = confirmer.requests.changes();
        let mut looks = Looks::default();
        loop {
            changes.mark_unchanged();
            if let Err(error) = confirmer.begin(&mut looks, clock).await {
                tracing::error!(%error, "deposits not confirmed");
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                Ok(()) = changes.changed() => {}
                () = sleep(POLL) => {}
            }
        }
    }

    /// Networks that act on deposits in their first block, as soon as their first head is noted and final.
    fn unnoted(&self, now: u64) -> impl Iterator<Item = &String> {
        let waiting = self.networks.iter().filter(move |(name, network)| {
            let mut currencies = network.listed.iter().flat_map(|it| &it.currencies);
            currencies.any(|it| it.one_block_up_to.is_some()) && self.soon.asks(name, now)
        });
        waiting.map(|(name, _)| name)
    }

    /// Begins a look at every network without one under way.
    async fn begin(
        self: &Arc<Self>,
        looks: &mut Looks,
        clock: fn() -> u64,
    ) -> Result<(), IndexError> {
        looks.reap();
        for (network, due) in self.due(clock()).await? {
            let confirmer = self.clone();
            looks.begin(network.clone(), async move {
                let look = confirmer.look_at_all(&network, due, clock()).await;
                if look.unanswered > 0 {
                    let deposits = look.unanswered;
                    tracing::warn!(%network, deposits, "deposits without an answer");
                }
            });
        }
        Ok(())
    }

    /// Looks once at the deposits of open requests that are not final, the most urgent ones of each
    /// network. `now` in unix milliseconds.
    pub async fn look(&self, now: u64) -> Result<Look, IndexError> {
        let mut all = Look::default();
        for (network, due) in self.due(now).await? {
            all.add(self.look_at_all(&network, due, now).await);
        }
        Ok(all)
    }

    /// Looks at a bounded part of what is due at a network: what becomes due meanwhile and is more urgent comes with
    /// the next look.
    async fn look_at_all(&self, name: &str, due: Vec<Due>, now: u64) -> Look {
        let mut all = Look::default();
        let Some(network) = self.networks.get(name) else {
            let nowhere = Verdict::Doubtful("its network is not indexed".into());
            for due in &due {
                all.add(self.same(due, &nowhere, now).await);
            }
            return all;
        };
        let head = match network.chain.reader.head().await {
            Ok(head) => head,
            Err(error) => {
                for due in &due {
                    all.add(self.unanswered(due, &error, now).await);
                }
                return all;
            }
        };
        self.soon.begin(name, &head);
        let old = |due: &Due| due.is_old(network, &head);
        let (mut old, early): (Vec<Due>, Vec<Due>) = due.into_iter().partition(old);
        for due in &early {
            all.add(self.same(due, &Verdict::Early, now).await);
        }
        old.truncate(A_PASS);
        let looks = old.iter().map(|due| self.look_at(network, &head, due, now));
        let looks: Vec<_> = looks.collect();
        let mut looks = stream::iter(looks).buffer_unordered(AT_ONCE);
        while let Some(look) = looks.next().await {
            all.add(look);
        }
        all
    }

    /// Applies one verdict to all deposits of a transaction.
    async fn same(&self, due: &Due, verdict: &Verdict, now: u64) -> Look {
        let verdicts = vec![verdict.clone(); due.deposits.len()];
        self.settle(due, &verdicts, now).await
    }

    async fn look_at(&self, network: &Network, head: &Head, due: &Due, now: u64) -> Look {
        match verdicts(network, head, due, &self.soon).await {
            Ok(verdicts) => self.settle(due, &verdicts, now).await,
            Err(error) => {
                self.pauses.unanswered(due, now);
                self.unanswered(due, &error, now).await
            }
        }
    }

    async fn unanswered(&self, due: &Due, error: &ReadError, now: u64) -> Look {
        for one in &due.deposits {
            self.listed(one, &error.to_string(), now).await;
        }
        Look {
            unanswered: due.deposits.len(),
            ..Look::default()
        }
    }
}

impl Look {
    fn add(&mut self, other: Self) {
        self.confirmed += other.confirmed;
        self.gone += other.gone;
        self.early += other.early;
        self.unanswered += other.unanswered;
        self.refused += other.refused;
    }
}

/// What a quorum says of the deposits of a transaction, in their order. The transaction is read once for all of them.
async fn verdicts(
    network: &Network,
    head: &Head,
    due: &Due,
    soon: &Soon,
) -> Result<Vec<Verdict>, ReadError> {
    let chain = &network.chain;
    let all = |verdict: Verdict| vec![verdict; due.deposits.len()];
    let Ok(transaction) = chain.spec.family.tx(&due.transaction, None) else {
        let why = "no transaction of its network";
        return Ok(all(Verdict::Doubtful(why.into())));
    };
    let found = match chain.reader.transaction(&transaction, head).await {
        Err(error @ ReadError::TooLarge) => return Ok(all(Verdict::Doubtful(error.to_string()))),
        found => Kept::new(found?),
    };
    let seen = Seen {
        spec: &chain.spec,
        transaction: &transaction,
        head,
        found: &found,
    };
    let judged = aside(found.is_large(), || {
        let reading = Reading::of(&seen);
        let verdicts = due.deposits.iter().map(|(request, deposit)| {
            let own = &chain.spec.finality;
            if own.met(&block(deposit), head) {
                return reading.judge(request, deposit, own);
            }
            let least = network.finality(deposit);
            let in_time = least.met(&block(deposit), head);
            // Nothing is decided before.
            if !in_time || !soon.take(network, deposit, head) {
                return Verdict::Early;
            }
            let verdict = reading.judge(request, deposit, &least);
            if !matches!(verdict, Verdict::Final(_)) {
                soon.leave(deposit);
            }
            verdict
        });
        verdicts.collect()
    });
    Ok(judged)
}
