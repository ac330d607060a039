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
    stranger::Fixture,
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

pub async fn dust(fixture: &mut Fixture) -> Result<()> {
    let order = fixture.order().await?;
    fixture.stranger.dusts(order).await?;
    let there = &fixture.stranger.arena.world.destination;
    let one = (Address::ZERO, U256::from(1));
    fixture.stranger.deposits(there, one, order).await?;
    fixture.victim.deposit().await?;
    fixture.stranger.dusts(order).await?;
    fixture.victim.until(&["success"]).await?;
    fixture.stranger.dusts(order).await?;
    let state = fixture.victim.state();
    fixture.note("4 deposits of a wei; the user's request afterwards", state);
    Ok(())
}

pub async fn mint_worthless(fixture: &mut Fixture) -> Result<()> {
    let site = &fixture.arena.world.origin;
    let token = site.deploy_token("Token").await?;
    site.mint(token, fixture.stranger.address(), U256::from(3 * MUCH))
        .await?;
    fixture.prop = Some(token);
    Ok(())
}

pub async fn worthless(fixture: &mut Fixture) -> Result<()> {
    let arena = fixture.arena.clone();
    let token = fixture.prop()?;
    let much = (token, U256::from(MUCH));
    let order = fixture.order().await?;
    fixture
        .stranger
        .deposits(&arena.world.origin, much, order)
        .await?;
    fixture.victim.deposit().await?;
    fixture
        .stranger
        .deposits(&arena.world.origin, much, order)
        .await?;
    let mut own = fixture.stranger.order(SMALL, |_| ()).await?;
    let order = own.quote().await?.order.id;
    fixture
        .stranger
        .deposits(&arena.world.origin, much, order)
        .await?;
    fixture.victim.until(&["success"]).await?;
    arena.quiet().await?;
    fixture.note("his own order, paid with it", own.state());
    Ok(())
}

pub async fn wrong_currency(fixture: &mut Fixture) -> Result<()> {
    let arena = fixture.arena.clone();
    let site = &arena.world.origin;
    let some = (site.token, U256::from(DOLLARS));
    let order = fixture.order().await?;
    fixture.stranger.deposits(site, some, order).await?;
    let mut own = fixture.stranger.order(SMALL, |_| ()).await?;
    let order = own.quote().await?.order.clone();
    let deposit = fixture.stranger.deposits(site, some, order.id).await?;
    fixture.victim.deposit().await?;
    fixture.ended("his own order", &own).await?;
    fixture.victim.until(&["success"]).await?;
    recover(fixture, &order, &deposit).await
}

/// The depositor takes back what nobody gives him back.
async fn recover(fixture: &mut Fixture, order: &SignedOrder, deposit: &Deposit) -> Result<()> {
    let site = &fixture.arena.world.origin;
    let minted = claim::deposit(site, deposit.transaction);
    let said = fixture
        .stranger
        .insists("depository-deposits", &minted, None)
        .await?;
    let mut body: Value = order.fields();
    body["chainId"] = site.id.into();
    body["transactionId"] = deposit.transaction.to_string().into();
    body["onchainId"] = deposit.onchain_id.to_string().into();
    let back = fixture.stranger.insists("recover", &body, None).await?;
    if back.is_yes() {
        lock(&fixture.arena.recovered).insert(deposit.onchain_id);
    }
    fixture.note("attestation of his deposit", said);
    fixture.note("its recovery", back);
    Ok(())
}

pub async fn doubles(fixture: &mut Fixture) -> Result<()> {
    let mut own = fixture.stranger.order(SMALL, |_| ()).await?;
    for _ in 0..3 {
        own.pay().await?;
    }
    fixture.victim.deposit().await?;
    for _ in 0..2 {
        own.pay().await?;
    }
    fixture.ended("his order", &own).await?;
    own.pay().await?;
    fixture.arena.quiet().await?;
    fixture.note("after six deposits", own.state());
    Ok(())
}

pub async fn small_first(fixture: &mut Fixture) -> Result<()> {
    let mut own = fixture.stranger.order(SMALL, |_| ()).await?;
    let order = own.quote().await?.order.id;
    let site = &fixture.stranger.arena.world.origin;
    let small = (Address::ZERO, U256::from(SMALL.amount / 100));
    fixture.stranger.deposits(site, small, order).await?;
    fixture.victim.deposit().await?;
    own.pay().await?;
    fixture.ended("his order", &own).await?;
    fixture.arena.quiet().await?;
    fixture.note("when all is done", own.state());
    Ok(())
}

/// A call of the token's that anybody may make.
pub fn mint(token: Address, to: Address, amount: u64) -> Payload {
    let amount = U256::from(amount);
    Payload::call(token, &Token::mintCall { to, amount })
}
