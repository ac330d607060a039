//! `cargo bench --bench quotes -- --families`: quotes of users of every family that trades, for a delivery on one EVM
//! chain, so that only the origin differs. From the body's bytes to the answer's without a socket, the store in memory.
//!
//! - **origin**: `evm` as in the other rows; `bitcoin` with the number of the user's unspent outputs, of which a quote has
//!   to choose; `solana`, and with an exchange of the user's currency by an aggregator before the deposit, which gives
//!   recorded answers.
//! - **to evm**: the middle time as a multiple of that of `evm` with as many at once.
//!
//! Providers answer in this process; the index makes an answer once and keeps it. What a quote waits for in production is
//! theirs and comes on top: one list of outputs on Bitcoin, two answers of the aggregator.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use intentd::{
    market::Market,
    quote::{body::Body, pricing_chain::PricingChain, service::Quoter, swaps::Swaps},
    store::{memory::MemoryStore, requests::Requests},
};
use serde_json::{Value, json};
use vm::{
    ChainEntry, Endpoint, Family, SETTLEMENT,
    bitcoin::FAMILY as BITCOIN,
    solana::{FAMILY as SOLANA, programs::SYSTEM},
    testing::{
        bitcoin, scripted,
        solana::{self, aggregator},
    },
    trade::{HeadCalls, SwapAccess},
};

use super::{
    listen, quote,
    stub::{self, Stub},
};

/// Unspent outputs of users on Bitcoin, and satoshis of all together.
const OUTPUTS: [usize; 3] = [1, 100, 10_000];
const ALL: u64 = 100_000_000;
/// Outputs of one transaction that pays a user.
const TOGETHER: usize = 500;
/// Satoshis of a deposit: with 10,000 outputs it takes a hundred of them.
const DEPOSIT: u64 = 1_000_000;
/// Symbols: what is not exchanged is the same on both chains.
const COIN: &str = "COIN";
const DOLLAR: &str = "USDC";
const PROGRAM: &str = "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2";

/// An origin with what its user asks for.
struct Case {
    name: String,
    chain: (String, PricingChain),
    swaps: Swaps,
    market: Market,
    body: Value,
    /// Whether the user's currency is exchanged before the deposit.
    exchanges: bool,
}

/// Measures every origin with one quote at a time and with 32.
pub async fn rows(limit: Duration) -> Result<()> {
    println!("origin             at once    per s   p50 ms   p99 ms   to evm");
    for at_once in [1, 32] {
        let mut evm = None;
        for case in cases()? {
            read(&case).await?;
            let stub = Arc::new(Stub::default());
            let requests = Requests::new(Arc::new(MemoryStore::new()));
            let chains = vec![case.chain, stub.chain("destination")?];
            let quoter = stub.quoter_of(requests, (case.market, chains, case.swaps))?;
            check(&quoter, (&case.body, case.exchanges)).await?;
            let (quoter, body) = (Arc::new(quoter), Bytes::from(case.body.to_string()));
            let work = move |_| quote(quoter.clone(), body.clone());
            let measured = listen::repeat(at_once, limit, work).await?;
            let (rate, middle, most) = measured.figures();
            let ratio = middle / *evm.get_or_insert(middle);
            let name = case.name;
            println!("{name:<18} {at_once:>7} {rate:>8.0} {middle:>8.3} {most:>8.3} {ratio:>8.2}");
        }
    }
    Ok(())
}

/// Reads the origin's currencies, as a daemon does before it quotes: what is built without a question needs them.
async fn read(case: &Case) -> Result<()> {
    let (name, chain) = &case.chain;
    let network = case.market.by_name(name).context("no origin")?;
    for currency in &network.currencies {
        let address = chain.spec.family.address(&currency.address)?;
        let decimals = chain.providers.failover.decimals(&address).await?;
        let known = decimals.is_none_or(|(decimals, _)| decimals == currency.decimals);
        ensure!(known, "{}: {decimals:?} decimals", currency.symbol);
    }
    Ok(())
}

