use std::collections::HashMap;

use bitcoin::{
    Amount, OutPoint, Psbt, PublicKey, Script, ScriptBuf, Transaction, TxOut, Txid,
    absolute::LockTime,
    blockdata::script::Builder,
    ecdsa,
    key::TapTweak,
    opcodes::all::OP_CHECKSIG,
    secp256k1::{All, Keypair, Message, Secp256k1, SecretKey},
    sighash::{Prevouts, SighashCache, TapSighashType},
    taproot,
    transaction::Version,
};
use miniscript::psbt::PsbtExt;

use super::*;
use crate::{
    bitcoin::trade::{
        body,
        select::{Wanted, select},
    },
    types::B256,
};

const RATE: u64 = 7;

fn secp() -> Secp256k1<All> {
    Secp256k1::new()
}

fn secret() -> SecretKey {
    SecretKey::from_slice(&[7; 32]).unwrap()
}

fn key() -> PublicKey {
    PublicKey::new(secret().public_key(&secp()))
}

/// Scripts that the key spends, one of each kind.
fn scripts() -> Vec<ScriptBuf> {
    let inner = ScriptBuf::new_p2wpkh(&key().wpubkey_hash().unwrap());
    let bare = Builder::new().push_key(&key()).push_opcode(OP_CHECKSIG);
    let (internal, _) = key().inner.x_only_public_key();
    vec![
        ScriptBuf::new_p2pkh(&key().pubkey_hash()),
        inner.to_p2sh(),
        inner,
        bare.into_script().to_p2wsh(),
        ScriptBuf::new_p2tr(&secp(), internal, None),
    ]
}

/// A transaction whose output 1 pays a script; its lock time tells it from others.
fn previous(script: &Script, value: u64, number: u32) -> Transaction {
    let output = |value, script: &Script| TxOut {
        value: Amount::from_sat(value),
        script_pubkey: script.to_owned(),
    };
    Transaction {
        version: Version::TWO,
        lock_time: LockTime::from_consensus(number),
        input: vec![TxIn::default()],
        output: vec![output(5, script), output(value, script)],
    }
}

fn depository() -> ScriptBuf {
    let mut script = vec![0, 20];
    script.extend([9; 20]);
    script.into()
}

/// The unsigned deposit of 100,000 satoshis out of outputs of `values`.
fn made(script: &Script, values: &[u64]) -> (Psbt, Selection) {
    let all = (1..).zip(values);
    let all: Vec<_> = all
        .map(|(at, value)| previous(script, *value, at))
        .collect();
    let coins = all.iter().zip(values).map(|(transaction, value)| Coin {
        outpoint: OutPoint::new(transaction.compute_txid(), 1),
        value: *value,
        height: 1,
    });
    let coins: Vec<_> = coins.collect();
    let kind = SpendKind::by(script, &key()).unwrap();
    let paid = TxOut {
        value: Amount::from_sat(100_000),
        script_pubkey: depository(),
    };
    let outputs = vec![paid, body::note(B256::ZERO)];
    let wanted = Wanted {
        outputs: &outputs,
        change: script,
        rate: RATE,
        kind: &kind,
        required: 0,
        most: 10,
    };
    let selection = select(&coins, &wanted).unwrap();
    let previous: HashMap<Txid, Transaction> =
        all.into_iter().map(|it| (it.compute_txid(), it)).collect();
    let psbt = unsigned(Parts {
        script,
        kind: &kind,
        selection: &selection,
        outputs: outputs.clone(),
        previous: &previous,
    });
    (psbt.unwrap(), selection)
}

fn spent(psbt: &Psbt) -> Vec<TxOut> {
    let inputs = psbt.inputs.iter().zip(&psbt.unsigned_tx.input);
    let spent = inputs.map(|(shown, input)| match &shown.non_witness_utxo {
        Some(whole) => whole.output[input.previous_output.vout as usize].clone(),
        None => shown.witness_utxo.clone().unwrap(),
    });
    spent.collect()
}

/// Signs every input as a wallet with the key does.
fn sign(psbt: &mut Psbt) {
    let (secp, unsigned, spent) = (secp(), psbt.unsigned_tx.clone(), spent(psbt));
    let mut cache = SighashCache::new(&unsigned);
    for (at, output) in spent.iter().enumerate() {
        if output.script_pubkey.is_p2tr() {
            let all = Prevouts::All(&spent);
            let sighash_type = TapSighashType::Default;
            let hash = cache.taproot_key_spend_signature_hash(at, &all, sighash_type);
            let pair = Keypair::from_secret_key(&secp, &secret());
            let pair = pair.tap_tweak(&secp, None).to_keypair();
            let signature = secp.sign_schnorr_no_aux_rand(&Message::from(hash.unwrap()), &pair);
            psbt.inputs[at].tap_key_sig = Some(taproot::Signature {
                signature,
                sighash_type,
            });
        } else {
            let (message, sighash_type) = psbt.sighash_ecdsa(at, &mut cache).unwrap();
            let signature = ecdsa::Signature {
                signature: secp.sign_ecdsa(&message, &secret()),
                sighash_type,
            };
            psbt.inputs[at].partial_sigs.insert(key(), signature);
        }
    }
}

