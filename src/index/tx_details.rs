//! Reads every transaction of a request that is in a block, once it is there, and keeps it in full for those who list
//! requests. For display only: it believes one provider, and nothing that moves money or derives a status reads what
//! it keeps.
//!
//! The commit that puts the transaction into its block also stores that it is wanted. That ends when the transaction
//! was seen in that block, when the facts no longer have it there, or after a week without success. Each network has
//! an observer of its own, so a network that does not answer delays no other.
//!
//! What a transaction moved is kept with the prices of that time: later they can no longer be read.

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use backon::{BackoffBuilder, ExponentialBuilder};
use futures::future::join_all;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use vm::{Family, ReadError, TxRef, spelled_alike, trade::TxInspector};

use super::IndexError;
use crate::{
    market::{Currency, Network},
    price::PriceSource,
    request::tx_details::{TxDetails, Worth, included},
    store::{
        Batch, Key,
        requests::Requests,
        rows::tx_details::{self, Row},
    },
};

/// Rows read at a time.
const PAGE: usize = 256;
/// Transactions that are asked about at the same time.
const AT_ONCE: usize = 8;
/// The pause between two rounds.
const POLL: Duration = Duration::from_millis(500);
/// The pause before the second look at a transaction; each later pause is twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const SLOWEST: Duration = Duration::from_secs(600);
/// Looks after the first one; together they take a week.
const TRIES: usize = 1_000;

/// Seconds after its block from which a transaction is seen too late for the prices of that time.
const LATE: u64 = 3_600;

/// How long a look waits for one price.
const PATIENCE: Duration = Duration::from_secs(2);

/// The result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Transactions that were seen.
    pub seen: usize,
    /// Transactions that are looked for again.
    pub later: usize,
    /// Transactions that are no longer wanted, or were given up.
    pub dropped: usize,
    /// Nothing more is due, or no provider answers.
    pub done: bool,
}

/// The result of a look at one transaction.
enum Look {
    Seen(Box<TxDetails>),
    /// No provider shows it in its block.
    Unseen(String),
    /// The facts no longer have it in that block.
    Moved,
}

/// Reads the transactions of one network in full.
pub struct Observer {
    network: String,
    family: &'static Family,
    providers: Vec<Arc<dyn TxInspector>>,
    requests: Requests,
    pricing: Option<Pricing>,
}

/// Where the prices of a network's currencies come from.
struct Pricing {
    network: Network,
    prices: Arc<dyn PriceSource>,
    /// Unix milliseconds.
    clock: fn() -> u64,
}

impl Pricing {
    /// The network's native currency first, then the listed currencies that `seen` moved.
    fn moved(&self, seen: &TxDetails) -> Vec<&Currency> {
        let native = self.network.native();
        let touched = |currency: &&Currency| {
            let mut changes = seen.changes.iter();
            changes.any(|change| spelled_alike(&change.currency, &currency.address))
        };
        let others = self.network.currencies.iter().skip(1).filter(touched);
        native.into_iter().chain(others).collect()
    }
}

impl Observer {
    /// For the network that orders call `network`. Providers are asked in turn until one shows the transaction in its
    /// block.
    pub fn new(
        network: &str,
        family: &'static Family,
        providers: Vec<Arc<dyn TxInspector>>,
        requests: Requests,
    ) -> Self {
        Self {
            network: network.to_owned(),
            family,
            providers,
            requests,
            pricing: None,
        }
    }

    /// Keeps with each transaction what the currencies of `network` that it moved are worth. `clock` gives unix
    /// milliseconds: `prices` is shared with others, who ask by the present time.
    #[must_use]
    pub fn pricing(
        self,
        network: &Network,
        prices: Arc<dyn PriceSource>,
        clock: fn() -> u64,
    ) -> Self {
        let network = network.clone();
        let pricing = Pricing {
            network,
            prices,
            clock,
        };
        Self {
            pricing: Some(pricing),
            ..self
        }
    }

    /// Looks again and again until `shutdown`. `clock` gives unix milliseconds.
    pub async fn run(self, clock: fn() -> u64, shutdown: CancellationToken) {
        let rounds = async {
            loop {
                let round = self.round(clock()).await;
                if let Err(error) = &round {
                    tracing::error!(network = self.network, %error, "transactions not looked at");
                }
                if round.is_ok_and(|round| !round.done) {
                    continue;
                }
                sleep(POLL).await;
            }
        };
        shutdown.run_until_cancelled(rounds).await;
    }

