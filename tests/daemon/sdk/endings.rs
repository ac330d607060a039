//! Requests that do not end well, as the client tells them.

use alloy::{
    primitives::{Address, U256},
    sol_types::SolCall,
};
use devnet::{account::Account, contracts::Till, node::Payload, world::DevChain};
use serde_json::{Value, json};

use super::app::{App, ETH, MILLI, Way, held, hex};

struct Shop {
    app: App,
    /// One on each chain.
    here: Address,
    there: Address,
}

impl Shop {
    async fn open() -> Self {
        let app = App::start().await;
        let here = app.world.origin.deploy("Till", &[]).await.unwrap();
        let there = app.world.destination.deploy("Till", &[]).await.unwrap();
        Self { app, here, there }
    }

    /// A quote for a purchase, through the client.
    async fn quoted(&self, who: &Account, change: Value) -> Value {
        let buyer = who.address();
        let mut quote = self.app.quote_for(who, Way::Across, (ETH, ETH), 50 * MILLI);
        let data = alloy::hex::encode_prefixed(Till::buyCall { buyer }.abi_encode());
        let call = json!({"to": hex(self.there), "value": MILLI.to_string(), "data": data});
        quote["txs"] = json!([call]);
        for (field, value) in change.as_object().unwrap() {
            quote[field] = value.clone();
        }
        let job = json!({"what": "quote", "key": who.key(), "quote": quote});
        self.app.drive(job).await
    }

    async fn close(&self, to: bool) {
        let site = &self.app.world.destination;
        let close = Payload::call(self.there, &Till::closeCall { to });
        site.node.transact(site.deployer, close).await.unwrap();
    }

    /// Executes a quote from before.
    async fn execute(&self, who: &Account, quoted: &Value) -> Value {
        let chain = self.app.world.origin.node.chain_id;
        let job = json!({
            "what": "execute", "key": who.key(), "quoted": quoted["quote"], "quote": {"chainId": chain},
        });
        self.app.drive(job).await
    }
}

async fn wealth(site: &DevChain, who: &Account) -> U256 {
    held(site, Address::ZERO, who.address()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_fills_are_refunded_or_told_as_failures() {
    let shop = Shop::open().await;
    let (app, site) = (&shop.app, &shop.app.world.origin);
    let (a, b) = (app.customer(0), app.customer(1));
    let refund_to = json!({"options": {"refundTo": hex(shop.here)}});
    let (lucky, unlucky) = tokio::join!(
        shop.quoted(a, json!({})),
        // A contract that takes no gifts cannot be given anything back.
        shop.quoted(b, refund_to),
    );
    assert_eq!((&lucky["ok"], &unlucky["ok"]), (&json!(true), &json!(true)));
    shop.close(true).await;
    let refused = shop.quoted(a, json!({})).await;
    assert_eq!(
        refused["raw"]["errorCode"], "DESTINATION_TX_FAILED",
        "{refused}"
    );
    assert_eq!(refused["raw"]["errorData"], "the till is closed");
    let before = wealth(site, a).await;
    let (refunded, failed) = tokio::join!(shop.execute(a, &lucky), shop.execute(b, &unlucky));
    assert_eq!(
        refunded["error"], "Transaction failed: Refunded",
        "{refunded}"
    );
    let status = app.status(&lucky["quote"]).await;
    assert_eq!(
        (&status["status"], &status["failReason"]),
        (&json!("refund"), &json!("EXECUTION_REVERTED")),
        "{status}"
    );
    // All but gas came back.
    assert!(before - wealth(site, a).await < U256::from(MILLI));
    assert_eq!(failed["error"], "Transaction failed", "{failed}");
    let status = app.status(&unlucky["quote"]).await;
    assert_eq!(
        (&status["status"], &status["refundFailReason"]),
        (&json!("failure"), &json!("MANUAL_REFUND_REQUIRED")),
        "{status}"
    );
    shop.app.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_deposits_come_back_and_rejected_ones_never_happen() {
    let app = App::start().await;
    let (a, b) = (app.customer(0), app.customer(1));
    let site = &app.world.origin;
    let late = async {
        // A deposit is final two blocks later at the earliest.
        let mut quote = app.quote_for(a, Way::Across, (ETH, ETH), 50 * MILLI);
        quote["options"] = json!({"ttl": 1});
        let before = wealth(site, a).await;
        let job = json!({"what": "quote", "key": a.key(), "quote": quote});
        let quoted = app.drive(job).await;
        let chain = site.node.chain_id;
        let job = json!({
            "what": "execute", "key": a.key(), "quoted": quoted["quote"], "quote": {"chainId": chain},
        });
        let done = app.drive(job).await;
        assert_eq!(done["error"], "Transaction failed: Refunded", "{done}");
        let status = app.status(&quoted["quote"]).await;
        assert_eq!(status["failReason"], "TTL_EXPIRED", "{status}");
        assert!(before - wealth(site, a).await < U256::from(MILLI));
    };
    let rejected = async {
        let before = wealth(site, b).await;
        let quote = app.quote_for(b, Way::Across, (ETH, ETH), 50 * MILLI);
        let quoted = app
            .drive(json!({"what": "quote", "key": b.key(), "quote": quote}))
            .await;
        let job = json!({
            "what": "execute", "key": b.key(), "rejecting": true, "quoted": quoted["quote"],
            "quote": {"chainId": site.node.chain_id},
        });
        let done = app.drive(job).await;
        assert_eq!(done["ok"], false);
        let error = done["error"].as_str().unwrap();
        assert!(error.contains("User rejected the request"), "{done}");
        let status = app.status(&quoted["quote"]).await;
        assert_eq!(status["status"], "waiting", "{status}");
        assert_eq!(wealth(site, b).await, before);
    };
    tokio::join!(late, rejected);
    app.daemon.stop().await;
}
