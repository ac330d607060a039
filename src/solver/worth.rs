//! Whether a deposit is worth a transaction. Dust is not: it is worth less than giving it back could ever cost, however
//! low fees are now.

use std::{collections::HashMap, time::Duration};

use alloy::primitives::B256;
use futures::future::join_all;
use tokio::time::timeout;
use vm::{Amount, U256};

use super::{
    Solver, View,
    judge::{self, Worth},
};
use crate::{
    market::Currency,
    price::{Price, PriceError},
    request::{
        fact::{Deposit, Standing},
        mismatch::mismatch,
    },
};

/// A cent in usd e18, and five. Dust is worth less than a settlement costs now, within these two bounds: no transfer
/// costs less, and a minute of high fees parks nothing.
const DUST: u64 = 10_000_000_000_000_000;
const MOST_DUST: u64 = 5 * DUST;

/// How long a look waits for prices. It is a part of the time within which a look begins a payment.
const PATIENCE: Duration = Duration::from_secs(10);

impl Solver {
    /// The worth of every deposit that may be given back, and of every excess. One whose worth cannot be found out now
    /// is left out. Each currency is asked for once, and all at the same time: what strangers deposit delays no fill.
    pub(super) async fn worths(&self, view: &View) -> HashMap<B256, Worth> {
        let (mut worths, mut currencies) = (HashMap::new(), HashMap::new());
        for deposit in &view.facts.deposits {
            let Some(amount) = returnable(view, deposit) else {
                continue;
            };
            // Nobody knows what is listed on a network that is not opened.
            let Some(account) = self.accounts.get(&deposit.network) else {
                continue;
            };
            let Some(listed) = account.chain.listed(&deposit.currency) else {
                worths.insert(deposit.onchain_id, Worth::Unknown);
                continue;
            };
            let key = (deposit.network.as_str(), listed.address.as_str());
            let (_, amounts) = currencies
                .entry(key)
                .or_insert_with(|| (listed, Vec::new()));
            amounts.push((deposit.onchain_id, amount));
        }
        if currencies.is_empty() {
            return worths;
        }
        let now = view.now / 1_000;
        let asked = currencies
            .into_values()
            .map(|(listed, amounts)| async move {
                let price = self.price_in_time(listed, now).await;
                (listed, amounts, price)
            });
        let settlement = timeout(PATIENCE, self.settlement.settlement(now));
        let (priced, settlement) = tokio::join!(join_all(asked), settlement);
        let settlement = settlement.ok().and_then(Result::ok).unwrap_or_default();
        let dust = settlement.clamp(U256::from(DUST), U256::from(MOST_DUST));
        for (listed, amounts, price) in priced {
            for (id, amount) in amounts {
                let worth = worth((listed, amount), &price, dust);
                worths.extend(worth.map(|worth| (id, worth)));
            }
        }
        worths
    }

    async fn price_in_time(&self, listed: &Currency, now: u64) -> Result<Price, PriceError> {
        let found = timeout(PATIENCE, self.prices.price(listed, now)).await;
        let late = |_| PriceError::Unavailable {
            currency: listed.symbol.clone(),
            why: "no answer in time".to_owned(),
        };
        let price = found.map_err(late).flatten();
        if let Err(error @ PriceError::Unavailable { .. }) = &price {
            tracing::warn!(currency = listed.symbol, %error, "deposits wait for a price");
        }
        price
    }
}

/// How much of a deposit may be given back and has to be worth that. What the order asked for is given back whatever it
/// is worth.
fn returnable(view: &View, deposit: &Deposit) -> Option<Amount> {
    if deposit.standing != Standing::Final {
        return None;
    }
    match judge::is_unused(&view.claim, deposit) {
        true => mismatch(&view.request, deposit).map(|_| deposit.amount),
        false => judge::excess::due(&view.request, &view.claim, deposit),
    }
}

/// What so much of a currency is worth; `None` where nobody says its price now. Below `dust`, in usd e18, it is dust.
fn worth(
    (listed, amount): (&Currency, Amount),
    price: &Result<Price, PriceError>,
    dust: U256,
) -> Option<Worth> {
    let price = match price {
        Ok(price) => price,
        Err(PriceError::Unknown(_)) => return Some(Worth::Unknown),
        Err(PriceError::Unavailable { .. }) => return None,
    };
    let unit = U256::from(10).saturating_pow(U256::from(listed.decimals));
    let value = amount.saturating_mul(price.usd) / unit;
    Some(match value < dust {
        true => Worth::Dust,
        false => Worth::Something,
    })
}
