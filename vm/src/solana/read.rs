//! Reads of one Solana node: finalized blocks, transactions pinned to a head, the account of a withdrawal.
//!
//! A block is a slot that has one. A slot that a node has no block of is skipped only where the next block shows it.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use borsh::BorshDeserialize;
use sha2::{Digest, Sha256};

use super::{
    decode::{Rules, decode, unnamed},
    executed::Executed,
    link::{Link, Room},
    programs::used_request,
    question::{Slot, Standing},
    withdrawal::{Transfer, is_used},
};
use crate::{
    ChainReader, ChainSpec, Endpoint, Finality, Provider, ReadError, SpecError, StateReader,
    shared_head::SharedHead,
    types::{Address, Block, Bytes, Head, Transaction, TxRef, WithdrawalStatus},
};

/// How long a head is reused: about two slots.
const HEAD_AGE: Duration = Duration::from_secs(1);
/// How long a node's word about a head is reused: it may be another machine behind the same address by then.
const HEAD_SHOWN: Duration = Duration::from_secs(5);
/// Heads that are remembered.
const HEADS: u64 = 1_024;
/// The most blocks that are looked at for one that a head can be made of, or that is old enough.
const STEPS: usize = 8;

/// Opens one node of a Solana chain, without network traffic.
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Provider, SpecError> {
    let link = Link::new(spec, endpoint, Room::ONE)?;
    let checks_network = link.is_checked();
    let node = Arc::new(Node {
        rules: Rules::new(spec)?,
        finality: spec.finality.clone(),
        link,
        head: SharedHead::default(),
        heads: moka::sync::Cache::builder()
            .max_capacity(HEADS)
            .time_to_live(HEAD_SHOWN)
            .build(),
    });
    Ok(Provider {
        name: endpoint.name().into(),
        reader: node.clone(),
        state: Some(node),
        keys: None,
        checks_network,
    })
}

struct Node {
    rules: Rules,
    finality: Finality,
    link: Link,
    head: SharedHead,
    /// The heads of late, as this node showed them.
    heads: moka::sync::Cache<u64, Standing>,
}

#[async_trait]
impl ChainReader for Node {
    async fn head(&self) -> Result<Head, ReadError> {
        self.head_of(HEAD_AGE).await
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        self.head_of(Duration::ZERO).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        if self.head().await?.block.number < block.number
            && self.fresh_head().await?.block.number < block.number
        {
            return Ok(false);
        }
        self.link.read(Box::pin(self.holds(block))).await
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        // No chain has a transaction whose id is of another length.
        if tx.bytes.len() != 64 {
            return Ok(Transaction::Missing);
        }
        self.link
            .read(Box::pin(self.look(&tx.bytes, &head.block)))
            .await
    }
}

#[async_trait]
impl StateReader for Node {
    /// Finalized is final: the head itself, unless the chain's entry asks for more. All of it is this node's word, the
    /// head's time too: no hash proves a time.
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        self.link.read(Box::pin(self.old_enough(&head.block))).await
    }

    /// The state is the node's newest that is not older than `block`. A withdrawal that is not executed then, although
    /// its time has passed at `block`, never will be.
    async fn withdrawal(
        &self,
        encoded: &Bytes,
        _: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        let unknown = |what: &str| ReadError::Unavailable(what.to_owned());
        let depository = self.rules.depository.as_ref();
        let depository = depository.ok_or_else(|| unknown("the chain has no depository"))?;
        let request = Transfer::try_from_slice(encoded)
            .map_err(|_| ReadError::Foreign("not a withdrawal of this family"))?;
        if request.vault_address != depository.vault.to_bytes() {
            return Err(ReadError::Foreign("not a withdrawal of this depository"));
        }
        let id = Sha256::digest(encoded).into();
        let account = used_request(&depository.program, &id);
        let account = account.ok_or(ReadError::Foreign("no account of this withdrawal"))?;
        self.link
            .read(Box::pin(async {
                self.anchor(block).await?;
                let found = self.link.questions.account(&account, block.number).await?;
                self.stands(block).await?;
                if is_used(&depository.program, found.as_ref())? {
                    return Ok(WithdrawalStatus::Executed);
                }
                let time = i64::try_from(block.time).unwrap_or(i64::MAX);
                match time > request.expiration {
                    true => Ok(WithdrawalStatus::Expired),
                    false => Ok(WithdrawalStatus::Pending),
                }
            }))
            .await
    }

    async fn sequence(&self, _: &Address, _: &Block) -> Result<u64, ReadError> {
        let what = "accounts of this family have no sequence";
        Err(ReadError::Unavailable(what.into()))
    }

    async fn view(&self, _: &Address, _: &Bytes, _: &Block) -> Result<Bytes, ReadError> {
        let what = "programs of this family have no views";
        Err(ReadError::Unavailable(what.into()))
    }
}

impl Node {
    /// The head of a read that began at most `age` ago.
    async fn head_of(&self, age: Duration) -> Result<Head, ReadError> {
        let read = || self.link.read(Box::pin(self.newest()));
        self.head.within(age, read).await
    }

