//! What trading needs of a chain besides the oracle's reads: finding deposits, reading accounts,
//! simulating and sending transactions. All of it comes from one provider at a time; whatever moves
//! money is read again through [`ChainReader`](crate::ChainReader) and its quorum before it is acted on.

mod failover;
mod head_calls;
mod inspect;
mod key;
mod simulate;
mod source;
mod steps;
mod submit;
mod swap;
mod transaction;
mod wallet;

use std::sync::Arc;

use crate::family::{ChainSpec, Endpoint, SpecError};

pub use self::{
    failover::{Cost, Failover, FailoverContext},
    head_calls::HeadCalls,
    inspect::{Change, Diff, TxDetails, TxInspector},
    key::{Message, Signer, Unsigned},
    simulate::{Intended, Revert, Simulator},
    source::{DepositTx, ScanError, Scanner},
    steps::{
        Call, DepositTerms, FillTerms, PaymentTerms, Payout, Spend, Step, StepBuilder, StepCall,
    },
    submit::{
        Account, Attempt, Broadcast, Costs, Fate, Fees, Goal, Included, Intent, Jump, Label,
        Landing, Outlook, Prepared, SignedTx, Spent, Standing, Status, SubmitError, Submitter,
        Writer,
    },
    swap::{
        OpenSwaps, SwapAccess, SwapCall, SwapContracts, SwapError, SwapOffer, SwapOrder, SwapSpec,
        SwapTerms, SwapVenue, SwapVenues,
    },
    transaction::{Authorization, Draft, Limits, TransactionCodec, Unfit},
    wallet::{Accounts, Called, CurrencyInfo},
};

/// See [`Family::trade`](crate::Family::trade).
pub type OpenTrading = fn(&Arc<ChainSpec>, &Endpoint) -> Result<TradingProvider, SpecError>;

/// One provider of one chain, opened for trading.
#[derive(Clone)]
pub struct TradingProvider {
    pub scanner: Arc<dyn Scanner>,
    pub accounts: Arc<dyn Accounts>,
    pub writer: Arc<dyn Writer>,
    pub simulator: Arc<dyn Simulator>,
    pub inspector: Arc<dyn TxInspector>,
}
