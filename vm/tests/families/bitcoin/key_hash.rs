//! Withdrawals from a P2PKH account: its signatures cover neither the values nor the scripts of what they spend.

use bitcoin::{
    Psbt, PublicKey, ScriptBuf,
    secp256k1::{Message, SECP256K1, SecretKey, ecdsa},
    sighash::SighashCache,
};
use serde_json::{Value, json};
use vm::{
    Bytes, WithdrawalInfo, WithdrawalStatus,
    bitcoin::{network::MAIN, psbt::Payload},
    protocol::{limits, request::PayloadRequest},
};

use super::{
    allocator::{self, Held, Paid, key, script_of, secret, signed_by},
    ledger::{Ledger, output, transaction},
    node::{owned_by, serve},
};

const USER: &str = "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46";

/// The P2PKH account of the key of which each byte is `byte`.
fn legacy_of(byte: u8) -> ScriptBuf {
    ScriptBuf::new_p2pkh(&key(byte).pubkey_hash())
}

fn depository() -> String {
    MAIN.address_text(&legacy_of(1)).unwrap()
}

fn outputs() -> [Paid; 2] {
    [(MAIN.script(USER).unwrap(), 900), (legacy_of(1), 1_000)]
}

/// So many outputs of 1000.
fn held(count: u32) -> Vec<Held> {
    (0..count).map(|place| ([0xfa; 32], place, 1_000)).collect()
}

/// A payload that spends two outputs of `script`.
fn payload(script: &ScriptBuf) -> Payload {
    let recorded = allocator::recorded_of(script, &held(2), &outputs());
    Payload::decode(&recorded).unwrap()
}

fn described(psbt: &Psbt) -> WithdrawalInfo {
    let codec = vm::family("bitcoin-vm").unwrap().withdrawals.unwrap();
    codec.describe(&json!({"psbt": alloy::hex::encode(psbt.serialize())}))
}

/// What the allocator is told of a withdrawal out of `depository`, with outputs to spend of these values.
fn request(depository: &str, values: &[u64]) -> PayloadRequest {
    let txid = "fa".repeat(32);
    let utxos = (0_u32..)
        .zip(values)
        .map(|(place, value)| json!({"txid": txid, "vout": place, "value": value.to_string()}));
    let utxos: Vec<Value> = utxos.collect();
    let request = json!({
        "chainId": "7", "depository": depository, "currency": "0x", "amount": "1000",
        "spender": "0x01", "recipient": USER, "nonce": "1",
        "additionalData": {"bitcoin-vm": {"allocatorUtxos": utxos, "feeRate": "1"}},
    });
    serde_json::from_value(request).unwrap()
}

fn unproven(request: &PayloadRequest) -> Option<Bytes> {
    let unproven = vm::family("bitcoin-vm").unwrap().unproven.unwrap();
    unproven(request).unwrap()
}

#[test]
fn a_key_hash_accounts_own_transaction_is_a_withdrawal_and_says_what_it_cannot_prove() {
    let payload = payload(&legacy_of(1));
    let info = described(&signed_by(&payload, 1, 1));
    assert_eq!(info.sole, Ok(()));
    // The fee of 100 is the user's, too.
    assert_eq!(info.amount, Ok("1000".into()));
    let spending = info.spending.unwrap();
    assert_eq!(spending.payer, depository());
    assert_eq!(*spending.payload, *payload.encode());
    // What is told before and what is recorded then say the same of the same outputs.
    let told = unproven(&request(&depository(), &[1_000, 1_000]));
    assert!(told.is_some());
    assert_eq!(spending.unproven, told);
    for other in [[1_000, 999], [1_001, 1_000]] {
        assert_ne!(unproven(&request(&depository(), &other)), told);
    }
}

