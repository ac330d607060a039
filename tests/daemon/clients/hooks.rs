//! The hooks package: every query function, and its answer against the package's declarations.

use std::time::Duration;

use devnet::account::Account;
use serde_json::{Value, json};

use super::rig::Rig;
use crate::sdk::app::{ETH, MILLI, hex};

const PATIENCE: Duration = Duration::from_secs(30);

/// Asks for what `who` did before; `request` is theirs and succeeded.
pub async fn read_what_they_declare(rig: Rig, who: &Account, request: &str) {
    let (user, solver) = (hex(who.address()), hex(rig.app.world.solver.address()));
    let sites = [&rig.app.world.origin, &rig.app.world.destination];
    let [here, there] = sites.map(|site| site.node.chain_id);
    let quote = json!({
        "user": user, "recipient": user, "originChainId": here, "destinationChainId": there,
        "originCurrency": ETH, "destinationCurrency": ETH, "amount": (100 * MILLI).to_string(),
        "tradeType": "EXACT_INPUT",
    });
    let mut wrong = quote.clone();
    wrong["destinationCurrency"] = format!("0x{}", "77".repeat(20)).into();
    let opened = rig.with_old_listing().await;
    let base = opened.daemon.integrator_url();
    quoting(base, &quote).await;
    tallied(base).await;
    let key = opened.daemon.integrator("hooks").await;
    let job = json!({
        "base": base, "key": key, "user": user,
        "currency": ETH, "request": request, "quote": quote, "wrong": wrong,
    });
    let told = opened.scripts.node("hooks.mjs", &job).await;
    assert_eq!(told["faults"], json!([]), "{:#}", told["faults"]);

    let answers = &told["answers"];
    let config = &answers["queryRelayConfig"];
    assert_eq!(
        (&config["enabled"], &config["solver"]["address"]),
        (&json!(true), &json!(solver))
    );
    assert_eq!(answers["queryExecutionStatus"]["status"], "success");
    assert_eq!(answers["queryDepositAddressStatus"]["status"], "refund");
    let listed = answers["queryRequests"]["requests"].as_array().unwrap();
    let statuses: Vec<_> = listed.iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["refund", "success", "success"]);
    let quoted = &answers["queryQuote"]["details"]["currencyIn"]["amount"];
    assert_eq!(quoted, &json!((100 * MILLI).to_string()));
    assert_eq!(answers["queryTokenPrice"]["price"], 2500);
    // More dollars' worth of the native currency was bought than of the token.
    let trending = answers["queryTrendingCurrencies"].as_array().unwrap();
    let symbols: Vec<_> = trending.iter().map(|one| one["symbol"].clone()).collect();
    assert_eq!(symbols, ["ETH", "USD"], "{trending:?}");
    assert!(trending.iter().all(|one| one["chainId"] == there));
    let refused = &told["refused"];
    assert_eq!(refused["errorCode"], "UNSUPPORTED_CURRENCY", "{refused}");
    opened.daemon.stop().await;
}

/// Waits until a daemon that has just started quotes.
async fn quoting(base: &str, quote: &Value) {
    let asked = async {
        loop {
            let request = reqwest::Client::new().post(format!("{base}/quote/v2"));
            let request = request.header("content-type", "application/json");
            let answer = request.body(quote.to_string()).send().await.unwrap();
            if answer.status().is_success() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
}

/// Waits until it has read what was bought before it started.
async fn tallied(base: &str) {
    let asked = async {
        loop {
            let answer = reqwest::get(format!("{base}/currencies/trending")).await;
            let listed: Value = answer.unwrap().json().await.unwrap();
            if listed.as_array().is_some_and(|listed| listed.len() == 2) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
}
