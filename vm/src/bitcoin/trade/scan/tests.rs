use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bitcoin::{
    Amount as Satoshis, CompactTarget, OutPoint, ScriptBuf, TxIn, TxMerkleNode, TxOut, Witness,
    absolute::LockTime, block::Header, hashes::Hash, script::PushBytesBuf,
};

use super::*;
use crate::{
    ChainEntry,
    bitcoin::{
        network::MAIN,
        raw::{RawInput, RawOutput, RawPrevout, RawScript},
        source::{Source, Spender, Transactions, txid},
        trade::{
            coin::Coin,
            scan_source::{Asked, Payee, Seen, Waits, Whose},
        },
    },
    types::Amount,
};

pub const USER: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
pub const DEPOSITORY: &str = "bc1q82jn90vgkwvknrhxpla797tu050fj0jaaaznne";
const ORDER: B256 = B256::repeat_byte(0xee);

/// Makes something else of a block before it is shown.
type Lie = fn(&mut bitcoin::Block);

/// A provider of a chain in memory. Blocks are real ones, but for their work.
pub struct Chain {
    blocks: Mutex<Vec<bitcoin::Block>>,
    waiting: Mutex<Vec<Transaction>>,
    lie: Mutex<Option<Lie>>,
    /// It shows other outputs of transactions than its blocks have.
    twists: AtomicBool,
    /// Seconds that a look takes.
    slow: AtomicUsize,
    /// How many looks there were.
    looks: AtomicUsize,
    /// Transactions of more outputs than this are too large to read.
    longest: AtomicUsize,
}

impl Chain {
    pub fn new() -> Arc<Self> {
        let chain = Self {
            blocks: Mutex::default(),
            waiting: Mutex::default(),
            lie: Mutex::default(),
            twists: AtomicBool::default(),
            slow: AtomicUsize::new(0),
            looks: AtomicUsize::new(0),
            longest: AtomicUsize::new(100),
        };
        chain.mine(Vec::new());
        Arc::new(chain)
    }

    /// A block with these transactions on top.
    pub fn mine(&self, transactions: Vec<Transaction>) -> B256 {
        let mut blocks = self.blocks.lock().unwrap();
        let height = blocks.len();
        let coinbase = Transaction {
            version: bitcoin::transaction::Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![TxIn {
                script_sig: ScriptBuf::builder().push_int(height as i64).into_script(),
                ..TxIn::default()
            }],
            output: vec![paid(&script(USER), 5_000_000_000)],
        };
        let parent = blocks.last().map(bitcoin::Block::block_hash);
        let mut block = bitcoin::Block {
            header: Header {
                version: bitcoin::block::Version::TWO,
                prev_blockhash: parent.unwrap_or(bitcoin::BlockHash::all_zeros()),
                merkle_root: TxMerkleNode::all_zeros(),
                time: 1_700_000_000 + height as u32 * 600,
                bits: CompactTarget::from_consensus(0x207f_ffff),
                nonce: 0,
            },
            txdata: [vec![coinbase], transactions].concat(),
        };
        block.header.merkle_root = block.compute_merkle_root().unwrap();
        let hash = shown(&block.block_hash());
        blocks.push(block);
        hash
    }

    /// Takes blocks off the top.
    fn undo(&self, count: usize) {
        let mut blocks = self.blocks.lock().unwrap();
        let left = blocks.len() - count;
        blocks.truncate(left);
    }

    fn lie(&self, lie: Option<Lie>) {
        *self.lie.lock().unwrap() = lie;
    }

    fn shown(&self, height: usize) -> Option<Block> {
        let blocks = self.blocks.lock().unwrap();
        let block = blocks.get(height)?;
        Some(Block {
            number: height as u64,
            hash: shown(&block.block_hash()),
            parent: shown(&block.header.prev_blockhash),
            time: block.header.time.into(),
        })
    }

    fn all(&self) -> HashMap<Txid, Transaction> {
        let blocks = self.blocks.lock().unwrap();
        let mined = blocks.iter().flat_map(|block| block.txdata.clone());
        let waiting = self.waiting.lock().unwrap().clone();
        mined
            .chain(waiting)
            .map(|it| (it.compute_txid(), it))
            .collect()
    }

