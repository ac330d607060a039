//! The scan through one node: what it finds in which slots, and what it does not believe.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use serde_json::{Value, json};
use vm::{
    B256, Block, ReadError,
    solana::programs::{SYSTEM, TOKEN},
    trade::{Change, DepositTx, Diff, ScanError, Scanner},
};

use super::{
    build::{Tx, deposit_token, key, program, system_transfer, vault, vault_tokens, wallet},
    node::{Node, World, hash, node, spec},
};

fn id(byte: u8) -> String {
    bs58::encode([byte; 64]).into_string()
}

fn put(world: &mut World, byte: u8, slot: u64, tx: &Tx) {
    let shown = tx.shown(&[byte; 64], slot);
    world.transactions.insert(id(byte), shown);
}

/// A deposit that names order `order`.
fn deposit(order: u8) -> Tx {
    let deposit = Tx::by(&[key(1)]).depositing(key(1), 100, order);
    deposit.lamports(vault(), 1_000, 1_100)
}

/// Slots up to 100, of which 53 and 54 were skipped, and deposits at 50 (two), 52 and 90.
fn world() -> World {
    let mut world = World::up_to(100);
    world.skip(53);
    world.blocks.remove(&54);
    world.put_block(55, 52, 0);
    for (byte, slot) in [(2, 50), (1, 50), (3, 52), (4, 90)] {
        put(&mut world, byte, slot, &deposit(byte));
    }
    // What is none of it: a failed deposit, a payment to somebody else, and one that names the vault and pays nothing.
    put(&mut world, 5, 51, &deposit(5).failed());
    let paid = Tx::by(&[key(1)]).with(SYSTEM, &[key(1), key(2)], system_transfer(7));
    put(&mut world, 6, 51, &paid);
    let asked = Tx::by(&[key(1)]).with(key(9), &[vault()], vec![1]);
    put(&mut world, 7, 51, &asked);
    world
}

fn scanner(node: &Node, how: Option<&str>) -> std::sync::Arc<dyn Scanner> {
    let additional = how.map_or(json!({}), |how| json!({"depositScan": how}));
    node.trade(&spec(additional)).scanner
}

/// Slots and orders of what was found.
fn told(found: &[DepositTx]) -> Vec<(u64, u8)> {
    let told = found.iter().map(|one| {
        let [deposit] = &one.deposits[..] else {
            panic!("{one:?}");
        };
        let order = u8::from_str_radix(&deposit.id[2..4], 16).unwrap();
        assert_eq!(one.hash, block_hash(one.number));
        (one.number, order)
    });
    told.collect()
}

fn block_hash(slot: u64) -> B256 {
    let key: solana_pubkey::Pubkey = hash(slot, 0).parse().unwrap();
    B256::new(key.to_bytes())
}

fn block(slot: u64, parent: u64) -> Block {
    Block {
        number: slot,
        hash: block_hash(slot),
        parent: block_hash(parent),
        time: 1_760_000_000 + slot,
    }
}

fn is_doubtful<T: std::fmt::Debug>(answer: &Result<T, ScanError>) -> bool {
    matches!(answer, Err(ScanError::Read(ReadError::Doubtful(_))))
}

fn is_unavailable<T: std::fmt::Debug>(answer: &Result<T, ScanError>) -> bool {
    matches!(answer, Err(ScanError::Read(ReadError::Unavailable(_))))
}

