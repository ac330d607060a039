//! Lands the payments of an account. Every transaction names the hash of a finalized block that a quorum agrees on, and
//! can land in the next blocks only. A replacement is signed only once a quorum has a finalized block above the last
//! one that can have any earlier transaction of the attempt, and has none of them up to there: so at most one
//! transaction of an attempt ever lands. No transaction can cancel another one. A cancelled attempt is over as soon as
//! its transactions have expired in the same sense.
//!
//! No node's word of a blockhash counts (`getLatestBlockhash`): one that says too early that it ends would have a
//! payment made twice.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;
use solana_pubkey::Pubkey;

use super::{
    UNIT,
    attempt::{Own, SLOT, Signed},
    body::{Content, Payments, address},
    message,
    pay::Facts,
    simulate::MOST_UNITS,
    wallet::{Wallet, price},
};
use crate::{
    Chain, CodecError, ReadError,
    trade::{
        Attempt, Broadcast, Costs, Fate, Goal, Included, Intent, Known, Message, Outlook, Prepared,
        Signer, Status, SubmitError, Submitter, numbered, own_tx,
    },
    types::{Address, Amount, Block, Bytes, Head, Transaction as Found},
};

/// The blocks above its own in which the runtime takes a blockhash.
pub const LIFE: u64 = 150;
/// Further blocks before it is believed that the runtime takes it no more.
pub const MARGIN: u64 = 10;
/// The most transactions of an attempt.
const MOST: usize = 64;
/// How many times as much is bid after each transaction that has expired.
const FOLD: u128 = 4;
/// How often that is done at most. A fill has time for as many until its price holds no more.
const MOST_RAISES: u32 = 3;
/// Attempts that follow each other pay prices that differ in what these leave over: two transactions that pay the same
/// under one blockhash would be one.
const SALTS: u64 = 1 << 10;

/// An account on one chain.
#[derive(Clone)]
pub struct Payer {
    pub chain: Chain,
    pub wallet: Wallet,
    pub key: Arc<dyn Signer>,
    /// The account's key.
    pub payer: Pubkey,
    pub native: Address,
    /// The rate above which nothing is signed, in lamports for a unit of work.
    pub most: u128,
}

/// An intent with the terms for its first transaction.
struct Asked {
    payer: Payer,
    intent: Intent,
    terms: Terms,
}

/// The terms on which a transaction is signed now.
struct Terms {
    /// Lamports for a unit of work.
    rate: u128,
    /// The block whose hash it names.
    block: Block,
    /// No block higher than this takes the transaction.
    last: u64,
    facts: Facts,
    /// Lamports for accounts that the transaction makes.
    rent: Amount,
}