    fn raw_of(&self, transaction: &Transaction) -> RawTransaction {
        let all = self.all();
        let inputs = transaction.input.iter().map(|input| {
            let spent = input.previous_output;
            let before = all.get(&spent.txid);
            RawInput {
                txid: (!spent.is_null()).then_some(spent.txid),
                vout: spent.vout,
                prevout: before.map(|it| RawPrevout {
                    script: RawScript {
                        hex: it.output[spent.vout as usize].script_pubkey.clone(),
                    },
                }),
                script_sig: None,
                witness: Vec::new(),
            }
        });
        let more = u64::from(self.twists.load(SeqCst));
        let outputs = (0..).zip(&transaction.output).map(|(n, output)| RawOutput {
            value: output.value + Satoshis::from_sat(more),
            n,
            script: RawScript {
                hex: output.script_pubkey.clone(),
            },
        });
        RawTransaction {
            txid: transaction.compute_txid(),
            vin: inputs.collect(),
            vout: outputs.collect(),
            blockhash: None,
        }
    }

    /// The coinbase of a block.
    pub fn raw_coinbase(&self, height: usize) -> Transaction {
        self.blocks.lock().unwrap()[height].txdata[0].clone()
    }

    pub fn wait(&self, transactions: Vec<Transaction>) {
        *self.waiting.lock().unwrap() = transactions;
    }
}

#[async_trait]
impl Source for Chain {
    async fn tip(&self) -> Result<Block, ReadError> {
        let height = self.blocks.lock().unwrap().len() - 1;
        Ok(self.shown(height).unwrap())
    }

    async fn hash_at(&self, height: u64) -> Result<Option<B256>, ReadError> {
        Ok(self.shown(height as usize).map(|block| block.hash))
    }

    async fn block(&self, hash: B256) -> Result<Block, ReadError> {
        let mut all = (0..).map_while(|height| self.shown(height));
        all.find(|block| block.hash == hash).ok_or_else(moved)
    }

    async fn look(&self, txid: Txid, head: &Block) -> Result<Option<Found>, ReadError> {
        for height in 0..=head.number {
            let blocks = self.blocks.lock().unwrap().clone();
            let Some(block) = blocks.get(height as usize) else {
                break;
            };
            let mut each = block.txdata.iter();
            if let Some(found) = each.find(|it| it.compute_txid() == txid) {
                let transaction = self.raw_of(found);
                let scripts = transaction.vin.iter();
                let scripts = scripts.map(|it| it.prevout.as_ref().map(|it| it.script.hex.clone()));
                return Ok(Some(Found {
                    spent: Some(scripts.collect()),
                    transaction,
                    block: self.shown(height as usize).unwrap(),
                }));
            }
        }
        Ok(None)
    }

    async fn spenders(&self, outputs: &[OutPoint]) -> Result<Vec<Spender>, ReadError> {
        Ok(vec![Spender::Nobody; outputs.len()])
    }
}

#[async_trait]
impl Transactions for Chain {
    async fn raw(&self, txid: Txid) -> Result<Option<Transaction>, ReadError> {
        Ok(self.all().remove(&txid))
    }
}

#[async_trait]
impl Blocks for Chain {
    async fn whole(&self, hash: &B256) -> Result<bitcoin::Block, ReadError> {
        let blocks = self.blocks.lock().unwrap();
        let mut all = blocks.iter();
        let found = all.find(|block| shown(&block.block_hash()) == *hash);
        let mut block = found.cloned().ok_or_else(moved)?;
        if let Some(lie) = *self.lie.lock().unwrap() {
            lie(&mut block);
        }
        Ok(block)
    }

    async fn look_in(&self, txid: Txid, block: &Block) -> Result<Found, ReadError> {
        self.looks.fetch_add(1, SeqCst);
        let slow = self.slow.load(SeqCst) as u64;
        tokio::time::sleep(Duration::from_secs(slow)).await;
        let found = self.look(txid, block).await?.ok_or_else(moved)?;
        match found.transaction.vout.len() > self.longest.load(SeqCst) {
            true => Err(ReadError::TooLarge),
            false => Ok(found),
        }
    }

