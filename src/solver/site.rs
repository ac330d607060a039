//! One chain as the solver sees it: several providers to write through, a quorum to believe.

use std::{future::Future, sync::Arc};

use vm::{
    Address, Amount, B256, Bytes, Chain, CodecError, Family, Head, ReadError, Transaction,
    trade::{
        Authorization, Broadcast, Call, Fate, Fees, Revert, StepBuilder, Trade, TransactionCodec,
    },
};

use crate::market::{Currency, Network};

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
    trades: Arc<[Trade]>,
}

/// What a family makes calls and transactions with.
type Codecs = (&'static dyn StepBuilder, &'static dyn TransactionCodec);

/// Why a chain cannot be traded on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    #[error("{0}: this version sends no transactions there")]
    Unsupported(String),
    #[error("{0}: no provider to write through")]
    Unreachable(String),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl Site {
    /// A network of the market.
    pub fn traded(network: &Network, chain: Chain, trades: Vec<Trade>) -> Result<Self, SiteError> {
        let codecs = codecs(&network.name, &chain)?;
        Self::made(network, chain, trades, codecs)
    }

    /// A chain without currencies to trade: the settlement chain.
    pub fn plain(
        name: &str,
        number: u64,
        chain: Chain,
        trades: Vec<Trade>,
    ) -> Result<Self, SiteError> {
        let codecs = codecs(name, &chain)?;
        Self::opened((name, number), chain, trades, codecs)
    }

    pub(super) fn made(
        network: &Network,
        chain: Chain,
        trades: Vec<Trade>,
        codecs: Codecs,
    ) -> Result<Self, SiteError> {
        let mut site = Self::opened((&network.name, network.chain_id), chain, trades, codecs)?;
        site.confirmations = network.fill_confirmations;
        site.market = Some(network.clone());
        Ok(site)
    }

    fn opened(
        (name, number): (&str, u64),
        chain: Chain,
        trades: Vec<Trade>,
        (steps, transactions): Codecs,
    ) -> Result<Self, SiteError> {
        if trades.is_empty() {
            return Err(SiteError::Unreachable(name.to_owned()));
        }
        Ok(Self {
            name: name.to_owned(),
            number,
            confirmations: 1,
            market: None,
            native: chain.spec.family.native()?,
            chain,
            steps,
            transactions,
            trades: trades.into(),
        })
    }

    pub fn family(&self) -> &'static Family {
        self.chain.spec.family
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

    pub async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        self.ask(|trade| async move { trade.accounts.balance(owner, currency).await })
            .await
    }

    pub async fn allowance(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        self.ask(|trade| async move { trade.accounts.allowance(owner, spender, currency).await })
            .await
    }

    pub async fn estimate(
        &self,
        call: &Call,
        authorizations: &[Authorization],
    ) -> Result<Result<u64, Revert>, ReadError> {
        self.ask(|trade| async move { trade.writer.estimate(call, authorizations).await })
            .await
    }

    pub async fn fees(&self) -> Result<Fees, ReadError> {
        self.ask(|trade| async move { trade.writer.fees().await })
            .await
    }

    /// The greatest count that any provider answers: a nonce is never taken twice because one lags.
    pub async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        let mut found = Err(unreachable(&self.name));
        for trade in self.trades.iter() {
            match (trade.writer.nonce(owner, waiting).await, &mut found) {
                (Ok(nonce), Ok(known)) => *known = nonce.max(*known),
                (Ok(nonce), found) => *found = Ok(nonce),
                (Err(error), found @ Err(_)) => *found = Err(error),
                (Err(_), Ok(_)) => {}
            }
        }
        found
    }

    /// Hands a transaction to every provider; the friendliest answer.
    pub async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        let mut found = Err(unreachable(&self.name));
        for trade in self.trades.iter() {
            let answer = trade.writer.broadcast(raw).await;
            match (&answer, &found) {
                (Ok(Broadcast::Accepted), _) | (Ok(_), Err(_)) | (Err(_), Err(_)) => {
                    found = answer;
                }
                _ => {}
            }
        }
        found
    }

    /// What became of a transaction: included if any provider has it so.
    pub async fn fate(&self, transaction: &B256) -> Result<Fate, ReadError> {
        let mut found = Err(unreachable(&self.name));
        for trade in self.trades.iter() {
            match trade.writer.fate(transaction).await {
                Ok(fate @ Fate::Included { .. }) => return Ok(fate),
                Ok(Fate::Waiting) => found = Ok(Fate::Waiting),
                Ok(Fate::Unknown) if found.is_err() => found = Ok(Fate::Unknown),
                Err(error) if found.is_err() => found = Err(error),
                _ => {}
            }
        }
        found
    }

    /// A transaction as a quorum of the chain's providers has it now.
    pub async fn agreed(&self, id: &str) -> Result<(Transaction, Head), ReadError> {
        let doubtful = |error: CodecError| ReadError::Doubtful(error.to_string());
        let tx = self.family().tx(id, None).map_err(doubtful)?;
        let head = self.chain.reader.fresh_head().await?;
        Ok((self.chain.reader.transaction(&tx, &head).await?, head))
    }

    /// The first provider that answers.
    async fn ask<T, F: Future<Output = Result<T, ReadError>>>(
        &self,
        question: impl Fn(Trade) -> F,
    ) -> Result<T, ReadError> {
        let mut failure = unreachable(&self.name);
        for trade in self.trades.iter() {
            match question(trade.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

fn codecs(name: &str, chain: &Chain) -> Result<Codecs, SiteError> {
    let family = chain.spec.family;
    let codecs = family.steps.zip(family.transactions);
    codecs.ok_or_else(|| SiteError::Unsupported(name.to_owned()))
}

fn unreachable(name: &str) -> ReadError {
    ReadError::Unavailable(format!("no provider of {name}"))
}
