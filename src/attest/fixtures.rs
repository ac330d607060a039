//! Test fixtures for the judges: one order, its deposits, its fill and its refund.

use std::sync::Arc;

use alloy::signers::{SignerSync, local::PrivateKeySigner};
use serde_json::{Map, json};
use vm::{
    Address, B256, Block, Bytes, ChainId, ChainSpec, Deposit, Family, Finality, Head, OrderCall,
    Payment, PaymentKind, Receipt, RouterCall, Seen, Transaction, TxRef, U256,
    protocol::order::Order,
};

use super::{
    Refusal,
    backing::{self, Backing, Tolerance},
    deposit::{self, Deposits, Message},
    fill,
    order::{self, Difference, Input, Terms},
    paid::Served,
    refund::{self, Refund},
    statement::Outcome,
};

pub const RECIPIENT: &str = "0x1111111111111111111111111111111111111111";
pub const DEPOSITOR: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
pub const ROUTER: &str = "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0";
pub const TOKEN: &str = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512";
pub const NATIVE: &str = "0x0000000000000000000000000000000000000000";
/// The order's deadline; a block at this time is in time.
pub const DEADLINE: u64 = 2_000_000_000;
/// The refunds' deadline, later than the fill's.
pub const REFUND_DEADLINE: u64 = DEADLINE + 1_000;

pub fn family() -> &'static Family {
    vm::SETTLEMENT
}

pub fn families(chain: &str) -> Option<&'static Family> {
    match chain {
        "ethereum" | "base" | "arbitrum" => Some(family()),
        "bitcoin" => Some(&vm::bitcoin::FAMILY),
        _ => None,
    }
}

pub fn address(text: &str) -> Address {
    family().address(text).unwrap()
}

pub fn spec(chain: &str) -> ChainSpec {
    ChainSpec {
        id: ChainId::new(chain),
        family: family(),
        hub_chain_id: U256::from(1),
        depository: Some(address("0x5fbdb2315678afecb367f032d93f642f64180aa3")),
        additional_depositories: Vec::new(),
        finality: Finality {
            blocks: 10,
            seconds: 60,
            tag: None,
        },
        watch_blocks: 128,
        fill_routers: vm::FillRouters::Any,
        additional: Map::new(),
    }
}

pub fn block(number: u64) -> Block {
    Block {
        number,
        hash: B256::with_last_byte(number as u8),
        parent: B256::with_last_byte(number as u8 - 1),
        time: DEADLINE - 1000 + number,
    }
}

/// A failed transaction.
pub fn failed() -> Transaction {
    Transaction::Failed(vm::testing::failure(block(10)))
}

pub fn tx(byte: u8) -> TxRef {
    family()
        .tx(&B256::repeat_byte(byte).to_string(), None)
        .unwrap()
}

/// A transaction as a judge sees it.
#[derive(Clone)]
pub struct Read {
    pub spec: ChainSpec,
    pub tx: TxRef,
    pub head: Head,
    pub found: Transaction,
}

impl Read {
    pub fn new(chain: &str, byte: u8) -> Self {
        let receipt = Receipt {
            sender: Some(sender()),
            ..vm::testing::receipt(block(10))
        };
        let tip = Block {
            time: block(10).time + 60,
            ..block(20)
        };
        Self {
            spec: spec(chain),
            tx: tx(byte),
            head: Head {
                block: tip,
                tagged: None,
            },
            found: Transaction::Succeeded(receipt),
        }
    }

    pub fn seen(&self) -> Seen<'_> {
        Seen {
            spec: &self.spec,
            transaction: &self.tx,
            head: &self.head,
            found: &self.found,
        }
    }

    pub fn receipt(&mut self) -> &mut Receipt {
        match &mut self.found {
            Transaction::Succeeded(receipt) => receipt,
            other => panic!("{other:?} has no receipt"),
        }
    }

    pub fn deposits(&mut self) -> &mut Vec<Deposit> {
        self.receipt().deposits.as_mut().unwrap()
    }

    pub fn pay(&mut self, kind: PaymentKind, to: &str, currency: &str, amount: u64) {
        let payments = &mut self.receipt().payments;
        payments.push(Payment {
            index: payments.len() as u32,
            kind,
            recipient: address(to),
            currency: address(currency),
            amount: U256::from(amount),
        });
    }
}

/// An order of 1000 native for 900 native to [`RECIPIENT`], deposited, filled and refunded.
#[derive(Clone)]
pub struct Fixture {
    pub order: Order,
    pub signature: String,
    pub inputs: Vec<Input>,
    pub deposits: Vec<Read>,
    pub fill: Read,
    pub refunds: Vec<Refund>,
    pub refunded: Vec<Read>,
    /// Whether the claims carry the solver's signature.
    pub vouched: bool,
}

impl Fixture {
    pub fn new() -> Self {
        let extra = format!("0x{}{}", "00".repeat(12), &ROUTER[2..]);
        let order = json!({
            "version": "v1", "solverChainId": "base", "solver": key().address().to_checksum(None),
            "salt": "1",
            "inputs": [{
                "payment": {
                    "chainId": "ethereum", "currency": NATIVE, "amount": "1000", "weight": "1",
                },
                "refunds": [{
                    "chainId": "ethereum", "recipient": DEPOSITOR, "currency": NATIVE,
                    "minimumAmount": "900", "deadline": REFUND_DEADLINE, "extraData": extra,
                }],
            }],
            "output": {
                "chainId": "base",
                "payments": [{
                    "recipient": RECIPIENT, "currency": NATIVE, "minimumAmount": "900",
                    "expectedAmount": "950",
                }],
                "calls": [], "deadline": DEADLINE, "extraData": extra,
            },
            "fees": [],
        });
        let mut fixture = Self {
            order: serde_json::from_value(order).unwrap(),
            signature: String::new(),
            inputs: Vec::new(),
            deposits: Vec::new(),
            fill: Read::new("base", 0xf1),
            refunds: vec![Refund {
                input: 0,
                option: 0,
            }],
            refunded: vec![Read::new("ethereum", 0xe1)],
            vouched: false,
        };
        fixture.settle();
        fixture
    }

