//! One chain as the solver sees it: providers to write through and a quorum to believe.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use vm::{
    Address, Chain, CodecError, Family, Head, ReadError, SpecError, Transaction,
    trade::{
        Account, ApprovalSteps, Landing, Providers, ProvidersContext, Signer, StepBuilder,
        TradingProvider, own_tx,
    },
};

use super::survey::Survey;
use crate::market::{Currency, Network};

/// How long the time of the newest block is reused before the chain is asked again.
const RECENT: Duration = Duration::from_secs(10);

/// Blocks whose usual time a transaction has to land. Where blocks come by chance, one such time in 160,000 has none, and a
/// block's own time may be as far ahead of the clock.
const BLOCKS: u64 = 12;
/// The least seconds that it has.
pub(super) const LEAST: u64 = 30;

/// A chain as the solver sees it.
#[derive(Clone)]
pub struct TradingChain {
    /// The name that orders, rows and logs use.
    pub name: String,
    /// The chain's number, as transactions are signed for it.
    pub number: u64,
    /// Blocks on top of a payment before it is confirmed.
    pub confirmations: u64,
    /// Unset for a chain that is not traded on (the settlement chain).
    pub market: Option<Network>,
    /// The chain as a quorum of its providers has it.
    pub loaded: Chain,
    pub steps: &'static dyn StepBuilder,
    pub landing: &'static dyn Landing,
    /// `None`: nobody but its owner takes what an account has.
    pub approvals: Option<&'static dyn ApprovalSteps>,
    pub native: Address,
    pub providers: Providers,
    pub(super) survey: Survey,
    /// The time of the newest block in unix seconds, and when the chain was asked for it.
    newest: Arc<Mutex<Option<(Instant, u64)>>>,
}

/// What a family makes transactions with, and lands them.
pub(super) struct Abilities {
    pub steps: &'static dyn StepBuilder,
    pub landing: &'static dyn Landing,
    pub approvals: Option<&'static dyn ApprovalSteps>,
}

/// Why a chain cannot be traded on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TradingChainError {
    #[error("{0}: this version sends no transactions there")]
    Unsupported(String),
    #[error("{0}: priceHolds.waiting: too few of its providers show what waits for a block")]
    NoMempool(String),
    #[error("{0}: no provider")]
    Unreachable(String),
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// The providers of a network of the market, for whoever quotes or trades there. `required` of them must agree.
pub fn providers(
    network: &Network,
    chain: &Chain,
    trading_providers: Vec<TradingProvider>,
    required: usize,
) -> Result<Providers, TradingChainError> {
    let shown = trading_providers.iter();
    let shown = shown.filter(|provider| provider.mempool.is_some()).count();
    let mut holds = network.currencies.iter().filter_map(|one| one.price_holds);
    if holds.any(|holds| holds.waiting.is_some()) && shown < required {
        return Err(TradingChainError::NoMempool(network.name.clone()));
    }
    let context = ProvidersContext {
        spec: chain.spec.clone(),
        number: network.chain_id,
        required,
        limits: Some(network.limits.clone()),
    };
    opened(context, trading_providers)
}

fn opened(
    context: ProvidersContext,
    trading_providers: Vec<TradingProvider>,
) -> Result<Providers, TradingChainError> {
    let name = context.spec.id.to_string();
    let Some(open) = context.spec.family.providers else {
        return Err(TradingChainError::Unsupported(name));
    };
    open(context, trading_providers)?.ok_or(TradingChainError::Unreachable(name))
}

impl TradingChain {
    /// A network of the market.
    pub fn traded(
        network: &Network,
        chain: Chain,
        providers: Providers,
    ) -> Result<Self, TradingChainError> {
        let abilities = abilities(&network.name, &chain)?;
        Self::made(network, chain, providers, abilities)
    }

    /// A chain without currencies to trade: the settlement chain. `number` is what its transactions are signed for;
    /// `required` of its providers must agree.
    pub fn plain(
        chain: Chain,
        number: u64,
        trading_providers: Vec<TradingProvider>,
        required: usize,
    ) -> Result<Self, TradingChainError> {
        let name = chain.spec.id.to_string();
        let abilities = abilities(&name, &chain)?;
        let context = ProvidersContext {
            spec: chain.spec.clone(),
            number,
            required,
            limits: None,
        };
        let providers = opened(context, trading_providers)?;
        Ok(Self {
            name,
            number,
            confirmations: 1,
            market: None,
            native: chain.spec.family.native()?,
            loaded: chain,
            steps: abilities.steps,
            landing: abilities.landing,
            approvals: abilities.approvals,
            providers,
            // It compares nothing. Payments wait for it, since the account is vouched for before.
            survey: Survey::default(),
            newest: Arc::default(),
        })
    }

