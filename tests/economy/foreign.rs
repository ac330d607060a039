//! Orders of the other solver between families: one end is on a chain that our own solver does not trade on. Its
//! customer deposits, it pays by hand, and has the hub give it what was deposited. Its claims are signed whatever
//! strangers do meanwhile; theirs are signed only where nobody loses by it.

use std::collections::BTreeMap;

use alloy::primitives::{Address, B256, U256, keccak256};
use vm::protocol::{
    order::{
        Fee, Input, InputPayment, Order, Output, OutputPayment, Refund, VERSION, vouched_salt,
    },
    signature::eip191,
};

use crate::{
    clock,
    history::{Act, Deal, History, Who},
    plan::Foreign,
    rival::{self, RIVAL, Rival},
    world::{World, key},
};

/// Seconds until the other solver looks first.
const PAUSE: u64 = 4;

impl History {
    /// The order is made, and its customer deposits.
    pub async fn foreign_order(&mut self, at: usize) {
        let (who, foreign) = (Who::Foreign(at), self.plan.foreign[at].clone());
        let name = format!("order {} {at}", self.plan.family);
        let order = self.world.written(&foreign, keccak256(name));
        let wanted = (who, foreign.account, foreign.recipient);
        let deal = self.world.promised(wanted, &foreign, (order, RIVAL)).await;
        self.rivals.insert(who, Rival::of(&deal));
        for stranger in self.early(who) {
            self.strike(stranger, 0).await;
        }
        let (chain, currency) = foreign.trade.from;
        let amount = foreign.trade.amount * U256::from(100 + foreign.over) / U256::from(100);
        let sent = self.put((deal.account, chain, currency), amount, deal.order);
        if foreign.replaced
            && let Some(ledger) = self.world.ledger(chain)
        {
            // The same with a higher fee.
            ledger.replace(&sent, |what| what);
        }
        self.note(format!("{who:?} deposits for {} on {chain}", deal.order));
        self.at(clock::seconds() + PAUSE, Act::Rival(who, 0));
        self.after_deposit(who);
    }
}

impl World {
    /// The order that a customer wants, as the other solver writes it; `random` tells it from others.
    fn written(&self, foreign: &Foreign, random: B256) -> Order {
        let ((home, paid), (away, wanted)) = (foreign.trade.from, foreign.trade.to);
        let paid = self.currency_on(home, paid).text().to_owned();
        let on = |chain: &str, account| self.account_on(chain, account).text().to_owned();
        let part = |percent: u64| foreign.trade.amount * U256::from(percent) / U256::from(100);
        let mut half = [0; 16];
        half.copy_from_slice(&random[16..]);
        let salt = match foreign.vouched {
            true => U256::from_be_bytes(vouched_salt(half).0),
            false => U256::from_be_slice(&half),
        };
        Order {
            version: VERSION.into(),
            solver_chain_id: "alpha".into(),
            solver: rival::account().to_string(),
            salt: salt.to_string(),
            inputs: vec![Input {
                payment: InputPayment {
                    chain_id: home.into(),
                    currency: paid.clone(),
                    amount: foreign.trade.amount.to_string(),
                    weight: "1".into(),
                },
                refunds: vec![Refund {
                    chain_id: home.into(),
                    recipient: on(home, foreign.account),
                    currency: paid.clone(),
                    minimum_amount: part(80).to_string(),
                    deadline: u32::MAX,
                    extra_data: "0x".into(),
                }],
            }],
            output: Output {
                chain_id: away.into(),
                payments: vec![OutputPayment {
                    recipient: on(away, foreign.recipient),
                    currency: self.currency_on(away, wanted).text().to_owned(),
                    minimum_amount: foreign.gives.to_string(),
                    expected_amount: foreign.gives.to_string(),
                }],
                calls: Vec::new(),
                deadline: u32::MAX,
                extra_data: "0x".into(),
            },
            fees: vec![Fee {
                recipient_chain_id: home.into(),
                recipient: on(home, foreign.recipient),
                currency_chain_id: home.into(),
                currency: paid,
                amount: part(1).to_string(),
            }],
        }
    }

    /// An order as its solver, who has this key, promises it.
    pub async fn promised(
        &self,
        (of, account, recipient): (Who, Address, Address),
        foreign: &Foreign,
        (order, solver): (Order, &'static str),
    ) -> Deal {
        let id = order.id(|chain| Some(self.family(chain))).unwrap();
        let signer = key(solver);
        let signature = signer.sign(&eip191(id.as_slice())).await.unwrap();
        Deal {
            of,
            request: B256::ZERO,
            order: id,
            wire: serde_json::to_value(&order).unwrap(),
            signature: alloy::hex::encode_prefixed(signature.as_bytes()),
            steps: Vec::new(),
            quoted: clock::seconds(),
            trade: foreign.trade,
            account,
            recipient,
            solver: signer.address(),
            minimum: foreign.gives,
            gas: BTreeMap::new(),
        }
    }
}
