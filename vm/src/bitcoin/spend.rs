//! What became of an allocator's transaction: it is in the chain, another one spent its inputs, or neither (guide:
//! protocol 8.5). Pure.
//!
//! Signatures are not compared: one transaction may have several. Where all inputs are of witness programs, the id of the
//! unsigned transaction is the one that it has in the chain. Where all are P2PKH outputs, the id is of the transaction
//! with its signatures, and anybody can make another id of it. What an input is of is the requester's word, and
//! the allocator's signatures do not cover it, either: a transaction of another id is the sought one, too, if it spends
//! the same and pays the same.

use std::collections::HashSet;

use bitcoin::{OutPoint, Psbt, Script, Txid};

use super::{
    raw::{RawInput, RawOutput, RawTransaction},
    signing::legacy_script,
    source::Spender,
};
use crate::types::WithdrawalStatus;

/// The most inputs of an allocator's transaction that is judged.
pub const MAX_INPUTS: usize = 1_000;
/// The most other transactions that are looked at, and the most inputs of a request that is authorized: each may be spent
/// by another transaction.
pub const MAX_RIVALS: usize = 32;

/// An allocator's transaction, to be found in the chain.
pub struct Sought {
    unsigned: bitcoin::Transaction,
    pub inputs: Vec<OutPoint>,
    /// The id in the chain, unless others changed it.
    pub txid: Txid,
}

/// A transaction that may have spent inputs of the sought one.
pub enum Rival {
    /// In a block that is final.
    Settled {
        transaction: RawTransaction,
        /// Whether it spends an output of a depository, or may do so, since the provider does not show what an input spends.
        by_depository: bool,
    },
    /// Not there yet.
    Early,
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    #[error("an input is spent, and nobody says by which transaction")]
    Unnamed,
    #[error("another transaction of the same purpose pays otherwise")]
    Ambiguous,
}

impl Sought {
    /// Of a transaction whose inputs are all of witness programs, one of them a P2WPKH output that `owns` knows: somebody
    /// else may pay the fee. Or of one whose inputs are all P2PKH outputs that it knows, each signed by its key: without
    /// the signatures nobody knows the id. `None` of any other.
    pub fn new(psbt: Psbt, owns: impl Fn(&Script) -> bool) -> Option<Self> {
        let count = psbt.inputs.len();
        let spent = psbt.inputs.iter().map(|input| input.witness_utxo.as_ref());
        let spent: Vec<_> = spent.collect::<Option<_>>()?;
        let mut scripts = spent.iter().map(|spent| &*spent.script_pubkey);
        let txid = match scripts.clone().all(Script::is_witness_program) {
            true => {
                let owned = scripts.any(|script| script.is_p2wpkh() && owns(script));
                owned.then(|| psbt.unsigned_tx.compute_txid())?
            }
            false => scripts.all(owns).then(|| legacy_txid(&psbt))??,
        };
        let inputs = psbt.unsigned_tx.input.iter();
        let inputs: Vec<_> = inputs.map(|input| input.previous_output).collect();
        ((1..=MAX_INPUTS).contains(&count) && inputs.len() == count).then_some(Self {
            unsigned: psbt.unsigned_tx,
            inputs,
            txid,
        })
    }

    /// Whether a transaction spends one of the inputs.
    pub fn is_spent_by(&self, transaction: &RawTransaction) -> bool {
        let inputs: HashSet<_> = self.inputs.iter().collect();
        spent(transaction).any(|outpoint| inputs.contains(&outpoint))
    }

