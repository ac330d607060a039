//! Withdrawals, withdraw requests, triggers and Bitcoin PSBTs.

use alloy::hex;
use serde_json::{Value, json};
use vm::{
    CodecError, Family, WithdrawalCodec,
    bitcoin::{partial, psbt::Payload},
    protocol::{
        request::{PayloadParams, PayloadRequest, WithdrawCall, WithdrawRequest},
        text,
        trigger::Trigger,
    },
};

use crate::harness::{Answer, Case, Row};

/// File and answer, one row each.
pub const ROWS: &[Row] = &[
    ("encode_withdrawal.json", encode),
    ("decode_withdrawal.json", decode),
    ("decoded_withdrawal_info.json", describe),
    ("normalize_payload_params.json", normalize_payload),
    ("submit_withdraw_request_hash.json", payload_hash),
    ("normalize_withdraw_request.json", normalize_request),
    ("withdraw_request_hash.json", request_hash),
    ("lighter_l1_message.json", lighter_message),
    ("deposit_address_trigger_hash.json", trigger_hash),
    ("bitcoin_psbt_withdrawal.json", bitcoin_psbt),
    ("bitcoin_partial_signature.json", bitcoin_signature),
];

fn family(case: &Case, field: &str) -> Result<&'static Family, String> {
    let name = case.input[field].as_str().ok_or("no family named")?;
    vm::family(name).ok_or_else(|| format!("Unsupported vm type {name}"))
}

fn codec(case: &Case) -> Result<&'static dyn WithdrawalCodec, String> {
    let family = family(case, "vmType")?;
    family.withdrawals.ok_or_else(|| "no withdrawals".into())
}

fn said(error: CodecError) -> String {
    error.to_string()
}

fn typed<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|e| e.to_string())
}

fn encode(case: &Case) -> Answer {
    let bytes = codec(case)?.encode(&case.input["withdrawal"]);
    Ok(hex::encode_prefixed(bytes.map_err(said)?).into())
}

fn decode(case: &Case) -> Answer {
    let codec = codec(case)?;
    let encoded = case.input["encoded"].as_str().ok_or("no bytes")?;
    let encoded = text::bytes(encoded).map_err(said)?;
    let withdrawal = codec.decode(&encoded).map_err(said)?;
    Ok(json!({"vmType": case.input["vmType"], "withdrawal": withdrawal}))
}

/// Each part stands for itself: the reference's words of a refused part are its own.
fn describe(case: &Case) -> Answer {
    let said = codec(case)?.describe(&case.input["withdrawal"]);
    let part = |name: &str, ours: Result<String, CodecError>| {
        let theirs = &case.expected[name];
        match ours {
            Err(_) if theirs["throws"] == true => theirs.clone(),
            Err(error) => error.to_string().into(),
            Ok(ours) => ours.into(),
        }
    };
    Ok(json!({
        "id": part("id", said.id),
        "currency": part("currency", said.currency),
        "amount": part("amount", said.amount),
        "recipient": part("recipient", said.recipient),
    }))
}

fn normalize_payload(case: &Case) -> Answer {
    let request: PayloadRequest = typed(&case.input)?;
    let params = codec(case)?.normalize_payload(&request).map_err(said)?;
    serde_json::to_value(params).map_err(|e| e.to_string())
}

fn payload_hash(case: &Case) -> Answer {
    let message = typed::<PayloadParams>(&case.input)?.message();
    Ok(message.map_err(said)?.payload_id().to_string().into())
}

fn normalize_request(case: &Case) -> Answer {
    let call: WithdrawCall = typed(&case.input)?;
    let (chain, spender) = (family(case, "vmType")?, family(case, "spenderVmType")?);
    let request = WithdrawRequest::new(&call, chain, spender).map_err(said)?;
    serde_json::to_value(request).map_err(|e| e.to_string())
}

fn request_hash(case: &Case) -> Answer {
    let message = typed::<WithdrawRequest>(&case.input)?.message();
    Ok(message.map_err(said)?.request_hash().to_string().into())
}

fn lighter_message(case: &Case) -> Answer {
    let transfer: vm::lighter::withdrawal::Transfer = typed(&case.input)?;
    transfer.l1_message().map(Value::from).map_err(said)
}

fn trigger_hash(case: &Case) -> Answer {
    let hash = typed::<Trigger>(&case.input)?.hash().map_err(said)?;
    Ok(hash.to_string().into())
}

fn bitcoin_psbt(case: &Case) -> Answer {
    let payload = case.input["payload"].as_str().ok_or("no payload")?;
    let payload = Payload::decode(&text::bytes(payload).map_err(said)?).map_err(said)?;
    let psbt = match case.input["signerPublicKey"].as_str() {
        None => payload.psbt(),
        Some(key) => {
            let signatures: Vec<String> = typed(&case.input["inputSignatures"])?;
            let signatures = signatures
                .iter()
                .map(hex::decode)
                .collect::<Result<Vec<_>, _>>();
            let key = key.parse().map_err(|_| "not a public key")?;
            payload.signed(&key, &signatures.map_err(|e| e.to_string())?)
        }
    };
    Ok(hex::encode_prefixed(psbt.map_err(said)?.serialize()).into())
}

fn bitcoin_signature(case: &Case) -> Answer {
    let bytes = case.input["signature"].as_str().ok_or("no signature")?;
    let bytes = hex::decode(bytes).map_err(|e| e.to_string())?;
    if case.input["op"] == "extract" {
        return Ok(hex::encode_prefixed(partial::extract(&bytes).map_err(said)?).into());
    }
    let signature = partial::normalise(&bytes).map_err(said)?;
    Ok(hex::encode(signature.to_vec()).into())
}
