//! A transaction as it was read, for whoever judges it. Pure: no I/O, no clock.

use std::sync::Arc;

use crate::{ChainId, ChainSpec, Finality, Head, Receipt, Transaction, TxRef};

/// One transaction of one chain as seen from one head.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub spec: &'a ChainSpec,
    pub transaction: &'a TxRef,
    pub head: &'a Head,
    pub found: &'a Transaction,
}

/// Why a transaction proves nothing; it is named as the caller spelled it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("{transaction} is not on {chain}")]
    Missing {
        transaction: Arc<str>,
        chain: ChainId,
    },
    #[error("{transaction} failed on {chain}")]
    Failed {
        transaction: Arc<str>,
        chain: ChainId,
    },
    #[error("{0} is not final")]
    Early(Arc<str>),
}

impl<'a> Seen<'a> {
    /// The receipt, however fresh; refused when the transaction is missing or failed.
    pub fn receipt(&self) -> Result<&'a Receipt, Unusable> {
        let (transaction, chain) = (self.transaction.text.clone(), self.spec.id.clone());
        match self.found {
            Transaction::Succeeded(receipt) => Ok(receipt),
            Transaction::Missing => Err(Unusable::Missing { transaction, chain }),
            Transaction::Failed(_) => Err(Unusable::Failed { transaction, chain }),
        }
    }

    /// The receipt, final by the chain's own rule.
    pub fn settled(&self) -> Result<&'a Receipt, Unusable> {
        let receipt = self.receipt()?;
        self.final_by(&self.spec.finality)?;
        Ok(receipt)
    }

    /// Refuses a transaction whose block is not final by `rule`.
    pub fn final_by(&self, rule: &Finality) -> Result<(), Unusable> {
        if rule.met(&self.receipt()?.block, self.head) {
            return Ok(());
        }
        Err(Unusable::Early(self.transaction.text.clone()))
    }

    /// The caller's spelling of the id.
    pub fn text(&self) -> &'a str {
        &self.transaction.text
    }
}