    /// The verdict on a transaction that is in no final block. `spenders` has one entry for each input.
    ///
    /// A transaction of a depository that names the same purpose (an OP_RETURN) and pays the same recipient as much was
    /// made in its place, for example with a higher fee: the withdrawal is executed. It may spend other outputs of the
    /// depository. What others say and pay with their own outputs only is no withdrawal, though it may end this one:
    /// they may have spent the output that was to pay the fee.
    pub fn verdict(
        &self,
        spenders: &[Spender],
        rivals: &[Rival],
    ) -> Result<WithdrawalStatus, Undecided> {
        let settled = || {
            rivals.iter().filter_map(|rival| match rival {
                Rival::Settled {
                    transaction,
                    by_depository,
                } => Some((transaction, *by_depository)),
                Rival::Early => None,
            })
        };
        let by_depository = || settled().filter(|(_, by)| *by).map(|(rival, _)| rival);
        // The transaction itself may have become final since it was looked for.
        let is_own = settled().any(|(rival, _)| rival.txid == self.txid || self.is_equal_to(rival));
        if is_own || by_depository().any(|rival| self.is_replaced_by(rival)) {
            return Ok(WithdrawalStatus::Executed);
        }
        if by_depository().any(|rival| self.has_purpose_of(rival)) {
            return Err(Undecided::Ambiguous);
        }
        let lost = settled().next().is_some();
        // Without a purpose no other transaction can have it: one that spent an input is enough.
        if lost && self.purposes().next().is_none() {
            return Ok(WithdrawalStatus::Expired);
        }
        if !self.covers(spenders, settled().flat_map(|(rival, _)| spent(rival))) {
            return Err(Undecided::Unnamed);
        }
        let early = rivals.iter().any(|rival| matches!(rival, Rival::Early));
        Ok(match lost && !early {
            true => WithdrawalStatus::Expired,
            false => WithdrawalStatus::Pending,
        })
    }

    /// Whether every input that somebody spent is among `spent`, or its spender is named.
    fn covers(&self, spenders: &[Spender], spent: impl Iterator<Item = OutPoint>) -> bool {
        let spent: HashSet<_> = spent.collect();
        let mut each = self.inputs.iter().zip(spenders);
        each.all(|(input, spender)| *spender != Spender::Somebody || spent.contains(input))
    }

    /// The OP_RETURN scripts that say something.
    fn purposes(&self) -> impl Iterator<Item = &Script> {
        let scripts = self.unsigned.output.iter().map(|it| &*it.script_pubkey);
        scripts.filter(|script| script.is_op_return() && script.len() > 2)
    }

    fn has_purpose_of(&self, rival: &RawTransaction) -> bool {
        let mut purposes = self.purposes();
        let scripts = || rival.vout.iter().map(|output| &*output.script.hex);
        purposes.any(|purpose| scripts().any(|script| script == purpose))
    }

    /// Whether it spends the same and pays the same: the sought transaction, whose id other signatures changed.
    fn is_equal_to(&self, rival: &RawTransaction) -> bool {
        let paid = |output: &RawOutput| (output.value, output.script.hex.clone());
        let pays = self.unsigned.output.iter();
        let pays = pays.map(|output| (output.value, output.script_pubkey.clone()));
        spent(rival).eq(self.inputs.iter().copied()) && rival.vout.iter().map(paid).eq(pays)
    }

    fn is_replaced_by(&self, rival: &RawTransaction) -> bool {
        let Some(payment) = self.unsigned.output.first() else {
            return false;
        };
        let paid = rival.vout.iter().any(|output| {
            output.script.hex == payment.script_pubkey && output.value >= payment.value
        });
        paid && self.has_purpose_of(rival)
    }
}

/// The spenders, of which the first [`MAX_RIVALS`] are looked at: the others stay unnamed.
pub fn looked_at(mut spenders: Vec<Spender>) -> Vec<Spender> {
    let mut named = HashSet::new();
    for spender in &mut spenders {
        let Spender::By(txid) = *spender else {
            continue;
        };
        if named.len() < MAX_RIVALS || named.contains(&txid) {
            named.insert(txid);
        } else {
            *spender = Spender::Somebody;
        }
    }
    spenders
}

/// The id of a transaction all inputs of which spend P2PKH outputs; `None` unless each has its key's signature.
fn legacy_txid(psbt: &Psbt) -> Option<Txid> {
    let mut signed = psbt.unsigned_tx.clone();
    for (input, shown) in signed.input.iter_mut().zip(&psbt.inputs) {
        input.script_sig = legacy_script(shown)?;
    }
    Some(signed.compute_txid())
}

fn spent(transaction: &RawTransaction) -> impl Iterator<Item = OutPoint> {
    let outpoint = |input: &RawInput| Some(OutPoint::new(input.txid?, input.vout));
    transaction.vin.iter().filter_map(outpoint)
}

#[cfg(test)]
mod tests;
