//! Deposits that are not what an order asks for.

use alloy::primitives::{Address, U256};
use anyhow::Result;
use devnet::{
    claim,
    contracts::Token,
    node::Payload,
    world::{Deposit, SignedOrder},
};
use serde_json::Value;

use super::{
    arena::lock,
    life::{MILLI, Wish},
    stranger::Scene,
};

/// Of the stranger's own orders.
const SMALL: Wish = Wish {
    amount: 50 * MILLI,
    ..Wish::ETHER
};
/// Dollars, where ether is asked for.
const DOLLARS: u64 = 20_000_000;
/// Of a token that anybody makes.
const MUCH: u64 = 1_000_000_000_000;

pub async fn dust(scene: &mut Scene) -> Result<()> {
    let order = scene.order().await?;
    scene.stranger.dusts(order).await?;
    let there = &scene.stranger.arena.world.destination;
    let one = (Address::ZERO, U256::from(1));
    scene.stranger.deposits(there, one, order).await?;
    scene.victim.deposit().await?;
    scene.stranger.dusts(order).await?;
    scene.victim.until(&["success"]).await?;
    scene.stranger.dusts(order).await?;
    let state = scene.victim.state();
    scene.tell("4 deposits of a wei; the user's request afterwards", state);
    Ok(())
}

pub async fn mint_worthless(scene: &mut Scene) -> Result<()> {
    let site = &scene.arena.world.origin;
    let token = site.deploy_token("Token").await?;
    site.mint(token, scene.stranger.address(), U256::from(3 * MUCH))
        .await?;
    scene.prop = Some(token);
    Ok(())
}

pub async fn worthless(scene: &mut Scene) -> Result<()> {
    let arena = scene.arena.clone();
    let token = scene.prop()?;
    let much = (token, U256::from(MUCH));
    let order = scene.order().await?;
    scene
        .stranger
        .deposits(&arena.world.origin, much, order)
        .await?;
    scene.victim.deposit().await?;
    scene
        .stranger
        .deposits(&arena.world.origin, much, order)
        .await?;
    let mut own = scene.stranger.order(SMALL, |_| ()).await?;
    let order = own.quote().await?.order.id;
    scene
        .stranger
        .deposits(&arena.world.origin, much, order)
        .await?;
    scene.victim.until(&["success"]).await?;
    arena.quiet().await?;
    scene.tell("his own order, paid with it", own.state());
    Ok(())
}

pub async fn wrong_currency(scene: &mut Scene) -> Result<()> {
    let arena = scene.arena.clone();
    let site = &arena.world.origin;
    let some = (site.token, U256::from(DOLLARS));
    let order = scene.order().await?;
    scene.stranger.deposits(site, some, order).await?;
    let mut own = scene.stranger.order(SMALL, |_| ()).await?;
    let order = own.quote().await?.order.clone();
    let deposit = scene.stranger.deposits(site, some, order.id).await?;
    scene.victim.deposit().await?;
    scene.ended("his own order", &own).await?;
    scene.victim.until(&["success"]).await?;
    recover(scene, &order, &deposit).await
}

/// The depositor takes back what nobody gives him back.
async fn recover(scene: &mut Scene, order: &SignedOrder, deposit: &Deposit) -> Result<()> {
    let site = &scene.arena.world.origin;
    let minted = claim::deposit(site, deposit.transaction);
    let said = scene
        .stranger
        .insists("depository-deposits", &minted, None)
        .await?;
    let mut body: Value = order.fields();
    body["chainId"] = site.id.into();
    body["transactionId"] = deposit.transaction.to_string().into();
    body["onchainId"] = deposit.onchain_id.to_string().into();
    let back = scene.stranger.insists("recover", &body, None).await?;
    if back.is_yes() {
        lock(&scene.arena.recovered).insert(deposit.onchain_id);
    }
    scene.tell("attestation of his deposit", said);
    scene.tell("its recovery", back);
    Ok(())
}

pub async fn doubles(scene: &mut Scene) -> Result<()> {
    let mut own = scene.stranger.order(SMALL, |_| ()).await?;
    for _ in 0..3 {
        own.pay().await?;
    }
    scene.victim.deposit().await?;
    for _ in 0..2 {
        own.pay().await?;
    }
    scene.ended("his order", &own).await?;
    own.pay().await?;
    scene.arena.quiet().await?;
    scene.tell("after six deposits", own.state());
    Ok(())
}

pub async fn small_first(scene: &mut Scene) -> Result<()> {
    let mut own = scene.stranger.order(SMALL, |_| ()).await?;
    let order = own.quote().await?.order.id;
    let site = &scene.stranger.arena.world.origin;
    let small = (Address::ZERO, U256::from(SMALL.amount / 100));
    scene.stranger.deposits(site, small, order).await?;
    scene.victim.deposit().await?;
    own.pay().await?;
    scene.ended("his order", &own).await?;
    scene.arena.quiet().await?;
    scene.tell("when all is done", own.state());
    Ok(())
}

/// A call of the token's that anybody may make.
pub fn mint(token: Address, to: Address, amount: u64) -> Payload {
    let amount = U256::from(amount);
    Payload::call(token, &Token::mintCall { to, amount })
}
