//! What a chain does to what is in it: reorgs, replaced transactions, chains that stand still or begin anew.

use futures::future::join_all;

use crate::{
    cells::{
        Funded, Played, Stop, control, deposit,
        deposits::{is_as_expected, mints},
        ensure,
        lies::SHORT_OF_VOTES,
        within,
    },
    deal::Deal,
    family::{DepositKind, PaymentKind, Script},
    ledger::{Ledger, Tx},
    verdict::{Signed, Verdict},
    world::{AWAY, Setup, World, in_time, settled},
};

/// Why nothing is signed yet.
pub const EARLY: &str = "TRANSACTION_NOT_FINALIZED";
/// Why nothing is signed about a chain until the operator says so.
pub const HALTED: &str = "CHAIN_HALTED";

/// A deposit is final exactly with its last block, and so is a fill.
pub async fn last_block(script: &'static dyn Script) -> Played {
    let honest = control(script).await?;
    let it = Funded::with(script, Setup::default(), script.depth() - 1).await?;
    it.claim().await.is_refused(EARLY)?;
    it.world.is_unsigned().await?;
    it.world.home.all(|ledger| ledger.grow(1));
    it.claim().await.is(&honest)?;
    let (_, onchain) = it.signed().await?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    it.world.home.put(&fill, script.depth() - 1);
    let claimed = async || {
        let deposit = (it.tx.as_str(), onchain);
        it.deal.filled(&it.world, deposit, (&fill.id, false)).await
    };
    claimed().await.is_refused(EARLY)?;
    it.world.home.all(|ledger| ledger.grow(1));
    let signed = claimed().await.signed()?;
    it.deal.moved(&it.world, &it.tx, &signed, "fill")
}

/// No block comes: what is not final stays so.
pub async fn still(script: &'static dyn Script) -> Played {
    let honest = control(script).await?;
    let it = Funded::with(script, Setup::default(), script.depth() - 1).await?;
    for _ in 0..3 {
        it.claim().await.is_refused(EARLY)?;
    }
    it.world.is_unsigned().await?;
    it.world.home.all(|ledger| ledger.grow(1));
    it.claim().await.is(&honest)
}

/// A transaction in no block is not there, whatever nodes know of it.
pub async fn unconfirmed(script: &'static dyn Script) -> Played {
    let honest = control(script).await?;
    let world = World::start(script).await?;
    let deal = Deal::new(script, 1);
    let tx = deposit(script, "deposit", deal.id)?;
    world.home.all(|ledger| ledger.wait(tx.clone()));
    world.deposit(&tx.id).await.is_missing(script)?;
    world.is_unsigned().await?;
    world.home.put(&tx, script.depth() + 2);
    world.deposit_in_time(&tx.id).await.is(&honest)
}

/// Another transaction takes the place of one that waited, and of one in a block that is not final.
pub async fn replaced(script: &'static dyn Script) -> Played {
    for was_in_block in [false, true] {
        let world = World::start(script).await?;
        let deal = Deal::new(script, 1);
        let tx = deposit(script, "deposit", deal.id)?;
        let rival = script.rival(&tx)?;
        if was_in_block {
            world.home.put(&tx, 0);
            world.deposit(&tx.id).await.is_refused(EARLY)?;
        } else {
            world.home.all(|ledger| ledger.wait(tx.clone()));
            world.deposit(&tx.id).await.is_missing(script)?;
        }
        world.home.all(|ledger| {
            if was_in_block {
                ledger.reorg(1);
            }
            ledger.drop_pending();
            ledger.put(rival.clone());
            ledger.grow(script.depth() + 2);
        });
        let gone = settled(async || world.deposit(&tx.id).await).await;
        gone.is_missing(script)?;
        world.is_unsigned().await?;
        world.deposit_in_time(&rival.id).await.signed()?;
    }
    Ok(())
}

