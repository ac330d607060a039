//! Read-only calls at a chain's head, through its providers.

use vm::trade::{Trade, Views};

use super::Opened;

impl Opened {
    /// The chain's head as its providers show it, each by itself.
    pub fn views(&self) -> Views {
        self.over(&self.trades)
    }

    /// The same, for what strangers have asked.
    pub fn asking_views(&self) -> Views {
        self.over(&self.asking)
    }

    fn over(&self, trades: &[Trade]) -> Views {
        let accounts = trades.iter().map(|trade| trade.accounts.clone());
        Views {
            family: self.chain.spec.family,
            accounts: accounts.collect(),
        }
    }
}
