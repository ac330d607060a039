//! An EVM chain through all its providers. Every verb is what enough of them say.

mod contracts;

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::{
    codec::{Limits, TransactionCodec, Unsealed},
    submit::Nonces,
    transaction::Transactions,
};
use crate::{
    Chain, CodecError, Family, ReadError, SpecError,
    ethereum::revert,
    trade::{
        self, Account, Approvals, Authorization, Body, Call, ContractChecks, Draft, Failover, Fees,
        OpenAccount, Providers, ProvidersContext, Revert, Signer, Spend, TradingProvider, Trial,
        Unfit, Work,
    },
    types::{Address, Amount, U256},
};

/// Stands for a nonce where only the length of a transaction matters.
const SOME_NONCE: u64 = 1 << 20;
/// How many times another one's rate two honest providers' rates are at most: nearly six blocks of steepest rise.
const SPREAD: u128 = 2;
/// Gas that receiving a payment may take beyond what a transaction takes that does nothing.
const RECEIVING: u64 = 300_000;

/// One chain.
#[derive(Clone)]
pub struct Wallet {
    pub failover: Failover,
    family: &'static Family,
    /// What transactions are signed for.
    number: u64,
    codec: &'static dyn TransactionCodec,
    limits: Arc<Limits>,
    /// The contract that says what bytes cost, by the market file.
    data_fees: Option<Address>,
    /// The same where nobody says it, once the chain was asked.
    asked: Option<Arc<OnceCell<Option<Address>>>>,
}

/// Reads the `limits` of an EVM network in the market file. An error names the key that is unknown or malformed.
pub fn limits(
    listed: &serde_json::Map<String, serde_json::Value>,
) -> Result<trade::Limits, SpecError> {
    let limits = Limits::read(listed)?;
    limits.contract(&crate::ethereum::FAMILY)?;
    Ok(limits.neutral())
}

/// Makes one [`Providers`] of the providers of an EVM chain; `Ok(None)` where there are none.
pub fn providers(
    context: ProvidersContext,
    providers: Vec<TradingProvider>,
) -> Result<Option<Providers>, SpecError> {
    wallet(context, &Transactions, providers)
}

/// The providers of an EVM chain whose transactions become bytes in this way.
pub fn wallet(
    context: ProvidersContext,
    codec: &'static dyn TransactionCodec,
    providers: Vec<TradingProvider>,
) -> Result<Option<Providers>, SpecError> {
    let ProvidersContext {
        spec,
        number,
        required,
        limits,
    } = context;
    let asked = limits.is_none().then(Arc::default);
    let limits = limits.map_or_else(|| Ok(Limits::default()), |listed| Limits::read(&listed))?;
    let data_fees = limits.contract(spec.family)?;
    let Some(failover) = Failover::new(spec.id.as_str(), required, providers) else {
        return Ok(None);
    };
    let failover = failover.with_spread(SPREAD);
    let wallet = Arc::new(Wallet {
        failover,
        family: spec.family,
        number,
        codec,
        data_fees,
        asked,
        limits: Arc::new(limits),
    });
    Ok(Some(facade(wallet)))
}

fn facade(wallet: Arc<Wallet>) -> Providers {
    Providers {
        failover: wallet.failover.clone(),
        limits: wallet.limits.neutral(),
        usual,
        wallet: wallet.clone(),
        fees: wallet.clone(),
        accounts: wallet.clone(),
        approvals: Some(wallet.clone()),
        contracts: Some(wallet),
        declinable: false,
        pays_as_signed: false,
        funding: None,
    }
}

/// Gas units.
fn usual(work: Work) -> u64 {
    match work {
        Work::Approve => 55_000,
        Work::Deposit => 95_000,
        Work::Send => 65_000,
        Work::Swap => 60_000,
        Work::Payment { native: true } => 30_000,
        Work::Payment { native: false } => 75_000,
        // What the router is paid, an approval, what it pays.
        Work::Routed => 200_000,
        Work::Call => 150_000,
        // Less than what one slot of a token's storage costs when it is new.
        Work::Room => 10_000,
        Work::Kept => 100_000,
    }
}

#[async_trait]
impl trade::Wallet for Wallet {
    /// Its size and kind, and the authorizations that it carries, whose accounts must stand where those say and
    /// have nothing waiting.
    async fn admit(&self, draft: &Draft) -> Result<Result<(), Unfit>, ReadError> {
        let unsealed = match self.unsealed(&Trial::free(draft)) {
            Ok(unsealed) => unsealed,
            Err(error) => return Ok(Err(error.into())),
        };
        let authorities = match self.codec.admit(self.number, &unsealed, &self.limits) {
            Ok(authorities) => authorities,
            Err(unfit) => return Ok(Err(unfit)),
        };
        for (at, authority) in authorities.iter().enumerate() {
            let (mined, waiting) =
                futures::try_join!(self.nonce(authority, false), self.nonce(authority, true))?;
            let before = authorities[..at].iter().filter(|one| *one == authority);
            let expected = mined.saturating_add(before.count() as u64);
            let why = match unsealed.authorizations[at].nonce {
                _ if waiting > mined => "its account has transactions that wait",
                nonce if nonce != expected => "its nonce is not its account's",
                _ => continue,
            };
            return Ok(Err(Unfit::Authorization(at, why.into())));
        }
        Ok(Ok(()))
    }

    async fn simulate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        let verdict = self.failover.estimate(trial).await?;
        Ok(verdict.map_err(explained))
    }

    async fn is_modest(&self, account: &Address, work: u64) -> Result<bool, ReadError> {
        if work <= RECEIVING {
            return Ok(true);
        }
        Ok(work <= self.idle(account).await?.saturating_add(RECEIVING))
    }
}

