//! Transactions before they are signed: what they do. What an account adds to one (a sequence number, a fee) is not in it.

use alloy::primitives::Keccak256;
use serde_json::{Value, json};

use crate::{
    CodecError, Family, OrderCall,
    protocol::text,
    types::{Address, Amount, B256, Bytes, U256},
};

/// A transaction before it is signed, without what its account adds. Only its family looks into `body`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Whose transaction it is.
    pub from: Address,
    /// What it takes of the native currency besides its fee.
    pub value: Amount,
    pub body: Body,
}

/// What a transaction does, in the form that its family has for it. Only the family looks inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A call of an account or a contract, which carries `value`.
    Call {
        to: Address,
        data: Bytes,
        /// EIP-7702; empty for a transaction without.
        authorizations: Vec<Authorization>,
    },
    /// As its family writes it.
    Own(Bytes),
}

impl Draft {
    /// A call without authorizations.
    pub fn call(call: Call) -> Self {
        Self {
            from: call.from,
            value: call.value,
            body: Body::Call {
                to: call.to,
                data: call.data,
                authorizations: Vec::new(),
            },
        }
    }

    /// The call that it makes; `None` where it is none.
    pub fn as_call(&self) -> Option<Call> {
        let Body::Call { to, data, .. } = &self.body else {
            return None;
        };
        Some(Call {
            from: self.from.clone(),
            to: to.clone(),
            data: data.clone(),
            value: self.value,
        })
    }

    /// The same as a call that an order wants made; `None` where it is none.
    pub fn as_order_call(&self) -> Option<OrderCall> {
        let Call {
            to, data, value, ..
        } = self.as_call()?;
        Some(OrderCall { to, data, value })
    }

    /// What tells it from any other. [`Receipt::outer_call`](crate::Receipt::outer_call) has it, unless the family has an
    /// [`own_call`](crate::Family::own_call).
    pub fn digest(&self) -> B256 {
        let value = self.value.to_be_bytes::<32>();
        let from = self.from.bytes();
        match &self.body {
            Body::Call { to, data, .. } => digest(&[from, to.bytes(), &value, data]),
            Body::Own(bytes) => digest(&[from, &value, bytes]),
        }
    }
}

/// A call of `to` by `from`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub from: Address,
    pub to: Address,
    pub data: Bytes,
    pub value: Amount,
}

impl Call {
    /// An account's call of itself that does nothing.
    pub fn nothing(account: &Address) -> Self {
        Self {
            from: account.clone(),
            to: account.clone(),
            data: Bytes::new(),
            value: Amount::ZERO,
        }
    }

    /// What tells this call from any other: everything it holds.
    pub fn digest(&self) -> B256 {
        let value = self.value.to_be_bytes::<32>();
        digest(&[self.from.bytes(), self.to.bytes(), &value, &self.data])
    }
}

/// keccak256 of the parts, each behind its length.
fn digest(parts: &[&[u8]]) -> B256 {
    let mut hash = Keccak256::new();
    for part in parts {
        // Lengths fit: a part is in memory.
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hash.finalize()
}

/// An EIP-7702 authorization with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    pub chain_id: u64,
    pub address: Address,
    pub nonce: u64,
    pub y_parity: u8,
    pub r: B256,
    pub s: B256,
}

impl Authorization {
    /// An entry of `authorizationList`: numbers as JSON numbers or as decimal or hex texts.
    pub fn read(value: &Value, family: &Family) -> Result<Self, CodecError> {
        let wrong = |field: &str| CodecError(format!("authorizationList: {field} is no number"));
        let number = |field: &str| -> Result<U256, CodecError> {
            match value.get(field) {
                Some(Value::Number(number)) => {
                    number.as_u64().map(U256::from).ok_or_else(|| wrong(field))
                }
                Some(Value::String(number)) => text::number(number),
                _ => Err(wrong(field)),
            }
        };
        let small = |field: &str| u64::try_from(number(field)?).map_err(|_| wrong(field));
        let address = value.get("address").and_then(Value::as_str);
        Ok(Self {
            chain_id: small("chainId")?,
            address: family.address(address.unwrap_or_default())?,
            nonce: small("nonce")?,
            y_parity: u8::try_from(small("yParity")?).map_err(|_| wrong("yParity"))?,
            r: number("r")?.into(),
            s: number("s")?.into(),
        })
    }

    /// As [`Self::read`] reads it.
    pub fn json(&self) -> Value {
        json!({
            "chainId": self.chain_id, "address": self.address.text(), "nonce": self.nonce,
            "yParity": self.y_parity, "r": U256::from_be_bytes(self.r.0),
            "s": U256::from_be_bytes(self.s.0),
        })
    }
}

/// Why no node of a chain would take a transaction, whatever the state of the chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("the transaction has {bytes} bytes, the chain takes {most}")]
    Large { bytes: usize, most: usize },
    #[error("the transaction may take {work} gas, the chain allows {most}")]
    Work { work: u64, most: u64 },
    #[error("the chain takes no transactions with authorizations")]
    Type,
    /// Which of them (from 0), and what is wrong with it.
    #[error("authorization {0}: {1}")]
    Authorization(usize, String),
    /// A currency that nobody is paid in, and why.
    #[error("{0}")]
    Currency(String),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_told_from_others_by_what_its_call_is_told_by() {
        let account = |byte: u8| Address::from_parts(&byte.to_string(), vec![byte; 20]);
        let call = Call {
            from: account(1),
            to: account(2),
            data: vec![3].into(),
            value: U256::from(4),
        };
        let draft = Draft::call(call.clone());
        assert_eq!(draft.digest(), call.digest());
        let own = |bytes: &'static [u8]| Draft {
            body: Body::Own(Bytes::from_static(bytes)),
            ..draft.clone()
        };
        assert_ne!(own(b"a").digest(), own(b"b").digest());
        assert_ne!(own(b"a").digest(), draft.digest());
        assert_eq!(
            (own(b"a").as_call(), own(b"a").as_order_call()),
            (None, None)
        );
    }
}
