//! An order, and what is claimed of how it ended.

use alloy::{
    primitives::{Address as EvmAddress, B256, U256},
    signers::{SignerSync, local::PrivateKeySigner},
};
use intentd::attest::{
    order::Input as Named,
    refund::Refund as Chosen,
    service::{FillClaim, InputClaim, OrderClaim, RefundClaim, RefundPayment},
};
use vm::{
    ChainId, Family,
    protocol::{
        action::Action,
        hub::{OrderAccount, alias, token_id},
        id,
        order::{Fee, Input, InputPayment, Order, Output, OutputPayment, Refund, VERSION},
    },
};

use crate::{
    cells::{Played, Stop, ensure},
    family::{AMOUNT, FEE, LEAST, Paying, PaymentKind, Script},
    ledger::Tx,
    verdict::{Signed, Verdict},
    world::{AWAY, HOME, SOLVER, World},
};

/// The solver's key for orders and claims.
pub fn solver() -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(0x42)).unwrap()
}

fn sign(id: B256) -> String {
    let signature = solver().sign_message_sync(id.as_slice()).unwrap();
    alloy::hex::encode_prefixed(signature.as_bytes())
}

/// An order that its solver signed.
#[derive(Clone)]
pub struct Deal {
    pub order: Order,
    pub id: B256,
    signature: String,
}

impl Deal {
    /// An order from the chain to itself; `salt` tells apart orders that are otherwise equal.
    pub fn new(script: &'static dyn Script, salt: u64) -> Self {
        Self::with(script, salt, |_| {})
    }

    /// The same, changed before it is signed.
    pub fn with(script: &'static dyn Script, salt: u64, change: impl FnOnce(&mut Order)) -> Self {
        let mut order = order(script, salt);
        change(&mut order);
        let family = |chain: &str| -> Option<&'static Family> {
            match chain {
                HOME | AWAY => Some(script.family()),
                _ => vm::family("ethereum-vm"),
            }
        };
        let id = order.id(family).unwrap();
        Self {
            signature: sign(id),
            order,
            id,
        }
    }

    /// The same order with another key's signature.
    pub fn signed_by_another(&self) -> Self {
        let stranger = PrivateKeySigner::from_bytes(&B256::repeat_byte(0x43)).unwrap();
        let signature = stranger.sign_message_sync(self.id.as_slice()).unwrap();
        Self {
            signature: alloy::hex::encode_prefixed(signature.as_bytes()),
            ..self.clone()
        }
    }

    /// Its output and its refund in this currency.
    pub fn in_currency(script: &'static dyn Script, salt: u64, currency: &str) -> Self {
        Self::with(script, salt, |order| {
            order.output.payments[0].currency = currency.to_owned();
            order.inputs[0].refunds[0].currency = currency.to_owned();
        })
    }

    /// How the solver pays what the order asks for.
    pub fn fill(&self, script: &'static dyn Script, kind: PaymentKind) -> Result<Tx, Stop> {
        let accounts = script.accounts();
        let payment = &self.order.output.payments[0];
        self.pays(script, kind, (&accounts.solver, &payment.recipient, LEAST))
    }

    /// How `amount` goes from one account to another in the name of the order.
    pub fn pays(
        &self,
        script: &'static dyn Script,
        kind: PaymentKind,
        (from, to, amount): (&str, &str, u64),
    ) -> Result<Tx, Stop> {
        let paying = Paying {
            from,
            to,
            currency: &self.order.output.payments[0].currency,
            amount,
            orders: [self.id, other(script).id],
        };
        Ok(Tx {
            id: script.id(&format!("{kind:?} of {}", self.id)),
            body: script.payment(kind, &paying)?,
        })
    }

    /// The claim that the order ended for this deposit.
    fn claim(&self, outcome: &str, (tx, onchain): (&str, B256), vouched: bool) -> OrderClaim {
        let input = InputClaim {
            input: Named {
                onchain_id: onchain.to_string(),
                index: 0,
            },
            transaction: tx.to_owned(),
            chain: None,
            hints: None,
        };
        OrderClaim {
            order: self.order.clone(),
            signature: self.signature.clone(),
            inputs: vec![input],
            solver_signature: vouched.then(|| sign(id::claim(outcome, &[onchain], self.id))),
            force: false,
        }
    }

    /// What is signed of a fill of the order in `tx`, with the solver's word or without.
    pub async fn filled(
        &self,
        world: &World,
        deposit: (&str, B256),
        (tx, vouched): (&str, bool),
    ) -> Verdict {
        let claim = FillClaim {
            order: self.claim("fill", deposit, vouched),
            transaction: tx.to_owned(),
            hints: None,
        };
        Verdict::outcome(&world.oracle, world.oracle.fill(&claim, None).await)
    }

    /// What is signed of a refund of the order in `tx`, with the solver's word or without.
    pub async fn refunded(
        &self,
        world: &World,
        deposit: (&str, B256),
        (tx, vouched): (&str, bool),
    ) -> Verdict {
        let refund = RefundPayment {
            refund: Chosen {
                input: 0,
                option: 0,
            },
            transaction: tx.to_owned(),
        };
        let claim = RefundClaim {
            order: self.claim("refund", deposit, vouched),
            refunds: vec![refund],
            hints: None,
        };
        Verdict::outcome(&world.oracle, world.oracle.refund(&claim, None).await)
    }

    /// Whether exactly this was signed: the deposit moves to the solver, and after a fill the fee on from there.
    pub fn moved(&self, world: &World, tx: &str, signed: &Signed, outcome: &str) -> Played {
        self.moved_of(world, (tx, AMOUNT), signed, outcome)
    }

    /// The same of a deposit of another amount.
    pub fn moved_of(
        &self,
        world: &World,
        (tx, amount): (&str, u64),
        signed: &Signed,
        outcome: &str,
    ) -> Played {
        let (home, family) = (ChainId::new(HOME), world.script.family());
        let hub = ChainId::new(SOLVER);
        let evm = vm::family("ethereum-vm").unwrap();
        let address = |text: &str| family.account(text).unwrap();
        let native = family.native().unwrap();
        let account = OrderAccount {
            chain: &home,
            depositor: &address(world.script.accounts().user),
            timestamp: U256::from(world.home.block_of(tx).time),
            deposit: self.id,
        };
        let solver = alias(&hub, &evm.account(&self.order.solver).unwrap());
        let token = token_id(&home, &native);
        let transfer = |from, to, amount: u64| Action::Transfer {
            from,
            to,
            token,
            amount: U256::from(amount),
        };
        let mut expected = vec![transfer(account.address(), solver, amount).encode()];
        if outcome == "fill" {
            let to = alias(&hub, &evm.account(&self.order.fees[0].recipient).unwrap());
            expected.push(transfer(solver, to, FEE).encode());
        }
        ensure(signed.actions == expected, || {
            format!("{:?} is not {expected:?}", signed.actions)
        })
    }
}

