//! What a withdrawal says of outputs whose values its signatures do not cover, and whether it is so. Pure.
//!
//! The id of a transaction is its hash: what it pays follows from the id that the withdrawal names, wherever the
//! transaction stands.

use std::collections::{BTreeMap, BTreeSet};

use alloy::sol_types::SolValue;
use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction, TxOut, Txid, hashes::Hash};

use self::abi::{Unproven, Utxo};
use crate::{ReadError, protocol::limits, types::Bytes};

mod abi {
    alloy::sol! {
        struct Utxo { bytes32 txid; uint32 index; uint64 value; bytes scriptPubKey; }
        struct Unproven { Utxo[] utxos; }
    }
}

/// What a withdrawal says of the `outputs` that it spends, as [`Outputs::read`] reads it.
pub fn of(outputs: &[(OutPoint, TxOut)]) -> Bytes {
    let utxo = |(outpoint, output): &(OutPoint, TxOut)| Utxo {
        txid: outpoint.txid.to_byte_array().into(),
        index: outpoint.vout,
        value: output.value.to_sat(),
        scriptPubKey: output.script_pubkey.to_bytes().into(),
    };
    let utxos = outputs.iter().map(utxo).collect();
    Unproven { utxos }.abi_encode().into()
}

/// Outputs as a withdrawal says that they are.
pub struct Outputs(BTreeMap<OutPoint, TxOut>);

impl Outputs {
    /// Refuses another form, an output that stands there twice, and more than [`limits::ITEMS`].
    pub fn read(said: &[u8]) -> Result<Self, ReadError> {
        let foreign = || ReadError::Foreign("not outputs of this chain");
        let read = Unproven::abi_decode(said).map_err(|_| foreign())?.utxos;
        let count = read.len();
        let output = |utxo: Utxo| {
            let outpoint = OutPoint::new(Txid::from_byte_array(utxo.txid.0), utxo.index);
            let output = TxOut {
                value: Amount::from_sat(utxo.value),
                script_pubkey: ScriptBuf::from_bytes(utxo.scriptPubKey.to_vec()),
            };
            (outpoint, output)
        };
        let outputs: BTreeMap<_, _> = read.into_iter().map(output).collect();
        let sound = outputs.len() == count && (1..=limits::ITEMS).contains(&count);
        sound.then_some(Self(outputs)).ok_or_else(foreign)
    }

    /// The transactions that have them, each once.
    pub fn transactions(&self) -> BTreeSet<Txid> {
        self.0.keys().map(|outpoint| outpoint.txid).collect()
    }

    /// Whether a transaction has those with its id as they are said to be; `None`: the provider does not know it.
    pub fn are_of(&self, txid: Txid, found: Option<&Transaction>) -> Result<bool, ReadError> {
        let Some(found) = found else {
            return Ok(false);
        };
        if found.compute_txid() != txid {
            return Err(ReadError::Doubtful("another transaction".into()));
        }
        let of = OutPoint::new(txid, 0)..=OutPoint::new(txid, u32::MAX);
        let paid = |index: u32| found.output.get(usize::try_from(index).ok()?);
        let mut said = self.0.range(of);
        Ok(said.all(|(outpoint, output)| paid(outpoint.vout) == Some(output)))
    }
}
