//! Sampled prices of currencies as candles: the first, highest, lowest and last price of each step of time. For
//! display only: quotes, payments and statements do not read them.
//!
//! Key: the step (1 byte); the network's name, a zero byte; the currency ([`Name::key`]); the unix seconds at which
//! the page begins, 8 bytes big endian. Value, format 1: the page's candles, the oldest first ([`Candle`], postcard).
//!
//! | step | a candle | a page | kept |
//! |---|---|---|---|
//! | 0 | five minutes | an hour | two days |
//! | 1 | an hour | a day | 31 days |
//! | 2 | a day | 32 days | five years |
//!
//! Retention deletes a page when its end is that old ([`retention`](crate::store::retention)), and a currency's last
//! page, which is not yet summed up, when a candle of the coarser step would go. The daemon's clock triggers the
//! samples of the market file's currencies: some 140 pages of less than 2 KB each, whatever callers do.

use serde::{Deserialize, Serialize};

use super::{CANDLE, RowError, decode as decode_row, encode as encode_row};
use crate::{
    request::name::Name,
    store::{Key, Range},
};

const FORMAT: u8 = 1;
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// The prices of one step of time: USD with 18 decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candle {
    /// When the last price was sampled, in unix seconds; determines the step.
    pub at: u64,
    pub open: u128,
    pub high: u128,
    pub low: u128,
    pub close: u128,
}

/// The length of a candle. The numbers are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Five minutes.
    Minutes = 0,
    Hour = 1,
    Day = 2,
}

/// A currency with candles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series<'a> {
    /// The network's name in orders.
    pub network: &'a str,
    /// The currency's address text.
    pub currency: &'a str,
}

/// The content of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub step: Step,
    pub network: String,
    /// Unix seconds.
    pub start: u64,
}

impl Step {
    /// All steps, the finest first.
    pub const ALL: [Self; 3] = [Self::Minutes, Self::Hour, Self::Day];

    /// The seconds of a candle, of a page, and for which a page is kept.
    const fn lengths(self) -> [u64; 3] {
        match self {
            Self::Minutes => [5 * 60, HOUR, 2 * DAY],
            Self::Hour => [HOUR, DAY, 31 * DAY],
            Self::Day => [DAY, 32 * DAY, 5 * 365 * DAY],
        }
    }

    /// The seconds of a candle.
    pub const fn seconds(self) -> u64 {
        self.lengths()[0]
    }

    /// The seconds of a page: those of a candle of the coarser step, if there is one.
    pub const fn page(self) -> u64 {
        self.lengths()[1]
    }

    /// The seconds for which a page is kept after its end.
    pub const fn kept(self) -> u64 {
        self.lengths()[2]
    }

    /// The step in which a page of this one becomes one candle.
    pub const fn coarser(self) -> Option<Self> {
        match self {
            Self::Minutes => Some(Self::Hour),
            Self::Hour => Some(Self::Day),
            Self::Day => None,
        }
    }

    /// The first unix second of the candle of `at`.
    pub const fn start(self, at: u64) -> u64 {
        at - at % self.seconds()
    }

    /// The first unix second of the page of `at`.
    pub const fn page_start(self, at: u64) -> u64 {
        at - at % self.page()
    }

    /// The most pages that exist at a time.
    fn pages(self) -> usize {
        let pages = self.kept() / self.page() + 2;
        usize::try_from(pages).unwrap_or(usize::MAX)
    }

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == byte)
    }
}

impl Series<'_> {
    /// The prefix of the names of its pages of `step`.
    fn prefix(self, step: Step) -> Vec<u8> {
        let currency = Name::of(self.currency).key();
        [&[step as u8], self.network.as_bytes(), &[0], &currency].concat()
    }

    fn name(self, step: Step, start: u64) -> Vec<u8> {
        [&*self.prefix(step), &start.to_be_bytes()].concat()
    }
}

/// The key of the page with the candle of `at` (unix seconds).
pub fn key(step: Step, series: Series<'_>, at: u64) -> Key {
    Key::new(CANDLE, series.name(step, step.page_start(at)))
}

/// The pages from that of `from` (unix seconds) on, oldest first.
pub fn since(step: Step, series: Series<'_>, from: u64) -> Range {
    let before = step.page_start(from).checked_sub(1);
    Range::new(
        CANDLE,
        &series.prefix(step),
        before.map(|before| series.name(step, before)),
        step.pages(),
    )
}

/// The newest page that begins at `until` (unix seconds) or before.
pub fn newest(step: Step, series: Series<'_>, until: u64) -> Range {
    Range {
        after: Some(series.name(step, until.saturating_add(1))),
        limit: 1,
        reverse: true,
        ..since(step, series, 0)
    }
}

/// All pages after the name `after`.
pub fn range(after: Option<Vec<u8>>, limit: usize) -> Range {
    Range::new(CANDLE, &[], after, limit)
}

/// The page of a key.
pub fn page(key: &Key) -> Result<Page, RowError> {
    let wrong = || RowError::new("candle", "its name is not one of a page");
    let (step, rest) = key.name.split_first().ok_or_else(wrong)?;
    let step = Step::of(*step).ok_or_else(wrong)?;
    let zero = rest.iter().position(|byte| *byte == 0).ok_or_else(wrong)?;
    let network = std::str::from_utf8(&rest[..zero]).map_err(|_| wrong())?;
    let (currency, start) = rest[zero + 1..].split_last_chunk::<8>().ok_or_else(wrong)?;
    let start = u64::from_be_bytes(*start);
    if network.is_empty() || !is_name(currency) || !start.is_multiple_of(step.page()) {
        return Err(wrong());
    }
    Ok(Page {
        step,
        network: network.to_owned(),
        start,
    })
}

/// Whether the bytes can be those of a [`Name::key`].
fn is_name(bytes: &[u8]) -> bool {
    match bytes {
        [b'x' | b't', high, low, name @ ..] => {
            usize::from(u16::from_be_bytes([*high, *low])) == name.len()
        }
        _ => false,
    }
}

/// Whether the page under `key` is due for deletion at `now` (unix seconds).
pub fn is_over(key: &Key, now: u64) -> Result<bool, RowError> {
    let Page { step, start, .. } = page(key)?;
    let end = start.saturating_add(step.page());
    Ok(end.saturating_add(step.kept()) <= now)
}

/// The same for a last page that is not summed up: it goes with the candles of the coarser step.
pub fn is_long_over(key: &Key, now: u64) -> Result<bool, RowError> {
    let Page { step, start, .. } = page(key)?;
    let kept = step.coarser().unwrap_or(step).kept();
    Ok(start.saturating_add(step.page()).saturating_add(kept) <= now)
}

/// The next page of the step and currency of `key`.
pub fn behind(key: &Key) -> Range {
    let series = key.name.len().saturating_sub(size_of::<u64>());
    Range::new(CANDLE, &key.name[..series], Some(key.name.clone()), 1)
}

pub fn encode(candles: &[Candle]) -> Result<Vec<u8>, RowError> {
    encode_row("candle", FORMAT, &candles)
}

pub fn decode(bytes: &[u8]) -> Result<Vec<Candle>, RowError> {
    decode_row("candle", FORMAT, bytes)
}
