//! What `intentd explain` says of the payments of orders about which no statement stands.

use alloy::primitives::B256;
use intentd::{
    request::Request,
    store::{
        Batch, Making, Store,
        pair::{Directories, Pair},
        requests::Requests,
    },
};
use serde_json::Value;
use tempfile::TempDir;
use vm::protocol::order::Order;

use crate::evidence::{document, intentd, masked, recorded, setup};
use crate::support::{
    chain::{FILLS, REFUNDS},
    request, world,
};

/// Chain and transaction of the payment that a claim is about, and of the order's deposit.
fn named(claim: &Value) -> [(String, String); 2] {
    let (order, input) = (&claim["order"], &claim["order"]["inputs"][0]);
    let paid = match claim["fill"].is_null() {
        false => (&order["output"]["chainId"], &claim["fill"]),
        true => (&input["refunds"][0]["chainId"], &claim["refunds"][0]),
    };
    let deposited = (&input["payment"]["chainId"], &claim["inputs"][0]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    [paid, deposited].map(|(chain, of)| (text(chain), text(&of["transactionId"])))
}

/// Puts the request of a claim's order, with its deposit, into the store of a daemon that has ended.
async fn keep(directory: &TempDir, claim: &Value) {
    let order: Order = serde_json::from_value(claim["order"].clone()).unwrap();
    let request = Request {
        order_id: order.id(|_| Some(vm::SETTLEMENT)).unwrap(),
        order_signature: serde_json::from_value(claim["orderSignature"].clone()).unwrap(),
        order,
        ..request::request(1, "app")
    };
    let [_, (network, transaction)] = named(claim);
    let id: B256 = serde_json::from_value(claim["inputs"][0]["onchainId"].clone()).unwrap();
    let directories = Directories::new(directory.path().join("data"), None);
    let pair = Pair::open(&directories, Making::Refused).unwrap();
    let requests = Requests::new(pair.store.clone());
    requests.insert(&request, Batch::new()).await.unwrap();
    let known = requests.record(&request.id, request.created_at, Batch::new(), |facts| {
        request::paid(facts, 1);
        let deposit = &mut facts.deposits[0];
        deposit.onchain_id = id;
        (deposit.network, deposit.transaction) = (network.clone(), transaction.clone());
    });
    known.await.unwrap();
    drop(requests);
    pair.close().await;
}

/// The guide's sample that begins so.
fn sample(start: &str) -> String {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/evidence.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks = guide.split("```text\n").skip(1);
    let mut samples = blocks.filter_map(|block| block.split("```").next());
    let found = samples.find(|sample| sample.starts_with(start));
    found.unwrap().trim_end().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_ends_an_order_of_the_daemons_is_judged_as_that() {
    let world = world::world().await;
    let setup = setup(&world);
    for (route, kind) in [(FILLS, "fill"), (REFUNDS, "refund")] {
        let claim = recorded(route);
        let [paid, deposited] = named(&claim);
        let directory = setup.start().await.end().await;
        keep(&directory, &claim).await;
        let daemon = setup.start_in(directory).await;
        let explained = async |(chain, transaction): &(String, String)| {
            let words = ["explain", chain, transaction];
            intentd(&setup, &daemon, &words, "").await.unwrap()
        };
        let told = explained(&paid).await;
        let nothing = "no statement stands about this transaction; judged as a deposit:\n";
        let (before, outcome) = told.split_once("\njudged as the ").expect(&told);
        assert!(before.starts_with(nothing), "{told}");
        let order = format!("{kind} of order 0x");
        assert!(outcome.starts_with(&order), "{told}");
        if kind == "fill" {
            let shown = sample("judged as the fill of order ");
            let lines: Vec<_> = outcome.lines().take(shown.lines().count()).collect();
            let printed = format!("judged as the {}", lines.join("\n"));
            assert_eq!(masked(&printed), masked(&shown), "{told}");
        }
        for line in [
            ", whose request is here:\nstatement   outcome/",
            "\nsigned      not yet: this is what would be\n",
            "\nrule        deadline: ",
            "\naction      ",
        ] {
            assert!(outcome.contains(line), "{line}: {told}");
        }
        assert!(!told.contains("\nothers      "), "{told}");
        // A deposit ends no order.
        let told = explained(&deposited).await;
        assert!(told.contains("\nothers      "), "{told}");
        assert!(!told.contains("\njudged as the "), "{told}");
        // What was told is what is signed.
        let answer = daemon.post(route, "apikey1", &claim).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let signed = document(&setup, &daemon, &paid.0, &paid.1).await;
        let digest = format!("\ndigest      {}\n", signed["digest"].as_str().unwrap());
        assert!(outcome.contains(&digest), "{digest}: {outcome}");
        daemon.stop().await;
    }
}
