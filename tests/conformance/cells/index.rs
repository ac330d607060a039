//! An index is one of the providers, or the only one: it is believed as a node is, and no more.

use crate::{
    cells::{
        Funded, Played, Stop, control, deposit, ensure,
        lies::{DOWN, SHORT_OF_VOTES},
        within,
    },
    family::{Offered, PaymentKind, Script, Twist},
    ledger::Ledger,
    node::Manner,
    verdict::Signed,
    world::{SHORT, Seats, Setup, in_time, pause},
};

/// The index beside two nodes.
const INDEX: usize = 2;
/// Lies that a provider has to answer for.
const TWISTS: [Twist; 6] = [
    Twist::Amount,
    Twist::Added,
    Twist::Dropped,
    Twist::Order,
    Twist::Other,
    Twist::OddHex,
];

async fn funded(script: &'static dyn Script, seats: Seats) -> Result<Funded, Stop> {
    let setup = Setup {
        seats,
        ..Setup::default()
    };
    Funded::with(script, setup, script.depth() + 2).await
}

/// No provider but the index: what is signed is what three nodes show, and without it nothing is.
pub async fn alone(script: &'static dyn Script) -> Played {
    let it = funded(script, Seats::Index).await?;
    let honest = control(script).await?;
    it.claim().await.is(&honest)?;
    let (home, (_, onchain)) = (&it.world.home, it.signed().await?);
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    home.put(&fill, script.depth() + 2);
    let claimed = async || {
        let deposit = (it.tx.as_str(), onchain);
        it.deal.filled(&it.world, deposit, (&fill.id, false)).await
    };
    let signed = in_time(claimed).await.signed()?;
    it.deal.moved(&it.world, &it.tx, &signed, "fill")?;
    let next = deposit(script, "second deposit", it.deal.id)?;
    home.put(&next, script.depth() + 2);
    home.nodes[0].behave(DOWN);
    let verdict = it.world.deposit(&next.id).await;
    verdict.is_refused(SHORT_OF_VOTES)?;
    home.nodes[0].behave(Manner::Plain);
    it.world.deposit_in_time(&next.id).await.signed()?;
    Ok(())
}

/// A node and the index have to agree: each is enough to have nothing signed.
pub async fn pair(script: &'static dyn Script) -> Played {
    let it = funded(script, Seats::Pair).await?;
    let honest = control(script).await?;
    it.claim().await.is(&honest)?;
    for at in [0, 1] {
        let part = format!("provider {at}");
        let it = funded(script, Seats::Pair).await?;
        it.world
            .home
            .spoil(at, |ledger| twisted(script, Twist::Amount, ledger, &it.tx))?;
        within(&part, it.claim().await.is_refused(SHORT_OF_VOTES))?;
        within(&part, it.world.is_unsigned().await)?;
        let it = funded(script, Seats::Pair).await?;
        it.world.home.nodes[at].behave(DOWN);
        within(&part, it.claim().await.is_refused(SHORT_OF_VOTES))?;
        it.world.home.behave(&Manner::Plain);
        let verdict = it.world.deposit_in_time(&it.tx).await;
        within(&part, verdict.is(&honest))?;
    }
    Ok(())
}

fn twisted(
    script: &'static dyn Script,
    twist: Twist,
    ledger: &mut Ledger,
    id: &str,
) -> Offered<()> {
    let (_, _, tx) = ledger.find(id).unwrap();
    let changed = script.twist(twist, tx)?;
    ledger.replace(changed);
    Ok(())
}

/// Changes a liar's ledger, in which the transaction with this id is.
type Spoil<'a> = dyn Fn(&mut Ledger, &str) -> Offered<()> + 'a;

/// One of two nodes and the index lies: it is outvoted and disputed, set aside if `aside`; with another one down
/// nothing is signed.
async fn lied(
    script: &'static dyn Script,
    (liar, aside): (usize, bool),
    honest: &Signed,
    spoil: &Spoil<'_>,
) -> Played {
    let it = funded(script, Seats::Beside).await?;
    let home = &it.world.home;
    home.spoil(liar, |ledger| spoil(ledger, &it.tx))?;
    it.claim().await.is(honest)?;
    home.is_disputed(liar, aside).await?;
    let it = funded(script, Seats::Beside).await?;
    let home = &it.world.home;
    home.spoil(liar, |ledger| spoil(ledger, &it.tx))?;
    home.nodes[(liar + 1) % 3].behave(DOWN);
    it.claim().await.is_refused(SHORT_OF_VOTES)?;
    it.world.is_unsigned().await
}

