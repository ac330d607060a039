//! One of three providers lies. Each cell has three parts: where all are honest the deposit is signed; where one lies
//! the same is signed; where one lies and one of the others is down, nothing is, which shows that the lie was told.

use crate::{
    cells::{Funded, Played, Stop, control, deposit, ensure, within},
    family::{Offered, PaymentKind, Script, Twist},
    ledger::Ledger,
    node::Manner,
    world::{Setup, in_time, pause},
};

/// Why nothing is signed when too few agree.
pub const SHORT_OF_VOTES: &str = "QUORUM_UNAVAILABLE";
pub const DOWN: Manner = Manner::Status(503, None);

/// Changes a liar's ledger, in which the transaction with this id is.
type Spoil<'a> = dyn Fn(&mut Ledger, &str) -> Offered<()> + 'a;

/// A lie about one thing that the provider would have to answer for: it is disputed, and is set aside if `aside`.
async fn lied(script: &'static dyn Script, aside: bool, spoil: &Spoil<'_>) -> Played {
    let honest = control(script).await?;
    for liar in 0..3 {
        let part = format!("provider {liar} lies");
        let it = Funded::start(script).await?;
        let home = &it.world.home;
        home.spoil(liar, |ledger| spoil(ledger, &it.tx))?;
        within(&part, it.claim().await.is(&honest))?;
        within(&part, home.is_disputed(liar, aside).await)?;
        let part = format!("{part}, and another is down");
        let it = Funded::start(script).await?;
        let home = &it.world.home;
        home.spoil(liar, |ledger| spoil(ledger, &it.tx))?;
        home.nodes[(liar + 1) % 3].behave(DOWN);
        within(&part, it.claim().await.is_refused(SHORT_OF_VOTES))?;
        within(&part, it.world.is_unsigned().await)?;
    }
    Ok(())
}

/// The liar shows the deposit changed.
pub async fn twisted(script: &'static dyn Script, twist: Twist) -> Played {
    let spoil = |ledger: &mut Ledger, id: &str| -> Offered<()> {
        let (_, _, tx) = ledger.find(id).unwrap();
        let changed = script.twist(twist, tx)?;
        ledger.replace(changed);
        Ok(())
    };
    lied(script, true, &spoil).await
}

/// The liar knows nothing of the deposit. It may have pruned it: that alone sets nobody aside.
pub async fn denied(script: &'static dyn Script) -> Played {
    let spoil = |ledger: &mut Ledger, id: &str| -> Offered<()> {
        ledger.forget(id);
        Ok(())
    };
    lied(script, false, &spoil).await
}

pub async fn wrong_hash(script: &'static dyn Script) -> Played {
    let spoil = |ledger: &mut Ledger, id: &str| -> Offered<()> {
        ledger.block_of(id).hash.0[7] ^= 1;
        Ok(())
    };
    lied(script, true, &spoil).await
}

pub async fn wrong_time(script: &'static dyn Script) -> Played {
    let spoil = |ledger: &mut Ledger, id: &str| -> Offered<()> {
        ledger.block_of(id).time -= 1;
        Ok(())
    };
    lied(script, true, &spoil).await
}

pub async fn other_chain(script: &'static dyn Script) -> Played {
    let spoil = |ledger: &mut Ledger, _: &str| -> Offered<()> {
        ledger.identity = 77;
        Ok(())
    };
    lied(script, true, &spoil).await
}

/// A tip of the future makes nothing final that is not.
pub async fn future(script: &'static dyn Script) -> Played {
    let honest = control(script).await?;
    for liar in 0..3 {
        let short = script.depth() - 1;
        let it = Funded::with(script, Setup::default(), short).await?;
        let home = &it.world.home;
        home.nodes[liar].edit(|ledger| ledger.grow(1_000));
        it.claim().await.is_refused("TRANSACTION_NOT_FINALIZED")?;
        let down = &home.nodes[(liar + 1) % 3];
        down.behave(DOWN);
        it.claim().await.is_refused("TRANSACTION_NOT_FINALIZED")?;
        it.world.is_unsigned().await?;
        down.behave(Manner::Plain);
        for (at, node) in home.nodes.iter().enumerate() {
            node.edit(|ledger| {
                if at != liar {
                    ledger.grow(1);
                }
            });
        }
        it.world.deposit_in_time(&it.tx).await.is(&honest)?;
    }
    Ok(())
}

/// A tip that is late can delay, and never costs a vote; and nothing is final from a late tip that was not then.
pub async fn late(script: &'static dyn Script, by: u64) -> Played {
    let honest = control(script).await?;
    for liar in 0..3 {
        let it = Funded::start(script).await?;
        let home = &it.world.home;
        home.nodes[liar].edit(|ledger| ledger.truncate(by));
        it.claim().await.is(&honest)?;
        pause().await;
        let health = &home.quorum.health()[liar];
        ensure(health.disputes == 0, || format!("{health:?}"))?;
        let it = Funded::with(script, Setup::default(), script.depth()).await?;
        let home = &it.world.home;
        let whole = home.ledger();
        home.nodes[liar].edit(|ledger| ledger.truncate(by));
        let down = &home.nodes[(liar + 1) % 3];
        down.behave(DOWN);
        let verdict = it.claim().await;
        match by {
            1 => verdict.is_refused("TRANSACTION_NOT_FINALIZED")?,
            _ => verdict.is_missing(script)?,
        }
        it.world.is_unsigned().await?;
        home.nodes[liar].edit(|ledger| *ledger = whole);
        down.behave(Manner::Plain);
        it.world.deposit_in_time(&it.tx).await.is(&honest)?;
    }
    Ok(())
}

