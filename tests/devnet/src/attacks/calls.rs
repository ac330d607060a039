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
    world::{Deposit, DevChain, order::text},
};
use serde_json::{Value, json};

use super::{
    life::{Life, MILLI, Wish},
    stranger::Fixture,
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

pub async fn deploy_burner(fixture: &mut Fixture) -> Result<()> {
    fixture.prop = Some(
        fixture
            .arena
            .world
            .destination
            .deploy("Burner", &[])
            .await?,
    );
    Ok(())
}

pub async fn burner(fixture: &mut Fixture) -> Result<()> {
    let (arena, burner) = (fixture.arena.clone(), fixture.prop()?);
    let call = |data: Vec<u8>| json!([{"to": text(burner), "value": "0", "data": hex::encode_prefixed(data)}]);
    let paid = call(Burner::paidCall {}.abi_encode());
    let said = fixture
        .stranger
        .order(SMALL, |body| body["txs"] = paid)
        .await;
    let mut priced = said.context("the first")?;
    let later = call(Burner::laterCall {}.abi_encode());
    let mut armed = fixture
        .stranger
        .order(SMALL, |body| body["txs"] = later)
        .await?;
    let arm = Payload::call(burner, &Burner::armCall { to: true });
    fixture
        .stranger
        .sends(&arena.world.destination, arm)
        .await?;
    priced.deposit().await?;
    armed.deposit().await?;
    fixture.victim.deposit().await?;
    fixture.ended("the burn that is quoted", &priced).await?;
    fixture
        .ended("the burn that is armed after the quote", &armed)
        .await
}

pub async fn unfillable(fixture: &mut Fixture) -> Result<()> {
    let arena = fixture.arena.clone();
    let to = text(fixture.stranger.address());
    let mut body = SMALL.body(&arena, fixture.stranger.address())?;
    let data = format!("0x{}", "11".repeat(LARGE));
    body["txs"] = json!([{"to": to, "value": "0", "data": data}]);
    let said = fixture.stranger.asks(&body).await?;
    fixture.note("a quote for 160 KiB of calldata", said);
    let authority = arena.somebody()?;
    let valid = authorization(&arena.world.destination, &authority)?;
    let mut junk = valid.clone();
    junk["r"] = "0x5".into();
    let mut body = SMALL.body(&arena, fixture.stranger.address())?;
    body["authorizationList"] = json!([junk]);
    let said = fixture.stranger.asks(&body).await?;
    fixture.note("a quote with a junk authorization", said);
    let mut stale = fixture
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
    fixture.victim.deposit().await?;
    fixture
        .ended("the order whose authorization is stale", &stale)
        .await
}

/// An account's first, to be a wallet of code that is not there.
fn authorization(site: &DevChain, who: &Account) -> Result<Value> {
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
pub async fn deploy_noise(fixture: &mut Fixture) -> Result<()> {
    let site = &fixture.arena.world.origin;
    fixture.prop = Some(site.deploy("Wallet", &[]).await?);
    fixture.other = Some(site.deploy("FakeEmitter", &[]).await?);
    Ok(())
}

pub async fn junk(fixture: &mut Fixture) -> Result<()> {
    let order = fixture.order().await?;
    let noise = noise(fixture)?;
    let wei = deposit(fixture, 1, order);
    together(fixture, vec![noise.clone(), wei]).await?;
    fixture.victim.deposit().await?;
    let mut loud = fixture.stranger.order(SMALL, |_| ()).await?;
    let order = loud.quote().await?.order.id;
    let paid = deposit(fixture, SMALL.amount, order);
    loud.deposit = Some(together(fixture, vec![noise, paid]).await?);
    let mut crowded = fixture.stranger.order(SMALL, |_| ()).await?;
    let order = crowded.quote().await?.order.id;
    let mut calls = vec![deposit(fixture, 1, order); DEPOSITS];
    calls.push(deposit(fixture, SMALL.amount, order));
    together(fixture, calls).await?;
    settled(fixture, "4,000 logs beside his deposit", &loud).await?;
    settled(fixture, "160 deposits beside his", &crowded).await
}

async fn settled(fixture: &mut Fixture, what: &str, own: &Life) -> Result<()> {
    fixture.ended(what, own).await
}

fn noise(fixture: &Fixture) -> Result<Wallet::Call> {
    let count = U256::from(LOGS);
    let to = fixture.other.context("no source of noise")?;
    Ok(call(to, FakeEmitter::noiseCall { count }.abi_encode(), 0))
}

fn deposit(fixture: &Fixture, amount: u64, id: alloy::primitives::B256) -> Wallet::Call {
    let depositor = fixture.stranger.address();
    let data = Depository::depositNativeCall { depositor, id }.abi_encode();
    call(fixture.arena.world.origin.depository, data, amount)
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
async fn together(fixture: &Fixture, calls: Vec<Wallet::Call>) -> Result<Deposit> {
    let site = &fixture.arena.world.origin;
    let value = calls.iter().map(|call| call.value).sum();
    let run = Payload::call(fixture.prop()?, &Wallet::runCall { calls }).value(value);
    let receipt = fixture.stranger.sends(site, run).await?;
    site.deposited(&receipt).await
}
