//! Deposits of nothing, of one unit, and one unit off, and payments in parts. Each cell ends with an order that is ended
//! by what is enough.

use alloy::primitives::{B256, U256};
use vm::protocol::id;

use crate::{
    cells::{
        Played, Stop,
        deposits::is_as_expected,
        ensure,
        payments::{Case, OUTCOMES, SHORT, SHORT_REFUND},
        within,
    },
    deal::{Deal, other},
    family::{AMOUNT, DepositKind, Expected, LEAST, Minted, Script},
    ledger::Tx,
    world::{HOME, World},
};

/// The code of a claim that needs its solver's word.
const UNVOUCHED: &str = "SOLVER_SIGNATURE_REQUIRED";

/// A signed deposit of one unit, or of one unit off, for the case's order: its transaction and its onchain id.
async fn deposited(it: &Case, amount: u64) -> Result<(Tx, B256), Stop> {
    let script = it.world.script;
    let is_wanted = |expected: &Expected| match expected {
        Expected::Minted(all) => all.iter().all(|one| one.amount == U256::from(amount)),
        Expected::Refused(_) | Expected::Nothing => false,
    };
    let cases = script.deposits(DepositKind::Units, [it.deal.id, other(script).id])?;
    let case = cases.into_iter().find(|case| is_wanted(&case.expected));
    let case = case.ok_or_else(|| format!("no deposit of {amount}"))?;
    let tx = Tx {
        id: script.id(&format!("deposit of {amount}")),
        body: case.body,
    };
    it.put(&tx);
    let signed = it.world.deposit(&tx.id).await.signed()?;
    let onchain = *signed.ids.first().ok_or_else(|| "no deposit".to_owned())?;
    Ok((tx, onchain))
}

/// One unit is deposited for the order, by whoever likes to be paid for: it ends as the order does on its solver's word
/// alone.
pub async fn one_unit(script: &'static dyn Script) -> Played {
    for outcome in OUTCOMES {
        within(outcome, one_unit_once(script, outcome).await)?;
    }
    Ok(())
}

async fn one_unit_once(script: &'static dyn Script, outcome: &str) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let (tx, onchain) = deposited(&it, 1).await?;
    let payment = it.ends(outcome)?;
    it.put(&payment);
    let deposit = (tx.id.as_str(), onchain);
    let verdict = it.claimed(outcome, deposit, (&payment.id, false)).await;
    verdict.is_refused(UNVOUCHED)?;
    it.is_open().await?;
    it.is_filled().await?;
    let verdict = it.claimed(outcome, deposit, (&payment.id, true)).await;
    it.deal
        .moved_of(&it.world, (&tx.id, 1), &verdict.signed()?, outcome)
}

/// The onchain ids that a deposit in this transaction can have here.
fn ids(tx: &str) -> [B256; 3] {
    ["0", "1", "2"].map(|index| id::deterministic(&[HOME, tx, index]))
}

/// Nothing is deposited for the order, and that is claimed as its deposit, with the solver's word and without.
pub async fn nothing(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let own = ids(&it.tx).contains(&it.onchain);
    ensure(own, || "a deposit has another id".into())?;
    let cases = script.deposits(DepositKind::Nothing, [it.deal.id, other(script).id])?;
    for (at, case) in cases.into_iter().enumerate() {
        let tx = Tx {
            id: script.id(&format!("nothing {at}")),
            body: case.body,
        };
        it.put(&tx);
        let verdict = it.world.deposit(&tx.id).await;
        let played = is_as_expected(&it.world, &tx.id, verdict, &case.expected);
        within(case.what, played)?;
        within(case.what, ends_nothing(&it, &tx).await)?;
    }
    it.is_open().await?;
    it.is_filled().await
}

/// Whatever the solver pays, the case's order does not end for a deposit in this transaction.
async fn ends_nothing(it: &Case, tx: &Tx) -> Played {
    for outcome in OUTCOMES {
        let payment = Tx {
            id: it.world.script.id(&format!("{outcome} for {}", tx.id)),
            ..it.ends(outcome)?
        };
        it.put(&payment);
        for onchain in ids(&tx.id) {
            for vouched in [false, true] {
                let deposit = (tx.id.as_str(), onchain);
                let claim = (payment.id.as_str(), vouched);
                let verdict = it.claimed(outcome, deposit, claim).await;
                // Some families refuse the transaction, others find no deposit in it.
                let codes = ["DEPOSIT_UNREADABLE", "INPUT_INVALID"];
                within(outcome, verdict.is_refused_as(&codes))?;
            }
        }
    }
    Ok(())
}

