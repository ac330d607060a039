#![allow(clippy::unwrap_used, clippy::wildcard_imports, reason = "tests")]

use bitcoin::{
    Amount, Psbt, PublicKey, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness,
    absolute::LockTime,
    ecdsa,
    hashes::Hash,
    secp256k1::{Message, SECP256K1, SecretKey},
    transaction::Version,
};

use super::*;
use crate::bitcoin::{
    network::MAIN,
    raw::{RawOutput, RawScript},
};

const DEPOSITORY: &str = "bc1q82jn90vgkwvknrhxpla797tu050fj0jaaaznne";
const USER: &str = "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46";

fn pay(address: &str, value: u64) -> TxOut {
    TxOut {
        value: Amount::from_sat(value),
        script_pubkey: MAIN.script(address).unwrap(),
    }
}

fn purpose(text: &[u8; 4]) -> TxOut {
    TxOut {
        value: Amount::ZERO,
        script_pubkey: ScriptBuf::new_op_return(text),
    }
}

fn outpoint(n: u8) -> OutPoint {
    OutPoint::new(Txid::from_byte_array([n; 32]), n.into())
}

fn psbt(inputs: &[u8], outputs: Vec<TxOut>) -> Psbt {
    let input = inputs.iter().map(|n| TxIn {
        previous_output: outpoint(*n),
        script_sig: ScriptBuf::new(),
        sequence: Sequence(0xffff_fffd),
        witness: Witness::new(),
    });
    let unsigned = Transaction {
        version: Version::ONE,
        lock_time: LockTime::ZERO,
        input: input.collect(),
        output: outputs,
    };
    let mut psbt = Psbt::from_unsigned_tx(unsigned).unwrap();
    for input in &mut psbt.inputs {
        input.witness_utxo = Some(pay(DEPOSITORY, 1_000));
    }
    psbt
}

fn sought(outputs: Vec<TxOut>) -> Sought {
    Sought::new(psbt(&[1, 2], outputs), |_| true).unwrap()
}

/// Another transaction that spends these and pays so.
fn spending(inputs: &[u8], outputs: &[TxOut]) -> RawTransaction {
    let vin = inputs.iter().map(|n| RawInput {
        txid: Some(outpoint(*n).txid),
        vout: outpoint(*n).vout,
        prevout: None,
        script_sig: None,
        witness: Vec::new(),
    });
    let vout = (0..).zip(outputs).map(|(n, output)| RawOutput {
        value: output.value,
        n,
        script: RawScript {
            hex: output.script_pubkey.clone(),
        },
    });
    RawTransaction {
        txid: Txid::from_byte_array([0xee; 32]),
        vin: vin.collect(),
        vout: vout.collect(),
        blockhash: None,
    }
}

/// The same of the depository.
fn rival(inputs: &[u8], outputs: &[TxOut]) -> Rival {
    Rival::Settled {
        transaction: spending(inputs, outputs),
        by_depository: true,
    }
}

/// The same of somebody who spends only what is his.
fn stranger(inputs: &[u8], outputs: &[TxOut]) -> Rival {
    Rival::Settled {
        transaction: spending(inputs, outputs),
        by_depository: false,
    }
}

use Spender::{By, Nobody, Somebody};
use WithdrawalStatus::{Executed, Expired, Pending};

fn by(n: u8) -> Spender {
    By(Txid::from_byte_array([n; 32]))
}

#[test]
fn nothing_is_spent_and_nothing_is_decided() {
    let sought = sought(vec![pay(USER, 900)]);
    assert_eq!(sought.verdict(&[Nobody, Nobody], &[]), Ok(Pending));
    // In the memory pool, or in a block that is not final.
    let early = sought.verdict(&[by(1), by(1)], &[Rival::Early]);
    assert_eq!(early, Ok(Pending));
}

