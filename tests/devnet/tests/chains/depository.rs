//! The depository emits what the guide's protocol 4.1 says, and every token does its own kind of harm.

mod attested;

use std::sync::Arc;

use alloy::{
    primitives::{Address, B256, U256, b256, keccak256},
    rpc::types::TransactionReceipt,
    sol_types::{SolCall, SolEvent, SolValue},
};
use devnet::{
    account::Account,
    artifact::Artifacts,
    contracts::{Depository, FakeEmitter, FillRouter, Proxy, Token, Wallet},
    node::{Payload, arguments},
    world::DevChain,
};

const ID: B256 = B256::repeat_byte(0x77);
const AMOUNT: u64 = 1_000_000;

struct Fixture {
    site: DevChain,
    user: Account,
    allocator: Account,
}

async fn fixture() -> Fixture {
    let allocator = Account::named("allocator").unwrap();
    let user = Account::named("user").unwrap();
    let artifacts = Arc::new(Artifacts::load().unwrap());
    let site = DevChain::start("origin", 31_001, &allocator, artifacts)
        .await
        .unwrap();
    let funds = U256::from(10).pow(U256::from(21));
    site.node.set_balance(user.address(), funds).await.unwrap();
    site.mint(site.token, user.address(), U256::from(AMOUNT))
        .await
        .unwrap();
    Fixture {
        site,
        user,
        allocator,
    }
}

fn events<E: SolEvent>(receipt: &TransactionReceipt, emitter: Address) -> Vec<E> {
    let logs = receipt.logs().iter().filter(|log| log.address() == emitter);
    logs.filter_map(|log| E::decode_log(&log.inner).ok())
        .map(|log| log.data)
        .collect()
}

impl Fixture {
    /// Deposits with a token of its own; deposit amounts and token movements as the events say.
    async fn deposit_with(&self, contract: &str) -> (TransactionReceipt, Vec<u64>, Vec<u64>, u64) {
        let site = &self.site;
        let token = site.deploy_token(contract).await.unwrap();
        let amount = U256::from(AMOUNT);
        site.mint(token, self.user.address(), amount).await.unwrap();
        let receipt = site
            .deposit_erc20(&self.user, token, amount, ID)
            .await
            .unwrap();
        let deposits: Vec<Depository::RelayErc20Deposit> = events(&receipt, site.depository);
        let moves: Vec<Token::Transfer> = events(&receipt, token);
        let moved = moves.iter().filter(|log| log.to == site.depository);
        let held = site.token_balance(token, site.depository).await.unwrap();
        let small = |amount: U256| u64::try_from(amount).unwrap();
        (
            receipt,
            deposits.iter().map(|log| small(log.amount)).collect(),
            moved.map(|log| small(log.amount)).collect(),
            small(held),
        )
    }
}

#[test]
fn topics_are_those_of_the_specification() {
    let expected = [
        (
            Depository::RelayNativeDeposit::SIGNATURE_HASH,
            b256!("8032066556caf3967d8fec4ad22a2d9e1e9576556b2903a0fcd5b1fd201e3477"),
        ),
        (
            Depository::RelayErc20Deposit::SIGNATURE_HASH,
            b256!("49fed1d0b752ce30eee63c7a81133f3363b532fec5d4d7dd1ccfd005de4555e1"),
        ),
        (
            FillRouter::SolverNativeTransfer::SIGNATURE_HASH,
            b256!("d35467972d1fda5b63c735f59d3974fa51785a41a92aa3ed1b70832836f8dba6"),
        ),
        (
            FillRouter::SolverCallExecuted::SIGNATURE_HASH,
            b256!("93485dcd31a905e3ffd7b012abe3438fa8fa77f98ddc9f50e879d3fa7ccdc324"),
        ),
    ];
    for (ours, specified) in expected {
        assert_eq!(ours, specified);
    }
    assert_eq!(
        Depository::RelayCallExecuted::SIGNATURE_HASH,
        keccak256("RelayCallExecuted(bytes32,(address,bytes,uint256,bool))")
    );
}

#[tokio::test]
async fn native_deposit_is_recorded_with_depositor_amount_and_id() {
    let Fixture { site, user, .. } = fixture().await;
    let receipt = site
        .deposit_native(&user, U256::from(AMOUNT), ID)
        .await
        .unwrap();
    let log = Depository::RelayNativeDeposit {
        from: user.address(),
        amount: U256::from(AMOUNT),
        id: ID,
    };
    assert_eq!(
        events::<Depository::RelayNativeDeposit>(&receipt, site.depository),
        [log]
    );
    assert_eq!(receipt.logs()[0].topics().len(), 1);
    assert_eq!(
        site.node.balance(site.depository).await.unwrap(),
        U256::from(AMOUNT)
    );
}

