//! Lands the payments of an account. All transactions of an attempt spend the same outputs, so that at most one of them
//! lands; a replacement pays more by BIP 125, and one that cancels gives all back to the account.
//!
//! Only outputs of final blocks are spent: a reorg that undoes what made them would else undo what spends them.

use std::sync::Arc;

use async_trait::async_trait;
use bitcoin::{ScriptBuf, Transaction, secp256k1};
use futures::future::try_join_all;

use super::{
    attempt::{HEIGHT, Own, Version},
    body,
    choice::{self, Choice},
    coin::{self, Coin},
    signature,
    version::{Before, Rates, Rise},
};
use crate::{
    Chain, CodecError, ReadError,
    bitcoin::source::shown_txid,
    trade::{
        Attempt, Broadcast, Costs, Failover, Fate, Goal, Included, Intent, Known, Outlook,
        Prepared, Signer, SpentBy, Status, SubmitError, Submitter, numbered, own_tx,
    },
    types::{Address, Amount, Bytes, Transaction as Found},
};

/// The most transactions of an attempt that pay, and as many that cancel.
const MOST: usize = 64;

/// An account on one chain.
#[derive(Clone)]
pub struct Payer {
    pub chain: Chain,
    pub failover: Failover,
    pub key: Arc<dyn Signer>,
    pub public: secp256k1::PublicKey,
    pub account: Address,
    /// The account's script: P2WPKH of its key.
    pub script: ScriptBuf,
    pub native: Address,
    /// Satoshis per virtual byte above which nothing is signed.
    pub most: u64,
}

/// An intent with what the chain said for it.
struct Asked {
    payer: Payer,
    intent: Intent,
    /// What the account can spend, the largest first.
    coins: Vec<Coin>,
    rates: Rates,
    /// The newest block.
    height: u64,
}

#[async_trait]
impl Submitter for Payer {
    async fn look(&self, goal: Goal<'_>, _: bool) -> Result<Box<dyn Outlook>, SubmitError> {
        let Goal::Land(intent) = goal else {
            let why = "nothing on this chain waits for another transaction";
            return Err(CodecError(why.into()).into());
        };
        let coins = async { Ok::<_, SubmitError>(self.coins().await?) };
        let ((coins, height), rates) = futures::try_join!(coins, self.rates())?;
        Ok(Box::new(Asked {
            payer: self.clone(),
            intent: intent.clone(),
            coins,
            rates,
            height,
        }))
    }

    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError> {
        let mut own = Own::read(attempt)?;
        let Some(newest) = own.signed.last() else {
            return Ok(None);
        };
        let cancels = cancel || newest.cancels;
        let alike = own.signed.iter().filter(|one| one.cancels == cancels);
        if alike.count() >= MOST {
            return Ok(None);
        }
        let before = own.paid(newest)?;
        let rates = match self.rates().await {
            Err(SubmitError::Dear) if !cancels => return Ok(None),
            // Nothing that the operator allows lands now, or nobody agrees on what does: what cancels is as cheap as it may
            // be, and raised later.
            Err(SubmitError::Dear | SubmitError::Read(_)) if cancels => Rates {
                now: 0,
                most: self.most,
            },
            rates => rates?,
        };
        let rise = match cancels == newest.cancels {
            true => Rise::Quarter,
            false => Rise::Least,
        };
        let height = self.chain.reader.fresh_head().await?.block.number;
        if rise == Rise::Quarter && !self.is_stuck(newest, (before, rates), height).await? {
            return Ok(None);
        }
        let plan = own.plan(cancels, &self.script);
        let Some(made) = plan.replacing(before, rates, rise) else {
            return Ok(None);
        };
        let signed = self.sign(made, &own.coins).await?;
        own.signed.push(Version::of(&signed, cancels, height));
        let others = attempt.spends.iter().skip(1).cloned().collect();
        Ok(Some(own.attempt(&self.native, others)?))
    }

    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError> {
        let own = Own::read(attempt)?;
        let Some(newest) = own.signed.last() else {
            return Ok(None);
        };
        Ok(Some(self.failover.broadcast(&newest.raw).await?))
    }

    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError> {
        let own = Own::read(attempt)?;
        let ids = own.signed.iter().map(Version::transaction);
        let ids: Vec<Bytes> = ids
            .map(|one| Ok(id(&one?)))
            .collect::<Result<_, CodecError>>()?;
        let fates = try_join_all(ids.iter().map(|id| self.failover.fate(id))).await?;
        let known = fates.last() == Some(&Fate::Waiting);
        for (signed, fate) in fates.into_iter().enumerate() {
            if let Fate::Included { block, success, .. } = fate {
                let agreed = match attempt.signed.get(signed) {
                    Some(one) => own_tx::agreed(&self.chain, &one.id).await,
                    None => None,
                };
                let seen = Included {
                    signed,
                    block,
                    success,
                    wasted: None,
                    agreed,
                };
                return included(&own, seen);
            }
        }
        let spent = attempt.resources.as_slice();
        let spenders = self.failover.spenders(spent).await?;
        let spenders: Vec<_> = spenders
            .into_iter()
            .filter(|one| *one != SpentBy::Nobody)
            .collect();
        if spenders.is_empty() {
            return Ok(Status::Waiting { known });
        }
        self.used(attempt, &own, &spenders).await
    }

    async fn reached(&self) -> Result<Bytes, SubmitError> {
        let head = self.chain.reader.fresh_head().await?;
        Ok(HEIGHT.bytes(head.block.number))
    }
}

