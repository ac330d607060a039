//! Prices that move, tokens that lose their worth, and verdicts that others might provoke.

use alloy::primitives::Address;
use anyhow::{Context, Result, ensure};
use devnet::world::order::text;
use std::time::Duration;
use tokio::time::sleep;

use super::{deposits::mint, life::Wish, stranger::Fixture, wealth::Coin};

/// Ten of gold for dollars.
const GOLD: Wish = Wish {
    pays: Coin::Gold,
    gets: Coin::Dollar,
    amount: 10_000_000,
};
const BRIDGED: Wish = Wish {
    pays: Coin::Bridged,
    gets: Coin::Dollar,
    amount: 1_000_000_000,
};
/// What a quote in a contract's name is about: nobody has quoted this coin yet, so that nothing is known
/// of it.
const TRIED: Wish = Wish {
    amount: 20_000_000,
    ..BRIDGED
};
/// A price is asked for again after five seconds.
const HEARD: Duration = Duration::from_secs(6);
const POLL: Duration = Duration::from_millis(200);

pub async fn give_gold(fixture: &mut Fixture) -> Result<()> {
    let (arena, who) = (fixture.arena.clone(), fixture.stranger.address());
    let site = &arena.world.origin;
    arena
        .send(&site.node, who, mint(arena.gold, who, 2 * GOLD.amount))
        .await?;
    Ok(())
}

pub async fn late(fixture: &mut Fixture) -> Result<()> {
    let arena = fixture.arena.clone();
    let mut body = GOLD.body(&arena, fixture.stranger.address())?;
    body["slippageTolerance"] = "200".into();
    let said = fixture.stranger.asks(&body).await?;
    let until = said.body["details"]["validUntil"]
        .as_u64()
        .context("it holds for ever")?;
    let mut own = super::life::Life::new(&arena, fixture.stranger.account.clone(), GOLD);
    own.promised(&said.body).await?;
    arena.moves(Coin::Gold, Coin::Gold.usual() / 10 * 9).await?;
    fixture.victim.deposit().await?;
    while arena.world.origin.node.tip().await?.time <= until + 1 {
        sleep(POLL).await;
    }
    own.deposit().await?;
    fixture.ended("his order, paid late", &own).await
}

pub async fn depeg(fixture: &mut Fixture) -> Result<()> {
    let (arena, who) = (fixture.arena.clone(), fixture.stranger.address());
    let site = &arena.world.origin;
    arena
        .send(&site.node, who, mint(arena.bridged, who, BRIDGED.amount))
        .await?;
    arena
        .moves(Coin::Bridged, Coin::Bridged.usual() / 10 * 9)
        .await?;
    sleep(HEARD).await;
    Ok(())
}

pub async fn depegged(fixture: &mut Fixture) -> Result<()> {
    let mut own = fixture.stranger.order(BRIDGED, |_| ()).await?;
    let promised = own.quote().await?.output;
    fixture.note(
        "for 1,000 of the bridged he is promised",
        format!("{promised} millionths"),
    );
    own.deposit().await?;
    fixture.victim.deposit().await?;
    fixture.ended("his order", &own).await
}

/// The contracts hold a little, so that a quote in their name can be tried.
pub async fn feed_contracts(fixture: &mut Fixture) -> Result<()> {
    let arena = fixture.arena.clone();
    for (_, who) in contracts(fixture) {
        hold(fixture, who).await?;
    }
    let somebody = arena.somebody()?.address();
    hold(fixture, somebody).await?;
    fixture.other = Some(somebody);
    Ok(())
}

fn contracts(fixture: &Fixture) -> [(&'static str, Address); 4] {
    let (origin, destination) = (
        &fixture.arena.world.origin,
        &fixture.arena.world.destination,
    );
    [
        ("router", origin.router),
        ("the other router", destination.router),
        ("proxy", origin.proxy),
        ("depository", origin.depository),
    ]
}

async fn hold(fixture: &Fixture, who: Address) -> Result<()> {
    let (arena, from) = (&fixture.arena, fixture.stranger.address());
    let gift = mint(arena.bridged, who, TRIED.amount);
    arena.send(&arena.world.origin.node, from, gift).await?;
    Ok(())
}

pub async fn token_off(fixture: &mut Fixture) -> Result<()> {
    let arena = fixture.arena.clone();
    let mut told = Vec::new();
    for (name, who) in contracts(fixture) {
        let mut body = TRIED.body(&arena, who)?;
        let both = fixture.stranger.asks(&body).await?;
        body["recipient"] = text(fixture.stranger.address()).into();
        let user = fixture.stranger.asks(&body).await?;
        told.push(format!("{name} {user}, and for itself {both}"));
    }
    fixture.note("quotes", told.join(", "));
    let somebody = fixture.other.context("nobody was prepared")?;
    let said = fixture
        .stranger
        .asks(&TRIED.body(&arena, somebody)?)
        .await?;
    fixture.note("somebody else's quote for the same", &said);
    ensure!(said.is_yes(), "he gets no quote for it: {}", said.body);
    fixture.victim.quote().await?;
    Ok(())
}