    pub(super) fn made(
        network: &Network,
        chain: Chain,
        providers: Providers,
        abilities: Abilities,
    ) -> Result<Self, TradingChainError> {
        Ok(Self {
            name: network.name.clone(),
            number: network.chain_id,
            confirmations: network.fill_confirmations,
            market: Some(network.clone()),
            native: chain.spec.family.native()?,
            loaded: chain,
            steps: abilities.steps,
            landing: abilities.landing,
            approvals: abilities.approvals,
            providers,
            survey: Survey::default(),
            newest: Arc::default(),
        })
    }

    pub fn family(&self) -> &'static Family {
        self.loaded.spec.family
    }

    /// Seconds after which a deposit here is usually final.
    pub fn finality(&self) -> u64 {
        self.loaded.spec.finality.usual(self.pace())
    }

    /// Seconds before a deadline from which no payment is begun here. Half of them is the payment's time to land, and half
    /// that of what cancels it.
    pub fn margin(&self) -> u64 {
        landing_time(self.pace(), self.landing.life()).saturating_mul(2)
    }

    /// Whether payments here expire: cancelling one costs nothing, and it is over once its last transaction has expired.
    /// Elsewhere another transaction cancels it.
    pub fn expires(&self) -> bool {
        self.landing.life() > 0
    }

    /// Seconds between blocks.
    fn pace(&self) -> u64 {
        let market = self.market.as_ref();
        market.map_or(0, |market| market.block_seconds)
    }

    /// The time of the newest block that a quorum has, in unix seconds; at most some seconds old.
    pub async fn tip(&self) -> Result<u64, ReadError> {
        let newest = || self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let known = *newest();
        if let Some((at, time)) = known
            && at.elapsed() < RECENT
        {
            return Ok(time);
        }
        let time = self.loaded.reader.head().await?.block.time;
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

    /// The account of a key here. No transaction is made whose unit of work costs more than `most`.
    pub fn account(&self, key: Arc<dyn Signer>, most: u128) -> Result<Account, CodecError> {
        self.providers.accounts.account(&self.loaded, key, most)
    }

    /// A transaction as a quorum of the chain's providers has it now.
    pub async fn agreed(&self, id: &str) -> Result<(Transaction, Head), ReadError> {
        let head = self.loaded.reader.fresh_head().await?;
        Ok((own_tx::at(&self.loaded, id, &head).await?, head))
    }
}

/// Seconds after which a transaction is in a block or lands no more, where blocks come every `pace` seconds and a
/// transaction that no other cancels may land in `life` of them.
fn landing_time(pace: u64, life: u64) -> u64 {
    let comes = pace.saturating_mul(BLOCKS).max(LEAST);
    comes.saturating_add(pace.saturating_mul(life))
}

fn abilities(name: &str, chain: &Chain) -> Result<Abilities, TradingChainError> {
    let family = chain.spec.family;
    let (steps, landing) = family
        .steps
        .zip(family.landing)
        .ok_or_else(|| TradingChainError::Unsupported(name.to_owned()))?;
    Ok(Abilities {
        steps,
        landing,
        approvals: family.approvals,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payment_and_what_cancels_it_have_time_to_land_on_every_chain() {
        let life = |name: &str| vm::family(name).unwrap().landing.unwrap().life();
        let table = [
            ("ethereum-vm", 1, 30),
            ("ethereum-vm", 12, 144),
            // Two hours.
            ("bitcoin-vm", 600, 7_200),
            // Nothing cancels a payment: it lands until its blockhash ends.
            ("solana-vm", 1, 30 + 151),
            ("bitcoin-vm", u64::MAX, u64::MAX),
        ];
        for (family, pace, wanted) in table {
            assert_eq!(landing_time(pace, life(family)), wanted, "{family} {pace}");
        }
    }
}
