//! Read-only calls at a chain's head, for what is judged again on the chain itself (a swap's limit)
//! or by a second source (a price). Nothing here has a quorum.

use std::{sync::Arc, time::Duration};

use vm::{
    Address, Bytes, Family, ReadError, U256,
    trade::{Accounts, Call, Revert},
};

use super::Opened;

/// How long one provider may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// The providers of one chain, each asked by itself.
#[derive(Clone)]
pub struct Views {
    pub family: &'static Family,
    /// In the operator's order; empty when the chain has no provider.
    pub accounts: Vec<Arc<dyn Accounts>>,
}

impl Opened {
    /// The chain's head as its providers show it, each by itself.
    pub fn views(&self) -> Views {
        let accounts = self.trades.iter().map(|trade| trade.accounts.clone());
        Views {
            family: self.chain.spec.family,
            accounts: accounts.collect(),
        }
    }
}

/// What a call answered: `Err` inside is a revert.
pub type Answer = Result<Result<Bytes, Revert>, ReadError>;

impl Views {
    /// Asks one provider after the other until one answers.
    pub async fn any(&self, to: &Address, data: Bytes) -> Answer {
        let mut answer = Err(nobody());
        for accounts in &self.accounts {
            answer = self.one(accounts, to, data.clone()).await;
            if answer.is_ok() {
                break;
            }
        }
        answer
    }

    /// Asks one provider, as nobody in particular.
    pub async fn one(&self, accounts: &Arc<dyn Accounts>, to: &Address, data: Bytes) -> Answer {
        let from = self
            .family
            .native()
            .map_err(|error| ReadError::Unavailable(error.to_string()))?;
        let call = Call {
            from,
            to: to.clone(),
            data,
            value: U256::ZERO,
        };
        tokio::time::timeout(PATIENCE, accounts.call(&call))
            .await
            .unwrap_or_else(|_| Err(ReadError::Unavailable("no answer in time".to_owned())))
    }
}

fn nobody() -> ReadError {
    ReadError::Unavailable("no provider".to_owned())
}
