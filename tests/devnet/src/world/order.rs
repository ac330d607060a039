//! Orders from the origin to the destination, signed by the solver, and deposits for them.

use alloy::{
    primitives::{Address, B256, Bytes, U256},
    rpc::types::{Log, TransactionReceipt},
    sol_types::SolEvent,
};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use vm::{
    ChainId, Family, OrderCall,
    protocol::{
        hub,
        id::deterministic,
        order::{Fee, Input, InputPayment, Output, OutputPayment, Refund, VERSION},
    },
};

pub use vm::protocol::order::Order;

use super::{DevChain, Devnet};
use crate::contracts::{Depository, Token};

/// The family of every chain here.
pub const FAMILY: &Family = vm::SETTLEMENT;

/// An hour: how long an order may be filled or refunded unless told otherwise.
const PATIENCE: u64 = 3_600;

/// An amount of a currency; the zero address is the native one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Money {
    pub currency: Address,
    pub amount: U256,
}

/// What an order is about.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What the user deposits at the origin.
    pub input: Money,
    /// What the solver pays to `recipient` at the destination.
    pub output: Money,
    pub recipient: Address,
    /// Calls that the solver makes at the destination, through the router.
    pub calls: Vec<OrderCall>,
    /// What the solver owes the user's app at the hub, in the input currency; zero for no fee.
    pub fee: U256,
    /// Unix seconds; `None` gives an hour from the destination's tip.
    pub deadline: Option<u32>,
    /// Tells apart orders that are otherwise equal.
    pub salt: u64,
}

/// An order, its id and the solver's signature on it.
#[derive(Clone, Debug)]
pub struct SignedOrder {
    pub order: Order,
    pub id: B256,
    pub signature: Bytes,
}

/// A deposit as a claim names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposit {
    pub transaction: B256,
    pub onchain_id: B256,
    /// The hub account that holds it for its order.
    pub account: Address,
}

impl Devnet {
    /// An order on `terms`: the user may be refunded at the origin in what was deposited.
    pub async fn order(&self, terms: &Terms) -> Result<SignedOrder> {
        let deadline = match terms.deadline {
            Some(deadline) => deadline,
            None => u32::try_from(self.destination.node.tip().await?.time + PATIENCE)?,
        };
        let input = &terms.input;
        let extra_data = |site: &DevChain| -> Result<String> {
            let codec = FAMILY.orders.context("no order codec")?;
            Ok(hex(&codec.encode_extra_data(&address(site.router)?)?))
        };
        let order = Order {
            version: VERSION.to_owned(),
            solver_chain_id: self.destination.id.to_owned(),
            solver: text(self.solver.address()),
            salt: terms.salt.to_string(),
            inputs: vec![Input {
                payment: InputPayment {
                    chain_id: self.origin.id.to_owned(),
                    currency: text(input.currency),
                    amount: input.amount.to_string(),
                    weight: "1".to_owned(),
                },
                refunds: vec![Refund {
                    chain_id: self.origin.id.to_owned(),
                    recipient: text(self.user.address()),
                    currency: text(input.currency),
                    minimum_amount: input.amount.to_string(),
                    deadline,
                    extra_data: extra_data(&self.origin)?,
                }],
            }],
            output: self.output(terms, deadline, extra_data(&self.destination)?)?,
            fees: self.fees(terms),
        };
        self.sign(order)
    }

    /// Signs any order as the solver.
    pub fn sign(&self, order: Order) -> Result<SignedOrder> {
        self.sign_in(order, |chain| self.site(chain).map(|_| FAMILY))
    }

    /// Signs an order over chains of these families.
    pub(super) fn sign_in(
        &self,
        order: Order,
        family_of: impl Fn(&str) -> Option<&'static Family>,
    ) -> Result<SignedOrder> {
        let id = order.id(family_of)?;
        Ok(SignedOrder {
            signature: self.solver.sign_message(id.as_slice())?,
            order,
            id,
        })
    }