#[test]
fn a_witness_account_proves_what_it_spends() {
    let witness = MAIN.address_text(&script_of(1)).unwrap();
    assert_eq!(unproven(&request(&witness, &[1_000])), None);
    let recorded = allocator::recorded(1, &held(2), &outputs());
    let mut paid = outputs();
    paid[1].0 = script_of(1);
    let own = allocator::recorded(1, &held(2), &paid);
    // Change to the other account of the key is a second payment.
    for (recorded, expected) in [(recorded, false), (own, true)] {
        let payload = Payload::decode(&recorded).unwrap();
        let info = described(&signed_by(&payload, 1, 1));
        assert_eq!(
            info.spending.map(|it| it.unproven),
            expected.then_some(None)
        );
    }
}

/// Signs each input of a payload as if it spent an output of P2WPKH.
fn signed_as_witness(payload: &Payload) -> Psbt {
    let unsigned = payload.psbt().unwrap();
    let mut hashes = SighashCache::new(&unsigned.unsigned_tx);
    let signatures = unsigned.inputs.iter().enumerate().map(|(at, input)| {
        let spent = input.witness_utxo.as_ref().unwrap();
        let kind = bitcoin::EcdsaSighashType::All;
        let hash = hashes.p2wpkh_signature_hash(at, &script_of(1), spent.value, kind);
        let message = Message::from(hash.unwrap());
        let signature = SECP256K1.sign_ecdsa(&message, &secret(1));
        signature.serialize_compact().to_vec()
    });
    let signatures: Vec<_> = signatures.collect();
    payload.signed(&key(1), &signatures).unwrap()
}

/// The other signature of the same message and key, which anybody can compute: its s is high.
fn twin(signature: &ecdsa::Signature) -> ecdsa::Signature {
    let mut compact = signature.serialize_compact();
    let s = SecretKey::from_slice(&compact[32..]).unwrap().negate();
    compact[32..].copy_from_slice(&s.secret_bytes());
    ecdsa::Signature::from_compact(&compact).unwrap()
}

#[test]
fn what_others_could_have_written_is_no_withdrawal_of_a_key_hash_account() {
    let payload = payload(&legacy_of(1));
    let good = signed_by(&payload, 1, 1);
    assert!(described(&good).spending.is_some());
    let mut value = good.clone();
    value.unsigned_tx.output[0].value = bitcoin::Amount::from_sat(901);
    let mut high = good.clone();
    for signature in high.inputs[0].partial_sigs.values_mut() {
        signature.signature = twin(&signature.signature);
    }
    // One input of the key's other account.
    let mut mixed = good.clone();
    let spent = mixed.inputs[1].witness_utxo.as_mut().unwrap();
    spent.script_pubkey = script_of(1);
    // The account of the key in its long form.
    let long = PublicKey::new_uncompressed(key(1).inner);
    let of_long = ScriptBuf::new_p2pkh(&long.pubkey_hash());
    let recorded = allocator::recorded_of(&of_long, &held(2), &outputs());
    let of_long = Payload::decode(&recorded).unwrap();
    let mut by_long = signed_by(&of_long, 1, 1);
    for input in &mut by_long.inputs {
        let signatures = std::mem::take(&mut input.partial_sigs);
        input.partial_sigs = signatures.into_values().map(|it| (long, it)).collect();
    }
    for (what, bad) in [
        ("unsigned", payload.psbt().unwrap()),
        ("another's signature", signed_by(&payload, 2, 1)),
        ("another's key", signed_by(&payload, 2, 2)),
        ("another transaction", value),
        ("a signature for P2WPKH", signed_as_witness(&payload)),
        ("a high s", high),
        ("two kinds", mixed),
        (
            "the short key of the long one's account",
            signed_by(&of_long, 1, 1),
        ),
        ("the long key", by_long),
    ] {
        let info = described(&bad);
        assert!(info.sole.is_err() && info.spending.is_none(), "{what}");
    }
}

#[test]
fn no_more_outputs_are_to_be_looked_up_than_are_looked_up() {
    let most = u32::try_from(limits::ITEMS).unwrap();
    for (count, expected) in [(most, true), (most + 1, false)] {
        let recorded = allocator::recorded_of(&legacy_of(1), &held(count), &outputs());
        let payload = Payload::decode(&recorded).unwrap();
        let info = described(&signed_by(&payload, 1, 1));
        assert_eq!(info.spending.is_some(), expected, "{count}");
        // Nor pays it more outputs: for each input all of them are hashed.
        let mut paid = outputs().to_vec();
        paid.resize(usize::try_from(count).unwrap(), (legacy_of(1), 1));
        let recorded = allocator::recorded_of(&legacy_of(1), &held(2), &paid);
        let payload = Payload::decode(&recorded).unwrap();
        let info = described(&signed_by(&payload, 1, 1));
        assert_eq!(info.spending.is_some(), expected, "{count}");
    }
}

