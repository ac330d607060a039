//! Transactions are sent, replaced and followed; what cannot work is known before.

use alloy::{
    primitives::{Address as EvmAddress, B256, U256},
    rpc::types::Authorization as Delegation,
    sol_types::SolCall,
};
use devnet::{
    account::Account,
    contracts::{Token, Wallet},
    proxy::{Lie, on},
};
use serde_json::json;
use vm::{
    Bytes, OrderCall, ReadError,
    ethereum::trade::Unsealed,
    trade::{
        Authorization, Body, Broadcast, Call, Draft, Fate, FillTerms, PaymentTerms, Payout, Spend,
        Spent, Trial,
    },
};

use super::rig::{CHAIN, FAMILY, ORDER, Rig, address, steps};

const RECIPIENT: EvmAddress = EvmAddress::repeat_byte(9);

fn id(hash: B256) -> Bytes {
    Bytes::copy_from_slice(hash.as_slice())
}

#[tokio::test]
async fn a_transaction_waits_is_included_and_grows_deep() {
    let rig = Rig::start().await;
    let writer = &rig.trade.writer;
    let solver = address(rig.solver.address());
    rig.site.node.automine(false).await.unwrap();
    let had = rig.site.node.balance(rig.solver.address()).await.unwrap();
    let (raw, hash) = rig.sealed(&rig.draft(rig.payment(RECIPIENT, 5), 0, 10), &rig.solver);
    assert_eq!(writer.fate(&id(hash)).await, Ok(Fate::Unknown));
    assert_eq!(writer.broadcast(&raw).await, Ok(Broadcast::Accepted));
    // A second time changes nothing.
    assert_eq!(writer.broadcast(&raw).await, Ok(Broadcast::Accepted));
    assert_eq!(writer.fate(&id(hash)).await, Ok(Fate::Waiting));
    assert_eq!(rig.contracts().nonce(&solver, false).await, Ok(0));
    assert_eq!(rig.contracts().nonce(&solver, true).await, Ok(1));

    rig.site.node.mine(1, 1).await.unwrap();
    let block = rig.trade.scanner.head().await.unwrap();
    let left = rig.site.node.balance(rig.solver.address()).await.unwrap();
    let included = |depth| Fate::Included {
        block: block.clone(),
        depth,
        success: true,
        spent: Some(Spent {
            work: had - left - U256::from(5),
            besides: None,
        }),
    };
    assert_eq!(writer.fate(&id(hash)).await, Ok(included(0)));
    rig.site.node.mine(3, 1).await.unwrap();
    assert_eq!(writer.fate(&id(hash)).await, Ok(included(3)));
    assert_eq!(rig.contracts().nonce(&solver, false).await, Ok(1));
    let paid = rig.site.node.balance(RECIPIENT).await.unwrap();
    assert_eq!(paid, U256::from(5));

    // A receipt whose block the node does not show is of another fork.
    rig.proxy.lie(on("eth_getBlockByNumber", |_| {
        Lie::patch(|block| block["hash"] = json!(ORDER))
    }));
    let fate = writer.fate(&id(hash)).await;
    assert!(matches!(fate, Err(ReadError::Doubtful(_))), "{fate:?}");
}

#[tokio::test]
async fn a_failed_transaction_is_included_without_success() {
    let rig = Rig::start().await;
    let data = Token::transferCall {
        to: RECIPIENT,
        amount: U256::MAX,
    };
    let call = Call {
        data: data.abi_encode().into(),
        ..rig.payment(rig.site.token, 0)
    };
    let (raw, hash) = rig.sealed(&rig.draft(call, 0, 10), &rig.solver);
    rig.trade.writer.broadcast(&raw).await.unwrap();
    rig.site.node.mine(1, 1).await.unwrap();
    let fate = rig.trade.writer.fate(&id(hash)).await.unwrap();
    assert!(matches!(fate, Fate::Included { success: false, .. }));
}