    fn output(&self, terms: &Terms, deadline: u32, extra_data: String) -> Result<Output> {
        let codec = FAMILY.orders.context("no order codec")?;
        let payment = OutputPayment {
            recipient: text(terms.recipient),
            currency: text(terms.output.currency),
            minimum_amount: terms.output.amount.to_string(),
            expected_amount: terms.output.amount.to_string(),
        };
        Ok(Output {
            chain_id: self.destination.id.to_owned(),
            payments: vec![payment],
            calls: terms
                .calls
                .iter()
                .map(|call| Ok(hex(&codec.encode_call(call)?)))
                .collect::<Result<_>>()?,
            deadline,
            extra_data,
        })
    }

    fn fees(&self, terms: &Terms) -> Vec<Fee> {
        if terms.fee.is_zero() {
            return Vec::new();
        }
        vec![Fee {
            recipient_chain_id: self.origin.id.to_owned(),
            recipient: text(self.user.address()),
            currency_chain_id: self.origin.id.to_owned(),
            currency: text(terms.input.currency),
            amount: terms.fee.to_string(),
        }]
    }
}

impl SignedOrder {
    /// The `order` and `orderSignature` of a claim.
    pub fn fields(&self) -> Value {
        json!({ "order": self.order, "orderSignature": self.signature })
    }
}

impl DevChain {
    /// The first deposit that a receipt shows: the depository's own record of a native one, or the
    /// token's transfer that its record follows.
    pub async fn deposited(&self, receipt: &TransactionReceipt) -> Result<Deposit> {
        let record = receipt
            .logs()
            .iter()
            .find(|log| log.address() == self.depository);
        let record = record.context("the depository recorded nothing")?;
        let (depositor, id, log) = match Depository::RelayNativeDeposit::decode_log(&record.inner) {
            Ok(native) => (native.from, native.id, record),
            Err(_) => {
                let token = Depository::RelayErc20Deposit::decode_log(&record.inner)?;
                let moved = receipt.logs().iter().find(|log| {
                    Token::Transfer::decode_log(&log.inner)
                        .is_ok_and(|moved| moved.to == self.depository)
                });
                (token.from, token.id, moved.context("no token moved")?)
            }
        };
        self.known_by(receipt, log, (depositor, id)).await
    }

    /// The deposit of a bare transfer whose calldata ends with `id`.
    pub async fn transferred(&self, receipt: &TransactionReceipt, id: B256) -> Result<Deposit> {
        let moved = receipt.logs().iter().find_map(|log| {
            let moved = Token::Transfer::decode_log(&log.inner).ok()?;
            (moved.to == self.depository).then_some((log, moved.from))
        });
        let (log, from) = moved.context("no token moved")?;
        self.known_by(receipt, log, (from, id)).await
    }

    async fn known_by(
        &self,
        receipt: &TransactionReceipt,
        log: &Log,
        (depositor, id): (Address, B256),
    ) -> Result<Deposit> {
        let number = receipt.block_number.context("not in a block")?;
        let block = self.node.block(number.into()).await?;
        let account = hub::OrderAccount {
            chain: &ChainId::new(self.id),
            depositor: &address(depositor)?,
            timestamp: U256::from(block.time),
            deposit: id,
        };
        let index = log.log_index.context("no log index")?.to_string();
        let transaction = receipt.transaction_hash;
        Ok(Deposit {
            transaction,
            onchain_id: deterministic(&[self.id, &transaction.to_string(), &index]),
            account: account.address(),
        })
    }

    /// The hub account of an address of this chain.
    pub fn alias(&self, of: Address) -> Result<Address> {
        Ok(hub::alias(&ChainId::new(self.id), &address(of)?))
    }

    /// What the hub calls a currency of this chain.
    pub fn token_id(&self, currency: Address) -> Result<U256> {
        Ok(hub::token_id(&ChainId::new(self.id), &address(currency)?))
    }
}

/// An address as the protocol's codecs take it.
pub fn address(of: Address) -> Result<vm::Address> {
    Ok(FAMILY.address(&text(of))?)
}

/// Lower case, as configurations and orders have it.
pub fn text(address: Address) -> String {
    format!("{address:#x}")
}

fn hex(bytes: &[u8]) -> String {
    alloy::primitives::hex::encode_prefixed(bytes)
}