#[async_trait]
impl Submitter for Payer {
    async fn look(&self, goal: Goal<'_>, _: bool) -> Result<Box<dyn Outlook>, SubmitError> {
        let Goal::Land(intent) = goal else {
            let why = "nothing on this chain waits for another transaction";
            return Err(CodecError(why.into()).into());
        };
        let Content::Payments(payments) = Content::of(&intent.draft)? else {
            return Err(CodecError("the solver sends nothing but payments".into()).into());
        };
        let terms = self.terms(&payments, 0).await?;
        let signature = Amount::from(self.wallet.limits.signature_fee);
        let asked = terms.rent.saturating_add(signature);
        // A recipient may have closed an account since the payment was judged. Nobody was charged for its rent.
        if let Some(most) = intent.besides.filter(|most| asked > *most) {
            return Err(SubmitError::Dearer { asked, most });
        }
        Ok(Box::new(Asked {
            payer: self.clone(),
            intent: intent.clone(),
            terms,
        }))
    }

    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError> {
        let mut own = Own::read(attempt)?;
        if own.cancelled {
            return Ok(None);
        }
        if cancel {
            own.cancelled = true;
            return Ok(Some(own.attempt(attempt.spends.clone())?));
        }
        if own.signed.len() >= MOST {
            return Ok(None);
        }
        let head = self.chain.reader.fresh_head().await?;
        if !self.are_over(&own.signed, &head).await? {
            return Ok(None);
        }
        let terms = match self.terms(&own.payments, own.signed.len()).await {
            // A currency that was sent has come to cost a fee.
            Err(SubmitError::Dear | SubmitError::Codec(_)) => return Ok(None),
            terms => terms?,
        };
        // What accounts cost that were closed meanwhile is in no price.
        if terms.rent > own.rent(attempt)? {
            return Ok(None);
        }
        Ok(Some(self.another(own, terms).await?))
    }

    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError> {
        let own = Own::read(attempt)?;
        let Some(newest) = own.signed.last().filter(|_| !own.cancelled) else {
            return Ok(None);
        };
        let raw = Bytes::copy_from_slice(&newest.raw);
        Ok(Some(self.wallet.failover.broadcast(&raw).await?))
    }

    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError> {
        let own = Own::read(attempt)?;
        let ids = own.signed.iter();
        let ids: Vec<_> = ids
            .map(|one| Bytes::copy_from_slice(&one.signature))
            .collect();
        let fates = ids.iter().map(|id| self.wallet.failover.fate(id));
        let fates = try_join_all(fates).await?;
        let known = fates.last() == Some(&Fate::Waiting);
        for (at, fate) in fates.into_iter().enumerate() {
            if let Some(included) = self.included((at, &own.signed[at]), fate).await {
                return Ok(Status::Included(Box::new(included)));
            }
        }
        if !own.cancelled {
            return Ok(Status::Waiting { known });
        }
        let head = self.chain.reader.fresh_head().await?;
        Ok(match self.are_over(&own.signed, &head).await? {
            true => Status::Expired,
            false => Status::Waiting { known },
        })
    }

    async fn reached(&self) -> Result<Bytes, SubmitError> {
        let head = self.chain.reader.fresh_head().await?;
        Ok(SLOT.bytes(head.block.number))
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
        let units = intent.work.saturating_mul(UNIT);
        let units = u32::try_from(units).map_or(MOST_UNITS, |units| units.min(MOST_UNITS));
        let mut number = known.account.map_or(Ok(0), numbered::count)?;
        let mut own = Own::of(&intent, (number, units))?;
        while known.held.iter().any(|held| held[..] == own.id) {
            number += 1;
            own = Own::of(&intent, (number, units))?;
        }
        Ok(Prepared {
            attempt: payer.another(own, terms).await?,
            account: Some(numbered::counted(number + 1)),
            jump: None,
        })
    }
}

#[async_trait]
impl Costs for Payer {
    /// What was signed costs what it says, whatever others bid.
    async fn at_most(&self, attempt: &Attempt, signed: usize) -> Result<Amount, SubmitError> {
        let own = Own::read(attempt)?;
        let signed = own.signed.get(signed);
        Ok(signed.map_or(Amount::ZERO, |one| Amount::from(one.fee)))
    }
}

impl Payer {
    /// The present terms of payments of which so many transactions have expired. An error where the rate is above the
    /// operator's limit.
    async fn terms(&self, payments: &Payments, expired: usize) -> Result<Terms, SubmitError> {
        let facts = async {
            let mut facts = self.wallet.facts(payments).await?;
            let made = payments.made(&facts)?;
            let (there, rent) = self.wallet.accounts(&made).await?;
            facts.there = there;
            Ok::<_, SubmitError>((facts, rent))
        };
        let rate = async { Ok::<_, SubmitError>(self.wallet.failover.rate().await?) };
        let head = async { Ok::<_, SubmitError>(self.chain.reader.fresh_head().await?) };
        let (rate, (facts, rent), head) = futures::try_join!(rate, facts, head)?;
        if rate.expected() > self.most {
            return Err(SubmitError::Dear);
        }
        let height = self.wallet.height(&head.block).await?;
        // A transaction that expired was outbid, whatever nodes say that others bid.
        let raises = u32::try_from(expired).unwrap_or(u32::MAX).min(MOST_RAISES);
        Ok(Terms {
            rate: rate
                .expected()
                .saturating_mul(FOLD.pow(raises))
                .min(self.most),
            last: height.saturating_add(LIFE).saturating_add(1),
            block: head.block,
            facts,
            rent,
        })
    }

