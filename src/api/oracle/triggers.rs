//! `POST /attestations/deposit-address-triggers/v1`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Shared,
    answer::{Signature, respond_signed},
    question::question,
};
use crate::http::{ApiError, Flag, Number, Request, Response, Text, parse};

/// The body.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TriggerRequest)]
pub struct Ask {
    /// The payment to the deposit address.
    pub input: Input,
    /// What the deposit address is derived from.
    pub derivation_fields: DerivationFields,
    /// The order that the payment is for, 32 bytes, not all zero.
    pub order_id: Text,
    pub nonce: Text,
    #[schema(max_items = 64)]
    pub currencies: Vec<Currency>,
    #[schema(max_items = 64)]
    pub prices: Vec<Price>,
    /// `0x` hex.
    pub extra_data: Text,
    #[serde(skip_serializing)]
    pub request_peer_signatures: Option<Flag>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TriggerInput)]
pub struct Input {
    /// The family.
    pub vm_type: Text,
    pub chain_id: Text,
    /// The currency's bytes, `0x` hex.
    pub currency: Text,
    pub amount: Text,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TriggerDerivationFields)]
pub struct DerivationFields {
    pub input_vm_type: Text,
    pub output_vm_type: Text,
    pub output_chain_id: Text,
    /// `0x` hex.
    pub output_currency: Text,
    /// `0x` hex.
    pub output_recipient: Text,
    pub solver: Text,
    pub pricing_oracle: Text,
    /// `0x` hex.
    pub depositor: Text,
    /// `0x` hex.
    pub refund_recipient: Text,
    pub price_impact_bps: Text,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TriggerCurrency)]
pub struct Currency {
    pub chain_id: Text,
    /// `0x` hex.
    pub currency: Text,
}

/// The price of one unit of a currency.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TriggerPrice)]
pub struct Price {
    pub usd_price: Text,
    /// At most 255.
    pub usd_price_decimals: Number,
    /// At most 255.
    pub currency_decimals: Number,
    /// Unix seconds.
    pub expiration: Text,
}

/// The answer.
#[derive(Serialize, ToSchema)]
#[schema(as = TriggerAttestation)]
pub struct Body {
    pub trigger: Trigger,
}

/// What the oracles say to the deposit address manager.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// The settlement chain's EVM chain id.
    pub chain_id: String,
    pub deposit_address_manager: String,
    /// The bytes of the primary depository of the payment's chain.
    pub input_depository: String,
    pub trigger_hash: String,
    /// Ours first, then the peers' in the order of `PEERS`.
    pub signatures: Vec<Signature>,
}

pub async fn attest(state: Shared, request: Request) -> Result<Response, ApiError> {
    let ask: Ask = request.json()?;
    let question = question(&request, ask.request_peer_signatures);
    let claim = parse::typed(serde_json::to_value(&ask).map_err(ApiError::internal)?)?;
    let answer = state.oracle.trigger(&claim, question.as_ref()).await?;
    let trigger = &answer.trigger;
    let body = Body {
        trigger: Trigger {
            chain_id: trigger.chain_id.to_string(),
            deposit_address_manager: format!("{:#x}", trigger.deposit_address_manager),
            input_depository: trigger.input_depository.to_string(),
            trigger_hash: trigger.trigger_hash.to_string(),
            signatures: answer.signatures.iter().map(Signature::of).collect(),
        },
    };
    let signatures = body.trigger.signatures.iter();
    respond_signed(&state, &body, signatures.map(|by| &by.oracle_signer))
}
