//! What bodies about owners' withdrawals have in common.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use vm::protocol::owner::Kind;

use super::order::Order;
use crate::{
    attest::{
        Refusal,
        owner::{OwnerSignature, Requested},
        service::{OwnedClaim, Proof, ReturnClaim},
    },
    http::{ApiError, Flag, Request, Text},
};

/// A withdrawal by its owner.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OwnedWithdrawal)]
pub struct Withdrawal {
    pub chain_id: Text,
    /// The chain's primary one where it is left out. Of chains whose depositories are contracts no other one is
    /// taken. The owner's signature does not cover it: where real money is at stake another one needs a nonce that
    /// commits to the withdrawal, as `withdrawalNonce` of version 1 does.
    pub depository: Option<Text>,
    pub currency: Text,
    pub amount: Text,
    pub owner_chain_id: Text,
    pub owner: Text,
    pub recipient: Text,
    /// 32 bytes. With `recoverMode`, where real money is at stake, the idempotency key of the deposit's recovery.
    pub nonce: Text,
    /// What the allocator is told besides, under the name of the chain's family: of chains whose withdrawals spend
    /// outputs, `allocatorUtxos` (at most 64) and `feeRate`.
    #[schema(value_type = Option<Object>)]
    pub additional_data: Option<Map<String, Value>>,
    pub request_peer_signatures: Option<Flag>,
}

/// Why it is allowed: its owner signed it, or a returned deposit of the owner's allows it.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OwnerProof)]
pub struct ProofFields {
    /// The owner's signature of the request, with the operation `withdrawal`. Needed without `recoverMode`.
    pub owner_signature: Option<Text>,
    /// How the signature was made, under the name of its owner's family: `ton-vm` with `timestamp` (unix seconds) and
    /// `domain` (of the app that asked the wallet).
    #[schema(value_type = Option<Object>)]
    pub signature_metadata: Option<Map<String, Value>>,
    /// In place of a signature: the deposit returned through the hub to the owner, its depositor, and all of it goes to
    /// the recipient of its order's refund. Where another than its payer named the order, that has to be the depositor.
    /// Its solver has said at the hub that it neither filled nor refunded the order. A deposit allows one withdrawal.
    pub recover_mode: Option<Flag>,
    pub deposit_chain_id: Option<Text>,
    pub deposit_transaction_id: Option<Text>,
    pub deposit_onchain_id: Option<Text>,
    /// The order that the deposit names, with one input.
    pub order: Option<Order>,
    /// The solver's, of the order.
    pub order_signature: Option<Text>,
}

/// A withdrawal, and why it is allowed.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = OwnedWithdrawalRequest)]
pub struct Ask {
    #[serde(flatten)]
    pub withdrawal: Withdrawal,
    #[serde(flatten)]
    pub proof: ProofFields,
}

impl Ask {
    /// Reads the body. Each part on its own, so that errors name their field.
    pub fn read(request: &Request) -> Result<Self, ApiError> {
        Ok(Self {
            withdrawal: request.json()?,
            proof: request.json()?,
        })
    }

    pub fn claim(&self) -> Result<OwnedClaim, ApiError> {
        Ok(OwnedClaim {
            requested: self.withdrawal.requested(),
            depository: self
                .withdrawal
                .depository
                .as_ref()
                .map(|text| text.0.clone()),
            proof: self.proof.proof()?,
        })
    }
}

impl Withdrawal {
    fn requested(&self) -> Requested {
        Requested {
            kind: Kind::Withdrawal,
            chain: self.chain_id.0.clone(),
            currency: self.currency.0.clone(),
            amount: self.amount.0.clone(),
            owner_chain: self.owner_chain_id.0.clone(),
            owner: self.owner.0.clone(),
            recipient: self.recipient.0.clone(),
            nonce: self.nonce.0.clone(),
            additional: self.additional_data.clone(),
        }
    }
}

impl ProofFields {
    /// Refuses a body with neither.
    pub fn proof(&self) -> Result<Proof, ApiError> {
        if !self.recover_mode.is_some_and(|flag| flag.0) {
            let signature = self.owner_signature.as_ref();
            let signature = signature.ok_or(Refusal::OwnerSignatureMissing)?;
            return Ok(Proof::Signature(OwnerSignature {
                text: signature.0.clone(),
                metadata: self.signature_metadata.clone(),
            }));
        }
        let needed = |text: &Option<Text>| {
            let text = text.as_ref().filter(|text| !text.0.is_empty());
            let text = text.map(|text| text.0.clone());
            text.ok_or(Refusal::ReturnIncomplete)
        };
        let order = self.order.as_ref().ok_or(Refusal::ReturnIncomplete)?;
        Ok(Proof::Return(Box::new(ReturnClaim {
            chain: needed(&self.deposit_chain_id)?,
            transaction: needed(&self.deposit_transaction_id)?,
            onchain_id: needed(&self.deposit_onchain_id)?,
            signature: needed(&self.order_signature)?,
            order: order.wire()?,
        })))
    }
}
