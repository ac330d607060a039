//! Transactions: transfers with a memo, which can land up to a height. Pure.

use serde::{Deserialize, Serialize};

use crate::{
    CodecError,
    trade::{Body, Draft},
    types::{Address, Amount, B256, Bytes},
};

use super::{
    codec::{address, spelled},
    key::{Key, is_signed},
};

/// The most bytes of a transaction that nodes take.
pub const MOST_BYTES: usize = 4_096;
/// Bytes of a salt: transactions of one account that make the same payments have different salts.
pub const SALT: usize = 16;

/// What a transaction does. The body of the family's drafts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payments {
    /// The order that the transaction names.
    pub memo: Option<B256>,
    /// They all happen or none of them does.
    pub transfers: Vec<Transfer>,
}

/// One payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub to: B256,
    pub currency: B256,
    pub amount: Amount,
}

/// A transaction without its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsigned {
    /// The number of the chain on which it can land.
    pub chain: u64,
    pub payer: B256,
    /// The last height at which it can land.
    pub expires: u64,
    pub salt: [u8; SALT],
    pub payments: Payments,
}

/// A transaction as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub unsigned: Unsigned,
    /// Its id: 64 bytes.
    pub signature: Bytes,
}

/// A transaction as its bytes have it.
#[derive(Serialize, Deserialize)]
struct Written {
    unsigned: Unsigned,
    signature: Bytes,
}

impl Payments {
    /// The payments of a draft. An error where the draft is of another family.
    pub fn of(draft: &Draft) -> Result<Self, CodecError> {
        let Body::Own(bytes) = &draft.body else {
            return Err(CodecError("scripted-vm has no calls".into()));
        };
        read(bytes)
    }

    /// The draft that makes them.
    pub fn draft(&self, from: &Address) -> Result<Draft, CodecError> {
        Ok(Draft {
            from: from.clone(),
            value: self.native()?,
            body: Body::Own(written(self)?.into()),
        })
    }

    /// The sum of the transfers of the native currency. An error where it has more than 256 bits.
    pub fn native(&self) -> Result<Amount, CodecError> {
        let native = self.transfers.iter().filter(|one| one.currency.is_zero());
        let sum = native
            .map(|one| one.amount)
            .try_fold(Amount::ZERO, Amount::checked_add);
        sum.ok_or_else(|| CodecError("more than there can be".into()))
    }
}

impl Unsigned {
    /// The bytes that its payer signs.
    pub fn message(&self) -> Result<Vec<u8>, CodecError> {
        Ok([b"scripted transaction\n", &written(self)?[..]].concat())
    }

    /// The transaction with a signature over [`Self::message`].
    pub fn signed(self, signature: Bytes) -> Transaction {
        Transaction {
            unsigned: self,
            signature,
        }
    }

    /// The transaction with a key's signature.
    pub fn sign(self, key: &Key) -> Result<Transaction, CodecError> {
        let signature = key.signature(&self.message()?).to_vec();
        Ok(self.signed(signature.into()))
    }
}

impl Transaction {
    pub fn read(raw: &[u8]) -> Result<Self, CodecError> {
        let Written {
            unsigned,
            signature,
        } = read(raw)?;
        Ok(unsigned.signed(signature))
    }

    pub fn raw(&self) -> Result<Bytes, CodecError> {
        let written = written(&Written {
            unsigned: self.unsigned.clone(),
            signature: self.signature.clone(),
        });
        Ok(written?.into())
    }

    /// The text of the id.
    pub fn id(&self) -> String {
        bs58::encode(&self.signature).into_string()
    }

    /// Whether the signature is the payer's.
    pub fn is_signed(&self) -> bool {
        let message = self.unsigned.message();
        message.is_ok_and(|message| is_signed(&self.unsigned.payer, &message, &self.signature))
    }

    /// The work of a draft: the most bytes that its transaction can have.
    pub fn work(draft: &Draft) -> Result<u64, CodecError> {
        let longest = Unsigned {
            chain: u64::MAX,
            payer: address(&draft.from)?,
            expires: u64::MAX,
            salt: [u8::MAX; SALT],
            payments: Payments::of(draft)?,
        };
        let raw = longest.signed(vec![u8::MAX; 64].into()).raw()?;
        Ok(u64::try_from(raw.len()).unwrap_or(u64::MAX))
    }

    /// The digest of the draft that it was made of ([`Draft::digest`]).
    pub fn digest(&self) -> Option<B256> {
        let payer = spelled(self.unsigned.payer);
        let draft = self.unsigned.payments.draft(&payer).ok()?;
        Some(draft.digest())
    }
}

pub(super) fn written(what: &impl Serialize) -> Result<Vec<u8>, CodecError> {
    serde_json::to_vec(what).map_err(|error| CodecError(error.to_string()))
}

pub(super) fn read<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> Result<T, CodecError> {
    serde_json::from_slice(bytes).map_err(|error| CodecError(error.to_string()))
}