/// The index lies, then a node beside it.
pub async fn lies(script: &'static dyn Script) -> Played {
    let it = funded(script, Seats::Beside).await?;
    let honest = control(script).await?;
    it.claim().await.is(&honest)?;
    for twist in TWISTS {
        let spoil = |ledger: &mut Ledger, id: &str| twisted(script, twist, ledger, id);
        for liar in [INDEX, 0] {
            let played = lied(script, (liar, true), &honest, &spoil).await;
            within(&format!("provider {liar} lies: {twist:?}"), played)?;
        }
    }
    Ok(())
}

/// The index shows the deposit's block otherwise, or another chain, or no deposit.
pub async fn elsewhere(script: &'static dyn Script) -> Played {
    let it = funded(script, Seats::Beside).await?;
    let honest = control(script).await?;
    it.claim().await.is(&honest)?;
    let cases: [(&str, bool, &Spoil<'_>); 4] = [
        ("another hash", true, &|ledger, id| {
            ledger.block_of(id).hash.0[7] ^= 1;
            Ok(())
        }),
        ("another time", true, &|ledger, id| {
            ledger.block_of(id).time -= 1;
            Ok(())
        }),
        ("another chain", true, &|ledger, _| {
            ledger.identity = 77;
            Ok(())
        }),
        ("no deposit", false, &|ledger, id| {
            ledger.forget(id);
            Ok(())
        }),
    ];
    for (what, aside, spoil) in cases {
        let played = lied(script, (INDEX, aside), &honest, spoil).await;
        within(what, played)?;
    }
    Ok(())
}

/// The index is behind: that costs no vote, and nobody is disputed.
pub async fn late(script: &'static dyn Script) -> Played {
    for by in [1, 100] {
        let it = funded(script, Seats::Beside).await?;
        let honest = control(script).await?;
        let home = &it.world.home;
        home.nodes[INDEX].edit(|ledger| ledger.truncate(by));
        it.claim().await.is(&honest)?;
        pause().await;
        let health = &home.quorum.health()[INDEX];
        ensure(health.disputes == 0, || format!("{by}: {health:?}"))?;
    }
    Ok(())
}

/// The index is lost, in each way: two nodes are enough, one is not.
pub async fn silent(script: &'static dyn Script) -> Played {
    let setup = Setup {
        seats: Seats::Beside,
        timeout: SHORT,
        ..Setup::default()
    };
    let manners = [
        DOWN,
        Manner::Status(429, Some("1")),
        Manner::Hang,
        Manner::Drip,
        Manner::Drop,
    ];
    for manner in manners {
        let part = format!("{manner:?}");
        let it = Funded::with(script, setup, script.depth() + 2).await?;
        let honest = control(script).await?;
        it.world.home.nodes[INDEX].behave(manner.clone());
        within(&part, it.world.deposit_in_time(&it.tx).await.is(&honest))?;
        let it = Funded::with(script, setup, script.depth() + 2).await?;
        let home = &it.world.home;
        home.nodes[INDEX].behave(manner);
        home.nodes[0].behave(DOWN);
        within(&part, it.claim().await.is_refused(SHORT_OF_VOTES))?;
        it.world.is_unsigned().await?;
        home.behave(&Manner::Plain);
        within(&part, it.world.deposit_in_time(&it.tx).await.is(&honest))?;
    }
    Ok(())
}

/// What the index answers is none.
pub async fn unreadable(script: &'static dyn Script) -> Played {
    let manners = [
        Manner::Truncated,
        Manner::Doubled,
        Manner::Flood,
        Manner::Bomb,
    ];
    for manner in manners {
        let part = format!("{manner:?}");
        let it = funded(script, Seats::Beside).await?;
        let honest = control(script).await?;
        let home = &it.world.home;
        home.nodes[INDEX].behave(manner.clone());
        within(&part, it.claim().await.is(&honest))?;
        within(&part, home.is_failing(INDEX).await)?;
        let it = funded(script, Seats::Beside).await?;
        let home = &it.world.home;
        home.nodes[INDEX].behave(manner);
        home.nodes[0].behave(DOWN);
        within(&part, it.claim().await.is_refused(SHORT_OF_VOTES))?;
        it.world.is_unsigned().await?;
    }
    Ok(())
}
