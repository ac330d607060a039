//! The fields that a query can ask for by value, and what a summary has there.

use alloy::primitives::B256;
use serde::Serialize;

use crate::request::{
    name::Name,
    status::Status,
    summary::{Kind, Role, Summary},
};

/// A field that a query can ask for by value.
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

/// What a summary has in a field.
#[derive(Clone, Copy)]
pub(super) enum Found<'a> {
    Word(&'a B256),
    Name(&'a Name),
    Number(u64),
    Text(&'a str),
    Status(Status),
    Kind(Kind),
}

impl Value {
    /// Whether `found` is meant.
    pub(super) fn means(&self, found: Found<'_>) -> bool {
        match (self, found) {
            (Self::Word(word), Found::Word(found)) => word == found,
            (Self::Name(name), Found::Word(found)) => name.word() == Some(*found),
            (Self::Name(name), Found::Name(found)) => name == found,
            (Self::Number(number), Found::Number(found)) => *number == found,
            (Self::Text(text), Found::Text(found)) => text == found,
            (Self::Status(Status::Pending), Found::Status(Status::Submitted)) => true,
            (Self::Status(status), Found::Status(found)) => *status == found,
            (Self::Kind(kind), Found::Kind(found)) => *kind == found,
            _ => false,
        }
    }
}

impl Field {
    /// Whether something that `summary` has there passes `test`.
    pub(super) fn any(self, summary: &Summary, test: impl Fn(Found<'_>) -> bool) -> bool {
        let one = |name: &Name| test(Found::Name(name));
        let maybe = |name: &Option<Name>| name.as_ref().is_some_and(one);
        let text = |text: &str| test(Found::Text(text));
        let filled = |found: &Option<String>| found.as_deref().is_some_and(text);
        let symbol = |found: &str| !found.is_empty() && text(found);
        let sent = |roles: &[Role]| {
            let mut all = summary.transactions.iter();
            all.any(|(role, name)| roles.contains(role) && one(name))
        };
        let any = || summary.transactions.iter().any(|(_, name)| one(name));
        let (origin, destination) = (&summary.origin, &summary.destination);
        match self {
            Self::Id => test(Found::Word(&summary.id)),
            Self::OrderId => test(Found::Word(&summary.order_id)),
            Self::Term => {
                let accounts = one(&summary.sender) || one(&summary.recipient);
                test(Found::Word(&summary.id))
                    || accounts
                    || maybe(&summary.deposit_address)
                    || maybe(&summary.depositor)
                    || any()
            }
            Self::Deposit => sent(&[Role::Deposit, Role::Own]),
            Self::Fill => sent(&[Role::Fill, Role::Own]),
            Self::Refund => sent(&[Role::Refund]),
            Self::Transaction => any(),
            Self::User => one(&summary.sender) || maybe(&summary.depositor),
            Self::Party => one(&summary.sender) || one(&summary.recipient),
            Self::Recipient => one(&summary.recipient),
            Self::DepositAddress => maybe(&summary.deposit_address),
            Self::OriginChain => test(Found::Number(origin.chain)),
            Self::DestinationChain => test(Found::Number(destination.chain)),
            Self::Chain => {
                test(Found::Number(origin.chain)) || test(Found::Number(destination.chain))
            }
            Self::Status => test(Found::Status(summary.status)),
            Self::FailReason => filled(&summary.fail_reason),
            Self::RefundFailReason => filled(&summary.refund_fail_reason),
            Self::ApiKey => filled(&summary.api_key),
            Self::Referrer => filled(&summary.referrer),
            Self::Kind => test(Found::Kind(summary.kind)),
            Self::CurrencyIn => one(&origin.currency),
            Self::CurrencyOut => one(&destination.currency),
            Self::SymbolIn => symbol(&origin.symbol),
            Self::SymbolOut => symbol(&destination.symbol),
        }
    }
}
