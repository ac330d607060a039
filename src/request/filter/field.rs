//! The fields that a query can ask for by value.

use alloy::primitives::B256;
use serde::Serialize;

use super::{Lookup, Wrong};
use crate::{
    json,
    request::{
        name::Name,
        status::Status,
        summary::{Kind, Role, Summary},
    },
};

/// The longest text that anything can be compared with.
const TEXT: usize = 512;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Field {
    Id,
    OrderId,
    /// Request id, account, deposit address, any transaction.
    Term,
    Deposit,
    Fill,
    Refund,
    /// Any transaction.
    Transaction,
    /// The sender, or who paid into the deposit address.
    User,
    /// The sender or the recipient.
    Party,
    Recipient,
    DepositAddress,
    OriginChain,
    DestinationChain,
    /// Either side's.
    Chain,
    Status,
    FailReason,
    RefundFailReason,
    ApiKey,
    Referrer,
    Kind,
    CurrencyIn,
    CurrencyOut,
    SymbolIn,
    SymbolOut,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Value {
    Word(B256),
    Name(Name),
    Number(u64),
    /// Symbols in lower case.
    Text(String),
    Status(Status),
    Kind(Kind),
}

/// How a text becomes a [`Value`].
#[derive(Clone, Copy)]
enum Form {
    Word,
    Name,
    Number,
    Symbol,
    Text,
    Status,
    Kind,
}

impl Field {
    /// The keys that [`Field::of`] knows.
    pub(super) const NAMES: [&str; 23] = [
        "id",
        "orderId",
        "term",
        "depositTxHash",
        "fillTxHash",
        "refundTxHash",
        "user",
        "recipient",
        "depositAddress",
        "originChainId",
        "currencyInChainId",
        "destinationChainId",
        "currencyOutChainId",
        "chainId",
        "status",
        "failReason",
        "refundFailReason",
        "apiKey",
        "requestType",
        "currencyInAddress",
        "currencyOutAddress",
        "currencyInSymbol",
        "currencyOutSymbol",
    ];

    /// The field of a key of v3's query or of one of its groups.
    pub fn of(key: &str) -> Option<Self> {
        Some(match key {
            "id" => Self::Id,
            "orderId" => Self::OrderId,
            "term" => Self::Term,
            "depositTxHash" => Self::Deposit,
            "fillTxHash" => Self::Fill,
            "refundTxHash" => Self::Refund,
            "user" => Self::User,
            "recipient" => Self::Recipient,
            "depositAddress" => Self::DepositAddress,
            "originChainId" | "currencyInChainId" => Self::OriginChain,
            "destinationChainId" | "currencyOutChainId" => Self::DestinationChain,
            "chainId" => Self::Chain,
            "status" => Self::Status,
            "failReason" => Self::FailReason,
            "refundFailReason" => Self::RefundFailReason,
            "apiKey" => Self::ApiKey,
            "requestType" => Self::Kind,
            "currencyInAddress" => Self::CurrencyIn,
            "currencyOutAddress" => Self::CurrencyOut,
            "currencyInSymbol" => Self::SymbolIn,
            "currencyOutSymbol" => Self::SymbolOut,
            _ => return None,
        })
    }

    fn form(self) -> Form {
        match self {
            Self::Id | Self::OrderId => Form::Word,
            Self::OriginChain | Self::DestinationChain | Self::Chain => Form::Number,
            Self::Status => Form::Status,
            Self::Kind => Form::Kind,
            Self::SymbolIn | Self::SymbolOut => Form::Symbol,
            Self::FailReason | Self::RefundFailReason | Self::ApiKey | Self::Referrer => Form::Text,
            _ => Form::Name,
        }
    }

    /// `text` as a value of this field; `key` is what the caller calls the field.
    pub(super) fn value(self, key: &str, text: &str) -> Result<Value, Wrong> {
        let wrong = |why: &str| Wrong::field(key, why);
        if text.is_empty() {
            return Err(wrong("must not be empty"));
        }
        if text.len() > TEXT {
            return Err(wrong("expected at most 512 bytes"));
        }
        Ok(match self.form() {
            Form::Name => Value::Name(Name::of(text)),
            Form::Text => Value::Text(text.to_owned()),
            Form::Symbol => Value::Text(text.to_lowercase()),
            Form::Word => {
                let word = text.strip_prefix("0x").filter(|digits| digits.len() == 64);
                let word = word.and_then(|digits| digits.parse().ok());
                Value::Word(word.ok_or_else(|| wrong("expected 0x and 64 hex digits"))?)
            }
            Form::Number => {
                Value::Number(json::number(text).ok_or_else(|| wrong("expected a chain's number"))?)
            }
            Form::Status => Value::Status(status(text).ok_or_else(|| {
                wrong("expected success, failure, refund, pending, depositing or waiting")
            })?),
            Form::Kind => {
                let mut kinds = Kind::ALL.into_iter();
                let found = kinds.find(|kind| kind.text().eq_ignore_ascii_case(text));
                Value::Kind(found.ok_or_else(|| {
                    let all = Kind::ALL.map(Kind::text).join(", ");
                    wrong(&format!("expected one of {all}"))
                })?)
            }
        })
    }

    /// Whether `summary` has nothing there.
    pub(super) fn is_empty(self, summary: &Summary) -> bool {
        let none = |role: Role| !summary.transactions.iter().any(|(one, _)| *one == role);
        match self {
            Self::Deposit => none(Role::Deposit) && none(Role::Own),
            Self::Fill => none(Role::Fill) && none(Role::Own),
            Self::Refund => none(Role::Refund),
            Self::Transaction => summary.transactions.is_empty(),
            Self::DepositAddress => summary.deposit_address.is_none(),
            Self::FailReason => summary.fail_reason.is_none(),
            Self::RefundFailReason => summary.refund_fail_reason.is_none(),
            Self::ApiKey => summary.api_key.is_none(),
            Self::Referrer => summary.referrer.is_none(),
            Self::SymbolIn => summary.origin.symbol.is_empty(),
            Self::SymbolOut => summary.destination.symbol.is_empty(),
            _ => false,
        }
    }

    /// Whether `summary` has `value` there.
    pub(super) fn is(self, value: &Value, summary: &Summary) -> bool {
        match value {
            Value::Word(word) => {
                *word
                    == if self == Self::Id {
                        summary.id
                    } else {
                        summary.order_id
                    }
            }
            Value::Name(name) => self.is_name(name, summary),
            Value::Number(number) => {
                let (origin, destination) = (summary.origin.chain, summary.destination.chain);
                match self {
                    Self::OriginChain => *number == origin,
                    Self::DestinationChain => *number == destination,
                    _ => *number == origin || *number == destination,
                }
            }
            Value::Text(text) => self.is_text(text, summary),
            Value::Status(Status::Pending) => {
                matches!(summary.status, Status::Pending | Status::Submitted)
            }
            Value::Status(status) => *status == summary.status,
            Value::Kind(kind) => *kind == summary.kind,
        }
    }

    fn is_name(self, name: &Name, summary: &Summary) -> bool {
        let did = |roles: &[Role]| {
            let mut all = summary.transactions.iter();
            all.any(|(role, one)| one == name && roles.contains(role))
        };
        let any = || summary.transactions.iter().any(|(_, one)| one == name);
        let (sender, recipient) = (summary.sender == *name, summary.recipient == *name);
        let address = summary.deposit_address.as_ref() == Some(name);
        let depositor = summary.depositor.as_ref() == Some(name);
        match self {
            Self::Deposit => did(&[Role::Deposit, Role::Own]),
            Self::Fill => did(&[Role::Fill, Role::Own]),
            Self::Refund => did(&[Role::Refund]),
            Self::Transaction => any(),
            Self::User => sender || depositor,
            Self::Party => sender || recipient,
            Self::Recipient => recipient,
            Self::DepositAddress => address,
            Self::CurrencyIn => summary.origin.currency == *name,
            Self::CurrencyOut => summary.destination.currency == *name,
            Self::Term => {
                let id = name.word() == Some(summary.id);
                id || sender || recipient || address || depositor || any()
            }
            _ => false,
        }
    }

    fn is_text(self, text: &str, summary: &Summary) -> bool {
        let same = |found: &Option<String>| found.as_deref() == Some(text);
        match self {
            Self::FailReason => same(&summary.fail_reason),
            Self::RefundFailReason => same(&summary.refund_fail_reason),
            Self::ApiKey => same(&summary.api_key),
            Self::Referrer => same(&summary.referrer),
            Self::SymbolIn => summary.origin.symbol == text,
            Self::SymbolOut => summary.destination.symbol == text,
            _ => false,
        }
    }

    /// How the requests with `value` there are found.
    pub(super) fn lookups(self, value: &Value) -> Option<Vec<Lookup>> {
        match (self, value) {
            (Self::Id, Value::Word(id)) => Some(vec![Lookup::Id(*id)]),
            (Self::OrderId, Value::Word(order)) => Some(vec![Lookup::Order(*order)]),
            (Self::CurrencyIn | Self::CurrencyOut, _) => None,
            (Self::Term, Value::Name(name)) => {
                let id = name.word().map(Lookup::Id);
                Some(id.into_iter().chain([Lookup::Name(name.clone())]).collect())
            }
            (_, Value::Name(name)) => Some(vec![Lookup::Name(name.clone())]),
            _ => None,
        }
    }
}

fn status(text: &str) -> Option<Status> {
    let all = [
        Status::Success,
        Status::Failure,
        Status::Refund,
        Status::Pending,
        Status::Depositing,
        Status::Waiting,
    ];
    all.into_iter().find(|status| status.text() == text)
}
