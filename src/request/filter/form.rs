//! How the texts of parameters are read.

use strum::VariantArray;

use super::{Lookup, Value, Wrong};
use crate::{
    format, json,
    request::{name::Name, status::Status, summary::Kind},
};

/// The longest text that anything can be compared with.
pub(super) const TEXT: usize = 512;

/// What a parameter's text is, and which index finds requests by it: that of ids, of orders or of names
/// where it is said, and else none: summaries are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A request's id; has an index.
    Id,
    /// An order's id; has an index.
    Order,
    /// A request's id, an account or a transaction; both have an index.
    Term,
    /// An account or a transaction; has an index.
    Name,
    Currency,
    Symbol,
    Text,
    Status,
    Kind,
    Number,
    /// Unix seconds.
    Time,
    Dollars,
    Flag,
    List,
    Filters,
    Limit,
    Token,
    /// What the newest version sorts by.
    Sort,
    /// What versions 1 and 2 sort by.
    SortTime,
    Direction,
}

impl Form {
    /// `text` as a value of a field; `key` is what the caller calls the field.
    pub fn value(self, key: &str, text: &str) -> Result<Value, Wrong> {
        let wrong = |why: &str| Wrong::field(key, why);
        if text.is_empty() {
            return Err(wrong("must not be empty"));
        }
        if text.len() > TEXT {
            return Err(wrong("expected at most 512 bytes"));
        }
        match self {
            Self::Id | Self::Order => {
                let word = text.strip_prefix("0x").filter(|digits| digits.len() == 64);
                let word = word.and_then(|digits| digits.parse().ok()).map(Value::Word);
                word.ok_or_else(|| wrong("expected 0x and 64 hex digits"))
            }
            Self::Number => {
                let number = json::number(text).map(Value::Number);
                number.ok_or_else(|| wrong("expected a chain's number"))
            }
            Self::Status => status(text).map(Value::Status).ok_or_else(|| {
                wrong("expected success, failure, refund, pending, depositing or waiting")
            }),
            Self::Kind => {
                let mut kinds = Kind::VARIANTS.iter().copied();
                let found = kinds.find(|kind| kind.text().eq_ignore_ascii_case(text));
                let found = found.map(Value::Kind);
                found.ok_or_else(|| wrong(&format!("expected one of {}", listed(Kind::VARIANTS))))
            }
            Self::Symbol => Ok(Value::Text(text.to_lowercase())),
            Self::Term | Self::Name | Self::Currency => Ok(Value::Name(Name::of(text))),
            _ => Ok(Value::Text(text.to_owned())),
        }
    }

    /// `text` as a limit: the least that is within it, or the most.
    pub fn limit(self, key: &str, text: &str, most: bool) -> Result<u64, Wrong> {
        if self == Self::Dollars {
            return dollars(text, most)
                .ok_or_else(|| Wrong::field(key, "expected dollars, such as 12.5"));
        }
        let why = "expected a whole number from 0 to 2^53 - 1";
        let number = json::number(text).ok_or_else(|| Wrong::field(key, why))?;
        Ok(match (self, most) {
            (Self::Time, false) => number.saturating_mul(1000),
            (Self::Time, true) => number.saturating_mul(1000).saturating_add(999),
            _ => number,
        })
    }

    /// How the requests with `value` are found; `None` without an index.
    pub fn lookups(self, value: &Value) -> Option<Vec<Lookup>> {
        match (self, value) {
            (Self::Id, Value::Word(id)) => Some(vec![Lookup::Id(*id)]),
            (Self::Order, Value::Word(order)) => Some(vec![Lookup::Order(*order)]),
            (Self::Name, Value::Name(name)) => Some(vec![Lookup::Name(name.clone())]),
            (Self::Term, Value::Name(name)) => {
                let id = name.word().map(Lookup::Id);
                Some(id.into_iter().chain([Lookup::Name(name.clone())]).collect())
            }
            _ => None,
        }
    }
}

/// The words of `all`, with commas.
pub(super) fn listed<T: Copy + Into<&'static str>>(all: &[T]) -> String {
    let words: Vec<&str> = all.iter().map(|one| (*one).into()).collect();
    words.join(", ")
}

/// Dollars as millionths. A lower limit between two of them is the upper one.
fn dollars(text: &str, most: bool) -> Option<u64> {
    let micro = u64::try_from(format::micro_of(text)?).ok()?;
    let rest = text.split_once('.').and_then(|(_, digits)| digits.get(6..));
    let between = rest.is_some_and(|rest| rest.bytes().any(|digit| digit != b'0'));
    Some(micro.saturating_add((between && !most).into()))
}

fn status(text: &str) -> Option<Status> {
    let mut known = Status::VARIANTS.iter().copied();
    known.find(|status| status.text() == text && *status != Status::Submitted)
}
