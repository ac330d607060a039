//! Lands the payments of an account. Every transaction expires. A replacement is signed only once a quorum has a final
//! block above the last height of every earlier transaction of the attempt, and has none of them in a block: so at most
//! one transaction of an attempt ever lands. No transaction can cancel another one. A cancelled attempt is over as soon
//! as its transactions have expired in the same sense.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;

use crate::{
    Chain, CodecError, ReadError,
    trade::{
        Attempt, Broadcast, Costs, Failover, Fate, FeeRate, Goal, Included, Intent, Known, Message,
        Outlook, Prepared, Signer, Status, SubmitError, Submitter, TradingProvider, numbered,
        own_tx,
    },
    types::{Address, Amount, Block, Bytes, Head, Transaction as Found},
};

use super::{
    attempt::{HEIGHT, Own},
    codec::address,
    transaction::{Transaction, Unsigned},
};

/// Heights within which a transaction can land.
pub const LIFE: u64 = 24;
/// The most transactions of an attempt.
const MOST: usize = 64;
/// The most heights that are asked for in search of the first block above a height.
const LOOKED_AT: u32 = 16;

/// An account on one chain.
#[derive(Clone)]
pub struct Payer {
    pub chain: Chain,
    pub failover: Failover,
    pub key: Arc<dyn Signer>,
    pub account: Address,
    pub native: Address,
    /// The chain's number, for which transactions are signed.
    pub number: u64,
    /// The rate above which nothing is signed, in the native currency's smallest unit per byte.
    pub most: u128,
    /// What a transaction costs besides its bytes, in the same unit.
    pub rent: Amount,
}

/// An intent with the terms for its first transaction.
struct Asked {
    payer: Payer,
    intent: Intent,
    terms: Terms,
}

/// The terms on which a transaction is signed now.
#[derive(Clone, Copy)]
struct Terms {
    rate: FeeRate,
    expires: u64,
}

#[async_trait]
impl Submitter for Payer {
    async fn look(&self, goal: Goal<'_>, _: bool) -> Result<Box<dyn Outlook>, SubmitError> {
        match goal {
            Goal::Land(intent) => Ok(Box::new(Asked {
                payer: self.clone(),
                intent: intent.clone(),
                terms: self.terms().await?,
            })),
            Goal::UseUp(_) => {
                let why = "nothing on this chain waits for another transaction";
                Err(CodecError(why.into()).into())
            }
        }
    }

    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError> {
        let mut own = Own::read(attempt)?;
        let signed = own.transactions()?;
        if own.cancelled {
            return Ok(None);
        }
        if cancel {
            own.cancelled = true;
            let mut cancelled = attempt.clone();
            cancelled.own = own
                .attempt((self.native.clone(), Amount::ZERO), Vec::new())?
                .own;
            return Ok(Some(cancelled));
        }
        if signed.len() >= MOST {
            return Ok(None);
        }
        let head = self.chain.reader.fresh_head().await?;
        if !self.are_over(&signed, &head).await? {
            return Ok(None);
        }
        let terms = match self.terms().await {
            Err(SubmitError::Dear) => return Ok(None),
            terms => terms?,
        };
        let others = attempt.spends.iter().skip(1).cloned().collect();
        Ok(Some(self.another(own, terms, others).await?))
    }

    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError> {
        let own = Own::read(attempt)?;
        let Some(newest) = own.newest().filter(|_| !own.cancelled) else {
            return Ok(None);
        };
        Ok(Some(self.failover.broadcast(newest).await?))
    }

    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError> {
        let own = Own::read(attempt)?;
        let signed = own.transactions()?;
        let fates = signed.iter().map(|one| self.failover.fate(&one.signature));
        let fates = try_join_all(fates).await?;
        let known = fates.last() == Some(&Fate::Waiting);
        for (at, fate) in fates.into_iter().enumerate() {
            let Fate::Included {
                block,
                success,
                spent,
                ..
            } = fate
            else {
                continue;
            };
            let agreed = own_tx::agreed(&self.chain, &signed[at].id()).await;
            let success = match &agreed {
                Some((agreed, _)) => matches!(agreed, Found::Succeeded(_)),
                None => success,
            };
            let wasted = spent.filter(|_| !success);
            return Ok(Status::Included(Box::new(Included {
                signed: at,
                block,
                success,
                wasted: wasted
                    .map(|spent| spent.work.saturating_add(spent.besides.unwrap_or_default())),
                agreed,
            })));
        }
        if !own.cancelled {
            return Ok(Status::Waiting { known });
        }
        let head = self.chain.reader.fresh_head().await?;
        Ok(match self.are_over(&signed, &head).await? {
            true => Status::Expired,
            false => Status::Waiting { known },
        })
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
            terms,
        } = *self;
        let mut number = known.account.map_or(Ok(0), numbered::count)?;
        let mut own = Own::of(&intent, number)?;
        while known.held.iter().any(|held| held[..] == own.id) {
            number += 1;
            own = Own::of(&intent, number)?;
        }
        Ok(Prepared {
            attempt: payer.another(own, terms, intent.spends).await?,
            account: Some(numbered::counted(number + 1)),
            jump: None,
        })
    }
}