#[tokio::test]
async fn deposits_are_found_by_accounts_and_in_blocks() {
    let node = node(world()).await;
    for how in [None, Some("signatures"), Some("blocks")] {
        let scanner = scanner(&node, how);
        // In the order of their blocks, and of the ids within.
        let mut first = [id(1), id(2)];
        first.sort();
        let byte = |text: &String| if *text == id(1) { 1 } else { 2 };
        let all = [
            (50, byte(&first[0])),
            (50, byte(&first[1])),
            (52, 3),
            (90, 4),
        ];
        for (slots, found) in [
            (1..=100, &all[..]),
            (50..=52, &all[..3]),
            (51..=89, &all[2..3]),
            (53..=54, &all[..0]),
            (90..=90, &all[3..]),
            (91..=100, &all[..0]),
        ] {
            let deposits = scanner.deposits(slots.clone()).await.unwrap();
            assert_eq!(told(&deposits), found, "{how:?} {slots:?}");
        }
        let tx = scanner.deposits(90..=90).await.unwrap().remove(0);
        assert_eq!(*tx.transaction.text, *id(4));
        assert_eq!(tx.transaction.bytes[..], [4; 64]);
        assert_eq!(tx.doubt, None);
        // The node does not have all of the range.
        let behind = scanner.deposits(90..=101).await;
        assert!(is_unavailable(&behind), "{behind:?}");
    }
}

#[tokio::test]
async fn without_a_depository_nothing_is_asked() {
    let node = node(world()).await;
    let mut bare = (*spec(json!({}))).clone();
    bare.depository = None;
    let scanner = node.trade(&std::sync::Arc::new(bare)).scanner;
    assert_eq!(scanner.deposits(0..=100).await, Ok(Vec::new()));
    assert_eq!(node.state.calls.lock().unwrap().len(), 0);
    let wrong = spec(json!({"depositScan": "logs"}));
    let opened = wrong.family.trade.unwrap()(&wrong, &node.endpoint());
    let error = opened.err().unwrap();
    assert_eq!(
        error.0,
        "additionalData.depositScan: expected signatures or blocks"
    );
}

/// A deposit that its instruction says, and the vault did not get.
#[tokio::test]
async fn uncovered_deposit_is_shown_with_its_doubt() {
    let mut world = world();
    let short = Tx::by(&[key(1)])
        .depositing(key(1), 100, 8)
        .lamports(vault(), 1_000, 1_099);
    put(&mut world, 8, 60, &short);
    let node = node(world).await;
    for how in [None, Some("blocks")] {
        let found = scanner(&node, how).deposits(60..=60).await.unwrap();
        assert_eq!(told(&found), [(60, 8)]);
        let doubt = found[0].doubt.clone().unwrap();
        assert!(doubt.0.starts_with("The vault gained 99"), "{doubt}");
    }
}

/// Bare transfers of tokens name neither the program nor the vault: only blocks show them.
#[tokio::test]
async fn bare_transfer_of_tokens_is_found_in_blocks() {
    let (mint, mut world) = (key(0x20), world());
    let target = vault_tokens(&mint, &TOKEN);
    let paid = Tx::by(&[key(1)])
        .with(
            TOKEN,
            &[wallet(key(1), mint).0, target, key(1)],
            super::build::token_transfer(30),
        )
        .tokens(wallet(key(1), mint), mint, Some(50), Some(20))
        .tokens((target, vault()), mint, Some(5), Some(35));
    put(&mut world, 9, 61, &paid);
    let node = node(world).await;
    assert_eq!(scanner(&node, None).deposits(61..=61).await, Ok(Vec::new()));
    let found = scanner(&node, Some("blocks"))
        .deposits(61..=61)
        .await
        .unwrap();
    assert_eq!(told(&found), [(61, 0)]);
    // It is what the index left out, if one looks.
    let omitted = scanner(&node, Some("blocks"))
        .omitted(61, &block(61, 60), &[])
        .await
        .unwrap();
    assert_eq!(told(&omitted), [(61, 0)]);
}

