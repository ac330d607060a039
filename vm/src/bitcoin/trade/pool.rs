//! Shows deposits that wait for a block, through one provider.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::{
    scan::tx_ref,
    scan_source::{Asked, Blocks, Payee, Seen, Waits},
    unspent::payee,
};
use crate::{
    ChainSpec, ReadError, SpecError,
    bitcoin::{
        decode::{self, Rules},
        network::Network,
        source::{shown_txid, txid},
    },
    trade::{Mempool, WaitingTx},
    types::{B256, Block, TxRef},
};

/// The memory pool of one provider.
pub struct Pool<S> {
    rules: Rules,
    /// The depositories.
    payees: Vec<Payee>,
    source: Arc<S>,
    seen: Mutex<Seen>,
}

impl<S: Blocks> Pool<S> {
    pub fn new(spec: &ChainSpec, source: Arc<S>) -> Result<Self, SpecError> {
        let network = Network::of(&spec.additional)?;
        let payees = spec.depositories().map(|one| payee(network, one));
        let payees: Result<Vec<_>, _> = payees.collect();
        Ok(Self {
            rules: Rules::new(spec)?,
            payees: payees.map_err(|error| SpecError(format!("depository: {error}")))?,
            source,
            seen: Mutex::default(),
        })
    }
}

#[async_trait]
impl<S: Blocks> Mempool for Pool<S> {
    async fn waiting(&self, known: &[TxRef]) -> Result<Vec<WaitingTx>, ReadError> {
        let mut seen = self.seen.lock().await;
        let known = known
            .iter()
            .filter_map(|one| B256::try_from(&one.bytes[..]).ok());
        let known: Vec<_> = known.map(|id| txid(&id)).collect();
        let asked = Asked {
            payees: &self.payees,
            known: &known,
        };
        self.source.waiting(asked, &mut seen).await?;
        let paying = seen.values().flatten();
        Ok(paying.filter_map(|one| waiting(&self.rules, one)).collect())
    }
}

/// The deposits that a waiting transaction would make; `None` where nobody could attribute them.
fn waiting(rules: &Rules, waits: &Waits) -> Option<WaitingTx> {
    // No block has it.
    let nowhere = Block {
        number: 0,
        hash: B256::ZERO,
        parent: B256::ZERO,
        time: 0,
    };
    let Waits { transaction, spent } = waits;
    let receipt = decode::decode(rules, transaction, spent.as_deref()?, nowhere);
    let deposits = receipt.deposits.ok()?;
    (!deposits.is_empty()).then(|| WaitingTx {
        transaction: tx_ref(&shown_txid(&transaction.txid)),
        deposits,
    })
}
