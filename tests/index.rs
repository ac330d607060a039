//! The index over a real chain: a deposit is found, becomes final, leaves with a reorg, and comes
//! back.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed unwrap is a failed test"
)]

use std::{collections::HashMap, sync::Arc, time::Duration};

use alloy::primitives::U256;
use devnet::world::{Devnet, Money, SignedOrder, Terms};
use intentd::{
    index::{
        confirm::{Confirmer, Network},
        tail::{Step, Tail},
        witness::Observer,
    },
    market::Market,
    request::{
        Execution, Leg, Operation, Request, TradeType,
        fact::{Deposit, Standing},
        witness::Witness,
    },
    store::{Batch, memory::MemoryStore, requests::Requests, witnesses},
};
use serde_json::{Value, json};
use vm::{Chain, ChainEntry, Endpoint, SETTLEMENT, quorum::Quorum};

const NOW: u64 = 1_800_000_000_000;
const AMOUNT: u64 = 1_000;

fn market() -> Market {
    let network = |name: &str, chain: u64| {
        json!({
            "name": name, "chainId": chain, "displayName": name, "indexFrom": 0,
            "currencies": [{"address": format!("0x{}", "00".repeat(20)), "symbol": "ETH",
                "name": "Ether", "decimals": 18, "group": "eth",
                "prices": [{"kind": "peg", "usd": "2500"}]}],
        })
    };
    let file = json!([network("origin", 31_001), network("destination", 31_002)]);
    Market::parse(&file.to_string(), |_| Some(SETTLEMENT)).unwrap()
}

async fn order(world: &Devnet) -> SignedOrder {
    let money = |amount| Money {
        currency: alloy::primitives::Address::ZERO,
        amount: U256::from(amount),
    };
    let terms = Terms {
        input: money(AMOUNT),
        output: money(900),
        recipient: world.user.address(),
        calls: Vec::new(),
        fee: U256::ZERO,
        deadline: None,
        salt: 1,
    };
    world.order(&terms).await.unwrap()
}

fn request(order: SignedOrder, user: &str) -> Request {
    let leg = |chain, network: &str| Leg {
        chain,
        network: network.into(),
        currency: format!("0x{}", "00".repeat(20)),
        amount: U256::from(AMOUNT),
        minimum: U256::from(AMOUNT),
    };
    Request {
        id: order.id,
        order_id: order.id,
        order: order.order,
        order_signature: order.signature,
        operation: Operation::Bridge,
        execution: Execution::Solver,
        trade_type: TradeType::ExactInput,
        user: user.into(),
        recipient: user.into(),
        refund_to: user.into(),
        origin: leg(31_001, "origin"),
        destination: leg(31_002, "destination"),
        calls: Vec::new(),
        calls_gas: None,
        authorizations: Vec::new(),
        late_slippage_bps: None,
        true_exact_output: false,
        fill_gas: 21_000,
        referrer: None,
        api_key: None,
        created_at: NOW,
        expires_at: None,
        quoted: Value::Null,
    }
}

/// The origin as the daemon opens it, and the endpoint of its only provider.
fn origin(world: &Devnet) -> (Chain, Endpoint) {
    let files = world.files();
    let mut entry = files.chains[0].clone();
    entry["httpRpcUrl"] = world.origin.node.url.to_string().into();
    let entry: ChainEntry = serde_json::from_value(entry).unwrap();
    let spec = entry.spec(SETTLEMENT, false).unwrap();
    let endpoint = Endpoint {
        position: 0,
        url: world.origin.node.url.clone(),
        timeout: Duration::from_secs(5),
        client: Endpoint::client().unwrap(),
    };
    let provider = SETTLEMENT.open.unwrap()(&spec, &endpoint).unwrap();
    let reader = Arc::new(Quorum::new(&spec.id, vec![provider], 1).unwrap());
    let chain = Chain {
        spec,
        reader,
        state: None,
    };
    (chain, endpoint)
}

async fn settle(tail: &mut Tail) {
    while tail.step(NOW).await.unwrap() != Step::Idle {}
}

