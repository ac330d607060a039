//! The order, its id and its wire form (guide: protocol 3.1).
//!
//! Amounts, salts and addresses keep their original texts: answers repeat them byte for byte, and only
//! [`Order::typed`] interprets them.

mod hash;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::text;
use crate::{Address, B256, Bytes, CodecError, Family, U256};

/// The only version of orders.
pub const VERSION: &str = "v1";

/// The start of the salt of an order whose claims must all carry its solver's signature: the first half of the sha256
/// of "claims carry the solver's signature". The salt is part of the order's id, so the requirement is permanent.
const VOUCHED: [u8; 16] = [
    0xb7, 0x06, 0x42, 0x03, 0x15, 0x5a, 0x80, 0x2a, 0xd4, 0x96, 0x67, 0x46, 0x90, 0x9a, 0x30, 0x47,
];

/// A salt with `random` in it whose order requires its solver's signature in every claim.
pub fn vouched_salt(random: [u8; 16]) -> B256 {
    let mut salt = B256::ZERO;
    salt[..16].copy_from_slice(&VOUCHED);
    salt[16..].copy_from_slice(&random);
    salt
}

/// Whether an order with this salt requires its solver's signature in every claim.
pub fn is_vouched(salt: U256) -> bool {
    salt.to_be_bytes::<32>().starts_with(&VOUCHED)
}

/// What a user pays on which chain, what the solver delivers, and what is refunded otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// [`VERSION`]. The receiver of an order checks it; the id contains it as given.
    pub version: String,
    pub solver_chain_id: String,
    /// An EVM address, whatever the solver chain is.
    pub solver: String,
    pub salt: String,
    pub inputs: Vec<Input>,
    pub output: Output,
    pub fees: Vec<Fee>,
}

/// One payment into a depository, with its refund options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub payment: InputPayment,
    pub refunds: Vec<Refund>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InputPayment {
    pub chain_id: String,
    pub currency: String,
    pub amount: String,
    /// The input's weight in what the solver owes when more or less than `amount` was paid.
    pub weight: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refund {
    pub chain_id: String,
    pub recipient: String,
    pub currency: String,
    pub minimum_amount: String,
    /// Unix seconds.
    pub deadline: u32,
    pub extra_data: String,
}

/// What the solver delivers, all on one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    pub chain_id: String,
    pub payments: Vec<OutputPayment>,
    /// Family-specific encodings, see [`OrderCodec`](crate::OrderCodec).
    pub calls: Vec<String>,
    /// Unix seconds.
    pub deadline: u32,
    pub extra_data: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputPayment {
    pub recipient: String,
    pub currency: String,
    pub minimum_amount: String,
    pub expected_amount: String,
}

/// A fee that the solver pays at the hub once the order is filled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fee {
    pub recipient_chain_id: String,
    pub recipient: String,
    pub currency_chain_id: String,
    pub currency: String,
    pub amount: String,
}

/// Why an order has no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// The chain's family is unknown.
    #[error("unknown chain {0:?}")]
    Chain(String),
    /// The text of a field is invalid; `field` is its path, for example `/output/calls`.
    #[error("{field}: {why}")]
    Field {
        field: &'static str,
        why: CodecError,
    },
}

/// The order in the form that the hub's contracts hash (EIP-712): addresses are family bytes, and the output's fields
/// have another order than in JSON.
#[allow(missing_docs)]
pub mod typed {
    alloy::sol! {
        struct InputPayment { string chainId; bytes currency; uint256 amount; uint256 weight; }
        struct InputRefund {
            string chainId; bytes recipient; bytes currency; uint256 minimumAmount;
            uint32 deadline; bytes extraData;
        }
        struct Input { InputPayment payment; InputRefund[] refunds; }
        struct OutputPayment {
            bytes recipient; bytes currency; uint256 minimumAmount; uint256 expectedAmount;
        }
        struct Output {
            string chainId; OutputPayment[] payments; uint32 deadline; bytes[] calls;
            bytes extraData;
        }
        struct Fee {
            string recipientChainId; bytes recipient; string currencyChainId; bytes currency;
            uint256 amount;
        }
        struct Order {
            string version; string solverChainId; address solver; uint256 salt;
            Input[] inputs; Output output; Fee[] fees;
        }
    }
}

impl typed::Order {
    /// The EIP-712 struct hash, without a domain.
    pub fn id(&self) -> B256 {
        hash::of(self)
    }
}

