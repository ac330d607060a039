//! The Solana chain of the devnet by itself: it shows slots, commitments and forks as real nodes do, and its depository
//! does to money what the real one does.

use devnet::solana::{Front, Lag, LocalChain, Paid, Request, TOKEN, keypair, program::SYSTEM};
use serde_json::{Value, json};
use solana_keypair::Keypair;
use solana_signer::Signer;

const LAG: Lag = Lag {
    confirmed: 1,
    finalized: 3,
};

async fn site() -> (LocalChain, Keypair) {
    let site = LocalChain::start(LAG).await.unwrap();
    let user = keypair("user").unwrap();
    site.cluster.fund(&user.pubkey()).unwrap();
    (site, user)
}

/// The whole answer of a node.
async fn said(front: &Front, method: &str, params: Value) -> Value {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let request = reqwest::Client::new().post(front.url.clone());
    let answer = request.body(call.to_string()).send().await.unwrap();
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

async fn ask(front: &Front, method: &str, params: Value) -> Value {
    let answer = said(front, method, params).await;
    assert!(answer["error"].is_null(), "{method}: {answer}");
    answer["result"].clone()
}

fn paid(user: &Keypair, amount: u64) -> Paid {
    Paid {
        sender: user.pubkey(),
        depositor: user.pubkey(),
        amount,
        id: [7; 32],
    }
}

#[tokio::test]
async fn commitments_lag_and_skipped_slots_have_no_block() {
    let (site, _) = site().await;
    let (cluster, front) = (&site.cluster, &site.front);
    cluster.advance(5);
    let before = cluster.slot();
    cluster.skip(2);
    cluster.advance(1);
    let tip = cluster.slot();
    assert_eq!(tip, before + 3);
    for (commitment, slot) in [
        ("processed", tip),
        ("confirmed", before),
        ("finalized", before - 2),
    ] {
        let shown = ask(front, "getSlot", json!([{ "commitment": commitment }])).await;
        assert_eq!(shown, slot, "{commitment}");
    }
    assert_eq!(ask(front, "getSlot", json!([])).await, before - 2);
    let early = said(front, "getBlock", json!([tip])).await;
    assert_eq!(early["error"]["code"], -32004);
    cluster.advance(4);
    let skipped = said(front, "getBlock", json!([before + 1])).await;
    assert_eq!(skipped["error"]["code"], -32007);
    let block = ask(
        front,
        "getBlock",
        json!([tip, { "transactionDetails": "none" }]),
    )
    .await;
    assert_eq!(block["parentSlot"], before);
    let parent = ask(front, "getBlock", json!([before])).await;
    assert_eq!(block["previousBlockhash"], parent["blockhash"]);
    let slots = ask(front, "getBlocks", json!([before, tip])).await;
    assert_eq!(slots, json!([before, tip]));
    let time = ask(front, "getBlockTime", json!([tip])).await;
    assert_eq!(time, block["blockTime"]);
}

#[tokio::test]
async fn statuses_are_those_of_the_newest_block() {
    let (site, user) = site().await;
    let (cluster, front) = (&site.cluster, &site.front);
    cluster.advance(5);
    let deposit = cluster.depository.deposit_native(&paid(&user, 300));
    let sent = cluster.execute(&[deposit], &[&user]).unwrap();
    let asked = json!([[
        sent.to_string(),
        keypair("user").unwrap().sign_message(b"").to_string()
    ]]);
    let shown = ask(front, "getSignatureStatuses", asked).await;
    assert_eq!(shown["context"]["slot"], cluster.slot());
    assert_eq!(shown["value"][0]["confirmationStatus"], "processed");
    assert_eq!(shown["value"][1], Value::Null);
}

#[tokio::test]
async fn an_old_chain_has_final_blocks_far_above_its_first() {
    let site = LocalChain::aged(LAG, 256).await.unwrap();
    let first = ask(&site.front, "getFirstAvailableBlock", json!([])).await;
    let newest = ask(&site.front, "getSlot", json!([])).await;
    assert_eq!(newest.as_u64().unwrap() - first.as_u64().unwrap(), 256);
    let time = |slot: Value| ask(&site.front, "getBlockTime", json!([slot]));
    let (first, newest) = (time(first).await, time(newest).await);
    assert_eq!(newest.as_i64().unwrap() - first.as_i64().unwrap(), 128);
}

#[tokio::test]
async fn provider_may_be_behind_and_says_so_when_asked_for_more() {
    let (site, user) = site().await;
    site.cluster.advance(6);
    let late = site.cluster.provider().await.unwrap();
    late.fall_behind(1);
    let slot = ask(&site.front, "getSlot", json!([])).await;
    let behind = ask(&late, "getSlot", json!([])).await;
    assert_eq!(behind.as_u64().unwrap() + 1, slot.as_u64().unwrap());
    let account = json!([user.pubkey().to_string(), { "minContextSlot": slot }]);
    assert_eq!(
        said(&late, "getAccountInfo", account.clone()).await["error"]["code"],
        -32016
    );
    let shown = ask(&site.front, "getAccountInfo", account).await;
    assert_eq!(shown["context"]["slot"], slot);
    assert_eq!(shown["value"]["owner"], SYSTEM.to_string());
}

#[tokio::test]
async fn transactions_are_shown_with_what_they_did() {
    let (site, user) = site().await;
    let (cluster, front) = (&site.cluster, &site.front);
    let token = cluster.mint(&site.allocator, TOKEN, 0).unwrap();
    cluster
        .give(&site.allocator, token, &user.pubkey(), 500)
        .unwrap();
    let deposit = cluster.depository.deposit_token(&paid(&user, 300), token);
    let id = cluster.execute(&[deposit], &[&user]).unwrap();
    let named = json!([id.to_string(), { "maxSupportedTransactionVersion": 0 }]);
    assert!(ask(front, "getTransaction", named.clone()).await.is_null());
    let statuses = json!([[id.to_string()]]);
    let status = ask(front, "getSignatureStatuses", statuses.clone()).await;
    assert_eq!(status["value"][0]["confirmationStatus"], "processed");
    cluster.advance(3);
    let status = ask(front, "getSignatureStatuses", statuses).await;
    assert_eq!(status["value"][0]["confirmationStatus"], "finalized");
    let shown = ask(front, "getTransaction", named).await;
    let meta = &shown["meta"];
    assert!(meta["err"].is_null(), "{shown}");
    let called = meta["innerInstructions"][0]["instructions"]
        .as_array()
        .unwrap();
    assert!(called.len() >= 2, "{shown}");
    let held = |balances: &Value| -> Vec<String> {
        let all = balances.as_array().unwrap().iter();
        let amounts = all.map(|one| one["uiTokenAmount"]["amount"].as_str().unwrap().to_owned());
        amounts.collect()
    };
    assert_eq!(held(&meta["preTokenBalances"]), ["500"]);
    let mut after = held(&meta["postTokenBalances"]);
    after.sort();
    assert_eq!(after, ["200", "300"]);
    assert_eq!(shown["version"], 0);
    let old = said(front, "getTransaction", json!([id.to_string()])).await;
    assert_eq!(old["error"]["code"], -32015);
    let vault = cluster.depository.vault().to_string();
    let of_vault = ask(front, "getSignaturesForAddress", json!([vault])).await;
    assert_eq!(of_vault[0]["signature"], id.to_string());
    let account =
        devnet::solana::token::associated(&cluster.depository.vault(), &token.0, &token.1);
    let parsed = json!([account.to_string(), { "encoding": "jsonParsed" }]);
    let parsed = ask(front, "getAccountInfo", parsed).await;
    assert_eq!(
        parsed["value"]["data"]["parsed"]["info"]["mint"],
        token.0.to_string()
    );
}

#[tokio::test]
async fn fork_takes_its_transactions_and_their_money_away() {
    let (site, user) = site().await;
    let cluster = &site.cluster;
    cluster.advance(2);
    let had = cluster.balance(&cluster.depository.vault());
    let deposit = cluster.depository.deposit_native(&paid(&user, 777));
    let id = cluster.execute(&[deposit], &[&user]).unwrap();
    assert_eq!(cluster.balance(&cluster.depository.vault()), had + 777);
    let (slot, _) = cluster.placed(&id).unwrap();
    cluster.drop_blocks(1);
    assert_eq!(cluster.balance(&cluster.depository.vault()), had);
    cluster.advance(1);
    assert!(cluster.placed(&id).is_none() && cluster.slot() > slot);
}

#[tokio::test]
async fn withdrawal_is_paid_once_and_by_the_allocator_alone() {
    let (site, user) = site().await;
    let cluster = &site.cluster;
    let deposit = cluster.depository.deposit_native(&paid(&user, 5_000_000));
    cluster.execute(&[deposit], &[&user]).unwrap();
    let recipient = keypair("recipient").unwrap().pubkey();
    let request = Request {
        domain: [1; 32],
        recipient,
        token: None,
        amount: 2_000_000,
        nonce: 1,
        expiration: cluster.time() + 1_000,
    };
    let encoded = request.encode(&cluster.depository);
    let codec = vm::family("solana-vm").unwrap().withdrawals.unwrap();
    let described = codec.describe(&codec.decode(&encoded).unwrap());
    let id: alloy::primitives::B256 = described.id.unwrap().parse().unwrap();
    assert_eq!(described.amount.unwrap(), "2000000");
    let by = |who: &Keypair| {
        let named = (&encoded[..], &id.0);
        cluster
            .depository
            .execute_transfer(&request, who.pubkey(), named)
    };
    cluster.execute(&[by(&user)], &[&user]).unwrap_err();
    assert_eq!(cluster.balance(&recipient), 0);
    let allocator = &site.allocator;
    cluster.execute(&[by(allocator)], &[allocator]).unwrap();
    assert_eq!(cluster.balance(&recipient), 2_000_000);
    cluster.advance(1);
    cluster.execute(&[by(allocator)], &[allocator]).unwrap_err();
    assert_eq!(cluster.balance(&recipient), 2_000_000);
}
