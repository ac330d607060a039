//! The chain: blocks in memory, under the control of a test.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bitcoin::{
    Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness,
    absolute::LockTime, consensus::deserialize, transaction::Version,
};

use super::{
    index::{self, Answer, LISTED},
    ledger::{Ledger, Mark},
    pool::Pool,
    rpc::{self, Wallet},
};
use crate::{http::inside, testing::Manners};

/// The provider that is an index; all others are nodes.
pub const INDEX: &str = "index";

/// A scripted chain.
pub struct World {
    pub name: String,
    pub rules: Rules,
    state: Mutex<State>,
}

/// What never changes on a chain.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The chain's number: other chains have other blocks.
    pub number: u64,
    /// Seconds between blocks.
    pub pace: u64,
    /// Unix seconds of block 0.
    pub since: u64,
    /// Satoshis that nodes estimate for a virtual byte.
    pub rate: u64,
}

/// A transaction in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub height: u64,
    /// Unix seconds of its block.
    pub time: u64,
    pub transaction: Transaction,
    /// The script of the first output that it spends.
    pub payer: ScriptBuf,
}

/// Everything about a chain that changes.
pub(super) struct State {
    pub ledger: Ledger,
    pub pool: Pool,
    pub rate: u64,
    forks: u64,
    stood: u64,
    /// What the next block has besides, unsigned.
    gifts: Vec<Transaction>,
    /// Whatever was ever sent, the oldest first.
    known: Vec<Transaction>,
    held: BTreeSet<ScriptBuf>,
    pub manners: BTreeMap<String, Manners>,
    /// The most unspent outputs of an account that the index lists.
    pub listed: usize,
    /// What the index has answered, where the chain stands still.
    answers: Option<HashMap<String, Answer>>,
    /// Wallets of nodes, by provider and name.
    pub wallets: BTreeMap<(String, String), Wallet>,
}

