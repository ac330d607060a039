//! An app pages through its requests while more of them arrive.

use serde_json::{Value, json};
use tokio::process::Command;

use super::app::{App, ETH, MILLI};

const PAGE: &str = include_str!("page.mjs");

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_is_paged_to_the_end_while_requests_arrive() {
    let app = App::start().await;
    let key = app.daemon.integrator("app").await;
    let (world, user) = (&app.world, app.world.user.address());
    let body = json!({
        "user": user, "recipient": user, "originChainId": world.origin.node.chain_id,
        "destinationChainId": world.destination.node.chain_id, "originCurrency": ETH,
        "destinationCurrency": ETH, "amount": (100 * MILLI).to_string(),
        "tradeType": "EXACT_INPUT",
    });
    let job = json!({
        "url": app.daemon.integrator_url(), "key": key, "body": body,
        "rpc": world.origin.node.url.as_str(),
    });
    let ran = Command::new("node")
        .args(["--input-type=module", "--eval", PAGE])
        .env("JOB", job.to_string())
        .output()
        .await
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let told: Value = serde_json::from_slice(&ran.stdout).unwrap();
    // Newest first, what arrives comes before the page; oldest first, it comes after it.
    for (direction, seen) in [("desc", 14), ("asc", 30)] {
        let told = &told[direction];
        assert_eq!(
            (&told["missed"], &told["twice"], &told["seen"]),
            (&json!([]), &json!([]), &json!(seen)),
            "{told}"
        );
    }
    app.daemon.stop().await;
}