/// A transaction that spends what a deposit gave back pays for the inclusion of both, in the same block or behind it: of
/// the deposit the same is signed as without it.
pub async fn child_pays(script: &'static dyn Script) -> Played {
    let deal = Deal::new(script, 1);
    let tx = deposit(script, "deposit", deal.id)?;
    let (child, expected) = script.child(&tx, None)?;
    let honest = control(script).await?;
    for blocks in [
        vec![vec![tx.clone(), child.clone()]],
        vec![vec![tx.clone()], vec![child.clone()]],
    ] {
        let world = World::start(script).await?;
        world.home.all(|ledger| {
            ledger.wait(tx.clone());
            ledger.wait(child.clone());
        });
        for waits in [&tx, &child] {
            world.deposit(&waits.id).await.is_missing(script)?;
        }
        world.is_unsigned().await?;
        world.home.all(|ledger| {
            ledger.drop_pending();
            blocks.iter().for_each(|txs| ledger.push(txs.clone()));
            ledger.grow(script.depth() + 2);
        });
        world.deposit_in_time(&tx.id).await.is(&honest)?;
        let verdict = world.deposit(&child.id).await;
        within(
            "the child",
            is_as_expected(&world, &child.id, verdict, &expected),
        )?;
    }
    Ok(())
}

/// A deposit that spends what another one gave back is signed when both are in blocks, and the other one as soon as it is.
pub async fn parent_waits(script: &'static dyn Script) -> Played {
    let [first, second] = [1, 2].map(|salt| Deal::new(script, salt));
    let parent = deposit(script, "deposit", first.id)?;
    let (tx, expected) = script.child(&parent, Some(second.id))?;
    let honest = control(script).await?;
    let world = World::start(script).await?;
    world.home.all(|ledger| {
        ledger.wait(parent.clone());
        ledger.wait(tx.clone());
    });
    for waits in [&parent, &tx] {
        world.deposit(&waits.id).await.is_missing(script)?;
    }
    world.is_unsigned().await?;
    world.home.put(&parent, script.depth() + 2);
    world.deposit_in_time(&parent.id).await.is(&honest)?;
    world.deposit(&tx.id).await.is_missing(script)?;
    let signed = world.statements().await.len();
    ensure(signed == 1, || format!("{signed} statements"))?;
    world.home.put(&tx, script.depth() + 2);
    let signed = world.deposit_in_time(&tx.id).await.signed()?;
    mints(&world, &tx.id, &signed, &expected)
}

/// What is signed by an oracle that never saw another chain than this one.
async fn afresh(script: &'static dyn Script, tx: &str, ledger: &Ledger) -> Result<Signed, Stop> {
    let world = World::start(script).await?;
    world.home.all(|own| *own = ledger.clone());
    world.deposit(tx).await.signed()
}

/// A reorg moves a deposit to another block before anything is signed of it: what is signed is as of that block.
pub async fn before(script: &'static dyn Script, depth: u64) -> Played {
    let world = World::start(script).await?;
    let deal = Deal::new(script, 1);
    let older = deposit(script, "older deposit", deal.id)?;
    let tx = deposit(script, "deposit", deal.id)?;
    world.home.put(&older, 0);
    world.home.put(&tx, depth - 1);
    // The readers know the chain as it was, whatever they say of this one.
    world.deposit(&older.id).await;
    world.home.all(|ledger| {
        ledger.reorg(depth);
        ledger.put(tx.clone());
        ledger.grow(script.depth() + 2);
    });
    let signed = world.deposit_in_time(&tx.id).await.signed()?;
    let same = afresh(script, &tx.id, &world.home.ledger()).await?;
    ensure(signed == same, || format!("{signed:?} is not {same:?}"))
}

/// The same, and it stands behind another transaction there.
pub async fn repositioned(script: &'static dyn Script) -> Played {
    let world = World::start(script).await?;
    let deal = Deal::new(script, 1);
    let tx = deposit(script, "deposit", deal.id)?;
    let first = deposit(script, "another deposit", deal.id)?;
    world.home.put(&tx, 0);
    world.deposit(&tx.id).await.is_refused(EARLY)?;
    world.home.all(|ledger| {
        ledger.reorg(1);
        ledger.push(vec![first.clone(), tx.clone()]);
        ledger.grow(script.depth() + 2);
    });
    let ledger = world.home.ledger();
    for tx in [&tx, &first] {
        let signed = world.deposit_in_time(&tx.id).await.signed()?;
        let same = afresh(script, &tx.id, &ledger).await?;
        ensure(signed == same, || format!("{signed:?} is not {same:?}"))?;
    }
    Ok(())
}

