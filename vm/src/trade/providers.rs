//! All providers of one chain, as those ask them who trade there: together, by agreement. A family makes it of
//! providers that it has opened; what its chains cannot do is `None`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{
    Account, Draft, Failover, Fee, FeeRate, Funding, Limits, Revert, Signer, Spend,
    TradingProvider, Unfit, Work,
};
use crate::{
    Chain, ChainSpec, CodecError, ReadError, SpecError,
    types::{Address, Amount},
};

/// Makes one [`Providers`] of the opened providers of a chain; `Ok(None)` where there are none.
pub type OpenProviders =
    fn(ProvidersContext, Vec<TradingProvider>) -> Result<Option<Providers>, SpecError>;

/// What providers are asked for.
#[derive(Clone, Debug)]
pub struct ProvidersContext {
    /// The chain as configured. What only its family knows of it (address formats, a genesis block, a program) is in
    /// [`ChainSpec::additional`].
    pub spec: Arc<ChainSpec>,
    /// The chain's number in the market file, which is not always its number at the hub. A family whose transactions
    /// name their chain by a number signs them for this one.
    pub number: u64,
    /// Providers that must agree; brought into `1..=` their number.
    pub required: usize,
    /// The network's `limits` in the market file, for [`Family::limits`](crate::Family::limits). `None`: a chain
    /// about which the operator says nothing. It is asked for what such a file would say.
    pub limits: Option<Map<String, Value>>,
}

/// The providers of one chain, asked together. What the chain cannot do is `None`.
#[derive(Clone)]
pub struct Providers {
    /// What needs no word of the family's: balances, currencies and rates, by agreement. [`Failover::first`] is for what
    /// is shown and moves no money.
    pub failover: Failover,
    pub limits: Limits,
    /// The work that something usually takes. Where accounts run code when they are paid ([`Self::contracts`]), or orders
    /// have calls, this is the most that a transaction takes around that code: what goes beyond is the code's. On other
    /// chains a payment may take more (more coins are spent), up to [`Limits::work`].
    pub usual: fn(Work) -> u64,
    pub wallet: Arc<dyn Wallet>,
    pub fees: Arc<dyn Fees>,
    pub accounts: Arc<dyn OpenAccount>,
    /// `None`: nobody but its owner takes what an account has.
    pub approvals: Option<Arc<dyn Approvals>>,
    /// `None`: no account runs code when it is paid.
    pub contracts: Option<Arc<dyn ContractChecks>>,
    /// Whether whoever is paid can let any payment fail, without code: accounts are closed, or given away.
    pub declinable: bool,
    /// Whether a transaction pays what its sender signed: for so much work, at such a rate, whatever it takes and whatever
    /// others pay in its block. Elsewhere that is the most that it pays.
    pub pays_as_signed: bool,
    /// `None`: a deposit needs nothing besides its terms.
    pub funding: Option<Arc<dyn Funding>>,
}

/// What the transactions of accounts would do.
#[async_trait]
pub trait Wallet: Send + Sync {
    /// Whether nodes take the transaction at all. `Err` inside: why none does.
    async fn admit(&self, draft: &Draft) -> Result<Result<(), Unfit>, ReadError>;
    /// The work that a transaction would take now, without room; or why it would fail, when a quorum says so.
    async fn simulate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError>;
    /// Whether `work` is no more than anybody needs to receive a payment of `account`'s.
    async fn is_modest(&self, account: &Address, work: u64) -> Result<bool, ReadError>;
}

/// A transaction that somebody means to send.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    pub draft: &'a Draft,
    /// What its sender would pay for a unit of work: chains hold it against what the sender has. Unset for a
    /// sender that nobody knows to have any.
    pub rate: Option<FeeRate>,
    /// Work that it may take at most.
    pub most: Option<u64>,
}

impl<'a> Trial<'a> {
    /// Of a sender that need not have anything.
    pub const fn free(draft: &'a Draft) -> Self {
        Self {
            draft,
            rate: None,
            most: None,
        }
    }
}

