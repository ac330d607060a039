//! The transactions of an attempt before they are signed: the first one, dearer ones, and those that cancel. All of them
//! spend the same outputs, so that at most one of them lands, and a replacement obeys BIP 125. Pure.
//!
//! They are of version 3 (BIP 431): whoever is paid can hang one transaction of at most 1,000 virtual bytes on them while
//! they wait. Behind a large one that pays little nobody could replace them. What they spend is in blocks, which that
//! version asks for, too.

use bitcoin::{
    Amount, Script, Sequence, Transaction, TxIn, TxOut, Witness, absolute::LockTime,
    transaction::Version,
};

use super::{body, coin, coin::Coin};

/// What a replacement pays besides the fee of what it replaces, in satoshis per virtual byte: the most that nodes ask
/// by default (`incrementalRelayFee`).
const INCREMENT: u64 = 1;
/// Version 3: nodes keep what hangs on such a transaction small (Bitcoin Core from 28.0).
const RESTRICTED: Version = Version(3);
/// The most virtual bytes of such a transaction.
pub const LARGEST: u64 = 10_000;
/// The longest witness of a P2WPKH input: a signature with its hash type, and a public key.
const WITNESS: [usize; 2] = [72, 33];

/// What is spent, and what for.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    pub coins: &'a [Coin],
    /// What is paid, without change; empty for a transaction that cancels.
    pub outputs: &'a [TxOut],
    /// The account's own script, which gets the rest.
    pub change: &'a Script,
}

/// A transaction that may have to be replaced.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// In satoshis.
    pub fee: u64,
    /// In virtual bytes.
    pub size: u64,
}

/// Rates in satoshis per virtual byte.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub now: u64,
    /// Above which nothing is made.
    pub most: u64,
}

/// By how much a replacement is dearer than what it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rise {
    /// By the least that nodes ask for.
    Least,
    /// By a quarter, as far as the limit allows: what hangs on the other may have to be paid for, too, and few
    /// replacements reach the limit.
    Quarter,
}

impl Plan<'_> {
    /// The transaction at a rate; `None` where the coins do not pay for it.
    pub fn first(&self, rate: u64) -> Option<Transaction> {
        self.paying(|size| size.saturating_mul(rate))
    }

    /// The transaction that replaces `before`, at the rate of now at least; `None` where its rate would be above the
    /// limit, or the coins do not pay for it. What cancels a payment for the least that nodes ask has no limit: it is shorter,
    /// and must pay more in all.
    pub fn replacing(&self, before: Before, rates: Rates, rise: Rise) -> Option<Transaction> {
        let fee = |size: u64| {
            let now = size.saturating_mul(rates.now);
            // More by what relaying it costs, and dearer by the byte.
            let more = before.fee.saturating_add(size.saturating_mul(INCREMENT));
            let dearer = before.fee.saturating_mul(size) / before.size.max(1) + 1;
            let least = now.max(more).max(dearer);
            match rise {
                Rise::Least => least,
                Rise::Quarter => {
                    let risen = before.fee.saturating_add(before.fee / 4);
                    least.max(risen.min(size.saturating_mul(rates.most)))
                }
            }
        };
        let made = self.paying(fee)?;
        let most = size(&made).saturating_mul(rates.most);
        let is_least = self.outputs.is_empty() && rise == Rise::Least;
        (is_least || self.fee(&made)? <= most).then_some(made)
    }

    /// What a transaction of the plan pays for inclusion.
    pub fn fee(&self, made: &Transaction) -> Option<u64> {
        coin::sum(self.coins).checked_sub(body::sum(&made.output))
    }

    /// The transaction with the fee for its size: with change, or without where the rest is too little for it.
    fn paying(&self, fee: impl Fn(u64) -> u64) -> Option<Transaction> {
        let rest = coin::sum(self.coins).checked_sub(body::sum(self.outputs))?;
        let mut with = self.made(Some(self.change));
        let left = rest.checked_sub(fee(size(&with)));
        let left = left.map(Amount::from_sat);
        if let (Some(left), Some(change)) = (left, with.output.last_mut())
            && left >= self.change.minimal_non_dust()
        {
            change.value = left;
            return Some(with);
        }
        let without = self.made(None);
        let pays = !without.output.is_empty() && rest >= fee(size(&without));
        pays.then_some(without)
    }

    /// The transaction without signatures, which has the size of the signed one at most.
    fn made(&self, change: Option<&Script>) -> Transaction {
        let inputs = self.coins.iter().map(|coin| TxIn {
            previous_output: coin.outpoint,
            sequence: Sequence::ENABLE_RBF_NO_LOCKTIME,
            ..TxIn::default()
        });
        let change = change.map(|script| TxOut {
            value: Amount::ZERO,
            script_pubkey: script.to_owned(),
        });
        let paid = self.outputs.iter().cloned();
        Transaction {
            version: RESTRICTED,
            lock_time: LockTime::ZERO,
            input: inputs.collect(),
            output: paid.chain(change).collect(),
        }
    }
}

/// Virtual bytes of a transaction once it is signed, at most.
pub fn size(unsigned: &Transaction) -> u64 {
    let mut signed = unsigned.clone();
    let witness = Witness::from_slice(&WITNESS.map(|length| vec![0_u8; length]));
    for input in &mut signed.input {
        input.witness = witness.clone();
    }
    signed.weight().to_vbytes_ceil()
}

#[cfg(test)]
mod tests;
