//! What the rows do, in the words of no family.

pub mod amounts;
pub mod chain;
pub mod deposits;
pub mod index;
pub mod lies;
pub mod loss;
pub mod owners;
pub mod payments;
pub mod withdrawals;

use alloy::primitives::B256;

use crate::{
    deal::Deal,
    family::{DepositKind, Expected, Minted, Script},
    ledger::Tx,
    verdict::{Signed, Verdict},
    world::{Setup, World},
};

/// Why a cell ends before its end.
#[derive(Debug)]
pub enum Stop {
    /// The row does not apply to the family.
    NotApplicable(&'static str),
    Wrong(String),
}

impl From<&'static str> for Stop {
    fn from(why: &'static str) -> Self {
        Self::NotApplicable(why)
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

pub type Played = Result<(), Stop>;

/// Ends a cell as wrong unless `holds`.
pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Played {
    match holds {
        true => Ok(()),
        false => Err(Stop::Wrong(what())),
    }
}

/// Says of whatever is wrong in a part of a cell which part it is.
pub fn within(part: &str, played: Played) -> Played {
    played.map_err(|stop| match stop {
        Stop::Wrong(what) => Stop::Wrong(format!("{part}: {what}")),
        other => other,
    })
}

/// A world in which a plain deposit for an order is in a block.
pub struct Funded {
    pub world: World,
    pub deal: Deal,
    /// The id of the deposit's transaction.
    pub tx: String,
}

impl Funded {
    /// The deposit is final, with two blocks to spare.
    pub async fn start(script: &'static dyn Script) -> Result<Self, Stop> {
        Self::with(script, Setup::default(), script.depth() + 2).await
    }

    /// The deposit has so many blocks on it.
    pub async fn with(
        script: &'static dyn Script,
        setup: Setup,
        blocks: u64,
    ) -> Result<Self, Stop> {
        let world = World::with(script, setup).await?;
        let deal = Deal::new(script, 1);
        let tx = deposit(script, "deposit", deal.id)?;
        world.home.put(&tx, blocks);
        Ok(Self {
            world,
            deal,
            tx: tx.id,
        })
    }

    pub async fn claim(&self) -> Verdict {
        self.world.deposit(&self.tx).await
    }

    /// The deposit's onchain id, once it is signed.
    pub async fn signed(&self) -> Result<(Signed, B256), Stop> {
        let signed = self.world.deposit_in_time(&self.tx).await.signed()?;
        let id = *signed.ids.first().ok_or_else(|| "no deposit".to_owned())?;
        Ok((signed, id))
    }
}

/// A plain deposit for an order, in a transaction called `name`.
pub fn deposit(script: &'static dyn Script, name: &str, order: B256) -> Result<Tx, Stop> {
    let mut cases = script.deposits(DepositKind::Plain, [order, B256::ZERO])?;
    Ok(Tx {
        id: script.id(name),
        body: cases.remove(0).body,
    })
}

/// What is signed of the plain deposit where nothing is wrong, and that it is exactly what was deposited.
pub async fn control(script: &'static dyn Script) -> Result<Signed, Stop> {
    let it = Funded::start(script).await?;
    let (signed, _) = it.signed().await?;
    let order = it.deal.id;
    let case = script.deposits(DepositKind::Plain, [order, B256::ZERO])?;
    deposits::mints(&it.world, &it.tx, &signed, &case[0].expected)?;
    ensure(
        matches!(&case[0].expected, Expected::Minted(all)
            if matches!(&all[..], [Minted { order: Some(named), .. }] if *named == order)),
        || "a plain deposit is for its order".into(),
    )?;
    Ok(signed)
}
