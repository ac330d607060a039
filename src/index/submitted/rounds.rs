//! Rounds over the transactions that are looked for: each network on its own.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::future::try_join_all;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use vm::B256;

use super::{MOST, Transactions};
use crate::{
    index::{IndexError, looks::Looks},
    store::{
        Batch,
        rows::{
            TRANSACTION,
            transaction::{self, Row, Tracked},
        },
        walk::Walk,
    },
};

/// Rows that one commit deletes.
const PAGE: usize = 256;
/// Transactions asked about at the same time.
const AT_ONCE: usize = 8;
/// Transactions that one round asks a network about for the first time since they were submitted.
const NEW: usize = 32;
/// Transactions that it asks about again. What never appears costs every provider so many questions a second and no
/// more, however much of it there is.
const AGAIN: usize = 8;
/// Transactions of a request, the newest, that are looked for longer because a caller assigned them to it.
const CLAIMED: usize = 8;
/// The time between the beginnings of two rounds.
const ROUND: Duration = Duration::from_secs(1);

impl Transactions {
    /// Looks for what is due, again and again until `shutdown`, at each network on its own. `clock`
    /// gives unix milliseconds.
    pub async fn run(self: Arc<Self>, clock: fn() -> u64, shutdown: CancellationToken) {
        let mut looks = Looks::default();
        loop {
            let begun = Instant::now();
            looks.reap();
            let waiting = match self.due(clock()).await {
                Ok((waiting, due)) => {
                    for (network, rows) in due {
                        let all = self.clone();
                        looks.begin(network, async move { all.report(&rows, clock()).await });
                    }
                    waiting
                }
                Err(error) => {
                    tracing::error!(%error, "transactions not looked for");
                    1
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = self.wakeup.woken() => {}
                () = sleep(ROUND), if waiting > 0 => {}
            }
            // Each round reads all rows, so submitting one transaction after the other starts no more rounds.
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = sleep_until(begun + ROUND) => {}
            }
        }
    }

    /// Looks once for everything that is due at `now` (unix milliseconds). Returns how many transactions were still
    /// looked for when it began.
    pub async fn round(&self, now: u64) -> Result<usize, IndexError> {
        let (waiting, due) = self.due(now).await?;
        for rows in due.values() {
            self.look_for(rows, now).await?;
        }
        Ok(waiting)
    }

    /// How many are looked for, and by network those that are due.
    async fn due(&self, now: u64) -> Result<(usize, BTreeMap<String, Vec<Row>>), IndexError> {
        let mut rows = self.rows().await?;
        let waiting = rows.len();
        self.waiting.store(waiting, Ordering::Relaxed);
        metrics::gauge!("intentd_index_transactions")
            .set(u32::try_from(waiting).unwrap_or(u32::MAX));
        claimed(&mut rows);
        let rows = self.kept(rows).await?;
        let mut due: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| row.tracked.next <= now) {
            due.entry(row.network.clone()).or_default().push(row);
        }
        due.values_mut().for_each(asked);
        Ok((waiting, due))
    }

    /// The rows without those for which there is no room. Of the transactions that were never seen, unclaimed ones go
    /// first, and of those the ones that were looked for already, the oldest first. A request claims few.
    async fn kept(&self, mut rows: Vec<Row>) -> Result<Vec<Row>, IndexError> {
        let Some(above) = rows.len().checked_sub(MOST).filter(|above| *above > 0) else {
            return Ok(rows);
        };
        let seen = |row: &Row| !row.tracked.requests.is_empty();
        rows.sort_unstable_by_key(|row| {
            let Tracked {
                tries,
                claimed,
                first,
                ..
            } = &row.tracked;
            (seen(row), claimed.is_some(), *tries == 0, *first)
        });
        let kept = rows.split_off(above);
        for some in rows.chunks(PAGE) {
            let keys = some
                .iter()
                .map(|row| transaction::looked_for(&row.network, &row.id));
            let batch = keys.fold(Batch::new(), Batch::delete);
            self.recorder.requests.store().commit(batch).await?;
        }
        metrics::counter!("intentd_index_transactions_forgotten_total")
            .increment(u64::try_from(above).unwrap_or(u64::MAX));
        Ok(kept)
    }

    async fn report(&self, rows: &[Row], now: u64) {
        if let Err(error) = self.look_for(rows, now).await {
            tracing::error!(%error, "transactions not looked for");
        }
    }

    async fn look_for(&self, rows: &[Row], now: u64) -> Result<(), IndexError> {
        for some in rows.chunks(AT_ONCE) {
            try_join_all(some.iter().map(|row| self.look(row, now))).await?;
        }
        Ok(())
    }

    async fn rows(&self) -> Result<Vec<Row>, IndexError> {
        let store = &**self.recorder.requests.store();
        let mut walk = Walk::under(store, TRANSACTION, vec![transaction::LOOKED_FOR]);
        let mut rows = Vec::new();
        while let Some((key, value)) = walk.next().await? {
            rows.push(transaction::row(&key, &value)?);
        }
        Ok(rows)
    }
}

/// What a round asks a network about, of all that is due there. Of what was never looked at, half is the newest and
/// half is what a request claims, the oldest first: submitting much that never appears delays nobody else. Then comes
/// what is a request's, what one claims, and what has waited longest.
fn asked(due: &mut Vec<Row>) {
    let (mut new, mut again): (Vec<Row>, Vec<Row>) = std::mem::take(due)
        .into_iter()
        .partition(|row| row.tracked.tries == 0);
    new.sort_unstable_by_key(|row| (Reverse(row.tracked.next), Reverse(row.tracked.first)));
    let mut rest = new.split_off(new.len().min(NEW / 2));
    rest.sort_unstable_by_key(|row| (row.tracked.claimed.is_none(), row.tracked.first));
    new.extend(rest.into_iter().take(NEW / 2));
    again.sort_unstable_by_key(|row| {
        let tracked = &row.tracked;
        let nobodys = (tracked.requests.is_empty(), tracked.claimed.is_none());
        (nobodys, tracked.next)
    });
    again.truncate(AGAIN);
    due.extend(new);
    due.extend(again);
}

/// Removes the claim from what is beyond [`CLAIMED`] of its request.
fn claimed(rows: &mut [Row]) {
    let mut of: HashMap<B256, Vec<(u64, usize)>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        if let Some(request) = row.tracked.claimed {
            of.entry(request).or_default().push((row.tracked.first, at));
        }
    }
    for mut claims in of.into_values() {
        claims.sort_unstable_by_key(|claim| Reverse(*claim));
        for (_, at) in claims.into_iter().skip(CLAIMED) {
            rows[at].tracked.claimed = None;
        }
    }
}
