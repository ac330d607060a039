//! Deposits are found, all of them and no others; a range that is too much is said to be.

use alloy::primitives::{B256, U256};
use devnet::{
    contracts::{Depository, FakeEmitter, Token, Wallet},
    node::Payload,
    proxy::{Call, Lie, on},
};
use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use vm::{
    ReadError, Transaction,
    trade::{Choices, DepositTerms, DepositTx, ScanError},
};

use super::rig::{ORDER, Rig, address, steps};

fn amount(n: u64) -> U256 {
    U256::from(n)
}

async fn scan(rig: &Rig) -> Vec<DepositTx> {
    let head = rig.height().await;
    rig.trade.scanner.deposits(1..=head).await.unwrap()
}

/// What the oracle's own reader makes of each deposit transaction.
async fn confirmed(rig: &Rig, seen: &[DepositTx]) {
    let reader = rig.reader().reader;
    let head = reader.fresh_head().await.unwrap();
    for deposit_tx in seen {
        let found = reader.transaction(&deposit_tx.transaction, &head).await;
        let Transaction::Succeeded(receipt) = found.unwrap() else {
            panic!("{deposit_tx:?} has no receipt");
        };
        let mut deposits = receipt.deposits.unwrap();
        // Who sent it is seen only here.
        for deposit in &mut deposits {
            let sent = receipt.sender.as_ref() == Some(&deposit.depositor);
            assert_eq!(deposit.by_depositor, sent, "{deposit:?}");
            deposit.by_depositor = false;
        }
        assert_eq!(deposits, deposit_tx.deposits);
        assert_eq!(receipt.block.hash, deposit_tx.hash);
        assert_eq!(receipt.block.number, deposit_tx.number);
    }
}

#[tokio::test]
async fn every_kind_of_deposit_is_found_once() {
    let rig = Rig::start().await;
    let (site, user) = (&rig.site, &rig.user);
    let id = |byte| B256::repeat_byte(byte);
    let native = site.deposit_native(user, amount(1), id(0x11)).await;
    let explicit = site.deposit_erc20(user, site.token, amount(2), id(0x22));
    let explicit = explicit.await;
    let bare = |n, id| site.transfer_to_depository(user, site.token, amount(n), id);
    let implicit = bare(3, Some(id(0x33))).await;
    let nameless = bare(4, None).await;
    rig.proxy.reset();

    let seen = scan(&rig).await;
    let shown: Vec<_> = seen
        .iter()
        .map(|deposit_tx| {
            let [deposit] = deposit_tx.deposits.as_slice() else {
                panic!("{deposit_tx:?}");
            };
            let (amount, id) = (deposit.amount, deposit.id.parse::<B256>().unwrap());
            (deposit_tx.transaction.bytes.clone(), amount, id)
        })
        .collect();
    let sent = [native, explicit, implicit, nameless].map(|sent| sent.unwrap().transaction_hash);
    let ids = [id(0x11), id(0x22), id(0x33), B256::ZERO];
    let expected: Vec<_> = (1..)
        .zip(sent)
        .zip(ids)
        .map(|((n, hash), id)| (vm::Bytes::from(hash), amount(n), id))
        .collect();
    assert_eq!(shown, expected);
    // Logs say it all but for the two bare transfers.
    assert_eq!(rig.proxy.count("eth_getTransactionByHash"), 2);
    assert_eq!(rig.proxy.count("eth_getTransactionReceipt"), 0);
    confirmed(&rig, &seen).await;
}

#[tokio::test]
async fn steps_of_a_user_are_deposits_of_the_order() {
    let rig = Rig::start().await;
    for (currency, explicit, sent) in [
        (alloy::primitives::Address::ZERO, true, 1),
        (rig.site.token, true, 2),
        (rig.site.token, false, 1),
    ] {
        let from = rig.height().await + 1;
        let made = steps().deposit(&DepositTerms {
            user: &address(rig.user.address()),
            depository: &address(rig.site.depository),
            currency: &address(currency),
            amount: amount(7),
            order: ORDER,
            explicit,
            approved: U256::ZERO,
            reset: true,
            funds: &[],
            before: &[],
            choices: &Choices::default(),
        });
        let made = made.unwrap();
        assert_eq!(made.len(), sent);
        for step in made {
            let call = step.draft.as_call().unwrap();
            let payload = Payload {
                to: Some(call.to.text().parse().unwrap()),
                data: call.data.to_vec(),
                value: call.value,
            };
            let user = rig.user.address();
            rig.site.node.transact(user, payload).await.unwrap();
        }
        let head = rig.height().await;
        let seen = rig.trade.scanner.deposits(from..=head).await.unwrap();
        let [deposit_tx] = seen.as_slice() else {
            panic!("{seen:?}");
        };
        let [deposit] = deposit_tx.deposits.as_slice() else {
            panic!("{deposit_tx:?}");
        };
        assert_eq!(*deposit.id, ORDER.to_string());
        assert_eq!(deposit.depositor, address(rig.user.address()));
        assert_eq!(deposit.currency, address(currency));
        assert_eq!(deposit.amount, amount(7));
    }
}

