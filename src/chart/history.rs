//! The candles of currencies in the store. A sample and a chart each touch a bounded number of rows, however long the
//! history is.
//!
//! Samples are stored in the finest step. The first sample of a page sums the page before up as one candle of the
//! coarser step. A page that is not yet summed up is summed up when it is read.

use std::sync::Arc;

use super::{Candle, ChartError, Series, Step, candle};
use crate::store::{Key, Range, Store, rows::candle as row};

/// The price history of currencies, with one writer ([`Sampler`](super::Sampler)) and many readers.
#[derive(Clone)]
pub struct History {
    store: Arc<dyn Store>,
}

impl History {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The rows that `sample` writes: three at most, none where a later sample is stored. An unreadable earlier page
    /// is not summed up; the sample is written all the same.
    pub async fn sampled(
        &self,
        series: Series<'_>,
        sample: Candle,
    ) -> Result<Vec<(Key, Vec<u8>)>, ChartError> {
        let mut rows = Vec::new();
        let mut next = self.added(Step::Minutes, series, sample, &mut rows).await?;
        while let Some((step, candle)) = next {
            let added = self.added(step, series, candle, &mut rows).await;
            next = readable(series, added)?.flatten();
        }
        Ok(rows)
    }

    /// Adds a candle to its page in `rows`. With the page's first candle it also sums the page before up as a candle
    /// of the coarser step, and returns that.
    async fn added(
        &self,
        step: Step,
        series: Series<'_>,
        fresh: Candle,
        rows: &mut Vec<(Key, Vec<u8>)>,
    ) -> Result<Option<(Step, Candle)>, ChartError> {
        let key = row::key(step, series, fresh.at);
        let known = self.store.read(&key).await?;
        let page = known.map(|bytes| row::decode(&bytes)).transpose()?;
        let page = page.unwrap_or_default();
        // A later page that a wrong clock left does not replace the earlier ones.
        let at = step.start(fresh.at);
        let begins = page.first().is_none_or(|first| step.start(first.at) >= at);
        if let Some(page) = candle::joined(page, fresh, step) {
            rows.push((key, row::encode(&page)?));
        }
        let (true, Some(coarser)) = (begins, step.coarser()) else {
            return Ok(None);
        };
        let Some(until) = step.page_start(fresh.at).checked_sub(1) else {
            return Ok(None);
        };
        let before = self.pages(row::newest(step, series, until)).await;
        let summed = readable(series, before)?.and_then(candle::summed);
        Ok(summed.map(|candle| (coarser, candle)))
    }

    /// The candles of `step` from the one that contains `from` to the one of `now` (unix seconds), as far as they are
    /// stored, oldest first. The last one may still change.
    pub async fn points(
        &self,
        step: Step,
        series: Series<'_>,
        from: u64,
        now: u64,
    ) -> Result<Vec<Candle>, ChartError> {
        let from = from.max(now.saturating_sub(step.kept()));
        // Finest step first: a page that is summed up meanwhile is then read twice rather than not at all.
        let mut open = Vec::new();
        for finer in Step::ALL.into_iter().take_while(|finer| *finer != step) {
            open.push(self.pages(row::newest(finer, series, now)).await?);
        }
        let mut candles = self.pages(row::since(step, series, from)).await?;
        candles.extend(open.into_iter().rev().flatten());
        // Removes candles of the future, which a clock that went back leaves.
        candles.retain(|candle| candle.at <= now);
        let mut points = candle::grouped(&candles, step);
        points.retain(|point| step.start(point.at) + step.seconds() > from);
        Ok(points)
    }

    /// All candles until `now`, in the finest step that covers the whole history.
    pub async fn all(
        &self,
        series: Series<'_>,
        now: u64,
    ) -> Result<(Step, Vec<Candle>), ChartError> {
        for (step, finer) in [(Step::Day, Step::Hour), (Step::Hour, Step::Minutes)] {
            let points = self.points(step, series, 0, now).await?;
            let forgotten = |first: &Candle| first.at.saturating_add(finer.kept()) <= now;
            if points.first().is_some_and(forgotten) {
                return Ok((step, points));
            }
        }
        let points = self.points(Step::Minutes, series, 0, now).await?;
        Ok((Step::Minutes, points))
    }

