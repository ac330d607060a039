//! Orders whose calls, fills or deposits are made to cost somebody else.

use alloy::{
    eips::eip7702::Authorization,
    primitives::{Address, Bytes, U256, hex},
    sol_types::SolCall,
};
use anyhow::{Context, Result};
use devnet::{
    account::Account,
    contracts::{Burner, Depository, FakeEmitter, Wallet},
    node::Payload,
    world::{Deposit, Site, order::text},
};
use serde_json::{Value, json};

use super::{
    life::{Life, MILLI, Wish},
    stranger::Scene,
};

const SMALL: Wish = Wish {
    amount: 50 * MILLI,
    ..Wish::ETHER
};
/// Bytes of a call that no node takes in a transaction.
const LARGE: usize = 160 << 10;
const LOGS: u64 = 4_000;
/// More than an attestation has room for.
const DEPOSITS: usize = 160;

pub async fn deploy_burner(scene: &mut Scene) -> Result<()> {
    scene.prop = Some(scene.arena.world.destination.deploy("Burner", &[]).await?);
    Ok(())
}

pub async fn burner(scene: &mut Scene) -> Result<()> {
    let (arena, burner) = (scene.arena.clone(), scene.prop()?);
    let call = |data: Vec<u8>| json!([{"to": text(burner), "value": "0", "data": hex::encode_prefixed(data)}]);
    let paid = call(Burner::paidCall {}.abi_encode());
    let said = scene.stranger.order(SMALL, |body| body["txs"] = paid).await;
    let mut priced = said.context("the first")?;
    let later = call(Burner::laterCall {}.abi_encode());
    let mut armed = scene
        .stranger
        .order(SMALL, |body| body["txs"] = later)
        .await?;
    let arm = Payload::call(burner, &Burner::armCall { to: true });
    scene.stranger.sends(&arena.world.destination, arm).await?;
    priced.deposit().await?;
    armed.deposit().await?;
    scene.victim.deposit().await?;
    scene.ended("the burn that is quoted", &priced).await?;
    scene
        .ended("the burn that is armed after the quote", &armed)
        .await
}

pub async fn unfillable(scene: &mut Scene) -> Result<()> {
    let arena = scene.arena.clone();
    let to = text(scene.stranger.address());
    let mut body = SMALL.body(&arena, scene.stranger.address())?;
    let data = format!("0x{}", "11".repeat(LARGE));
    body["txs"] = json!([{"to": to, "value": "0", "data": data}]);
    let said = scene.stranger.asks(&body).await?;
    scene.tell("a quote for 160 KiB of calldata", said);
    let authority = arena.somebody()?;
    let valid = authorization(&arena.world.destination, &authority)?;
    let mut junk = valid.clone();
    junk["r"] = "0x5".into();
    let mut body = SMALL.body(&arena, scene.stranger.address())?;
    body["authorizationList"] = json!([junk]);
    let said = scene.stranger.asks(&body).await?;
    scene.tell("a quote with a junk authorization", said);
    let mut stale = scene
        .stranger
        .order(SMALL, |body| body["authorizationList"] = json!([valid]))
        .await?;
    let used = Payload::pay(authority.address(), U256::from(1));
    arena
        .world
        .destination
        .node
        .transact(authority.address(), used)
        .await?;
    stale.deposit().await?;
    scene.victim.deposit().await?;
    scene
        .ended("the order whose authorization is stale", &stale)
        .await
}

/// An account's first, to be a wallet of code that is not there.
fn authorization(site: &Site, who: &Account) -> Result<Value> {
    let one = Authorization {
        chain_id: U256::from(site.node.chain_id),
        address: site.token,
        nonce: 0,
    };
    let signed = who.sign_digest(one.signature_hash())?;
    let part = |from: usize| -> Result<String> {
        let part = signed.get(from..from + 32).context("a short signature")?;
        Ok(hex::encode_prefixed(part))
    };
    let v = signed.get(64).copied().context("a short signature")?;
    Ok(
        json!({"chainId": site.node.chain_id, "address": text(one.address), "nonce": 0,
              "yParity": v - 27, "r": part(0)?, "s": part(32)?}),
    )
}

/// A wallet and a source of noise behind it.
pub async fn deploy_noise(scene: &mut Scene) -> Result<()> {
    let site = &scene.arena.world.origin;
    scene.prop = Some(site.deploy("Wallet", &[]).await?);
    scene.other = Some(site.deploy("FakeEmitter", &[]).await?);
    Ok(())
}

pub async fn junk(scene: &mut Scene) -> Result<()> {
    let order = scene.order().await?;
    let noise = noise(scene)?;
    let wei = deposit(scene, 1, order);
    together(scene, vec![noise.clone(), wei]).await?;
    scene.victim.deposit().await?;
    let mut loud = scene.stranger.order(SMALL, |_| ()).await?;
    let order = loud.quote().await?.order.id;
    let paid = deposit(scene, SMALL.amount, order);
    loud.deposit = Some(together(scene, vec![noise, paid]).await?);
    let mut crowded = scene.stranger.order(SMALL, |_| ()).await?;
    let order = crowded.quote().await?.order.id;
    let mut calls = vec![deposit(scene, 1, order); DEPOSITS];
    calls.push(deposit(scene, SMALL.amount, order));
    together(scene, calls).await?;
    told(scene, "4,000 logs beside his deposit", &loud).await?;
    told(scene, "160 deposits beside his", &crowded).await
}

async fn told(scene: &mut Scene, what: &str, own: &Life) -> Result<()> {
    scene.ended(what, own).await
}

fn noise(scene: &Scene) -> Result<Wallet::Call> {
    let count = U256::from(LOGS);
    let to = scene.other.context("no source of noise")?;
    Ok(call(to, FakeEmitter::noiseCall { count }.abi_encode(), 0))
}

fn deposit(scene: &Scene, amount: u64, id: alloy::primitives::B256) -> Wallet::Call {
    let depositor = scene.stranger.address();
    let data = Depository::depositNativeCall { depositor, id }.abi_encode();
    call(scene.arena.world.origin.depository, data, amount)
}

fn call(to: Address, data: Vec<u8>, value: u64) -> Wallet::Call {
    Wallet::Call {
        to,
        data: Bytes::from(data),
        value: U256::from(value),
        allowFailure: false,
    }
}

/// All in one transaction; its first deposit.
async fn together(scene: &Scene, calls: Vec<Wallet::Call>) -> Result<Deposit> {
    let site = &scene.arena.world.origin;
    let value = calls.iter().map(|call| call.value).sum();
    let run = Payload::call(scene.prop()?, &Wallet::runCall { calls }).value(value);
    let receipt = scene.stranger.sends(site, run).await?;
    site.deposited(&receipt).await
}
