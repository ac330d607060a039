//! What single transactions of a block deposit. What was read is kept: a block that is full of transactions that name the
//! depository may take several tries.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use moka::sync::Cache;

use super::super::{
    super::{
        deposit::{deposits, uncovered, unnamed},
        executed::{Doubt, Executed},
        question::NEWEST,
        raw::RawTransaction,
    },
    node::{Node, unknown},
};
use crate::{
    ReadError,
    trade::DepositTx,
    types::{B256, Bytes, Deposit, Refusal, TxRef},
};

/// Transactions of one block that are read at a time.
const AT_ONCE: usize = 8;
/// Transactions that are kept, with the deposits in them: some times what a block has room for.
const KEPT: u64 = 8_192;
const AGE: Duration = Duration::from_secs(600);

/// What transactions deposit, by the hashes of their blocks and by their ids.
pub struct Inside(Cache<(B256, String), Option<DepositTx>>);

impl Default for Inside {
    fn default() -> Self {
        let size = |_: &(B256, String), found: &Option<DepositTx>| {
            let deposits = found.as_ref().map_or(0, |found| found.deposits.len());
            u32::try_from(deposits).map_or(u32::MAX, |deposits| deposits.saturating_add(1))
        };
        let kept = Cache::builder().max_capacity(KEPT).weigher(size);
        Self(kept.time_to_live(AGE).build())
    }
}

impl Node {
    /// What these transactions in the block of a slot deposit, in their order.
    pub async fn of_ids(
        &self,
        slot: u64,
        ids: Vec<String>,
        hash: B256,
    ) -> Result<Vec<DepositTx>, ReadError> {
        let found = stream::iter(ids).map(|id| self.of_id(slot, id, hash));
        let found: Vec<Option<DepositTx>> = found.buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// What the transaction with this id in the block of a slot deposits, if it does.
    async fn of_id(
        &self,
        slot: u64,
        text: String,
        hash: B256,
    ) -> Result<Option<DepositTx>, ReadError> {
        let key = (hash, text);
        if let Some(known) = self.inside.0.get(&key) {
            return Ok(known);
        }
        let found = self.read_id(slot, &key.1, hash).await?;
        self.inside.0.insert(key, found.clone());
        Ok(found)
    }

    async fn read_id(
        &self,
        slot: u64,
        text: &str,
        hash: B256,
    ) -> Result<Option<DepositTx>, ReadError> {
        let wrong = |_| ReadError::Doubtful("an id that is none".into());
        let id: Bytes = bs58::decode(text).into_vec().map_err(wrong)?.into();
        let asked = self.link.questions.any_transaction(text);
        let raw = self.link.read(Box::pin(asked)).await?;
        let raw = raw.filter(|raw| raw.slot == slot);
        let raw = raw.ok_or_else(|| unknown("a transaction is not shown"))?;
        self.of_shown(&id, raw, hash).await
    }

    /// What a transaction deposits, if it does, as the node shows it. One of a newer version than is read is doubtful:
    /// anybody can have the depository named by it.
    pub async fn of_shown(
        &self,
        id: &Bytes,
        raw: RawTransaction,
        hash: B256,
    ) -> Result<Option<DepositTx>, ReadError> {
        let newer = raw.version.filter(|version| *version > NEWEST);
        let executed = match (Executed::join(id, raw), newer) {
            (Ok(executed), _) => executed,
            (Err(why @ Doubt::Contradiction(_)), Some(version)) => {
                let id = bs58::encode(id).into_string();
                tracing::error!(id, version, %why, "a transaction of a newer version is passed over");
                return Ok(None);
            }
            (Err(why), _) => return Err(why.into()),
        };
        if executed.failed {
            return Ok(None);
        }
        let (deposits, doubt) = match newer {
            Some(version) => {
                let why = format!("A transaction of version {version}, which is not read");
                (uncovered(&self.rules, &executed), Some(Refusal(why)))
            }
            None => self.deposited(&executed).await?,
        };
        Ok((!deposits.is_empty()).then(|| DepositTx {
            transaction: TxRef {
                text: bs58::encode(id).into_string().into(),
                bytes: id.clone(),
                hint: None,
            },
            number: executed.slot,
            hash,
            deposits,
            doubt,
        }))
    }

    /// The deposits of a transaction, and why they are doubtful.
    async fn deposited(
        &self,
        executed: &Executed,
    ) -> Result<(Vec<Deposit>, Option<Refusal>), ReadError> {
        let mint = match unnamed(&self.rules, executed) {
            Some(account) => {
                let asked = self.link.questions.mint(&account);
                self.link.read(Box::pin(asked)).await?
            }
            None => None,
        };
        Ok(match deposits(&self.rules, executed, mint) {
            Ok(deposits) => (deposits, None),
            Err(refusal) => (uncovered(&self.rules, executed), Some(refusal)),
        })
    }
}
