//! A Solana chain through all its providers: what enough of them say. A unit of work is 1,000 compute units ([`UNIT`]).

use std::sync::Arc;

use async_trait::async_trait;
use solana_pubkey::Pubkey;

use super::{
    UNIT, account,
    body::{Content, Instructions, Payments, key},
    limits::Limits,
    lookup::Tables,
    memory,
    message::{self, MOST_BYTES},
    node::{Made, Node},
    pay::Facts,
    size, steps,
    submit::Payer,
};
use crate::{
    Chain, CodecError, Family, ReadError, SpecError,
    trade::{
        self, Account, Draft, Failover, Fees, OpenAccount, Providers, ProvidersContext, Revert,
        Scheme, Signer, TradingProvider, Trial, Unfit, Work,
    },
    types::{Address, Amount, Block},
};

/// Why a payment to a token account is not made.
const LOST: &str = "the recipient is a token account: its owner is paid";

/// One chain.
#[derive(Clone)]
pub struct Wallet {
    pub failover: Failover,
    pub family: &'static Family,
    pub limits: Arc<Limits>,
    tables: Arc<Tables>,
}

/// See [`Family::providers`].
pub fn providers(
    context: ProvidersContext,
    providers: Vec<TradingProvider>,
) -> Result<Option<Providers>, SpecError> {
    let ProvidersContext {
        spec,
        required,
        limits,
        ..
    } = context;
    let limits = Limits::read(&limits.unwrap_or_default())?;
    let Some(failover) = Failover::new(spec.id.as_str(), required, providers) else {
        return Ok(None);
    };
    let neutral = limits.neutral();
    memory::believe(spec.id.as_str(), failover.required());
    let wallet = Arc::new(Wallet {
        failover: failover.clone(),
        family: spec.family,
        limits: Arc::new(limits),
        tables: Arc::default(),
    });
    Ok(Some(Providers {
        failover,
        limits: neutral,
        usual,
        wallet: wallet.clone(),
        fees: wallet.clone(),
        accounts: wallet,
        approvals: None,
        contracts: None,
        declinable: true,
        pays_as_signed: true,
        funding: None,
    }))
}

/// What transactions usually take at most, in units of work. A memo takes some twenty, an account that is made as many.
fn usual(work: Work) -> u64 {
    match work {
        Work::Payment { native: true } => 40,
        Work::Payment { native: false } | Work::Send | Work::Kept => 80,
        Work::Deposit => 100,
        Work::Swap => 60,
        Work::Room => 20,
        Work::Approve | Work::Routed | Work::Call => 0,
    }
}

#[async_trait]
impl trade::Wallet for Wallet {
    /// Its size, and whether its currencies are such that can be sent.
    async fn admit(&self, draft: &Draft) -> Result<Result<(), Unfit>, ReadError> {
        match Content::of(draft) {
            Ok(Content::Payments(payments)) => {
                let facts = self.facts(&payments).await?;
                if let Some(why) = facts.unpaid() {
                    return Ok(Err(Unfit::Currency(why)));
                }
                let fitting = fits(&draft.from, &payments, &facts);
                match self.is_lost(&Content::Payments(payments)).await? {
                    true => Ok(Err(CodecError(LOST.into()).into())),
                    false => Ok(fitting),
                }
            }
            Ok(Content::Instructions(own)) => {
                let sender = match key(&draft.from) {
                    Ok(sender) => sender,
                    Err(error) => return Ok(Err(error.into())),
                };
                if let Some(why) = self.untaken(&own).await? {
                    return Ok(Err(Unfit::Currency(why)));
                }
                let tables = self.tables.read(&self.failover, &own.keys()).await?;
                Ok(size::fits(
                    &own,
                    &sender,
                    &tables,
                    self.limits.exchange_bytes,
                ))
            }
            Err(error) => Ok(Err(error.into())),
        }
    }

    async fn simulate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        let content = Content::of(trial.draft).map_err(doubtful)?;
        let refused = |reason: String| {
            Ok(Err(Revert {
                reason,
                data: Default::default(),
            }))
        };
        // Nodes only say that they cannot try it.
        if let Content::Payments(payments) = &content
            && let Some(why) = self.facts(payments).await?.unpaid()
        {
            return refused(why);
        }
        let (verdict, lost) =
            futures::try_join!(self.failover.estimate(trial), self.is_lost(&content))?;
        match lost {
            true => refused(LOST.into()),
            false => Ok(verdict),
        }
    }

    async fn is_modest(&self, _: &Address, _: u64) -> Result<bool, ReadError> {
        Ok(true)
    }
}

#[async_trait]
impl Fees for Wallet {
    /// The signatures, and the lamports of accounts that the transaction makes.
    async fn besides(&self, trial: &Trial<'_>) -> Result<Amount, ReadError> {
        let content = Content::of(trial.draft).map_err(doubtful)?;
        let (signatures, made) = match &content {
            Content::Payments(payments) => {
                let facts = self.facts(payments).await?;
                (1, payments.made(&facts).map_err(doubtful)?)
            }
            Content::Instructions(own) => {
                let sender = key(&trial.draft.from).map_err(doubtful)?;
                (signatures(own, &sender), steps::made(own))
            }
        };
        let signed =
            Amount::from(self.limits.signature_fee).saturating_mul(Amount::from(signatures));
        let (_, rent) = self.accounts(&made).await?;
        Ok(signed.saturating_add(rent))
    }