#[test]
fn an_input_that_another_transaction_spent_ends_it() {
    let sought = sought(vec![pay(USER, 900)]);
    // That it pays the same recipient as much proves nothing: it names no purpose.
    let other = || rival(&[1], &[pay(USER, 900)]);
    assert_eq!(sought.verdict(&[by(9), Nobody], &[other()]), Ok(Expired));
    assert_eq!(sought.verdict(&[Somebody; 2], &[other()]), Ok(Expired));
    let several = [other(), rival(&[2], &[])];
    assert_eq!(sought.verdict(&[by(8), by(9)], &several), Ok(Expired));
    let unnamed = sought.verdict(&[Somebody, Nobody], &[]);
    assert_eq!(unnamed, Err(Undecided::Unnamed));
}

#[test]
fn what_spends_and_pays_the_same_is_the_transaction_itself_under_another_id() {
    let sought = sought(vec![pay(USER, 900), pay(DEPOSITORY, 50)]);
    let own = || rival(&[1, 2], &[pay(USER, 900), pay(DEPOSITORY, 50)]);
    for spenders in [[by(9), by(9)], [Somebody, Somebody]] {
        assert_eq!(sought.verdict(&spenders, &[own()]), Ok(Executed));
    }
    // What pays less, more or another one, or spends less, is another transaction.
    for other in [
        rival(&[1, 2], &[pay(USER, 899), pay(DEPOSITORY, 50)]),
        rival(&[1, 2], &[pay(USER, 900)]),
        rival(&[1, 2], &[pay(DEPOSITORY, 900), pay(DEPOSITORY, 50)]),
        rival(&[1], &[pay(USER, 900), pay(DEPOSITORY, 50)]),
    ] {
        assert_eq!(sought.verdict(&[by(9), by(9)], &[other]), Ok(Expired));
    }
}

#[test]
fn the_first_transactions_that_spend_inputs_are_looked_at() {
    let most = u8::try_from(MAX_RIVALS).unwrap();
    let mut spenders: Vec<_> = (0..=most).map(by).collect();
    spenders.extend([Nobody, by(0), by(most)]);
    let mut looked = spenders.clone();
    looked[MAX_RIVALS] = Somebody;
    looked[MAX_RIVALS + 3] = Somebody;
    assert_eq!(looked_at(spenders), looked);
    // Without a purpose one of them is enough.
    let sought = sought(vec![pay(USER, 900)]);
    let one = rival(&[1], &[]);
    assert_eq!(sought.verdict(&[by(0), Somebody], &[one]), Ok(Expired));
}

#[test]
fn the_transaction_itself_is_no_rival() {
    let sought = sought(vec![pay(USER, 900)]);
    let mut own = spending(&[1, 2], &[pay(USER, 900)]);
    own.txid = sought.txid;
    let own = Rival::Settled {
        transaction: own,
        by_depository: true,
    };
    assert_eq!(sought.verdict(&[by(1), by(1)], &[own]), Ok(Executed));
}

#[test]
fn a_transaction_of_the_same_purpose_that_pays_takes_its_place() {
    let sought = sought(vec![pay(USER, 900), purpose(b"wd17")]);
    let verdict = |spenders, rivals: &[Rival]| sought.verdict(spenders, rivals);
    let bumped = rival(&[1], &[pay(USER, 900), purpose(b"wd17")]);
    let spenders = &[by(9), Nobody];
    assert_eq!(verdict(spenders, &[bumped]), Ok(Executed));
    for (outputs, wanted) in [
        // One satoshi short, and paid to another: doubtful, for its purpose says that it should.
        (
            vec![pay(USER, 899), purpose(b"wd17")],
            Err(Undecided::Ambiguous),
        ),
        (
            vec![pay(DEPOSITORY, 900), purpose(b"wd17")],
            Err(Undecided::Ambiguous),
        ),
        (vec![pay(USER, 900), purpose(b"wd18")], Ok(Expired)),
        (vec![pay(USER, 900)], Ok(Expired)),
    ] {
        let other = rival(&[1], &outputs);
        assert_eq!(verdict(spenders, &[other]), wanted, "{outputs:?}");
    }
}

