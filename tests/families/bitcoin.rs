//! A chain of `bitcoin-vm` as a [`Side`]: two nodes and an index of a scripted chain, in this process.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use alloy::{
    hex,
    primitives::{B256, U256},
};
use bitcoin::{
    Amount, OutPoint, Psbt, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness,
    absolute::LockTime, consensus::serialize, script::PushBytesBuf, transaction::Version,
};
use intentd::chains::Opened;
use serde_json::{Value, json};
use vm::{
    ChainEntry, ChainSpec,
    bitcoin::FAMILY,
    testing::bitcoin::{Done, INDEX, Key, Rules, World},
};

use crate::{
    clock,
    machine::SOLVER,
    process,
    side::{About, Act, Blocks, Given, Named, Party, Public, Seen, Side, Weather},
};

/// The index names what spends an output, and lists what users have; nodes know what they watch.
pub const PROVIDERS: [&str; 3] = ["one", "two", INDEX];
/// Blocks, with its own, until a block is final, where a scenario says nothing else.
pub const FINAL: u64 = 7;
/// Blocks before the start of the test: coinbases have to be old.
const BEFORE: u64 = 125;
/// Satoshis of each output that the solver, the user and the stranger have at first, and how many there are.
const COIN: u64 = 100_000_000;
const COINS: usize = 40;
/// Satoshis of the only output that the poor user has.
pub const LITTLE: u64 = 10_000_000;
/// Satoshis per virtual byte, and blocks after which they grow by one while blocks include nothing of the solver's.
const RATE: u64 = 5;
const GROWTH: u64 = 10;
/// What a replacement pays, and what the stranger pays for what he sends by himself.
const MORE: Amount = Amount::from_sat(20_000);
/// What a recipient pays to keep nodes from replacing what pays him.
const PIN: Amount = Amount::from_sat(100_000);

fn user() -> Key {
    Key::of(0xc1).unwrap()
}

fn solver() -> Key {
    Key::from_bytes(&hex::decode(SOLVER).unwrap()).unwrap()
}

fn recipient() -> Key {
    Key::of(0xc2).unwrap()
}

fn depository() -> Key {
    Key::of(0xd0).unwrap()
}

fn stranger() -> Key {
    Key::of(0xc4).unwrap()
}

fn key(party: Party) -> Key {
    match party {
        Party::Solver => solver(),
        Party::User => user(),
        Party::Recipient => recipient(),
        Party::Stranger => stranger(),
        Party::Depository => depository(),
    }
}

fn script(party: Party) -> ScriptBuf {
    key(party).script()
}

/// A user who has [`LITTLE`].
pub fn poor() -> Key {
    Key::of(0xc3).unwrap()
}

/// The solver's payment to the recipient that waits for a block.
pub fn waiting_fill(world: &World) -> Option<Transaction> {
    let (own, to) = (script(Party::Solver), script(Party::Recipient));
    let pays = |one: &Transaction| one.output.iter().any(|it| it.script_pubkey == to);
    let is_own = |one: &Transaction| {
        let spent = world.spent(one).unwrap_or_default();
        spent.iter().any(|it| it.script_pubkey == own)
    };
    let mut waiting = world.waiting().into_iter();
    waiting.find(|one| pays(one) && is_own(one))
}

/// The recipient hangs a transaction on the payment that waits for a block, if there is one: nodes replace both only by
/// what pays more than both.
pub fn pin(world: &World) {
    let Some(fill) = waiting_fill(world) else {
        return;
    };
    let own = script(Party::Recipient);
    let mut outputs = (0..).zip(&fill.output);
    let (place, spent) = outputs.find(|(_, it)| it.script_pubkey == own).unwrap();
    let made = Transaction {
        version: fill.version,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: OutPoint::new(fill.compute_txid(), place),
            script_sig: ScriptBuf::new(),
            sequence: Sequence::MAX,
            witness: Witness::new(),
        }],
        output: vec![TxOut {
            value: spent.value - PIN,
            script_pubkey: own,
        }],
    };
    let signed = recipient().sign(made, std::slice::from_ref(spent)).unwrap();
    world.send(&serialize(&signed)).unwrap();
}

/// The chain with its world.
pub struct Bitcoin {
    about: About,
    pub world: Arc<World>,
    spec: Arc<ChainSpec>,
    /// What the market file says of it.
    pub listed: Value,
    /// The height since which blocks include nothing of the solver's.
    held: Mutex<Option<u64>>,
}

