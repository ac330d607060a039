//! A chain of `scripted-vm` as a [`Side`].

use std::sync::Arc;

use alloy::primitives::{B256, U256};
use intentd::chains::Opened;
use serde_json::{Value, json};
use vm::{
    ChainEntry, ChainSpec,
    testing::scripted::{
        FAMILY, Key, LIFE, Payments, SALT, Transaction, Transfer, Unsigned, World, address,
        register, spelled, url,
    },
    trade::{Broadcast, CurrencyInfo},
};

use crate::{
    clock, process,
    side::{About, Act, Blocks, Given, Named, Party, Public, Seen, Side, Weather},
};

const TOKEN: B256 = B256::repeat_byte(0xa1);
const DEPOSITORY: B256 = B256::repeat_byte(0xd0);
const PROVIDERS: [&str; 3] = ["one", "two", "three"];
/// Blocks on top of a block until it is final.
const FINAL: u64 = 6;
/// Seconds between the first block and the start of the test.
const BEFORE: u64 = 200;
/// Smallest units of each currency that the solver, the user and the stranger have at first.
const PLENTY: u64 = 1_000_000_000_000_000;
/// What a byte costs at first.
const RATE: u128 = 10;

/// The solver's key on such chains.
pub fn solver() -> Key {
    Key::of(0x51)
}

fn user() -> Key {
    Key::of(0xc1)
}

fn recipient() -> Key {
    Key::of(0xc2)
}

fn stranger() -> Key {
    Key::of(0xc4)
}

fn account(party: Party) -> B256 {
    match party {
        Party::Solver => solver().bytes(),
        Party::User => user().bytes(),
        Party::Recipient => recipient().bytes(),
        Party::Stranger => stranger().bytes(),
        Party::Depository => DEPOSITORY,
    }
}

/// The chain with its world.
pub struct Scripted {
    about: About,
    world: Arc<World>,
    spec: Arc<ChainSpec>,
    /// Transactions that the user and the stranger have sent.
    sent: std::sync::Mutex<u8>,
}

impl Scripted {
    /// The chain has its world under the name of `machine` and its own: machines run at the same time.
    pub fn new(machine: &str, (name, number, pace): Named) -> Self {
        let host = format!("{machine}-{name}").to_lowercase();
        let world = World::new(&host, number, (pace, clock::GENESIS - BEFORE));
        register(&world);
        let info = CurrencyInfo {
            symbol: "USDC".into(),
            name: "USDC".into(),
            decimals: 6,
            scaled: false,
        };
        world.list(TOKEN, info);
        for account in [Party::Solver, Party::User, Party::Stranger].map(account) {
            for currency in [B256::ZERO, TOKEN] {
                world.fund(account, currency, U256::from(PLENTY));
            }
        }
        world.mine_until(clock::GENESIS);
        let entry = json!({
            "id": name, "hubChainId": number.to_string(), "depository": spelled(DEPOSITORY).text(),
            "additionalData": {"finalizationBlocks": FINAL},
        });
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        Self {
            about: About {
                name,
                number,
                pace,
                family: &FAMILY,
                user: user().account().text().to_owned(),
                recipient: recipient().account().text().to_owned(),
                stranger: stranger().account().text().to_owned(),
                native: spelled(B256::ZERO).text().to_owned(),
                token: spelled(TOKEN).text().to_owned(),
                life: LIFE + 2 * FINAL,
            },
            spec: entry.spec(&FAMILY, false).unwrap(),
            world,
            sent: std::sync::Mutex::new(0),
        }
    }
}

impl Scripted {
    /// Sends payments as the stranger, or else as the user; the transaction's id.
    fn send(&self, by: Party, payments: Payments) -> String {
        let key = match by {
            Party::Stranger => stranger(),
            _ => user(),
        };
        let mut sent = self.sent.lock().unwrap();
        *sent += 1;
        let unsigned = Unsigned {
            chain: self.about.number,
            payer: key.bytes(),
            expires: self.world.height() + LIFE,
            salt: [*sent; SALT],
            payments,
        };
        let transaction: Transaction = unsigned.sign(&key).unwrap();
        assert_eq!(self.world.send(&transaction), Broadcast::Accepted);
        transaction.id()
    }
}

impl Public for Scripted {
    fn give(&self, to: Party, amount: U256, order: B256) -> String {
        let transfer = Transfer {
            to: account(to),
            currency: B256::ZERO,
            amount,
        };
        let payments = Payments {
            memo: Some(order),
            transfers: vec![transfer],
        };
        self.send(Party::Stranger, payments)
    }