#[test]
fn what_others_say_and_pay_with_their_own_outputs_is_no_withdrawal() {
    let sought = sought(vec![pay(USER, 900), purpose(b"wd17")]);
    for outputs in [
        vec![purpose(b"wd17")],
        vec![pay(USER, 900), purpose(b"wd17")],
    ] {
        let verdict = |rival, spenders: &[Spender]| sought.verdict(spenders, &[rival]);
        let ended = verdict(stranger(&[2], &outputs), &[Nobody, by(9)]);
        assert_eq!(ended, Ok(Expired), "{outputs:?}");
        // What spent the other output may have taken its place.
        let unnamed = verdict(stranger(&[2], &outputs), &[Somebody, by(9)]);
        assert_eq!(unnamed, Err(Undecided::Unnamed), "{outputs:?}");
        // The depository's own takes its place, whichever of its outputs it spends.
        let of_depository = verdict(rival(&[2, 7], &outputs), &[Nobody, by(9)]);
        assert_ne!(of_depository, Ok(Expired), "{outputs:?}");
    }
    let bumped = rival(&[1], &[pay(USER, 900), purpose(b"wd17")]);
    let both = [stranger(&[2], &[purpose(b"wd17")]), bumped];
    assert_eq!(sought.verdict(&[by(8), by(9)], &both), Ok(Executed));
}

#[test]
fn with_a_purpose_every_spender_must_be_known_and_final() {
    let sought = sought(vec![pay(USER, 900), purpose(b"wd17")]);
    let other = || rival(&[1], &[]);
    let unnamed = sought.verdict(&[Somebody, Somebody], &[other()]);
    assert_eq!(unnamed, Err(Undecided::Unnamed));
    let known = sought.verdict(&[Somebody, Nobody], &[other()]);
    assert_eq!(known, Ok(Expired));
    let early = sought.verdict(&[by(8), by(9)], &[other(), Rival::Early]);
    assert_eq!(early, Ok(Pending));
}

#[test]
fn inputs_that_are_not_the_depositorys_are_not_judged() {
    let outputs = || vec![pay(USER, 900)];
    let script = MAIN.script(DEPOSITORY).unwrap();
    let owns = |found: &Script| *found == *script;
    assert!(Sought::new(psbt(&[1], outputs()), owns).is_some());
    let refused = |change: fn(&mut Psbt)| {
        let mut psbt = psbt(&[1, 2], outputs());
        change(&mut psbt);
        Sought::new(psbt, owns).is_none()
    };
    // Somebody else may pay the fee.
    let shared = |psbt: &mut Psbt| psbt.inputs[1].witness_utxo = Some(pay(USER, 1));
    assert!(!refused(shared));
    assert!(refused(|psbt| {
        for input in &mut psbt.inputs {
            input.witness_utxo = Some(pay(USER, 1));
        }
    }));
    let legacy = "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF";
    assert!(refused(
        |psbt| psbt.inputs[1].witness_utxo = Some(pay("1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF", 1))
    ));
    assert!(refused(|psbt| psbt.inputs[1].witness_utxo = None));
    // The id of a transaction that spends such an output depends on its signatures.
    let mut nested = psbt(&[1], outputs());
    nested.inputs[0].witness_utxo = Some(pay(legacy, 1));
    assert!(Sought::new(nested, |_| true).is_none());
    assert!(Sought::new(psbt(&[], outputs()), |_| true).is_none());
}

/// A transaction that spends P2PKH outputs, each with a signature of their key.
fn legacy() -> Psbt {
    let secret = SecretKey::from_slice(&[7; 32]).unwrap();
    let key = PublicKey::new(secret.public_key(SECP256K1));
    let mut psbt = psbt(&[1, 2], vec![pay(USER, 900)]);
    for (input, byte) in psbt.inputs.iter_mut().zip(1..) {
        let message = Message::from_digest([byte; 32]);
        let signature = ecdsa::Signature::sighash_all(SECP256K1.sign_ecdsa(&message, &secret));
        input.partial_sigs.insert(key, signature);
        let spent = input.witness_utxo.as_mut().unwrap();
        spent.script_pubkey = ScriptBuf::new_p2pkh(&key.pubkey_hash());
    }
    psbt
}

