//! What the daemon will be asked about: orders, deposits, fills and withdrawals on real chains,
//! and executions written with the protocol's own codecs, accepted by the settlement contracts.

use alloy::{
    primitives::{Address, U256, keccak256},
    sol_types::SolEvent,
};
use devnet::{
    claim,
    contracts::Depository,
    world::{Devnet, Execution, Money, SignedOrder, Terms, Withdrawal},
};
use serde_json::json;
use vm::protocol::{
    action::Action,
    message::{Domain, TypedMessage},
    signature::{eip191, recover_wallet},
};

fn native(amount: u64) -> Money {
    Money {
        currency: Address::ZERO,
        amount: U256::from(amount),
    }
}

async fn order(world: &Devnet, input: Money) -> SignedOrder {
    let terms = Terms {
        input,
        output: native(900),
        recipient: Address::repeat_byte(9),
        calls: Vec::new(),
        fee: U256::from(10),
        deadline: None,
        salt: 1,
    };
    world.order(&terms).await.unwrap()
}

#[tokio::test]
async fn order_is_signed_by_the_solver_and_named_by_its_deposit() {
    let world = Devnet::start().await.unwrap();
    let order = order(&world, native(1_000)).await;
    let signer = recover_wallet(&order.signature, &eip191(order.id.as_slice())).unwrap();
    assert_eq!(signer, world.solver.address());
    let origin = &world.origin;
    let receipt = origin
        .deposit_native(&world.user, U256::from(1_000), order.id)
        .await
        .unwrap();
    let deposit = origin.deposited(&receipt).await.unwrap();
    let body = claim::fill(
        &order,
        std::slice::from_ref(&deposit),
        receipt.transaction_hash,
    );
    assert_eq!(body["inputs"][0]["onchainId"], json!(deposit.onchain_id));
    assert_eq!(body["order"]["inputs"][0]["payment"]["chainId"], "origin");
    assert_eq!(body["order"]["fees"][0]["amount"], "10");
}

#[tokio::test]
async fn token_deposit_is_known_by_the_tokens_own_log() {
    let world = Devnet::start().await.unwrap();
    let origin = &world.origin;
    let money = Money {
        currency: origin.token,
        amount: U256::from(500),
    };
    let order = order(&world, money).await;
    let receipt = origin
        .deposit_erc20(&world.user, origin.token, money.amount, order.id)
        .await
        .unwrap();
    let index = receipt.logs()[0].log_index.unwrap().to_string();
    let hash = receipt.transaction_hash.to_string();
    let expected = vm::protocol::id::deterministic(&["origin", &hash, &index]);
    assert_eq!(
        origin.deposited(&receipt).await.unwrap().onchain_id,
        expected
    );
    let nothing = origin.transfer_to_depository(&world.user, origin.token, U256::from(1), None);
    origin.deposited(&nothing.await.unwrap()).await.unwrap_err();
}

#[tokio::test]
async fn executions_in_the_protocols_own_codecs_settle() {
    let world = Devnet::start().await.unwrap();
    let hub = &world.hub;
    let token = world.origin.token_id(Address::ZERO).unwrap();
    let solver = world.origin.alias(world.solver.address()).unwrap();
    let (to, amount) = (solver, U256::from(77));
    let actions = vec![Action::Mint { to, token, amount }.encode()];
    let key = keccak256("a deposit");
    let message = vm::protocol::message::Execution {
        idempotency_key: key,
        actions: actions.clone(),
    };
    let domain = Domain::oracle("2", U256::from(hub.node.chain_id), hub.oracle);
    let digest = message.digest(&domain);
    let oracles = &world.oracles;
    let signatures = vec![
        oracles[2].sign_digest(digest).unwrap(),
        oracles[0].sign_digest(digest).unwrap(),
    ];
    let execution = Execution {
        idempotency_key: key,
        actions,
        signatures,
    };
    hub.submit(execution).await.unwrap();
    assert_eq!(hub.balance(solver, token).await.unwrap(), amount);
}

#[tokio::test]
async fn withdrawal_is_paid_under_the_id_that_the_protocol_gives_it() {
    let world = Devnet::start().await.unwrap();
    let origin = &world.origin;
    let recipient = Address::repeat_byte(8);
    for (currency, nonce) in [(Address::ZERO, 1), (origin.token, 2)] {
        let amount = U256::from(50);
        let deposit = if currency.is_zero() {
            origin
                .deposit_native(&world.user, amount, Default::default())
                .await
        } else {
            origin
                .deposit_erc20(&world.user, currency, amount, Default::default())
                .await
        };
        assert!(deposit.unwrap().status());
        let withdrawal = Withdrawal {
            site: origin,
            money: Money { currency, amount },
            owner: &world.solver,
            owner_chain: "destination",
            recipient,
            nonce: U256::from(nonce),
            expiration: U256::from(u64::MAX),
        };
        let transaction = world.execute(&withdrawal, &world.solver).await.unwrap();
        let receipt = origin.node.receipt(transaction).await.unwrap().unwrap();
        let log = receipt
            .logs()
            .iter()
            .find(|log| log.address() == origin.depository)
            .unwrap();
        let executed = Depository::RelayCallExecuted::decode_log(&log.inner).unwrap();
        assert_eq!(executed.id, withdrawal.id());
        let codec = vm::SETTLEMENT.withdrawals.unwrap();
        let body = withdrawal.status(Some(transaction));
        let encoded: alloy::primitives::Bytes =
            body["withdrawal"].as_str().unwrap().parse().unwrap();
        let described = codec.describe(&codec.decode(&encoded).unwrap());
        assert_eq!(described.id.unwrap(), withdrawal.id().to_string());
        assert_eq!(described.amount.unwrap(), "50");
        world.execute(&withdrawal, &world.solver).await.unwrap_err();
    }
    assert_eq!(
        origin.node.balance(recipient).await.unwrap(),
        U256::from(50)
    );
    assert_eq!(
        origin.token_balance(origin.token, recipient).await.unwrap(),
        U256::from(50)
    );
}