#[tokio::test]
async fn erc20_deposit_follows_the_tokens_own_transfer() {
    let Fixture { site, user, .. } = fixture().await;
    let receipt = site
        .deposit_erc20(&user, site.token, U256::from(AMOUNT), ID)
        .await
        .unwrap();
    let logs = receipt.logs();
    assert_eq!(logs.len(), 2);
    assert_eq!(
        (logs[0].address(), logs[1].address()),
        (site.token, site.depository)
    );
    let log = Depository::RelayErc20Deposit {
        from: user.address(),
        token: site.token,
        amount: U256::from(AMOUNT),
        id: ID,
    };
    assert_eq!(
        events::<Depository::RelayErc20Deposit>(&receipt, site.depository),
        [log]
    );
}

#[tokio::test]
async fn deposit_without_amount_takes_the_whole_allowance() {
    let Fixture { site, user, .. } = fixture().await;
    let depositor = Address::repeat_byte(9);
    site.approve(&user, site.token, site.depository, U256::from(55))
        .await
        .unwrap();
    let call = Depository::depositErc20_1Call {
        depositor,
        token: site.token,
        id: ID,
    };
    let deposit = Payload::call(site.depository, &call);
    let receipt = site.node.transact(user.address(), deposit).await.unwrap();
    let logs: Vec<Depository::RelayErc20Deposit> = events(&receipt, site.depository);
    assert_eq!((logs[0].amount, logs[0].from), (U256::from(55), depositor));
}

#[tokio::test]
async fn tokens_differ_in_what_the_events_say_and_what_moved() {
    let fixture = fixture().await;
    let table = [
        ("Token", vec![AMOUNT], vec![AMOUNT], AMOUNT),
        ("SilentToken", vec![AMOUNT], vec![AMOUNT], AMOUNT),
        (
            "FeeToken",
            vec![AMOUNT],
            vec![AMOUNT - AMOUNT / 100],
            AMOUNT - AMOUNT / 100,
        ),
        ("LyingToken", vec![AMOUNT], vec![AMOUNT], 0),
        ("QuietToken", vec![AMOUNT], vec![], AMOUNT),
        (
            "ReentrantToken",
            vec![AMOUNT; 2],
            vec![AMOUNT; 2],
            2 * AMOUNT,
        ),
    ];
    for (contract, deposits, moves, held) in table {
        let (receipt, said, moved, holds) = fixture.deposit_with(contract).await;
        assert!(receipt.status(), "{contract}");
        assert_eq!((said, moved, holds), (deposits, moves, held), "{contract}");
    }
}

#[tokio::test]
async fn token_that_returns_false_cannot_be_deposited() {
    let (receipt, deposits, _, held) = fixture().await.deposit_with("FalseToken").await;
    assert!(!receipt.status());
    assert_eq!((deposits.len(), held), (0, 0));
}

#[tokio::test]
async fn rebasing_token_changes_balances_without_a_transfer() {
    let Fixture { site, .. } = fixture().await;
    let token = site.deploy_token("RebasingToken").await.unwrap();
    let owner = Address::repeat_byte(5);
    site.mint(token, owner, U256::from(10)).await.unwrap();
    let rebase = Payload::call(token, &Token::rebaseCall {});
    let receipt = site.node.transact(site.deployer, rebase).await.unwrap();
    assert!(receipt.logs().is_empty());
    assert_eq!(
        site.token_balance(token, owner).await.unwrap(),
        U256::from(20)
    );
}

fn payout(to: Address, nonce: u64, expiration: u64) -> Depository::CallRequest {
    Depository::CallRequest {
        calls: vec![Depository::Call {
            to,
            data: Default::default(),
            value: U256::from(AMOUNT),
            allowFailure: false,
        }],
        nonce: U256::from(nonce),
        expiration: U256::from(expiration),
    }
}

#[tokio::test]
async fn withdrawal_signed_by_the_allocator_pays_once() {
    let Fixture {
        site,
        user,
        allocator,
    } = fixture().await;
    site.deposit_native(&user, U256::from(2 * AMOUNT), ID)
        .await
        .unwrap();
    let to = Address::repeat_byte(0x33);
    let request = payout(to, 1, u64::MAX);
    let signature = site.sign_withdrawal(&allocator, &request).unwrap();
    let receipt = site
        .withdraw(&user, request.clone(), signature.clone())
        .await
        .unwrap();
    let logs: Vec<Depository::RelayCallExecuted> = events(&receipt, site.depository);
    let hash = Depository::hashCallRequestCall {
        request: request.clone(),
    };
    let id = site.node.view(site.depository, &hash).await.unwrap();
    assert_eq!(
        logs,
        [Depository::RelayCallExecuted {
            id,
            call: request.calls[0].clone()
        }]
    );
    assert_eq!(receipt.logs()[0].topics().len(), 1);
    assert_eq!(site.node.balance(to).await.unwrap(), U256::from(AMOUNT));
    let used = Depository::callRequestsCall { id };
    assert!(site.node.view(site.depository, &used).await.unwrap());
    let again = site.withdraw(&user, request, signature).await.unwrap();
    assert!(!again.status());
}

