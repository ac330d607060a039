//! What somebody has, everywhere: on the chains, at the hub, and in deposits that nobody has given back.

use std::collections::BTreeMap;

use alloy::primitives::{Address, U256};
use anyhow::{Context, Result, bail};
use devnet::world::{DevChain, order::text};
use intentd::admin::solver::{Answer, Question};

use super::arena::{Arena, lock};

/// What is worth something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coin {
    Ether,
    Dollar,
    Gold,
    /// A dollar of another chain, which may lose its worth.
    Bridged,
}

/// Amounts by coin, in their smallest units.
pub type Wealth = BTreeMap<Coin, i128>;

impl Coin {
    pub const ALL: [Self; 4] = [Self::Ether, Self::Dollar, Self::Gold, Self::Bridged];

    /// Millionths of a dollar at first.
    pub fn usual(self) -> u64 {
        match self {
            Self::Ether => 2_500_000_000,
            Self::Gold => 100_000_000,
            Self::Dollar | Self::Bridged => 1_000_000,
        }
    }

    /// What one smallest unit is times, so that all coins have 18 decimals.
    fn scale(self) -> i128 {
        match self {
            Self::Ether => 1,
            _ => 1_000_000_000_000,
        }
    }

    /// Its address at `site`, where it is known.
    pub fn address(self, arena: &Arena, site: &DevChain) -> Option<Address> {
        let here = site.id == arena.world.origin.id;
        match self {
            Self::Ether => Some(Address::ZERO),
            Self::Dollar => Some(site.token),
            Self::Gold => here.then_some(arena.gold),
            Self::Bridged => here.then_some(arena.bridged),
        }
    }
}

impl Arena {
    /// What `who` has on all chains and at the hub, as an account of either site.
    pub async fn wealth(&self, who: Address) -> Result<Wealth> {
        let world = &self.world;
        let mut sum = Wealth::new();
        let mut add = |coin: Coin, amount: U256| -> Result<()> {
            *sum.entry(coin).or_default() +=
                i128::try_from(amount).ok().context("too much to count")?;
            Ok(())
        };
        add(Coin::Ether, world.hub.node.balance(who).await?)?;
        let aliases = [world.origin.alias(who)?, world.destination.alias(who)?];
        for site in [&world.origin, &world.destination] {
            for coin in Coin::ALL {
                let Some(address) = coin.address(self, site) else {
                    continue;
                };
                add(coin, held(site, address, who).await?)?;
                for alias in aliases {
                    add(
                        coin,
                        world.hub.balance(alias, site.token_id(address)?).await?,
                    )?;
                }
            }
        }
        Ok(sum)
    }

    /// What `who` has deposited that stands in the operator's list: its depositor may have it back.
    pub async fn claimable(&self, who: Address) -> Result<(Wealth, Vec<String>)> {
        let parked = match self
            .operator(Question::Parked { all: true, skip: 0 })
            .await?
        {
            Answer::Parked { parked, .. } => parked,
            other => bail!("{other:?}"),
        };
        let (mut sum, mut told) = (Wealth::new(), Vec::new());
        let who = text(who);
        for left in parked
            .iter()
            .filter(|left| left.parked.depositor.eq_ignore_ascii_case(&who))
        {
            told.push(left.parked.note.clone());
            if lock(&self.recovered).contains(&left.deposit) {
                continue;
            }
            let sites = [&self.world.origin, &self.world.destination];
            let site = sites
                .into_iter()
                .find(|site| site.id == left.parked.network);
            let coin = Coin::ALL.into_iter().find(|coin| {
                let address = site.and_then(|site| coin.address(self, site));
                address.is_some_and(|address| {
                    text(address).eq_ignore_ascii_case(&left.parked.currency)
                })
            });
            if let Some(coin) = coin {
                *sum.entry(coin).or_default() += i128::try_from(left.parked.amount)
                    .ok()
                    .context("too much to count")?;
            }
        }
        Ok((sum, told))
    }

    /// By how much somebody is richer, at what things are worth now: dollars with 24 decimals, so that
    /// one unit of anything counts.
    pub fn richer(&self, before: &Wealth, after: &Wealth) -> i128 {
        let change = |coin: Coin| {
            let of = |wealth: &Wealth| wealth.get(&coin).copied().unwrap_or_default();
            (of(after) - of(before)) * coin.scale() * i128::from(self.price(coin))
        };
        Coin::ALL.into_iter().map(change).sum()
    }
}

/// The sum of two.
pub fn sum(one: &Wealth, other: &Wealth) -> Wealth {
    let mut all = one.clone();
    for (coin, amount) in other {
        *all.entry(*coin).or_default() += amount;
    }
    all
}

/// What `who` holds of a currency of `site`; zero is the native one.
pub async fn held(site: &DevChain, currency: Address, who: Address) -> Result<U256> {
    match currency {
        Address::ZERO => site.node.balance(who).await,
        token => site.token_balance(token, who).await,
    }
}

/// Dollars with six decimals, of 24.
pub fn dollars(value: i128) -> String {
    let micro = value / 1_000_000_000_000_000_000;
    let sign = if value < 0 { "-" } else { "" };
    let micro = micro.unsigned_abs();
    format!("{sign}{}.{:06} USD", micro / 1_000_000, micro % 1_000_000)
}
