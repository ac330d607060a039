//! The messages that oracles sign, as answers spell them (guide: protocol 6.1). Pure: no I/O, no clock.
//!
//! A message whose contract the hub file does not name is refused: without it the domain would be another one.

use serde_json::{Map, Value, json};
use vm::{
    EvmAddress,
    protocol::{
        message::{Domain, Execution, Trigger, TypedMessage},
        signature::Signature,
    },
};

use super::{
    Refusal,
    mapping::Entry,
    peers::answer::{Corroborated, Seal, Spelled},
};
use crate::hub::Settings;

impl Spelled {
    pub fn execution(execution: &Execution, settings: &Settings) -> Self {
        Self {
            digest: execution.digest(&settings.domain),
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

fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