#[async_trait]
impl Outlook for Asked {
    async fn prepare(self: Box<Self>, known: Known<'_>) -> Result<Prepared, SubmitError> {
        let Self {
            payer,
            intent,
            mut coins,
            rates,
            height,
        } = *self;
        let number = known.account.map_or(Ok(0), numbered::count)?;
        coins.retain(|coin| !known.held.contains(&coin::output(&coin.outpoint)));
        let mut own = Own::of(&intent, number, Vec::new())?;
        let plan = own.plan(false, &payer.script);
        let choice = choice::choose(&coins, &plan, (rates, intent.work))?;
        let paid = body::sum(&own.outputs);
        if known.keeps {
            let held = held(known.attempts)?;
            if choice::crowds_out(&choice, paid, (&coins, &held)) {
                return Err(SubmitError::Short {
                    available: Amount::ZERO,
                    needed: Amount::from(paid),
                });
            }
        }
        let Choice { coins, made } = choice;
        let signed = payer.sign(made, &coins).await?;
        own.coins = coins;
        own.signed.push(Version::of(&signed, false, height));
        Ok(Prepared {
            attempt: own.attempt(&payer.native, intent.spends)?,
            account: Some(numbered::counted(number.saturating_add(1))),
            jump: None,
        })
    }
}

#[async_trait]
impl Costs for Payer {
    /// A transaction pays its fee whenever it lands.
    async fn at_most(&self, attempt: &Attempt, signed: usize) -> Result<Amount, SubmitError> {
        let own = Own::read(attempt)?;
        let paid = own.signed.get(signed).map(|version| own.paid(version));
        let paid = paid.transpose()?.map_or(0, |paid| paid.fee);
        Ok(Amount::from(paid))
    }
}

impl Payer {
    /// What the account has in final blocks, by agreement, and the newest block.
    async fn coins(&self) -> Result<(Vec<Coin>, u64), ReadError> {
        let coins = async { coin::agreed(&self.failover, &self.account).await };
        let head = async { self.chain.reader.fresh_head().await };
        let (mut coins, head) = futures::try_join!(coins, head)?;
        let depth = self.chain.spec.finality.blocks;
        coins.retain(|coin| coin.height.saturating_add(depth) <= head.block.number);
        Ok((coins, head.block.number))
    }

    /// What inclusion costs now: half way between two that are near each other, since one of them may be a lie. An error
    /// above the operator's limit.
    async fn rates(&self) -> Result<Rates, SubmitError> {
        let rate = self.failover.rate().await?;
        let number = |rate: u128| u64::try_from(rate).unwrap_or(u64::MAX);
        match number(rate.expected()) > self.most {
            true => Err(SubmitError::Dear),
            false => Ok(Rates {
                now: number(rate.between()).min(self.most),
                most: self.most,
            }),
        }
    }

    /// Whether a signed transaction does not land as it is: it pays less than what is asked now, or nodes have something
    /// else that pays more than it. A block takes minutes: any other is left alone. What nodes have may be an older one
    /// with what hangs on it, which the next block may take: only a block after the newest one shows that it did not.
    async fn is_stuck(
        &self,
        newest: &Version,
        (paid, rates): (Before, Rates),
        height: u64,
    ) -> Result<bool, ReadError> {
        if paid.fee < paid.size.saturating_mul(rates.now) {
            return Ok(true);
        }
        if height <= newest.height {
            return Ok(false);
        }
        let said = self.failover.broadcast(&newest.raw).await?;
        Ok(said == Broadcast::Underpriced)
    }

    async fn sign(&self, made: Transaction, coins: &[Coin]) -> Result<Transaction, SubmitError> {
        signature::sign(made, coins, (&*self.key, &self.public, &self.script)).await
    }

    /// What became of an attempt of whose outputs a quorum has some as spent, and none of whose transactions it has in a
    /// block by its newest heads.
    async fn used(
        &self,
        attempt: &Attempt,
        own: &Own,
        spenders: &[SpentBy],
    ) -> Result<Status, SubmitError> {
        let head = self.chain.reader.fresh_head().await?;
        for (signed, one) in attempt.signed.iter().enumerate() {
            if let Found::Succeeded(receipt) = own_tx::at(&self.chain, &one.id, &head).await? {
                let seen = Included {
                    signed,
                    block: receipt.block.clone(),
                    success: true,
                    wasted: None,
                    agreed: Some((Found::Succeeded(receipt), head)),
                };
                return included(own, seen);
            }
        }
        for spender in spenders {
            let SpentBy::Transaction(id) = spender else {
                continue;
            };
            let id = alloy::hex::encode(id);
            // One of its own that was not read before is no conflict.
            if attempt.signed.iter().any(|one| one.id == id) {
                continue;
            }
            if let Found::Succeeded(receipt) = own_tx::at(&self.chain, &id, &head).await?
                && self.chain.spec.finality.met(&receipt.block, &head)
            {
                return Ok(Status::Lost);
            }
        }
        Ok(Status::Doubtful)
    }
}

/// What open attempts hold.
fn held(attempts: &[Bytes]) -> Result<Vec<Coin>, CodecError> {
    let mut held = Vec::new();
    for own in attempts {
        held.extend(Own::decode(own)?.coins);
    }
    Ok(held)
}

/// With what it cost where it paid nobody.
fn included(own: &Own, mut seen: Included) -> Result<Status, SubmitError> {
    if let Some(version) = own.signed.get(seen.signed).filter(|one| one.cancels) {
        seen.wasted = Some(Amount::from(own.paid(version)?.fee));
    }
    Ok(Status::Included(Box::new(seen)))
}

/// A transaction's id as providers are asked for it.
fn id(transaction: &Transaction) -> Bytes {
    shown_txid(&transaction.compute_txid()).0.to_vec().into()
}

#[cfg(test)]
mod tests;
