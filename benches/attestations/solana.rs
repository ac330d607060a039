//! A Solana chain with a deposit for each request, as Solana's nodes show them.

use alloy::primitives::keccak256;
use serde_json::{Value, json};

use super::prepared::Prepared;

/// What a node is asked to see how long a round trip takes.
pub const PROBE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"getSlot","params":[]}"#;

const TIP: u64 = 300_000_000;
/// The transactions lie in this many slots below the newest.
const RECENT: u64 = 16;
/// Two slots take a little less than a second.
const TIP_TIME: u64 = 1_760_000_000;
/// The depository and its account of the native currency.
const DEPOSITORY: &str = "99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2";
const VAULT: &str = "7uTT8Xi5RWXzy7h9XL244GRgEycDYDhLjr3ZyNdXi8pZ";
const SYSTEM: &str = "11111111111111111111111111111111";
/// Anchor's discriminator: the first 8 bytes of sha256 of `global:deposit_native`.
const DEPOSIT_NATIVE: [u8; 8] = [0x0d, 0x9e, 0x0d, 0xdf, 0x5f, 0xd5, 0x1c, 0x06];
/// Lamports.
const AMOUNT: u64 = 1_000_000;
const FEE: u64 = 5_000;
const BALANCE: u64 = 5_000_000_000;

/// A chain with `count` deposits in its newest slots.
pub fn chain(count: u32) -> Prepared {
    let mut chain = Prepared::new(json!({
        "id": "solana",
        "vmType": "solana-vm",
        "httpRpcUrl": "$SOLANA_RPC_URL",
        "hubChainId": "900004",
        "depository": DEPOSITORY,
        "additionalData": { "genesisHash": block(0) },
    }));
    chain.say("getGenesisHash", "", &json!(block(0)));
    chain.say("getSlot", "", &json!(TIP));
    for slot in TIP - RECENT..=TIP {
        chain.say("getBlockTime", slot, &json!(time(slot)));
        let shown = json!({
            "blockHeight": slot,
            "blockTime": time(slot),
            "blockhash": block(slot),
            "parentSlot": slot - 1,
            "previousBlockhash": block(slot - 1),
        });
        chain.say("getBlock", slot, &shown);
    }
    for number in 0..count {
        let half = |name: &str| keccak256(format!("solana {name} {number}"));
        let halves = [half("transaction").0, half("signature").0];
        let signature = bs58::encode(halves.concat()).into_string();
        let slot = TIP - 1 - u64::from(number) % RECENT;
        let shown = deposit(number, &signature, slot);
        chain.say("getTransaction", &signature, &shown);
        chain.request(&signature);
    }
    chain
}

fn time(slot: u64) -> u64 {
    TIP_TIME - (TIP - slot) * 2 / 5
}

/// The hash of the block at a slot.
fn block(slot: u64) -> String {
    bs58::encode(keccak256(format!("solana {slot}"))).into_string()
}

/// A user's deposit of the native currency for an order.
fn deposit(number: u32, signature: &str, slot: u64) -> Value {
    let account = |byte: u8| bs58::encode([byte; 32]).into_string();
    let (user, settings) = (account(5), account(0xdd));
    let order = keccak256(number.to_string());
    let amount = AMOUNT.to_le_bytes();
    let data = |parts: &[&[u8]]| bs58::encode(parts.concat()).into_string();
    let said = data(&[&DEPOSIT_NATIVE, &amount, order.as_slice()]);
    let transfer = data(&[&2_u32.to_le_bytes(), &amount]);
    json!({
        "slot": slot,
        "blockTime": time(slot),
        "version": 0,
        "meta": {
            "err": null,
            "status": { "Ok": null },
            "fee": FEE,
            "computeUnitsConsumed": 12_345,
            "preBalances": [BALANCE, BALANCE, 1, 1, 1],
            "postBalances": [BALANCE - AMOUNT - FEE, BALANCE + AMOUNT, 1, 1, 1],
            "innerInstructions": [{
                "index": 0,
                "instructions": [
                    { "programIdIndex": 2, "accounts": [0, 1], "data": transfer, "stackHeight": 2 },
                ],
            }],
            "preTokenBalances": [],
            "postTokenBalances": [],
            "loadedAddresses": { "writable": [], "readonly": [] },
            "logMessages": [
                format!("Program {DEPOSITORY} invoke [1]"),
                "Program log: Instruction: DepositNative",
                format!("Program {SYSTEM} invoke [2]"),
                format!("Program {SYSTEM} success"),
                format!("Program {DEPOSITORY} consumed 12345 of 200000 compute units"),
                format!("Program {DEPOSITORY} success"),
            ],
            "rewards": [],
        },
        "transaction": {
            "signatures": [signature],
            "message": {
                "header": {
                    "numRequiredSignatures": 1,
                    "numReadonlySignedAccounts": 0,
                    "numReadonlyUnsignedAccounts": 3,
                },
                "accountKeys": [user, VAULT, SYSTEM, DEPOSITORY, settings],
                "recentBlockhash": block(slot - 1),
                "instructions": [
                    { "programIdIndex": 3, "accounts": [4, 0, 0, 1, 2], "data": said, "stackHeight": 1 },
                ],
                "addressTableLookups": [],
            },
        },
    })
}