    async fn unspent(&self, _: &Payee, _: Whose) -> Result<Vec<Coin>, ReadError> {
        Ok(Vec::new())
    }

    async fn waiting(&self, _: Asked<'_>, seen: &mut Seen) -> Result<(), ReadError> {
        let waiting = self.waiting.lock().unwrap().clone();
        let now = waiting.iter().map(|one| {
            let transaction = self.raw_of(one);
            let scripts = transaction.vin.iter();
            let scripts = scripts.map(|it| it.prevout.as_ref().map(|it| it.script.hex.clone()));
            let spent = Some(scripts.collect());
            let waits = Waits { transaction, spent };
            (one.compute_txid(), Some(Arc::new(waits)))
        });
        *seen = now.collect();
        Ok(())
    }
}

pub fn script(address: &str) -> ScriptBuf {
    MAIN.script(address).unwrap()
}

pub fn paid(script: &ScriptBuf, value: u64) -> TxOut {
    TxOut {
        value: Satoshis::from_sat(value),
        script_pubkey: script.clone(),
    }
}

/// A transaction of the coinbase at a height.
pub fn spending(chain: &Chain, height: usize, outputs: Vec<TxOut>) -> Transaction {
    let coinbase = chain.raw_coinbase(height).compute_txid();
    Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: OutPoint::new(coinbase, 0),
            witness: Witness::new(),
            ..TxIn::default()
        }],
        output: outputs,
    }
}

pub fn note(text: &str) -> TxOut {
    let text = PushBytesBuf::try_from(text.as_bytes().to_vec()).unwrap();
    paid(&ScriptBuf::new_op_return(text), 0)
}

/// A deposit for the order.
pub fn deposit(chain: &Chain, height: usize, value: u64) -> Transaction {
    let outputs = vec![
        paid(&script(DEPOSITORY), value),
        note(&format!("{ORDER:#x}")),
        paid(&script(USER), 1_000),
    ];
    spending(chain, height, outputs)
}

pub fn spec() -> Arc<ChainSpec> {
    let entry: ChainEntry = serde_json::from_value(serde_json::json!({
        "id": "bitcoin", "vmType": "bitcoin-vm", "hubChainId": "7", "depository": DEPOSITORY,
    }))
    .unwrap();
    let family = crate::family("bitcoin-vm").unwrap();
    entry.spec(family, false).unwrap()
}

fn scan(chain: &Arc<Chain>) -> Scan<Chain> {
    Scan::new(&spec(), chain.clone()).unwrap()
}

fn amounts(found: &[DepositTx]) -> Vec<(u64, u64)> {
    let each = found.iter();
    each.map(|it| (it.number, u64::try_from(it.deposits[0].amount).unwrap()))
        .collect()
}

#[tokio::test]
async fn deposits_are_found_in_block_order_and_nothing_else() {
    let chain = Chain::new();
    let elsewhere = spending(&chain, 0, vec![paid(&script(USER), 9)]);
    chain.mine(vec![elsewhere]);
    let two = vec![deposit(&chain, 0, 7_000), deposit(&chain, 1, 8_000)];
    chain.mine(two.clone());
    chain.mine(Vec::new());
    chain.mine(vec![deposit(&chain, 3, 9_000)]);
    let scan = scan(&chain);
    let head = Scanner::head(&scan).await.unwrap();
    assert_eq!(head.number, 4);
    let found = scan.deposits(1..=4).await.unwrap();
    assert_eq!(amounts(&found), [(2, 7_000), (2, 8_000), (4, 9_000)]);
    let first = &found[0];
    assert_eq!(first.doubt, None);
    assert_eq!(*first.deposits[0].id, *format!("{ORDER:#x}"));
    assert_eq!(first.deposits[0].depositor.text(), USER);
    assert_eq!(first.transaction.text.len(), 64);
    assert_eq!(
        txid(&B256::try_from(&first.transaction.bytes[..]).unwrap()),
        two[0].compute_txid()
    );
    assert_eq!(first.hash, scan.block(2).await.unwrap().unwrap().hash);
    assert_eq!(scan.omitted(1, &head, &found).await, Ok(Vec::new()));
    assert_eq!(scan.block(5).await, Ok(None));
    assert!(scan.deposits(4..=5).await.is_err(), "behind");
}

