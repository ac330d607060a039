//! What a judge is given: transactions as they were read. Pure: no I/O, no clock.

use vm::{ChainSpec, Family, Finality, Head, Receipt, Transaction, TxRef};

use super::Refusal;

/// Finds the family of a configured chain by the chain's name.
pub type Families<'a> = &'a (dyn Fn(&str) -> Option<&'static Family> + Sync);

/// The most inputs, refunds, payments, calls or fees that one request may bring.
pub const MOST_ITEMS: usize = 64;

/// One transaction of one chain as seen from one head.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub spec: &'a ChainSpec,
    pub transaction: &'a TxRef,
    pub head: &'a Head,
    pub found: &'a Transaction,
}

impl<'a> Seen<'a> {
    /// The receipt, however fresh; refused when the transaction is missing or failed.
    pub fn receipt(&self) -> Result<&'a Receipt, Refusal> {
        let named = || (self.text().into(), self.spec.id.as_str().into());
        match self.found {
            Transaction::Succeeded(receipt) => Ok(receipt),
            Transaction::Missing => {
                let (transaction, chain) = named();
                Err(Refusal::MissingTransaction { transaction, chain })
            }
            Transaction::Failed(_) => {
                let (transaction, chain) = named();
                Err(Refusal::RevertedTransaction { transaction, chain })
            }
        }
    }

    /// The receipt, final by the chain's own rule.
    pub fn settled(&self) -> Result<&'a Receipt, Refusal> {
        let receipt = self.receipt()?;
        self.final_by(&self.spec.finality)?;
        Ok(receipt)
    }

    /// Refuses a transaction whose block is not final by `rule`.
    pub fn final_by(&self, rule: &Finality) -> Result<(), Refusal> {
        if rule.met(&self.receipt()?.block, self.head) {
            return Ok(());
        }
        Err(Refusal::NotFinalized(self.text().into()))
    }

    /// The caller's spelling of the id.
    pub fn text(&self) -> &'a str {
        &self.transaction.text
    }
}

/// Refuses more than [`MOST_ITEMS`] items under `field`.
pub fn bounded(field: &'static str, items: usize) -> Result<(), Refusal> {
    if items <= MOST_ITEMS {
        return Ok(());
    }
    Err(Refusal::TooMany {
        field,
        most: MOST_ITEMS,
    })
}

/// A malformed field: its path and what is wrong with it.
pub fn malformed(path: &str, what: impl std::fmt::Display) -> Refusal {
    Refusal::Malformed(format!("{path}: {what}").into())
}