/// What inclusion costs besides the rate ([`Failover::rate`]).
#[async_trait]
pub trait Fees: Send + Sync {
    /// What the chain charges for a transaction besides its work; nothing on most.
    async fn besides(&self, trial: &Trial<'_>) -> Result<Amount, ReadError>;
    /// The work of a user's transaction, without room: by agreement where nodes estimate it, by the draft itself where
    /// that shows it; `None` where neither does.
    async fn work(&self, draft: &Draft) -> Option<u64>;
}

/// Opens accounts that pay.
pub trait OpenAccount: Send + Sync {
    /// The account of a key. No transaction is made whose unit of work costs more than `most`.
    fn account(
        &self,
        chain: &Chain,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError>;
}

/// Rights to take what others have.
#[async_trait]
pub trait Approvals: Send + Sync {
    /// What `spender` may take of `owner`'s; without end for a native currency.
    async fn approved(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError>;
    /// Whether so much of `owner`'s may be taken, as a quorum says; an error where it says neither.
    async fn suffices(&self, owner: &Address, spend: &Spend<'_>) -> Result<bool, ReadError>;
}

/// Contracts among the accounts of a chain.
#[async_trait]
pub trait ContractChecks: Send + Sync {
    /// Whether an account runs code when it is paid.
    async fn is_contract(&self, account: &Address) -> Result<bool, ReadError>;
    /// Whether transactions that need each other work one after the other.
    async fn simulate_all(&self, drafts: &[Draft]) -> Result<Result<(), Revert>, ReadError>;
    /// What the market file says of the chain's contracts, and the chain does not: texts for the operator.
    async fn mismatches(&self, listed: ListedContracts<'_>) -> Result<Vec<String>, ReadError>;
}

/// The contracts of a network in the market file.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListedContracts<'a> {
    pub router: Option<&'a Address>,
    pub proxy: Option<&'a Address>,
}

impl Providers {
    /// What a unit of work costs a transaction that is signed at `rate`. One sum in `base`, `priority` 0, where transactions
    /// pay as signed.
    pub fn rate_as_signed(&self, rate: FeeRate) -> FeeRate {
        match self.pays_as_signed {
            true => FeeRate::new(rate.between().min(self.limits.rate), 0),
            false => rate,
        }
    }

    /// What a payment that somebody plans would cost now. `Err` inside: it would fail. The real transaction with
    /// its real sender is tried.
    pub async fn fee(&self, draft: &Draft) -> Result<Result<Fee, Revert>, ReadError> {
        let rate = self.failover.recent_rate().await?;
        let trial = Trial {
            draft,
            rate: Some(rate),
            most: Some(self.limits.work),
        };
        let (work, besides) =
            futures::try_join!(self.wallet.simulate(&trial), self.fees.besides(&trial))?;
        Ok(work.map(|work| Fee {
            work,
            rate,
            besides,
        }))
    }

    /// What `spender` may take of `owner`'s; without end where nobody needs to be let.
    pub async fn approved(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        match &self.approvals {
            Some(approvals) => approvals.approved(owner, spender, currency).await,
            None => Ok(Amount::MAX),
        }
    }

    /// As [`Approvals::suffices`]; true where nobody needs to be let.
    pub async fn suffices(&self, owner: &Address, spend: &Spend<'_>) -> Result<bool, ReadError> {
        match &self.approvals {
            Some(approvals) => approvals.suffices(owner, spend).await,
            None => Ok(true),
        }
    }

    /// Whether an account runs code when it is paid, and so can refuse.
    pub async fn is_contract(&self, account: &Address) -> Result<bool, ReadError> {
        match &self.contracts {
            Some(contracts) => contracts.is_contract(account).await,
            None => Ok(false),
        }
    }

    /// As [`ContractChecks::simulate_all`]; `None` where that cannot be tried.
    pub async fn simulate_all(
        &self,
        drafts: &[Draft],
    ) -> Result<Option<Result<(), Revert>>, ReadError> {
        match &self.contracts {
            Some(contracts) => contracts.simulate_all(drafts).await.map(Some),
            None => Ok(None),
        }
    }
}
