//! The Python client that is on PyPI: the blocking one, and the refund by the asynchronous one.

use alloy::primitives::{Address, U256};
use devnet::account::Account;
use serde_json::{Value, json};

use super::rig::Rig;
use crate::sdk::app::{ETH, MILLI, held, hex, promised};

pub async fn lives(rig: &Rig, who: &Account) {
    let (app, address) = (&rig.app, who.address());
    let (origin, site) = (&app.world.origin, &app.world.destination);
    let here = held(origin, Address::ZERO, address).await;
    let there = held(site, Address::ZERO, address).await;
    let key = app.daemon.integrator("python").await;
    let job = json!({
        "base": app.daemon.integrator_url(), "key": key,
        "chains": app.chains(), "user": hex(address), "currency": ETH,
        "amount": (100 * MILLI).to_string(), "wrong": format!("0x{}", "77".repeat(20)),
    });
    let told = rig.python("client.py", &job).await;

    assert_eq!(told["status"]["status"], "success", "{told}");
    let came = held(site, Address::ZERO, address).await - there;
    assert_eq!(came, promised(&told));
    assert_eq!(told["refund"]["status"], "refund", "{told}");
    let gone = here - held(origin, Address::ZERO, address).await;
    let paid = U256::from(100 * MILLI);
    assert!(
        (paid..paid + U256::from(3 * MILLI)).contains(&gone),
        "{gone}"
    );
    for ended in [&told["status"], &told["refund"]] {
        assert!(ended["inTxHashes"][0].is_string(), "{ended}");
        assert!(ended["txHashes"][0].is_string(), "{ended}");
    }
    described(&told);

    let wrong = &told["wrong"];
    assert_eq!(wrong["status"], 400, "{wrong}");
    assert_eq!(wrong["body"]["errorCode"], "UNSUPPORTED_CURRENCY");
    assert_eq!(wrong["message"], wrong["body"]["message"]);
    let unknown = &told["unknown"];
    assert_eq!(unknown["status"], 404, "{unknown}");
    assert_eq!(unknown["body"]["errorCode"], "REQUEST_NOT_FOUND");
}

/// What is asked beside the requests, and their list, which speaks in the oldest words.
fn described(told: &Value) {
    let chains = told["chains"].as_array().unwrap().iter();
    let ids: Vec<_> = chains.map(|chain| chain["id"].clone()).collect();
    assert_eq!(ids, [31_001, 31_002]);
    assert_eq!(told["tokenPrice"], json!({"price": 2500.0}));
    let amount = |answer: &Value| answer["details"]["currencyIn"]["amount"].clone();
    assert_eq!(amount(&told["price"]), amount(&told["quote"]));
    let pages = [&told["requests"][0], &told["requests"][1]];
    let [last, first] = pages.map(|page| &page["requests"][0]);
    assert_eq!(last["id"], told["quote"]["steps"][0]["requestId"], "{last}");
    assert_eq!(last["status"], "success", "{last}");
    assert_eq!(first["status"], "fallback", "{first}");
}
