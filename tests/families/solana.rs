//! A chain of `solana-vm` as a [`Side`]: the nodes of a scripted chain, in this process.

use std::sync::Arc;

use alloy::{
    hex,
    primitives::{B256, U256},
};
use intentd::chains::Opened;
use serde_json::{Value, json};
use vm::{
    ChainEntry, ChainSpec,
    solana::{
        FAMILY,
        programs::{MEMO, SYSTEM, vault},
    },
    testing::{
        scripted::Key,
        solana::{Done, FINAL, Pubkey, Rules, Sent, World, signed},
    },
};

use crate::{
    clock, process, scripted,
    side::{About, Act, Blocks, Given, Named, Party, Public, Seen, Side, Weather},
};

const DEPOSITORY: &str = "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2";
const PROVIDERS: [&str; 3] = ["one", "two", "three"];
/// Where the amount stands in a deposit's data: behind the eight bytes of its kind.
const AMOUNT: std::ops::Range<usize> = 8..16;
/// Where the order stands behind it.
const ORDER: std::ops::Range<usize> = 16..48;
/// The system program's `Transfer`, in front of the amount.
const TRANSFER: [u8; 4] = [2, 0, 0, 0];
/// Micro-lamports for a compute unit that others bid usually: less than the least that is bid for payments.
const BID: u64 = 1_000;
/// The key of whoever is given accounts: no party.
const OTHER: u8 = 0xc5;
/// Seconds between the first block and the start of the test.
const BEFORE: u64 = 200;
/// Smallest units of each currency that the solver, the user and the stranger have at first.
const PLENTY: u64 = 1_000_000_000_000_000;
/// Slots after which a transaction that names the newest final block can land no more, and that is final: every third
/// has no block.
const LIFE: u64 = (FINAL + 150 + 12 + FINAL) * 3 / 2;

fn user() -> Key {
    Key::of(0xc1)
}

fn place(key: &Key) -> Pubkey {
    Pubkey::new_from_array(key.bytes().0)
}

fn solver() -> Pubkey {
    place(&scripted::solver())
}

fn recipient() -> Pubkey {
    place(&Key::of(0xc2))
}

fn stranger() -> Key {
    Key::of(0xc4)
}

fn account(party: Party) -> Pubkey {
    match party {
        Party::Solver => solver(),
        Party::User => place(&user()),
        Party::Recipient => recipient(),
        Party::Stranger => place(&stranger()),
        Party::Depository => vault(&DEPOSITORY.parse().unwrap()).unwrap(),
    }
}

/// The order that a deposit names, or else the memo.
fn named(done: &Done) -> Option<B256> {
    let depository: Pubkey = DEPOSITORY.parse().unwrap();
    let mut instructions = done.sent.instructions.iter();
    let deposit =
        instructions.find(|one| done.sent.keys.get(usize::from(one.program)) == Some(&depository));
    match deposit {
        Some(deposit) => deposit.data.get(ORDER).map(B256::from_slice),
        None => done.memo()?.parse().ok(),
    }
}

fn token() -> Pubkey {
    Pubkey::new_from_array([0xa1; 32])
}

/// The chain with its world.
pub struct Solana {
    about: About,
    pub world: Arc<World>,
    spec: Arc<ChainSpec>,
    /// What the market file says of it.
    pub listed: Value,
}

impl Solana {
    /// The chain has its world under the name of `machine` and its own: machines run at the same time.
    pub fn new(machine: &str, named: Named) -> Self {
        Self::of(machine, named, (place(&user()), token()))
    }

    /// The same with another user, and another token.
    pub fn of(machine: &str, (name, number, pace): Named, (user, token): (Pubkey, Pubkey)) -> Self {
        let host = format!("{machine}-{name}").to_lowercase();
        let rules = Rules {
            number,
            pace,
            since: clock::GENESIS - BEFORE,
            depository: DEPOSITORY.parse().unwrap(),
            token,
        };
        let world = World::new(&host, rules);
        for owner in [solver(), user, place(&stranger())] {
            for currency in [SYSTEM, token] {
                world.fund(&owner, &currency, PLENTY);
            }
        }
        world.mine_until(clock::GENESIS);
        let entry = json!({
            "id": name, "hubChainId": number.to_string(), "depository": DEPOSITORY,
        });
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        Self {
            about: About {
                name,
                number,
                pace,
                family: &FAMILY,
                user: user.to_string(),
                recipient: recipient().to_string(),
                stranger: place(&stranger()).to_string(),
                native: SYSTEM.to_string(),
                token: token.to_string(),
                life: LIFE,
            },
            spec: entry.spec(&FAMILY, false).unwrap(),
            world,
            listed: json!({}),
        }
    }
}

impl Solana {
    /// Signs a step as the stranger, or else as the user, and sends it; the transaction's id.
    fn send(&self, by: Party, data: &Value) -> String {
        let key = match by {
            Party::Stranger => stranger(),
            _ => user(),
        };
        let raw = signed(&key, data, self.world.blockhash());
        let raw = raw.unwrap_or_else(|| panic!("{data}"));
        self.world.send(&raw).unwrap()
    }
}