    async fn pages(&self, range: Range) -> Result<Vec<Candle>, ChartError> {
        let rows = self.store.scan(range).await?;
        let pages = rows.iter().map(|(_, bytes)| row::decode(bytes));
        Ok(pages.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// `None` for an unreadable row; `store verify` reports it too.
fn readable<T>(series: Series<'_>, found: Result<T, ChartError>) -> Result<Option<T>, ChartError> {
    match found {
        Err(ChartError::Row(error)) => {
            tracing::warn!(?series, %error, "the history does not sum the earlier prices up");
            Ok(None)
        }
        found => found.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Batch, memory::MemoryStore, rows::CANDLE};

    const SERIES: Series<'static> = Series {
        network: "base",
        currency: "0xab",
    };
    const HOUR: u64 = 3_600;
    const DAY: u64 = 24 * HOUR;
    /// The start of a page of days.
    const BEGIN: u64 = 32 * DAY * 600;

    struct Rig {
        store: Arc<MemoryStore>,
        history: History,
    }

    impl Rig {
        fn new() -> Self {
            let store = Arc::new(MemoryStore::new());
            Self {
                history: History::new(store.clone()),
                store,
            }
        }

        /// Samples a price and returns the number of rows written.
        async fn sample(&self, at: u64, usd: u128) -> usize {
            let rows = self.history.sampled(SERIES, candle::sampled(at, usd));
            let rows = rows.await.unwrap();
            let count = rows.len();
            let put = |batch: Batch, (key, value)| batch.put(key, value);
            let batch = rows.into_iter().fold(Batch::new(), put);
            self.store.commit(batch).await.unwrap();
            count
        }

        /// Samples every five minutes in `from..to`; returns the most rows of one sample.
        async fn fill(&self, from: u64, to: u64) -> usize {
            let mut most = 0;
            for at in (from..to).step_by(300) {
                most = most.max(self.sample(at, usd(at)).await);
            }
            most
        }

        async fn points(&self, step: Step, from: u64, now: u64) -> Vec<Candle> {
            let points = self.history.points(step, SERIES, from, now);
            points.await.unwrap()
        }
    }

    /// One dollar, and one more per minute since [`BEGIN`].
    fn usd(at: u64) -> u128 {
        u128::from((at - BEGIN) / 60 + 1) * 10_u128.pow(18)
    }

    fn starts(step: Step, points: &[Candle]) -> Vec<u64> {
        points.iter().map(|point| step.start(point.at)).collect()
    }

    #[tokio::test]
    async fn a_sample_writes_three_rows_at_most_and_none_twice() {
        let rig = Rig::new();
        assert_eq!(rig.sample(BEGIN, 1).await, 1);
        assert_eq!(rig.sample(BEGIN, 2).await, 0, "the clock stands");
        assert_eq!(rig.sample(BEGIN - 1, 2).await, 1, "a page of before");
        assert_eq!(rig.sample(BEGIN + 300, 2).await, 1);
        assert_eq!(rig.sample(BEGIN + HOUR, 3).await, 2, "and the hour");
        assert_eq!(rig.sample(BEGIN + DAY, 4).await, 2, "and the hour");
        let next = rig.sample(BEGIN + DAY + HOUR, 5).await;
        assert_eq!(next, 3, "and the day");
        assert_eq!(rig.fill(BEGIN + 2 * DAY, BEGIN + 34 * DAY).await, 3);
        // Pages of twelve, twenty-four and thirty-two candles.
        let rows = rig.store.scan(row::range(None, 9_999)).await.unwrap();
        for (key, bytes) in rows {
            let step = row::page(&key).unwrap().step;
            let candles = row::decode(&bytes).unwrap().len() as u64;
            assert!(candles <= step.page() / step.seconds(), "{key:?}");
            assert!(bytes.len() < 2_048, "{}", bytes.len());
        }
    }

    #[tokio::test]
    async fn nothing_is_known_before_the_first_sample() {
        let rig = Rig::new();
        for step in Step::ALL {
            assert!(rig.points(step, 0, BEGIN).await.is_empty());
        }
        let all = rig.history.all(SERIES, BEGIN).await.unwrap();
        assert_eq!(all, (Step::Minutes, Vec::new()));
    }

    #[tokio::test]
    async fn every_step_has_each_time_once_up_to_now() {
        let rig = Rig::new();
        let end = BEGIN + 3 * DAY + 5 * HOUR + 900;
        rig.fill(BEGIN, end).await;
        let now = end - 1;
        for (step, from) in [
            (Step::Minutes, now - 4 * HOUR),
            (Step::Minutes, now - DAY),
            (Step::Hour, now - 3 * DAY),
            (Step::Hour, BEGIN),
            (Step::Day, 0),
        ] {
            let points = rig.points(step, from, now).await;
            let first = step.start(from.max(BEGIN));
            let wanted: Vec<_> = (first..=now).step_by(step.seconds() as usize).collect();
            assert_eq!(starts(step, &points), wanted, "{step:?} {from}");
            for point in points {
                let (open, close) = (usd(step.start(point.at)), usd(point.at));
                assert_eq!((point.open, point.low), (open, open), "{step:?}");
                assert_eq!((point.close, point.high), (close, close), "{step:?}");
            }
        }
    }

    #[tokio::test]
    async fn who_was_away_has_a_gap_and_no_other_hour_is_lost() {
        let rig = Rig::new();
        rig.fill(BEGIN, BEGIN + 90 * 60).await;
        rig.fill(BEGIN + 20 * DAY, BEGIN + 20 * DAY + 600).await;
        let now = BEGIN + 20 * DAY + 600;
        let hours = rig.points(Step::Hour, BEGIN, now).await;
        let wanted = [BEGIN, BEGIN + HOUR, BEGIN + 20 * DAY];
        assert_eq!(starts(Step::Hour, &hours), wanted);
        let days = rig.points(Step::Day, 0, now).await;
        assert_eq!(starts(Step::Day, &days), [BEGIN, BEGIN + 20 * DAY]);
        assert_eq!(days[0], candle::summed(hours[..2].to_vec()).unwrap());
        let week = rig.points(Step::Hour, now - 7 * DAY, now).await;
        assert_eq!(starts(Step::Hour, &week), [BEGIN + 20 * DAY]);
    }

    #[tokio::test]
    async fn all_of_it_is_told_in_the_finest_step_that_knows_all() {
        let rig = Rig::new();
        rig.fill(BEGIN, BEGIN + 40 * DAY).await;
        for (days, step, count) in [
            (1, Step::Minutes, 288),
            (3, Step::Hour, 72),
            (40, Step::Day, 40),
        ] {
            let now = BEGIN + days * DAY - 1;
            let (finest, points) = rig.history.all(SERIES, now).await.unwrap();
            assert_eq!((finest, points.len()), (step, count), "{days}");
        }
    }

    #[tokio::test]
    async fn what_a_wrong_clock_left_of_the_future_is_not_told() {
        let rig = Rig::new();
        let later = BEGIN + 100 * DAY;
        rig.fill(later, later + 2 * HOUR).await;
        rig.fill(BEGIN, BEGIN + 2 * HOUR).await;
        let now = BEGIN + 2 * HOUR - 1;
        for (step, count) in [(Step::Minutes, 24), (Step::Hour, 2), (Step::Day, 1)] {
            assert_eq!(rig.points(step, 0, now).await.len(), count, "{step:?}");
        }
    }

    #[tokio::test]
    async fn what_a_wrong_clock_left_of_the_future_hides_no_hour_before_it() {
        let rig = Rig::new();
        // The clock is ahead for a moment, then correct.
        rig.sample(BEGIN + 3 * HOUR, 7).await;
        rig.fill(BEGIN, BEGIN + 5 * HOUR).await;
        let now = BEGIN + 5 * HOUR - 1;
        let hours = rig.points(Step::Hour, BEGIN, now).await;
        let wanted = [0, 1, 2, 3, 4].map(|hour| BEGIN + hour * HOUR);
        assert_eq!(starts(Step::Hour, &hours), wanted);
    }

    #[tokio::test]
    async fn a_page_that_cannot_be_read_is_an_error_and_no_price() {
        let rig = Rig::new();
        let key = row::key(Step::Minutes, SERIES, BEGIN);
        assert_eq!(key.kind, CANDLE);
        let broken = Batch::new().put(key, vec![9]);
        rig.store.commit(broken).await.unwrap();
        let points = rig.history.points(Step::Minutes, SERIES, 0, BEGIN);
        assert!(matches!(points.await, Err(ChartError::Row(_))));
        let sample = candle::sampled(BEGIN, 1);
        assert!(rig.history.sampled(SERIES, sample).await.is_err());
    }

    #[tokio::test]
    async fn what_cannot_be_read_of_before_keeps_no_sample_from_being_written() {
        let rig = Rig::new();
        rig.fill(BEGIN, BEGIN + HOUR).await;
        let broken = |step| Batch::new().put(row::key(step, SERIES, BEGIN), vec![9]);
        rig.store.commit(broken(Step::Minutes)).await.unwrap();
        assert_eq!(rig.sample(BEGIN + HOUR, 1).await, 1, "no hour of it");
        assert_eq!(rig.sample(BEGIN + 2 * HOUR, 2).await, 2, "the next hour");
        rig.store.commit(broken(Step::Hour)).await.unwrap();
        assert_eq!(rig.sample(BEGIN + 3 * HOUR, 3).await, 1, "no hour of it");
        let next = rig.sample(BEGIN + DAY, 4).await;
        assert_eq!(next, 1, "the hour before belongs to the broken page");
        let next = rig.sample(BEGIN + DAY + HOUR, 5).await;
        assert_eq!(next, 2, "an hour of the next day, and no day before");
        let points = rig.points(Step::Minutes, BEGIN + HOUR, BEGIN + DAY + HOUR);
        assert_eq!(points.await.len(), 5);
    }
}