#[tokio::test]
async fn many_transactions_are_read_in_pages() {
    let mut world = World::up_to(100);
    let asked = Tx::by(&[key(1)]).with(key(9), &[program()], vec![1]);
    for number in 0..1_500_u64 {
        let mut signature = [8; 64];
        signature[..8].copy_from_slice(&number.to_be_bytes());
        let shown = asked.shown(&signature, 99);
        world
            .transactions
            .insert(bs58::encode(signature).into_string(), shown);
    }
    put(&mut world, 1, 50, &deposit(1));
    let node = node(world).await;
    let found = scanner(&node, None).deposits(50..=98).await.unwrap();
    assert_eq!(told(&found), [(50, 1)]);
    assert_eq!(node.calls("getSignaturesForAddress"), 2 + 1);
}

/// So many transactions that name the program and pay nothing, in the block of a slot.
fn crowd(world: &mut World, slot: u64, count: u64) {
    let asked = Tx::by(&[key(1)]).with(key(9), &[program()], vec![1]);
    for number in 0..count {
        let mut signature = [9; 64];
        signature[..8].copy_from_slice(&slot.to_be_bytes());
        signature[8..16].copy_from_slice(&number.to_be_bytes());
        let shown = asked.shown(&signature, slot);
        world
            .transactions
            .insert(bs58::encode(signature).into_string(), shown);
    }
}

/// Anybody names the program as often as he likes.
#[tokio::test]
async fn what_strangers_do_above_a_range_makes_no_work() {
    let mut world = World::up_to(200);
    for slot in 60..70 {
        crowd(&mut world, slot, 2_000);
    }
    put(&mut world, 1, 50, &deposit(1));
    let node = node(world).await;
    let scanner = scanner(&node, None);
    let found = scanner.deposits(40..=55).await.unwrap();
    assert_eq!(told(&found), [(50, 1)]);
    // The newest page, the one below the block above the range, and the vault's.
    assert_eq!(node.calls("getSignaturesForAddress"), 3);
    // A node that does not find that block's transactions again would show nothing below them.
    node.lie(|method, _, answer| {
        if method == "getSignatureStatuses" {
            answer["result"]["value"] = json!([null]);
        }
    });
    let found = scanner.deposits(40..=55).await.unwrap();
    assert_eq!(told(&found), [(50, 1)]);
    assert!(node.calls("getSignaturesForAddress") > 20);
}

/// Anybody fills a slot with them.
#[tokio::test]
async fn slot_in_which_many_name_the_depository_is_read_as_a_block() {
    let few = node(world()).await;
    let sound = scanner(&few, None).deposits(50..=52).await.unwrap();
    let mut world = world();
    crowd(&mut world, 50, 300);
    let node = node(world).await;
    let found = scanner(&node, None).deposits(50..=52).await.unwrap();
    assert_eq!((found.len(), &found), (3, &sound));
    // Those of the other slots.
    assert_eq!(node.calls("getTransaction"), 2);
}

/// The block is larger than what is read of one, and the node answers so many questions at a time.
#[tokio::test]
async fn full_slot_is_read_in_as_many_tries_as_it_takes() {
    let mut world = world();
    crowd(&mut world, 50, 300);
    let node = node(world).await;
    let endpoint = vm::Endpoint {
        longest: 400_000,
        ..node.endpoint()
    };
    let spec = spec(json!({}));
    let opened = spec.family.trade.unwrap()(&spec, &endpoint);
    let scanner = opened.unwrap().scanner;
    let left = Arc::new(AtomicUsize::new(0));
    let bears = left.clone();
    node.lie(move |method, params, answer| {
        if method == "getBlock" && params[1]["transactionDetails"] == "full" {
            answer["result"]["padding"] = json!("x".repeat(500_000));
        }
        let less = |left: usize| left.checked_sub(1);
        if method == "getTransaction" && bears.fetch_update(SeqCst, SeqCst, less).is_err() {
            *answer = json!({"error": {"code": -32_005, "message": "busy"}});
        }
    });
    let mut tries = 1;
    let found = loop {
        left.store(100, SeqCst);
        match scanner.deposits(50..=50).await {
            Ok(found) => break found,
            Err(error) => assert!(tries < 6, "{error}"),
        }
        tries += 1;
    };
    assert_eq!((found.len(), told(&found)[0].0), (2, 50));
    assert!(tries > 3, "{tries}");
    // What was read of the block is not asked for again.
    left.store(0, SeqCst);
    assert_eq!(scanner.deposits(50..=50).await, Ok(found));
}

