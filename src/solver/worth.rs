//! Whether a deposit is worth a transaction. Dust is not: it is worth less than giving it back could ever cost, however
//! low fees are now.

use std::collections::HashMap;

use alloy::primitives::B256;
use vm::{Amount, U256};

use super::{
    Solver, View,
    judge::{self, Worth},
};
use crate::{
    price::PriceError,
    request::fact::{Deposit, Standing},
};

/// A cent in usd e18, and five. Dust is worth less than a settlement costs now, within these two bounds: no transfer
/// costs less, and a minute of high fees parks nothing.
const DUST: u64 = 10_000_000_000_000_000;
const MOST_DUST: u64 = 5 * DUST;

impl Solver {
    /// The worth of every deposit that may be given back, and of every excess. One whose worth cannot be found out now
    /// is left out.
    pub(super) async fn worths(&self, view: &View) -> HashMap<B256, Worth> {
        let mut worths = HashMap::new();
        for deposit in &view.facts.deposits {
            let unused = judge::is_unused(&view.claim, deposit).then_some(deposit.amount);
            let due = || judge::excess::due(&view.request, &view.claim, deposit);
            let Some(amount) = unused.or_else(due) else {
                continue;
            };
            if deposit.standing != Standing::Final {
                continue;
            }
            if let Some(worth) = self.worth(deposit, amount, view.now / 1_000).await {
                worths.insert(deposit.onchain_id, worth);
            }
        }
        worths
    }

    async fn worth(&self, deposit: &Deposit, amount: Amount, now: u64) -> Option<Worth> {
        let chain = self
            .accounts
            .get(&deposit.network)
            .map(|account| &account.chain);
        let Some(listed) = chain.and_then(|chain| chain.listed(&deposit.currency)) else {
            return Some(Worth::Unknown);
        };
        let price = match self.prices.price(listed, now).await {
            Ok(price) => price,
            Err(PriceError::Unknown(_)) => return Some(Worth::Unknown),
            Err(error) => {
                tracing::warn!(currency = listed.symbol, %error, "a deposit waits for a price");
                return None;
            }
        };
        let unit = U256::from(10).saturating_pow(U256::from(listed.decimals));
        let value = amount.saturating_mul(price.usd) / unit;
        let settlement = self.settlement.settlement(now).await.unwrap_or_default();
        let dust = settlement.clamp(U256::from(DUST), U256::from(MOST_DUST));
        Some(match value < dust {
            true => Worth::Dust,
            false => Worth::Something,
        })
    }
}