#[async_trait]
impl Costs for Payer {
    async fn at_most(&self, attempt: &Attempt, signed: usize) -> Result<Amount, SubmitError> {
        let own = Own::read(attempt)?;
        let rate = self.failover.rate().await?;
        let signed = own.transactions()?.into_iter().nth(signed);
        let raw = signed.map(|one| one.raw()).transpose()?;
        Ok(raw.map_or(Amount::ZERO, |raw| self.fee(rate.expected(), raw.len())))
    }
}

impl Payer {
    /// The whole fee of a transaction of this many bytes.
    fn fee(&self, rate: u128, bytes: usize) -> Amount {
        let work = Amount::from(rate).saturating_mul(Amount::from(bytes));
        work.saturating_add(self.rent)
    }

    /// The present terms. An error where the rate is above the operator's limit.
    async fn terms(&self) -> Result<Terms, SubmitError> {
        let head = async { self.chain.reader.fresh_head().await };
        let (rate, head) = futures::try_join!(self.failover.rate(), head)?;
        match rate.expected() > self.most {
            true => Err(SubmitError::Dear),
            false => Ok(Terms {
                rate,
                expires: head.block.number.saturating_add(LIFE),
            }),
        }
    }

    /// The attempt with one more signed transaction.
    async fn another(
        &self,
        mut own: Own,
        terms: Terms,
        others: Vec<(Address, Amount)>,
    ) -> Result<Attempt, SubmitError> {
        let unsigned = Unsigned {
            chain: self.number,
            payer: address(&self.account)?,
            expires: terms.expires,
            salt: own.id,
            payments: own.payments.clone(),
        };
        let message = unsigned.message()?;
        let signature = self.key.sign(Message::Ed25519(&message)).await?;
        let transaction = unsigned.signed(signature);
        own.add(&transaction)?;
        let bytes = transaction.raw()?.len();
        let fee = self.fee(terms.rate.most(), bytes);
        Ok(own.attempt((self.native.clone(), fee), others)?)
    }

    /// Whether none of them can land any more, whatever happens: a quorum has a final block above the last height of
    /// each and has none of them in a block, both as seen from `head`.
    async fn are_over(&self, signed: &[Transaction], head: &Head) -> Result<bool, ReadError> {
        let expires = signed.iter().map(|one| one.unsigned.expires).max();
        let Some(expires) = expires else {
            return Ok(true);
        };
        if !self.is_past(expires, head).await? {
            return Ok(false);
        }
        for one in signed {
            if own_tx::at(&self.chain, &one.id(), head).await? != Found::Missing {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a quorum has a final block above a height, as seen from `head`.
    async fn is_past(&self, height: u64, head: &Head) -> Result<bool, ReadError> {
        for step in 0..LOOKED_AT {
            let above = height.saturating_add(1 << step).min(head.block.number);
            let Some(block) = self.block(above).await? else {
                return Ok(false);
            };
            if block.number > height {
                let is_final = self.chain.spec.finality.met(&block, head);
                return Ok(is_final && self.chain.reader.contains(&block).await?);
            }
        }
        Ok(false)
    }

    /// The block that stands at a height, as one provider shows it.
    async fn block(&self, height: u64) -> Result<Option<Block>, ReadError> {
        let ask = |provider: TradingProvider| async move { provider.scanner.block(height).await };
        self.failover.first(ask).await
    }
}
