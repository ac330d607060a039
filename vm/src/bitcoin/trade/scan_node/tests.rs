use std::{sync::Mutex, thread};

use bitcoin::{
    Amount, Sequence, Transaction, TxIn, TxOut, Witness, absolute::LockTime, hashes::Hash,
};

use super::*;
use crate::{
    ChainEntry, Endpoint,
    bitcoin::{
        FAMILY,
        network::LOCAL,
        read::{Opened, opened},
    },
    http::inside::{self, Asked as Request},
};

const DEPOSITORY: &str = "bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry";
/// Bytes of an answer that are read.
const LONGEST: usize = 400_000;

/// A node with these waiting transactions, oldest first; each spends outputs of others whose scripts have so many bytes.
#[derive(Default)]
struct Core {
    waiting: Vec<(Transaction, usize)>,
    /// Transactions that were asked for with their outputs.
    shown: usize,
    /// It answers so many more questions for several transactions; unset: any number.
    batches: Option<usize>,
    /// How long it takes for one.
    slow: Duration,
}

type Shared = Arc<Mutex<Core>>;

fn depository() -> ScriptBuf {
    LOCAL.script(DEPOSITORY).unwrap()
}

/// Pays the depository, out of so many transactions.
fn payment(number: u32, inputs: u32) -> Transaction {
    let spent = |at: u32| {
        let mut bytes = [7; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        bytes[4..8].copy_from_slice(&at.to_le_bytes());
        OutPoint::new(Txid::from_byte_array(bytes), 0)
    };
    Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: (0..inputs)
            .map(|at| TxIn {
                previous_output: spent(at),
                script_sig: ScriptBuf::new(),
                sequence: Sequence::ENABLE_RBF_NO_LOCKTIME,
                witness: Witness::new(),
            })
            .collect(),
        output: vec![TxOut {
            value: Amount::from_sat(330),
            script_pubkey: depository(),
        }],
    }
}

/// Pays nobody who is looked for, in so many bytes.
fn strangers(number: u32, bytes: usize) -> Transaction {
    let mut made = payment(number, 1);
    made.output[0].script_pubkey = ScriptBuf::from_bytes(vec![0x6a; bytes]);
    made
}

impl Core {
    /// Whether it answers, on a thread of its own; several raw transactions are one question.
    #[allow(clippy::disallowed_methods)]
    fn listens(&mut self, body: &Value) -> bool {
        let raw = body.as_array().is_some_and(|all| {
            let mut params = all.iter().map(|one| &one["params"]);
            params.all(|params| params[1] == json!(false))
        });
        if raw {
            thread::sleep(self.slow);
            let left = self.batches.map(|left| left.checked_sub(1));
            self.batches = left.map(Option::unwrap_or_default);
            return left != Some(None);
        }
        true
    }

    fn find(&self, txid: &Value) -> Option<Value> {
        let ids = |(one, _): &&(Transaction, usize)| json!(one.compute_txid()) == *txid;
        if let Some((one, _)) = self.waiting.iter().find(ids) {
            let inputs = one.input.iter().map(|input| {
                let OutPoint { txid, vout } = input.previous_output;
                json!({"txid": txid, "vout": vout, "scriptSig": {"hex": ""}})
            });
            let inputs: Vec<_> = inputs.collect();
            let output = json!({"n": 0, "value": 0.0000033, "scriptPubKey": {"hex": depository()}});
            return Some(json!({"txid": txid, "vin": inputs, "vout": [output]}));
        }
        let spends = |(one, _): &&(Transaction, usize)| {
            let mut inputs = one.input.iter();
            inputs.any(|input| json!(input.previous_output.txid) == *txid)
        };
        let (_, size) = self.waiting.iter().find(spends)?;
        let script = "00".repeat(*size);
        let output = json!({"n": 0, "value": 1, "scriptPubKey": {"hex": script}});
        Some(json!({"txid": txid, "vin": [], "vout": [output]}))
    }

    fn answer(&mut self, method: &str, params: &Value) -> Option<Value> {
        Some(match method {
            "getblockhash" => {
                let genesis = bitcoin::constants::genesis_block(bitcoin::Network::Regtest);
                json!(genesis.block_hash())
            }
            "getrawmempool" => {
                let all = self.waiting.iter();
                all.map(|(one, _)| json!(one.compute_txid())).collect()
            }
            "getrawtransaction" if params[1] == json!(false) => {
                let mut all = self.waiting.iter().map(|(one, _)| one);
                let one = all.find(|one| json!(one.compute_txid()) == params[0])?;
                json!(bitcoin::consensus::encode::serialize_hex(one))
            }
            "getrawtransaction" => {
                self.shown += 1;
                self.find(&params[0])?
            }
            _ => panic!("{method}"),
        })
    }

    fn one(&mut self, asked: &Value) -> Value {
        let answer = self.answer(asked["method"].as_str().unwrap(), &asked["params"]);
        let error = match answer {
            Some(_) => Value::Null,
            None => json!({"code": -5, "message": "no"}),
        };
        json!({"id": asked["id"], "result": answer, "error": error})
    }
}

fn node(host: &str, core: &Shared) -> Node {
    node_within(host, core, Duration::from_secs(60))
}