impl Order {
    /// The EIP-712 struct hash, without a domain. `family_of` returns the family of a chain; the solver's chain is
    /// not looked up.
    pub fn id(
        &self,
        family_of: impl Fn(&str) -> Option<&'static Family>,
    ) -> Result<B256, OrderError> {
        Ok(self.typed(family_of)?.id())
    }

    /// The typed data that the id hashes.
    pub fn typed(
        &self,
        family_of: impl Fn(&str) -> Option<&'static Family>,
    ) -> Result<typed::Order, OrderError> {
        self.read(Reading {
            families: &family_of,
            account: Family::any_address,
            currency: Family::any_address,
        })
    }

    /// As [`Self::typed`], of an order that [`Self::check`] accepts; its error otherwise.
    pub fn checked(
        &self,
        family_of: impl Fn(&str) -> Option<&'static Family>,
    ) -> Result<typed::Order, OrderError> {
        // Reads each text once. Which error comes first is known from the two alone.
        let strict = Reading {
            families: &family_of,
            account: Family::account,
            currency: Family::currency,
        };
        self.read(strict).or_else(|_| {
            self.check(&family_of)?;
            self.typed(&family_of)
        })
    }

    fn read(&self, reading: Reading<'_>) -> Result<typed::Order, OrderError> {
        Ok(typed::Order {
            version: self.version.clone(),
            solverChainId: self.solver_chain_id.clone(),
            solver: at("/solver", text::evm_address(&self.solver))?,
            salt: at("/salt", text::number(&self.salt))?,
            inputs: each(&self.inputs, |input| input.typed(reading))?,
            output: self.output.typed(reading)?,
            fees: each(&self.fees, |fee| fee.typed(reading))?,
        })
    }
}

impl Order {
    /// Refuses accounts and currencies that cannot exist in their family. Ids exist for them too.
    pub fn check(
        &self,
        family_of: impl Fn(&str) -> Option<&'static Family>,
    ) -> Result<(), OrderError> {
        for input in &self.inputs {
            let payment = &input.payment;
            let family = family_of.of(&payment.chain_id)?;
            is_currency(family, "/inputs/payment/currency", &payment.currency)?;
            for refund in &input.refunds {
                let family = family_of.of(&refund.chain_id)?;
                // The native currency stands for the depositor.
                if refund.recipient != family.codec.native() {
                    is_account(family, "/inputs/refunds/recipient", &refund.recipient)?;
                }
                is_currency(family, "/inputs/refunds/currency", &refund.currency)?;
            }
        }
        let family = family_of.of(&self.output.chain_id)?;
        for payment in &self.output.payments {
            is_account(family, "/output/payments/recipient", &payment.recipient)?;
            is_currency(family, "/output/payments/currency", &payment.currency)?;
        }
        for fee in &self.fees {
            let recipient = family_of.of(&fee.recipient_chain_id)?;
            let currency = family_of.of(&fee.currency_chain_id)?;
            is_account(recipient, "/fees/recipient", &fee.recipient)?;
            is_currency(currency, "/fees/currency", &fee.currency)?;
        }
        Ok(())
    }
}

impl Input {
    fn typed(&self, reading: Reading<'_>) -> Result<typed::Input, OrderError> {
        let payment = &self.payment;
        let family = reading.families.of(&payment.chain_id)?;
        Ok(typed::Input {
            payment: typed::InputPayment {
                chainId: payment.chain_id.clone(),
                currency: reading.currency(
                    family,
                    "/inputs/payment/currency",
                    &payment.currency,
                )?,
                amount: at("/inputs/payment/amount", text::number(&payment.amount))?,
                weight: at("/inputs/payment/weight", text::number(&payment.weight))?,
            },
            refunds: each(&self.refunds, |refund| refund.typed(reading))?,
        })
    }
}

impl Refund {
    fn typed(&self, reading: Reading<'_>) -> Result<typed::InputRefund, OrderError> {
        let family = reading.families.of(&self.chain_id)?;
        let minimum = text::number(&self.minimum_amount);
        // The native currency stands for the depositor.
        let account: Parse = match self.recipient == family.codec.native() {
            true => Family::any_address,
            false => reading.account,
        };
        let reading = Reading { account, ..reading };
        Ok(typed::InputRefund {
            chainId: self.chain_id.clone(),
            recipient: reading.account(family, "/inputs/refunds/recipient", &self.recipient)?,
            currency: reading.currency(family, "/inputs/refunds/currency", &self.currency)?,
            minimumAmount: at("/inputs/refunds/minimumAmount", minimum)?,
            deadline: self.deadline,
            extraData: at("/inputs/refunds/extraData", text::bytes(&self.extra_data))?,
        })
    }
}