impl Bitcoin {
    /// The chain has its world under the name of `machine` and its own: machines run at the same time. `depth`: blocks,
    /// with its own, until a block is final.
    pub fn new(machine: &str, (name, number, pace): Named, depth: u64) -> Self {
        let host = format!("{machine}-{name}").to_lowercase();
        let since = clock::GENESIS - BEFORE * pace;
        let rules = Rules {
            number,
            pace,
            since,
            rate: RATE,
        };
        let world = World::new(&host, rules);
        world.mine_until(since + 110 * pace);
        for owner in [solver(), user(), stranger()] {
            assert!(world.fund(&owner.script(), COIN, COINS));
        }
        assert!(world.fund(&poor().script(), LITTLE, 1));
        world.mine_until(clock::GENESIS);
        let entry = json!({
            "id": name, "hubChainId": number.to_string(), "depository": depository().address(),
            "additionalData": {
                "network": "regtest", "finalizationBlocks": depth, "walletSince": 0,
                "esploraCompatibleApiUrl": world.url(INDEX),
            },
        });
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        let spec = entry.spec(&FAMILY, false).unwrap();
        let native = spec.family.native().unwrap().text().to_owned();
        Self {
            about: About {
                name,
                number,
                pace,
                family: spec.family,
                user: user().address(),
                recipient: recipient().address(),
                stranger: stranger().address(),
                // There is one currency.
                token: native.clone(),
                native,
                life: 30,
            },
            spec,
            world,
            listed: json!({}),
            held: Mutex::new(None),
        }
    }

    /// An output of the stranger's with so much at least, that nothing spends and that a block has.
    fn free(&self, least: Amount) -> (OutPoint, TxOut) {
        let (history, waiting) = (self.world.history(), self.world.waiting());
        let mined = history.iter().map(|done| &done.transaction);
        let inputs = mined.clone().chain(&waiting).flat_map(|one| &one.input);
        let spent: BTreeSet<OutPoint> = inputs.map(|it| it.previous_output).collect();
        let mut outputs = mined.flat_map(|one| {
            let id = one.compute_txid();
            let outputs = (0..).zip(&one.output);
            outputs.map(move |(place, output)| (OutPoint::new(id, place), output))
        });
        let own = script(Party::Stranger);
        let found = outputs.find(|(at, output)| {
            output.script_pubkey == own && output.value >= least && !spent.contains(at)
        });
        found.map(|(at, output)| (at, output.clone())).unwrap()
    }

    /// What no block includes pays less than others pay by now.
    fn rise(&self) {
        if let Some(since) = *self.held.lock().unwrap() {
            let blocks = self.world.height().saturating_sub(since);
            self.world.set_rate(RATE + blocks / GROWTH);
        }
    }
}

impl Public for Bitcoin {
    fn give(&self, to: Party, amount: U256, order: B256) -> String {
        let amount = Amount::from_sat(u64::try_from(amount).unwrap());
        let (at, spent) = self.free(amount + MORE + MORE);
        let mut text = PushBytesBuf::new();
        text.extend_from_slice(order.to_string().as_bytes())
            .unwrap();
        let paid = [
            (amount, script(to)),
            (Amount::ZERO, ScriptBuf::new_op_return(text)),
            (spent.value - amount - MORE, script(Party::Stranger)),
        ];
        let output = paid.map(|(value, script_pubkey)| TxOut {
            value,
            script_pubkey,
        });
        let made = Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![TxIn {
                previous_output: at,
                script_sig: ScriptBuf::new(),
                sequence: Sequence::MAX,
                witness: Witness::new(),
            }],
            output: output.into(),
        };
        let signed = stranger().sign(made, &[spent]).unwrap();
        self.world.send(&serialize(&signed)).unwrap().to_string()
    }

    fn seen(&self) -> Vec<Seen> {
        let (parties, mut seen) = (Party::all(script), Vec::new());
        for done in self.world.history() {
            let Some(by) = Party::with(&parties, &done.payer) else {
                continue;
            };
            for output in &done.transaction.output {
                let to = Party::with(&parties, &output.script_pubkey);
                // What remains is no payment.
                seen.extend(to.filter(|to| *to != by).map(|to| Seen {
                    by,
                    to,
                    native: true,
                    amount: U256::from(output.value.to_sat()),
                    order: named(&done),
                    transaction: done.transaction.compute_txid().to_string(),
                    time: done.time,
                }));
            }
        }
        seen
    }
}

impl Side for Bitcoin {
    fn about(&self) -> &About {
        &self.about
    }

    fn open(&self) -> Opened {
        process::opened(
            &self.spec,
            PROVIDERS.map(|provider| self.world.url(provider)),
        )
    }

    fn network(&self) -> Value {
        self.listed.clone()
    }