/// The transaction is of a version that the node shows only to who asks for all.
fn newer(node: &Node, byte: u8) {
    node.lie(move |method, params, answer| {
        let own = |shown: &Value| shown["transaction"]["signatures"][0] == id(byte);
        let shown = match method {
            "getTransaction" => answer.pointer_mut("/result"),
            "getBlock" => {
                let all = answer.pointer_mut("/result/transactions");
                let all = all.and_then(Value::as_array_mut);
                all.and_then(|all| all.iter_mut().find(|one| own(one)))
            }
            _ => None,
        };
        let Some(shown) = shown.filter(|one| own(one)) else {
            return;
        };
        shown["version"] = json!(1);
        if params[1]["maxSupportedTransactionVersion"] == 0 {
            *answer = json!({"error": {"code": -32_015, "message": "Transaction version (1) is not supported"}});
        }
    });
}

#[tokio::test]
async fn transaction_of_a_newer_version_is_doubtful_and_stops_nothing() {
    let node = node(world()).await;
    let ways = [None, Some("blocks")];
    for how in ways {
        newer(&node, 3);
        let found = scanner(&node, how).deposits(50..=90).await.unwrap();
        assert_eq!(told(&found)[2..], [(52, 3), (90, 4)]);
        let doubts = found.iter().map(|one| one.doubt.is_some());
        assert_eq!(doubts.collect::<Vec<_>>(), [false, false, true, false]);
        let doubt = found[2].doubt.clone().unwrap();
        assert!(doubt.0.contains("version 1"), "{doubt}");
        // One that deposits nothing is nobody's matter, wherever it stands.
        newer(&node, 7);
        let found = scanner(&node, how).deposits(50..=90).await.unwrap();
        assert!(found.len() == 4 && found.iter().all(|one| one.doubt.is_none()));
    }
    // It may have other parts than what is read.
    newer(&node, 3);
    node.change(|world| {
        let shown = world.transactions.get_mut(&id(3)).unwrap();
        shown["transaction"]["message"]["header"]["numRequiredSignatures"] = json!(9);
    });
    for how in ways {
        let found = scanner(&node, how).deposits(50..=90).await.unwrap();
        assert_eq!(told(&found)[2..], [(90, 4)]);
    }
    // One of a version that is read is as the node shows it, or is doubted.
    node.lie(|_, _, _| {});
    for how in ways {
        let found = scanner(&node, how).deposits(50..=90).await;
        assert!(is_doubtful(&found), "{found:?}");
    }
}

/// As long as a transaction can have them, of letters that take six each in an answer.
#[tokio::test]
async fn memos_of_strangers_fit_an_answer() {
    let mut world = World::up_to(100);
    crowd(&mut world, 51, 1_000);
    put(&mut world, 1, 50, &deposit(1));
    let node = node(world).await;
    node.lie(|method, _, answer| {
        if method == "getSignaturesForAddress" {
            let all = answer["result"].as_array_mut().unwrap().iter_mut();
            all.for_each(|one| one["memo"] = json!("\u{1}".repeat(1_100)));
        }
    });
    let found = scanner(&node, None).deposits(40..=60).await.unwrap();
    assert_eq!(told(&found), [(50, 1)]);
}

