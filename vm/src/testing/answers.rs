//! What a test lets a provider of a script answer instead of the script.

use std::ops::RangeInclusive;

use futures::future::BoxFuture;

use super::Script;
use crate::{
    ReadError,
    trade::{
        Broadcast, Call, Called, CurrencyInfo, DepositTx, Fate, FeeRate, Revert, ScanError, Trial,
    },
    types::{Address, Amount, Block, Bytes, Head, Transaction, TxRef, WithdrawalStatus},
};

/// A read on its way.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, ReadError>>;

type Deposits<'a> = BoxFuture<'a, Result<Vec<DepositTx>, ScanError>>;
/// A question without arguments, and one with one, two or three of them.
type Ask<C, T> = Option<for<'a> fn(&'a Script<C>) -> Answer<'a, T>>;
type Ask1<C, P, T> = Option<for<'a> fn(&'a Script<C>, &'a P) -> Answer<'a, T>>;
type Ask2<C, P, Q, T> = Option<for<'a> fn(&'a Script<C>, &'a P, &'a Q) -> Answer<'a, T>>;
type Ask3<C, P, Q, R, T> = Option<for<'a> fn(&'a Script<C>, &'a P, &'a Q, &'a R) -> Answer<'a, T>>;

type AskDeposits<C> = Option<for<'a> fn(&'a Script<C>, RangeInclusive<u64>) -> Deposits<'a>>;
type AskCalls<C> = Option<for<'a> fn(&'a Script<C>, &'a [Call]) -> BoxFuture<'a, Vec<Called>>>;
type AskEstimate<C> =
    Option<for<'a> fn(&'a Script<C>, &'a Trial<'a>) -> Answer<'a, Result<u64, Revert>>>;

/// An answer that is there already.
pub fn said<'a, T: Send + 'a>(answer: T) -> BoxFuture<'a, T> {
    Box::pin(std::future::ready(answer))
}

/// The answers of a provider by question; where there is none, the script answers. Each has the name of the method that
/// it stands for, except where it says otherwise.
pub struct Answers<C> {
    pub head: Ask<C, Head>,
    /// Unset: as `head`.
    pub fresh_head: Ask<C, Head>,
    pub contains: Ask1<C, Block, bool>,
    pub transaction: Ask2<C, TxRef, Head, Transaction>,
    pub settled: Ask1<C, Head, Option<Block>>,
    pub withdrawal: Ask2<C, Bytes, Block, WithdrawalStatus>,
    pub sequence: Ask2<C, Address, Block, u64>,
    pub view: Ask3<C, Address, Bytes, Block, Bytes>,
    pub bears_out: Ask1<C, Bytes, bool>,
    /// The head for a scanner.
    pub tip: Ask<C, Block>,
    pub block: Ask1<C, u64, Option<Block>>,
    pub deposits: AskDeposits<C>,
    pub balance: Ask2<C, Address, Address, Amount>,
    pub currency: Ask1<C, Address, Option<CurrencyInfo>>,
    pub allowance: Ask3<C, Address, Address, Address, Amount>,
    pub is_contract: Ask1<C, Address, bool>,
    pub calls: AskCalls<C>,
    pub nonce: Ask2<C, Address, bool, u64>,
    pub estimate: AskEstimate<C>,
    pub simulate: Ask1<C, [Call], Result<u64, Revert>>,
    pub rate: Ask<C, FeeRate>,
    pub broadcast: Ask1<C, Bytes, Broadcast>,
    pub fate: Ask1<C, Bytes, Fate>,
}

impl<C> Default for Answers<C> {
    fn default() -> Self {
        Self {
            head: None,
            fresh_head: None,
            contains: None,
            transaction: None,
            settled: None,
            withdrawal: None,
            sequence: None,
            view: None,
            bears_out: None,
            tip: None,
            block: None,
            deposits: None,
            balance: None,
            currency: None,
            allowance: None,
            is_contract: None,
            calls: None,
            nonce: None,
            estimate: None,
            simulate: None,
            rate: None,
            broadcast: None,
            fate: None,
        }
    }
}