/// A provider that was honest about one deposit lies about the next.
pub async fn second(script: &'static dyn Script) -> Played {
    let forge = |ledger: &mut Ledger, id: &str| -> Offered<()> {
        let (_, _, tx) = ledger.find(id).unwrap();
        let changed = script.twist(Twist::Amount, tx)?;
        ledger.replace(changed);
        Ok(())
    };
    let two = async || -> Result<_, Stop> {
        let it = Funded::start(script).await?;
        let next = deposit(script, "second deposit", it.deal.id)?;
        it.world.home.put(&next, script.depth() + 2);
        it.signed().await?;
        Ok((it, next))
    };
    let (it, next) = two().await?;
    let honest = it.world.deposit_in_time(&next.id).await.signed()?;
    for liar in 0..3 {
        let (it, next) = two().await?;
        let home = &it.world.home;
        home.spoil(liar, |ledger| forge(ledger, &next.id))?;
        it.world.deposit(&next.id).await.is(&honest)?;
        home.is_disputed(liar, true).await?;
        let (it, next) = two().await?;
        let home = &it.world.home;
        home.spoil(liar, |ledger| forge(ledger, &next.id))?;
        home.nodes[(liar + 1) % 3].behave(DOWN);
        let verdict = it.world.deposit(&next.id).await;
        verdict.is_refused(SHORT_OF_VOTES)?;
    }
    Ok(())
}

/// Who lied is not believed again because another is gone.
pub async fn aside(script: &'static dyn Script) -> Played {
    let honest = control(script).await?;
    let it = Funded::start(script).await?;
    let (home, whole) = (&it.world.home, it.world.home.ledger());
    home.spoil(0, |ledger| {
        let (_, _, tx) = ledger.find(&it.tx).unwrap();
        let changed = script.twist(Twist::Amount, tx)?;
        ledger.replace(changed);
        Ok(())
    })?;
    it.claim().await.is(&honest)?;
    home.is_disputed(0, true).await?;
    home.nodes[0].edit(|ledger| *ledger = whole);
    let next = deposit(script, "second deposit", it.deal.id)?;
    home.put(&next, script.depth() + 2);
    home.nodes[1].behave(DOWN);
    let verdict = it.world.deposit(&next.id).await;
    verdict.is_refused(SHORT_OF_VOTES)?;
    home.nodes[1].behave(Manner::Plain);
    it.world.deposit_in_time(&next.id).await.signed()?;
    Ok(())
}

/// Two lie, each in its own way.
pub async fn two(script: &'static dyn Script) -> Played {
    let honest = control(script).await?;
    let it = Funded::start(script).await?;
    let (home, whole) = (&it.world.home, it.world.home.ledger());
    for (liar, twist) in [(0, Twist::Amount), (1, Twist::Order)] {
        home.spoil(liar, |ledger| {
            let (_, _, tx) = ledger.find(&it.tx).unwrap();
            let changed = script.twist(twist, tx)?;
            ledger.replace(changed);
            Ok(())
        })?;
    }
    it.claim().await.is_refused(SHORT_OF_VOTES)?;
    it.world.is_unsigned().await?;
    home.all(|ledger| *ledger = whole.clone());
    it.world.deposit_in_time(&it.tx).await.is(&honest)
}

/// One shows a fill that nobody made.
pub async fn forged_fill(script: &'static dyn Script) -> Played {
    let it = Funded::start(script).await?;
    let (_, onchain) = it.signed().await?;
    let home = &it.world.home;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    // The others have another transaction in its place.
    let nothing = deposit(script, "another transaction", it.deal.id)?;
    for (at, node) in home.nodes.iter().enumerate() {
        let tx = if at == 0 { &fill } else { &nothing };
        node.edit(|ledger| {
            ledger.put(tx.clone());
            ledger.grow(script.depth() + 2);
        });
    }
    let claimed = async || {
        let deposit = (it.tx.as_str(), onchain);
        it.deal.filled(&it.world, deposit, (&fill.id, false)).await
    };
    claimed().await.is_refused("TRANSACTION_MISSING")?;
    home.nodes[1].behave(DOWN);
    claimed().await.is_refused(SHORT_OF_VOTES)?;
    home.nodes[1].behave(Manner::Plain);
    for node in &home.nodes[1..] {
        node.edit(|ledger| ledger.block_of(&nothing.id).txs.push(fill.clone()));
    }
    let signed = in_time(claimed).await.signed()?;
    it.deal.moved(&it.world, &it.tx, &signed, "fill")
}

/// Answers that are none: the provider has no vote, whatever they would have said.
pub async fn unreadable(script: &'static dyn Script, manner: &Manner) -> Played {
    let honest = control(script).await?;
    // These take long to make.
    let liars = match manner {
        Manner::Flood | Manner::Bomb => 1,
        _ => 3,
    };
    for liar in 0..liars {
        let it = Funded::start(script).await?;
        let home = &it.world.home;
        home.nodes[liar].behave(manner.clone());
        it.claim().await.is(&honest)?;
        home.is_failing(liar).await?;
        let it = Funded::start(script).await?;
        let home = &it.world.home;
        home.nodes[liar].behave(manner.clone());
        home.nodes[(liar + 1) % 3].behave(DOWN);
        it.claim().await.is_refused(SHORT_OF_VOTES)?;
        it.world.is_unsigned().await?;
    }
    Ok(())
}