    /// Looks once at what is due at `now` (unix milliseconds), up to a page of it. Stops when no provider answers, so
    /// that an outage does not rewrite all rows that wait for its end.
    pub async fn round(&self, now: u64) -> Result<Round, IndexError> {
        let range = tx_details::range(&self.network, PAGE);
        let page = self.requests.store().scan(range).await?;
        let full = page.len() == PAGE;
        let rows = page.iter().map(|(key, value)| tx_details::row(key, value));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let due: Vec<Row> = rows.into_iter().filter(|row| row.next <= now).collect();
        let mut round = Round {
            done: !full || due.len() < PAGE,
            ..Round::default()
        };
        for some in due.chunks(AT_ONCE) {
            let looks = join_all(some.iter().map(|row| self.look(row))).await;
            let before = round.later;
            for (row, look) in some.iter().zip(looks) {
                self.keep(row, look?, now, &mut round).await?;
            }
            if round.later - before == some.len() {
                round.done = true;
                break;
            }
        }
        Ok(round)
    }

    async fn look(&self, row: &Row) -> Result<Look, IndexError> {
        let facts = self.requests.facts(&row.wanted.request).await?;
        let mut placed = included(&facts);
        let found = placed.find(|one| {
            one.network == row.network
                && one.block == row.wanted.block
                && tx_details::spelled(one.transaction) == row.transaction
        });
        let Some(found) = found else {
            return Ok(Look::Moved);
        };
        let transaction = match self.family.tx(found.transaction, None) {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Look::Unseen(error.to_string())),
        };
        let mut why = "no provider".to_owned();
        for provider in &self.providers {
            match seen(&**provider, &transaction).await {
                Ok(Some(seen)) if seen.place.hash == row.wanted.block => {
                    let seen = self.priced(seen).await;
                    return Ok(Look::Seen(seen.into()));
                }
                Ok(Some(_)) => why = "in another block".into(),
                Ok(None) => why = "in no block".into(),
                Err(error) => why = error.to_string(),
            }
        }
        Ok(Look::Unseen(why))
    }

    /// Adds the present prices, where that is soon after the block. A missing price is not asked for again: readers
    /// use the quote's. A round may take long, so each look has its own time.
    async fn priced(&self, mut seen: TxDetails) -> TxDetails {
        let Some(pricing) = &self.pricing else {
            return seen;
        };
        let now = || (pricing.clock)() / 1_000;
        if now().saturating_sub(seen.place.time) > LATE {
            return seen;
        }
        for (at, currency) in pricing.moved(&seen).into_iter().enumerate() {
            let asked = timeout(PATIENCE, pricing.prices.price(currency, now()));
            let Ok(Ok(price)) = asked.await else {
                continue;
            };
            seen.prices.push(Worth {
                currency: currency.address.clone(),
                native: at == 0,
                decimals: currency.decimals,
                usd: price.usd,
            });
        }
        seen
    }

    /// Records the result of a look, unless the row has changed meanwhile.
    async fn keep(
        &self,
        row: &Row,
        look: Look,
        now: u64,
        round: &mut Round,
    ) -> Result<(), IndexError> {
        let key = row.key();
        let batch = Batch::new().remove(key, row.value()?);
        let (batch, count, verdict) = match look {
            Look::Seen(seen) => {
                let key = tx_details::seen(&row.network, &row.transaction);
                let batch = batch.put(key, tx_details::encode_seen(&seen)?);
                (batch, &mut round.seen, "seen")
            }
            Look::Moved => (batch, &mut round.dropped, "moved"),
            Look::Unseen(why) => match again(row, now)? {
                Some((key, value)) => (batch.put(key, value), &mut round.later, "later"),
                None => {
                    let (network, transaction) = (&row.network, &row.transaction);
                    tracing::error!(
                        network,
                        transaction,
                        why,
                        "transaction never seen: given up"
                    );
                    (batch, &mut round.dropped, "given up")
                }
            },
        };
        if self.requests.store().commit(batch).await?.is_applied() {
            *count += 1;
            let chain = self.network.clone();
            metrics::counter!("intentd_index_witnesses_total", "chain" => chain, "verdict" => verdict)
                .increment(1);
        }
        Ok(())
    }
}

async fn seen(
    provider: &dyn TxInspector,
    transaction: &TxRef,
) -> Result<Option<TxDetails>, ReadError> {
    let seen = provider.inspect(transaction).await?;
    Ok(seen.map(TxDetails::from))
}

/// The row of the next look; `None` after the last.
fn again(row: &Row, now: u64) -> Result<Option<(Key, Vec<u8>)>, IndexError> {
    let pauses = ExponentialBuilder::default()
        .with_min_delay(FIRST)
        .with_max_delay(SLOWEST)
        .with_max_times(TRIES);
    let tries = usize::try_from(row.wanted.tries).unwrap_or(usize::MAX);
    let Some(pause) = pauses.build().nth(tries) else {
        return Ok(None);
    };
    let mut next = row.clone();
    next.wanted.tries = row.wanted.tries.saturating_add(1);
    next.next = now.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
    Ok(Some((next.key(), next.value()?)))
}
