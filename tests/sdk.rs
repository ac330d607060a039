//! The published TypeScript client, unmodified, against the daemon over real chains: what an
//! integrator does, seen from the integrator's side.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod sdk {
    pub mod app;
    mod calls;
    mod endings;
    mod swaps;
    mod wire;
}
mod support;

use alloy::primitives::U256;
use sdk::app::{App, ETH, MILLI, hex, promised, step_ids};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn client_lists_chains_and_quotes_both_trade_types() {
    let app = App::start().await;
    let listed = app.drive(json!({"what": "chains"})).await;
    let ids: Vec<_> = listed["chains"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["id"].clone())
        .collect();
    assert_eq!(ids, [31_001, 31_002]);

    let input = app
        .drive(json!({"what": "quote", "quote": app.quote(ETH, ETH, 100 * MILLI)}))
        .await;
    let details = &input["quote"]["details"];
    assert_eq!(
        details["currencyIn"]["amount"],
        (100 * MILLI).to_string(),
        "{input}"
    );
    let out: U256 = details["currencyOut"]["amount"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        out < U256::from(100 * MILLI) && out > U256::from(99 * MILLI),
        "{details}"
    );

    let mut body = app.quote(ETH, ETH, 100 * MILLI);
    body["tradeType"] = "EXACT_OUTPUT".into();
    let output = app.drive(json!({"what": "quote", "quote": body})).await;
    let details = &output["quote"]["details"];
    assert_eq!(
        details["currencyOut"]["amount"],
        (100 * MILLI).to_string(),
        "{output}"
    );
    assert_eq!(
        details["currencyOut"]["minimumAmount"],
        (100 * MILLI).to_string()
    );
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn native_bridge_goes_from_quote_to_success() {
    let app = App::start().await;
    let before = app
        .world
        .destination
        .node
        .balance(app.world.user.address())
        .await
        .unwrap();
    let done = app.execute(app.quote(ETH, ETH, 100 * MILLI)).await;
    assert_eq!(step_ids(&done), ["deposit"]);
    let after = app
        .world
        .destination
        .node
        .balance(app.world.user.address())
        .await
        .unwrap();
    assert_eq!(after - before, promised(&done));
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_bridge_approves_and_deposits() {
    let app = App::start().await;
    let (origin, destination) = (&app.world.origin, &app.world.destination);
    let user = app.world.user.address();
    let before = destination
        .token_balance(destination.token, user)
        .await
        .unwrap();
    let (from, to) = (hex(origin.token), hex(destination.token));
    let done = app.execute(app.quote(&from, &to, 25_000_000)).await;
    assert_eq!(step_ids(&done), ["approve", "deposit"]);
    let after = destination
        .token_balance(destination.token, user)
        .await
        .unwrap();
    assert_eq!(after - before, promised(&done));
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batching_wallet_tells_nobody_and_is_filled() {
    let app = App::start().await;
    let (from, to) = (
        hex(app.world.origin.token),
        hex(app.world.destination.token),
    );
    let job =
        json!({"what": "execute", "batching": true, "quote": app.quote(&from, &to, 25_000_000)});
    let done = app.drive(job).await;
    assert_eq!(done["ok"], true, "{done}");
    let told = done["requests"].as_array().unwrap();
    assert!(
        !told.contains(&"POST /transactions/index".into()),
        "{told:?}"
    );
    app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forced_refund_is_told_as_refunded() {
    let app = App::start().await;
    let job = json!({
        "what": "execute", "source": "debug-force-refund", "quote": app.quote(ETH, ETH, 100 * MILLI),
    });
    let done = app.drive(job).await;
    assert_eq!(done["ok"], false, "{done}");
    assert_eq!(done["error"], "Transaction failed: Refunded");
    app.daemon.stop().await;
}
