//! Read-only calls at a chain's head, through its providers.

use vm::trade::{HeadCalls, TradingProvider};

use super::Opened;

impl Opened {
    /// The chain's head as its providers show it, each by itself.
    pub fn head_calls(&self) -> HeadCalls {
        self.over(&self.trading_providers)
    }

    /// The same, for what strangers have asked.
    pub fn asking_head_calls(&self) -> HeadCalls {
        self.over(&self.asking)
    }

    fn over(&self, providers: &[TradingProvider]) -> HeadCalls {
        let contracts = providers.iter();
        let contracts = contracts.filter_map(|provider| provider.contracts.clone());
        HeadCalls {
            family: self.chain.spec.family,
            contracts: contracts.collect(),
        }
    }
}
