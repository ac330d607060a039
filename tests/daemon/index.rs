//! The index over a real chain: a deposit is found, becomes final, leaves with a reorg, and comes
//! back.

use std::{collections::HashMap, sync::Arc, time::Duration};

use alloy::{
    primitives::{Bytes, U256},
    rpc::types::TransactionReceipt,
};
use devnet::world::{Devnet, Money, SignedOrder, Terms};
use intentd::{
    index::{
        confirm::{Confirmer, Network},
        tail::{Step, Tail},
        tx_details::Observer,
    },
    market::Market,
    request::{
        Leg, Operation, Request,
        fact::{Deposit, Standing},
        tx_details::TxDetails,
    },
    store::{Batch, memory::MemoryStore, requests::Requests, rows::tx_details},
};
use serde_json::json;
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
        user: user.into(),
        recipient: user.into(),
        refund_to: user.into(),
        origin: leg(31_001, "origin"),
        destination: leg(31_002, "destination"),
        referrer: None,
        api_key: None,
        created_at: NOW,
        ..crate::support::request::request(0, "")
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
        longest: vm::protocol::limits::PROVIDER_ANSWER,
        allows: None,
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

/// The origin's index over an empty store, and a request that its user can deposit for.
struct Rig {
    world: Devnet,
    chain: Chain,
    tail: Tail,
    confirmer: Confirmer,
    observer: Observer,
    requests: Requests,
    request: Request,
}

impl Rig {
    async fn start() -> Self {
        let world = Devnet::start().await.unwrap();
        let (chain, endpoint) = origin(&world);
        let provider = SETTLEMENT.trade.unwrap()(&chain.spec, &endpoint).unwrap();
        let requests = Requests::new(Arc::new(MemoryStore::new()));
        let network = market().by_name("origin").unwrap().clone();
        let scanners = vec![provider.scanner];
        let mut tail = Tail::new(network, scanners, requests.clone(), Arc::default());
        let network = Network {
            chain: chain.clone(),
            wakeup: Arc::default(),
            listed: None,
        };
        let networks = HashMap::from([("origin".to_owned(), network)]);
        let providers = vec![provider.inspector];
        let request = request(order(&world).await, &world.user.address().to_string());
        requests.insert(&request, Batch::new()).await.unwrap();
        settle(&mut tail).await;
        Self {
            confirmer: Confirmer::new(requests.clone(), networks),
            observer: Observer::new("origin", SETTLEMENT, providers, requests.clone()),
            world,
            chain,
            tail,
            requests,
            request,
        }
    }

    /// The user's deposit, signed.
    async fn wire(&self) -> Bytes {
        let site = &self.world.origin;
        let payload = site.native_deposit(self.request.order_id);
        let payload = payload.value(U256::from(AMOUNT));
        site.node.signed(&self.world.user, payload).await.unwrap()
    }

    /// Sends the deposit, and reads the chain to its end.
    async fn deposited(&mut self, wire: &Bytes) -> TransactionReceipt {
        let receipt = self.world.origin.node.broadcast(wire).await.unwrap();
        settle(&mut self.tail).await;
        receipt
    }

    /// Takes the newest block away.
    async fn reorged(&mut self) {
        let node = &self.world.origin.node;
        node.reorg(1).await.unwrap();
        node.mine(1, 1).await.unwrap();
        settle(&mut self.tail).await;
    }

    /// The only deposit.
    async fn seen(&self) -> Deposit {
        let seen = deposits(&self.requests, &self.request).await;
        assert_eq!(seen.len(), 1);
        seen[0].clone()
    }

    /// The deposit's transaction as listings show it.
    async fn full(&self) -> TxDetails {
        let deposit = self.seen().await;
        let (network, transaction) = (&deposit.network, &deposit.transaction);
        let found = tx_details::of(&**self.requests.store(), network, transaction).await;
        found.unwrap().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_found_confirmed_reorged_and_found_again() {
    let mut rig = Rig::start().await;
    let wire = rig.wire().await;
    let receipt = rig.deposited(&wire).await;
    let claim = rig.world.origin.deposited(&receipt).await.unwrap();
    let seen = rig.seen().await;
    assert_eq!(seen.onchain_id, claim.onchain_id);
    assert_eq!(seen.amount, U256::from(AMOUNT));
    assert_eq!(seen.standing, Standing::Included);
    assert_eq!(Some(seen.place.hash), receipt.block_hash);

    // Its block leaves the chain, and the same transaction comes back in another.
    rig.reorged().await;
    assert_eq!(rig.seen().await.standing, Standing::Reorged);
    let receipt = rig.deposited(&wire).await;
    let again = rig.seen().await;
    assert_eq!(again.standing, Standing::Included);
    assert_eq!(Some(again.place.hash), receipt.block_hash);

    let blocks = rig.world.options.finality_blocks;
    rig.world.origin.node.mine(blocks, 1).await.unwrap();
    rig.chain.reader.fresh_head().await.unwrap();
    let confirmed = async {
        while rig.seen().await.standing != Standing::Final {
            rig.confirmer.look(NOW).await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(30);
    tokio::time::timeout(patience, confirmed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deposit_is_kept_in_full_as_it_is_in_its_block() {
    let mut rig = Rig::start().await;
    let wire = rig.wire().await;
    let receipt = rig.deposited(&wire).await;
    assert_eq!(rig.observer.round(NOW).await.unwrap().seen, 1);
    let (seen, tx_details) = (rig.seen().await, rig.full().await);
    let fee = u128::from(receipt.gas_used) * receipt.effective_gas_price;
    assert!(tx_details.is_of(&seen.place));
    assert_eq!(tx_details.fee, U256::from(fee));
    let moved = tx_details.changes.iter();
    let moved: Vec<_> = moved.map(|one| (&one.address, one.diff())).collect();
    let expected = [
        (&seen.depositor, format!("-{AMOUNT}")),
        (&seen.depository, AMOUNT.to_string()),
    ];
    assert_eq!(moved, expected);

    // What is in no block is not looked for; what comes into another one is.
    rig.reorged().await;
    assert_eq!(rig.observer.round(NOW).await.unwrap().seen, 0);
    rig.deposited(&wire).await;
    let place = rig.seen().await.place;
    assert!(!rig.full().await.is_of(&place));
    assert_eq!(rig.observer.round(NOW).await.unwrap().seen, 1);
    assert!(rig.full().await.is_of(&place));
}
