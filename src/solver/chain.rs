//! One chain as the solver sees it: providers to write through and a quorum to believe.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use vm::{
    Address, Amount, Chain, CodecError, Family, Head, ReadError, Transaction,
    trade::{
        Account, Failover, FailoverContext, Fees, Intended, Landing, Revert, Signer, StepBuilder,
        TradingProvider, TransactionCodec, Unfit,
    },
};

use super::survey::Survey;
use crate::market::{Currency, Network};

/// How long the time of the newest block is reused before the chain is asked again.
const RECENT: Duration = Duration::from_secs(10);

/// A chain as the solver sees it.
#[derive(Clone)]
pub struct TradingChain {
    /// The name that orders, rows and logs use.
    pub name: String,
    /// What transactions are signed for.
    pub number: u64,
    /// Blocks on top of a payment before it is told as done.
    pub confirmations: u64,
    /// Unset for a chain that is not traded on (the settlement chain).
    pub market: Option<Network>,
    pub chain: Chain,
    pub steps: &'static dyn StepBuilder,
    pub landing: &'static dyn Landing,
    pub native: Address,
    pub providers: Failover,
    pub(super) survey: Survey,
    /// When the newest block was made, unix seconds, and when that was asked.
    newest: Arc<Mutex<Option<(Instant, u64)>>>,
}

/// What a family makes calls and transactions with, and lands them.
pub(super) struct Abilities {
    pub steps: &'static dyn StepBuilder,
    pub transactions: &'static dyn TransactionCodec,
    pub landing: &'static dyn Landing,
}

/// Why a chain cannot be traded on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TradingChainError {
    #[error("{0}: this version sends no transactions there")]
    Unsupported(String),
    #[error("{0}: no provider")]
    Unreachable(String),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// The providers of a network of the market, for whoever quotes or trades there.
pub fn providers(
    network: &Network,
    chain: &Chain,
    (trades, required): (Vec<TradingProvider>, usize),
) -> Result<Failover, TradingChainError> {
    let (name, number) = (network.name.clone(), network.chain_id);
    let codec = abilities(&name, chain)?.transactions;
    let context = FailoverContext {
        limits: network.limits.of(chain.spec.family)?,
        name,
        number,
        codec,
        required,
    };
    opened(context, trades)
}

fn opened(
    context: FailoverContext,
    trades: Vec<TradingProvider>,
) -> Result<Failover, TradingChainError> {
    let name = context.name.clone();
    Failover::new(context, trades).ok_or(TradingChainError::Unreachable(name))
}

impl TradingChain {
    /// A network of the market.
    pub fn traded(
        network: &Network,
        chain: Chain,
        providers: Failover,
    ) -> Result<Self, TradingChainError> {
        let abilities = abilities(&network.name, &chain)?;
        Self::made(network, chain, providers, abilities)
    }

    /// A chain without currencies to trade: the settlement chain. So many of its providers must agree.
    pub fn plain(
        (name, number): (&str, u64),
        chain: Chain,
        (trades, required): (Vec<TradingProvider>, usize),
    ) -> Result<Self, TradingChainError> {
        let abilities = abilities(name, &chain)?;
        let context = FailoverContext {
            name: name.to_owned(),
            number,
            codec: abilities.transactions,
            limits: Default::default(),
            required,
        };
        let providers = opened(context, trades)?.asking_for_bytes();
        Ok(Self {
            name: name.to_owned(),
            number,
            confirmations: 1,
            market: None,
            native: chain.spec.family.native()?,
            chain,
            steps: abilities.steps,
            landing: abilities.landing,
            providers,
            survey: Survey::sound(),
            newest: Arc::default(),
        })
    }

    pub(super) fn made(
        network: &Network,
        chain: Chain,
        providers: Failover,
        abilities: Abilities,
    ) -> Result<Self, TradingChainError> {
        Ok(Self {
            name: network.name.clone(),
            number: network.chain_id,
            confirmations: network.fill_confirmations,
            market: Some(network.clone()),
            native: chain.spec.family.native()?,
            chain,
            steps: abilities.steps,
            landing: abilities.landing,
            providers,
            survey: Survey::default(),
            newest: Arc::default(),
        })
    }