    /// Changes the order; signature, deposits and payments follow.
    pub fn ordering(change: impl FnOnce(&mut Order)) -> Self {
        let mut fixture = Self::new();
        change(&mut fixture.order);
        fixture.settle();
        fixture
    }

    /// Changes what happened.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn id(&self) -> B256 {
        self.order.id(families).unwrap()
    }

    pub fn terms(&self) -> Terms {
        Terms::new(&self.order, &families).unwrap()
    }

    fn settle(&mut self) {
        let id = self.id();
        self.signature = sign(id);
        let named: Arc<str> = id.to_string().into();
        let payments = self.order.inputs.iter().map(|input| &input.payment);
        self.deposits = payments
            .enumerate()
            .map(|(index, payment)| {
                let mut read = Read::new(&payment.chain_id, 0xd0 + index as u8);
                read.deposits().push(Deposit {
                    index: 0,
                    depository: address("0x5fbdb2315678afecb367f032d93f642f64180aa3"),
                    depositor: address(DEPOSITOR),
                    currency: address(&payment.currency),
                    amount: U256::from_str_radix(&payment.amount, 10).unwrap(),
                    id: named.clone(),
                    named_by_other: false,
                    by_depositor: false,
                });
                read
            })
            .collect();
        self.inputs = self
            .deposits
            .iter()
            .enumerate()
            .map(|(index, read)| Input {
                onchain_id: deposit::settled(&read.seen()).unwrap()[0]
                    .onchain_id
                    .to_string(),
                index,
            })
            .collect();
        let router = PaymentKind::Router(address(ROUTER));
        self.fill = Read::new("base", 0xf1);
        self.fill.receipt().references = vec![named.clone()];
        self.fill.pay(router.clone(), RECIPIENT, NATIVE, 900);
        self.refunded = vec![Read::new("ethereum", 0xe1)];
        self.refunded[0].receipt().references = vec![named];
        self.refunded[0].pay(router, DEPOSITOR, NATIVE, 900);
    }

    /// All checks of a fill, in their order.
    pub fn judge_fill(&self) -> Result<(Difference, Vec<Served>), Refusal> {
        self.judged(Outcome::Fill, |terms, backing| {
            fill::judge(terms, backing, &self.fill.seen()).map(|paid| paid.served)
        })
    }

    /// All checks of a refund.
    pub fn judge_refund(&self) -> Result<Vec<Served>, Refusal> {
        let seen: Vec<_> = self.refunded.iter().map(|read| Some(read.seen())).collect();
        let judged = self.judged(Outcome::Refund, |terms, backing| {
            refund::judge(terms, &self.refunds, backing, &seen).map(|paid| paid.served)
        });
        judged.map(|(_, served)| served)
    }

    fn judged(
        &self,
        outcome: Outcome,
        judge: impl Fn(&Terms, &Backing<'_>) -> Result<Vec<Served>, Refusal>,
    ) -> Result<(Difference, Vec<Served>), Refusal> {
        let (terms, funded) = self.funded()?;
        let inputs: Vec<_> = self.deposits.iter().map(Read::seen).collect();
        let signature = self.vouched.then(|| vouch(outcome, &terms, &funded));
        let backing = Backing {
            funded: &funded,
            inputs: &inputs,
            vouched: backing::vouched(outcome, &terms, &funded, signature.as_deref())?,
            tolerance: Tolerance::default(),
        };
        Ok((backing.check(&terms)?, judge(&terms, &backing)?))
    }

    pub fn funded(&self) -> Result<(Terms, Vec<Message>), Refusal> {
        order::check_inputs(&self.inputs)?;
        let terms = Terms::new(&self.order, &families)?;
        order::check_signature(&self.order.solver, terms.id, &self.signature)?;
        let inputs: Vec<_> = self.deposits.iter().map(Read::seen).collect();
        let funded = order::funded(&terms, &self.inputs, &Deposits::of(&inputs))?;
        Ok((terms, funded))
    }

    /// Adds a call to the order.
    pub fn want_call(order: &mut Order, call: &OrderCall) {
        let encoded = family().orders.unwrap().encode_call(call).unwrap();
        order
            .output
            .calls
            .push(alloy::hex::encode_prefixed(encoded));
    }
}

pub fn key() -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(0x42)).unwrap()
}

/// The solver, which sends every transaction by default.
pub fn sender() -> Address {
    address(&format!("{:#x}", key().address()))
}

/// The solver's signature for a claim.
pub fn vouch(outcome: Outcome, terms: &Terms, funded: &[Message]) -> String {
    sign(backing::claim_id(outcome, terms, funded))
}

pub fn sign(id: B256) -> String {
    alloy::hex::encode_prefixed(key().sign_message_sync(id.as_slice()).unwrap().as_bytes())
}

pub fn call(data: &'static [u8], value: u64) -> OrderCall {
    OrderCall {
        to: address(TOKEN),
        data: Bytes::from_static(data),
        value: U256::from(value),
    }
}

/// The router's event for `call`.
pub fn made(call: &OrderCall) -> RouterCall {
    RouterCall {
        router: address(ROUTER),
        to: call.to.clone(),
        data: call.data.clone(),
        value: call.value,
    }
}
