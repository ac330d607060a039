//! The recorded Bitcoin fills, whose deposits are on Solana: the fill is read from the recorded
//! node, the deposits are scripted, the answers are the recorded ones byte for byte.

use std::{collections::HashMap, sync::Arc, time::Duration};

use crate::support::{daemon::KEY, fixture, http::Server, world};
use hyper::{HeaderMap, Method};
use intentd::{
    api::oracle::{ROUTES, State},
    attest::{
        backing::Tolerance,
        journal::Journal,
        peers::Peers,
        service::{Attestor, Reachable},
    },
    http::Request,
    hub::{Hub, Settings},
    sign::raw::RawKey,
    store::{memory::MemoryStore, requests::Requests},
};
use serde_json::Value;
use vm::{
    B256, Block, Chain, ChainEntry, ChainReader, ChainSpec, Deposit, Endpoint, Family, Head,
    Transaction, U256,
    protocol::order::Order,
    testing::{Answers, Script, receipt, said},
};

/// Every transaction of the chain deposits 1000 for this order.
fn deposits(spec: &ChainSpec, order: B256) -> Arc<dyn ChainReader> {
    let block = |number, time| Block {
        number,
        hash: B256::repeat_byte(2),
        parent: B256::repeat_byte(1),
        time,
    };
    let address = |text: &str| spec.family.address(text).unwrap();
    let mut receipt = receipt(block(1_000, 1_760_000_500));
    receipt.deposits = Ok(vec![Deposit {
        index: 0,
        depository: address("99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2"),
        depositor: address("9yAjGW9ypxCGhTpZyUfUoKFVjb87zkqTqrkBQwfr8Jk7"),
        currency: spec.family.native().unwrap(),
        amount: U256::from(1000),
        id: order.to_string().into(),
        named_by_other: false,
    }]);
    let head = Head {
        block: block(2_000, 1_760_001_500),
        tagged: Some(2_000),
    };
    let answers = Answers {
        head: Some(|own: &Script<(Head, Transaction)>| said(Ok(own.0.clone()))),
        contains: Some(|_, _| said(Ok(true))),
        transaction: Some(|own, _, _| said(Ok(own.1.clone()))),
        ..Answers::default()
    };
    Script::at(0).answering((head, Transaction::Succeeded(receipt)), answers)
}

/// The family of a chain in the recorded configuration.
fn family(chain: &str) -> Option<&'static Family> {
    let chains = fixture("recorded/chains.json");
    let entry = chains
        .as_array()?
        .iter()
        .find(|entry| entry["id"] == chain)?;
    vm::family(entry["vmType"].as_str()?)
}

fn spec(chain: &str) -> Arc<ChainSpec> {
    let chains = fixture("recorded/chains.json");
    let mut entries = chains.as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["id"] == chain).unwrap();
    let mut entry: ChainEntry = serde_json::from_value(entry.clone()).unwrap();
    // What variables name is not set here.
    let is_set = |value: &Value| value.as_str().is_none_or(|text| !text.starts_with('$'));
    entry.additional_data.retain(|_, value| is_set(value));
    entry.spec(family(chain).unwrap(), false).unwrap()
}

fn oracle(world: &Server, order: B256) -> Attestor {
    let (bitcoin, solana) = (spec("bitcoin"), spec("solana"));
    let endpoint = Endpoint {
        position: 1,
        url: format!("http://{}/bitcoin", world.address).parse().unwrap(),
        timeout: Duration::from_secs(5),
        longest: vm::protocol::limits::PROVIDER_ANSWER,
        allows: None,
        client: Endpoint::client().unwrap(),
    };
    let provider = (bitcoin.family.open.unwrap())(&bitcoin, &endpoint).unwrap();
    let reader = deposits(&solana, order);
    let open = |spec: Arc<ChainSpec>, reader| Reachable {
        family: Some(spec.family),
        chain: Ok(Chain {
            spec,
            reader,
            state: None,
        }),
    };
    let named = Reachable {
        family: family("base"),
        chain: Err("not read here".into()),
    };
    let hub = fixture("recorded/hub.json");
    let settings = Settings::parse(hub.as_object().unwrap()).unwrap();
    let signer = Arc::new(RawKey::parse(KEY).unwrap());
    Attestor {
        bound_nonces: false,
        permits: Default::default(),
        chains: HashMap::from([
            ("bitcoin".to_owned(), open(bitcoin, provider.reader)),
            ("solana".to_owned(), open(solana, reader)),
            ("base".to_owned(), named),
        ]),
        hub: Hub::new(settings, Err("not read here".into())),
        journal: Arc::new(Journal::new(Arc::new(MemoryStore::new()), signer)),
        peers: Peers::new(Vec::new(), Duration::from_secs(1), None).unwrap(),
        requests: Requests::new(Arc::new(MemoryStore::new())),
        tolerance: Tolerance::default(),
        clock: || 1_800_000_000,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bitcoin_fills_beside_scripted_deposits_get_their_recorded_answers() {
    let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let world = world::world().await;
    let route = ROUTES
        .iter()
        .find(|route| route.path.contains("fills"))
        .unwrap();
    let transcript = fixture("recorded/bitcoin.json");
    let fills = transcript.as_array().unwrap().iter();
    let fills = fills.filter(|case| case["name"].as_str().unwrap().starts_with("fill"));
    let mut seen = 0;
    for case in fills {
        let order: Order = serde_json::from_value(case["body"]["order"].clone()).unwrap();
        let state = Arc::new(State {
            oracle: oracle(&world, order.id(family).unwrap()),
            listed: Vec::new(),
            force: Vec::new(),
        });
        let headers = [("content-type", "application/json")];
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let request = Request {
            toll: intentd::http::auth::Toll::default(),
            method: Method::POST,
            version: hyper::Version::HTTP_11,
            target: route.path.to_owned(),
            headers: HeaderMap::from_iter(headers),
            body: case["body"].to_string().into(),
            client: world.address.ip(),
            key: None,
            scopes: Arc::default(),
            params: Vec::new(),
        };
        let recorded = case["response"]["body"].as_str().unwrap();
        let response = (route.handler)(state, request).await;
        let response = response.unwrap_or_else(|error| error.into_response());
        assert_eq!(
            response.status.as_u16(),
            case["response"]["status"],
            "{}",
            case["name"]
        );
        let body = response.body.bytes().unwrap();
        if response.status.is_success() {
            assert_eq!(body, recorded, "{}", case["name"]);
        } else {
            let ours: Value = serde_json::from_slice(body).unwrap();
            let theirs: Value = serde_json::from_str(recorded).unwrap();
            assert_eq!(ours["message"], theirs["message"], "{}", case["name"]);
        }
        seen += 1;
    }
    assert_eq!(seen, 2);
}