/// An error unless the answer has an exchange by the aggregator exactly where the case does. The recorded way names a
/// lookup table.
async fn check(quoter: &Quoter, (body, exchanges): (&Value, bool)) -> Result<()> {
    let refused = |refused| anyhow!("{refused:?}");
    let body = Body::read(body.clone()).map_err(refused)?;
    let answer = quoter.quote(&body, None).await.map_err(refused)?;
    let answer = serde_json::to_value(&answer)?;
    let router = &answer["details"]["route"]["origin"]["router"];
    let tables = &answer["steps"][0]["items"][0]["data"]["addressLookupTableAddresses"];
    let named = tables.as_array().is_some_and(|tables| !tables.is_empty());
    ensure!(
        (*router == "jupiter") == exchanges && named == exchanges,
        "an exchange: expected {exchanges}: {answer}"
    );
    Ok(())
}

fn cases() -> Result<Vec<Case>> {
    let stub = Arc::new(Stub::default());
    let mut all = vec![Case {
        name: "evm".into(),
        chain: stub.chain("origin")?,
        swaps: Swaps::default(),
        market: market(
            SETTLEMENT,
            json!({"currencies": [currency(stub::NATIVE, COIN, 18)]}),
        )?,
        body: body(
            (stub::USER, stub::NATIVE, stub::NATIVE),
            "1000000000000000000",
        ),
        exchanges: false,
    }];
    for outputs in OUTPUTS {
        all.push(of_bitcoin(outputs)?);
    }
    for exchanges in [false, true] {
        all.push(of_solana(exchanges)?);
    }
    Ok(all)
}

/// A user on Bitcoin with so many unspent outputs.
fn of_bitcoin(outputs: usize) -> Result<Case> {
    let name = format!("bitcoin {outputs}");
    let rules = bitcoin::Rules {
        number: 1,
        pace: 600,
        since: 1_700_000_000,
        rate: 5,
    };
    let world = bitcoin::World::new(&name.replace(' ', "-"), rules);
    let mine = |blocks: u64| {
        let height = world.height() + blocks;
        world.mine_until(rules.since + height * rules.pace);
    };
    mine(130);
    let user = bitcoin::Key::of(0xc1).context("no key")?;
    let each = ALL / outputs as u64;
    for first in (0..outputs).step_by(TOGETHER) {
        let some = TOGETHER.min(outputs - first);
        ensure!(world.fund(&user.script(), each, some), "no old coinbase");
    }
    // Nothing is young any more.
    mine(130);
    world.list(outputs);
    world.freeze();
    let depository = bitcoin::Key::of(0xd0).context("no key")?;
    let entry = json!({
        "id": "origin", "hubChainId": "1", "depository": depository.address(),
        "additionalData": {
            "network": "regtest", "esploraCompatibleApiUrl": world.url(bitcoin::INDEX),
        },
    });
    let solver = bitcoin::Key::of(0x51).context("no key")?;
    let url = world.url(bitcoin::INDEX);
    // The chain lives as long as the process.
    std::mem::forget(world);
    let (chain, family) = opened(&BITCOIN, entry, (&url, &solver.address()))?;
    let native = family.native()?;
    Ok(Case {
        name,
        chain,
        swaps: Swaps::default(),
        market: market(
            family,
            json!({"currencies": [currency(native.text(), COIN, 8)]}),
        )?,
        body: body(
            (&user.address(), native.text(), stub::NATIVE),
            &DEPOSIT.to_string(),
        ),
        exchanges: false,
    })
}

