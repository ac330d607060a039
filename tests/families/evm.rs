//! An EVM chain as a [`Side`]. The chain is the one of the economy test.

use std::sync::{Arc, Mutex};

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    sol_types::SolCall,
};
use intentd::chains::Opened;
use serde_json::{Value, json};
use vm::{ChainEntry, ChainSpec, protocol::message::Domain};

use crate::{
    chain::{
        self, Chain, Done, Tx,
        provider::{Manners, Provider},
        state::{Contract, State},
    },
    market::{self, NATIVE, Prices, USDC},
    side::{About, Act, Blocks, Given, Manner, Named, Party, Public, Seen, Side, Weather},
};

const USER: Address = Address::repeat_byte(0xc1);
const RECIPIENT: Address = Address::repeat_byte(0xc2);
const STRANGER: Address = Address::repeat_byte(0xc4);
/// Receives what [`Evm::drain`] takes from the solver.
const SINK: Address = Address::repeat_byte(0xc9);
/// Wei per gas unit.
const GAS: u128 = 1_000_000_000;
/// Whole units of each currency that the solver, the user and the stranger have at first.
const PLENTY: u64 = 1_000_000;

/// The chain, its providers, and what happens to the solver's payments.
pub struct Evm {
    about: About,
    chain: Arc<Chain>,
    providers: [Arc<Provider>; 3],
    weather: Mutex<Weather>,
}

/// What all EVM chains of one machine have in common.
pub struct Shared {
    pub solver: Address,
    /// Accounts whose signatures the settlement contract accepts.
    pub signers: [Address; 2],
    pub prices: Arc<Prices>,
}

impl Evm {
    /// A chain that is traded on.
    pub fn traded(shared: &Shared, named: Named) -> Self {
        let mut state = wealthy(shared.solver);
        state.contracts.extend([
            (USDC, Contract::Token),
            (market::DEPOSITORY, Contract::Depository),
            (market::ROUTER, Contract::Router),
            (
                market::PROXY,
                Contract::Proxy {
                    router: market::ROUTER,
                },
            ),
        ]);
        for account in [shared.solver, USER, STRANGER] {
            state.give(account, USDC, units(6));
        }
        Self::new(shared, named, state)
    }

    /// The settlement chain.
    pub fn hub(shared: &Shared, named: Named) -> Self {
        let mut state = wealthy(shared.solver);
        let (signers, solver) = (shared.signers, shared.solver);
        let oracle = Contract::Oracle { signers };
        state.contracts.insert(market::ORACLE, oracle);
        state
            .contracts
            .insert(market::MAPPING, Contract::Mapping { solver });
        Self::new(shared, named, state)
    }

    fn new(shared: &Shared, (name, number, pace): Named, state: State) -> Self {
        let base = chain::Base {
            state,
            domain: Domain::oracle("2", U256::from(market::CHAINS[2].1), market::ORACLE),
            signer: shared.solver,
            gas: GAS,
        };
        let chain = Chain::new(spec(name, number), name, pace, base);
        let providers = [(); 3].map(|()| Provider::new(&chain, &shared.prices));
        Self {
            about: About {
                name,
                number,
                pace,
                family: vm::SETTLEMENT,
                user: USER.to_string(),
                recipient: RECIPIENT.to_string(),
                stranger: STRANGER.to_string(),
                native: NATIVE.to_string(),
                token: USDC.to_string(),
                life: 30,
            },
            chain,
            providers,
            weather: Mutex::default(),
        }
    }

    /// Takes the whole token balance from the solver, in a transaction that nobody signed.
    fn drain(&self) {
        let solver = self.chain.signer;
        let amount = self.chain.lock().state().balance(solver, USDC);
        let call = chain::abi::transferCall { to: SINK, amount };
        let data = call.abi_encode().into();
        self.chain.send(solver, USDC, U256::ZERO, data);
    }

    fn account(&self, party: Party) -> Address {
        match party {
            Party::Solver => self.chain.signer,
            Party::User => USER,
            Party::Recipient => RECIPIENT,
            Party::Stranger => STRANGER,
            Party::Depository => market::DEPOSITORY,
        }
    }

    /// Whether a payment of the solver waits for a block.
    fn pays(&self) -> bool {
        let world = self.chain.lock();
        let mut signed = world.pool().iter().filter(|tx| tx.signed.is_some());
        signed.any(|tx| named(&tx.data).is_some())
    }
}

fn wealthy(solver: Address) -> State {
    let mut state = State::default();
    for account in [solver, USER, STRANGER] {
        state.give(account, NATIVE, units(18));
    }
    state
}

fn units(decimals: u64) -> U256 {
    U256::from(PLENTY) * U256::from(10).pow(U256::from(decimals))
}

fn spec(name: &str, number: u64) -> Arc<ChainSpec> {
    let additional = json!({"finalizationBlocks": chain::FINAL, "finalizationTime": 0});
    let hub = number == market::CHAINS[2].1;
    let entry = ChainEntry {
        id: name.into(),
        hub_chain_id: Some(number.to_string()),
        depository: (!hub).then(|| market::DEPOSITORY.to_string()),
        additional_data: additional.as_object().cloned().unwrap(),
        ..ChainEntry::default()
    };
    entry.spec(vm::SETTLEMENT, false).unwrap()
}

/// The order id at the end of calldata, where there is one.
fn named(data: &Bytes) -> Option<B256> {
    let at = data.len().checked_sub(32)?;
    let is_named = at == 0 || at % 32 == 4 && at >= 68;
    is_named.then(|| B256::from_slice(&data[at..]))
}

