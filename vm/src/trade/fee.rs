//! What inclusion costs, in the native currency's smallest unit.
//!
//! Work is counted in the family's own unit (EVM: gas; Bitcoin: virtual bytes; Solana: compute units).

use crate::types::{Amount, U256};

/// What a unit of work costs now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeeRate {
    /// What everybody pays in the next block.
    pub base: u128,
    /// What is bid besides, so that the transaction is included soon.
    pub priority: u128,
    /// By how much the base may be higher: of two that providers say and that are near each other, `base` is the lower
    /// one, by which is charged. What is signed has room for both. 0 of what one provider says.
    pub above: u128,
}

impl FeeRate {
    /// As one provider says it.
    pub const fn new(base: u128, priority: u128) -> Self {
        Self {
            base,
            priority,
            above: 0,
        }
    }

    /// The greatest base that everybody may have to pay in the next block.
    pub const fn high(&self) -> u128 {
        self.base.saturating_add(self.above)
    }

    /// [`Self::expected`] plus half of `above`: for families whose transactions pay exactly what they are signed with.
    pub const fn between(&self) -> u128 {
        self.expected().saturating_add(self.above / 2)
    }

    /// What a unit costs that is included soon.
    pub const fn expected(&self) -> u128 {
        self.base.saturating_add(self.priority)
    }

    /// What a transaction must be ready to pay for a unit while the base grows for some blocks.
    pub const fn most(&self) -> u128 {
        self.high().saturating_mul(2).saturating_add(self.priority)
    }

    /// What so much work costs.
    pub fn of(&self, work: u64) -> Amount {
        U256::from(self.expected()).saturating_mul(U256::from(work))
    }
}

/// What a transaction costs, with what that rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fee {
    /// The work of the transaction, as it was simulated or as it is usual.
    pub work: u64,
    pub rate: FeeRate,
    /// What the chain charges besides work, which no bid changes: a rollup for the bytes, on another chain.
    pub besides: Amount,
}

impl Fee {
    /// All of it.
    pub fn total(&self) -> Amount {
        self.rate.of(self.work).saturating_add(self.besides)
    }
}

/// What work is for, where it must be known before any node can say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A user's step.
    Approve,
    Deposit,
    Send,
    /// A user's exchange, around the work of the exchange itself.
    Swap,
    /// A fill that pays one recipient.
    Payment {
        native: bool,
    },
    /// A fill that makes calls, around their own work.
    Routed,
    /// One call that an order wants made, and nobody limited.
    Call,
    /// What a fill may take beyond what was charged for, whatever that was.
    Room,
    /// One of the payments for which the native currency is kept.
    Kept,
}

/// What the transactions of an account may take and cost on one chain, as its operator lets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Work of one transaction.
    pub work: u64,
    /// Work that an order's calls may take.
    pub calls_work: u64,
    /// What a unit of work may cost, above which nothing is sent.
    pub rate: u128,
    /// Fees consist of more than work.
    pub besides: bool,
}
