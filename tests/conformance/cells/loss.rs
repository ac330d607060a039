//! Providers that do not answer. Two of three are enough, one never is, and who was away comes back.

use crate::{
    cells::{
        Funded, Played, Stop, control, deposit, ensure,
        lies::{DOWN, SHORT_OF_VOTES},
        within,
    },
    deal::Deal,
    family::Script,
    node::Manner,
    tls::Tls,
    world::{SHORT, Setup, World},
};

/// The nodes in `silent` behave so; the others are honest.
async fn without(
    script: &'static dyn Script,
    manner: &Manner,
    silent: &[usize],
) -> Result<Funded, Stop> {
    let setup = Setup {
        timeout: SHORT,
        ..Setup::default()
    };
    let it = Funded::with(script, setup, script.depth() + 2).await?;
    for at in silent {
        it.world.home.nodes[*at].behave(manner.clone());
    }
    Ok(it)
}

/// One provider behaves so, then two; then all are well again.
pub async fn silent(script: &'static dyn Script, manner: &Manner) -> Played {
    let honest = control(script).await?;
    for one in 0..3 {
        let it = without(script, manner, &[one]).await?;
        let verdict = it.world.deposit_in_time(&it.tx).await;
        within("one is away", verdict.is(&honest))?;
        let two = [one, (one + 1) % 3];
        let it = without(script, manner, &two).await?;
        let verdict = it.claim().await;
        within("two are away", verdict.is_refused(SHORT_OF_VOTES))?;
        it.world.is_unsigned().await?;
        it.world.home.behave(&Manner::Plain);
        let verdict = it.world.deposit_in_time(&it.tx).await;
        within("all are back", verdict.is(&honest))?;
    }
    Ok(())
}

pub async fn all_down(script: &'static dyn Script) -> Played {
    let honest = control(script).await?;
    let it = without(script, &DOWN, &[0, 1, 2]).await?;
    it.claim().await.is_refused(SHORT_OF_VOTES)?;
    it.world.is_unsigned().await?;
    it.world.home.behave(&Manner::Plain);
    it.world.deposit_in_time(&it.tx).await.is(&honest)
}

/// Providers come and go between claims; a claim needs two of them, whichever they are.
pub async fn flapping(script: &'static dyn Script) -> Played {
    let it = without(script, &DOWN, &[]).await?;
    let home = &it.world.home;
    for round in 0..16_u64 {
        let tx = deposit(script, &format!("deposit {round}"), it.deal.id)?;
        home.put(&tx, script.depth() + 2);
        let mask = round % 8;
        for (at, node) in home.nodes.iter().enumerate() {
            let is_up = (mask >> at) & 1 == 1;
            node.behave(if is_up { Manner::Plain } else { DOWN });
        }
        let part = format!("round {round}, providers {mask:03b}");
        let played = match mask.count_ones() {
            2 | 3 => it.world.deposit_in_time(&tx.id).await.signed().map(drop),
            _ => it.world.deposit(&tx.id).await.is_refused(SHORT_OF_VOTES),
        };
        within(&part, played)?;
    }
    Ok(())
}

/// The name of a provider leads to another chain's node when it answers again.
pub async fn renamed(script: &'static dyn Script) -> Played {
    let it = Funded::start(script).await?;
    it.signed().await?;
    let home = &it.world.home;
    let next = deposit(script, "second deposit", it.deal.id)?;
    home.put(&next, script.depth() + 2);
    home.nodes[0].behave(DOWN);
    it.world.deposit(&next.id).await.signed()?;
    home.is_failing(0).await?;
    home.nodes[0].edit(|ledger| ledger.identity = 77);
    home.nodes[0].behave(Manner::Plain);
    home.nodes[1].behave(DOWN);
    let last = deposit(script, "third deposit", it.deal.id)?;
    home.put(&last, script.depth() + 2);
    let verdict = it.world.deposit(&last.id).await;
    verdict.is_refused(SHORT_OF_VOTES)?;
    home.nodes[0].edit(|ledger| ledger.identity = 1);
    it.world.deposit_in_time(&last.id).await.signed()?;
    Ok(())
}

/// A provider's answer leads elsewhere: it is not followed.
pub async fn redirected(script: &'static dyn Script) -> Played {
    let elsewhere = Funded::start(script).await?;
    let to = format!("http://{}/", elsewhere.world.home.nodes[0].address());
    silent(script, &Manner::Redirect(to)).await
}

/// Providers that are asked over TLS, and speak none, or whose certificate has expired: as if they did not answer.
/// A good certificate of the same authority is good enough.
pub async fn insecure(script: &'static dyn Script) -> Played {
    for secured in 1..=3 {
        for tls in [Tls::Absent, Tls::Expired] {
            let part = format!("{secured} with TLS {tls:?}");
            within(&part, over(script, (secured, tls), secured < 2).await)?;
        }
    }
    within("all are well", over(script, (3, Tls::Valid), true).await)
}

/// Whether a deposit is signed where so many providers are asked over TLS.
async fn over(script: &'static dyn Script, (secured, tls): (usize, Tls), signed: bool) -> Played {
    let honest = control(script).await?;
    let setup = Setup {
        secured,
        tls,
        ..Setup::default()
    };
    let world = World::with(script, setup).await?;
    let tx = deposit(script, "deposit", Deal::new(script, 1).id)?;
    world.home.put(&tx, script.depth() + 2);
    let verdict = world.deposit(&tx.id).await;
    match signed {
        true => verdict.is(&honest)?,
        false => verdict.is_refused(SHORT_OF_VOTES)?,
    }
    let statements = world.statements().await.len();
    ensure(statements == usize::from(signed), || {
        format!("{statements} statements")
    })?;
    // It is nobody's lie.
    let disputes: u64 = world
        .home
        .quorum
        .health()
        .iter()
        .map(|it| it.disputes)
        .sum();
    ensure(disputes == 0, || format!("{disputes} disputes"))?;
    match tls {
        Tls::Valid => Ok(()),
        Tls::Absent | Tls::Expired => world.home.is_failing(0).await,
    }
}
