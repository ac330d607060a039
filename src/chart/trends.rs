//! Follows the event log and tallies purchases. The tally is in memory: at start the follower reads the last day's
//! events again, at most [`PAST`].

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::Deserialize;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::tally::{self, Bought, DAY, ListedCurrency, Sum, Tally};
use crate::{
    market::Market,
    request::{event::Event, status::Status},
    store::requests::{Requests, RequestsError},
};

/// The most events per read.
const PAGE: usize = 128;
/// The most events that the follower reads again at start.
const PAST: u64 = 200_000;
/// The most events that the follower reads of one request.
const OWN: usize = 64;
/// The pause after a failed read of the log.
const PAUSE: Duration = Duration::from_secs(1);

/// The tally of the last day, and the follower that keeps it.
pub struct Trends {
    market: Arc<Market>,
    requests: Requests,
    tally: Mutex<Tally>,
}

/// The part of an event's data that the tally needs.
#[derive(Deserialize)]
struct EventData {
    status: String,
}

impl Trends {
    /// Tallies the currencies of `market` by the events of `requests`.
    pub fn new(market: Arc<Market>, requests: &Requests) -> Self {
        Self {
            market,
            requests: requests.clone(),
            tally: Mutex::default(),
        }
    }

    /// The purchases of the last day, to the hour, unordered; `now` in unix seconds.
    pub fn sums(&self, now: u64) -> Vec<(ListedCurrency, Sum)> {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = tally.sums(now);
        sums.map(|(listed, sum)| (listed.clone(), *sum)).collect()
    }

    /// Follows the log until `shutdown`. `clock` gives unix milliseconds.
    pub async fn run(self: Arc<Self>, clock: fn() -> u64, shutdown: CancellationToken) {
        shutdown.run_until_cancelled(self.follow(clock)).await;
    }

    async fn follow(&self, clock: fn() -> u64) {
        let mut newest = self.requests.newest_event();
        let mut after = loop {
            match self.beginning(clock() / 1_000).await {
                Ok(after) => break after,
                Err(error) => complain(&error).await,
            }
        };
        loop {
            newest.borrow_and_update();
            match self.step(after, clock() / 1_000).await {
                Ok(last) if last == after => {
                    if newest.changed().await.is_err() {
                        return;
                    }
                }
                Ok(last) => {
                    after = last;
                    tokio::task::yield_now().await;
                }
                Err(error) => complain(&error).await,
            }
        }
    }

