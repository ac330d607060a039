use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bitcoin::hashes::Hash;
use serde_json::{Value, json};

use super::*;
use crate::{
    ChainEntry, Endpoint,
    bitcoin::{
        FAMILY,
        network::LOCAL,
        read::{Opened, opened},
        trade::scan_source::{Asked, Blocks, Seen, Whose},
    },
    http::inside::{self, Asked as Request},
};

const OWN: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
const DEPOSITORY: &str = "bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry";
const PAGE: usize = 25;
/// Outputs that the index lists.
const LISTED: usize = 500;
const LONGEST: usize = 10_000_000;

/// An account's transactions, oldest first: each pays it one output.
#[derive(Default)]
struct Index {
    /// Satoshis, the height, and whether it is a coinbase's.
    paid: Vec<(u64, u64, bool)>,
    /// By their places in `paid`; those that a transaction in a block spends are not listed.
    spent: Vec<usize>,
    tip: u64,
    /// So many transactions wait that pay the account, oldest first.
    waiting: usize,
    /// By their places; a waiting transaction spends them.
    leaving: Vec<usize>,
    /// The page below that place is longer than any that is read.
    long: Option<usize>,
    /// That question for a page has no answer; later ones have.
    hangs: Option<usize>,
    asked: Vec<String>,
}

/// The first of the waiting ones, and how many of them an index shows for an address.
const WAITING: usize = 3_000_000;
const SHORT: usize = 50;

fn txid(number: usize) -> Txid {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    Txid::from_byte_array(bytes)
}

fn hash(height: u64) -> bitcoin::BlockHash {
    let mut bytes = [3; 32];
    bytes[..8].copy_from_slice(&height.to_le_bytes());
    bitcoin::BlockHash::from_byte_array(bytes)
}

impl Index {
    fn number(&self, text: &str) -> Option<usize> {
        (0..self.paid.len()).find(|number| txid(*number).to_string() == text)
    }

    fn status(&self, number: usize) -> Value {
        let height = self.paid[number].1;
        json!({"confirmed": true, "block_height": height, "block_hash": hash(height)})
    }

    fn transaction(&self, number: usize) -> Value {
        let (value, _, coinbase) = self.paid[number];
        let script = LOCAL.script(OWN).unwrap();
        let other = json!({"scriptpubkey": "51", "value": value});
        let prevout = if coinbase { Value::Null } else { other };
        json!({
            "txid": txid(number), "status": self.status(number),
            "vin": [{"txid": txid(1_000_000), "vout": 0, "prevout": prevout, "scriptsig": "",
                "is_coinbase": coinbase}],
            "vout": [{"scriptpubkey": script, "value": value}],
        })
    }

    fn answer(&mut self, path: &str) -> (u16, Value) {
        self.asked.push(path.to_owned());
        let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
        let known = |text: &str| self.number(text);
        let answer = match parts[..] {
            ["address", _, "utxo"] => {
                let all = (0..self.paid.len()).filter(|one| !self.spent.contains(one));
                let all: Vec<_> = all.collect();
                if all.len() > LISTED {
                    return (400, json!("Too many unspent transaction outputs (>500)"));
                }
                let all = all.into_iter().map(|one| {
                    json!({"txid": txid(one), "vout": 0, "value": self.paid[one].0,
                        "status": self.status(one)})
                });
                Some(all.collect())
            }
            ["address", _, "txs", "chain"] => Some(self.page(self.paid.len())),
            ["address", _, "txs", "chain", below] => known(below).map(|end| self.page(end)),
            ["address", _, "txs", "mempool"] => {
                let shown = (0..self.waiting).take(SHORT);
                Some(shown.map(|one| waits(WAITING + one)).collect())
            }
            ["tx", id] => match known(id) {
                Some(one) => Some(self.transaction(one)),
                None => (WAITING..WAITING + self.waiting)
                    .find(|one| txid(*one).to_string() == id)
                    .map(waits),
            },
            ["tx", id, "status"] => known(id).map(|one| self.status(one)),
            ["tx", id, "outspend", _] => known(id).map(|one| match self.spent.contains(&one) {
                true => json!({"spent": true, "txid": txid(2_000_000), "status": self.status(one)}),
                false => {
                    json!({"spent": self.leaving.contains(&one), "status": {"confirmed": false}})
                }
            }),
            ["block", _] => Some(json!({"id": hash(self.tip), "height": self.tip,
                "timestamp": 1, "previousblockhash": hash(self.tip - 1)})),
            _ => None,
        };
        answer.map_or((404, Value::Null), |answer| (200, answer))
    }

