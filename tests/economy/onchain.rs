//! What everybody does and sees on a chain, whatever its family is. An account is the same for whoever has it on
//! all chains; each chain spells it in its own way.

use std::sync::Arc;

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    sol_types::SolCall,
};
use vm::{
    ChainId,
    protocol::{
        hub::{OrderAccount, alias, token_id},
        id,
    },
};

use crate::{
    chain::{
        FINAL, abi,
        ledger::{Ledger, Move, Target},
    },
    history::{Deal, History},
    market::{BRIDGED, CHAINS, DEPOSITORY, JUNK, NATIVE, USDC},
    stored::{self, Placed},
    world::World,
};

/// The currencies of EVM chains.
static CURRENCIES: [Address; 4] = [NATIVE, USDC, BRIDGED, JUNK];

impl World {
    /// A chain without contracts.
    pub fn ledger(&self, name: &str) -> Option<&Arc<Ledger>> {
        let mut ledgers = self.ledgers.iter();
        ledgers.find(|ledger| ledger.habits.name == name)
    }

    /// Every chain on which somebody can deposit, with its currencies.
    pub fn deposit_chains(&self) -> impl Iterator<Item = (&'static str, &'static [Address])> {
        let evm = CHAINS.into_iter().take(2);
        let evm = evm.map(|(name, ..)| (name, &CURRENCIES[..]));
        let others = self.ledgers.iter().map(|ledger| ledger.habits);
        evm.chain(others.map(|habits| (habits.name, habits.currencies)))
    }

    /// Every deposit on a chain that names an order.
    pub fn placed(&self, chain: &str) -> Vec<Placed> {
        let Some(ledger) = self.ledger(chain) else {
            return stored::deposits(self.chain(chain));
        };
        let all = ledger.deposits().into_iter();
        let placed = all.filter_map(|(time, transaction, deposit)| {
            let order: B256 = deposit.id.parse().unwrap();
            let account = OrderAccount {
                chain: &ledger.spec.id,
                depositor: &deposit.depositor,
                timestamp: U256::from(time),
                deposit: order,
            };
            let name = ledger.habits.name;
            let index = deposit.index.to_string();
            let ids = [name, &*transaction, &*index];
            (!order.is_zero()).then(|| Placed {
                chain: name,
                order,
                id: id::deterministic(&ids),
                depositor: ledger.who(&deposit.depositor),
                currency: ledger.which(&deposit.currency),
                amount: deposit.amount,
                time,
                account: account.address(),
                transaction: transaction.clone(),
            })
        });
        placed.collect()
    }

    /// What the depository of a chain has.
    pub fn held(&self, chain: &str, currency: Address) -> U256 {
        match self.ledger(chain) {
            Some(ledger) => ledger.held(currency),
            None => {
                let world = self.chain(chain).lock();
                world.state().balance(DEPOSITORY, currency)
            }
        }
    }

    /// An account as a chain spells it.
    pub fn account_on(&self, chain: &str, account: Address) -> vm::Address {
        match self.ledger(chain) {
            Some(ledger) => ledger.account(account),
            None => vm::SETTLEMENT.address(&account.to_string()).unwrap(),
        }
    }

    /// A currency as a chain spells it.
    pub fn currency_on(&self, chain: &str, currency: Address) -> vm::Address {
        match self.ledger(chain) {
            Some(ledger) => ledger.currency(currency),
            None => vm::SETTLEMENT.address(&currency.to_string()).unwrap(),
        }
    }

