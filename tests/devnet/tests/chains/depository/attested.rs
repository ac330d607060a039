//! What an oracle attests of the depository's deposits, whatever the token does and whoever calls.

use alloy::{
    primitives::{Address, B256, U256},
    rpc::types::TransactionReceipt,
};
use devnet::{
    claim,
    contracts::{Proxy, Token, Wallet},
    node::{Payload, arguments},
    world::Devnet,
};
use serde_json::{Value, json};

use super::{AMOUNT, ID};
use crate::support::{
    chain::{DEPOSITS, done, finalize, oracle},
    daemon::{Answer, Daemon},
};

struct Fixture {
    world: Devnet,
    daemon: Daemon,
}

impl Fixture {
    async fn start() -> Self {
        let world = Devnet::start().await.unwrap();
        let daemon = oracle(&world, 0).start().await;
        Self { world, daemon }
    }

    /// A token of which the user has enough for two deposits.
    async fn token(&self, contract: &str) -> Address {
        let (site, user) = (&self.world.origin, self.world.user.address());
        let token = site.deploy_token(contract).await.unwrap();
        let amount = U256::from(2 * AMOUNT);
        site.mint(token, user, amount).await.unwrap();
        token
    }

    async fn deposit(&self, token: Address) -> TransactionReceipt {
        let (site, user) = (&self.world.origin, &self.world.user);
        let sent = site.deposit_erc20(user, token, U256::from(AMOUNT), ID);
        sent.await.unwrap()
    }

    /// The user sends this to a contract.
    async fn send(&self, payload: Payload) -> TransactionReceipt {
        let (node, user) = (&self.world.origin.node, self.world.user.address());
        done(node.send(user, payload).await)
    }

    /// The answer about the deposits of a transaction that is final.
    async fn ask(&self, receipt: &TransactionReceipt) -> Answer {
        let site = &self.world.origin;
        finalize(&self.world, site).await;
        let body = claim::deposit(site, receipt.transaction_hash);
        self.daemon.attest(DEPOSITS, &body).await
    }

    /// The deposits of a transaction that are signed.
    async fn signed(&self, receipt: &TransactionReceipt) -> Vec<Value> {
        let answer = self.ask(receipt).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.signed_by().len(), 1, "{}", answer.body);
        let json = answer.json();
        let messages = json["messages"].as_array().unwrap().iter();
        messages.map(|message| message["result"].clone()).collect()
    }

    /// The transaction has one deposit, of the user's: exactly this of the token.
    async fn has(&self, receipt: &TransactionReceipt, (token, amount): (Address, u64)) {
        let deposits = self.signed(receipt).await;
        assert_eq!(deposits.len(), 1, "{deposits:?}");
        let deposit = &deposits[0];
        let user = self.world.user.address();
        assert_eq!(deposit["currency"], format!("{token:#x}"));
        assert_eq!(deposit["amount"], amount.to_string());
        assert_eq!(deposit["depositor"], format!("{user:#x}"));
        assert_eq!(deposit["depositId"], ID.to_string());
    }

    /// The transaction succeeded and has no deposit: nothing is signed.
    async fn has_none(&self, receipt: &TransactionReceipt) {
        let answer = self.ask(receipt).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let json = answer.json();
        assert_eq!(json["messages"], json!([]), "{}", answer.body);
        assert!(json["execution"].is_null(), "{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_believed_in_their_own_currency_alone() {
    let fixture = Fixture::start().await;
    // What a token of somebody's own says is worth what that token is.
    let token = fixture.token("LyingToken").await;
    let lied = done(Ok(fixture.deposit(token).await));
    fixture.has(&lied, (token, AMOUNT)).await;
    // The depository's word alone moves nothing.
    let quiet = fixture.token("QuietToken").await;
    let said = done(Ok(fixture.deposit(quiet).await));
    fixture.has_none(&said).await;
    let refusing = fixture.token("FalseToken").await;
    let reverted = fixture.deposit(refusing).await;
    assert!(!reverted.status());
    let answer = fixture.ask(&reverted).await;
    assert_eq!(answer.code(), "TRANSACTION_REVERTED", "{}", answer.body);
    assert!(answer.json()["execution"].is_null(), "{}", answer.body);
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn balances_that_change_by_themselves_are_no_deposits() {
    let fixture = Fixture::start().await;
    let token = fixture.token("RebasingToken").await;
    let first = fixture.deposit(token).await;
    fixture.has(&first, (token, AMOUNT)).await;
    let rebase = Payload::call(token, &Token::rebaseCall {});
    let rebased = fixture.send(rebase).await;
    let site = &fixture.world.origin;
    let held = site.token_balance(token, site.depository).await.unwrap();
    assert_eq!(held, U256::from(2 * AMOUNT));
    fixture.has_none(&rebased).await;
    // As much as was transferred, before and after.
    let second = fixture.deposit(token).await;
    fixture.has(&second, (token, AMOUNT)).await;
    fixture.has(&first, (token, AMOUNT)).await;
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inner_calls_that_are_undone_and_proxies_deposit_nothing() {
    let fixture = Fixture::start().await;
    let site = &fixture.world.origin;
    let wallet = site.deploy("Wallet", &[]).await.unwrap();
    let deposit = |id| Wallet::Call {
        to: site.depository,
        data: site.native_deposit(id).data.into(),
        value: U256::from(AMOUNT),
        allowFailure: false,
    };
    let calls = vec![deposit(ID), deposit(B256::ZERO)];
    let sum = U256::from(2 * AMOUNT);
    let undo = Wallet::runAndUndoCall {
        calls: calls.clone(),
    };
    let undone = fixture.send(Payload::call(wallet, &undo).value(sum)).await;
    fixture.has_none(&undone).await;
    let target = Proxy::constructorCall {
        target: site.depository,
    };
    let proxy = site.deploy("Proxy", &arguments(&target)).await.unwrap();
    let mut through = site.native_deposit(ID).value(U256::from(AMOUNT));
    through.to = Some(proxy);
    let delegated = fixture.send(through).await;
    fixture.has_none(&delegated).await;
    let empty = site.node.balance(site.depository).await.unwrap();
    assert_eq!(empty, U256::ZERO);
    // The same calls, which stand.
    let run = Payload::call(wallet, &Wallet::runCall { calls });
    let stood = fixture.send(run.value(sum)).await;
    let deposits = fixture.signed(&stood).await;
    let ids: Vec<_> = deposits.iter().map(|it| it["depositId"].clone()).collect();
    assert_eq!(ids, [json!(ID), json!(B256::ZERO)]);
    for deposit in &deposits {
        assert_eq!(deposit["depositor"], format!("{wallet:#x}"));
        assert_eq!(deposit["amount"], AMOUNT.to_string());
    }
    fixture.daemon.stop().await;
}