#[async_trait]
impl Fees for Wallet {
    async fn besides(&self, trial: &Trial<'_>) -> Result<Amount, ReadError> {
        let contract = match &self.asked {
            None => self.data_fees.as_ref(),
            Some(asked) => {
                let ask = || self.usual_data_fees(&trial.draft.from);
                asked.get_or_try_init(ask).await?.as_ref()
            }
        };
        match contract {
            None => Ok(Amount::ZERO),
            Some(contract) => self.data_fee_by(contract, trial).await,
        }
    }

    async fn work(&self, draft: &Draft) -> Option<u64> {
        let estimate = self.failover.estimate(&Trial::free(draft)).await;
        estimate.ok()?.ok()
    }
}

impl OpenAccount for Wallet {
    fn account(
        &self,
        chain: &Chain,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        Nonces::open(self, chain, key, most)
    }
}

#[async_trait]
impl Approvals for Wallet {
    async fn approved(
        &self,
        owner: &Address,
        spender: &Address,
        currency: &Address,
    ) -> Result<Amount, ReadError> {
        let ask = |provider: TradingProvider| async move {
            let contracts = provider.contracts()?;
            contracts.allowance(owner, spender, currency).await
        };
        self.failover.number("allowance", ask).await
    }

    async fn suffices(&self, owner: &Address, spend: &Spend<'_>) -> Result<bool, ReadError> {
        let ask = |provider: TradingProvider| async move {
            let contracts = provider.contracts()?;
            let said = contracts.allowance(owner, spend.spender, spend.currency);
            Ok(said.await? >= spend.amount)
        };
        self.failover.holds("allowance", ask).await
    }
}

impl Wallet {
    /// What transactions are made with, and signed for.
    pub fn codec(&self) -> (&'static dyn TransactionCodec, u64) {
        (self.codec, self.number)
    }

    /// The number of `owner`'s transactions in blocks, or with those that wait.
    pub async fn nonce(&self, owner: &Address, waiting: bool) -> Result<u64, ReadError> {
        let ask = |provider: TradingProvider| async move {
            provider.contracts()?.nonce(owner, waiting).await
        };
        self.failover.number("nonce", ask).await
    }

    /// Gas units of a transaction that does nothing, with room for what changes until it is included.
    pub async fn idle(&self, account: &Address) -> Result<u64, ReadError> {
        let nothing = Draft::call(Call::nothing(account));
        let gas = self.failover.estimate(&Trial::free(&nothing)).await?;
        let gas = gas.map_err(|Revert { reason, .. }| {
            ReadError::Doubtful(format!("a transaction that does nothing reverts: {reason}"))
        })?;
        Ok(gas.saturating_add(gas / 4))
    }

    /// What the chain charges for a transaction's bytes, as `contract` says it.
    async fn data_fee_by(
        &self,
        contract: &Address,
        trial: &Trial<'_>,
    ) -> Result<Amount, ReadError> {
        let doubtful = |error: CodecError| ReadError::Doubtful(error.to_string());
        let unsealed = self.unsealed(trial).map_err(doubtful)?;
        let question = self
            .codec
            .data_fee(self.number, &unsealed, Some(contract))
            .map_err(doubtful)?;
        let question = &question;
        let ask = |provider: TradingProvider| async move {
            let answer = provider.contracts()?.call(question).await?;
            let word = answer.ok().and_then(|said| said.first_chunk().copied());
            word.map(U256::from_be_bytes::<32>).ok_or_else(|| {
                ReadError::Unavailable("the contract of data fees does not answer".into())
            })
        };
        self.failover.number("data fee", ask).await
    }

    /// The contract that prices bytes where most such chains have one, if this chain has it. `account` is
    /// any.
    async fn usual_data_fees(&self, account: &Address) -> Result<Option<Address>, ReadError> {
        let nothing = Draft::call(Call::nothing(account));
        let unsealed = self.unsealed(&Trial::free(&nothing));
        let question = unsealed.and_then(|one| self.codec.data_fee(self.number, &one, None));
        let Ok(question) = question else {
            return Ok(None);
        };
        let there = self.is_contract(&question.to).await?;
        Ok(there.then_some(question.to))
    }

    /// The transaction as far as its length and kind go.
    fn unsealed(&self, trial: &Trial<'_>) -> Result<Unsealed, CodecError> {
        let rate = trial.rate.unwrap_or_default();
        let (call, authorizations) = parts(trial.draft)?;
        Ok(Unsealed {
            call,
            authorizations: authorizations.to_vec(),
            nonce: SOME_NONCE,
            gas: trial.most.unwrap_or(self.limits.gas),
            max_fee: rate.most(),
            max_priority_fee: rate.priority,
        })
    }
}

/// What a draft of this family consists of.
pub fn parts(draft: &Draft) -> Result<(Call, &[Authorization]), CodecError> {
    let foreign = || CodecError("Not a transaction of an EVM chain".into());
    let call = draft.as_call().ok_or_else(foreign)?;
    match &draft.body {
        Body::Call { authorizations, .. } => Ok((call, authorizations)),
        Body::Own(_) => Err(foreign()),
    }
}

/// With a reason that people can read, where its data has one.
fn explained(revert: Revert) -> Revert {
    match revert.reason.is_empty() {
        true => revert::explain(&revert.data),
        false => revert,
    }
}

#[cfg(test)]
mod tests;
