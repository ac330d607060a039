//! Three providers over HTTP (two nodes and the index, or three nodes), two of which must agree (guide: protocol 12.1).

use serde_json::{Value, json};
use vm::{ChainId, ChainReader, Provider, ReadError, Transaction, U256, quorum::Quorum};

use super::{
    ledger::{Ledger, note, output, transaction},
    node::{LEGACY, Node, serve, spec},
};

const ORDER: &str = "0xb18ec80e06a7a4b9de5ebcd2c1d8f24b6070c5daa959f057aa6cb23c94ae394f";

fn deposit_id() -> String {
    "dd".repeat(32)
}

/// A chain with a deposit of 5000 under six blocks.
fn ledger() -> Ledger {
    let script = |address: &str| {
        let script = vm::bitcoin::network::MAIN.script(address).unwrap();
        script.to_hex_string()
    };
    let fund = "aa".repeat(32);
    let payer = script("bc1qs34tc3mtzq4w9s2ea7klr2jmxm8p78rsdjzvl0");
    let mut ledger = Ledger::new();
    ledger.mine(vec![transaction(&fund, &[], vec![output(&payer, 9_000)])]);
    let outputs = vec![output(&script(LEGACY), 5_000), note(ORDER)];
    let deposit = transaction(&deposit_id(), &[(fund.as_str(), 0)], outputs);
    ledger.mine(vec![deposit]);
    ledger.bury(6);
    ledger
}

/// Two nodes and an index of the same chain.
async fn three() -> ([Node; 3], Quorum) {
    let nodes = [
        serve(ledger()).await,
        serve(ledger()).await,
        serve(ledger()).await,
    ];
    let known = nodes[0].ledger(|ledger| ledger.hash_at(&json!(0)).unwrap());
    let plain = spec(json!({"genesisHash": known}));
    let indexed =
        spec(json!({"genesisHash": known, "esploraCompatibleApiUrl": nodes[2].index_url()}));
    let providers = vec![
        nodes[0].open(&plain),
        nodes[1].open(&plain),
        nodes[2].open_index(&indexed),
    ];
    (nodes, agree(providers))
}

fn agree(providers: Vec<Provider>) -> Quorum {
    Quorum::new(&ChainId::new("bitcoin"), providers, 2).unwrap()
}

async fn read(quorum: &Quorum) -> Result<Transaction, ReadError> {
    let tx = spec(json!({})).family.tx(&deposit_id(), None).unwrap();
    let head = quorum.fresh_head().await?;
    quorum.transaction(&tx, &head).await
}

/// How much the agreed transaction deposits, for which order.
fn deposited(read: Result<Transaction, ReadError>) -> (U256, String) {
    let receipt = match read {
        Ok(Transaction::Succeeded(receipt)) => receipt,
        other => panic!("{other:?}"),
    };
    let deposit = receipt.deposits.unwrap().remove(0);
    (deposit.amount, deposit.id.to_string())
}

type Lie = fn(&str, &Value, &mut Value);

const LIES: [(&str, Lie); 8] = [
    ("forged amount", |method, _, answer| {
        if method == "getrawtransaction" && answer["result"]["vin"][0].is_object() {
            answer["result"]["vout"][0]["value"] = json!(0.5);
        }
    }),
    ("another order", |method, _, answer| {
        if method == "getrawtransaction" {
            let text = answer["result"].to_string();
            let text = text.replace("307862313865", "307863313865");
            answer["result"] = serde_json::from_str(&text).unwrap();
        }
    }),
    ("another payer", |method, _, answer| {
        if method == "getrawtransaction" {
            let script = vm::bitcoin::network::MAIN.script("1BoatSLRHtKNngkdXEeobR76b53LETtpyT");
            let script = script.unwrap().to_hex_string();
            answer["result"]["vin"][0]["prevout"] = json!({"scriptPubKey": {"hex": script}});
        }
    }),
    ("wrong block hash", |method, params, answer| {
        if method == "getblockhash" && params[0] == 2 {
            answer["result"] = json!("22".repeat(32));
        }
    }),
    ("hidden", |method, _, answer| {
        if method == "getrawtransaction" {
            *answer = json!({"result": null, "error": {"code": -5, "message": "unknown"}});
        }
    }),
    ("another network", |method, params, answer| {
        if method == "getblockhash" && params[0] == 0 {
            answer["result"] = json!("22".repeat(32));
        }
    }),
    ("stale tip", |method, _, answer| {
        if method == "getblockcount" {
            answer["result"] = json!(1);
        }
    }),
    ("a tip that nobody has", |method, _, answer| {
        if method == "getblockcount" {
            answer["result"] = json!(1_000);
        }
    }),
];

#[tokio::test]
async fn one_lying_node_of_three_changes_nothing() {
    for (what, lie) in LIES {
        let (nodes, quorum) = three().await;
        nodes[0].lie(lie);
        let told = (U256::from(5_000), ORDER.to_owned());
        assert_eq!(deposited(read(&quorum).await), told, "{what}");
    }
}

#[tokio::test]
async fn a_lying_index_changes_nothing() {
    type Garble = fn(&str, &mut String);
    let lies: [(&str, Garble); 4] = [
        ("forged amount", |_, text| {
            *text = text.replace("5000", "9999");
        }),
        ("with a megabyte of blanks", |_, text| {
            *text = " ".repeat(1 << 20) + text;
        }),
        ("cut", |_, text| text.truncate(text.len() / 2)),
        ("another tip", |path, text| {
            if path == "blocks/tip/hash" {
                *text = "22".repeat(32);
            }
        }),
    ];
    for (what, lie) in lies {
        let (nodes, quorum) = three().await;
        nodes[2].garble(lie);
        let told = (U256::from(5_000), ORDER.to_owned());
        assert_eq!(deposited(read(&quorum).await), told, "{what}");
    }
}

#[tokio::test]
async fn two_that_disagree_sign_nothing() {
    for (what, lie) in LIES {
        let (nodes, quorum) = three().await;
        nodes[0].lie(lie);
        nodes[1]
            .state
            .down
            .store(true, std::sync::atomic::Ordering::SeqCst);
        let read = read(&quorum).await;
        // What both say of the hidden one's and the stale one's chain is true, if it is anything.
        let fine = match &read {
            Ok(Transaction::Succeeded(receipt)) => {
                receipt.deposits.as_ref().unwrap()[0].amount == U256::from(5_000)
            }
            Ok(Transaction::Missing) => what == "stale tip",
            Ok(Transaction::Failed(_)) => false,
            Err(error) => matches!(error, ReadError::Quorum(_)),
        };
        assert!(fine, "{what}: {read:?}");
    }
}

/// The nodes are on two forks: the head that two agree on decides which block counts.
#[tokio::test]
async fn a_fork_of_one_node_is_not_read() {
    let (nodes, quorum) = three().await;
    nodes[0].ledger(|ledger| {
        ledger.undo(7);
        ledger.transactions.remove(&deposit_id());
        ledger.bury(7);
    });
    let told = (U256::from(5_000), ORDER.to_owned());
    assert_eq!(deposited(read(&quorum).await), told);
    // The other node follows: then the deposit is gone, and no answer names it.
    nodes[1].ledger(|ledger| {
        ledger.undo(7);
        ledger.transactions.remove(&deposit_id());
        ledger.bury(7);
    });
    let gone = read(&quorum).await;
    assert!(
        matches!(gone, Ok(Transaction::Missing) | Err(ReadError::Quorum(_))),
        "{gone:?}"
    );
}