/// An order that is never the one that a payment is for.
pub fn other(script: &'static dyn Script) -> Deal {
    Deal::new(script, 999)
}

fn order(script: &'static dyn Script, salt: u64) -> Order {
    let accounts = script.accounts();
    let native = script.currencies()[0].to_owned();
    let refund = Refund {
        chain_id: HOME.into(),
        recipient: accounts.user.into(),
        currency: native.clone(),
        minimum_amount: LEAST.to_string(),
        deadline: u32::MAX,
        extra_data: script.extra_data(),
    };
    let payment = OutputPayment {
        recipient: accounts.recipient.into(),
        currency: native.clone(),
        minimum_amount: LEAST.to_string(),
        expected_amount: LEAST.to_string(),
    };
    let fee = Fee {
        recipient_chain_id: SOLVER.into(),
        recipient: format!("{:#x}", EvmAddress::repeat_byte(0x77)),
        currency_chain_id: HOME.into(),
        currency: native.clone(),
        amount: FEE.to_string(),
    };
    Order {
        version: VERSION.into(),
        solver_chain_id: SOLVER.into(),
        solver: format!("{:#x}", solver().address()),
        salt: salt.to_string(),
        inputs: vec![Input {
            payment: InputPayment {
                chain_id: HOME.into(),
                currency: native,
                amount: AMOUNT.to_string(),
                weight: "1".into(),
            },
            refunds: vec![refund],
        }],
        output: Output {
            chain_id: HOME.into(),
            payments: vec![payment],
            calls: Vec::new(),
            deadline: u32::MAX,
            extra_data: script.extra_data(),
        },
        fees: vec![fee],
    }
}