#[tokio::test]
async fn withdrawal_of_a_stranger_or_after_expiry_is_refused() {
    let Fixture {
        site,
        user,
        allocator,
    } = fixture().await;
    site.deposit_native(&user, U256::from(AMOUNT), ID)
        .await
        .unwrap();
    let fresh = payout(user.address(), 1, u64::MAX);
    let stranger = site.sign_withdrawal(&user, &fresh).unwrap();
    assert!(
        !site
            .withdraw(&user, fresh, stranger)
            .await
            .unwrap()
            .status()
    );
    let stale = payout(user.address(), 1, 1);
    let late = site.sign_withdrawal(&allocator, &stale).unwrap();
    assert!(!site.withdraw(&user, stale, late).await.unwrap().status());
}

#[tokio::test]
async fn router_pays_and_calls_in_order_with_the_order_id_behind_the_call() {
    let Fixture { site, user, .. } = fixture().await;
    let order = keccak256("order");
    let to = Address::repeat_byte(0x44);
    let data = Token::mintCall {
        to,
        amount: U256::from(3),
    }
    .abi_encode();
    let calls = vec![
        FillRouter::Call {
            to,
            data: Default::default(),
            value: U256::from(7),
        },
        FillRouter::Call {
            to: site.token,
            data: data.clone().into(),
            value: U256::ZERO,
        },
    ];
    let receipt = site.fill(&user, calls, order).await.unwrap();
    let paid: Vec<FillRouter::SolverNativeTransfer> = events(&receipt, site.router);
    assert_eq!(
        paid,
        [FillRouter::SolverNativeTransfer {
            to,
            amount: U256::from(7)
        }]
    );
    let called: Vec<FillRouter::SolverCallExecuted> = events(&receipt, site.router);
    assert_eq!((called[0].to, called[0].data.to_vec()), (site.token, data));
    let hash = receipt.transaction_hash;
    let sent: serde_json::Value = site
        .node
        .rpc("eth_getTransactionByHash", (hash,))
        .await
        .unwrap();
    let input = sent["input"].as_str().unwrap();
    assert!(input.ends_with(&format!("{order:x}")));
    assert_eq!(
        site.token_balance(site.token, to).await.unwrap(),
        U256::from(3)
    );
}

#[tokio::test]
async fn attackers_emit_genuine_events_from_their_own_addresses() {
    let Fixture { site, user, .. } = fixture().await;
    let fake = site.deploy("FakeEmitter", &[]).await.unwrap();
    let target = Proxy::constructorCall {
        target: site.depository,
    };
    let proxy = site.deploy("Proxy", &arguments(&target)).await.unwrap();
    let say = FakeEmitter::nativeDepositCall {
        from: user.address(),
        amount: U256::from(AMOUNT),
        id: ID,
    };
    let forged = site
        .node
        .transact(user.address(), Payload::call(fake, &say))
        .await
        .unwrap();
    let mut through = site.native_deposit(ID).value(U256::from(AMOUNT));
    through.to = Some(proxy);
    let delegated = site.node.transact(user.address(), through).await.unwrap();
    for (receipt, emitter) in [(forged, fake), (delegated, proxy)] {
        assert_eq!(
            events::<Depository::RelayNativeDeposit>(&receipt, emitter).len(),
            1
        );
        assert!(events::<Depository::RelayNativeDeposit>(&receipt, site.depository).is_empty());
    }
    assert_eq!(
        site.node.balance(site.depository).await.unwrap(),
        U256::ZERO
    );
}

#[tokio::test]
async fn forged_logs_may_have_any_topics_and_data() {
    let Fixture { site, user, .. } = fixture().await;
    let fake = site.deploy("FakeEmitter", &[]).await.unwrap();
    for count in 1..=4 {
        let topics: Vec<_> = (0..count).map(B256::repeat_byte).collect();
        let data = U256::from(9).abi_encode().into();
        let say = FakeEmitter::anythingCall {
            topics: topics.clone(),
            data,
        };
        let receipt = site
            .node
            .transact(user.address(), Payload::call(fake, &say))
            .await
            .unwrap();
        assert_eq!(receipt.logs()[0].topics(), topics);
    }
}

#[tokio::test]
async fn wallet_deposits_several_times_and_can_undo_them() {
    let Fixture { site, user, .. } = fixture().await;
    let wallet = site.deploy("Wallet", &[]).await.unwrap();
    let deposit = |id| Wallet::Call {
        to: site.depository,
        data: site.native_deposit(id).data.into(),
        value: U256::from(1),
        allowFailure: false,
    };
    let calls = vec![deposit(ID), deposit(B256::ZERO)];
    let run = Payload::call(
        wallet,
        &Wallet::runCall {
            calls: calls.clone(),
        },
    );
    let receipt = site
        .node
        .transact(user.address(), run.value(U256::from(2)))
        .await
        .unwrap();
    let logs: Vec<Depository::RelayNativeDeposit> = events(&receipt, site.depository);
    assert_eq!(
        logs.iter().map(|log| log.from).collect::<Vec<_>>(),
        [wallet, wallet]
    );
    let undo = Payload::call(wallet, &Wallet::runAndUndoCall { calls });
    let undone = site
        .node
        .transact(user.address(), undo.value(U256::from(2)))
        .await
        .unwrap();
    assert!(undone.logs().is_empty());
    assert_eq!(
        site.node.balance(site.depository).await.unwrap(),
        U256::from(2)
    );
}
