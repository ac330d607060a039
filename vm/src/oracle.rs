//! Reading a chain for the oracle: the traits that a family implements for one provider, and the quorum
//! for several.

use async_trait::async_trait;

use crate::{
    Finality,
    types::{Address, Block, Bytes, Head, Transaction, TxRef, WithdrawalStatus},
};

/// Why a read gave no answer. No variant is ever a reason to sign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The provider did not answer in time, or with an error of its own.
    #[error("provider unavailable: {0}")]
    Unavailable(String),
    /// The provider's answer contradicts itself, the request's pinned head, or the chain it should be.
    #[error("doubtful answer: {0}")]
    Doubtful(String),
    #[error("the answer is larger than any that is read, now and later")]
    TooLarge,
    /// The question is about nothing that this chain can have. No provider is asked, and none is at fault.
    #[error("{0}")]
    Foreign(&'static str),
    /// Not enough providers gave one and the same answer.
    #[error("quorum unavailable: {0}")]
    Quorum(String),
}

/// Reads of one chain. Implemented by a family for one provider, and by the quorum for several.
#[async_trait]
pub trait ChainReader: Send + Sync {
    /// The tip that a request's reads will be pinned to. Cheap: tracked in the background.
    async fn head(&self) -> Result<Head, ReadError>;
    /// A tip read from the network now, for a caller whom the tracked one left waiting.
    async fn fresh_head(&self) -> Result<Head, ReadError>;
    /// Whether this reader's chain has `block`, with that parent and that time, not above its tip: the
    /// quorum agrees on a head by it, and judges ages by the head's time, which no hash proves to it.
    async fn contains(&self, block: &Block) -> Result<bool, ReadError>;
    /// The transaction as seen from `head`: one in a block above it is [`Transaction::Missing`].
    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError>;
}

/// State of contracts, for chains that have it.
#[async_trait]
pub trait StateReader: Send + Sync {
    /// A block on the way down from `head` that is final as seen from there
    /// ([`Finality::met`](crate::Finality::met)), not much older than it must be, and the same for everybody who sees that chain; `None` while the
    /// chain is too young to have one. State is judged there.
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError>;
    /// Where a withdrawal stands as of `block`, which has to be settled. `encoded` is the family's
    /// withdrawal encoding (validated by the caller with
    /// [`WithdrawalCodec::decode`](crate::WithdrawalCodec::decode)); `tx` is the transaction that the caller says executed it, for families that need one.
    async fn withdrawal(
        &self,
        encoded: &Bytes,
        tx: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError>;
    /// How many transactions of `owner`'s are in the blocks up to `block`.
    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError>;
    /// A read-only contract call at `block`.
    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError>;
    /// Whether outputs are what is `said` of them ([`Spending::unproven`](crate::Spending::unproven)), wherever their
    /// transactions stand: false also of an output that is not known.
    async fn bears_out(&self, _said: &Bytes) -> Result<bool, ReadError> {
        Err(ReadError::Foreign("no outputs on this chain"))
    }
}

/// The first block from height `deepest` downwards that is final as seen from `head`, for
/// [`StateReader::settled`]; `None` while the chain is too young. `at` reads the block at a height. The caller makes
/// sure before and after that `head` is on the provider's chain: the blocks are then of one fork.
pub(crate) async fn first_final<F>(
    finality: &Finality,
    head: &Head,
    deepest: Option<u64>,
    at: impl Fn(u64) -> F,
) -> Result<Option<Block>, ReadError>
where
    F: Future<Output = Result<Block, ReadError>>,
{
    let mut below = deepest;
    while let Some(height) = below {
        let block = at(height).await?;
        if finality.met(&block, head) {
            return Ok(Some(block));
        }
        below = finality.older(&head.block, &block);
    }
    Ok(None)
}