#[tokio::test]
async fn what_is_left_out_is_told_by_the_blocks() {
    let chain = Chain::new();
    chain.mine(vec![deposit(&chain, 0, 7_000)]);
    chain.mine(vec![deposit(&chain, 1, 8_000)]);
    let scan = scan(&chain);
    let head = Scanner::head(&scan).await.unwrap();
    let all = scan.deposits(0..=2).await.unwrap();
    assert_eq!(scan.omitted(0, &head, &[]).await, Ok(all.clone()));
    assert_eq!(
        scan.omitted(0, &head, &all[..1]).await,
        Ok(all[1..].to_vec())
    );
    assert_eq!(scan.omitted(2, &head, &[]).await, Ok(all[1..].to_vec()));
    assert_eq!(scan.omitted(3, &head, &[]).await, Ok(Vec::new()));
    // A deposit with another amount than the block's is none of it.
    let mut forged = all.clone();
    forged[0].deposits[0].amount = Amount::from(1);
    assert_eq!(scan.omitted(0, &head, &forged).await, Ok(all[..1].to_vec()));
}

#[tokio::test]
async fn a_block_that_is_not_whole_is_no_block() {
    let chain = Chain::new();
    chain.mine(vec![deposit(&chain, 0, 7_000)]);
    let scan = scan(&chain);
    let head = Scanner::head(&scan).await.unwrap();
    let lies: [Lie; 5] = [
        |block| drop(block.txdata.pop()),
        |block| block.txdata.push(block.txdata[1].clone()),
        |block| block.txdata[1].output[0].value = Satoshis::from_sat(8_000),
        |block| {
            // A block of its own, with a root that fits.
            block.txdata.pop();
            block.header.merkle_root = block.compute_merkle_root().unwrap();
        },
        |block| block.txdata.clear(),
    ];
    for lie in lies {
        chain.lie(Some(lie));
        let found = scan.deposits(1..=1).await;
        assert!(matches!(
            found,
            Err(ScanError::Read(ReadError::Doubtful(_)))
        ));
        assert!(scan.omitted(1, &head, &[]).await.is_err());
    }
    chain.lie(None);
    assert_eq!(scan.deposits(0..=1).await.unwrap().len(), 1);
    chain.twists.store(true, SeqCst);
    let twisted = self::scan(&chain).deposits(0..=1).await;
    assert!(matches!(
        twisted,
        Err(ScanError::Read(ReadError::Doubtful(_)))
    ));
}

#[tokio::test]
async fn a_block_that_left_the_chain_is_not_passed() {
    let chain = Chain::new();
    chain.mine(vec![deposit(&chain, 0, 7_000)]);
    let scan = scan(&chain);
    let head = Scanner::head(&scan).await.unwrap();
    let before = scan.deposits(0..=1).await.unwrap();
    chain.undo(1);
    chain.mine(vec![deposit(&chain, 0, 6_000)]);
    assert!(scan.omitted(0, &head, &before).await.is_err());
    let after = scan.deposits(0..=1).await.unwrap();
    assert_eq!(amounts(&after), [(1, 6_000)]);
    assert_ne!(after[0].hash, before[0].hash);
}

#[tokio::test]
async fn a_deposit_that_nobody_can_attribute_is_shown_with_its_doubt() {
    let chain = Chain::new();
    let notes = [ORDER, B256::repeat_byte(1)].map(|order| note(&format!("{order:#x}")));
    let mut outputs = vec![paid(&script(DEPOSITORY), 7_000)];
    outputs.extend(notes);
    chain.mine(vec![spending(&chain, 0, outputs)]);
    let found = scan(&chain).deposits(0..=1).await.unwrap();
    assert_eq!(amounts(&found), [(1, 7_000)]);
    assert!(found[0].doubt.is_some());
}