/// A user on Solana who deposits what he has, or what he exchanges it for first.
fn of_solana(exchanges: bool) -> Result<Case> {
    let name = if exchanges {
        "solana exchange"
    } else {
        "solana"
    };
    let rules = solana::Rules {
        number: 1,
        pace: 1,
        since: 1_700_000_000,
        depository: PROGRAM.parse()?,
        token: aggregator::OUTPUT_MINT,
    };
    let world = solana::World::new(&name.replace(' ', "-"), rules);
    let user = aggregator::USER;
    let solver = solana::Pubkey::new_from_array(scripted::Key::of(0x51).bytes().0);
    for owner in [&user, &solver] {
        for currency in [&SYSTEM, &aggregator::OUTPUT_MINT] {
            world.fund(owner, currency, 1_000_000_000_000);
        }
    }
    world.mine_until(rules.since + 200);
    let entry = json!({"id": "origin", "hubChainId": "1", "depository": PROGRAM});
    let services = exchanges.then(|| aggregator::aggregator(&world));
    let url = world.url("one");
    // The chain lives as long as the process.
    std::mem::forget(world);
    let (chain, family) = opened(&SOLANA, entry, (&url, &solver.to_string()))?;
    let native = SYSTEM.to_string();
    let (origin, to) = on_solana(&native, services);
    let mut body = body(
        (&user.to_string(), &native, to),
        &aggregator::INPUT.to_string(),
    );
    // The recorded exchange has no less to give.
    body["slippageTolerance"] = "0".into();
    let market = market(family, origin)?;
    let access = |name: &str| {
        let access = SwapAccess {
            head_calls: HeadCalls {
                family,
                contracts: Vec::new(),
            },
            keyed: || false,
        };
        (name == "origin").then_some(access)
    };
    Ok(Case {
        name: name.into(),
        swaps: Swaps::open(&market, access)?,
        chain,
        market,
        body,
        exchanges,
    })
}

/// What the market file says of Solana, and what its user wants: where a service exchanges, the solver does not keep SOL.
fn on_solana(native: &str, services: Option<String>) -> (Value, &'static str) {
    let Some(service) = services else {
        let currencies = [currency(native, COIN, 9)];
        return (json!({"currencies": currencies}), stub::NATIVE);
    };
    let mut coin = currency(native, "SOL", 9);
    coin["solver"] = false.into();
    let token = aggregator::OUTPUT_MINT.to_string();
    let currencies = [coin, currency(&token, DOLLAR, 6)];
    let origin = json!({"currencies": currencies, "aggregators": [{"url": service}]});
    (origin, stub::USDC)
}

/// A chain of one provider, and its family on its network.
fn opened(
    family: &'static Family,
    entry: Value,
    (url, solver): (&str, &str),
) -> Result<((String, PricingChain), &'static Family)> {
    let entry: ChainEntry = serde_json::from_value(entry)?;
    let spec = entry.spec(family, false)?;
    let endpoint = Endpoint {
        position: 1,
        url: url.parse()?,
        timeout: Duration::from_secs(5),
        longest: 8 << 20,
        allows: None,
        client: Endpoint::client()?,
    };
    let trade = family.trade.context("no trading")?;
    let provider = trade(&spec, &endpoint)?;
    let family = spec.family;
    Ok((
        stub::opened(spec, provider, family.account(solver)?)?,
        family,
    ))
}

/// A currency that the solver keeps.
fn currency(address: &str, symbol: &str, decimals: u8) -> Value {
    let class = if symbol == DOLLAR { "stable" } else { "major" };
    json!({"address": address, "symbol": symbol, "name": symbol, "decimals": decimals,
           "group": symbol.to_lowercase(), "class": class, "solver": true})
}

/// An origin of a family with what the market file says of it, and an EVM chain.
fn market(family: &'static Family, mut origin: Value) -> Result<Market> {
    origin["name"] = "origin".into();
    origin["displayName"] = "origin".into();
    origin["chainId"] = 31_001.into();
    let file = json!([
        origin,
        {"name": "destination", "chainId": 31_002, "displayName": "destination",
         "currencies": [currency(stub::NATIVE, COIN, 18), currency(stub::USDC, DOLLAR, 6)]},
    ]);
    let family = |name: &str| Some(if name == "origin" { family } else { SETTLEMENT });
    Ok(Market::parse(&file.to_string(), family)?)
}

fn body((user, from, to): (&str, &str, &str), amount: &str) -> Value {
    json!({"user": user, "recipient": stub::USER, "originChainId": 31_001, "destinationChainId": 31_002,
           "originCurrency": from, "destinationCurrency": to, "amount": amount,
           "tradeType": "EXACT_INPUT", "refundTo": user})
}
