//! Where a withdrawal stands, and what shows it (guide: protocol 8.5).

use vm::{
    Address, B256, Block, Bytes, Chain, ChainId, Head, ReadError, Seen, StateReader, Transaction,
    TxRef, WithdrawalStatus,
};

use crate::{
    attest::{Refusal, statement::Statement, withdrawal},
    hub::Payload,
};

/// A withdrawal whose status is read.
pub(super) struct Sought<'a> {
    pub chain: &'a Chain,
    pub state: &'a dyn StateReader,
    pub encoded: &'a Bytes,
    /// The transaction that the caller says ended it.
    pub transaction: Option<&'a TxRef>,
    pub depository: &'a Address,
    /// The id by which a transaction of the depository names it; `None` where its transactions name none.
    pub named: Option<B256>,
}

/// What the chain shows of a withdrawal, from one head.
pub(super) struct Sight {
    head: Head,
    status: WithdrawalStatus,
    /// The final block of the status; without one the withdrawal is pending.
    block: Option<Block>,
    found: Option<Transaction>,
}

/// The status of a withdrawal, with the blocks that show it.
pub(super) struct Standing {
    pub status: WithdrawalStatus,
    grounds: Vec<(ChainId, Block)>,
    shown: Option<(TxRef, Block)>,
}

impl Standing {
    /// Of a withdrawal that the allocator has not recorded, whatever the chain shows.
    pub fn pending() -> Self {
        Self {
            status: WithdrawalStatus::Pending,
            grounds: Vec::new(),
            shown: None,
        }
    }

    /// The statement with all that shows the status on `chain`.
    pub fn ground(&self, chain: &ChainId, statement: Statement) -> Statement {
        let shown = self.shown.iter();
        let statement = shown.fold(statement, |statement, (tx, block)| {
            statement.resting_on(chain, tx, block)
        });
        let grounds = self.grounds.iter();
        grounds.fold(statement, |statement, (chain, block)| {
            statement.as_of(chain, block)
        })
    }
}

impl Sought<'_> {
    /// The status that `sight` shows of what the allocator recorded as `payload`.
    pub fn standing(&self, sight: Sight, payload: &Payload) -> Result<Standing, Refusal> {
        let Some(block) = &sight.block else {
            return Ok(Standing::pending());
        };
        let chain = self.chain.spec.id.clone();
        Ok(Standing {
            shown: self.shown(&sight)?,
            status: sight.status,
            grounds: vec![
                (chain, block.clone()),
                (payload.chain.clone(), payload.block.clone()),
            ],
        })
    }

    /// Reads the withdrawal's status; reads a pending one once more, from a newer head.
    pub async fn look(&self) -> Result<Sight, ReadError> {
        let reader = &self.chain.reader;
        let sight = self.seen_from(reader.head().await?).await?;
        if sight.status != WithdrawalStatus::Pending {
            return Ok(sight);
        }
        let fresh = reader.fresh_head().await?;
        match fresh == sight.head {
            true => Ok(sight),
            false => self.seen_from(fresh).await,
        }
    }

    async fn seen_from(&self, head: Head) -> Result<Sight, ReadError> {
        let named = async {
            let Some(transaction) = self.transaction else {
                return Ok(None);
            };
            let found = self.chain.reader.transaction(transaction, &head).await;
            found.map(Some)
        };
        let stands = async {
            let Some(block) = self.state.settled(&head).await? else {
                return Ok((WithdrawalStatus::Pending, None));
            };
            let read = self
                .state
                .withdrawal(self.encoded, self.transaction, &block);
            Ok((read.await?, Some(block)))
        };
        let ((status, block), found) = tokio::try_join!(stands, named)?;
        Ok(Sight {
            head,
            status,
            block,
            found,
        })
    }

    /// The transaction that the caller names for an ended withdrawal; it must show the execution. Where transactions name
    /// no withdrawal, one expires also by a transaction that spent only what somebody else pays the fee with: that shows
    /// no execution, and what it did is in the state that the status was read from.
    fn shown(&self, sight: &Sight) -> Result<Option<(TxRef, Block)>, Refusal> {
        let ended = sight.status != WithdrawalStatus::Pending;
        let (Some(transaction), Some(found), true) = (self.transaction, &sight.found, ended) else {
            return Ok(None);
        };
        let seen = Seen {
            spec: &self.chain.spec,
            transaction,
            head: &sight.head,
            found,
        };
        let receipt = seen.settled()?;
        let shown = withdrawal::check_shown(receipt, transaction, self.depository, self.named);
        let is_expired = sight.status == WithdrawalStatus::Expired;
        match shown {
            Ok(()) => Ok(Some((transaction.clone(), receipt.block.clone()))),
            Err(_) if is_expired && self.named.is_none() => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }
}