/// Currency, recipient and amount of a plain token transfer.
fn given(done: &Done) -> Option<(Address, Address, U256)> {
    if let Ok(call) = chain::abi::transferCall::abi_decode(done.tx.data.get(..68)?) {
        return Some((done.tx.to, call.to, call.amount));
    }
    None
}

impl Public for Evm {
    fn give(&self, to: Party, amount: U256, order: B256) -> String {
        let data = order.to_vec().into();
        let hash = self.chain.send(STRANGER, self.account(to), amount, data);
        hash.to_string()
    }

    fn seen(&self) -> Vec<Seen> {
        let parties = Party::all(|party| self.account(party));
        let world = self.chain.lock();
        let mut seen = Vec::new();
        for (block, done) in world.history().filter(|(_, done)| done.success) {
            let Some(by) = Party::with(&parties, &done.tx.from) else {
                continue;
            };
            let mut add = |to: Party, (currency, amount): (Address, U256), order: Option<B256>| {
                seen.push(Seen {
                    by,
                    to,
                    native: currency == NATIVE,
                    amount,
                    order,
                    transaction: done.tx.hash.to_string(),
                    time: block.time,
                });
            };
            for one in self.chain.deposits(block, done) {
                let currency = Address::from_slice(one.currency.bytes());
                add(
                    Party::Depository,
                    (currency, one.amount),
                    one.id.parse().ok(),
                );
            }
            let token = given(done);
            let (currency, to, amount) = token.unwrap_or((NATIVE, done.tx.to, done.tx.value));
            let other = Party::with(&parties, &to).filter(|to| *to != Party::Depository);
            if let Some(to) = other {
                add(to, (currency, amount), named(&done.tx.data));
            }
        }
        seen
    }
}

impl Side for Evm {
    fn about(&self) -> &About {
        &self.about
    }

    fn open(&self) -> Opened {
        Provider::open(&self.chain, &self.providers)
    }

    fn network(&self) -> Value {
        json!({ "fillRouter": market::ROUTER, "approvalProxy": market::PROXY })
    }

    fn follow(&self, by: Party, data: &Value) -> String {
        let text = |field: &str| data[field].as_str().unwrap();
        let (to, value) = (text("to").parse().unwrap(), text("value").parse().unwrap());
        let data = text("data").parse().unwrap();
        let hash = self.chain.send(self.account(by), to, value, data);
        hash.to_string()
    }

    fn short(&self, data: &Value, missing: U256) -> Value {
        let value: U256 = data["value"].as_str().unwrap().parse().unwrap();
        let mut data = data.clone();
        data["value"] = (value - missing).to_string().into();
        data
    }

    fn blocks(&self) -> &dyn Blocks {
        self
    }
}

impl Blocks for Evm {
    fn mine_until(&self, now: u64) {
        match *self.weather.lock().unwrap() {
            Weather::Fair => {}
            Weather::Held => self.chain.forget(),
            Weather::Failing if self.pays() => self.drain(),
            Weather::Failing => {}
        }
        self.chain.mine_until(now);
    }

    fn height(&self) -> u64 {
        self.chain.lock().head()
    }

    fn act(&self, act: Act) {
        match act {
            Act::Weather(weather) => *self.weather.lock().unwrap() = weather,
            Act::Provider(manner) => self.providers[1].set(match manner {
                Manner::Sound => Manners::Honest,
                Manner::Down => Manners::Down,
                Manner::Late => Manners::Late,
                Manner::Blind => Manners::LiesAboutReceipts,
            }),
            Act::Fees(fees) => {
                let mut world = self.chain.lock();
                world.base = fees.of(GAS);
                world.tip = world.base / 10;
            }
            Act::Stand(seconds) => self.chain.stand(seconds),
            Act::Reorg { depth, lost } => {
                let solver = self.chain.signer;
                let mut keep = |tx: &Tx| !lost || tx.from != solver;
                self.chain.reorg(depth, &mut keep);
            }
            // The nodes of this chain keep no transaction that they dropped, and show none that waits.
            Act::Resend | Act::Replace(_) | Act::Own(..) => {}
        }
    }

    fn given(&self, account: &str, currency: &str) -> Vec<Given> {
        let (account, currency): (Address, Address) =
            (account.parse().unwrap(), currency.parse().unwrap());
        let world = self.chain.lock();
        let own = world.history().map(|(_, done)| done);
        let own = own.filter(|done| done.success && done.tx.signed.is_some());
        let found = own.filter_map(|done| {
            let (of, to, amount) = match currency == NATIVE {
                true => (NATIVE, done.tx.to, done.tx.value),
                false => given(done)?,
            };
            let order = named(&done.tx.data)?;
            (of == currency && to == account).then(|| Given {
                transaction: done.tx.hash.to_string(),
                order,
                amount,
            })
        });
        found.collect()
    }

    fn told(&self) -> Vec<(u64, String)> {
        let world = self.chain.lock();
        let told = world.history().map(|(block, done)| {
            let whose = if done.tx.signed.is_some() {
                "solver"
            } else {
                "user"
            };
            let ended = if done.success { "" } else { ", fails" };
            let (name, number, tx) = (self.chain.name, block.number, &done.tx);
            let what = format!(
                "{name} #{number} {whose} {} -> {}, value {}{ended}",
                tx.hash, tx.to, tx.value
            );
            (block.time, what)
        });
        told.collect()
    }
}