impl World {
    /// A chain with its first block. Its providers are asked at `http://<name>.inside/<provider>`.
    pub fn new(name: &str, rules: Rules) -> Arc<Self> {
        let state = State {
            ledger: Ledger::new(),
            pool: Pool::default(),
            rate: rules.rate,
            forks: 0,
            stood: 0,
            gifts: Vec::new(),
            known: Vec::new(),
            held: BTreeSet::new(),
            manners: BTreeMap::new(),
            listed: LISTED,
            answers: None,
            wallets: BTreeMap::new(),
        };
        let world = Arc::new(Self {
            name: name.to_owned(),
            rules,
            state: Mutex::new(state),
        });
        let listening = Arc::downgrade(&world);
        let answer = move |asked: &inside::Asked<'_>| {
            let world = listening.upgrade()?;
            let path = asked.path.trim_start_matches('/');
            let (provider, path) = path.split_once('/').unwrap_or((path, ""));
            let manners = world.lock().manners.get(provider).copied();
            let manners = manners.unwrap_or_default();
            if manners.down {
                return None;
            }
            match provider {
                INDEX => Some(world.indexed(manners, (path, asked.body))),
                _ => rpc::answer(&world, manners, (provider, path, asked.body)),
            }
        };
        inside::register(&world.host(), Arc::new(answer));
        world
    }

    fn host(&self) -> String {
        format!("{}{}", self.name, inside::HOST)
    }

    /// The URL of a provider.
    pub fn url(&self, provider: &str) -> String {
        format!("http://{}/{provider}", self.host())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the next block pay a script so many outputs of so many satoshis, in one transaction, out of one coinbase. False
    /// where no coinbase is old enough and as large.
    pub fn fund(&self, script: &ScriptBuf, satoshis: u64, outputs: usize) -> bool {
        let mut state = self.lock();
        let gifts = state.gifts.iter().flat_map(|one| &one.input);
        let given: BTreeSet<OutPoint> = gifts.map(|it| it.previous_output).collect();
        let coinbases = state.ledger.blocks().map(|(_, block)| {
            let txid = block.txdata.first().map(Transaction::compute_txid);
            txid.map(|txid| OutPoint::new(txid, 0))
        });
        let wanted = satoshis.saturating_mul(outputs as u64);
        let large = |at: &OutPoint| {
            let output = state.ledger.unspent(at);
            output.is_some_and(|it| it.value.to_sat() >= wanted)
        };
        let free = coinbases.flatten().skip(1).filter(|at| !given.contains(at));
        let Some(coinbase) = { free }.find(large) else {
            return false;
        };
        let output = TxOut {
            value: Amount::from_sat(satoshis),
            script_pubkey: script.clone(),
        };
        state.gifts.push(Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![TxIn {
                previous_output: coinbase,
                script_sig: ScriptBuf::new(),
                sequence: Sequence::MAX,
                witness: Witness::new(),
            }],
            output: vec![output; outputs],
        });
        true
    }

    /// Sets what nodes estimate for a virtual byte; blocks include nothing that pays less.
    pub fn set_rate(&self, rate: u64) {
        self.lock().rate = rate;
    }

    /// Sets whether what spends an account's outputs is kept out of blocks.
    pub fn hold(&self, account: &ScriptBuf, held: bool) {
        let mut state = self.lock();
        match held {
            true => state.held.insert(account.clone()),
            false => state.held.remove(account),
        };
    }

    /// Has the index list up to so many unspent outputs of an account, instead of [`LISTED`].
    pub fn list(&self, most: usize) {
        self.lock().listed = most;
    }

    /// Has the chain stand still: the index makes each of its answers once, so that a test that takes the time of others
    /// takes hardly any of the index's.
    pub fn freeze(&self) {
        self.lock().answers = Some(HashMap::new());
    }

    fn indexed(&self, manners: Manners, (path, body): (&str, &[u8])) -> Answer {
        let known = self
            .lock()
            .answers
            .as_ref()
            .map(|all| all.get(path).cloned());
        if let Some(Some(answer)) = known {
            return answer;
        }
        let answer = index::answer(self, manners, (path, body));
        if let Some(all) = self.lock().answers.as_mut().filter(|_| body.is_empty()) {
            all.insert(path.to_owned(), answer.clone());
        }
        answer
    }

    /// Sets how a provider behaves.
    pub fn set_manners(&self, provider: &str, manners: Manners) {
        self.lock().manners.insert(provider.to_owned(), manners);
    }

    /// Makes the blocks that are due at `now` (unix seconds).
    pub fn mine_until(&self, now: u64) {
        let mut state = self.lock();
        while self.time(&state, state.ledger.height() + 1) <= now {
            self.mine(&mut state);
        }
    }

    /// Delays the next block by this many seconds.
    pub fn stand(&self, seconds: u64) {
        self.lock().stood += seconds;
    }

    pub fn height(&self) -> u64 {
        self.lock().ledger.height()
    }

    /// Hands a transaction to the chain's nodes; its id. An error is what they say against it.
    pub fn send(&self, raw: &[u8]) -> Result<Txid, &'static str> {
        let one: Transaction = deserialize(raw).map_err(|_| "TX decode failed")?;
        let txid = one.compute_txid();
        let mut state = self.lock();
        if state.ledger.find(&txid).is_some() {
            return Err("Transaction outputs already in utxo set");
        }
        let State { ledger, pool, .. } = &mut *state;
        pool.take(ledger, one.clone())?;
        if !state.known.contains(&one) {
            state.known.push(one);
        }
        Ok(txid)
    }

    /// Has all transactions wait again that ever spent an account's outputs and that no block has, the oldest first, as if
    /// some node had kept them: as far as they still can be in a block, and nothing that waits spends the same.
    pub fn resend(&self, account: &ScriptBuf) {
        let mut state = self.lock();
        let own = |one: &&Transaction| state.payer(one).as_ref() == Some(account);
        let gone = |one: &&Transaction| {
            let id = one.compute_txid();
            state.ledger.find(&id).is_none() && state.pool.find(&id).is_none()
        };
        let again = state.known.iter().filter(own).filter(gone).cloned();
        let again: Vec<_> = again.collect();
        let State { ledger, pool, .. } = &mut *state;
        let waiting = std::mem::take(&mut pool.0);
        pool.put_back(ledger, waiting.into_iter().chain(again).collect());
    }

    /// What waits for a block.
    pub fn waiting(&self) -> Vec<Transaction> {
        self.lock().pool.0.clone()
    }

    /// What a transaction spends, of blocks or of what waits; `None` where some of it is nowhere.
    pub fn spent(&self, one: &Transaction) -> Option<Vec<TxOut>> {
        let state = self.lock();
        let inputs = one.input.iter();
        let spent = inputs.map(|it| state.output(&it.previous_output).cloned());
        spent.collect()
    }

    /// All transactions in blocks but coinbases, the oldest first.
    pub fn history(&self) -> Vec<Done> {
        let state = self.lock();
        let all = state.ledger.blocks().flat_map(|(height, block)| {
            let time = u64::from(block.header.time);
            let others = block.txdata.iter().filter(|one| !one.is_coinbase());
            others.map(move |one| (height, time, one))
        });
        let done = all.map(|(height, time, one)| Done {
            height,
            time,
            transaction: one.clone(),
            payer: state.payer(one).unwrap_or_default(),
        });
        done.collect()
    }

    /// Replaces the newest `depth` blocks by as many. The transactions in them for which `keep` is true, given who pays
    /// them, wait again; the first new block is empty.
    pub fn reorg(&self, depth: u64, keep: &mut dyn FnMut(&Done) -> bool) {
        let history = self.history();
        let mut state = self.lock();
        let newest = state.ledger.height();
        let kept = newest.saturating_sub(depth);
        let times: Vec<u64> = (kept + 1..=newest)
            .filter_map(|it| state.time_of(it))
            .collect();
        state.ledger.cut(kept);
        let gone = history.into_iter().filter(|done| done.height > kept);
        let back: Vec<_> = gone
            .filter(|done| keep(done))
            .map(|done| done.transaction)
            .collect();
        let State { ledger, pool, .. } = &mut *state;
        pool.put_back(ledger, back);
        state.forks += 1;
        for (place, time) in times.into_iter().enumerate() {
            match place {
                0 => {
                    let mark = self.mark(&state, time);
                    state.ledger.mine(Vec::new(), mark);
                }
                _ => self.mine_at(&mut state, time),
            }
        }
    }

    fn time(&self, state: &State, height: u64) -> u64 {
        self.rules.since + height * self.rules.pace + state.stood
    }

    fn mark(&self, state: &State, time: u64) -> Mark {
        Mark {
            chain: self.rules.number,
            fork: state.forks,
            time,
        }
    }

    fn mine(&self, state: &mut State) {
        let time = self.time(state, state.ledger.height() + 1);
        self.mine_at(state, time);
    }

    fn mine_at(&self, state: &mut State, time: u64) {
        let mark = self.mark(state, time);
        let State {
            ledger,
            pool,
            held,
            gifts,
            rate,
            ..
        } = state;
        let owner = |at: &OutPoint| ledger.output(at).map(|(output, _)| &output.script_pubkey);
        let is_held = |one: &Transaction, paid: u64| {
            let mut owners = one.input.iter().filter_map(|it| owner(&it.previous_output));
            let is_held = owners.any(|script| held.contains(script));
            is_held || paid < *rate
        };
        let mut all = std::mem::take(gifts);
        all.extend(pool.included(ledger, is_held));
        ledger.mine(all, mark);
    }
}

impl State {
    /// The script of the first output that a transaction spends.
    pub fn payer(&self, one: &Transaction) -> Option<ScriptBuf> {
        let spent = self.output(&one.input.first()?.previous_output)?;
        Some(spent.script_pubkey.clone())
    }

    fn output(&self, at: &OutPoint) -> Option<&TxOut> {
        let waits = || self.pool.find(&at.txid)?.output.get(at.vout as usize);
        let mined = self.ledger.output(at).map(|(output, _)| output);
        mined.or_else(waits)
    }

    fn time_of(&self, height: u64) -> Option<u64> {
        let block = self.ledger.block(height)?;
        Some(u64::from(block.header.time))
    }
}