#[tokio::test]
async fn refusals_of_the_node_are_told_apart() {
    let rig = Rig::start().await;
    rig.site.node.automine(false).await.unwrap();
    let send = async |nonce, gwei, wei| {
        let draft = rig.draft(rig.payment(RECIPIENT, wei), nonce, gwei);
        let (raw, _) = rig.sealed(&draft, &rig.solver);
        rig.trade.writer.broadcast(&raw).await.unwrap()
    };
    assert_eq!(send(0, 10, 1).await, Broadcast::Accepted);
    // The same nonce for the same price.
    assert_eq!(send(0, 10, 2).await, Broadcast::Underpriced);
    assert_eq!(send(0, 100, 3).await, Broadcast::Accepted);
    rig.site.node.mine(1, 1).await.unwrap();
    assert_eq!(send(0, 200, 4).await, Broadcast::Used);

    let poor = Account::named("poor").unwrap();
    let call = Call {
        from: address(poor.address()),
        ..rig.payment(RECIPIENT, 1)
    };
    let (raw, _) = rig.sealed(&rig.draft(call, 0, 10), &poor);
    let told = rig.trade.writer.broadcast(&raw).await.unwrap();
    assert_eq!(told, Broadcast::Unfunded);
    let garbage = rig.trade.writer.broadcast(&vec![2, 1].into()).await;
    assert!(matches!(garbage, Ok(Broadcast::Rejected(_))), "{garbage:?}");

    rig.proxy.lie(on("eth_sendRawTransaction", |_| {
        Lie::Result(json!(B256::ZERO))
    }));
    let other = rig.trade.writer.broadcast(&raw).await;
    assert!(matches!(other, Err(ReadError::Doubtful(_))));
}

#[tokio::test]
async fn estimates_are_gas_or_the_reason_why_not() {
    let rig = Rig::start().await;
    let estimate = async |call: Call| {
        let draft = Draft::call(call);
        rig.simulator().estimate(&Trial::free(&draft)).await
    };
    let gas = estimate(rig.payment(RECIPIENT, 1)).await;
    assert_eq!(gas, Ok(Ok(21_000)));
    let transfer = |amount| Call {
        data: Token::transferCall {
            to: RECIPIENT,
            amount,
        }
        .abi_encode()
        .into(),
        ..rig.payment(rig.site.token, 0)
    };
    let gas = estimate(transfer(U256::ONE)).await.unwrap().unwrap();
    assert!((21_000..200_000).contains(&gas));
    let revert = estimate(transfer(U256::MAX)).await.unwrap();
    assert_eq!(revert.unwrap_err().reason, "Panic(0x11)");

    // No revert: the sender is poor. Nothing is wrong with the call.
    rig.proxy.lie(on("eth_estimateGas", |_| {
        let geth = "insufficient funds for gas * price + value: address 0x1 have 0 want 1";
        Lie::Error(-32000, geth.into())
    }));
    let told = estimate(rig.payment(RECIPIENT, 1)).await;
    assert!(matches!(told, Err(ReadError::Unavailable(_))), "{told:?}");

    // A node without a pending block is asked for the latest.
    rig.proxy.lie(Box::new(|call| {
        let pending = call.method == "eth_estimateGas" && call.params[1] == "pending";
        pending.then(|| Lie::Error(-32000, "pending block is not available".into()))
    }));
    let gas = estimate(rig.payment(RECIPIENT, 1)).await;
    assert_eq!(gas, Ok(Ok(21_000)));
}

#[tokio::test]
async fn fees_are_those_of_the_next_block() {
    let rig = Rig::start().await;
    let fees = rig.trade.writer.rate().await.unwrap();
    let history: serde_json::Value = rig
        .site
        .node
        .rpc("eth_feeHistory", ("0x1", "latest", [50]))
        .await
        .unwrap();
    let next = history["baseFeePerGas"][1].as_str().unwrap();
    assert_eq!(format!("{:#x}", fees.base), next);
    assert!(fees.priority > 0);

    // Without a history: what the base fee can rise to.
    rig.proxy.lie(on("eth_feeHistory", |_| {
        Lie::Error(-32601, "no such method".into())
    }));
    let rising = rig.trade.writer.rate().await.unwrap();
    assert!(rising.base >= fees.base);
    assert_eq!(rising.priority, fees.priority);
    rig.proxy.also(on("eth_maxPriorityFeePerGas", |_| {
        Lie::Error(-32601, "no such method".into())
    }));
    assert!(rig.trade.writer.rate().await.is_err());
}