#[test]
fn withdrawals_from_addresses_of_keys_are_judged_and_from_no_others() {
    let withdraws = vm::family("bitcoin-vm").unwrap().withdraws_from.unwrap();
    for (address, expected) in [
        ("bc1q82jn90vgkwvknrhxpla797tu050fj0jaaaznne", true),
        ("1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF", true),
        ("3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", false),
        (
            "bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3",
            false,
        ),
        (
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            false,
        ),
    ] {
        let address = vm::family("bitcoin-vm").unwrap().account(address).unwrap();
        assert_eq!(withdraws(&address), expected, "{address}");
    }
}

/// The id in the chain is that of the transaction with its signatures, and others may change it.
#[tokio::test]
async fn a_withdrawal_of_a_key_hash_account_is_found_under_any_id() {
    let psbt = signed_by(&payload(&legacy_of(1)), 1, 1);
    let mut signed = psbt.unsigned_tx.clone();
    for (input, shown) in signed.input.iter_mut().zip(&psbt.inputs) {
        let (key, signature) = shown.partial_sigs.iter().next().unwrap();
        let script = bitcoin::script::Builder::new().push_slice(signature.serialize());
        input.script_sig = script.push_key(key).into_script();
    }
    let id = signed.compute_txid().to_string();
    let malleated = "ee".repeat(32);
    let fund = "fa".repeat(32);
    let spent = |id: &str, places: &[u32], paid: &[Paid]| {
        let inputs: Vec<_> = places.iter().map(|place| (&*fund, *place)).collect();
        let paid = paid.iter();
        let paid = paid.map(|(script, value)| output(&script.to_hex_string(), *value));
        transaction(id, &inputs, paid.collect())
    };
    let own = outputs();
    for (mined, named, expected) in [
        (None, None, Ok(WithdrawalStatus::Pending)),
        (
            Some(spent(&id, &[0, 1], &own)),
            None,
            Ok(WithdrawalStatus::Executed),
        ),
        // A node alone does not know what spent an output.
        (Some(spent(&malleated, &[0, 1], &own)), None, Err(())),
        (
            Some(spent(&malleated, &[0, 1], &own)),
            Some(&malleated),
            Ok(WithdrawalStatus::Executed),
        ),
        (
            Some(spent(&malleated, &[0], &own)),
            Some(&malleated),
            Ok(WithdrawalStatus::Expired),
        ),
    ] {
        let pay = || output(&legacy_of(1).to_hex_string(), 1_000);
        let mut ledger = Ledger::new();
        ledger.mine(vec![transaction(&fund, &[], vec![pay(), pay()])]);
        ledger.mine(mined.into_iter().collect());
        ledger.bury(3);
        let node = serve(ledger).await;
        let spec = owned_by(&depository(), json!({}));
        let provider = node.open(&spec);
        let head = provider.reader.head().await.unwrap();
        let state = provider.state.unwrap();
        let block = state.settled(&head).await.unwrap().unwrap();
        let tx = named.map(|id| spec.family.tx(id, None).unwrap());
        let encoded = Bytes::from(psbt.serialize());
        let said = state.withdrawal(&encoded, tx.as_ref(), &block).await;
        assert_eq!(said.map_err(|_| ()), expected, "{named:?}");
        // Without signatures nobody knows the id.
        let unsigned = payload(&legacy_of(1)).psbt().unwrap();
        let unsigned = Bytes::from(unsigned.serialize());
        let said = state.withdrawal(&unsigned, tx.as_ref(), &block).await;
        assert!(matches!(said, Err(vm::ReadError::Foreign(_))), "{said:?}");
    }
}
