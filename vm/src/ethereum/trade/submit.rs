//! Lands what an account means to land: one nonce for each attempt, transactions that replace each other, and
//! one that does nothing where an attempt is cancelled.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::try_join_all;

use super::{
    codec::Unsealed,
    queue::{self, Queue},
    versions::{Price, Version, Versions},
    wallet::{Wallet, parts},
};
use crate::{
    Chain, CodecError,
    oracle::ReadError,
    trade::{
        Account, Attempt, Broadcast, Call, Costs, Draft, Fate, FeeRate, Fees, Goal, Included,
        Intent, Known, Message, Outlook, Prepared, Signer, Spent, Status, SubmitError, Submitter,
        Trial, Unsigned, own_tx,
    },
    types::{Address, Amount, Bytes, Head, Transaction},
};

/// How many times what a chain asks for a transaction's bytes is kept for them.
const DATA_ROOM: Amount = Amount::from_limbs([2, 0, 0, 0]);

/// An account on one chain.
#[derive(Clone)]
pub struct Nonces {
    pub chain: Chain,
    pub wallet: Wallet,
    pub key: Arc<dyn Signer>,
    pub account: Address,
    pub native: Address,
    /// Wei per gas unit above which no transaction is made.
    pub most: u128,
}

/// What the chain said for an attempt.
struct Asked {
    nonces: Nonces,
    versions: Versions,
    spends: Vec<(Address, Amount)>,
    rate: FeeRate,
    /// Whose nonce it is.
    of: Of,
}

enum Of {
    /// The next one, by what a quorum has mined.
    Next { mined: u64 },
    /// This one, which is used up.
    Gap { nonce: u64 },
}

#[async_trait]
impl Submitter for Nonces {
    async fn look(&self, goal: Goal<'_>, first: bool) -> Result<Box<dyn Outlook>, SubmitError> {
        Ok(Box::new(match goal {
            Goal::Land(intent) => self.next(intent, first).await?,
            Goal::UseUp(resource) => self.gap(queue::nonce(resource)?).await?,
        }))
    }

    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError> {
        let (nonce, mut versions) = read(attempt)?;
        let Some(cancels) = versions.cancels(cancel) else {
            return Ok(None);
        };
        let rate = match self.wallet.failover.rate().await {
            // What cancels replaces the newest one, whatever lands now.
            Err(_) if cancels => FeeRate::default(),
            rate => rate?,
        };
        let Some(price) = versions.dearer(cancels, rate, self.most) else {
            return Ok(None);
        };
        // What does nothing takes no more than the payment may.
        let plain = match cancels {
            true => Some(
                self.wallet
                    .idle(&self.account)
                    .await
                    .unwrap_or(versions.gas),
            ),
            false => None,
        };
        let version = self.version(&versions, nonce, price, plain).await?;
        versions.signed.push(version);
        let others = attempt.spends.iter().skip(1).cloned().collect();
        Ok(Some(versions.attempt(nonce, self.native.clone(), others)))
    }

    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError> {
        let (_, versions) = read(attempt)?;
        let Some(newest) = versions.signed.last() else {
            return Ok(None);
        };
        Ok(Some(self.wallet.failover.broadcast(&newest.raw).await?))
    }

    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError> {
        let (nonce, versions) = read(attempt)?;
        let newest_first = || versions.signed.iter().enumerate().rev();
        let fates = newest_first().map(|(_, version)| async move {
            let id = Bytes::copy_from_slice(version.hash.as_slice());
            self.wallet.failover.fate(&id).await
        });
        let (fates, mined) =
            futures::try_join!(try_join_all(fates), self.wallet.nonce(&self.account, false))?;
        let mut known = false;
        for ((at, _), fate) in newest_first().zip(fates) {
            match fate {
                Fate::Included {
                    block,
                    success,
                    spent,
                    ..
                } => {
                    let id = versions.signed[at].hash.to_string();
                    let agreed = own_tx::agreed(&self.chain, &id).await;
                    let seen = Included {
                        signed: at,
                        block,
                        success,
                        wasted: None,
                        agreed,
                    };
                    return Ok(self.included(&versions, seen, spent).await);
                }
                Fate::Waiting => known = true,
                Fate::Unknown => {}
            }
        }
        match mined > nonce {
            true => self.foreign(nonce, &versions).await,
            false => Ok(Status::Waiting { known }),
        }
    }

