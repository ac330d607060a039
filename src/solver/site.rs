//! One chain as the solver sees it: providers to write through and a quorum to believe.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::OnceCell, time::Instant};
use vm::{
    Address, Amount, B256, Bytes, Chain, CodecError, Family, Head, ReadError, Transaction,
    trade::{
        Broadcast, Failover, Fate, Fees, Ground, Intended, Revert, StepBuilder, Trade,
        TransactionCodec, Unfit,
    },
};

use super::survey::Survey;
use crate::market::{Currency, Network};

/// For so long nobody asks again when the newest block was made.
const RECENT: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Clone)]
pub struct Site {
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
    pub transactions: &'static dyn TransactionCodec,
    pub native: Address,
    pub providers: Failover,
    pub(super) survey: Survey,
    /// Who says what bytes cost where no market file does, once that was asked.
    bytes: Arc<OnceCell<Option<Address>>>,
    /// When the newest block was made, unix seconds, and when that was asked.
    newest: Arc<Mutex<Option<(Instant, u64)>>>,
}

/// What a family makes calls and transactions with.
type Codecs = (&'static dyn StepBuilder, &'static dyn TransactionCodec);

/// Why a chain cannot be traded on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
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
    (trades, required): (Vec<Trade>, usize),
) -> Result<Failover, SiteError> {
    let (name, number) = (network.name.clone(), network.chain_id);
    let (_, codec) = codecs(&name, chain)?;
    let ground = Ground {
        limits: network.limits.of(chain.spec.family)?,
        name,
        number,
        codec,
        required,
    };
    opened(ground, trades)
}

fn opened(ground: Ground, trades: Vec<Trade>) -> Result<Failover, SiteError> {
    let name = ground.name.clone();
    Failover::new(ground, trades).ok_or(SiteError::Unreachable(name))
}

impl Site {
    /// A network of the market.
    pub fn traded(network: &Network, chain: Chain, providers: Failover) -> Result<Self, SiteError> {
        let codecs = codecs(&network.name, &chain)?;
        Self::made(network, chain, providers, codecs)
    }

    /// A chain without currencies to trade: the settlement chain. So many of its providers must agree.
    pub fn plain(
        (name, number): (&str, u64),
        chain: Chain,
        (trades, required): (Vec<Trade>, usize),
    ) -> Result<Self, SiteError> {
        let codecs = codecs(name, &chain)?;
        let ground = Ground {
            name: name.to_owned(),
            number,
            codec: codecs.1,
            limits: Default::default(),
            required,
        };
        let providers = opened(ground, trades)?;
        Ok(Self {
            name: name.to_owned(),
            number,
            confirmations: 1,
            market: None,
            native: chain.spec.family.native()?,
            chain,
            steps: codecs.0,
            transactions: codecs.1,
            providers,
            survey: Survey::sound(),
            bytes: Arc::default(),
            newest: Arc::default(),
        })
    }

    pub(super) fn made(
        network: &Network,
        chain: Chain,
        providers: Failover,
        (steps, transactions): Codecs,
    ) -> Result<Self, SiteError> {
        Ok(Self {
            name: network.name.clone(),
            number: network.chain_id,
            confirmations: network.fill_confirmations,
            market: Some(network.clone()),
            native: chain.spec.family.native()?,
            chain,
            steps,
            transactions,
            providers,
            survey: Survey::default(),
            bytes: Arc::default(),
            newest: Arc::default(),
        })
    }

    #[cfg(test)]
    #[must_use]
    pub fn without_market(mut self) -> Self {
        (self.market, self.bytes) = (None, Arc::default());
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

    /// What the chain charges for a transaction's bytes besides gas. Of a chain without a market file it is
    /// asked once whether it has the contract that most such chains have.
    pub async fn data_fee(&self, intended: &Intended<'_>) -> Result<Amount, ReadError> {
        if self.market.is_some() {
            return self.providers.data_fee(intended).await;
        }
        let ask = || self.providers.data_fees(&self.native);
        match self.bytes.get_or_try_init(ask).await? {
            None => Ok(Amount::ZERO),
            Some(contract) => self.providers.data_fee_by(contract, intended).await,
        }
    }

    pub async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        self.providers.nonce(owner, waiting).await
    }

    pub async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        self.providers.broadcast(raw).await
    }

    pub async fn fate(&self, transaction: &B256) -> Result<Fate, ReadError> {
        self.providers.fate(transaction).await
    }

    /// A transaction as a quorum of the chain's providers has it now.
    pub async fn agreed(&self, id: &str) -> Result<(Transaction, Head), ReadError> {
        let head = self.chain.reader.fresh_head().await?;
        Ok((self.at(id, &head).await?, head))
    }

    /// A transaction as a quorum has it at `head`.
    pub async fn at(&self, id: &str, head: &Head) -> Result<Transaction, ReadError> {
        let doubtful = |error: CodecError| ReadError::Doubtful(error.to_string());
        let tx = self.family().tx(id, None).map_err(doubtful)?;
        self.chain.reader.transaction(&tx, head).await
    }

    /// How many of `owner`'s transactions a quorum has in final blocks as seen from `head`; `None` where
    /// nobody can say so.
    pub async fn settled(&self, owner: &Address, head: &Head) -> Result<Option<u64>, ReadError> {
        let Some(state) = &self.chain.state else {
            return Ok(None);
        };
        let Some(block) = state.settled(head).await? else {
            return Ok(None);
        };
        state.sequence(owner, &block).await.map(Some)
    }
}

fn codecs(name: &str, chain: &Chain) -> Result<Codecs, SiteError> {
    let family = chain.spec.family;
    let codecs = family.steps.zip(family.transactions);
    codecs.ok_or_else(|| SiteError::Unsupported(name.to_owned()))
}