    fn page(&self, end: usize) -> Value {
        if self.long == Some(end) {
            return json!("x".repeat(LONGEST));
        }
        let all = (0..end).rev().take(PAGE);
        all.map(|one| self.transaction(one)).collect()
    }

    fn asked(&self, part: &str) -> usize {
        self.asked.iter().filter(|path| path.contains(part)).count()
    }
}

fn waits(number: usize) -> Value {
    let script = LOCAL.script(OWN).unwrap();
    json!({
        "txid": txid(number), "status": {"confirmed": false},
        "vin": [{"txid": txid(1_000_000), "vout": 0, "scriptsig": "", "is_coinbase": false,
            "prevout": {"scriptpubkey": "51", "value": 9_000}}],
        "vout": [{"scriptpubkey": script, "value": 330}],
    })
}

fn esplora(host: &str, index: &Arc<Mutex<Index>>) -> Esplora {
    let shared = index.clone();
    let answer = move |asked: &Request<'_>| {
        let mut index = shared.lock().unwrap();
        let text = match asked.path {
            "/blocks/tip/hash" => Some(hash(index.tip).to_string()),
            "/block-height/0" => {
                let genesis = bitcoin::constants::genesis_block(bitcoin::Network::Regtest);
                Some(genesis.block_hash().to_string())
            }
            _ => None,
        };
        if let Some(text) = text {
            return Some((200, text.into_bytes()));
        }
        let (status, said) = index.answer(asked.path);
        if asked.path.contains("txs/chain") && index.hangs == Some(index.asked("txs/chain")) {
            return Some((inside::NEVER, Vec::new()));
        }
        Some((status, serde_json::to_vec(&said).unwrap()))
    };
    inside::register(host, Arc::new(answer));
    let url = format!("http://{host}/");
    let entry = json!({
        "id": "bitcoin", "hubChainId": "7", "depository": DEPOSITORY,
        "additionalData": {"network": "regtest", "esploraCompatibleApiUrl": url},
    });
    let entry: ChainEntry = serde_json::from_value(entry).unwrap();
    let spec = entry.spec(&FAMILY, false).unwrap();
    let endpoint = Endpoint {
        position: 1,
        url: url.parse().unwrap(),
        timeout: Duration::from_secs(5),
        longest: LONGEST,
        allows: None,
        client: Endpoint::client().unwrap(),
    };
    match opened(&spec, &endpoint).unwrap() {
        Opened::Index(index) => *index,
        Opened::Node(_) => panic!("a node"),
    }
}

async fn shown(index: &Esplora, whose: Whose) -> Result<Vec<(u64, u64)>, ReadError> {
    let payee = Payee {
        address: OWN.into(),
        script: LOCAL.script(OWN).unwrap(),
    };
    let coins = index.unspent(&payee, whose).await?;
    Ok(coins.iter().map(|coin| (coin.value, coin.height)).collect())
}

/// So many outputs of strangers that the index lists none, over what the account had.
fn crowd(before: &[(u64, u64, bool)], strangers: usize) -> Arc<Mutex<Index>> {
    let dust = (0..strangers).map(|_| (294, 800, false));
    Arc::new(Mutex::new(Index {
        paid: before.iter().copied().chain(dust).collect(),
        tip: 1_000,
        ..Index::default()
    }))
}

