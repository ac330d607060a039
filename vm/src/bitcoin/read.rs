//! A provider of a Bitcoin chain: what a [`Source`] shows, judged. Written once for nodes and indexes.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use bitcoin::{Psbt, ScriptBuf, Txid};
use futures::{
    future::try_join_all,
    stream::{self, StreamExt},
};

use super::{
    decode::{self, Rules},
    esplora::{self, Esplora},
    network::genesis,
    node::{Access, Node},
    source::{Found, Source, Spender, Transactions, anchored, txid},
    spend::{Rival, Sought, looked_at},
    unproven::Outputs,
};
use crate::{
    ChainReader, ChainSpec, Endpoint, Finality, Provider, ReadError, SpecError, StateReader,
    oracle::first_final,
    protocol::limits,
    shared_head::SharedHead,
    types::{Address, B256, Block, Bytes, Head, Transaction, TxRef, WithdrawalStatus},
};

/// How long a head is reused: blocks come every ten minutes.
const HEAD_AGE: Duration = Duration::from_secs(5);

/// Opens one provider of a Bitcoin chain, without network traffic: the index where the URL is the index's that the
/// chain's entry names, else a node.
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Provider, SpecError> {
    match opened(spec, endpoint)? {
        Opened::Node(node) => provider(spec, endpoint, *node),
        Opened::Index(index) => provider(spec, endpoint, *index),
    }
}

/// One provider as what it is.
pub enum Opened {
    Node(Box<Node>),
    Index(Box<Esplora>),
}

/// The provider of an endpoint, as [`open`] tells nodes from indexes.
pub fn opened(spec: &ChainSpec, endpoint: &Endpoint) -> Result<Opened, SpecError> {
    let genesis = genesis(&spec.additional)?;
    let index = Esplora::of(spec, endpoint, genesis)?;
    let access = Access::of(&spec.additional)?;
    let is_index = esplora::providers(&spec.additional)?.contains(&endpoint.url);
    Ok(match (index, is_index) {
        (Some(index), true) => Opened::Index(Box::new(index)),
        (index, _) => Opened::Node(Box::new(Node::new(
            spec,
            endpoint,
            (genesis, index),
            access,
        ))),
    })
}

fn provider<S: Source + Transactions>(
    spec: &ChainSpec,
    endpoint: &Endpoint,
    source: S,
) -> Result<Provider, SpecError> {
    let reader = Arc::new(Reader {
        rules: Rules::new(spec)?,
        finality: spec.finality.clone(),
        source,
        head: SharedHead::default(),
    });
    Ok(Provider {
        name: endpoint.name().into(),
        reader: reader.clone(),
        state: Some(reader),
        keys: None,
        checks_network: genesis(&spec.additional)?.is_some(),
    })
}

struct Reader<S> {
    rules: Rules,
    finality: Finality,
    source: S,
    head: SharedHead,
}

#[async_trait]
impl<S: Source> ChainReader for Reader<S> {
    async fn head(&self) -> Result<Head, ReadError> {
        self.head.within(HEAD_AGE, || self.newest()).await
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        self.head.within(Duration::ZERO, || self.newest()).await
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        match self.source.hash_at(block.number).await? {
            Some(hash) if hash == block.hash => Ok(self.source.block(hash).await? == *block),
            _ => Ok(false),
        }
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        let Some(txid) = named(tx) else {
            return Ok(Transaction::Missing);
        };
        let Some(found) = self.source.look(txid, &head.block).await? else {
            return Ok(Transaction::Missing);
        };
        let receipt = decode::receipt(&self.rules, &found);
        Ok(Transaction::Succeeded(receipt))
    }
}

