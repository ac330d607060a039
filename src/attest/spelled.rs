//! The messages that oracles sign, as answers spell them (guide: protocol 6.1). Pure: no I/O, no clock.
//!
//! A message whose contract the hub file does not name is refused: without it the domain would be another one.

use serde_json::{Map, Value, json};
use vm::{
    B256, EvmAddress, U256,
    protocol::{
        message::{Domain, ExecuteAndWithdraw, Execution, Fee, Inclusion, Trigger, TypedMessage},
        request::{PayloadParams, WithdrawRequest},
        signature::Signature,
    },
};

use super::{
    Refusal,
    mapping::Entry,
    peers::answer::{Corroborated, Seal, Spelled},
};
use crate::hub::{Settings, Spender};

impl Spelled {
    pub fn execution(execution: &Execution, digest: B256, settings: &Settings) -> Self {
        Self {
            digest,
            field: Some("execution"),
            message: fields(json!({
                "idempotencyKey": execution.idempotency_key, "actions": execution.actions,
            })),
            seal: Some(Seal {
                fields: ["oracleChainId", "oracleContract"],
                chain: settings.chain.clone(),
                contract: settings.oracle.clone(),
            }),
        }
    }

    pub fn mapping(entry: &Entry, settings: &Settings) -> Result<Self, Refusal> {
        let contract = settings.generic_mapping;
        let contract = contract.ok_or(Refusal::NotConfigured("generic mapping"))?;
        let (domain, mapping) = (&settings.domain, &entry.mapping);
        Ok(Self {
            digest: mapping.digest(&Domain::generic_mapping(domain.chain(), contract)),
            field: Some("genericMapping"),
            message: fields(json!({
                "user": mapping.user, "id": mapping.id, "data": entry.data,
                "nonce": mapping.nonce,
            })),
            seal: Some(Seal {
                fields: ["genericMappingChainId", "genericMappingContract"],
                chain: settings.chain.clone(),
                contract: format!("{contract:#x}"),
            }),
        })
    }

    pub fn trigger(trigger: &Trigger) -> Self {
        let domain = Domain::trigger(trigger.chain_id);
        Self {
            digest: trigger.digest(&domain),
            field: Some("trigger"),
            message: fields(json!({
                "chainId": trigger.chain_id.to_string(), "depositAddressManager": trigger.deposit_address_manager,
                "inputDepository": trigger.input_depository, "triggerHash": trigger.trigger_hash,
            })),
            seal: None,
        }
    }

    pub fn exchange(
        request: &ExecuteAndWithdraw,
        executor: EvmAddress,
        settings: &Settings,
    ) -> Self {
        let domain = Domain::executor(settings.domain.chain(), executor);
        let fee = |fee: &Fee| json!({"recipient": fee.recipient, "amount": fee.amount.to_string()});
        let fees: Vec<_> = request.fees.iter().map(fee).collect();
        Self {
            digest: request.digest(&domain),
            field: Some("executeAndWithdrawRequest"),
            message: fields(json!({
                "inChainId": request.in_chain_id, "inCurrency": request.in_currency,
                "outChainId": request.out_chain_id, "outCurrency": request.out_currency,
                "outAmountMinimum": request.out_amount_minimum.to_string(),
                "depository": request.depository, "orderAddress": request.order_address,
                "receiver": request.receiver, "data": request.data, "fees": fees,
                "nonce": request.nonce, "deadline": request.deadline.to_string(),
            })),
            seal: Some(Seal {
                fields: ["executorChainId", "executorContract"],
                chain: settings.chain.clone(),
                contract: format!("{executor:#x}"),
            }),
        }
    }

    pub fn payload(params: &PayloadParams, digest: B256, spender: &Spender) -> Self {
        Self {
            digest,
            field: Some("payloadParams"),
            message: fields(json!(params)),
            seal: Some(Seal {
                fields: ["allocatorSpenderChainId", "allocatorSpenderContract"],
                chain: spender.chain.clone(),
                contract: format!("{:#x}", spender.contract),
            }),
        }
    }

    pub fn inclusion(inclusion: &Inclusion) -> Self {
        Self {
            digest: inclusion.digest(&Domain::withdraw_request(inclusion.chain_id)),
            field: Some("withdrawRequest"),
            message: fields(json!({
                "chainId": number(inclusion.chain_id), "allocator": inclusion.allocator,
                "withdrawRequestHash": inclusion.withdraw_request_hash,
                "hashesToSign": inclusion.hashes_to_sign,
            })),
            seal: None,
        }
    }

    /// The answer names the domain, beside the request.
    pub fn authorization(request: &WithdrawRequest, digest: B256, domain: &Domain) -> Self {
        Self {
            digest,
            field: None,
            message: fields(json!({
                "withdrawRequest": request, "allocatorChainId": number(domain.chain()),
                "allocatorContract": domain.contract(),
            })),
            seal: None,
        }
    }

    /// The signature of `signer` over this message.
    pub fn by(&self, signer: EvmAddress, signature: Signature) -> Corroborated {
        let seal = self.seal.as_ref();
        Corroborated {
            domain: seal.map(|seal| [seal.chain.clone(), seal.contract.clone()]),
            signer: format!("{signer:#x}"),
            signature,
        }
    }
}

/// A number where JSON readers keep it exact, else a text.
pub fn number(number: U256) -> Value {
    let exact = u64::try_from(number)
        .ok()
        .filter(|number| *number < 1 << 53);
    exact.map_or_else(|| number.to_string().into(), Value::from)
}

fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