    async fn reached(&self) -> Result<Bytes, SubmitError> {
        let mined = self.wallet.nonce(&self.account, false).await?;
        Ok(queue::resource(mined))
    }
}

#[async_trait]
impl Outlook for Asked {
    async fn prepare(self: Box<Self>, known: Known<'_>) -> Result<Prepared, SubmitError> {
        let Self {
            nonces,
            mut versions,
            spends,
            rate,
            of,
        } = *self;
        let (nonce, kept, jump, plain) = match of {
            Of::Next { mined } => {
                let stored = known.account.map(Queue::read).transpose()?;
                let (nonce, kept, jump) = Queue::take(stored, mined)?;
                (nonce, Some(kept.bytes()), jump, None)
            }
            Of::Gap { nonce } => (nonce, None, None, Some(versions.gas)),
        };
        let price = Price::first(rate, nonces.most);
        let version = nonces.version(&versions, nonce, price, plain).await?;
        versions.signed.push(version);
        Ok(Prepared {
            attempt: versions.attempt(nonce, nonces.native, spends),
            account: kept,
            jump,
        })
    }
}

#[async_trait]
impl Costs for Nonces {
    async fn at_most(&self, attempt: &Attempt, signed: usize) -> Result<Amount, SubmitError> {
        let (_, versions) = read(attempt)?;
        let Some(version) = versions.signed.get(signed) else {
            return Ok(Amount::ZERO);
        };
        let rate = self.wallet.failover.rate().await?;
        let gas = version.gas_at(rate.expected());
        Ok(gas.saturating_add(self.bytes_of(&versions, version).await))
    }
}

impl Nonces {
    /// The account of a key on a chain that `wallet` reaches.
    pub fn open(
        wallet: &Wallet,
        chain: &Chain,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        let family = chain.spec.family;
        let keys = family.keys.filter(|keys| keys.scheme == key.scheme());
        let foreign = || CodecError(format!("Not a key of {}", family.name));
        let address = (keys.ok_or_else(foreign)?.account)(&key.public_key())?;
        let nonces = Arc::new(Self {
            chain: chain.clone(),
            wallet: wallet.clone(),
            key,
            account: address.clone(),
            native: family.native()?,
            most,
        });
        Ok(Account {
            address,
            submitter: nonces.clone(),
            costs: nonces,
        })
    }

    async fn next(&self, intent: &Intent, first: bool) -> Result<Asked, SubmitError> {
        // Also where something is stored the chain is looked at: the key may have been used elsewhere.
        let mined = async { Ok(self.wallet.nonce(&self.account, first).await?) };
        let data_fee = async {
            let fee = self.wallet.besides(&Trial::free(&intent.draft)).await?;
            Ok::<_, SubmitError>(fee.saturating_mul(DATA_ROOM))
        };
        let (mined, rate, data_fee) = futures::try_join!(mined, self.rate(), data_fee)?;
        Ok(Asked {
            nonces: self.clone(),
            versions: Versions::of(intent, data_fee)?,
            spends: intent.spends.clone(),
            rate,
            of: Of::Next { mined },
        })
    }

    async fn gap(&self, nonce: u64) -> Result<Asked, SubmitError> {
        let nothing = Draft::call(Call::nothing(&self.account));
        let gas = async { Ok::<_, SubmitError>(self.wallet.idle(&self.account).await?) };
        let data_fee = async {
            let fee = self.wallet.besides(&Trial::free(&nothing)).await?;
            Ok::<_, SubmitError>(fee.saturating_mul(DATA_ROOM))
        };
        let (rate, gas, data_fee) = futures::try_join!(self.rate(), gas, data_fee)?;
        let intent = Intent {
            draft: nothing,
            work: gas,
            besides: None,
            spends: Vec::new(),
        };
        Ok(Asked {
            nonces: self.clone(),
            versions: Versions::of(&intent, data_fee)?,
            spends: Vec::new(),
            rate,
            of: Of::Gap { nonce },
        })
    }