#[test]
fn the_id_of_a_transaction_of_key_hashes_is_that_with_its_signatures() {
    let psbt = legacy();
    let mut signed = psbt.unsigned_tx.clone();
    for (input, shown) in signed.input.iter_mut().zip(&psbt.inputs) {
        let (key, signature) = shown.partial_sigs.first_key_value().unwrap();
        let key = key.to_bytes();
        let signature = signature.to_vec();
        // A push of each, whose length stands before it.
        let length = |bytes: &[u8]| vec![u8::try_from(bytes.len()).unwrap()];
        let script = [length(&signature), signature, length(&key), key].concat();
        input.script_sig = ScriptBuf::from_bytes(script);
    }
    let sought = Sought::new(psbt, |_| true).unwrap();
    assert_eq!(sought.txid, signed.compute_txid());
    let unsigned = legacy().unsigned_tx;
    assert_ne!(sought.txid, unsigned.compute_txid());
    // Whoever changes it, what spends the same and pays the same is the transaction.
    let malleated = rival(&[1, 2], &[pay(USER, 900)]);
    let verdict = |rivals: &[Rival], spender| sought.verdict(&[spender; 2], rivals);
    assert_eq!(verdict(&[malleated], by(0xee)), Ok(Executed));
    assert_eq!(verdict(&[rival(&[1, 2], &[])], by(0xee)), Ok(Expired));
    assert_eq!(verdict(&[], Nobody), Ok(Pending));
}

#[test]
fn of_a_transaction_of_key_hashes_each_input_is_signed_by_its_key_and_owned() {
    type Change = fn(&mut Psbt);
    let changes: [(&str, Change); 4] = [
        ("no signature", |psbt| psbt.inputs[1].partial_sigs.clear()),
        ("two signatures", |psbt| {
            let (_, signature) = psbt.inputs[1].partial_sigs.pop_first().unwrap();
            let other = SecretKey::from_slice(&[8; 32]).unwrap();
            for secret in [other, SecretKey::from_slice(&[7; 32]).unwrap()] {
                let key = PublicKey::new(secret.public_key(SECP256K1));
                psbt.inputs[1].partial_sigs.insert(key, signature);
            }
        }),
        ("another's key", |psbt| {
            let (_, signature) = psbt.inputs[1].partial_sigs.pop_first().unwrap();
            let other = SecretKey::from_slice(&[8; 32]).unwrap();
            let key = PublicKey::new(other.public_key(SECP256K1));
            psbt.inputs[1].partial_sigs.insert(key, signature);
        }),
        ("a witness address", |psbt| {
            psbt.inputs[1].witness_utxo = Some(pay(DEPOSITORY, 1_000));
        }),
    ];
    for (what, change) in changes {
        let mut psbt = legacy();
        change(&mut psbt);
        assert!(Sought::new(psbt, |_| true).is_none(), "{what}");
    }
    let mut psbt = legacy();
    let other = "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF";
    psbt.inputs[1].witness_utxo = Some(pay(other, 1_000));
    let script = MAIN.script(other).unwrap();
    assert!(Sought::new(psbt, |found| *found != *script).is_none());
    assert!(Sought::new(legacy(), |found| *found != *script).is_some());
}

#[test]
fn rivals_spend_an_input() {
    let sought = sought(vec![pay(USER, 900)]);
    for (inputs, wanted) in [
        (&[1][..], true),
        (&[3, 2], true),
        (&[3], false),
        (&[], false),
    ] {
        let other = spending(inputs, &[]);
        assert_eq!(sought.is_spent_by(&other), wanted, "{inputs:?}");
    }
}
