//! Attested mappings: what clients signed, made an entry of the hub's generic mapping.

use intentd::attest::{
    Refusal,
    mapping::{Entry, Network, NoFillOrRefundClaim, NonceMappingClaim},
};
use serde_json::{Value, json};
use vm::U256;

use crate::harness::{Answer, Case, Row};

pub const ROWS: &[Row] = &[
    ("no_fill_or_refund_attestation.json", no_fill_or_refund),
    ("nonce_mapping_attestation.json", nonce_mapping),
];

/// Name, family and number at the hub of the chains that the reference computed with. No typed
/// message names the number of a chain that is not EVM.
const CHAINS: &[(&str, &str, u64)] = &[
    ("arbitrum", "ethereum-vm", 42161),
    ("base", "ethereum-vm", 8453),
    ("bitcoin", "bitcoin-vm", 0),
    ("ethereum", "ethereum-vm", 1),
    ("hyperliquid", "hyperliquid-vm", 0),
    ("lighter", "lighter-vm", 0),
    ("solana", "solana-vm", 0),
    ("ton", "ton-vm", 0),
    ("tron", "tron-vm", 728_126_428),
    ("xrp", "xrp-vm", 0),
];

fn network(chain: &str) -> Option<Network> {
    let (_, family, number) = CHAINS.iter().find(|(name, ..)| *name == chain)?;
    Some(Network {
        family: vm::family(family)?,
        hub_chain_id: U256::from(*number),
    })
}

fn text<'a>(of: &'a Value, key: &str) -> Result<&'a str, String> {
    of[key].as_str().ok_or_else(|| format!("no text {key}"))
}

fn nonce_mapping(case: &Case) -> Answer {
    let input = &case.input;
    let claim = NonceMappingClaim {
        wallet_chain_id: text(input, "walletChainId")?,
        wallet: text(input, "wallet")?,
        nonce: text(input, "nonce")?,
        id: text(input, "id")?,
        depositor: Some(text(input, "depositor")?),
        signature_chain_id: text(input, "signatureChainId")?,
        signature: text(input, "signature")?,
    };
    answer(claim.judge(&network))
}

fn no_fill_or_refund(case: &Case) -> Answer {
    let input = &case.input;
    let claim = NoFillOrRefundClaim {
        solver_chain_id: text(input, "solverChainId")?,
        solver: text(input, "solver")?,
        order_id: text(input, "orderId")?,
        signature: text(input, "signature")?,
    };
    answer(claim.judge(&network))
}

fn answer(verdict: Result<Entry, Refusal>) -> Answer {
    let Entry { mapping, data } = verdict.map_err(|refusal| refusal.to_string())?;
    Ok(json!({ "genericMapping": {
        "user": mapping.user.to_checksum(None),
        "id": mapping.id,
        "data": data,
        "nonce": mapping.nonce,
    }}))
}