#[tokio::test]
async fn what_moved_nothing_into_the_depository_is_not_found() {
    let rig = Rig::start().await;
    let (site, user) = (&rig.site, &rig.user);
    // No approved: reverts, and is in a block.
    let refused = Depository::depositErc20_0Call {
        depositor: user.address(),
        token: site.token,
        amount: amount(5),
        id: ORDER,
    };
    let refused = Payload::call(site.depository, &refused);
    let receipt = site.node.send(user.address(), refused).await.unwrap();
    assert!(!receipt.status());

    let fake = site.deploy("FakeEmitter", &[]).await.unwrap();
    let forged = FakeEmitter::nativeDepositCall {
        from: user.address(),
        amount: amount(5),
        id: ORDER,
    };
    let forged = Payload::call(fake, &forged);
    site.node.transact(user.address(), forged).await.unwrap();

    let wallet = site.deploy("Wallet", &[]).await.unwrap();
    let inner = Wallet::Call {
        to: site.depository,
        data: site.native_deposit(ORDER).data.into(),
        value: amount(5),
        allowFailure: false,
    };
    let undone = Wallet::runAndUndoCall { calls: vec![inner] };
    let undone = Payload::call(wallet, &undone).value(amount(5));
    let receipt = site.node.send(user.address(), undone).await.unwrap();
    assert!(receipt.status());

    let to_user = Token::transferCall {
        to: wallet,
        amount: amount(5),
    };
    let elsewhere = Payload::call(site.token, &to_user).suffix(ORDER);
    site.node.transact(user.address(), elsewhere).await.unwrap();
    assert_eq!(scan(&rig).await, []);
    let (from, to) = (5, 4);
    let nothing = rig.trade.scanner.deposits(from..=to).await.unwrap();
    assert_eq!(nothing, []);
}

#[tokio::test]
async fn refused_ranges_are_too_large_and_other_failures_are_not() {
    let rig = Rig::start().await;
    let head = rig.height().await;
    let scan = || rig.trade.scanner.deposits(1..=head);
    let refuse = |code: i64, message: &str| {
        let lie = Lie::Error(code, message.to_owned());
        rig.proxy.lie(on("eth_getLogs", move |_| lie.clone()));
    };
    let too_large = |found: Result<Vec<DepositTx>, ScanError>| match found {
        Err(ScanError::TooLarge(_)) => true,
        Err(ScanError::Read(_)) => false,
        Ok(seen) => panic!("{seen:?}"),
    };
    refuse(-32005, "query returned more than 10000 results");
    assert!(too_large(scan().await));
    // Of one block the receipts say the same.
    let one = || rig.trade.scanner.deposits(head..=head);
    assert_eq!(one().await, Ok(Vec::new()));
    rig.proxy.lie(Box::new(|call| {
        let asked = call.method == "eth_getLogs" || call.method.ends_with("Receipt");
        asked.then(|| Lie::Error(-32005, "query returned more than 10000 results".into()))
    }));
    rig.proxy.also(on("eth_getBlockReceipts", |_| {
        Lie::Error(-32601, "no such method".into())
    }));
    let busy = rig
        .site
        .mint(rig.site.token, rig.user.address(), amount(1))
        .await;
    busy.unwrap();
    let head = rig.height().await;
    assert!(!too_large(rig.trade.scanner.deposits(head..=head).await));
    refuse(-32005, "daily request count exceeded, request rate limited");
    assert!(!too_large(scan().await));
    refuse(-32603, "internal error");
    assert!(!too_large(scan().await));

    let answer = |status| {
        let lie = Lie::Answer(status, HeaderMap::new(), "no".into());
        rig.proxy.lie(on("eth_getLogs", move |_| lie.clone()));
    };
    for (status, large) in [
        (StatusCode::BAD_REQUEST, true),
        (StatusCode::PAYLOAD_TOO_LARGE, true),
        (StatusCode::GATEWAY_TIMEOUT, true),
        (StatusCode::BAD_GATEWAY, false),
        (StatusCode::UNAUTHORIZED, false),
    ] {
        answer(status);
        assert_eq!(too_large(scan().await), large, "{status}");
    }
    rig.proxy.honest();
    assert_eq!(scan().await, Ok(Vec::new()));
}