    fn seen(&self) -> Vec<Seen> {
        let (parties, mut seen) = (Party::all(account), Vec::new());
        let all = self.world.history().into_iter();
        for one in all.filter(|one| one.done.success) {
            let (time, done) = (one.block.time, one.done);
            let transaction = done.transaction.id();
            let unsigned = done.transaction.unsigned;
            let Some(by) = Party::with(&parties, &unsigned.payer) else {
                continue;
            };
            for one in unsigned.payments.transfers {
                seen.extend(Party::with(&parties, &one.to).map(|to| Seen {
                    by,
                    to,
                    native: one.currency.is_zero(),
                    amount: one.amount,
                    order: unsigned.payments.memo,
                    transaction: transaction.clone(),
                    time,
                }));
            }
        }
        seen
    }
}

impl Side for Scripted {
    fn about(&self) -> &About {
        &self.about
    }

    /// Opens the providers by URL, as the daemon does.
    fn open(&self) -> Opened {
        process::opened(
            &self.spec,
            PROVIDERS.map(|provider| url(&self.world.name, provider)),
        )
    }

    fn network(&self) -> Value {
        json!({})
    }

    fn follow(&self, by: Party, data: &Value) -> String {
        let shown = &data["instructions"];
        let read = |value: &Value| {
            let text = value.as_str().unwrap();
            address(&FAMILY.address(text).unwrap()).unwrap()
        };
        assert_eq!(read(&shown["payer"]), account(by), "{data}");
        let transfers = shown["transfers"].as_array().unwrap().iter();
        let transfers = transfers.map(|one| Transfer {
            to: read(&one["to"]),
            currency: read(&one["currency"]),
            amount: one["amount"].as_str().unwrap().parse().unwrap(),
        });
        let payments = Payments {
            memo: shown["memo"].as_str().map(|memo| memo.parse().unwrap()),
            transfers: transfers.collect(),
        };
        self.send(by, payments)
    }

    fn short(&self, data: &Value, missing: U256) -> Value {
        let mut data = data.clone();
        let amount = &mut data["instructions"]["transfers"][0]["amount"];
        let whole: U256 = amount.as_str().unwrap().parse().unwrap();
        *amount = (whole - missing).to_string().into();
        data
    }

    fn blocks(&self) -> &dyn Blocks {
        self
    }
}

impl Blocks for Scripted {
    fn mine_until(&self, now: u64) {
        self.world.mine_until(now);
    }

    fn height(&self) -> u64 {
        self.world.height()
    }

    fn act(&self, act: Act) {
        let (world, own) = (&self.world, solver().bytes());
        match act {
            Act::Weather(weather) => {
                world.hold(own, weather == Weather::Held);
                world.close(recipient().bytes(), weather == Weather::Failing);
            }
            Act::Provider(manner) => world.set_manners(PROVIDERS[1], manner.scripted()),
            Act::Fees(fees) => world.set_rate(fees.of(RATE)),
            Act::Stand(seconds) => world.stand(seconds),
            Act::Reorg { depth, lost } => {
                let mut keep = |one: &Transaction| !lost || one.unsigned.payer != own;
                world.reorg(depth, &mut keep);
            }
            Act::Resend => world.resend(&own),
            // A block takes what waits at once.
            Act::Replace(_) | Act::Own(..) => {}
        }
    }

    fn given(&self, account: &str, currency: &str) -> Vec<Given> {
        let bytes = |text: &str| address(&FAMILY.address(text).unwrap()).unwrap();
        let (account, currency) = (bytes(account), bytes(currency));
        let all = self.world.history().into_iter().map(|one| one.done);
        let own = all.filter(|done| done.success);
        let own = own.filter(|done| done.transaction.unsigned.payer == solver().bytes());
        let found = own.flat_map(|done| {
            let Payments { memo, transfers } = done.transaction.unsigned.payments.clone();
            let (transaction, order) = (done.transaction.id(), memo.unwrap_or_default());
            let to = transfers.into_iter();
            let to = to.filter(move |one| one.to == account && one.currency == currency);
            to.map(move |one| Given {
                transaction: transaction.clone(),
                order,
                amount: one.amount,
            })
        });
        found.collect()
    }

    fn told(&self) -> Vec<(u64, String)> {
        let all = self.world.history().into_iter();
        let told = all.map(|one| {
            let transaction = &one.done.transaction;
            let whose = match transaction.unsigned.payer == solver().bytes() {
                true => "solver",
                false => "user",
            };
            let ended = if one.done.success { "" } else { ", fails" };
            let paid = transaction.unsigned.payments.transfers.iter();
            let paid: Vec<_> = paid
                .map(|one| (spelled(one.to).to_string(), one.amount))
                .collect();
            let (name, number) = (self.about.name, one.block.number);
            let id = transaction.id();
            (
                one.block.time,
                format!("{name} #{number} {whose} {id} -> {paid:?}{ended}"),
            )
        });
        told.collect()
    }
}