#[tokio::test]
async fn range_with_too_many_transactions_is_split() {
    let mut world = World::up_to(100);
    crowd(&mut world, 60, 1);
    put(&mut world, 1, 50, &deposit(1));
    let node = node(world).await;
    // Page after page of the same slots.
    node.lie(|method, params, answer| {
        if method != "getSignaturesForAddress" {
            return;
        }
        let page = (0..1_000).map(|_| json!({"signature": id(0x55), "slot": 60, "err": "x"}));
        if params[1]["before"].is_null() || params[1]["before"] == id(0x55) {
            answer["result"] = page.collect();
        }
    });
    let scanner = scanner(&node, None);
    let split = scanner.deposits(40..=60).await;
    assert!(matches!(split, Err(ScanError::TooLarge(_))), "{split:?}");
    let alone = scanner.deposits(60..=60).await;
    assert!(is_unavailable(&alone), "{alone:?}");
    // The other half has nothing of them.
    let found = scanner.deposits(40..=59).await.unwrap();
    assert_eq!(told(&found), [(50, 1)]);
}

/// Programs tell each other whatever a stranger pays for, and a block shows all of it.
#[tokio::test]
async fn block_that_is_too_large_is_read_by_its_accounts() {
    let (mint, mut world) = (key(0x20), world());
    let target = vault_tokens(&mint, &TOKEN);
    let paid = Tx::by(&[key(1)])
        .with(
            TOKEN,
            &[wallet(key(1), mint).0, target, key(1)],
            super::build::token_transfer(30),
        )
        .tokens(wallet(key(1), mint), mint, Some(50), Some(20))
        .tokens((target, vault()), mint, Some(5), Some(35));
    put(&mut world, 9, 50, &paid);
    let node = node(world).await;
    let endpoint = vm::Endpoint {
        longest: 100_000,
        ..node.endpoint()
    };
    let spec = spec(json!({"depositScan": "blocks"}));
    let scanner = spec.family.trade.unwrap()(&spec, &endpoint)
        .unwrap()
        .scanner;
    let sound = scanner.deposits(1..=100).await.unwrap();
    assert_eq!(sound.len(), 5);
    node.lie(|method, params, answer| {
        if method == "getBlock" && params[0] == 50 && params[1]["transactionDetails"] == "full" {
            answer["result"]["padding"] = json!("x".repeat(200_000));
        }
    });
    assert_eq!(scanner.deposits(1..=100).await.unwrap(), sound);
    let omitted = scanner.omitted(1, &block(100, 99), &[]).await.unwrap();
    assert_eq!(omitted, sound);
    // Too many values are too much, too.
    node.lie(|method, params, answer| {
        if method == "getBlock" && params[0] == 50 && params[1]["transactionDetails"] == "full" {
            answer["result"]["padding"] = vec![0; 2_000_000].into();
        }
    });
    let scanner = self::scanner(&node, Some("blocks"));
    assert_eq!(scanner.deposits(49..=51).await.unwrap(), sound[..3]);
    // Without its accounts there is no reading it.
    node.lie(|method, params, answer| {
        let detail = &params[1]["transactionDetails"];
        if method == "getBlock" && (detail == "full" || detail == "accounts") {
            answer["result"]["padding"] = vec![0; 2_000_000].into();
        }
    });
    let unread = scanner.deposits(49..=51).await;
    assert!(is_unavailable(&unread), "{unread:?}");
}

/// Only whole blocks are as large as a block.
#[tokio::test]
async fn small_questions_have_small_answers() {
    let node = node(world()).await;
    let trade = node.trade(&spec(json!({})));
    node.lie(|method, _, answer| {
        if method == "getSignatureStatuses" || method == "getMultipleAccounts" {
            answer["result"]["padding"] = vec![0; 300_000].into();
        }
    });
    let fate = trade.writer.fate(&vec![7; 64].into()).await;
    assert!(matches!(fate, Err(ReadError::Unavailable(_))), "{fate:?}");
    let currency = spec(json!({})).family.currency(&key(0x20).to_string());
    let currency = trade.accounts.currency(&currency.unwrap()).await;
    assert!(
        matches!(currency, Err(ReadError::Unavailable(_))),
        "{currency:?}"
    );
}