    /// The number of an event before the first one of the last day, at most [`PAST`] events back.
    async fn beginning(&self, now: u64) -> Result<u64, RequestsError> {
        let newest = *self.requests.newest_event().borrow();
        let (mut low, mut high) = (newest.saturating_sub(PAST), newest);
        while low < high {
            let middle = low + (high - low) / 2;
            let page = self.requests.events(middle, 1).await?;
            match page.first() {
                Some((number, event)) if is_old(event, now) => low = *number,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Tallies a page of the events after number `after` and returns the number of the last. After an error it
    /// tallies none of the page.
    async fn step(&self, after: u64, now: u64) -> Result<u64, RequestsError> {
        let (mut last, mut all) = (after, Vec::new());
        for (number, event) in self.requests.events(after, PAGE).await? {
            last = number;
            if is_old(&event, now) {
                continue;
            }
            match self.bought(number, &event).await {
                Ok(bought) => all.extend(bought.map(|bought| (event.at / 1_000, bought))),
                // `store verify` reports the row.
                Err(RequestsError::Row(error)) => {
                    tracing::debug!(number, %error, "the tally skips the event");
                }
                Err(error) => return Err(error),
            }
        }
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, bought) in all {
            tally.add(at, bought, now);
        }
        Ok(last)
    }

    /// The purchase of an event, if the event is the first one that marks its request as filled.
    async fn bought(&self, number: u64, event: &Event) -> Result<Option<Bought>, RequestsError> {
        if !is_filled(event) {
            return Ok(None);
        }
        let own = self.requests.events_of(&event.request, 0, OWN).await?;
        let mut before = own.iter().filter(|(one, _)| *one < number);
        if before.any(|(_, event)| is_filled(event)) {
            return Ok(None);
        }
        let Some(request) = self.requests.by_id(&event.request).await? else {
            return Ok(None);
        };
        let facts = self.requests.facts(&request.id).await?;
        Ok(tally::bought(&request, &facts, &self.market))
    }
}

async fn complain(error: &RequestsError) {
    tracing::warn!(%error, "the tally cannot read events");
    sleep(PAUSE).await;
}

/// `now` in unix seconds.
fn is_old(event: &Event, now: u64) -> bool {
    (event.at / 1_000).saturating_add(DAY) < now
}

fn is_filled(event: &Event) -> bool {
    let data = serde_json::from_str::<EventData>(&event.data);
    data.is_ok_and(|data| data.status == Status::Success.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        index,
        request::{
            Request,
            fact::{Facts, Inclusion as Block, Purpose, Standing, State},
            fixtures::{self, attempt, deposit},
        },
        store::{Batch, memory::MemoryStore, rows},
    };

    /// Unix seconds.
    const NOW: u64 = 1_700_000_000;
    /// The worth of each fill, in millionths of a dollar.
    const PAID: u64 = 99_900_000;
    const NATIVE: &str = "0x0000000000000000000000000000000000000000";

    async fn rig() -> (Trends, Requests) {
        let store = Arc::new(MemoryStore::new());
        let requests = Requests::open(store).await.unwrap();
        let market = Arc::new(index::fixtures::market());
        (Trends::new(market, &requests), requests)
    }

    /// A request for 100 dollars of `destination`'s native currency.
    fn request(number: u8) -> Request {
        let mut request = fixtures::priced(fixtures::request(number));
        request.destination.currency = NATIVE.into();
        request
    }

    fn block() -> Block {
        fixtures::place(1)
    }

    /// Fills the request at `at` (unix seconds).
    async fn filled(requests: &Requests, request: &Request, at: u64) {
        let known = requests.by_id(&request.id).await.unwrap();
        if known.is_none() {
            requests.insert(request, Batch::new()).await.unwrap();
        }
        for state in [State::Broadcast, State::Confirmed(block())] {
            standing(requests, request, at, state).await;
        }
    }

    async fn standing(requests: &Requests, request: &Request, at: u64, state: State) {
        let change = |facts: &mut Facts| {
            facts.deposits = vec![deposit(1, Standing::Final)];
            facts.attempts = vec![attempt(Purpose::Fill, state.clone())];
        };
        let recorded = requests.record(&request.id, at * 1_000, Batch::new(), change);
        recorded.await.unwrap();
    }

    /// Follows the log to its end.
    async fn followed(trends: &Trends, now: u64) {
        let mut after = trends.beginning(now).await.unwrap();
        loop {
            match trends.step(after, now).await.unwrap() {
                last if last == after => return,
                last => after = last,
            }
        }
    }

    fn sums(trends: &Trends, now: u64) -> Vec<(u64, u64, u64)> {
        let sums = trends.sums(now).into_iter();
        let all = sums.map(|(listed, sum)| {
            assert_eq!(listed.currency, NATIVE);
            (listed.chain, sum.count, sum.micro)
        });
        all.collect()
    }

    #[tokio::test]
    async fn what_is_filled_counts_once_and_what_is_not_never() {
        let (trends, requests) = rig().await;
        for number in 1..=3 {
            filled(&requests, &request(number), NOW).await;
        }
        let waiting = request(4);
        requests.insert(&waiting, Batch::new()).await.unwrap();
        standing(&requests, &waiting, NOW, State::Broadcast).await;
        // A reorg removes the fill's block, and another block includes the fill.
        let again = request(2);
        standing(&requests, &again, NOW + 1, State::Broadcast).await;
        standing(&requests, &again, NOW + 2, State::Confirmed(block())).await;
        let mut by_user = request(5);
        by_user.execution = crate::request::Execution::User;
        requests.insert(&by_user, Batch::new()).await.unwrap();
        let own = |facts: &mut Facts| {
            facts.own = vec![fixtures::sent("0x1", State::Confirmed(block()))];
        };
        let recorded = requests.record(&by_user.id, NOW * 1_000, Batch::new(), own);
        recorded.await.unwrap();
        followed(&trends, NOW + 3).await;
        assert_eq!(sums(&trends, NOW + 3), [(31_002, 3, 3 * PAID)]);
        // A new start reads the same events.
        let second = Trends::new(trends.market.clone(), &requests);
        followed(&second, NOW + 3).await;
        assert_eq!(sums(&second, NOW + 3), sums(&trends, NOW + 3));
    }

    #[tokio::test]
    async fn what_was_filled_before_the_last_day_is_not_read() {
        let (trends, requests) = rig().await;
        for (number, at) in [(1, NOW), (2, NOW + 10), (3, NOW + DAY + 7_200)] {
            filled(&requests, &request(number), at).await;
        }
        let now = NOW + DAY + 7_200;
        let newest = *requests.newest_event().borrow();
        let began = trends.beginning(now).await.unwrap();
        // Each request has two changes of its status.
        assert_eq!((newest, began), (6, 4));
        followed(&trends, now).await;
        assert_eq!(sums(&trends, now), [(31_002, 1, PAID)]);
        assert_eq!(trends.beginning(NOW).await, Ok(0));
        assert_eq!(trends.beginning(NOW + 9 * DAY).await, Ok(6));
        assert!(sums(&trends, now + 2 * DAY).is_empty());
    }

    #[tokio::test]
    async fn an_empty_log_has_a_beginning_and_no_sums() {
        let (trends, _) = rig().await;
        assert_eq!(trends.beginning(NOW).await, Ok(0));
        assert_eq!(trends.step(0, NOW).await, Ok(0));
        assert!(sums(&trends, NOW).is_empty());
    }

    #[tokio::test]
    async fn a_request_that_cannot_be_read_or_is_gone_is_left_out() {
        let (trends, requests) = rig().await;
        for number in 1..=3 {
            filled(&requests, &request(number), NOW).await;
        }
        let broken = Batch::new()
            .put(rows::request::key(&request(1).id), vec![9])
            .delete(rows::request::key(&request(2).id));
        requests.store().commit(broken).await.unwrap();
        followed(&trends, NOW).await;
        assert_eq!(sums(&trends, NOW), [(31_002, 1, PAID)]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_follows_until_the_end() {
        let (trends, requests) = rig().await;
        let (trends, shutdown) = (Arc::new(trends), CancellationToken::new());
        let following = tokio::spawn(trends.clone().run(|| NOW * 1_000, shutdown.clone()));
        for number in 1..=2 {
            filled(&requests, &request(number), NOW).await;
            sleep(Duration::from_secs(1)).await;
            let count = u64::from(number);
            assert_eq!(sums(&trends, NOW), [(31_002, count, count * PAID)]);
        }
        shutdown.cancel();
        following.await.unwrap();
    }

    #[test]
    fn only_a_success_is_filled() {
        let event = |data: &str| Event {
            request: fixtures::request(1).id,
            key: None,
            version: 1,
            at: 0,
            data: data.into(),
            referrer: None,
        };
        assert!(is_filled(&event(r#"{"status":"success","x":1}"#)));
        for data in [
            r#"{"status":"submitted","failReason":"success"}"#,
            r#"{"status":null}"#,
            "{}",
            "",
        ] {
            assert!(!is_filled(&event(data)), "{data}");
        }
    }
}