/// A deposit that was in a block is not there after a reorg.
pub async fn dropped(script: &'static dyn Script) -> Played {
    let it = Funded::with(script, Setup::default(), script.depth() - 1).await?;
    it.claim().await.is_refused(EARLY)?;
    it.world.home.all(|ledger| {
        ledger.reorg(script.depth());
        ledger.grow(script.depth() + 2);
    });
    settled(async || it.claim().await)
        .await
        .is_missing(script)?;
    it.world.is_unsigned().await?;
    let tx = deposit(script, "deposit", it.deal.id)?;
    it.world.home.put(&tx, script.depth() + 2);
    it.world.deposit_in_time(&tx.id).await.signed()?;
    Ok(())
}

/// A deposit that is signed, with an older one that is not, over a journal that is on a disk.
async fn signed_under(script: &'static dyn Script, blocks: u64) -> Result<(Funded, Tx), Stop> {
    let setup = Setup {
        durable: true,
        ..Setup::default()
    };
    let world = World::with(script, setup).await?;
    let deal = Deal::new(script, 1);
    let older = deposit(script, "older deposit", deal.id)?;
    let tx = deposit(script, "deposit", deal.id)?;
    world.home.put(&older, 3);
    world.home.put(&tx, blocks);
    let it = Funded {
        world,
        deal,
        tx: tx.id,
    };
    it.signed().await?;
    Ok((it, older))
}

async fn is_stopped(world: &World, older: &Tx) -> Played {
    let verdict = settled(async || world.deposit(&older.id).await).await;
    verdict.is_refused(HALTED)
}

async fn is_signed_elsewhere(world: &World, order: &Deal, name: &str) -> Played {
    let tx = deposit(world.script, name, order.id)?;
    world.away.put(&tx, world.script.depth() + 2);
    let verdict = in_time(async || world.deposit_on(AWAY, &tx.id).await).await;
    verdict.signed().map(drop)
}

/// Signing about the chain is halted, about no other, also after a restart; the operator's word ends it.
pub async fn halted(it: Funded, older: &Tx) -> Played {
    let Funded { world, deal, .. } = it;
    within("after the reorg", is_stopped(&world, older).await)?;
    let played = is_signed_elsewhere(&world, &deal, "elsewhere").await;
    within("on another chain", played)?;
    let world = world.reopen().await?;
    within("after a restart", is_stopped(&world, older).await)?;
    let played = is_signed_elsewhere(&world, &deal, "elsewhere again").await;
    within("on another chain after a restart", played)?;
    world.clear().await?;
    let verdict = world.deposit_in_time(&older.id).await;
    within("after the operator's word", verdict.signed().map(drop))
}

/// A signed deposit leaves the chain.
pub async fn after(script: &'static dyn Script, depth: u64) -> Played {
    let (it, older) = signed_under(script, depth - 1).await?;
    it.world.home.all(|ledger| drop(ledger.reorg(depth)));
    it.world.is_halted().await?;
    halted(it, &older).await
}

/// A signed deposit is in another block, and is asked for before anybody looked.
pub async fn elsewhere(script: &'static dyn Script) -> Played {
    let depth = script.depth() + 1;
    let (it, older) = signed_under(script, depth - 1).await?;
    it.world.home.all(|ledger| {
        let gone = ledger.reorg(depth);
        ledger.push(gone);
        ledger.grow(script.depth() + 2);
    });
    it.world.deposit_in_time(&it.tx).await.is_refused(HALTED)?;
    halted(it, &older).await
}

/// The chain begins anew behind its first block.
pub async fn restarted(script: &'static dyn Script) -> Played {
    let (it, older) = signed_under(script, script.depth() + 2).await?;
    it.world.home.all(|ledger| ledger.restart(5));
    it.world.is_halted().await?;
    it.world.home.all(|ledger| {
        ledger.put(older.clone());
        ledger.grow(script.depth() + 2);
    });
    halted(it, &older).await
}

/// The chain's own word for final stands still, is another with one provider, and goes back.
pub async fn tagged(script: &'static dyn Script) -> Played {
    let setup = Setup {
        tagged: true,
        ..Setup::default()
    };
    let it = Funded::with(script, setup, 40).await?;
    let home = &it.world.home;
    // What is above that block is too young, or not there at all.
    let is_above = async |tx: &str| {
        let verdict = settled(async || it.world.deposit(tx).await).await;
        match verdict.is_missing(script) {
            Ok(()) => Ok(()),
            Err(_) => verdict.is_refused(EARLY),
        }
    };
    home.all(|ledger| ledger.lag = 41);
    is_above(&it.tx).await?;
    home.nodes[0].edit(|ledger| ledger.lag = 0);
    is_above(&it.tx).await?;
    it.world.is_unsigned().await?;
    home.all(|ledger| ledger.lag = 40);
    it.world.deposit_in_time(&it.tx).await.signed()?;
    let next = deposit(script, "second deposit", it.deal.id)?;
    home.put(&next, 20);
    home.all(|ledger| ledger.lag = 80);
    is_above(&next.id).await?;
    home.all(|ledger| ledger.lag = 20);
    it.world.deposit_in_time(&next.id).await.signed()?;
    Ok(())
}

