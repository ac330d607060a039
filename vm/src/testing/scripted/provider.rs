//! One provider of a world. It behaves as the test says ([`World::set_manners`]).

use std::{ops::RangeInclusive, sync::Arc};

use async_trait::async_trait;

use crate::{
    ChainReader, ChainSpec, ReadError,
    testing::Manners,
    trade::{
        Accounts, Broadcast, CurrencyInfo, DepositTx, Fate, FeeRate, ScanError, Scanner, Spent,
        TxDetails, TxInspector, Writer,
    },
    types::{Address, Amount, Block, Bytes, Head, TxRef},
};

use super::{
    codec::address,
    receipt,
    state::{Included, State},
    transaction::Transaction,
    world::World,
};

/// A provider.
pub struct Node {
    pub world: Arc<World>,
    pub spec: Arc<ChainSpec>,
    /// The provider's name among those of the world.
    pub provider: String,
}

/// The chain as a provider shows it now.
struct View<'a> {
    state: &'a State,
    manners: Manners,
    head: Block,
}

impl Node {
    /// The provider's name for logs and metrics.
    pub fn name(&self) -> String {
        format!("{}/{}", self.world.name, self.provider)
    }

    fn see<T>(&self, read: impl FnOnce(&View<'_>) -> Result<T, ReadError>) -> Result<T, ReadError> {
        let unavailable = |why: &str| ReadError::Unavailable(why.to_owned());
        let manners = self.world.manners(&self.provider);
        if manners.down {
            return Err(unavailable("down"));
        }
        let state = self.world.lock();
        let head = state.block(state.height_behind(manners.lag));
        read(&View {
            state: &state,
            manners,
            head: head.ok_or_else(|| unavailable("no block"))?,
        })
    }
}

impl View<'_> {
    /// The newest block at or below a height; `None` above the head.
    fn block(&self, height: u64) -> Option<Block> {
        let there = height <= self.head.number;
        there.then(|| self.state.block(height)).flatten()
    }

    fn contains(&self, block: &Block) -> bool {
        self.block(block.number)
            .is_some_and(|found| found == *block)
    }

    /// A transaction in a block that is not above the head.
    fn find(&self, id: &[u8]) -> Option<Included> {
        let found = self.state.find(id).filter(|_| !self.manners.blind)?;
        (found.block.number <= self.head.number).then_some(found)
    }
}

#[async_trait]
impl ChainReader for Node {
    async fn head(&self) -> Result<Head, ReadError> {
        self.see(|view| {
            Ok(Head {
                block: view.head.clone(),
                tagged: None,
            })
        })
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        ChainReader::head(self).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        self.see(|view| Ok(view.contains(block)))
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<crate::Transaction, ReadError> {
        self.see(|view| {
            if head.block.number > view.head.number {
                return Err(ReadError::Unavailable("behind the agreed head".into()));
            }
            if !view.contains(&head.block) {
                return Err(ReadError::Doubtful("the head is on another fork".into()));
            }
            let found = view.find(&tx.bytes);
            let found = found.filter(|found| found.block.number <= head.block.number);
            Ok(found.map_or(crate::Transaction::Missing, |found| {
                receipt::transaction(&self.spec, &found)
            }))
        })
    }
}

#[async_trait]
impl Scanner for Node {
    async fn head(&self) -> Result<Block, ReadError> {
        self.see(|view| Ok(view.head.clone()))
    }

    async fn block(&self, number: u64) -> Result<Option<Block>, ReadError> {
        self.see(|view| Ok(view.block(number)))
    }

    async fn deposits(&self, blocks: RangeInclusive<u64>) -> Result<Vec<DepositTx>, ScanError> {
        let found = self.see(|view| {
            let to = (*blocks.end()).min(view.head.number);
            let all = view.state.within(*blocks.start(), to);
            Ok(match view.manners.blind {
                true => Vec::new(),
                false => receipt::deposits(&self.spec, &all),
            })
        });
        Ok(found?)
    }

    /// Always an error: the blocks of this family do not say what is in them.
    async fn omitted(
        &self,
        _: u64,
        _: &Block,
        _: &[DepositTx],
    ) -> Result<Vec<DepositTx>, ScanError> {
        let why = "blocks do not say what is in them".to_owned();
        Err(ReadError::Unavailable(why).into())
    }
}

#[async_trait]
impl Accounts for Node {
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        let doubtful = |error: crate::CodecError| ReadError::Doubtful(error.to_string());
        let key = (
            address(owner).map_err(doubtful)?,
            address(currency).map_err(doubtful)?,
        );
        self.see(|view| Ok(view.state.balance(view.head.number, key)))
    }

    async fn currency(&self, currency: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        self.see(|view| {
            let known = address(currency).ok();
            Ok(known.and_then(|known| view.state.currencies.get(&known).cloned()))
        })
    }
}

#[async_trait]
impl Writer for Node {
    async fn rate(&self) -> Result<FeeRate, ReadError> {
        self.see(|view| Ok(view.state.rate))
    }

    async fn broadcast(&self, raw: &Bytes) -> Result<Broadcast, ReadError> {
        self.see(|_| Ok(()))?;
        Ok(match Transaction::read(raw) {
            Ok(transaction) => self.world.send(&transaction),
            Err(error) => Broadcast::Refused(error.to_string()),
        })
    }

    async fn fate(&self, id: &Bytes) -> Result<Fate, ReadError> {
        self.see(|view| {
            let found = view.find(id);
            // A transaction whose block this provider does not have yet still waits, as far as it knows.
            let waits = view.state.waits(id) || view.state.find(id).is_some();
            Ok(match found {
                Some(Included { block, done }) => Fate::Included {
                    depth: view.head.number - block.number,
                    block,
                    success: done.success,
                    spent: Some(Spent {
                        work: done.fee,
                        besides: Some(done.rent),
                    }),
                },
                None if waits && !view.manners.blind => Fate::Waiting,
                None => Fate::Unknown,
            })
        })
    }
}

#[async_trait]
impl TxInspector for Node {
    async fn inspect(&self, transaction: &TxRef) -> Result<Option<TxDetails>, ReadError> {
        self.see(|view| {
            let found = view.find(&transaction.bytes);
            Ok(found.map(|found| receipt::details(&found)))
        })
    }
}