#[tokio::test]
async fn a_fill_spends_what_the_router_was_paid() {
    let rig = Rig::start().await;
    let solver = address(rig.solver.address());
    let site = &rig.site;
    let approval = rig
        .site
        .approve(&rig.solver, site.token, site.proxy, U256::from(9));
    approval.await.unwrap();
    let wallet = site.deploy("Wallet", &[]).await.unwrap();
    let payment = Wallet::Call {
        to: RECIPIENT,
        data: Default::default(),
        value: U256::from(4),
        allowFailure: false,
    };
    let run = Wallet::runCall {
        calls: vec![payment],
    };
    let fill = steps().fill(&FillTerms {
        solver: &solver,
        router: Some(&address(site.router)),
        proxy: Some(&address(site.proxy)),
        payments: &[
            Payout {
                to: address(site.router),
                currency: address(EvmAddress::ZERO),
                amount: U256::from(4),
            },
            Payout {
                to: address(RECIPIENT),
                currency: address(site.token),
                amount: U256::from(9),
            },
        ],
        calls: &[OrderCall {
            to: address(wallet),
            data: run.abi_encode().into(),
            value: U256::from(4),
        }],
        authorizations: &[],
        order: ORDER,
    });
    let fill = fill.unwrap().draft;
    let gas = rig.simulator().estimate(&Trial::free(&fill)).await;
    assert!(gas.unwrap().is_ok());
    let fill = fill.as_call().unwrap();
    let nonce = rig.contracts().nonce(&solver, true).await.unwrap();
    let draft = rig.draft(fill, nonce, 10);
    let (raw, hash) = rig.sealed(&draft, &rig.solver);
    rig.trade.writer.broadcast(&raw).await.unwrap();
    rig.site.node.mine(1, 1).await.unwrap();
    let fate = rig.trade.writer.fate(&id(hash)).await.unwrap();
    assert!(matches!(fate, Fate::Included { success: true, .. }));
    let native = site.node.balance(RECIPIENT).await.unwrap();
    assert_eq!(native, U256::from(4));
    let tokens = site.token_balance(site.token, RECIPIENT).await.unwrap();
    assert_eq!(tokens, U256::from(9));
    let left = site.node.balance(site.router).await.unwrap();
    assert_eq!(left, U256::ZERO);
}

/// The user lets its account run as a wallet, and the solver brings that authorization.
fn delegated(rig: &Rig, wallet: EvmAddress) -> Unsealed {
    let delegation = Delegation {
        chain_id: U256::from(CHAIN),
        address: wallet,
        nonce: 0,
    };
    let signature = rig.user.sign_digest(delegation.signature_hash()).unwrap();
    let run = Wallet::runCall { calls: Vec::new() };
    let call = Call {
        data: run.abi_encode().into(),
        ..rig.payment(rig.user.address(), 0)
    };
    Unsealed {
        authorizations: vec![Authorization {
            chain_id: CHAIN,
            address: address(wallet),
            nonce: 0,
            y_parity: signature[64] - 27,
            r: B256::from_slice(&signature[..32]),
            s: B256::from_slice(&signature[32..64]),
        }],
        ..rig.draft(call, 0, 10)
    }
}