    async fn work(&self, draft: &Draft) -> Option<u64> {
        let estimate = self.failover.estimate(&Trial::free(draft)).await;
        estimate.ok()?.ok()
    }
}

impl OpenAccount for Wallet {
    fn account(
        &self,
        chain: &Chain,
        signer: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        if signer.scheme() != Scheme::Ed25519 {
            return Err(CodecError("accounts of solana-vm have ed25519 keys".into()));
        }
        let address = account(&signer.public_key())?;
        let payer = Arc::new(Payer {
            chain: chain.clone(),
            wallet: self.clone(),
            payer: key(&address)?,
            key: signer,
            native: self.family.native()?,
            most,
        });
        Ok(Account {
            address,
            submitter: payer.clone(),
            costs: payer,
        })
    }
}

impl Wallet {
    /// What a quorum says of the payments' currencies. What is no mint is left out.
    pub async fn facts(&self, payments: &Payments) -> Result<Facts, ReadError> {
        self.mints(payments.mints()).await
    }

    /// The same of mints.
    async fn mints(&self, keys: Vec<Pubkey>) -> Result<Facts, ReadError> {
        let mut facts = Facts::default();
        for key in keys {
            let ask =
                |provider: TradingProvider| async move { Node::of(&provider)?.mint(&key).await };
            facts.mints.extend(self.failover.agree("mint", ask).await?);
        }
        Ok(facts)
    }

    /// Why no deposit of a user's tokens is asked for, by agreement. One whose transfers cost would take more than its
    /// quote says, and again when it is given back or withdrawn: nobody bears that.
    async fn untaken(&self, own: &Instructions) -> Result<Option<String>, ReadError> {
        Ok(self.mints(steps::deposited(own)).await?.unpaid())
    }

    /// Whether a payment would be lost, by agreement: its recipient is an account of a token program.
    async fn is_lost(&self, content: &Content) -> Result<bool, ReadError> {
        let Content::Payments(payments) = content else {
            return Ok(false);
        };
        let recipients = payments.transfers.iter();
        let recipients = recipients.map(|one| Pubkey::new_from_array(one.to));
        let recipients: &Vec<_> = &recipients.collect();
        let ask = |provider: TradingProvider| async move {
            Node::of(&provider)?.are_tokens(recipients).await
        };
        let found = self.failover.agree("recipients", ask).await?;
        Ok(found.contains(&true))
    }

    /// Which of the accounts are there, and the lamports for those that are not.
    pub async fn accounts(&self, made: &[Made]) -> Result<(Vec<Pubkey>, Amount), ReadError> {
        if made.is_empty() {
            return Ok((Vec::new(), Amount::ZERO));
        }
        let ask = |provider: TradingProvider| async move { Node::of(&provider)?.there(made).await };
        let there = self.failover.agree("accounts", ask).await?;
        let missing = made.iter().filter(|made| !there.contains(&made.key));
        let missing: &Vec<_> = &missing.copied().collect();
        if missing.is_empty() {
            return Ok((there, Amount::ZERO));
        }
        let ask =
            |provider: TradingProvider| async move { Node::of(&provider)?.rents(missing).await };
        let rent = self.failover.number("rent", ask).await?;
        Ok((there, Amount::from(rent)))
    }

    /// The number of blocks below one that readers agreed on.
    pub async fn height(&self, block: &Block) -> Result<u64, ReadError> {
        let ask =
            |provider: TradingProvider| async move { Node::of(&provider)?.height(block).await };
        self.failover.agree("height", ask).await
    }
}

/// Whether a transaction of payments fits, and can be made at all.
fn fits(from: &Address, payments: &Payments, facts: &Facts) -> Result<(), Unfit> {
    let payer = key(from)?;
    let budget = message::budget(u32::MAX, u64::MAX);
    let list = [&budget[..], &payments.instructions(&payer, facts)?].concat();
    let bytes = message::bytes(&message::compile(&payer, &list, &[], [0; 32])?);
    match bytes > MOST_BYTES {
        true => Err(Unfit::Large {
            bytes,
            most: MOST_BYTES,
        }),
        false => Ok(()),
    }
}

/// How many sign a user's transaction.
fn signatures(own: &Instructions, sender: &Pubkey) -> u64 {
    let other = own.fee_payer.filter(|payer| *payer != sender.to_bytes());
    1 + u64::from(other.is_some())
}

/// A price of a compute unit for a rate, in micro-lamports.
pub fn price(rate: u128) -> u64 {
    let price = rate.saturating_mul(1_000_000) / u128::from(UNIT);
    u64::try_from(price).unwrap_or(u64::MAX)
}

fn doubtful(error: CodecError) -> ReadError {
    ReadError::Doubtful(error.to_string())
}