/// Heights without a block stand around the deposit's.
pub async fn skipped(script: &'static dyn Script) -> Played {
    script.skips()?;
    let honest = control(script).await?;
    let world = World::start(script).await?;
    let deal = Deal::new(script, 1);
    let tx = deposit(script, "deposit", deal.id)?;
    world.home.all(|ledger| ledger.skip(3));
    world.home.put(&tx, 0);
    world.deposit(&tx.id).await.is_refused(EARLY)?;
    world.home.all(|ledger| {
        ledger.skip(2);
        ledger.grow(script.depth());
    });
    let signed = world.deposit_in_time(&tx.id).await.signed()?;
    // The same deposit at another time.
    let expected = script.deposits(DepositKind::Plain, [deal.id, deal.id])?;
    mints(&world, &tx.id, &signed, &expected[0].expected)?;
    ensure(signed.key == honest.key && signed != honest, || {
        format!("{signed:?} beside {honest:?}")
    })
}

/// One provider is on another fork; then each is on its own.
pub async fn forked(script: &'static dyn Script) -> Played {
    let honest = control(script).await?;
    let depth = script.depth() + 3;
    for alone in 0..3 {
        let it = Funded::start(script).await?;
        it.world.home.nodes[alone].edit(|ledger| {
            let gone = ledger.reorg(depth);
            ledger.push(gone);
        });
        it.claim().await.is(&honest)?;
    }
    let it = Funded::start(script).await?;
    let home = &it.world.home;
    for (at, node) in home.nodes.iter().enumerate() {
        node.edit(|ledger| (0..at).for_each(|_| drop(ledger.reorg(depth))));
    }
    it.claim().await.is_refused(SHORT_OF_VOTES)?;
    it.world.is_unsigned().await?;
    let first = home.ledger();
    home.all(|ledger| *ledger = first.clone());
    it.world.deposit_in_time(&it.tx).await.is(&honest)
}

/// All nodes move to another fork between two calls, whichever: what is signed is of one fork alone, and halts the
/// chain when it was of the one that is gone.
pub async fn during(script: &'static dyn Script) -> Played {
    let it = Funded::start(script).await?;
    let one = it.world.home.ledger();
    let mut other = one.clone();
    let gone = other.reorg(script.depth() + 3);
    other.push(gone);
    other.grow(script.depth() + 2);
    let old = afresh(script, &it.tx, &one).await?;
    let new = afresh(script, &it.tx, &other).await?;
    ensure(old != new, || "both forks are alike".into())?;
    let moments = (0..=14).chain([1_000]);
    let moments = moments.map(|calls| switching(script, calls, (&old, &new, &other)));
    let played = join_all(moments).await;
    played.into_iter().collect()
}

async fn switching(
    script: &'static dyn Script,
    calls: usize,
    (old, new, other): (&Signed, &Signed, &Ledger),
) -> Played {
    let it = Funded::start(script).await?;
    let nodes = &it.world.home.nodes;
    for node in nodes {
        node.switch(calls, other.clone());
    }
    let verdict = it.claim().await;
    let part = format!("after {calls} calls");
    let is_old = verdict == Verdict::Signed(old.clone());
    let is_new = verdict == Verdict::Signed(new.clone());
    let is_one = match calls {
        0 => is_new,
        1_000 => is_old,
        _ => is_old || is_new || !matches!(verdict, Verdict::Signed(_)),
    };
    ensure(is_one, || format!("{part}: {verdict:?}"))?;
    for node in nodes {
        node.switch(0, other.clone());
    }
    let later = it.world.deposit_in_time(&it.tx).await;
    match is_old {
        true => within(&part, later.is_refused(HALTED)),
        false => within(&part, later.is(new)),
    }
}