impl Output {
    fn typed(&self, reading: Reading<'_>) -> Result<typed::Output, OrderError> {
        let family = reading.families.of(&self.chain_id)?;
        Ok(typed::Output {
            chainId: self.chain_id.clone(),
            payments: each(&self.payments, |payment| payment.typed(reading, family))?,
            deadline: self.deadline,
            calls: each(&self.calls, |call| at("/output/calls", text::bytes(call)))?,
            extraData: at("/output/extraData", text::bytes(&self.extra_data))?,
        })
    }
}

impl OutputPayment {
    /// What the solver has to pay: `expected_amount`, and at least `minimum_amount`.
    pub fn promised(&self) -> Result<U256, CodecError> {
        let expected = text::number(&self.expected_amount)?;
        Ok(expected.max(text::number(&self.minimum_amount)?))
    }

    fn typed(
        &self,
        reading: Reading<'_>,
        family: &Family,
    ) -> Result<typed::OutputPayment, OrderError> {
        let minimum = text::number(&self.minimum_amount);
        let expected = text::number(&self.expected_amount);
        Ok(typed::OutputPayment {
            recipient: reading.account(family, "/output/payments/recipient", &self.recipient)?,
            currency: reading.currency(family, "/output/payments/currency", &self.currency)?,
            minimumAmount: at("/output/payments/minimumAmount", minimum)?,
            expectedAmount: at("/output/payments/expectedAmount", expected)?,
        })
    }
}

impl Fee {
    fn typed(&self, reading: Reading<'_>) -> Result<typed::Fee, OrderError> {
        let recipient = reading.families.of(&self.recipient_chain_id)?;
        let currency = reading.families.of(&self.currency_chain_id)?;
        Ok(typed::Fee {
            recipientChainId: self.recipient_chain_id.clone(),
            recipient: reading.account(recipient, "/fees/recipient", &self.recipient)?,
            currencyChainId: self.currency_chain_id.clone(),
            currency: reading.currency(currency, "/fees/currency", &self.currency)?,
            amount: at("/fees/amount", text::number(&self.amount))?,
        })
    }
}

trait Families {
    fn of(&self, chain: &str) -> Result<&'static Family, OrderError>;
}

impl<F: Fn(&str) -> Option<&'static Family>> Families for F {
    fn of(&self, chain: &str) -> Result<&'static Family, OrderError> {
        self(chain).ok_or_else(|| OrderError::Chain(chain.to_owned()))
    }
}

/// How a family reads a text.
type Parse = fn(&Family, &str) -> Result<Address, CodecError>;

/// How the texts of an order are read.
#[derive(Clone, Copy)]
struct Reading<'a> {
    families: &'a dyn Families,
    account: Parse,
    currency: Parse,
}

impl Reading<'_> {
    fn account(&self, of: &Family, field: &'static str, text: &str) -> Result<Bytes, OrderError> {
        at(field, (self.account)(of, text)).map(|address| encoded(&address))
    }

    fn currency(&self, of: &Family, field: &'static str, text: &str) -> Result<Bytes, OrderError> {
        at(field, (self.currency)(of, text)).map(|address| encoded(&address))
    }
}

fn each<T, U>(
    items: &[T],
    typed: impl Fn(&T) -> Result<U, OrderError>,
) -> Result<Vec<U>, OrderError> {
    items.iter().map(typed).collect()
}

fn at<T>(field: &'static str, parsed: Result<T, CodecError>) -> Result<T, OrderError> {
    parsed.map_err(|why| OrderError::Field { field, why })
}

fn encoded(address: &Address) -> Bytes {
    Bytes::copy_from_slice(address.bytes())
}

fn is_account(family: &Family, field: &'static str, text: &str) -> Result<(), OrderError> {
    at(field, family.account(text)).map(drop)
}

fn is_currency(family: &Family, field: &'static str, text: &str) -> Result<(), OrderError> {
    at(field, family.currency(text)).map(drop)
}