    /// The attempt with one more signed transaction.
    async fn another(&self, mut own: Own, terms: Terms) -> Result<Attempt, SubmitError> {
        let price = price(terms.rate);
        let price = price - price % SALTS + own.number() % SALTS;
        let list = own.payments.instructions(&self.payer, &terms.facts)?;
        let list = [&message::budget(own.units, price)[..], &list].concat();
        let message = message::compile(&self.payer, &list, &[], terms.block.hash.0)?.serialize();
        let signature = self.key.sign(Message::Ed25519(&message)).await?;
        let signature = <[u8; message::SIGNATURE]>::try_from(&signature[..]);
        let signature = signature.map_err(|_| CodecError("not an ed25519 signature".into()))?;
        let raw = message::signed(&message, &signature);
        if raw.len() > message::MOST_BYTES {
            let (bytes, most) = (raw.len(), message::MOST_BYTES);
            return Err(CodecError(format!("a transaction of {bytes} bytes, above {most}")).into());
        }
        let fee = self.fee(price, own.units);
        own.signed.push(Signed {
            raw: raw.to_vec(),
            signature,
            slot: terms.block.number,
            last: terms.last,
            fee,
        });
        let native = Amount::from(own.payments.native()?).saturating_add(Amount::from(fee));
        let mut spends = vec![(self.native.clone(), native.saturating_add(terms.rent))];
        let tokens = own.payments.tokens(&terms.facts)?.into_iter();
        spends.extend(tokens.map(|(mint, amount)| (address(&mint), amount)));
        Ok(own.attempt(spends)?)
    }

    /// Lamports for the signature, and for the units that a transaction may take.
    fn fee(&self, price: u64, units: u32) -> u64 {
        let work = (u128::from(price) * u128::from(units)).div_ceil(1_000_000);
        let work = u64::try_from(work).unwrap_or(u64::MAX);
        work.saturating_add(self.wallet.limits.signature_fee)
    }

    /// Whether none of them can land any more, whatever happens: a quorum has finalized a block above the last one that
    /// can have any, and has none of them, both as seen from `head`.
    async fn are_over(&self, signed: &[Signed], head: &Head) -> Result<bool, ReadError> {
        let Some(last) = signed.iter().map(|one| one.last).max() else {
            return Ok(true);
        };
        let reached = self.wallet.height(&head.block).await?;
        // What the chain's entry asks for besides: slots, of which there are no fewer than blocks.
        let depth = MARGIN.saturating_add(self.chain.spec.finality.blocks);
        if reached <= last.saturating_add(depth) {
            return Ok(false);
        }
        for one in signed {
            if own_tx::at(&self.chain, &one.id(), head).await? != Found::Missing
                || !self.wallet.is_unseen(one, &head.block).await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where a transaction of an attempt is, with its number there, that providers have in a block.
    async fn included(&self, (at, signed): (usize, &Signed), fate: Fate) -> Option<Included> {
        let Fate::Included {
            block,
            success,
            spent,
            ..
        } = fate
        else {
            return None;
        };
        let agreed = own_tx::agreed(&self.chain, &signed.id()).await;
        let success = match &agreed {
            Some((agreed, _)) => matches!(agreed, Found::Succeeded(_)),
            None => success,
        };
        let wasted = spent.filter(|_| !success);
        let wasted =
            wasted.map(|spent| spent.work.saturating_add(spent.besides.unwrap_or_default()));
        Some(Included {
            signed: at,
            block,
            success,
            wasted,
            agreed,
        })
    }
}
