//! What currencies were worth, in candles: of each step of time the first, the highest, the lowest and the last
//! price that was sampled. For display only: no quote, no payment and no statement reads them.
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
//! A page goes when its end is so old ([`retention`](crate::store::retention)); a currency's last one, which nobody has
//! summed up yet, when a candle of the coarser step would go. Only currencies of the market file have any, by the
//! daemon's own clock: some 140 pages of below 2 KB each, however many ask.

use serde::{Deserialize, Serialize};

use super::{CANDLE, RowError, decode as decode_row, encode as encode_row};
use crate::{
    request::name::Name,
    store::{Key, Range},
};

const FORMAT: u8 = 1;
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// Prices of one step of time: USD with 18 decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candle {
    /// When the last of them was sampled, unix seconds; it tells which step this is.
    pub at: u64,
    pub open: u128,
    pub high: u128,
    pub low: u128,
    pub close: u128,
}

/// How much time a candle is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Five of them.
    Minutes,
    Hour,
    Day,
}

/// Whose candles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series<'a> {
    /// The network as orders name it.
    pub network: &'a str,
    /// The currency's address text.
    pub currency: &'a str,
}

/// Which candles are under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub step: Step,
    pub network: String,
    /// Unix seconds.
    pub start: u64,
}

impl Step {
    /// All, the finest first.
    pub const ALL: [Self; 3] = [Self::Minutes, Self::Hour, Self::Day];

    /// Seconds that a candle is of.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Minutes => 5 * 60,
            Self::Hour => HOUR,
            Self::Day => DAY,
        }
    }

    /// Seconds that a page is of: where there is a coarser step, those of its candles.
    pub const fn page(self) -> u64 {
        match self {
            Self::Minutes => HOUR,
            Self::Hour => DAY,
            Self::Day => 32 * DAY,
        }
    }

    /// Seconds for which a page is kept behind its end.
    pub const fn kept(self) -> u64 {
        match self {
            Self::Minutes => 2 * DAY,
            Self::Hour => 31 * DAY,
            Self::Day => 5 * 365 * DAY,
        }
    }

    /// The step of whose candles a page of this one makes one.
    pub const fn coarser(self) -> Option<Self> {
        match self {
            Self::Minutes => Some(Self::Hour),
            Self::Hour => Some(Self::Day),
            Self::Day => None,
        }
    }

    /// Unix seconds at which the candle of `at` begins.
    pub const fn start(self, at: u64) -> u64 {
        at - at % self.seconds()
    }

    /// Unix seconds at which the page of `at` begins.
    pub const fn page_start(self, at: u64) -> u64 {
        at - at % self.page()
    }

    /// Pages that are there at a time, at most.
    fn pages(self) -> usize {
        let pages = self.kept() / self.page() + 2;
        usize::try_from(pages).unwrap_or(usize::MAX)
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Minutes => 0,
            Self::Hour => 1,
            Self::Day => 2,
        }
    }

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.byte() == byte)
    }
}

impl Series<'_> {
    /// What the names of its pages of `step` start with.
    fn prefix(self, step: Step) -> Vec<u8> {
        let currency = Name::of(self.currency).key();
        [&[step.byte()], self.network.as_bytes(), &[0], &currency].concat()
    }

    fn name(self, step: Step, start: u64) -> Vec<u8> {
        [&*self.prefix(step), &start.to_be_bytes()].concat()
    }
}

/// The page that the candle of `at` (unix seconds) is in.
pub fn key(step: Step, series: Series<'_>, at: u64) -> Key {
    Key::new(CANDLE, series.name(step, step.page_start(at)))
}

/// The pages from the one of `from` (unix seconds) on, the oldest first.
pub fn since(step: Step, series: Series<'_>, from: u64) -> Range {
    let before = step.page_start(from).checked_sub(1);
    Range::new(
        CANDLE,
        &series.prefix(step),
        before.map(|before| series.name(step, before)),
        step.pages(),
    )
}

/// The newest page that does not begin behind `until` (unix seconds).
pub fn newest(step: Step, series: Series<'_>, until: u64) -> Range {
    Range {
        after: Some(series.name(step, until.saturating_add(1))),
        limit: 1,
        reverse: true,
        ..since(step, series, 0)
    }
}

/// All pages behind the name `after`.
pub fn range(after: Option<Vec<u8>>, limit: usize) -> Range {
    Range::new(CANDLE, &[], after, limit)
}

/// What a key says.
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

/// Whether these are bytes of [`Name::key`].
fn is_name(bytes: &[u8]) -> bool {
    match bytes {
        [b'x' | b't', high, low, name @ ..] => {
            usize::from(u16::from_be_bytes([*high, *low])) == name.len()
        }
        _ => false,
    }
}

/// Whether the page under `key` has had its time at `now` (unix seconds).
pub fn is_over(key: &Key, now: u64) -> Result<bool, RowError> {
    let Page { step, start, .. } = page(key)?;
    let end = start.saturating_add(step.page());
    Ok(end.saturating_add(step.kept()) <= now)
}

/// The same where the page is the last one and not summed up: when the coarser step's candles of then have had theirs.
pub fn is_long_over(key: &Key, now: u64) -> Result<bool, RowError> {
    let Page { step, start, .. } = page(key)?;
    let kept = step.coarser().unwrap_or(step).kept();
    Ok(start.saturating_add(step.page()).saturating_add(kept) <= now)
}

/// The page behind the one under `key`, of the same step and currency.
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