fn node_within(host: &str, core: &Shared, timeout: Duration) -> Node {
    let shared = core.clone();
    let answer = move |asked: &Request<'_>| {
        let body: Value = serde_json::from_slice(asked.body).unwrap();
        let mut core = shared.lock().unwrap();
        if !core.listens(&body) {
            return None;
        }
        let said = match body.as_array() {
            Some(all) => all.iter().map(|one| core.one(one)).collect(),
            None => core.one(&body),
        };
        Some((200, serde_json::to_vec(&said).unwrap()))
    };
    inside::register(host, Arc::new(answer));
    let entry = json!({
        "id": "bitcoin", "hubChainId": "7", "depository": DEPOSITORY,
        "additionalData": {"network": "regtest"},
    });
    let entry: ChainEntry = serde_json::from_value(entry).unwrap();
    let endpoint = Endpoint {
        position: 1,
        url: format!("http://{host}/").parse().unwrap(),
        timeout,
        longest: LONGEST,
        allows: None,
        client: Endpoint::client().unwrap(),
    };
    match opened(&entry.spec(&FAMILY, false).unwrap(), &endpoint).unwrap() {
        Opened::Node(node) => *node,
        Opened::Index(_) => panic!("an index"),
    }
}

/// One look.
async fn look(node: &Node, known: &[Txid], seen: &mut Seen) -> Result<(), ReadError> {
    let payees = [Payee {
        address: DEPOSITORY.into(),
        script: depository(),
    }];
    let asked = Asked {
        payees: &payees,
        known,
    };
    node.waiting(asked, seen).await
}

/// The ids of those that pay the depository, after so many looks.
async fn looked(node: &Node, known: &[Txid], looks: usize) -> Vec<Txid> {
    let mut seen = Seen::new();
    for _ in 0..looks {
        look(node, known, &mut seen).await.unwrap();
    }
    paying(seen)
}

fn paying(seen: Seen) -> Vec<Txid> {
    let paying = seen.into_iter().filter(|(_, waits)| waits.is_some());
    paying.map(|(txid, _)| txid).collect()
}

/// One that nobody can read within the limits, and one that has more inputs than are looked at.
#[tokio::test]
async fn a_transaction_that_is_hard_to_read_hides_no_other() {
    let core = Shared::default();
    let honest = payment(3, 1);
    core.lock().unwrap().waiting = vec![
        (payment(1, 1), LONGEST),
        (payment(2, 51), 25),
        (honest.clone(), 25),
    ];
    let node = node("hard.inside", &core);
    assert_eq!(looked(&node, &[], 1).await, [honest.compute_txid()]);
}

#[tokio::test]
async fn what_is_known_already_is_looked_at_before_what_strangers_send() {
    let core = Shared::default();
    let honest = payment(100, 1);
    let crowd = (0..25).map(|number| (payment(number, 50), 25));
    core.lock().unwrap().waiting = crowd.chain([(honest.clone(), 25)]).collect();
    let node = node("before.inside", &core);
    let honest = honest.compute_txid();
    let found = looked(&node, &[], 1).await;
    assert_eq!((found.len(), found.contains(&honest)), (10, false));
    assert!(looked(&node, &[honest], 1).await.contains(&honest));
    // The others come with later looks.
    assert_eq!(looked(&node, &[], 3).await.len(), 26);
}

/// All of them together are a longer answer than any that is read, and the last one is so by itself.
#[tokio::test]
async fn large_ones_that_wait_hide_no_other() {
    let core = Shared::default();
    let honest = payment(100, 1);
    let crowd = (0..40).map(|number| strangers(number, 20_000));
    let crowd = crowd.chain([strangers(40, LONGEST), honest.clone()]);
    core.lock().unwrap().waiting = crowd.map(|one| (one, 25)).collect();
    let node = node("large.inside", &core);
    assert_eq!(looked(&node, &[], 1).await, [honest.compute_txid()]);
}

#[tokio::test]
async fn what_was_read_before_a_look_failed_is_not_read_again() {
    let core = Shared::default();
    let honest = payment(200, 1);
    let crowd = (0..200).map(|number| strangers(number, 25));
    let crowd = crowd.chain([honest.clone()]);
    core.lock().unwrap().waiting = crowd.map(|one| (one, 25)).collect();
    let (node, mut seen) = (node("failing.inside", &core), Seen::new());
    core.lock().unwrap().batches = Some(3);
    assert!(look(&node, &[], &mut seen).await.is_err());
    assert_eq!(seen.len(), 16 + 32 + 64);
    core.lock().unwrap().batches = Some(3);
    assert_eq!(look(&node, &[], &mut seen).await, Ok(()));
    assert_eq!(seen.len(), 201);
    assert_eq!(paying(seen), [honest.compute_txid()]);
}

/// A look shows what it has read in its time.
#[tokio::test]
async fn a_look_that_takes_too_long_goes_on_with_the_next() {
    let core = Shared::default();
    let honest = payment(400, 1).compute_txid();
    let crowd = (0..=400).map(|number| match number {
        400 => payment(number, 1),
        number => strangers(number, 25),
    });
    core.lock().unwrap().waiting = crowd.map(|one| (one, 25)).collect();
    core.lock().unwrap().slow = Duration::from_millis(400);
    let node = node_within("slow.inside", &core, Duration::from_secs(1));
    let mut seen = Seen::new();
    assert_eq!(look(&node, &[honest], &mut seen).await, Ok(()));
    assert!((1..401).contains(&seen.len()), "{}", seen.len());
    assert_eq!(paying(seen), [honest]);
}