/// A block with three deposits, and its height.
async fn three_deposits(rig: &Rig) -> u64 {
    let (site, user) = (&rig.site, &rig.user);
    site.node.automine(false).await.unwrap();
    let deposit = site.native_deposit(ORDER).value(amount(1));
    let bare = Token::transferCall {
        to: site.depository,
        amount: amount(3),
    };
    let bare = Payload::call(site.token, &bare).suffix(ORDER);
    for payload in [deposit.clone(), bare, deposit] {
        site.node.submit(user.address(), payload).await.unwrap();
    }
    site.node.mine(1, 1).await.unwrap();
    rig.height().await
}

/// Anybody makes so many: a token of his own needs no more than a transaction for it.
#[tokio::test]
async fn a_block_with_more_logs_than_a_provider_gives_is_read_by_its_receipts() {
    let mut rig = Rig::start().await;
    let head = three_deposits(&rig).await;
    let one = async |rig: &Rig| rig.trade.scanner.deposits(head..=head).await;
    let honest = one(&rig).await.unwrap();
    assert_eq!(honest.len(), 3);
    let few = |rig: &Rig| {
        let lie = Lie::Error(-32005, "query returned more than 10000 results".into());
        rig.proxy.lie(on("eth_getLogs", move |_| lie.clone()));
    };
    let receipts = |rig: &Rig, lie: Lie| {
        few(rig);
        rig.proxy
            .also(on("eth_getBlockReceipts", move |_| lie.clone()));
    };
    few(&rig);
    rig.proxy.reset();
    assert_eq!(one(&rig).await.as_ref(), Ok(&honest));
    assert_eq!(rig.proxy.count("eth_getTransactionReceipt"), 0);
    confirmed(&rig, &honest).await;
    // Whatever does not bear it out is no answer.
    let fewer = |receipts: &mut Value| drop(receipts.as_array_mut().unwrap().pop());
    receipts(&rig, Lie::patch(|all| all[1]["blockHash"] = json!(ORDER)));
    assert!(one(&rig).await.is_err());
    receipts(&rig, Lie::patch(|all| drop(all[1]["blockHash"].take())));
    assert!(one(&rig).await.is_err());
    // Receipts that are not one for each transaction are asked for by the block's own list.
    let own = |all: &mut Value| all.as_array_mut().unwrap().push(json!({"logs": []}));
    let odd = |all: &mut Value| all[1]["logs"] = json!("none");
    for lie in [Lie::patch(fewer), Lie::patch(own), Lie::patch(odd)] {
        receipts(&rig, lie);
        rig.proxy.reset();
        assert_eq!(one(&rig).await.as_ref(), Ok(&honest));
        assert_eq!(rig.proxy.count("eth_getTransactionReceipt"), 3);
    }
    // Not every provider has them together.
    receipts(&rig, Lie::Error(-32601, "the method does not exist".into()));
    rig.proxy.reset();
    assert_eq!(one(&rig).await.as_ref(), Ok(&honest));
    assert_eq!(rig.proxy.count("eth_getTransactionReceipt"), 3);
    let missing = on("eth_getTransactionReceipt", |_| Lie::Result(Value::Null));
    rig.proxy.also(missing);
    assert!(one(&rig).await.is_err());
    // Answers that are too large for us: with one of them the others are read.
    rig.longest(64 << 10);
    let pad = || json!("0".repeat(100_000));
    let padded = move |_: &Call<'_>| Lie::patch(move |all| all[0]["pad"] = pad());
    rig.proxy.lie(on("eth_getLogs", padded));
    let range = rig.trade.scanner.deposits(1..=head).await;
    assert!(matches!(range, Err(ScanError::TooLarge(_))), "{range:?}");
    assert_eq!(one(&rig).await.as_ref(), Ok(&honest));
    rig.proxy.also(on("eth_getBlockReceipts", padded));
    let first = honest[0].transaction.text.clone();
    rig.proxy.also(on("eth_getTransactionReceipt", move |call| {
        let pads = call.params[0] == json!(&*first);
        Lie::patch(move |receipt| {
            if pads {
                receipt["pad"] = pad();
            }
        })
    }));
    assert_eq!(one(&rig).await.as_deref(), Ok(&honest[1..]));
}

