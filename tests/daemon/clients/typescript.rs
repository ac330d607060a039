//! One version of the published TypeScript client, from its quote to its verdict.

use alloy::primitives::{Address, U256};
use devnet::account::Account;
use serde_json::{Value, json};

use super::rig::Rig;
use crate::sdk::app::{ETH, MILLI, USD, Way, held, hex, promised, step_ids};

/// What a version asks for a quote, and how a transaction went.
fn paths(sdk: &str) -> [&str; 2] {
    match sdk {
        "sdk-2" => ["POST /quote", "GET /intents/status"],
        _ => ["POST /quote/v2", "GET /intents/status/v3"],
    }
}

/// Everything that the driver does with version `sdk`; the id of its first request, which succeeded.
pub async fn lives(rig: &Rig, sdk: &str, who: &Account) -> String {
    let (app, address) = (&rig.app, who.address());
    let (origin, site) = (&app.world.origin, &app.world.destination);
    let native = app.quote_for(who, Way::Across, (ETH, ETH), 100 * MILLI);
    let tokens = (&*hex(origin.token), &*hex(site.token));
    let token = app.quote_for(who, Way::Across, tokens, 25 * USD);
    let mut wrong = native.clone();
    wrong["toCurrency"] = format!("0x{}", "77".repeat(20)).into();
    let here = held(origin, Address::ZERO, address).await;
    let there = held(site, Address::ZERO, address).await;
    let tokens_there = held(site, site.token, address).await;
    let job = json!({
        "sdk": sdk, "base": app.daemon.integrator_url(), "key": who.key(), "chains": app.chains(),
        "native": native, "token": token, "wrong": wrong,
    });
    let told = rig.node("drive.mjs", &job).await;

    for (way, steps) in [
        ("native", &["deposit"][..]),
        ("token", &["approve", "deposit"][..]),
    ] {
        let done = &told[way];
        assert_eq!(done["ok"], true, "{sdk} {way}: {done}");
        assert_eq!(step_ids(done), steps, "{sdk}");
        assert!(complete(done), "{sdk} {way}: {done}");
        let asked = done["requests"].as_array().unwrap();
        for path in paths(sdk) {
            assert!(asked.contains(&json!(path)), "{sdk} {way}: {asked:?}");
        }
    }
    let came = held(site, Address::ZERO, address).await - there;
    assert_eq!(came, promised(&told["native"]), "{sdk}");
    let came = held(site, site.token, address).await - tokens_there;
    assert_eq!(came, promised(&told["token"]), "{sdk}");
    // The second deposit came back: what is gone beside the first is gas, the refund's too.
    let gone = here - held(origin, Address::ZERO, address).await;
    let paid = U256::from(100 * MILLI);
    assert!(
        (paid..paid + U256::from(3 * MILLI)).contains(&gone),
        "{sdk}: {gone}"
    );
    refused(rig, sdk, &told).await;
    told["native"]["quote"]["steps"][0]["requestId"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The refund, the refusal, and what else was asked.
async fn refused(rig: &Rig, sdk: &str, told: &Value) {
    let refund = &told["refund"];
    assert_eq!(
        refund["error"], "Transaction failed: Refunded",
        "{sdk}: {refund}"
    );
    let status = rig.app.status(&refund["quote"]).await;
    assert_eq!(status["status"], "refund", "{sdk}: {status}");
    assert_eq!(status["failReason"], "MANUAL_ADMIN_REFUND", "{sdk}");
    let wrong = &told["wrong"];
    assert_eq!(wrong["name"], "APIError", "{sdk}: {wrong}");
    assert_eq!(
        wrong["raw"]["errorCode"], "UNSUPPORTED_CURRENCY",
        "{sdk}: {wrong}"
    );
    assert_eq!(told["chains"]["ids"], json!([31_001, 31_002]), "{sdk}");
    if sdk == "sdk-2" {
        let (price, capacity) = (&told["price"], &told["capacity"]);
        let quoted = &told["native"]["quote"]["details"]["currencyIn"];
        let priced = &price["details"]["currencyIn"];
        assert_eq!(priced["amount"], quoted["amount"], "{price}");
        assert_eq!(capacity["enabled"], true, "{capacity}");
        let solver = hex(rig.app.world.solver.address());
        assert_eq!(capacity["solver"]["address"], solver, "{capacity}");
    }
}

fn complete(done: &Value) -> bool {
    let mut steps = done["steps"].as_array().unwrap().iter();
    steps.all(|step| {
        let mut items = step["items"].as_array().unwrap().iter();
        items.all(|status| status == "complete")
    })
}