async fn deposits(requests: &Requests, request: &Request) -> Vec<Deposit> {
    requests.facts(&request.id).await.unwrap().deposits
}

/// The deposit's transaction as listings show it.
async fn full(requests: &Requests, deposit: &Deposit) -> Witness {
    let (network, transaction) = (&deposit.network, &deposit.transaction);
    let found = witnesses::of(&**requests.store(), network, transaction).await;
    found.unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_found_confirmed_reorged_and_found_again() {
    // Until the family opens providers for trading there is nothing to follow a chain with.
    let Some(open) = SETTLEMENT.trade else { return };
    let world = Devnet::start().await.unwrap();
    let (site, node) = (&world.origin, &world.origin.node);
    let (chain, endpoint) = origin(&world);
    let trade = open(&chain.spec, &endpoint).unwrap();
    let requests = Requests::new(Arc::new(MemoryStore::new()));
    let network = market().by_name("origin").unwrap().clone();
    let mut tail = Tail::new(
        network,
        vec![trade.scanner],
        requests.clone(),
        Arc::default(),
    );
    let providers = vec![trade.witnesses];
    let observer = Observer::new("origin", SETTLEMENT, providers, requests.clone());
    let network = Network {
        chain: chain.clone(),
        bell: Arc::default(),
    };
    let networks = HashMap::from([("origin".to_owned(), network)]);
    let confirmer = Confirmer::new(requests.clone(), networks);

    let order = order(&world).await;
    let request = request(order, &world.user.address().to_string());
    requests.insert(&request, Batch::new()).await.unwrap();
    settle(&mut tail).await;
    let payload = site.native_deposit(request.order_id);
    let wire = node
        .signed(&world.user, payload.value(U256::from(AMOUNT)))
        .await
        .unwrap();
    let receipt = node.broadcast(&wire).await.unwrap();
    let claim = site.deposited(&receipt).await.unwrap();
    settle(&mut tail).await;
    let seen = deposits(&requests, &request).await;
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].onchain_id, claim.onchain_id);
    assert_eq!(seen[0].amount, U256::from(AMOUNT));
    assert_eq!(seen[0].standing, Standing::Included);
    assert_eq!(Some(seen[0].place.hash), receipt.block_hash);
    assert_eq!(observer.round(NOW).await.unwrap().seen, 1);
    let witness = full(&requests, &seen[0]).await;
    let fee = u128::from(receipt.gas_used) * receipt.effective_gas_price;
    assert!(witness.is_of(&seen[0].place));
    assert_eq!(witness.fee, U256::from(fee));
    let [given, got] = &witness.changes[..] else {
        panic!("{witness:?}");
    };
    let diffs = [(&given.address, given.diff()), (&got.address, got.diff())];
    let (user, depository) = (&seen[0].depositor, &seen[0].depository);
    assert_eq!(diffs, [(user, "-1000".into()), (depository, "1000".into())]);

    // Its block leaves the chain, and the same transaction comes back in another.
    node.reorg(1).await.unwrap();
    node.mine(1, 1).await.unwrap();
    settle(&mut tail).await;
    let lost = deposits(&requests, &request).await;
    assert_eq!(observer.round(NOW).await.unwrap().seen, 0);
    assert_eq!(lost[0].standing, Standing::Reorged);
    let receipt = node.broadcast(&wire).await.unwrap();
    settle(&mut tail).await;
    let again = deposits(&requests, &request).await;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].standing, Standing::Included);
    assert_eq!(Some(again[0].place.hash), receipt.block_hash);
    assert!(!full(&requests, &again[0]).await.is_of(&again[0].place));
    assert_eq!(observer.round(NOW).await.unwrap().seen, 1);
    assert!(full(&requests, &again[0]).await.is_of(&again[0].place));

    node.mine(world.options.finality_blocks, 1).await.unwrap();
    chain.reader.fresh_head().await.unwrap();
    let confirmed = async {
        while deposits(&requests, &request).await[0].standing != Standing::Final {
            confirmer.look(NOW).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(30);
    tokio::time::timeout(patience, confirmed).await.unwrap();
}
