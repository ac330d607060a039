//! The published TypeScript client and its wallet adapters, unmodified, against the daemon over real chains: what an
//! integrator does, seen from the integrator's side.

mod abroad;
pub mod app;
mod calls;
mod endings;
mod listing;
mod several;
mod swaps;
mod tokens;
mod webhooks;
mod wire;

use self::app::{App, ETH, MILLI, USD, Way, held, hex, promised, step_ids};
use alloy::primitives::U256;
use devnet::account::Account;
use serde_json::{Value, json};

async fn lists_chains_and_quotes_both_trade_types(app: &App) {
    let listed = app.drive(json!({"what": "chains"})).await;
    let chains = listed["chains"].as_array().unwrap().iter();
    let ids: Vec<_> = chains.map(|chain| chain["id"].clone()).collect();
    assert_eq!(ids, [31_001, 31_002]);

    let job = json!({"what": "quote", "quote": app.quote(ETH, ETH, 100 * MILLI)});
    let input = app.drive(job).await;
    let details = &input["quote"]["details"];
    let whole = json!((100 * MILLI).to_string());
    assert_eq!(details["currencyIn"]["amount"], whole, "{input}");
    let out = promised(&input);
    let expected = U256::from(99 * MILLI)..U256::from(100 * MILLI);
    assert!(expected.contains(&out), "{details}");

    let mut body = app.quote(ETH, ETH, 100 * MILLI);
    body["tradeType"] = "EXACT_OUTPUT".into();
    let output = app.drive(json!({"what": "quote", "quote": body})).await;
    let details = &output["quote"]["details"];
    assert_eq!(details["currencyOut"]["amount"], whole, "{output}");
    assert_eq!(details["currencyOut"]["minimumAmount"], whole);
}

async fn bridges_the_native_currency(app: &App, who: &Account) {
    let (site, zero) = (&app.world.destination, ETH.parse().unwrap());
    let before = held(site, zero, who.address()).await;
    let quote = app.quote_for(who, Way::Across, (ETH, ETH), 100 * MILLI);
    let done = app.execute_as(who, quote).await;
    assert_eq!(step_ids(&done), ["deposit"]);
    let after = held(site, zero, who.address()).await;
    assert_eq!(after - before, promised(&done));
}

/// A token from one chain to the other; by a wallet that batches, nobody is told of anything.
async fn bridges_a_token(app: &App, who: &Account, batching: bool) -> Value {
    let (origin, site) = (&app.world.origin, &app.world.destination);
    let pair = (&*hex(origin.token), &*hex(site.token));
    let before = held(site, site.token, who.address()).await;
    let quote = app.quote_for(who, Way::Across, pair, 25 * USD);
    let job = json!({"what": "execute", "key": who.key(), "batching": batching, "quote": quote});
    let done = app.drive(job).await;
    app.succeeded(&done).await;
    let after = held(site, site.token, who.address()).await;
    assert_eq!(after - before, promised(&done));
    done
}

async fn tells_a_forced_refund_as_refunded(app: &App, who: &Account) {
    let quote = app.quote_for(who, Way::Across, (ETH, ETH), 100 * MILLI);
    let job = json!({
        "what": "execute", "source": "debug-force-refund", "key": who.key(), "quote": quote,
    });
    let done = app.drive(job).await;
    assert_eq!(done["ok"], false, "{done}");
    assert_eq!(done["error"], "Transaction failed: Refunded");
}

/// How often the client is run whose socket does not open.
const TRIES: usize = 3;

/// What the client says to a job, which listens. It gives its socket two seconds to open: where the machine was too
/// slow for that it heard nothing and asked instead, and is run again.
async fn listened(app: &App, mut job: Value) -> Value {
    job["websocket"] = app.daemon.integrator_url().replace("http", "ws").into();
    let mut done = Value::Null;
    for _ in 0..TRIES {
        done = app.drive(job.clone()).await;
        let heard = done["heard"].as_array();
        if heard.is_some_and(|heard| !heard.is_empty()) {
            break;
        }
    }
    done
}

/// The client's socket tells it everything: it never asks for the status.
async fn hears_over_a_websocket(app: &App, who: &Account, source: &str) -> Value {
    let quote = app.quote_for(who, Way::Across, (ETH, ETH), 100 * MILLI);
    let job = json!({"what": "execute", "source": source, "key": who.key(), "quote": quote});
    let done = listened(app, job).await;
    let asked = done["requests"].as_array().unwrap();
    let polled = |request: &Value| request.as_str().unwrap().contains("/intents/status");
    assert!(!asked.iter().any(polled), "{done}");
    let kinds: Vec<_> = done["heard"].as_array().unwrap().iter().collect();
    assert_eq!(kinds[0]["type"], "connection", "{done}");
    assert_eq!(kinds[1]["type"], "subscribe", "{done}");
    assert_eq!(kinds[1]["status"], "success", "{done}");
    let events = &kinds[2..];
    let fields = [
        "inTxHashes",
        "txHashes",
        "updatedAt",
        "requestId",
        "failReason",
    ];
    for event in events {
        assert_eq!(event["event"], "request.status.updated", "{event}");
        assert!(event["publishedAt"].is_u64(), "{event}");
        for field in fields {
            assert!(!event["data"][field].is_null(), "{field}: {event}");
        }
    }
    let statuses = events.iter().map(|event| event["data"]["status"].clone());
    let mut statuses: Vec<_> = statuses.collect();
    let end = statuses.pop().unwrap();
    assert!(!statuses.contains(&end), "{statuses:?} {end}");
    assert_eq!(end == "success", done["ok"] == true, "{done}");
    done
}

#[tokio::test(flavor = "multi_thread")]
async fn client_bridges_from_quote_to_verdict() {
    let app = App::start().await;
    let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|number| app.customer(number));
    let ((), (), told, untold, (), heard, refunded) = tokio::join!(
        lists_chains_and_quotes_both_trade_types(&app),
        bridges_the_native_currency(&app, a),
        bridges_a_token(&app, b, false),
        bridges_a_token(&app, c, true),
        tells_a_forced_refund_as_refunded(&app, d),
        hears_over_a_websocket(&app, e, "acceptance.test"),
        hears_over_a_websocket(&app, f, "debug-force-refund"),
    );
    assert_eq!(heard["ok"], true, "{heard}");
    assert_eq!(refunded["error"], "Transaction failed: Refunded");
    assert_eq!(step_ids(&told), ["approve", "deposit"]);
    let index = json!("POST /transactions/index");
    assert!(told["requests"].as_array().unwrap().contains(&index));
    assert!(!untold["requests"].as_array().unwrap().contains(&index));
    app.daemon.stop().await;
}
