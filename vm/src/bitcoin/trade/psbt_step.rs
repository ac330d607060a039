//! A user's deposit as a PSBT (BIP 174), which the user's wallet signs and finalises. Pure.
//!
//! It pays the depository, names the order in an OP_RETURN (guide: protocol 3.4), and returns the rest to the user. It
//! is replaceable (BIP 125), so that its owner can raise the fee.

use std::collections::HashMap;

use bitcoin::{
    Amount, Psbt, Script, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness,
    absolute::LockTime, psbt::Input, transaction::Version,
};

use super::{coin::Coin, select::Selection, spend_kind::SpendKind};
use crate::CodecError;

/// Weight of an input that shows neither script nor witness.
const BARE: u64 = (32 + 4 + 1 + 4) * 4;

/// What a deposit's transaction is made of. All coins are outputs of one script.
pub struct Parts<'a> {
    pub script: &'a Script,
    pub kind: &'a SpendKind,
    pub selection: &'a Selection,
    /// Without change.
    pub outputs: Vec<TxOut>,
    /// The transactions whose outputs are spent, where the signature does not commit to what they hold.
    pub previous: &'a HashMap<Txid, Transaction>,
}

/// The unsigned PSBT. An error where a previous transaction is missing or has no such output.
pub fn unsigned(parts: Parts<'_>) -> Result<Psbt, CodecError> {
    let Parts {
        script,
        kind,
        selection,
        mut outputs,
        previous,
    } = parts;
    if let Some(change) = selection.change {
        outputs.push(TxOut {
            value: Amount::from_sat(change),
            script_pubkey: script.to_owned(),
        });
    }
    let inputs = selection.coins.iter().map(|coin| TxIn {
        previous_output: coin.outpoint,
        script_sig: ScriptBuf::new(),
        sequence: Sequence::ENABLE_RBF_NO_LOCKTIME,
        witness: Witness::new(),
    });
    let unsigned = Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: inputs.collect(),
        output: outputs,
    };
    let mut psbt = Psbt::from_unsigned_tx(unsigned).map_err(refused)?;
    for (input, coin) in psbt.inputs.iter_mut().zip(&selection.coins) {
        *input = shown(coin, (script, kind), previous)?;
    }
    Ok(psbt)
}

/// What a wallet must know of an input to sign and finalise it.
fn shown(
    coin: &Coin,
    (script, kind): (&Script, &SpendKind),
    previous: &HashMap<Txid, Transaction>,
) -> Result<Input, CodecError> {
    let spent = TxOut {
        value: Amount::from_sat(coin.value),
        script_pubkey: script.to_owned(),
    };
    let mut input = Input::default();
    match kind {
        SpendKind::KeyHash { .. } => {
            let whole = previous.get(&coin.outpoint.txid);
            let whole = whole.filter(|it| output(it, coin) == Some(&spent));
            let missing = || CodecError("a previous transaction has no such output".into());
            input.non_witness_utxo = Some(whole.ok_or_else(missing)?.clone());
            return Ok(input);
        }
        SpendKind::NestedKeyHash(inner) => input.redeem_script = Some(inner.clone()),
        SpendKind::WitnessScript { script, .. } => input.witness_script = Some(script.clone()),
        SpendKind::Taproot { internal } => input.tap_internal_key = *internal,
        SpendKind::WitnessKeyHash => {}
    }
    input.witness_utxo = Some(spent);
    Ok(input)
}

fn output<'a>(transaction: &'a Transaction, coin: &Coin) -> Option<&'a TxOut> {
    let place = usize::try_from(coin.outpoint.vout).ok()?;
    transaction.output.get(place)
}

/// The PSBT with `note` in place of its OP_RETURN. An error unless it has exactly one.
pub fn with_note(mut psbt: Psbt, note: &TxOut) -> Result<Psbt, CodecError> {
    let outputs = psbt.unsigned_tx.output.iter_mut();
    let mut notes = outputs.filter(|output| output.script_pubkey.is_op_return());
    let (Some(found), None) = (notes.next(), notes.next()) else {
        return Err(CodecError("not exactly one OP_RETURN".into()));
    };
    *found = note.clone();
    Ok(psbt)
}

/// Virtual bytes of the transaction once it is signed, at most.
pub fn work(psbt: &Psbt) -> u64 {
    let kinds = psbt.inputs.iter().enumerate();
    let kinds: Vec<_> = kinds.map(|(at, input)| kind(psbt, at, input)).collect();
    let of = |kind: &Option<SpendKind>| kind.as_ref().map_or(0, |kind| kind.weight() - BARE);
    let is_witness = |kind: &Option<SpendKind>| kind.as_ref().is_some_and(SpendKind::is_witness);
    let marks = if kinds.iter().any(is_witness) { 2 } else { 0 };
    let signatures: u64 = kinds.iter().map(of).sum();
    let weight = psbt.unsigned_tx.weight().to_wu();
    (weight + signatures + marks).div_ceil(4)
}

fn kind(psbt: &Psbt, at: usize, input: &Input) -> Option<SpendKind> {
    if let Some(inner) = &input.redeem_script {
        return Some(SpendKind::NestedKeyHash(inner.clone()));
    }
    if let Some(script) = &input.witness_script {
        return Some(SpendKind::WitnessScript {
            script: script.clone(),
            hashed: script.is_p2pkh(),
        });
    }
    let spent = psbt.unsigned_tx.input.get(at)?.previous_output;
    let before = input.non_witness_utxo.as_ref();
    let before = before.and_then(|it| it.output.get(usize::try_from(spent.vout).ok()?));
    let spent = input.witness_utxo.as_ref().or(before)?;
    SpendKind::of(&spent.script_pubkey)
}

fn refused(error: bitcoin::psbt::Error) -> CodecError {
    CodecError(error.to_string())
}

#[cfg(test)]
mod tests;