#[tokio::test]
async fn a_provider_without_the_whole_range_gives_no_answer() {
    let rig = Rig::start().await;
    rig.site
        .deposit_native(&rig.user, amount(1), ORDER)
        .await
        .unwrap();
    let head = rig.height().await;
    let above = rig.trade.scanner.deposits(1..=head + 1).await;
    assert!(matches!(
        above,
        Err(ScanError::Read(ReadError::Unavailable(_)))
    ));

    rig.proxy.reset();
    rig.proxy.lie(on("eth_getBlockByNumber", |call| {
        let second = call.nth == 2;
        Lie::patch(move |block| {
            if second {
                block["hash"] = json!(ORDER);
            }
        })
    }));
    let changed = rig.trade.scanner.deposits(1..=head).await;
    assert!(matches!(
        changed,
        Err(ScanError::Read(ReadError::Doubtful(_)))
    ));

    rig.proxy.lie(on("eth_getLogs", |_| {
        Lie::patch(|logs| {
            for log in logs.as_array_mut().into_iter().flatten() {
                log["blockNumber"] = json!("0xffff");
            }
        })
    }));
    let outside = rig.trade.scanner.deposits(1..=head).await;
    assert!(matches!(
        outside,
        Err(ScanError::Read(ReadError::Doubtful(_)))
    ));
}

#[tokio::test]
async fn calldata_of_another_block_is_doubted() {
    let rig = Rig::start().await;
    let (site, user) = (&rig.site, &rig.user);
    site.transfer_to_depository(user, site.token, amount(3), Some(ORDER))
        .await
        .unwrap();
    let head = rig.height().await;
    for (lie, doubtful) in [
        (Lie::patch(|tx| tx["blockHash"] = json!(ORDER)), true),
        (Lie::patch(|tx| tx["hash"] = json!(ORDER)), true),
        (Lie::Result(Value::Null), false),
    ] {
        rig.proxy
            .lie(on("eth_getTransactionByHash", move |_| lie.clone()));
        match rig.trade.scanner.deposits(1..=head).await {
            Err(ScanError::Read(ReadError::Doubtful(_))) => assert!(doubtful),
            Err(ScanError::Read(ReadError::Unavailable(_))) => assert!(!doubtful),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn blocks_are_read_by_their_height() {
    let rig = Rig::start().await;
    let head = rig.trade.scanner.head().await.unwrap();
    let scanner = &rig.trade.scanner;
    assert_eq!(scanner.block(head.number).await, Ok(Some(head.clone())));
    let parent = scanner.block(head.number - 1).await.unwrap().unwrap();
    assert_eq!(parent.hash, head.parent);
    assert_eq!(scanner.block(head.number + 1).await, Ok(None));
    rig.proxy.lie(on("eth_getBlockByNumber", |_| {
        Lie::patch(|block| block["number"] = json!("0x1"))
    }));
    assert!(scanner.block(head.number).await.is_err());
}

#[tokio::test]
async fn empty_logs_are_held_against_the_blooms_of_their_blocks() {
    let rig = Rig::start().await;
    let before = rig.height().await;
    let (site, user) = (&rig.site, &rig.user);
    site.deposit_native(user, amount(1), ORDER).await.unwrap();
    site.transfer_to_depository(user, site.token, amount(3), Some(ORDER))
        .await
        .unwrap();
    let honest = scan(&rig).await;
    assert_eq!(honest.len(), 2);
    let head = rig.height().await;
    let scanner = &rig.trade.scanner;
    let end = scanner.block(head).await.unwrap().unwrap();
    let omitted = async |shown: &[DepositTx]| scanner.omitted(1, &end, shown).await;
    assert_eq!(omitted(&honest).await, Ok(Vec::new()));
    // A deposit that it shows of a block hides no other one there.
    let beside = DepositTx {
        number: honest[0].number,
        ..honest[1].clone()
    };
    assert_eq!(omitted(&[beside]).await, Ok(honest.clone()));
    // Its index is behind: whole blocks say what ranges do not.
    rig.proxy.lie(Box::new(|call| {
        let ranged = call.method == "eth_getLogs" && call.params[0].get("fromBlock").is_some();
        ranged.then(|| Lie::Result(json!([])))
    }));
    assert_eq!(scan(&rig).await, []);
    assert_eq!(omitted(&[]).await, Ok(honest.clone()));
    // It shows no logs at all, or another bloom: not what its blocks say.
    rig.proxy.lie(on("eth_getLogs", |_| Lie::Result(json!([]))));
    let doubted = |found: Result<Vec<DepositTx>, ScanError>| {
        assert!(
            matches!(found, Err(ScanError::Read(ReadError::Doubtful(_)))),
            "{found:?}"
        );
    };
    doubted(omitted(&[]).await);
    assert_eq!(
        scanner
            .omitted(1, &scanner.block(before).await.unwrap().unwrap(), &[])
            .await,
        Ok(Vec::new())
    );
    rig.proxy.lie(on("eth_getBlockByNumber", |_| {
        Lie::patch(|block| block["logsBloom"] = json!(format!("0x{}", "00".repeat(256))))
    }));
    doubted(omitted(&[]).await);
}
