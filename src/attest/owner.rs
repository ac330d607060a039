//! What owners of hub accounts ask for, and their signatures (guide: protocol 6.3). Pure: no I/O, no clock.

use serde_json::{Map, Value};
use vm::{
    Address, Amount, EvmAddress, Family, OwnerClaim,
    protocol::{
        owner::{Kind, Operation},
        text,
    },
};

use super::{
    Refusal,
    claim::{Families, malformed},
    execution,
};

/// An operation on its owner's hub account, as the caller wrote it: the owner's signature covers these texts.
#[derive(Clone, Debug)]
pub struct Requested {
    pub kind: Kind,
    pub chain: String,
    pub currency: String,
    pub amount: String,
    pub owner_chain: String,
    pub owner: String,
    pub recipient: String,
    pub nonce: String,
    /// By family name.
    pub additional: Option<Map<String, Value>>,
}

/// The owner of a hub account.
#[derive(Clone, Debug)]
pub struct Owner {
    pub family: &'static Family,
    pub address: Address,
    pub account: EvmAddress,
}

impl Requested {
    /// Parses the owner; its chain must be configured.
    pub fn owner(&self, families: Families<'_>) -> Result<Owner, Refusal> {
        let chain = &self.owner_chain;
        let family = families(chain).ok_or_else(|| Refusal::ChainNotAvailable(chain.into()))?;
        let address = family.account(&self.owner);
        let address = address.map_err(|why| malformed("body/owner", why))?;
        Ok(Owner {
            family,
            account: execution::account(chain, &address),
            address,
        })
    }

    /// Parses the amount, which must not be zero.
    pub fn amount(&self) -> Result<Amount, Refusal> {
        let amount = text::number(&self.amount);
        let amount = amount.map_err(|why| malformed("body/amount", why))?;
        match (amount.is_zero(), self.kind) {
            (false, _) => Ok(amount),
            (true, Kind::Withdrawal) => Err(Refusal::ZeroWithdrawal),
            (true, Kind::Transfer) => Err(Refusal::ZeroTransfer),
        }
    }

    /// Refuses an operation without the signature of its owner. A family whose signatures are judged by what its chain
    /// has is refused: no such chain is read here.
    pub fn check_signature(&self, owner: &Owner, signature: &str) -> Result<(), Refusal> {
        let verifier = owner.family.owners.filter(|owners| !owners.needs_chain());
        let verifier = verifier.ok_or(Refusal::OwnerFamily)?;
        let additional = self.additional.clone().map(Value::Object);
        let operation = Operation {
            kind: self.kind,
            chain_id: &self.chain,
            currency: &self.currency,
            amount: &self.amount,
            owner_chain_id: &self.owner_chain,
            owner: &self.owner,
            recipient: &self.recipient,
            nonce: &self.nonce,
            additional: additional.as_ref(),
        };
        let claim = OwnerClaim {
            digest: operation.digest(),
            owner: &self.owner,
            signature,
            context: None,
        };
        let signed = verifier.verify(&claim);
        signed.map_err(|why| Refusal::OwnerDenied(why.0.into()))
    }

    /// Refuses what only the owner may choose: with a deposit that goes back, whoever asks could choose it, and the
    /// first choice stands.
    pub fn check_bare(&self) -> Result<(), Refusal> {
        match self.additional {
            Some(_) => Err(Refusal::AdditionalUnsigned),
            None => Ok(()),
        }
    }

    /// Why the hub may hold too little for it.
    pub fn insufficient(&self) -> Refusal {
        Refusal::InsufficientFor(self.kind.as_str())
    }
}