/// One unit less is deposited than the order asks for, or one more: that much moves, and no less has to be paid for it.
pub async fn one_off(script: &'static dyn Script) -> Played {
    for amount in [AMOUNT - 1, AMOUNT + 1] {
        for outcome in OUTCOMES {
            let part = format!("{outcome} of {amount}");
            within(&part, one_off_once(script, outcome, amount).await)?;
        }
    }
    Ok(())
}

async fn one_off_once(script: &'static dyn Script, outcome: &str, amount: u64) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let (tx, onchain) = deposited(&it, amount).await?;
    let deposit = (tx.id.as_str(), onchain);
    // Who refunds in another's name needs the solver's word.
    let vouched = outcome == "refund";
    let less = Tx {
        id: script.id("one unit less than has to be paid"),
        ..it.ends_with(outcome, LEAST - 1)?
    };
    it.put(&less);
    let verdict = it.claimed(outcome, deposit, (&less.id, vouched)).await;
    verdict.is_refused(short(outcome))?;
    it.is_open().await?;
    let payment = it.ends(outcome)?;
    it.put(&payment);
    let verdict = it.claimed(outcome, deposit, (&payment.id, vouched)).await;
    it.deal
        .moved_of(&it.world, (&tx.id, amount), &verdict.signed()?, outcome)
}

/// The code of an outcome for which too little is paid.
fn short(outcome: &str) -> &'static str {
    match outcome {
        "fill" => SHORT,
        _ => SHORT_REFUND,
    }
}

/// A transaction pays one unit less than has to be paid, and another one that unit: neither ends the order.
pub async fn two_transactions(script: &'static dyn Script) -> Played {
    for outcome in OUTCOMES {
        let it = Case::start(script, Deal::new(script, 1)).await?;
        let mut parts = Vec::new();
        for amount in [LEAST - 1, 1] {
            let part = Tx {
                id: script.id(&format!("a part of {amount}")),
                ..it.ends_with(outcome, amount)?
            };
            it.put(&part);
            parts.push(part);
        }
        for part in &parts {
            let verdict = it.ended(outcome, part).await;
            within(outcome, verdict.is_refused(short(outcome)))?;
        }
        it.is_open().await?;
        within(outcome, it.is_filled().await)?;
    }
    Ok(())
}

/// One unit, or nothing, is deposited beside the order's deposit, in its transaction: the order ends for the whole
/// deposit, and for no other without the solver's word.
pub async fn beside(script: &'static dyn Script) -> Played {
    let deal = Deal::new(script, 1);
    let orders = [deal.id, other(script).id];
    for case in script.deposits(DepositKind::Beside, orders)? {
        let Expected::Minted(minted) = case.expected else {
            return Err(Stop::from(format!("{}: nothing is minted", case.what)));
        };
        let tx = Tx {
            id: script.id(case.what),
            body: case.body,
        };
        let world = World::start(script).await?;
        let played = ends_for_the_whole(world, deal.clone(), (&tx, &minted)).await;
        within(case.what, played)?;
    }
    Ok(())
}

async fn ends_for_the_whole(world: World, deal: Deal, (tx, minted): (&Tx, &[Minted])) -> Played {
    let script = world.script;
    world.home.put(tx, script.depth() + 1);
    let ids = world.deposit(&tx.id).await.signed()?.ids;
    let deposits = ids.into_iter().zip(minted);
    let (whole, rest): (Vec<_>, Vec<_>) =
        deposits.partition(|(_, one)| one.amount >= U256::from(AMOUNT));
    let [(onchain, one)] = whole[..] else {
        return Err(Stop::from(format!("not one whole deposit: {minted:?}")));
    };
    let it = Case {
        world,
        deal,
        tx: tx.id.clone(),
        onchain,
    };
    for outcome in OUTCOMES {
        let payment = Tx {
            id: script.id(outcome),
            ..it.ends(outcome)?
        };
        it.put(&payment);
        for (onchain, _) in &rest {
            let deposit = (tx.id.as_str(), *onchain);
            let verdict = it.claimed(outcome, deposit, (&payment.id, false)).await;
            within(outcome, verdict.is_refused(UNVOUCHED))?;
        }
    }
    it.is_open().await?;
    let fill = it.ends("fill")?;
    it.put(&fill);
    let signed = it.ended("fill", &fill).await.signed()?;
    let amount = one.amount.to::<u64>();
    it.deal
        .moved_of(&it.world, (&tx.id, amount), &signed, "fill")
}
