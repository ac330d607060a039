//! A chain as quotes ask it, and what they ask of the solver.

use std::sync::Arc;

use alloy::primitives::U256;
use async_trait::async_trait;
use vm::{
    Address, ChainSpec, Family,
    trade::{Providers, StepBuilder},
};

use super::code::{Code, Refused};

/// A chain that can be traded on: its rules, its providers, and who pays there.
#[derive(Clone)]
pub struct PricingChain {
    pub spec: Arc<ChainSpec>,
    /// All providers, asked together: what a payment costs, and whether it works, is what they agree on.
    pub providers: Providers,
    /// The solver's account on the chain.
    pub account: Address,
}

impl PricingChain {
    /// Builds the transactions of the chain's family.
    pub fn steps(&self) -> Result<&'static dyn StepBuilder, Refused> {
        let missing = || lacking(&self.spec, "transactions to sign");
        self.spec.family.steps.ok_or_else(missing)
    }
}

/// The refusal of a quote that needs what the chain's family does not have.
pub fn lacking(spec: &ChainSpec, what: &str) -> Refused {
    let what = format!("{}: chains of {} have no {what}", spec.id, spec.family.name);
    Refused::new(Code::UnsupportedRoute, what)
}

/// What the solver can still promise.
#[async_trait]
pub trait Capacity: Send + Sync {
    /// An error where nothing may be traded: the market file is not what the chain says, or nobody
    /// knows yet.
    async fn sound(&self, network: &str) -> Result<(), CapacityError>;
    /// Units of `currency` that are neither spent nor reserved; `None`: the solver does not hold it.
    async fn available(
        &self,
        network: &str,
        currency: &Address,
    ) -> Result<Option<U256>, CapacityError>;
    /// Whether the solver may pay so much now.
    async fn admits(&self, payment: Payment<'_>) -> Result<Admission, CapacityError>;
}

/// What a quote promises to pay.
#[derive(Clone, Copy, Debug)]
pub struct Payment<'a> {
    pub network: &'a str,
    pub currency: &'a Address,
    pub amount: U256,
    /// What the same user is promised with it in other currencies of the network, usd e18.
    pub besides: U256,
    /// Whose limit it counts for: of orders with calls who gives the deposit, else who is paid. With the family of that
    /// address.
    pub user: (&'static Family, &'a Address),
    /// Of the network's native currency, the fill's fee included; nothing for what pays a token plainly.
    pub native: U256,
    pub hands: Hands,
    /// The fill's fee, in the native currency's smallest unit.
    pub fee: U256,
    /// The API key that asks.
    pub key: Option<&'a str>,
    /// Unix seconds.
    pub now: u64,
}

/// To whom a fill gives more than a token (native currency, what an exchange leaves, the order's own calls): they can
/// let it fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// It pays tokens plainly, or the user does everything.
    Nobody,
    /// An account without code now; it may have some when it is paid.
    Account,
    /// A contract, or the order's own calls.
    Code,
}

/// Whether something may be promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    Open,
    /// Beyond what may be paid within an hour.
    Capped,
    /// Too much is at stake, or was lost, on the network in fills of the same [`Hands`].
    Held,
    /// The solver has too little of the native currency.
    Short,
    /// The operator, or a breaker, holds fills.
    Paused,
}

/// Why nothing can be promised now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// The solver does not know what it has.
    #[error("capacity unknown: {0}")]
    Unknown(String),
    /// A network makes no blocks. A deposit could come much later, in a block that is dated back to now.
    #[error("{0}")]
    Stalled(String),
}
