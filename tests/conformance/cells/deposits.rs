//! What looks like a deposit: it is decoded exactly, or nothing is signed.

use alloy::primitives::{B256, U256};
use vm::{
    ChainId,
    protocol::{
        action::Action,
        hub::{OrderAccount, alias, token_id},
    },
};

use crate::{
    cells::{Played, deposit, ensure, within},
    deal::{Deal, other},
    family::{Case, DepositKind, Expected, Minted, Script},
    ledger::Tx,
    verdict::{Signed, Verdict},
    world::{HOME, World},
};

/// What must be true of every deposit of a kind, whatever the family makes of it.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// What arrived is minted for the orders that it names.
    Exact,
    /// No order gets anything.
    NoOrder,
    /// The second order gets nothing, and nobody gets more than what arrived.
    FirstOrder,
    /// Nothing is signed.
    Unsigned,
}

impl Rule {
    fn check(self, expected: &Expected, orders: [B256; 2]) -> Played {
        let none = Vec::new();
        let minted = match expected {
            Expected::Minted(minted) => minted,
            Expected::Refused(_) | Expected::Nothing => &none,
        };
        let named = || minted.iter().filter_map(|one| one.order);
        let holds = match self {
            Self::Exact => !minted.is_empty() && named().count() == minted.len(),
            Self::NoOrder => named().count() == 0,
            Self::FirstOrder => named().all(|order| order == orders[0]),
            Self::Unsigned => minted.is_empty(),
        };
        ensure(holds, || format!("{self:?} does not allow {expected:?}"))
    }
}

/// Every deposit of a kind ends as the family expects and the rule allows; one beside it is signed as it is.
pub async fn read(script: &'static dyn Script, kind: DepositKind, rule: Rule) -> Played {
    let deal = Deal::new(script, 1);
    let orders = [deal.id, other(script).id];
    let cases = script.deposits(kind, orders)?;
    assert!(!cases.is_empty(), "{kind:?} has no case");
    let world = World::start(script).await?;
    for (at, case) in cases.into_iter().enumerate() {
        let Case {
            what,
            body,
            expected,
        } = case;
        within(what, rule.check(&expected, orders))?;
        let before = world.statements().await.len();
        let tx = Tx {
            id: script.id(&format!("{kind:?} {at}")),
            body,
        };
        world.home.put(&tx, script.depth() + 1);
        within(what, world.home.knows(&tx.id).await)?;
        let verdict = world.deposit(&tx.id).await;
        within(what, is_as_expected(&world, &tx.id, verdict, &expected))?;
        let signed = world.statements().await.len() - before;
        let wanted = usize::from(matches!(expected, Expected::Minted(_)));
        within(
            what,
            ensure(signed == wanted, || format!("{signed} statements")),
        )?;
    }
    let tx = deposit(script, "plain deposit", deal.id)?;
    world.home.put(&tx, script.depth() + 1);
    let verdict = world.deposit(&tx.id).await;
    let plain = script.deposits(DepositKind::Plain, orders)?;
    let played = is_as_expected(&world, &tx.id, verdict, &plain[0].expected);
    within("a plain deposit beside it", played)
}

/// Whether the answer about a transaction is what was expected of it.
pub fn is_as_expected(world: &World, tx: &str, verdict: Verdict, expected: &Expected) -> Played {
    match expected {
        Expected::Refused(code) => verdict.is_refused(code),
        Expected::Nothing => ensure(verdict == Verdict::Nothing, || format!("{verdict:?}")),
        Expected::Minted(_) => mints(world, tx, &verdict.signed()?, expected),
    }
}

/// Whether what was signed mints this and nothing else.
pub fn mints(world: &World, tx: &str, signed: &Signed, expected: &Expected) -> Played {
    let Expected::Minted(minted) = expected else {
        return Err("nothing was to be signed".to_owned().into());
    };
    let time = world.home.block_of(tx).time;
    let actions: Vec<_> = minted.iter().map(|one| mint(world, one, time)).collect();
    let mut ids = signed.ids.clone();
    ids.sort_unstable();
    ids.dedup();
    ensure(ids.len() == minted.len(), || {
        format!("{} onchain ids of {} deposits", ids.len(), minted.len())
    })?;
    let found: Vec<_> = signed
        .actions
        .iter()
        .map(|action| Action::decode(action).unwrap())
        .collect();
    ensure(found == actions, || format!("{found:?} is not {actions:?}"))
}

fn mint(world: &World, minted: &Minted, time: u64) -> Action {
    let (home, family) = (ChainId::new(HOME), world.script.family());
    let depositor = family.account(&minted.depositor).unwrap();
    let account = |order| OrderAccount {
        chain: &home,
        depositor: &depositor,
        timestamp: U256::from(time),
        deposit: order,
    };
    Action::Mint {
        to: match minted.order {
            Some(order) => account(order).address(),
            None => alias(&home, &depositor),
        },
        token: token_id(&home, &family.currency(&minted.currency).unwrap()),
        amount: minted.amount,
    }
}
