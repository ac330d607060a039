//! What trading needs of a chain besides the oracle's reads: finding deposits, reading accounts, simulating and
//! sending transactions.
//!
//! A family opens each provider by itself ([`TradingProvider`]) and makes one of all ([`Providers`]), which says what
//! enough of them agree on. Whatever moves money is read again through [`ChainReader`](crate::ChainReader) and its
//! quorum before it is acted on.

mod draft;
pub(crate) mod failover;
mod fee;
mod funding;
mod head_calls;
mod inspect;
mod key;
mod mempool;
pub mod numbered;
pub mod own_tx;
mod providers;
mod simulate;
mod source;
mod steps;
mod submit;
mod swap;
mod wallet;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    ReadError,
    endpoint::Endpoint,
    family::{ChainSpec, SpecError},
};

pub use self::{
    draft::{Authorization, Body, Call, Draft, Unfit},
    failover::Failover,
    fee::{Fee, FeeRate, Limits, Work},
    funding::{Funding, Need, Unfunded},
    head_calls::HeadCalls,
    inspect::{Change, Diff, TxDetails, TxInspector},
    key::{Message, Scheme, Signer, Unsigned},
    mempool::{Mempool, WaitingTx},
    providers::{
        Approvals, ContractChecks, Fees, ListedContracts, OpenAccount, OpenProviders, Providers,
        ProvidersContext, Trial, Wallet,
    },
    simulate::{Called, Contracts, Revert, Simulator},
    source::{DepositTx, Outputs, ScanError, Scanner, SpentBy, Unspent},
    steps::{
        ApprovalSteps, Choices, DepositTerms, Fill, FillTerms, PaymentTerms, Payout, Spend, Step,
        StepBuilder, StepFee, StepKind,
    },
    submit::{
        Account, Attempt, Broadcast, Costs, Fate, Goal, Included, Intent, Jump, Known, Label,
        Landing, Outlook, Prepared, SignedTx, Spent, Standing, Status, SubmitError, Submitter,
        Writer,
    },
    swap::{
        OpenSwaps, SwapAccess, SwapContracts, SwapDraft, SwapError, SwapOffer, SwapOrder,
        SwapService, SwapSpec, SwapTerms, SwapVenue, SwapVenues,
    },
    wallet::{Accounts, CurrencyInfo},
};

/// Opens one provider for trading. An error where the configuration of the chain does not fit its family.
pub type OpenTrading = fn(&Arc<ChainSpec>, &Endpoint) -> Result<TradingProvider, SpecError>;

/// Reads the `limits` of a network in the market file. An error names the key that is unknown or malformed.
pub type ReadLimits = fn(&Map<String, Value>) -> Result<Limits, SpecError>;

/// One provider of one chain, opened for trading.
#[derive(Clone)]
pub struct TradingProvider {
    pub scanner: Arc<dyn Scanner>,
    pub accounts: Arc<dyn Accounts>,
    pub writer: Arc<dyn Writer>,
    pub inspector: Arc<dyn TxInspector>,
    /// `None`: a deposit is not shown before it is in a block.
    pub mempool: Option<Arc<dyn Mempool>>,
    /// `None`: accounts have balances, not outputs.
    pub outputs: Option<Arc<dyn Outputs>>,
    pub simulator: Option<Arc<dyn Simulator>>,
    pub contracts: Option<Arc<dyn Contracts>>,
}

impl TradingProvider {
    /// Reads contracts; an error where the provider cannot.
    pub fn contracts(&self) -> Result<&Arc<dyn Contracts>, ReadError> {
        self.contracts.as_ref().ok_or_else(unable)
    }

    /// What accounts hold; an error where the chain has balances.
    pub fn outputs(&self) -> Result<&Arc<dyn Outputs>, ReadError> {
        self.outputs.as_ref().ok_or_else(unable)
    }

    /// Tries transactions; an error where the provider cannot.
    pub fn simulator(&self) -> Result<&Arc<dyn Simulator>, ReadError> {
        self.simulator.as_ref().ok_or_else(unable)
    }
}

fn unable() -> ReadError {
    ReadError::Unavailable("the provider cannot do that".into())
}