#[tokio::test]
async fn heights_have_the_block_that_stands_there() {
    let node = node(world()).await;
    let scanner = scanner(&node, None);
    assert_eq!(scanner.head().await, Ok(block(100, 99)));
    for (height, slot, parent) in [
        (52, 52, 51),
        (53, 52, 51),
        (54, 52, 51),
        (55, 55, 52),
        (100, 100, 99),
    ] {
        let found = scanner.block(height).await;
        assert_eq!(found, Ok(Some(block(slot, parent))), "{height}");
    }
    assert_eq!(scanner.block(101).await, Ok(None));
    // A block that the node has lost is not skipped: the next one stands on it.
    node.change(|world| {
        world.blocks.remove(&70);
    });
    let lost = scanner.block(70).await;
    assert!(matches!(lost, Err(ReadError::Unavailable(_))), "{lost:?}");
}

#[tokio::test]
async fn block_without_a_time_has_that_of_one_before() {
    let mut world = world();
    for slot in [52, 55, 56] {
        world.blocks.get_mut(&slot).unwrap()["blockTime"] = Value::Null;
        world.times.insert(slot, Value::Null);
    }
    let node = node(world).await;
    let scanner = scanner(&node, None);
    let found = scanner.block(56).await.unwrap().unwrap();
    assert_eq!((found.number, found.time), (56, 1_760_000_051));
    // The deposit in one of them is found all the same.
    let found = scanner.deposits(52..=52).await.unwrap();
    assert_eq!(told(&found), [(52, 3)]);
}

#[tokio::test]
async fn what_the_index_forgot_is_in_the_blocks() {
    let node = node(world()).await;
    let scanner = scanner(&node, None);
    node.lie(|method, _, answer| {
        if method == "getSignaturesForAddress" {
            let all = answer["result"].as_array_mut().unwrap();
            all.retain(|one| one["slot"] != 52);
        }
    });
    let shown = scanner.deposits(50..=60).await.unwrap();
    assert_eq!(shown.len(), 2);
    // Where no blocks are read, nothing is asked, as where the end is below the beginning.
    let asked = node.calls("getBlock");
    let omitted = scanner.omitted(50, &block(60, 59), &shown).await;
    assert_eq!(omitted, Ok(Vec::new()));
    let scanner = self::scanner(&node, Some("blocks"));
    let omitted = scanner.omitted(61, &block(60, 59), &[]).await;
    assert_eq!(omitted, Ok(Vec::new()));
    assert_eq!(node.calls("getBlock"), asked);
    let omitted = scanner.omitted(50, &block(60, 59), &shown).await.unwrap();
    assert_eq!(told(&omitted), [(52, 3)]);
}

#[tokio::test]
async fn blocks_that_do_not_stand_on_each_other_prove_nothing() {
    let omitted = async |change: fn(&mut World), from: u64, end: Block| {
        let mut world = world();
        change(&mut world);
        let node = node(world).await;
        scanner(&node, Some("blocks"))
            .omitted(from, &end, &[])
            .await
    };
    let sound = omitted(|_| (), 56, block(60, 59)).await;
    assert_eq!(sound, Ok(Vec::new()));
    // From a slot that was skipped on.
    let sound = omitted(|_| (), 54, block(60, 59)).await;
    assert_eq!(sound, Ok(Vec::new()));
    // One is kept back, at the beginning, between, and at the end; another fork; another end.
    let gone: [fn(&mut World); 3] = [
        |world| drop(world.blocks.remove(&56)),
        |world| drop(world.blocks.remove(&58)),
        |world| drop(world.blocks.remove(&60)),
    ];
    for change in gone {
        let omitted = omitted(change, 56, block(60, 59)).await;
        assert!(is_doubtful(&omitted), "{omitted:?}");
    }
    let fork = omitted(|world| world.put_block(58, 57, 1), 56, block(60, 59)).await;
    assert!(is_doubtful(&fork), "{fork:?}");
    let other = Block {
        hash: B256::ZERO,
        ..block(60, 59)
    };
    assert!(is_doubtful(&omitted(|_| (), 56, other).await));
}

