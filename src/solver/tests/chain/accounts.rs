//! Accounts that pay, between the solver and the chain's family. Making a recipient's account may cost more when a payment
//! is signed than when it was judged. What is named of open attempts is remembered.

use std::sync::Arc;

use async_trait::async_trait;
use vm::{
    Amount, Bytes, Chain, CodecError, ReadError,
    trade::{
        Account, Attempt, Broadcast, Draft, Fees, Goal, Known, OpenAccount, Outlook, Prepared,
        Signer, Status, SubmitError, Submitter, Trial,
    },
};

use super::{FakeChain, world::Named};

/// What the chain's family says, with the rent of accounts.
pub(super) struct Accounts {
    pub chain: Arc<FakeChain>,
    pub fees: Arc<dyn Fees>,
    pub accounts: Arc<dyn OpenAccount>,
}

/// Signs no payment whose rent nobody is charged.
struct Payer {
    chain: Arc<FakeChain>,
    submitter: Arc<dyn Submitter>,
}

#[async_trait]
impl Fees for Accounts {
    async fn besides(&self, trial: &Trial<'_>) -> Result<Amount, ReadError> {
        let [rent, _] = self.chain.with(|world| world.rents);
        let besides = self.fees.besides(trial).await?;
        Ok(besides.saturating_add(Amount::from(rent)))
    }

    async fn work(&self, draft: &Draft) -> Option<u64> {
        self.fees.work(draft).await
    }
}

impl OpenAccount for Accounts {
    fn account(
        &self,
        chain: &Chain,
        key: Arc<dyn Signer>,
        most: u128,
    ) -> Result<Account, CodecError> {
        let opened = self.accounts.account(chain, key, most)?;
        let payer = Payer {
            chain: self.chain.clone(),
            submitter: opened.submitter.clone(),
        };
        Ok(Account {
            submitter: Arc::new(payer),
            ..opened
        })
    }
}

#[async_trait]
impl Submitter for Payer {
    async fn look(&self, goal: Goal<'_>, first: bool) -> Result<Box<dyn Outlook>, SubmitError> {
        let [_, rent] = self.chain.with(|world| world.rents);
        let asked = Amount::from(rent);
        if let Goal::Land(intent) = goal
            && let Some(most) = intent.besides.filter(|most| asked > *most)
        {
            return Err(SubmitError::Dearer { asked, most });
        }
        Ok(Box::new(Remembered {
            chain: self.chain.clone(),
            outlook: self.submitter.look(goal, first).await?,
        }))
    }

    async fn replace(
        &self,
        attempt: &Attempt,
        cancel: bool,
    ) -> Result<Option<Attempt>, SubmitError> {
        self.submitter.replace(attempt, cancel).await
    }

    async fn send(&self, attempt: &Attempt) -> Result<Option<Broadcast>, SubmitError> {
        self.submitter.send(attempt).await
    }

    async fn status(&self, attempt: &Attempt) -> Result<Status, SubmitError> {
        self.submitter.status(attempt).await
    }

    async fn reached(&self) -> Result<Bytes, SubmitError> {
        self.submitter.reached().await
    }
}

/// Remembers what is named of open attempts.
struct Remembered {
    chain: Arc<FakeChain>,
    outlook: Box<dyn Outlook>,
}

#[async_trait]
impl Outlook for Remembered {
    async fn prepare(self: Box<Self>, known: Known<'_>) -> Result<Prepared, SubmitError> {
        let Self { chain, outlook } = *self;
        let named = Named {
            held: known.held.to_vec(),
            attempts: known.attempts.len(),
            keeps: known.keeps,
        };
        chain.with(|world| world.named.push(named));
        outlook.prepare(known).await
    }
}