    #[cfg(test)]
    #[must_use]
    pub fn without_market(mut self) -> Self {
        self.market = None;
        self.providers = self.providers.asking_for_bytes();
        self
    }

    pub fn family(&self) -> &'static Family {
        self.chain.spec.family
    }

    /// Seconds after which a deposit here is usually final.
    pub fn finality(&self) -> u64 {
        let pace = self
            .market
            .as_ref()
            .map_or(0, |market| market.block_seconds);
        self.chain.spec.finality.usual(pace)
    }

    /// When the newest block was made that a quorum has, as it was some seconds ago. Unix seconds.
    pub async fn tip(&self) -> Result<u64, ReadError> {
        let newest = || self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let known = *newest();
        if let Some((at, time)) = known
            && at.elapsed() < RECENT
        {
            return Ok(time);
        }
        let time = self.chain.reader.head().await?.block.time;
        *newest() = Some((Instant::now(), time));
        Ok(time)
    }

    /// The market's entry of a currency.
    pub fn listed(&self, currency: &str) -> Option<&Currency> {
        self.market.as_ref()?.currency(currency)
    }

    /// Who takes the solver's tokens for fills through the router; `None`: nobody.
    pub fn proxy(&self) -> Result<Option<Address>, CodecError> {
        let market = self.market.as_ref();
        let proxy = market.and_then(|market| market.approval_proxy.as_deref());
        proxy.map(|text| self.family().address(text)).transpose()
    }

    /// The router that it hands calls to.
    pub fn router(&self) -> Result<Option<Address>, CodecError> {
        let market = self.market.as_ref();
        let router = market.and_then(|market| market.fill_router.as_deref());
        router.map(|text| self.family().address(text)).transpose()
    }

    pub async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        self.providers.balance(owner, currency).await
    }

    pub async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        self.providers.allowance(owner, spender, currency).await
    }

    pub async fn estimate(
        &self,
        intended: &Intended<'_>,
    ) -> Result<Result<u64, Revert>, ReadError> {
        self.providers.estimate(intended).await
    }

    /// Whether nodes take the transaction at all.
    pub async fn admit(&self, intended: &Intended<'_>) -> Result<Result<(), Unfit>, ReadError> {
        self.providers.admit(intended).await
    }

    pub async fn fees(&self) -> Result<Fees, ReadError> {
        self.providers.fees().await
    }

    /// What the chain charges for a transaction's bytes besides gas.
    pub async fn data_fee(&self, intended: &Intended<'_>) -> Result<Amount, ReadError> {
        self.providers.data_fee(intended).await
    }

    /// The account of a key here. No transaction is made whose unit of work costs more than `most`.
    pub fn account(&self, key: Arc<dyn Signer>, most: u128) -> Result<Account, CodecError> {
        self.landing.open(&self.chain, &self.providers, key, most)
    }

    /// A transaction as a quorum of the chain's providers has it now.
    pub async fn agreed(&self, id: &str) -> Result<(Transaction, Head), ReadError> {
        let head = self.chain.reader.fresh_head().await?;
        let doubtful = |error: CodecError| ReadError::Doubtful(error.to_string());
        let tx = self.family().tx(id, None).map_err(doubtful)?;
        Ok((self.chain.reader.transaction(&tx, &head).await?, head))
    }
}

fn abilities(name: &str, chain: &Chain) -> Result<Abilities, TradingChainError> {
    let family = chain.spec.family;
    let codecs = family.steps.zip(family.transactions).zip(family.landing);
    let ((steps, transactions), landing) =
        codecs.ok_or_else(|| TradingChainError::Unsupported(name.to_owned()))?;
    Ok(Abilities {
        steps,
        transactions,
        landing,
    })
}