    /// The newest finalized block that the node shows with its time. A slot that it calls finalized has one, but it may
    /// not show it yet.
    async fn newest(&self) -> Result<Head, ReadError> {
        let mut slot = self.link.questions.slot().await?;
        for _ in 0..STEPS {
            let found = futures::join!(
                self.link.questions.block(slot),
                self.link.questions.time(slot)
            );
            if let (Slot::Block(mut standing), time) = (found.0?, found.1?) {
                standing.time = time.or(standing.time);
                self.heads.insert(slot, standing.clone());
                if let Some(time) = standing.time {
                    let block = standing.at(slot, time);
                    let tagged = None;
                    return Ok(Head { block, tagged });
                }
            }
            let Some(before) = self.link.questions.before(slot).await? else {
                break;
            };
            slot = before;
        }
        Err(ReadError::Unavailable("no finalized block is shown".into()))
    }

    /// The block at a slot, as the node shows it now.
    async fn block(&self, slot: u64) -> Result<Standing, ReadError> {
        match self.link.questions.block(slot).await? {
            Slot::Block(standing) => Ok(standing),
            _ => Err(ReadError::Unavailable("a block is not shown".into())),
        }
    }

    /// A time that the node states, or the one that it has beside the block.
    async fn timed(&self, slot: u64, stated: Option<u64>) -> Result<u64, ReadError> {
        let time = match stated {
            Some(time) => Some(time),
            None => self.link.questions.time(slot).await?,
        };
        time.ok_or_else(|| ReadError::Unavailable("a block without a time".into()))
    }

    /// Whether `block` is on the node's chain now, with the time that the node would give its own head. A node without
    /// that time says nothing about it.
    async fn holds(&self, block: &Block) -> Result<bool, ReadError> {
        let unknown = |what: &str| Err(ReadError::Unavailable(what.into()));
        match self.link.questions.block(block.number).await? {
            Slot::Block(found) if found.hash == block.hash => {
                let stated = self.link.questions.time(block.number).await?;
                match stated.or(found.time) {
                    Some(time) => Ok(found.at(block.number, time) == *block),
                    None => unknown("a block without a time"),
                }
            }
            Slot::Block(_) => Ok(false),
            Slot::Absent => match self.link.questions.is_skipped(block.number).await? {
                true => Ok(false),
                false => unknown("the block is lost to this node"),
            },
            Slot::Gone => unknown("older than the blocks that this node keeps"),
            Slot::Unknown => unknown("the block is not shown yet"),
        }
    }

    /// Makes sure that `block` is on this node's chain, or was lately.
    async fn anchor(&self, block: &Block) -> Result<Standing, ReadError> {
        let known = self.heads.get(&block.number);
        if let Some(standing) = known.filter(|standing| standing.hash == block.hash) {
            return Ok(standing);
        }
        let standing = self.stands(block).await?;
        self.heads.insert(block.number, standing.clone());
        Ok(standing)
    }

    /// Makes sure that `block` is on this node's chain now. What was read between an anchor and this is of one fork, as
    /// nothing else says: a node's answer about a transaction names no block's hash.
    async fn stands(&self, block: &Block) -> Result<Standing, ReadError> {
        match self.link.questions.block(block.number).await? {
            Slot::Block(found) if found.hash == block.hash => Ok(found),
            Slot::Block(_) => {
                self.heads.invalidate(&block.number);
                let what = "the head is not on this provider's chain";
                Err(ReadError::Doubtful(what.into()))
            }
            _ => Err(ReadError::Unavailable("behind the agreed head".into())),
        }
    }

    /// The transaction as seen from `head`.
    async fn look(&self, id: &Bytes, head: &Block) -> Result<Transaction, ReadError> {
        self.anchor(head).await?;
        let text = bs58::encode(id).into_string();
        let raw = self.link.questions.transaction(&text).await?;
        let Some(raw) = raw.filter(|raw| raw.slot <= head.number) else {
            // One that has only just been put behind this address may have no block of these yet.
            self.stands(head).await?;
            return Ok(Transaction::Missing);
        };
        let executed = Executed::join(id, raw)?;
        let standing = self.block(executed.slot).await?;
        let time = self.timed(executed.slot, executed.time.or(standing.time));
        let block = standing.at(executed.slot, time.await?);
        let mint = match unnamed(&self.rules, &executed) {
            Some(account) => self.link.questions.mint(&account).await?,
            None => None,
        };
        self.stands(head).await?;
        Ok(decode(&self.rules, &executed, block, mint))
    }

    /// The newest block at or below `head` that is as deep and as old as the chain's entry asks.
    async fn old_enough(&self, head: &Block) -> Result<Option<Block>, ReadError> {
        let standing = self.anchor(head).await?;
        let time = self.timed(head.number, standing.time).await?;
        let head = &Head {
            block: standing.at(head.number, time),
            tagged: None,
        };
        if self.finality.met(&head.block, head) {
            return Ok(Some(head.block.clone()));
        }
        let mut below = head.block.number.checked_sub(self.finality.blocks);
        for _ in 0..STEPS {
            let Some(slot) = below else {
                return Ok(None);
            };
            let Some(slot) = self.link.questions.before(slot.saturating_add(1)).await? else {
                return Err(ReadError::Unavailable("no block below the head".into()));
            };
            let standing = self.block(slot).await?;
            let time = self.timed(slot, standing.time).await?;
            let block = standing.at(slot, time);
            if self.finality.met(&block, head) {
                self.stands(&head.block).await?;
                return Ok(Some(block));
            }
            below = self.finality.older(&head.block, &block);
        }
        Ok(None)
    }
}