impl Public for Solana {
    fn give(&self, to: Party, amount: U256, order: B256) -> String {
        let amount = u64::try_from(amount).unwrap().to_le_bytes();
        let keys = [(Party::Stranger, true), (to, false)].map(|(party, signs)| {
            json!({
                "pubkey": account(party).to_string(), "isSigner": signs, "isWritable": true,
            })
        });
        let transfer = json!({
            "programId": SYSTEM.to_string(), "keys": keys,
            "data": hex::encode([&TRANSFER[..], &amount].concat()),
        });
        let memo = json!({
            "programId": MEMO.to_string(), "keys": [], "data": hex::encode(order.to_string()),
        });
        self.send(
            Party::Stranger,
            &json!({ "instructions": [transfer, memo] }),
        )
    }

    fn seen(&self) -> Vec<Seen> {
        let (parties, mut seen) = (Party::all(account), Vec::new());
        let all = self.world.history().into_iter();
        for (_, time, done) in all.filter(|(.., done)| done.success) {
            let Some(by) = Party::with(&parties, &done.sent.payer()) else {
                continue;
            };
            for paid in done.paid() {
                seen.extend(Party::with(&parties, &paid.to).map(|to| Seen {
                    by,
                    to,
                    native: paid.currency == SYSTEM,
                    amount: U256::from(paid.amount),
                    order: named(&done),
                    transaction: done.sent.id(),
                    time,
                }));
            }
        }
        seen
    }
}

impl Side for Solana {
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
        self.send(by, data)
    }

    fn short(&self, data: &Value, missing: U256) -> Value {
        let missing = u64::try_from(missing).unwrap();
        let mut data = data.clone();
        let list = data["instructions"].as_array_mut().unwrap().iter_mut();
        let deposits = list.filter(|one| one["programId"] == DEPOSITORY);
        for deposit in deposits {
            let mut bytes = hex::decode(deposit["data"].as_str().unwrap()).unwrap();
            let amount = &mut bytes[AMOUNT];
            let whole = u64::from_le_bytes((&*amount).try_into().unwrap());
            amount.copy_from_slice(&(whole - missing).to_le_bytes());
            deposit["data"] = hex::encode(bytes).into();
        }
        data
    }

    fn blocks(&self) -> &dyn Blocks {
        self
    }
}

impl Blocks for Solana {
    fn mine_until(&self, now: u64) {
        self.world.mine_until(now);
    }

    /// The newest slot, with a block or without.
    fn height(&self) -> u64 {
        self.world.slot()
    }

    fn act(&self, act: Act) {
        let world = &self.world;
        match act {
            Act::Weather(weather) => {
                world.hold(solver(), weather == Weather::Held);
                world.close(recipient(), weather == Weather::Failing);
            }
            Act::Provider(manner) => world.set_manners(PROVIDERS[1], manner.scripted()),
            // A signature costs what it always does.
            Act::Fees(fees) => world.set_bids(u64::try_from(fees.of(BID.into())).unwrap()),
            // What was sent before has expired by then: blocks are made at the end of that time.
            Act::Stand(seconds) => {
                let end = LIFE * self.about.pace;
                world.stand(seconds.saturating_sub(end));
            }
            Act::Reorg { depth, lost } => {
                let mut keep = |one: &Sent| !lost || one.payer() != solver();
                world.reorg(depth, &mut keep);
            }
            Act::Resend => world.resend(&solver()),
            // A block takes what waits at once.
            Act::Replace(_) => {}
            Act::Own(party, own) => {
                let owner = account(party);
                let to = if own { owner } else { place(&Key::of(OTHER)) };
                world.give_away(&owner, &world.rules.token, &to);
            }
        }
    }

    fn given(&self, account: &str, currency: &str) -> Vec<Given> {
        let [account, currency] = [account, currency].map(|text| text.parse::<Pubkey>().unwrap());
        let all = self.world.history().into_iter().map(|(.., done)| done);
        let own = all.filter(|done| done.success && done.sent.payer() == solver());
        let found = own.flat_map(|done| {
            let order = done.memo().and_then(|memo| memo.parse().ok());
            let paid = done.paid().into_iter();
            let paid = paid.filter(|one| one.to == account && one.currency == currency);
            let given = paid.map(|one| Given {
                transaction: done.sent.id(),
                order: order.unwrap_or_default(),
                amount: U256::from(one.amount),
            });
            given.collect::<Vec<_>>()
        });
        found.collect()
    }

    fn told(&self) -> Vec<(u64, String)> {
        let all = self.world.history().into_iter();
        let told = all.map(|(slot, time, done)| {
            let whose = match done.sent.payer() == solver() {
                true => "solver",
                false => "user",
            };
            let ended = if done.success { "" } else { ", fails" };
            let (name, id, paid) = (self.about.name, done.sent.id(), done.paid());
            (
                time,
                format!("{name} #{slot} {whose} {id} -> {paid:?}{ended}"),
            )
        });
        told.collect()
    }
}
