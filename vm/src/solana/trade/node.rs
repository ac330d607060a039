//! One node, opened for trading: what it is asked that no other family's node is.

use std::{any::Any, sync::Arc, time::Duration};

use moka::sync::Cache;
use solana_pubkey::Pubkey;
use tokio::sync::Semaphore;

use super::{
    super::{
        decode::Rules,
        link::{Link, Room},
        programs::{SYSTEM, TOKENS},
        question::{Slot, Standing},
        raw::RawAccount,
    },
    memory::{self, ProviderId},
    mint::Mint,
    scan::Inside,
};
use crate::{
    ChainSpec, Endpoint, ReadError, SpecError,
    trade::{Accounts, TradingProvider},
    types::Block,
};

/// How long the lamports that an account needs are believed to stay the same.
const RENT_AGE: Duration = Duration::from_secs(600);
/// Sizes of accounts that are remembered.
const SIZES: u64 = 64;

/// One node of a chain.
pub struct Node {
    pub spec: Arc<ChainSpec>,
    pub rules: Rules,
    /// For whatever is small.
    pub link: Link,
    /// For whole blocks, one at a time.
    pub blocks: Link,
    pub one_block: Semaphore,
    pub inside: Inside,
    id: ProviderId,
    /// Lamports by the bytes of an account.
    rents: Cache<usize, u64>,
}

/// An account that a transaction makes where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    pub key: Pubkey,
    pub bytes: usize,
}

impl Node {
    /// Without network traffic.
    pub fn new(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Self, SpecError> {
        Ok(Self {
            rules: Rules::new(spec)?,
            link: Link::new(spec, endpoint, Room::ONE)?,
            blocks: Link::new(spec, endpoint, Room::BLOCKS)?,
            one_block: Semaphore::new(1),
            inside: Inside::default(),
            id: ProviderId {
                chain: spec.id.as_str().into(),
                position: endpoint.position,
                name: endpoint.name().into(),
            },
            spec: spec.clone(),
            rents: Cache::builder()
                .max_capacity(SIZES)
                .time_to_live(RENT_AGE)
                .build(),
        })
    }

    /// The node behind a provider of this family.
    pub fn of(provider: &TradingProvider) -> Result<&Self, ReadError> {
        let accounts: &dyn Accounts = &*provider.accounts;
        let accounts: &dyn Any = accounts;
        let foreign = || ReadError::Unavailable("a provider of another family".into());
        accounts.downcast_ref().ok_or_else(foreign)
    }

    /// What a mint is; `None` where there is none.
    pub async fn mint(&self, key: &Pubkey) -> Result<Option<Mint>, ReadError> {
        let keys = [*key];
        let asked = self.link.questions.accounts(&keys);
        let found = self.link.read(Box::pin(asked)).await?;
        let account = found.first().and_then(Option::as_ref);
        Ok(account.and_then(|account| self.heard(key, account)))
    }

    /// The mint of an account, which is remembered as this node's word.
    pub fn heard(&self, key: &Pubkey, account: &RawAccount) -> Option<Mint> {
        let mint = Mint::read(key, account)?;
        memory::heard(&self.id, &mint);
        Some(mint)
    }

    /// The number of blocks below a finalized one.
    pub async fn height(&self, block: &Block) -> Result<u64, ReadError> {
        let found = self.standing(block.number).await?;
        let found = found.ok_or_else(|| unknown("behind the agreed head"))?;
        if found.hash != block.hash {
            let what = "the head is not on this provider's chain";
            return Err(ReadError::Doubtful(what.into()));
        }
        found
            .height
            .ok_or_else(|| unknown("a block without a height"))
    }

    /// The finalized block at a slot with its time; `None` where the node shows none.
    pub async fn block_at(&self, slot: u64) -> Result<Option<Block>, ReadError> {
        let Some(found) = self.standing(slot).await? else {
            return Ok(None);
        };
        let time = match found.time {
            Some(time) => Some(time),
            None => {
                let asked = self.link.questions.time(slot);
                self.link.read(Box::pin(asked)).await?
            }
        };
        let time = time.ok_or_else(|| unknown("a block without a time"))?;
        Ok(Some(found.at(slot, time)))
    }

    /// Which of these are accounts of the token programs: what is paid to one is nobody's.
    pub async fn are_tokens(&self, keys: &[Pubkey]) -> Result<Vec<bool>, ReadError> {
        let asked = self.link.questions.owners(keys);
        let owners = self.link.read(Box::pin(asked)).await?;
        let of_tokens = |owner: &Option<Pubkey>| owner.is_some_and(|it| TOKENS.contains(&it));
        Ok(owners.iter().map(of_tokens).collect())
    }

    /// Which of the accounts are there.
    pub async fn there(&self, made: &[Made]) -> Result<Vec<Pubkey>, ReadError> {
        if made.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<_> = made.iter().map(|made| made.key).collect();
        let asked = self.link.questions.owners(&keys);
        let owners = self.link.read(Box::pin(asked)).await?;
        let there = keys.iter().copied().zip(owners);
        // Lamports that somebody sent to its address make no account of it.
        let there = there.filter(|(_, owner)| owner.is_some_and(|owner| owner != SYSTEM));
        Ok(there.map(|(key, _)| key).collect())
    }

    /// The lamports that these accounts have to have.
    pub async fn rents(&self, made: &[Made]) -> Result<u64, ReadError> {
        let mut sum = 0_u64;
        for made in made {
            sum = sum.saturating_add(self.rent(made.bytes).await?);
        }
        Ok(sum)
    }

    async fn rent(&self, bytes: usize) -> Result<u64, ReadError> {
        if let Some(known) = self.rents.get(&bytes) {
            return Ok(known);
        }
        let asked = self.link.questions.rent(bytes);
        let rent = self.link.read(Box::pin(asked)).await?;
        self.rents.insert(bytes, rent);
        Ok(rent)
    }

    /// The block at a slot; `None` where the node shows none.
    pub async fn standing(&self, slot: u64) -> Result<Option<Standing>, ReadError> {
        let asked = self.link.questions.block(slot);
        match self.link.read(Box::pin(asked)).await? {
            Slot::Block(standing) => Ok(Some(standing)),
            Slot::Absent | Slot::Gone | Slot::Unknown => Ok(None),
        }
    }
}

pub fn unknown(what: &str) -> ReadError {
    ReadError::Unavailable(what.into())
}