#[tokio::test]
async fn many_blocks_are_too_many_and_one_is_not() {
    let chain = Chain::new();
    for _ in 0..20 {
        chain.mine(Vec::new());
    }
    let scan = scan(&chain);
    let many = scan.deposits(0..=4).await;
    assert!(matches!(many, Err(ScanError::TooLarge(_))));
    assert!(scan.deposits(0..=3).await.is_ok());
    assert!(scan.deposits(5..=5).await.is_ok());
}

/// Whoever pays a depository many times over must not hold up what others pay.
#[tokio::test(start_paused = true)]
async fn many_deposits_of_a_block_are_looked_at_together() {
    let chain = Chain::new();
    let all = (0..60).map(|more| deposit(&chain, 0, 7_000 + more));
    chain.mine(all.collect());
    chain.slow.store(1, SeqCst);
    let began = tokio::time::Instant::now();
    let found = scan(&chain).deposits(1..=1).await.unwrap();
    let each = (0..60).map(|more| (1, 7_000 + more));
    assert_eq!(amounts(&found), each.collect::<Vec<_>>());
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// A reading that is given up goes on where it was, and what was read of a block is not asked for again.
#[tokio::test(start_paused = true)]
async fn what_was_read_is_not_asked_for_again() {
    let chain = Chain::new();
    let all = (0..60).map(|more| deposit(&chain, 0, 7_000 + more));
    chain.mine(all.collect());
    chain.slow.store(1, SeqCst);
    let scan = scan(&chain);
    let patience = Duration::from_millis(2_500);
    let late = tokio::time::timeout(patience, scan.deposits(1..=1)).await;
    assert!(late.is_err());
    let begun = chain.looks.load(SeqCst);
    assert_eq!(scan.deposits(1..=1).await.unwrap().len(), 60);
    assert!(chain.looks.load(SeqCst) - begun <= 60 - 24);
    let begun = chain.looks.load(SeqCst);
    assert_eq!(scan.deposits(0..=1).await.unwrap().len(), 60);
    assert_eq!(chain.looks.load(SeqCst), begun);
    // In another block it is another one.
    chain.undo(1);
    chain.mine(Vec::new());
    assert_eq!(scan.deposits(0..=1).await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_transaction_that_is_too_large_to_read_holds_up_no_other() {
    let chain = Chain::new();
    let mut large = deposit(&chain, 0, 7_000);
    large.output.extend(vec![paid(&script(USER), 1_000); 10]);
    let elsewhere = spending(&chain, 0, vec![paid(&script(USER), 9); 12]);
    chain.mine(vec![elsewhere, large, deposit(&chain, 0, 8_000)]);
    chain.longest.store(10, SeqCst);
    let scan = scan(&chain);
    let found = scan.deposits(0..=1).await.unwrap();
    assert_eq!(amounts(&found), [(1, 7_000), (1, 8_000)]);
    assert!(found[0].doubt.is_some() && found[1].doubt.is_none());
    // Once somebody shows it, it is a deposit.
    chain.longest.store(100, SeqCst);
    let found = scan.deposits(0..=1).await.unwrap();
    assert!(found.iter().all(|one| one.doubt.is_none()));
}

#[tokio::test]
async fn a_waiting_deposit_is_seen_before_its_block() {
    use crate::{bitcoin::trade::pool::Pool, trade::Mempool};

    let chain = Chain::new();
    let pool = Pool::new(&spec(), chain.clone()).unwrap();
    assert!(pool.waiting(&[]).await.unwrap().is_empty());
    let one = deposit(&chain, 0, 7_000);
    let nobodys = spending(&chain, 0, vec![paid(&script(USER), 9)]);
    chain.wait(vec![nobodys, one.clone()]);
    let waiting = pool.waiting(&[]).await.unwrap();
    let [found] = waiting.as_slice() else {
        panic!("{waiting:?}");
    };
    assert_eq!(found.deposits[0].amount, Amount::from(7_000));
    assert_eq!(found.deposits[0].depositor.text(), USER);
    let id = B256::try_from(&found.transaction.bytes[..]).unwrap();
    assert_eq!(txid(&id), one.compute_txid());
    chain.wait(Vec::new());
    assert!(pool.waiting(&[]).await.unwrap().is_empty());
}
