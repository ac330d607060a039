//! Signatures of owners and solvers.

use alloy::hex;
use serde_json::{Value, json};
use vm::{
    Bytes, Family, OwnerClaim,
    protocol::{
        owner::{Kind, Operation},
        signature::verify_personal,
    },
};

use crate::{
    harness::{Answer, Case},
    wire::{field, said, word},
};

/// The chains that the reference computed with.
const CHAINS: &[(&str, &str)] = &[
    ("arbitrum", "ethereum-vm"),
    ("base", "ethereum-vm"),
    ("bitcoin", "bitcoin-vm"),
    ("ethereum", "ethereum-vm"),
    ("hyperliquid", "hyperliquid-vm"),
    ("lighter", "lighter-vm"),
    ("solana", "solana-vm"),
    ("ton", "ton-vm"),
    ("tron", "tron-vm"),
    ("xrp", "xrp-vm"),
];

fn family(chain: &str) -> Result<&'static Family, String> {
    CHAINS
        .iter()
        .find(|(id, _)| *id == chain)
        .and_then(|(_, name)| vm::family(name))
        .ok_or_else(|| format!("Chain {chain} is not available"))
}

fn operation(of: &Value) -> Result<Operation<'_>, String> {
    Ok(Operation {
        kind: match field(of, "operation")? {
            "withdrawal" => Kind::Withdrawal,
            "transfer" => Kind::Transfer,
            other => return Err(format!("no operation {other}")),
        },
        chain_id: field(of, "chainId")?,
        currency: field(of, "currency")?,
        amount: field(of, "amount")?,
        owner_chain_id: field(of, "ownerChainId")?,
        owner: field(of, "owner")?,
        recipient: field(of, "recipient")?,
        nonce: field(of, "nonce")?,
        additional: of.get("additionalData"),
    })
}

pub fn digest(case: &Case) -> Answer {
    let operation = operation(&case.input)?;
    let canonical = operation.canonical();
    if canonical != field(&case.input, "canonical")? {
        return Err(format!("hashed {canonical}"));
    }
    let digest = vm::B256::from(operation.digest()).to_string();
    Ok(digest.trim_start_matches("0x").into())
}

/// What the case says that the owner's chain has: the key of a TON wallet, or a Lighter account's address.
fn known_key(context: &Value) -> Option<Bytes> {
    let text = context
        .get("publicKey")
        .or_else(|| context.get("l1Address"))?;
    Some(hex::decode(text.as_str()?).ok()?.into())
}

pub fn signature(case: &Case) -> Answer {
    let data = case.input.get("data").ok_or("no data")?;
    let operation = operation(data)?;
    let owners = family(operation.owner_chain_id)?
        .owners
        .ok_or("Signature verification not supported for owner chain")?;
    let context = case.input.get("context");
    let key = context.and_then(known_key);
    let claim = OwnerClaim {
        digest: operation.digest(),
        owner: operation.owner,
        signature: field(&case.input, "signature")?,
        key: key.as_ref(),
        metadata: context,
        settings: context.and_then(Value::as_object),
    };
    owners.verify(&claim).map_err(said)?;
    Ok(Value::Null)
}

pub fn order_signature(case: &Case) -> Answer {
    let (input, id) = (&case.input, word(&case.input, "orderId")?);
    let signature = field(input, "signature")?;
    let verdict = verify_personal(field(input, "address")?, id.as_slice(), signature);
    Ok(verdict.is_ok().into())
}

pub fn ton_sign_data(case: &Case) -> Answer {
    let input = &case.input;
    let operation = operation(input.get("data").ok_or("no data")?)?;
    let digest = operation.digest();
    let account = family("ton")?.address(operation.owner).map_err(said)?;
    let timestamp = input.get("timestamp").and_then(Value::as_i64);
    let hash = vm::ton::owner::sign_data_hash(
        account.bytes().try_into().map_err(said)?,
        field(input, "domain")?,
        timestamp.ok_or("no timestamp")?,
        vm::B256::from(digest).to_string().trim_start_matches("0x"),
    );
    let context = json!({
        "timestamp": timestamp,
        "domain": field(input, "domain")?,
    });
    let key = hex::decode(field(input, "publicKey")?)
        .map_err(said)?
        .into();
    let settings = json!({ "signDataDomain": "relay.link" });
    let owners = family("ton")?.owners.ok_or("no owners")?;
    let claim = OwnerClaim {
        digest,
        owner: operation.owner,
        signature: field(input, "signature")?,
        key: Some(&key),
        metadata: Some(&context),
        settings: settings.as_object(),
    };
    let hash = vm::B256::from(hash).to_string();
    Ok(json!({
        "hash": hash.trim_start_matches("0x"),
        "signatureValid": owners.verify(&claim).is_ok(),
    }))
}
