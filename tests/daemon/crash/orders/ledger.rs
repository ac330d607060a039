//! What the chains have of the solver: every transaction of its account, from block to block.

use std::{collections::HashMap, sync::Arc};

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    sol_types::SolCall,
};
use devnet::{
    contracts::Token,
    world::{DevChain, Devnet},
};
use serde_json::Value;

use super::deal::{Deal, Kind};

/// What the solver had before anything happened.
pub struct Ledger {
    origin: Purse,
    destination: Purse,
}

/// The solver's balances on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Purse {
    native: U256,
    token: U256,
}

/// What the solver's transactions on a chain came to.
#[derive(Default)]
struct Sent {
    gas: U256,
    value: U256,
    /// Payments per order that they name.
    orders: HashMap<B256, usize>,
    nonces: Vec<u64>,
    /// Permissions to take its tokens.
    allowances: usize,
}

impl Purse {
    async fn of(site: &DevChain, solver: Address) -> Self {
        Self {
            native: site.node.balance(solver).await.unwrap(),
            token: site.token_balance(site.token, solver).await.unwrap(),
        }
    }
}

impl Ledger {
    pub async fn open(world: &Devnet) -> Self {
        let solver = world.solver.address();
        Self {
            origin: Purse::of(&world.origin, solver).await,
            destination: Purse::of(&world.destination, solver).await,
        }
    }

    /// Demands that each deal was paid once, and that nothing else was.
    pub async fn balance(&self, world: &Devnet, deals: &[Arc<Deal>]) {
        for (site, before, refunds) in [
            (&world.origin, self.origin, true),
            (&world.destination, self.destination, false),
        ] {
            let paid: Vec<_> = deals
                .iter()
                .filter(|deal| deal.plan.kind != Kind::Unpaid)
                .filter(|deal| deal.plan.kind.is_refund() == refunds)
                .collect();
            let sent = Sent::read(site, world.solver.address()).await;
            let nonces: Vec<u64> = (0..).take(sent.nonces.len()).collect();
            assert_eq!(sent.nonces, nonces, "{}", site.id);
            assert_eq!(sent.orders.len(), paid.len(), "{}", site.id);
            assert_eq!(sent.allowances, 1, "{}: one token", site.id);
            let (mut native, mut token) = (U256::ZERO, U256::ZERO);
            for deal in paid {
                assert_eq!(sent.orders.get(&deal.order), Some(&1), "{deal:?}");
                let received = deal.received(world).await;
                match refunds {
                    // Minus the gas that giving back costs.
                    true => assert!(received < deal.deposited, "{received}: {deal:?}"),
                    false => assert_eq!(received, deal.promised, "{deal:?}"),
                }
                match deal.plan.kind.is_native() {
                    true => native += received,
                    false => token += received,
                }
            }
            assert_eq!(sent.value, native, "{}", site.id);
            let left = Purse {
                native: before.native - native - sent.gas,
                token: before.token - token,
            };
            assert_eq!(Purse::of(site, world.solver.address()).await, left);
        }
        Self::check_depository(world, deals).await;
    }

    /// Deposits stay where they were made.
    async fn check_depository(world: &Devnet, deals: &[Arc<Deal>]) {
        let total = |native: bool| {
            deals
                .iter()
                .filter(|deal| deal.plan.kind != Kind::Unpaid)
                .filter(|deal| deal.plan.kind.is_native() == native)
                .fold(U256::ZERO, |sum, deal| sum + deal.deposited)
        };
        let held = Purse::of(&world.origin, world.origin.depository).await;
        let wanted = Purse {
            native: total(true),
            token: total(false),
        };
        assert_eq!(held, wanted);
    }
}

impl Sent {
    async fn read(site: &DevChain, solver: Address) -> Self {
        let mut sent = Self::default();
        let tip = site.node.tip().await.unwrap().number;
        for number in 0..=tip {
            let at = (format!("{number:#x}"), true);
            let block: Value = site.node.rpc("eth_getBlockByNumber", at).await.unwrap();
            for transaction in block["transactions"].as_array().unwrap() {
                if read::<Address>(&transaction["from"]) == solver {
                    sent.add(site, transaction).await;
                }
            }
        }
        sent
    }

    async fn add(&mut self, site: &DevChain, transaction: &Value) {
        let receipt = site.node.receipt(read(&transaction["hash"])).await.unwrap();
        let receipt = receipt.unwrap();
        self.gas += U256::from(receipt.gas_used) * U256::from(receipt.effective_gas_price);
        self.nonces.push(read::<U256>(&transaction["nonce"]).to());
        assert!(receipt.status(), "{transaction}");
        let input: Bytes = read(&transaction["input"]);
        if input.starts_with(&Token::approveCall::SELECTOR) {
            self.allowances += 1;
            return;
        }
        self.value += read::<U256>(&transaction["value"]);
        let order = B256::from_slice(&input[input.len() - 32..]);
        *self.orders.entry(order).or_default() += 1;
    }
}

fn read<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}