#[tokio::test]
async fn index_that_contradicts_the_blocks_is_not_believed() {
    type Lie = fn(&str, &Value, &mut Value);
    let lies: [Lie; 3] = [
        // In no such block.
        |method, _, answer| {
            if method == "getSignaturesForAddress" {
                answer["result"][0]["slot"] = json!(91);
            }
        },
        // The oldest first.
        |method, _, answer| {
            if method == "getSignaturesForAddress" {
                answer["result"].as_array_mut().unwrap().reverse();
            }
        },
        // Another transaction.
        |method, _, answer| {
            if method == "getTransaction" {
                let signature = bs58::encode([9; 64]).into_string();
                answer["result"]["transaction"]["signatures"][0] = json!(signature);
            }
        },
    ];
    for (at, lie) in lies.into_iter().enumerate() {
        let node = node(world()).await;
        node.lie(lie);
        let found = scanner(&node, None).deposits(50..=100).await;
        assert!(is_doubtful(&found), "{at}: {found:?}");
    }
    // What the index names and the node does not show is asked for again.
    let node = node(world()).await;
    node.lie(|method, _, answer| {
        if method == "getTransaction" {
            answer["result"] = Value::Null;
        }
    });
    let found = scanner(&node, None).deposits(50..=100).await;
    assert!(is_unavailable(&found), "{found:?}");
}

#[tokio::test]
async fn transaction_is_shown_with_what_it_changed() {
    let (mint, mut world) = (key(0x20), world());
    let target = vault_tokens(&mint, &TOKEN);
    let deposited = Tx::by(&[key(1)])
        .memo("hello", &[])
        .with(
            program(),
            &[
                key(0xdd),
                key(1),
                key(1),
                vault(),
                mint,
                wallet(key(1), mint).0,
                target,
                TOKEN,
            ],
            deposit_token(30, 5),
        )
        .lamports(key(1), 1_000_000, 994_000)
        .lamports(key(3), 0, 1_000)
        .tokens(wallet(key(1), mint), mint, Some(50), Some(20))
        .tokens((target, vault()), mint, None, Some(30));
    put(&mut world, 9, 61, &deposited);
    let node = node(world).await;
    let inspector = node.trade(&spec(json!({}))).inspector;
    let spec = spec(json!({}));
    let tx = |byte: u8| spec.family.tx(&id(byte), None).unwrap();
    let found = inspector.inspect(&tx(9)).await.unwrap().unwrap();
    assert_eq!(found.from.text(), key(1).to_string());
    assert_eq!(found.to.unwrap().text(), program().to_string());
    assert_eq!(found.data.unwrap()[..], deposit_token(30, 5)[..]);
    let amount = |number: u64| vm::U256::from(number);
    assert_eq!((found.fee, found.value), (amount(5_000), amount(1_000)));
    assert!(found.success);
    assert_eq!(found.block, block(61, 60));
    let change = |owner: solana_pubkey::Pubkey, currency: String, negative, number| Change {
        address: spec.family.account(&owner.to_string()).unwrap(),
        currency: spec.family.currency(&currency).unwrap(),
        diff: Diff {
            negative,
            amount: amount(number),
        },
    };
    let (native, token) = (SYSTEM.to_string(), mint.to_string());
    let wanted = [
        change(key(1), native.clone(), true, 1_000),
        change(key(3), native, false, 1_000),
        change(key(1), token.clone(), true, 30),
        change(vault(), token, false, 30),
    ];
    assert_eq!(found.changes, wanted);
    // A failed one changed nothing; and what is in no block is nothing.
    let failed = inspector.inspect(&tx(5)).await.unwrap().unwrap();
    assert!(!failed.success && failed.changes.is_empty());
    assert_eq!(inspector.inspect(&tx(0x70)).await, Ok(None));
}