#[tokio::test]
async fn authorizations_travel_with_a_transaction() {
    let rig = Rig::start().await;
    let wallet = rig.site.deploy("Wallet", &[]).await.unwrap();
    let draft = delegated(&rig, wallet);
    let intended = Draft {
        from: draft.call.from.clone(),
        value: draft.call.value,
        body: Body::Call {
            to: draft.call.to.clone(),
            data: draft.call.data.clone(),
            authorizations: draft.authorizations.clone(),
        },
    };
    let trial = Trial::free(&intended);
    let simulator = rig.simulator();
    let estimate = simulator.estimate(&trial);
    let gas = estimate.await.unwrap().unwrap();
    // The delegation itself costs gas: the estimate has counted it.
    assert!(gas > 36_000, "{gas}");
    let (raw, hash) = rig.sealed(&draft, &rig.solver);
    assert_eq!(raw[0], 4);
    let told = rig.trade.writer.broadcast(&raw).await;
    assert_eq!(told, Ok(Broadcast::Accepted));
    rig.site.node.mine(1, 1).await.unwrap();
    let fate = rig.trade.writer.fate(&id(hash)).await.unwrap();
    assert!(matches!(fate, Fate::Included { success: true, .. }));
    let user = address(rig.user.address());
    assert_eq!(rig.contracts().is_contract(&user).await, Ok(true));
}

#[tokio::test]
async fn calls_are_tried_one_behind_the_other_as_their_sender() {
    let rig = Rig::start().await;
    let (solver, router) = (address(rig.solver.address()), address(rig.site.router));
    let proxy = address(rig.site.proxy);
    let token = address(rig.site.token);
    let spend = |amount: u64| Spend {
        spender: &proxy,
        currency: &token,
        amount: U256::from(amount),
    };
    let approve = |amount| {
        let approvals = FAMILY.approvals.unwrap();
        let steps = approvals.approve(&solver, &spend(amount), false).unwrap();
        let calls = steps.iter().map(|step| step.draft.as_call().unwrap());
        calls.collect::<Vec<_>>()
    };
    let recipients = [RECIPIENT, rig.user.address()].map(address);
    let payments = recipients.map(|to| Payout {
        to,
        currency: token.clone(),
        amount: U256::from(5),
    });
    let fill = steps().fill(&FillTerms {
        solver: &solver,
        router: Some(&router),
        proxy: Some(&proxy),
        payments: &payments,
        calls: &[],
        authorizations: &[],
        order: ORDER,
    });
    let fill = fill.unwrap().draft.as_call().unwrap();
    let tried = async |before: Vec<Call>| {
        let calls = [before, vec![fill.clone()]].concat();
        rig.simulator().simulate(&calls).await.unwrap()
    };
    let alone = tried(Vec::new()).await.unwrap_err();
    assert!(!alone.data.is_empty(), "{alone:?}");
    assert!(tried(approve(9)).await.is_err());
    let gas = tried(approve(10)).await.unwrap();
    assert!(gas > 80_000, "{gas}");
    // Nothing of it happened.
    let contracts = rig.contracts();
    let allowance = contracts.allowance(&solver, &proxy, &token);
    assert_eq!(allowance.await.unwrap(), U256::ZERO);
    let none = rig.simulator().simulate(&[]).await.unwrap();
    assert_eq!(none, Ok(0));
}

#[tokio::test]
async fn a_payment_to_a_new_account_and_back_is_tried() {
    let rig = Rig::start().await;
    let (solver, token) = (address(rig.solver.address()), address(rig.site.token));
    let nobody = address(EvmAddress::repeat_byte(0x77));
    let pay = |from: &vm::Address, to: &vm::Address, amount: u64| {
        let payment = PaymentTerms {
            from,
            to,
            currency: &token,
            amount: U256::from(amount),
            order: ORDER,
        };
        steps().send(&payment).unwrap().as_call().unwrap()
    };
    for (back, works) in [(5, true), (6, false)] {
        let calls = [pay(&solver, &nobody, 5), pay(&nobody, &solver, back)];
        let tried = rig.simulator().simulate(&calls).await.unwrap();
        assert_eq!(tried.is_ok(), works, "{back}: {tried:?}");
    }
}