    /// The family of a chain.
    pub fn family(&self, chain: &str) -> &'static vm::Family {
        let ledger = self.ledger(chain);
        ledger.map_or(vm::SETTLEMENT, |ledger| ledger.spec.family)
    }

    /// The hub's account of an account of a chain.
    pub fn holder(&self, chain: &str, account: Address) -> Address {
        alias(&ChainId::new(chain), &self.account_on(chain, account))
    }

    /// The hub's token of a currency of a chain.
    pub fn token(&self, chain: &str, currency: Address) -> U256 {
        token_id(&ChainId::new(chain), &self.currency_on(chain, currency))
    }

    /// Whether the deposit of an order's own user is in a block or waits for one.
    pub fn expects(&self, deal: &Deal) -> bool {
        let (chain, _) = deal.trade.from;
        match self.ledger(chain) {
            Some(ledger) => ledger.expects(deal.account, deal.order),
            None => self.chain(chain).lock().expects(deal.account, deal.order),
        }
    }

    /// Whether a transaction is in a block that will not be undone.
    pub fn is_settled(&self, chain: &str, transaction: &str) -> bool {
        if let Some(ledger) = self.ledger(chain) {
            return ledger.is_settled(transaction);
        }
        let world = self.chain(chain).lock();
        let hash: Option<B256> = transaction.parse().ok();
        let found = hash.and_then(|hash| world.find(&hash));
        found.is_some_and(|(block, done)| done.success && block.number + FINAL <= world.head())
    }

    /// Whether a transaction is in a block or waits for one.
    pub fn is_known(&self, chain: &str, transaction: &str) -> bool {
        if let Some(ledger) = self.ledger(chain) {
            return ledger.is_known(transaction);
        }
        let world = self.chain(chain).lock();
        let hash: Option<B256> = transaction.parse().ok();
        hash.is_some_and(|hash| world.find(&hash).is_some() || world.waits(&hash))
    }

    /// Whether the hub's contract has applied what has this key.
    pub fn is_executed(&self, key: B256) -> bool {
        let relay = self.chain("relay").lock();
        relay.state().executed.contains(&key)
    }

    /// The same in a block that will not be undone.
    pub fn is_executed_for_good(&self, key: B256) -> bool {
        let relay = self.chain("relay").lock();
        let state = relay.state_at(relay.head().saturating_sub(FINAL));
        state.is_some_and(|state| state.executed.contains(&key))
    }
}

impl History {
    /// A deposit.
    pub fn put(
        &self,
        (account, chain, currency): (Address, &'static str, Address),
        amount: U256,
        order: B256,
    ) -> Arc<str> {
        if let Some(ledger) = self.world.ledger(chain) {
            let to = Target::Depository;
            let sent = Move {
                to,
                currency,
                amount,
                order,
            };
            return ledger.send(account, sent);
        }
        let chain = self.world.chain(chain);
        if currency == NATIVE {
            let call = abi::depositNativeCall {
                depositor: account,
                id: order,
            };
            return text(chain.send(account, DEPOSITORY, amount, call.abi_encode().into()));
        }
        let allow = abi::approveCall {
            spender: DEPOSITORY,
            amount,
        };
        chain.send(account, currency, U256::ZERO, allow.abi_encode().into());
        let call = abi::depositErc20Call {
            depositor: account,
            token: currency,
            amount,
            id: order,
        };
        text(chain.send(account, DEPOSITORY, U256::ZERO, call.abi_encode().into()))
    }

    /// A payment that names an order.
    pub fn pay(
        &self,
        (account, chain, currency): (Address, &'static str, Address),
        (to, amount): (Address, U256),
        order: B256,
    ) -> Arc<str> {
        if let Some(ledger) = self.world.ledger(chain) {
            let to = Target::Account(to);
            let sent = Move {
                to,
                currency,
                amount,
                order,
            };
            return ledger.send(account, sent);
        }
        let chain = self.world.chain(chain);
        if currency == NATIVE {
            return text(chain.send(account, to, amount, order.to_vec().into()));
        }
        let mut data = abi::transferCall { to, amount }.abi_encode();
        data.extend(order);
        text(chain.send(account, currency, U256::ZERO, data.into()))
    }

    /// An account's payment for an order on a chain.
    pub fn paid_by(&self, order: B256, chain: &str, payer: Address) -> Option<Arc<str>> {
        if let Some(ledger) = self.world.ledger(chain) {
            return ledger.paid_by(payer, order);
        }
        let world = self.world.chain(chain).lock();
        let named = |data: &Bytes| data.len() >= 32 && data[data.len() - 32..] == order[..];
        let mut done = world.history();
        let found = done.find(|(_, done)| {
            done.success
                && done.tx.from == payer
                && done.tx.to != DEPOSITORY
                && named(&done.tx.data)
        });
        found.map(|(_, done)| text(done.tx.hash))
    }
}

fn text(hash: B256) -> Arc<str> {
    format!("{hash:#x}").into()
}
