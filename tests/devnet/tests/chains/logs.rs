//! Logs can be forged and dropped on the way.

use std::sync::Arc;

use alloy::primitives::{Address, B256, U256};
use devnet::{
    account::Account,
    artifact::Artifacts,
    proxy::{LyingProxy, rules},
    world::DevChain,
};
use serde_json::{Value, json};

async fn logs(proxy: &LyingProxy, hash: B256) -> Vec<Value> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_getTransactionReceipt", "params": [hash] });
    let request = reqwest::Client::new().post(proxy.url.clone());
    let answer = request.body(body.to_string()).send().await.unwrap();
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    answer["result"]["logs"].as_array().unwrap().clone()
}

#[tokio::test]
async fn log_is_forged_or_dropped_only_while_the_rule_holds() {
    let allocator = Account::named("allocator").unwrap();
    let artifacts = Arc::new(Artifacts::load().unwrap());
    let site = DevChain::start("origin", 31_001, &allocator, artifacts)
        .await
        .unwrap();
    let user = Account::named("user").unwrap();
    site.node
        .set_balance(user.address(), U256::from(10).pow(U256::from(20)))
        .await
        .unwrap();
    let deposit = site
        .deposit_native(&user, U256::from(5), B256::ZERO)
        .await
        .unwrap();
    let proxy = LyingProxy::start(&site.node.url).await.unwrap();
    let hash = deposit.transaction_hash;

    let truth = logs(&proxy, hash).await;
    assert_eq!(truth.len(), 1);
    proxy.lie(rules::drop_log(0));
    assert!(logs(&proxy, hash).await.is_empty());
    let address = Address::repeat_byte(1);
    proxy.lie(rules::forge_log(json!({ "address": address })));
    let forged = logs(&proxy, hash).await;
    assert_eq!((forged.len(), &forged[0]), (2, &truth[0]));
    assert_eq!(forged[1]["address"], json!(address));
    assert_eq!(forged[1]["logIndex"], "0x1");
    assert_eq!(forged[1]["data"], truth[0]["data"]);
    proxy.honest();
    assert_eq!(logs(&proxy, hash).await, truth);
}