    fn follow(&self, by: Party, data: &Value) -> String {
        let raw = key(by).signed(data).unwrap_or_else(|| panic!("{data}"));
        self.world.send(&raw).unwrap().to_string()
    }

    /// Whoever includes it gets what is missing.
    fn short(&self, data: &Value, missing: U256) -> Value {
        let missing = Amount::from_sat(u64::try_from(missing).unwrap());
        let bytes = hex::decode(data["psbt"].as_str().unwrap()).unwrap();
        let mut psbt = Psbt::deserialize(&bytes).unwrap();
        let outputs = psbt.unsigned_tx.output.iter_mut();
        for output in outputs.filter(|it| it.script_pubkey == depository().script()) {
            output.value -= missing;
        }
        json!({ "psbt": hex::encode(psbt.serialize()) })
    }

    fn blocks(&self) -> &dyn Blocks {
        self
    }
}

impl Blocks for Bitcoin {
    fn mine_until(&self, now: u64) {
        self.world.mine_until(now);
        self.rise();
    }

    fn height(&self) -> u64 {
        self.world.height()
    }

    fn act(&self, act: Act) {
        let (world, own) = (&self.world, solver().script());
        match act {
            Act::Weather(weather) => {
                assert_ne!(
                    weather,
                    Weather::Failing,
                    "what is in a block has not failed"
                );
                let held = weather == Weather::Held;
                world.hold(&own, held);
                world.set_rate(RATE);
                *self.held.lock().unwrap() = held.then(|| world.height());
            }
            Act::Provider(manner) => world.set_manners(PROVIDERS[1], manner.scripted()),
            Act::Fees(fees) => world.set_rate(u64::try_from(fees.of(RATE.into())).unwrap()),
            Act::Stand(seconds) => world.stand(seconds),
            Act::Reorg { depth, lost } => {
                world.reorg(depth, &mut |done| !lost || done.payer != own);
            }
            Act::Resend => world.resend(&own),
            Act::Replace(by) => self.replace(&key(by)),
            Act::Own(..) => {}
        }
    }

    fn given(&self, account: &str, currency: &str) -> Vec<Given> {
        assert_eq!(currency, self.about.native);
        let keys = [user(), recipient()];
        let to = keys.iter().find(|key| key.address() == account).unwrap();
        let own = self.world.history().into_iter();
        let own = own.filter(|done| done.payer == solver().script());
        let found = own.flat_map(|done| {
            let outputs = done.transaction.output.iter();
            let paid = outputs.filter(|output| output.script_pubkey == to.script());
            let given = paid.map(|output| Given {
                transaction: done.transaction.compute_txid().to_string(),
                order: named(&done).unwrap_or_default(),
                amount: U256::from(output.value.to_sat()),
            });
            given.collect::<Vec<_>>()
        });
        found.collect()
    }

    fn told(&self) -> Vec<(u64, String)> {
        let all = self.world.history().into_iter();
        let told = all.map(|done| {
            let whose = match &done.payer {
                payer if *payer == solver().script() => "solver",
                payer if *payer == user().script() => "user",
                _ => "miner",
            };
            let paid = done.transaction.output.iter().take(3);
            let paid: Vec<_> = paid.map(|it| it.value.to_sat()).collect();
            let (name, id) = (self.about.name, done.transaction.compute_txid());
            let what = format!("{name} #{} {whose} {id} -> {paid:?}", done.height);
            (done.time, what)
        });
        told.collect()
    }
}

impl Bitcoin {
    /// Leaves what pays more than a replacement would.
    fn replace(&self, key: &Key) {
        for waiting in self.world.waiting() {
            let spent = self.world.spent(&waiting).unwrap();
            if spent.iter().any(|it| it.script_pubkey != key.script()) {
                continue;
            }
            let whole: Amount = spent.iter().map(|it| it.value).sum();
            let paid: Amount = waiting.output.iter().map(|it| it.value).sum();
            if whole - paid >= MORE {
                continue;
            }
            let mut instead = waiting;
            instead.output = vec![TxOut {
                value: whole - MORE,
                script_pubkey: key.script(),
            }];
            let signed = key.sign(instead, &spent).unwrap();
            self.world.send(&serialize(&signed)).unwrap();
        }
    }
}

/// The order that a transaction names.
fn named(done: &Done) -> Option<B256> {
    let mut outputs = done.transaction.output.iter();
    let note = outputs.find(|output| output.script_pubkey.is_op_return())?;
    let text = note.script_pubkey.as_bytes().get(2..)?;
    std::str::from_utf8(text).ok()?.parse().ok()
}