#[async_trait]
impl<S: Source + Transactions> StateReader for Reader<S> {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        self.anchor(&head.block).await?;
        let deepest = head.block.number.checked_sub(self.finality.blocks);
        let at = |height: u64| async move {
            let hash = self.source.hash_at(height).await?;
            let missing = || ReadError::Doubtful("no block below the head".into());
            let block = self.source.block(hash.ok_or_else(missing)?).await?;
            let other = || ReadError::Doubtful("a block at another height".into());
            (block.number == height).then_some(block).ok_or_else(other)
        };
        let found = first_final(&self.finality, head, deepest, at).await?;
        // The provider may have moved to another fork meanwhile.
        self.anchor(&head.block).await?;
        Ok(found)
    }

    async fn withdrawal(
        &self,
        encoded: &Bytes,
        tx: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        let refused = || ReadError::Foreign("not a withdrawal of this chain");
        let psbt = Psbt::deserialize(encoded).map_err(|_| refused())?;
        let owns = |script: &bitcoin::Script| self.rules.depository(script).is_some();
        let sought = Sought::new(psbt, owns).ok_or_else(refused)?;
        if self.source.look(sought.txid, block).await?.is_some() {
            return Ok(WithdrawalStatus::Executed);
        }
        let spenders = looked_at(self.source.spenders(&sought.inputs).await?);
        let rivals = self.rivals(&sought, &spenders, (tx, block)).await?;
        self.anchor(block).await?;
        let verdict = sought.verdict(&spenders, &rivals);
        verdict.map_err(|why| ReadError::Unavailable(why.to_string()))
    }

    async fn sequence(&self, _: &Address, _: &Block) -> Result<u64, ReadError> {
        Err(ReadError::Unavailable("outputs have no sequence".into()))
    }

    async fn view(&self, _: &Address, _: &Bytes, _: &Block) -> Result<Bytes, ReadError> {
        Err(ReadError::Unavailable("no contracts on this chain".into()))
    }

    async fn bears_out(&self, said: &Bytes) -> Result<bool, ReadError> {
        let said = &Outputs::read(said)?;
        // A transaction may be large: none is kept until others have come.
        let each = said.transactions().into_iter().map(|txid| async move {
            let found = self.source.raw(txid).await?;
            said.are_of(txid, found.as_ref())
        });
        let mut each = stream::iter(each).buffered(limits::OUTPUTS_AT_ONCE);
        while let Some(is_so) = each.next().await {
            if !is_so? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl<S: Source> Reader<S> {
    async fn newest(&self) -> Result<Head, ReadError> {
        let block = self.source.tip().await?;
        let tagged = None;
        Ok(Head { block, tagged })
    }

    /// The transactions that spend inputs of the sought one, as of `block`: those that the provider names, and the one
    /// that the caller names, if it does.
    async fn rivals(
        &self,
        sought: &Sought,
        spenders: &[Spender],
        (tx, block): (Option<&TxRef>, &Block),
    ) -> Result<Vec<Rival>, ReadError> {
        let by = |spender: &Spender| match spender {
            Spender::By(txid) => Some(*txid),
            Spender::Nobody | Spender::Somebody => None,
        };
        let known: BTreeSet<Txid> = spenders.iter().filter_map(by).collect();
        let claimed = tx.and_then(named).filter(|txid| !known.contains(txid));
        let each: Vec<Txid> = known.iter().copied().chain(claimed).collect();
        let looks = each.iter().map(|txid| self.source.look(*txid, block));
        let found = try_join_all(looks).await?;
        let mut rivals = Vec::new();
        for (txid, found) in each.iter().zip(found) {
            match (known.contains(txid), found) {
                (_, Some(found)) if sought.is_spent_by(&found.transaction) => {
                    rivals.push(Rival::Settled {
                        by_depository: self.is_by_depository(&found),
                        transaction: found.transaction,
                    });
                }
                (true, Some(_)) => {
                    let what = "a transaction that does not spend what it is said to";
                    return Err(ReadError::Doubtful(what.into()));
                }
                (true, None) => rivals.push(Rival::Early),
                // The caller is free to name anything.
                (false, _) => {}
            }
        }
        Ok(rivals)
    }

    /// Whether a transaction spends an output of a depository. Where it spends outputs of too many others to look them
    /// up, each input is judged by the output that the provider shows with it; one without may be a depository's.
    fn is_by_depository(&self, found: &Found) -> bool {
        let is_own = |script: &ScriptBuf| self.rules.depository(script).is_some();
        match &found.spent {
            Some(spent) => spent.iter().flatten().any(is_own),
            None => found.transaction.vin.iter().any(|input| {
                let shown = input.prevout.as_ref();
                shown.is_none_or(|prevout| is_own(&prevout.script.hex))
            }),
        }
    }

    async fn anchor(&self, block: &Block) -> Result<(), ReadError> {
        anchored(self.source.hash_at(block.number).await?, block)
    }
}

/// The id that a caller names; no transaction has one of another length.
fn named(tx: &TxRef) -> Option<Txid> {
    B256::try_from(tx.bytes.as_ref()).ok().map(|id| txid(&id))
}

#[cfg(test)]
mod tests;