#[tokio::test]
async fn strangers_outputs_do_not_hide_our_own() {
    let index = crowd(&[(70_000, 600, false), (80_000, 601, false)], 501);
    let esplora = esplora("crowd.inside", &index);
    // 501 transactions are 21 pages: what is at their end is found after three reads.
    for _ in 0..2 {
        assert_eq!(shown(&esplora, Whose::Own).await, Ok(Vec::new()));
    }
    let all = vec![(80_000, 601), (70_000, 600)];
    assert_eq!(shown(&esplora, Whose::Own).await, Ok(all.clone()));
    // From then on the newest page is enough.
    index.lock().unwrap().asked.clear();
    assert_eq!(shown(&esplora, Whose::Own).await, Ok(all));
    assert_eq!(index.lock().unwrap().asked("txs/chain"), 1);
    // Change of ours among more of theirs; what is spent is gone.
    {
        let mut index = index.lock().unwrap();
        index.paid.extend((0..60).map(|_| (294, 900, false)));
        index.paid.push((50_000, 900, false));
        index.paid.extend((0..60).map(|_| (294, 900, false)));
        index.spent.push(1);
    }
    let left = vec![(70_000, 600), (50_000, 900)];
    assert_eq!(shown(&esplora, Whose::Own).await, Ok(left.clone()));
    // A reorg changes the height.
    index.lock().unwrap().paid[0].1 = 602;
    let moved = shown(&esplora, Whose::Own).await.unwrap();
    assert_eq!(moved[0], (70_000, 602));
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_cut_off_leaves_no_hole() {
    for hangs in [1, 2, 3, 8] {
        let index = crowd(&[(70_000, 600, false)], 501);
        index.lock().unwrap().hangs = Some(hangs);
        let esplora = esplora("hole.inside", &index);
        let read = shown(&esplora, Whose::Own);
        let cut = tokio::time::timeout(Duration::from_secs(1), read).await;
        assert!(cut.is_err(), "{hangs}");
        for _ in 0..3 {
            shown(&esplora, Whose::Own).await.unwrap();
        }
        assert_eq!(shown(&esplora, Whose::Own).await, Ok(vec![(70_000, 600)]));
    }
}

#[tokio::test]
async fn a_page_that_is_too_large_hides_no_output_that_is_known() {
    let index = crowd(&[], 600);
    index.lock().unwrap().paid.push((70_000, 900, false));
    index.lock().unwrap().long = Some(601 - PAGE);
    let esplora = esplora("long.inside", &index);
    let own = Ok(vec![(70_000, 900)]);
    assert_eq!(shown(&esplora, Whose::Own).await, own);
    index.lock().unwrap().asked.clear();
    assert_eq!(shown(&esplora, Whose::Own).await, own);
    assert_eq!(index.lock().unwrap().asked("txs/chain"), 1);
    // Who knows nothing is told so.
    index.lock().unwrap().long = Some(601);
    assert_eq!(shown(&esplora, Whose::Own).await, own);
    let new = self::esplora("long.inside", &index);
    assert_eq!(shown(&new, Whose::Own).await, Err(ReadError::TooLarge));
}

#[tokio::test]
async fn outputs_that_a_waiting_transaction_spends_take_no_place_of_others() {
    let own: Vec<_> = (0..40).map(|more| (10_000 + more, 600, false)).collect();
    let index = crowd(&own, 501);
    index.lock().unwrap().leaving = (8..40).collect();
    let esplora = esplora("leaving.inside", &index);
    for _ in 0..3 {
        shown(&esplora, Whose::Own).await.unwrap();
    }
    let others: Vec<_> = (0..8).rev().map(|more| (10_000 + more, 600)).collect();
    assert_eq!(shown(&esplora, Whose::Own).await, Ok(others));
    // No more than 32 are shown.
    index.lock().unwrap().leaving.clear();
    assert_eq!(shown(&esplora, Whose::Own).await.unwrap().len(), SHOWN);
}

#[tokio::test]
async fn a_stranger_with_more_outputs_than_are_listed_is_told_so() {
    let index = crowd(&[(70_000, 600, false)], 500);
    let esplora = esplora("stranger.inside", &index);
    assert_eq!(
        shown(&esplora, Whose::Others).await,
        Err(ReadError::TooLarge)
    );
    assert_eq!(index.lock().unwrap().asked("txs/chain"), 0);
    index.lock().unwrap().spent.push(1);
    assert_eq!(shown(&esplora, Whose::Others).await.unwrap().len(), 500);
}

/// The largest goes first: an attempt over it would be refused until a hundred blocks are on top.
#[tokio::test]
async fn what_a_coinbase_pays_is_left_out_until_it_can_be_spent() {
    for whose in [Whose::Own, Whose::Others] {
        let index = crowd(
            &[
                (900_000, 902, true),
                (70_000, 950, false),
                (5_000, 10, true),
            ],
            0,
        );
        let esplora = esplora("coinbase.inside", &index);
        let plain = vec![(70_000, 950), (5_000, 10)];
        assert_eq!(shown(&esplora, whose).await, Ok(plain));
        index.lock().unwrap().tip = 1_001;
        assert_eq!(shown(&esplora, whose).await.unwrap().len(), 3);
        // What is known is not asked for again.
        assert_eq!(index.lock().unwrap().asked(&txid(1).to_string()), 1);
    }
}

/// More young outputs than one read looks at: those of strangers are shown, ours with later reads.
#[tokio::test]
async fn young_outputs_are_looked_at_a_part_at_a_time() {
    let young: Vec<_> = (0..100).map(|more| (10_000 + more, 990, false)).collect();
    let index = crowd(&young, 0);
    let esplora = esplora("young.inside", &index);
    assert_eq!(shown(&esplora, Whose::Others).await.unwrap().len(), 100);
    let esplora = self::esplora("young.inside", &index);
    assert_eq!(shown(&esplora, Whose::Own).await.unwrap().len(), 64);
    assert_eq!(shown(&esplora, Whose::Own).await.unwrap().len(), 100);
}

/// An index lists few of the transactions that wait for an address. One that somebody else shows is asked for by its id.
#[tokio::test]
async fn a_crowd_that_waits_hides_no_transaction_that_is_known() {
    let index = crowd(&[], 0);
    index.lock().unwrap().waiting = SHORT + 1;
    let esplora = esplora("waiting.inside", &index);
    let payees = [Payee {
        address: OWN.into(),
        script: LOCAL.script(OWN).unwrap(),
    }];
    let last = txid(WAITING + SHORT);
    let looked = async |known: &[Txid]| {
        let asked = Asked {
            payees: &payees,
            known,
        };
        let mut seen = Seen::new();
        esplora.waiting(asked, &mut seen).await.unwrap();
        seen
    };
    let listed = looked(&[]).await;
    assert_eq!((listed.len(), listed.contains_key(&last)), (SHORT, false));
    // What the index does not know is none of its transactions.
    let all = looked(&[txid(5), last]).await;
    assert_eq!((all.len(), all.contains_key(&last)), (SHORT + 1, true));
}

/// Whoever waits for a deposit of his own has it asked for, and grinds its id.
#[tokio::test]
async fn a_crowd_that_is_known_hides_no_transaction_that_is_known() {
    let index = crowd(&[], 0);
    index.lock().unwrap().waiting = 600;
    let esplora = esplora("known.inside", &index);
    let payees = [Payee {
        address: OWN.into(),
        script: LOCAL.script(OWN).unwrap(),
    }];
    let known: Vec<Txid> = (0..600).map(|one| txid(WAITING + one)).collect();
    let mut seen = Seen::new();
    let look = async |seen: &mut Seen| {
        let asked = Asked {
            payees: &payees,
            known: &known,
        };
        esplora.waiting(asked, seen).await.unwrap();
        seen.len()
    };
    // 50 are listed.
    let mut found = Vec::new();
    for _ in 0..4 {
        found.push(look(&mut seen).await);
    }
    assert_eq!(found, [306, 562, 600, 600]);
    // What waits no more is noticed at its next turn.
    index.lock().unwrap().waiting = 599;
    for _ in 0..3 {
        look(&mut seen).await;
    }
    assert_eq!((seen.len(), seen.contains_key(&known[599])), (599, false));
}