    /// What gas costs now; an error above the operator's limit.
    async fn rate(&self) -> Result<FeeRate, SubmitError> {
        let rate = self.wallet.failover.rate().await?;
        match rate.expected() > self.most {
            true => Err(SubmitError::Dear),
            false => Ok(rate),
        }
    }

    /// What the chain charged for the bytes of a version besides gas, as far as anybody says so now.
    async fn bytes_of(&self, versions: &Versions, version: &Version) -> Amount {
        let draft = match version.cancels {
            true => Draft::call(Call::nothing(&self.account)),
            false => versions.draft(&self.account),
        };
        let fee = self.wallet.besides(&Trial::free(&draft)).await;
        fee.unwrap_or_default()
    }

    /// `plain`: the gas of one that only uses the nonce up.
    async fn version(
        &self,
        versions: &Versions,
        nonce: u64,
        price: Price,
        plain: Option<u64>,
    ) -> Result<Version, SubmitError> {
        let draft = match plain {
            Some(_) => Draft::call(Call::nothing(&self.account)),
            None => versions.draft(&self.account),
        };
        let (call, authorizations) = parts(&draft)?;
        let draft = Unsealed {
            call,
            authorizations: authorizations.to_vec(),
            nonce,
            gas: plain.unwrap_or(versions.gas),
            max_fee: price.most,
            max_priority_fee: price.tip,
        };
        let (codec, number) = self.wallet.codec();
        let digest = codec.digest(number, &draft)?;
        let signature = self.key.sign(Message::Ecdsa(&digest)).await?;
        let signature = <&[u8; 65]>::try_from(&signature[..])
            .map_err(|_| Unsigned("Not 65 bytes of signature".into()))?;
        let (raw, hash) = codec.seal(number, &draft, signature)?;
        Ok(Version {
            hash,
            raw,
            gas: draft.gas,
            maxFee: draft.max_fee,
            maxPriorityFee: draft.max_priority_fee,
            cancels: plain.is_some(),
        })
    }

    /// With what it cost where it paid nobody.
    async fn included(
        &self,
        versions: &Versions,
        mut seen: Included,
        spent: Option<Spent>,
    ) -> Status {
        let version = &versions.signed[seen.signed];
        let success = match &seen.agreed {
            Some((agreed, _)) => matches!(agreed, Transaction::Succeeded(_)),
            None => seen.success,
        };
        if let Some(spent) = spent.filter(|_| !success || version.cancels) {
            let data = match spent.besides {
                Some(data) => data,
                None => self.bytes_of(versions, version).await,
            };
            seen.wasted = Some(spent.work.saturating_add(data));
        }
        Status::Included(Box::new(seen))
    }

    /// The nonce is used, and by none of ours that the providers show. It is lost when a quorum has the
    /// account's transactions up to this one in final blocks, and none of ours anywhere: then another
    /// one has it, for good.
    async fn foreign(&self, nonce: u64, versions: &Versions) -> Result<Status, SubmitError> {
        let head = self.chain.reader.fresh_head().await?;
        for (signed, version) in versions.signed.iter().enumerate() {
            let agreed = own_tx::at(&self.chain, &version.hash.to_string(), &head).await?;
            let (block, success) = match &agreed {
                Transaction::Missing => continue,
                Transaction::Failed(failure) => (failure.block.clone(), false),
                Transaction::Succeeded(receipt) => (receipt.block.clone(), true),
            };
            return Ok(Status::Included(Box::new(Included {
                signed,
                block,
                success,
                wasted: None,
                agreed: Some((agreed, head)),
            })));
        }
        let settled = self.settled(&head).await?;
        Ok(match settled.is_some_and(|used| used > nonce) {
            true => Status::Lost,
            false => Status::Doubtful,
        })
    }

    /// How many of the account's transactions a quorum has in final blocks as seen from `head`; `None` where
    /// nobody can say so.
    async fn settled(&self, head: &Head) -> Result<Option<u64>, ReadError> {
        let Some(state) = &self.chain.state else {
            return Ok(None);
        };
        let Some(block) = state.settled(head).await? else {
            return Ok(None);
        };
        state.sequence(&self.account, &block).await.map(Some)
    }
}

fn read(attempt: &Attempt) -> Result<(u64, Versions), CodecError> {
    Ok((queue::nonce(&attempt.id)?, Versions::read(&attempt.own)?))
}