#[test]
fn a_wallet_signs_and_finalises_the_deposit_of_every_kind_of_account() {
    for script in scripts() {
        for values in [&[200_000][..], &[60_000, 30_000, 40_000][..]] {
            let (psbt, selection) = made(&script, values);
            let psbt = with_note(psbt, &body::note(B256::repeat_byte(0xee))).unwrap();
            // As it goes to the wallet and comes back.
            let mut psbt = Psbt::deserialize(&psbt.serialize()).unwrap();
            let work = work(&psbt);
            let all: u64 = spent(&psbt).iter().map(|it| it.value.to_sat()).sum();
            sign(&mut psbt);
            psbt.finalize_mut(&secp()).unwrap();
            let signed = psbt.extract(&secp()).unwrap();
            // Signatures are some bytes shorter than they may be.
            let size = signed.vsize() as u64;
            let inputs = signed.input.len() as u64;
            assert!(
                (size..=size + 3 * inputs).contains(&work),
                "{script}: {size} {work}"
            );
            let paid: u64 = signed.output.iter().map(|it| it.value.to_sat()).sum();
            assert_eq!(all - paid, selection.fee);
            assert_eq!(selection.fee, work * RATE, "{script}");
            assert_eq!(signed.output[0].script_pubkey, depository());
            assert_eq!(signed.output[0].value.to_sat(), 100_000);
            assert_eq!(signed.output[2].script_pubkey, script);
            assert!(signed.input.iter().all(|it| it.sequence.is_rbf()));
        }
    }
}

#[test]
fn a_wrong_signature_is_noticed() {
    let (mut psbt, _) = made(&scripts()[2], &[200_000]);
    sign(&mut psbt);
    psbt.unsigned_tx.output[0].value -= Amount::from_sat(1);
    let finalised = psbt.finalize_mut(&secp());
    assert!(finalised.is_err() || psbt.extract(&secp()).is_err());
}

#[test]
fn an_input_shows_what_its_wallet_must_know_and_no_more() {
    for (at, script) in scripts().iter().enumerate() {
        let (psbt, _) = made(script, &[200_000]);
        let input = &psbt.inputs[0];
        assert_eq!(input.non_witness_utxo.is_some(), at == 0);
        assert_eq!(input.witness_utxo.is_some(), at != 0);
        assert_eq!(input.redeem_script.is_some(), at == 1);
        assert_eq!(input.witness_script.is_some(), at == 3);
        let (internal, _) = key().inner.x_only_public_key();
        assert_eq!(input.tap_internal_key, (at == 4).then_some(internal));
    }
}

#[test]
fn a_previous_transaction_that_holds_something_else_is_refused() {
    let script = &scripts()[0];
    let (_, selection) = made(script, &[200_000]);
    let refused = |previous: Option<Transaction>| {
        let previous = previous.map(|it| (selection.coins[0].outpoint.txid, it));
        unsigned(Parts {
            script,
            kind: &SpendKind::KeyHash {
                uncompressed: false,
            },
            selection: &selection,
            outputs: Vec::new(),
            previous: &previous.into_iter().collect(),
        })
        .is_err()
    };
    assert!(!refused(Some(previous(script, 200_000, 1))));
    assert!(refused(Some(previous(script, 200_001, 1))));
    assert!(refused(Some(previous(&scripts()[2], 200_000, 1))));
    assert!(refused(None));
}

#[test]
fn a_note_is_put_into_the_one_place_for_it() {
    let (psbt, _) = made(&scripts()[2], &[200_000]);
    let note = body::note(B256::repeat_byte(1));
    let named = with_note(psbt.clone(), &note).unwrap();
    assert_eq!(named.unsigned_tx.output[1], note);
    assert_eq!(work(&named), work(&psbt));
    let mut without = psbt.clone();
    without.unsigned_tx.output.remove(1);
    assert!(with_note(without, &note).is_err());
    let mut twice = psbt;
    twice.unsigned_tx.output.push(note.clone());
    assert!(with_note(twice, &note).is_err());
}
