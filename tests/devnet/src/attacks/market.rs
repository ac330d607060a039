//! Prices that move, tokens that lose their worth, and verdicts that others might provoke.

use alloy::primitives::{Address, U256};
use anyhow::{Context, Result};
use devnet::{contracts::Token, node::Payload, world::order::text};
use std::time::Duration;
use tokio::time::sleep;

use super::{deposits::mint, life::Wish, stranger::Scene, wealth::Coin};

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
/// Dollars that a quote in a contract's name is about.
const TRIED: u64 = 20_000_000;
/// A price is asked for again after five seconds.
const HEARD: Duration = Duration::from_secs(6);
const POLL: Duration = Duration::from_millis(200);

pub async fn give_gold(scene: &mut Scene) -> Result<()> {
    let (arena, who) = (scene.arena.clone(), scene.stranger.address());
    let site = &arena.world.origin;
    arena
        .send(&site.node, who, mint(arena.gold, who, 2 * GOLD.amount))
        .await?;
    Ok(())
}

pub async fn late(scene: &mut Scene) -> Result<()> {
    let arena = scene.arena.clone();
    let mut body = GOLD.body(&arena, scene.stranger.address())?;
    body["slippageTolerance"] = "200".into();
    let said = scene.stranger.asks(&body).await?;
    let until = said.body["details"]["validUntil"]
        .as_u64()
        .context("it holds for ever")?;
    let mut own = super::life::Life::new(&arena, scene.stranger.account.clone(), GOLD);
    own.promised(&said.body).await?;
    arena.moves(Coin::Gold, Coin::Gold.usual() / 10 * 9).await?;
    scene.victim.deposit().await?;
    while arena.world.origin.node.tip().await?.time <= until + 1 {
        sleep(POLL).await;
    }
    own.deposit().await?;
    scene.ended("his order, paid late", &own).await
}

pub async fn depeg(scene: &mut Scene) -> Result<()> {
    let (arena, who) = (scene.arena.clone(), scene.stranger.address());
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

pub async fn depegged(scene: &mut Scene) -> Result<()> {
    let mut own = scene.stranger.order(BRIDGED, |_| ()).await?;
    let promised = own.quote().await?.output;
    scene.tell(
        "for 1,000 of the bridged he is promised",
        format!("{promised} millionths"),
    );
    own.deposit().await?;
    scene.victim.deposit().await?;
    scene.ended("his order", &own).await
}

/// The contracts hold a little, so that a quote in their name can be tried.
pub async fn feed_contracts(scene: &mut Scene) -> Result<()> {
    let arena = scene.arena.clone();
    for site in [&arena.world.origin, &arena.world.destination] {
        for to in [site.router, site.proxy] {
            let amount = U256::from(TRIED);
            let gift = Payload::call(site.token, &Token::transferCall { to, amount });
            scene.stranger.sends(site, gift).await?;
        }
    }
    Ok(())
}

pub async fn token_off(scene: &mut Scene) -> Result<()> {
    let arena = scene.arena.clone();
    let mut told = Vec::new();
    let (origin, destination) = (&arena.world.origin, &arena.world.destination);
    let names: [(&str, Address); 4] = [
        ("router", origin.router),
        ("the other router", destination.router),
        ("proxy", origin.proxy),
        ("depository", origin.depository),
    ];
    for (name, who) in names {
        let wish = Wish {
            amount: TRIED,
            ..Wish::DOLLARS
        };
        let mut body = wish.body(&arena, who)?;
        let both = scene.stranger.asks(&body).await?;
        body["recipient"] = text(scene.stranger.address()).into();
        let user = scene.stranger.asks(&body).await?;
        told.push(format!("{name} {user}, and for itself {both}"));
    }
    scene.tell("quotes", told.join(", "));
    scene.victim.quote().await?;
    Ok(())
}
