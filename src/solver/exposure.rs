//! How much the solver pays within an hour and is not paid for yet: by network, by currency, by user.

mod ledger;

use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy::primitives::{B256, U256};
use tokio::sync::OnceCell;
use vm::{Amount, Family};

pub use self::ledger::{Ledger, Limits};
use super::{Solver, SolverError};
use crate::{
    market::Dollars,
    request::{Request, fact::Deposit},
    store::{
        Batch,
        rows::{OUTLAY, outlay},
        walk::Walk,
    },
};

pub use crate::store::rows::outlay::Outlay;

/// USD with 18 decimals in a millionth of a dollar.
const MICRO: u64 = 1_000_000_000_000;

/// What was paid lately, read from the store once.
#[derive(Debug, Default)]
pub struct Exposure(OnceCell<Mutex<Ledger>>);

/// What somebody would be paid.
#[derive(Clone, Copy, Debug)]
pub struct Payment<'a> {
    pub network: &'a str,
    pub currency: &'a str,
    pub amount: Amount,
    /// Who counts as the recipient, where anybody does, and the family of that address: a depositor's is of the chain
    /// where he deposits.
    pub user: Option<(&'a Family, &'a str)>,
}

impl Payment<'_> {
    /// What it counts on a network of `family`: `usd` millionths of a dollar. `now` in unix seconds.
    fn outlay(&self, family: &Family, usd: u64, now: u64) -> Outlay {
        Outlay {
            at: now,
            network: self.network.to_owned(),
            currency: family.canonical(self.currency),
            user: self.user.map(|(family, user)| family.canonical(user)),
            usd,
        }
    }
}

impl Exposure {
    /// The request was not paid after all, or the solver has been paid for it.
    pub fn leave(&self, request: &B256) {
        if let Some(ledger) = self.0.get() {
            locked(ledger).leave(request);
        }
    }
}

impl Solver {
    /// Who counts as the recipient of a fill of `request`. Calls can pass the money on to anybody: with calls it is the
    /// depositor.
    fn user<'a>(
        &self,
        request: &'a Request,
        deposit: Option<&'a Deposit>,
    ) -> Option<(&'static Family, &'a str)> {
        let paid = &request.order.output.chain_id;
        let (network, user) = match request.calls.is_empty() {
            true => (paid, &request.recipient),
            false => {
                let own = deposit.filter(|deposit| deposit.own)?;
                (&own.network, &own.depositor)
            }
        };
        let account = self.accounts.get(network);
        let account = account.or_else(|| self.accounts.get(paid))?;
        Some((account.chain.family(), user.as_str()))
    }

    /// Whether a payment would be within the limits of the hour, by all that was paid until `now` (unix
    /// seconds).
    pub async fn admits(&self, payment: Payment<'_>, now: u64) -> Result<bool, SolverError> {
        self.admits_besides(payment, U256::ZERO, now).await
    }

    /// As [`Self::admits`], where the same user would be paid `besides`, usd e18, in other currencies of the network.
    pub async fn admits_besides(
        &self,
        payment: Payment<'_>,
        besides: U256,
        now: u64,
    ) -> Result<bool, SolverError> {
        let limits = self.limits(payment);
        if limits == Limits::default() {
            return Ok(true);
        }
        let besides = u64::try_from(besides / U256::from(MICRO)).unwrap_or(u64::MAX);
        let outlay = self.outlay(payment, now).await?;
        let limits = limits.besides(besides);
        Ok(!self.ledger().await?.exceeds(None, &outlay, limits))
    }

    /// Counts what `request` is about to be paid; whether that is within the limits.
    pub(super) async fn enter(
        &self,
        (request, deposit): (&Request, Option<&Deposit>),
        amounts: &[Amount],
        now: u64,
    ) -> Result<bool, SolverError> {
        let output = &request.order.output;
        let Some(first) = output.payments.first() else {
            return Ok(true);
        };
        let payment = Payment {
            network: &output.chain_id,
            currency: &first.currency,
            amount: amounts
                .iter()
                .fold(Amount::ZERO, |sum, one| sum.saturating_add(*one)),
            user: self.user(request, deposit),
        };
        let limits = self.limits(payment);
        if limits == Limits::default() {
            return Ok(true);
        }
        let outlay = self.outlay(payment, now).await?;
        let within = self.ledger().await?.enter(request.id, outlay, limits);
        if !within {
            let (network, order) = (payment.network, request.order_id);
            tracing::warn!(network, %order, "a fill is beyond the limits of the hour");
            metrics::counter!("intentd_solver_capped_total", "network" => network.to_owned())
                .increment(1);
        }
        Ok(within)
    }

    /// Adds to a commit that `request` is paid, and forgets what counts no more.
    pub(super) fn counted(
        &self,
        mut batch: Batch,
        request: &B256,
        now: u64,
    ) -> Result<Batch, SolverError> {
        let Some(ledger) = self.exposure.0.get() else {
            return Ok(batch);
        };
        let mut ledger = locked(ledger);
        for gone in ledger.expire(now) {
            batch = batch.delete(outlay::key(&gone));
        }
        if let Some(paid) = ledger.of(request) {
            batch = batch.put(outlay::key(request), paid.encode()?);
        }
        Ok(batch)
    }

    fn limits(&self, payment: Payment<'_>) -> Limits {
        let account = self.accounts.get(payment.network);
        let Some(market) = account.and_then(|account| account.chain.market.as_ref()) else {
            return Limits::default();
        };
        let currency = market.currency(payment.currency);
        let micro = |dollars: Option<Dollars>| dollars.map(|dollars| dollars.0);
        Limits {
            network: micro(market.caps.hourly),
            currency: micro(currency.and_then(|currency| currency.hourly_cap)),
            user: micro(market.caps.hourly_per_user),
        }
    }

    async fn outlay(&self, payment: Payment<'_>, now: u64) -> Result<Outlay, SolverError> {
        let chain = &self.account(payment.network)?.chain;
        let unlisted = || SolverError::Elsewhere(payment.currency.to_owned());
        let currency = chain.listed(payment.currency).ok_or_else(unlisted)?;
        let price = self.prices.price(currency, now).await?;
        let coin = U256::from(10).checked_pow(U256::from(currency.decimals));
        let usd = coin.and_then(|coin| payment.amount.checked_mul(price.most)?.checked_div(coin));
        let micro = usd.map(|usd| usd / U256::from(MICRO));
        let micro = micro.and_then(|micro| u64::try_from(micro).ok());
        let micro = micro.unwrap_or(u64::MAX);
        Ok(payment.outlay(chain.family(), micro, now))
    }

    async fn ledger(&self) -> Result<MutexGuard<'_, Ledger>, SolverError> {
        let read = self.exposure.0.get_or_try_init(|| self.paid_lately());
        Ok(locked(read.await?))
    }

    async fn paid_lately(&self) -> Result<Mutex<Ledger>, SolverError> {
        let mut ledger = Ledger::default();
        let mut walk = Walk::of(&**self.requests.store(), OUTLAY);
        while let Some((key, value)) = walk.next().await? {
            ledger.know(outlay::request(&key)?, Outlay::decode(&value)?);
        }
        Ok(Mutex::new(ledger))
    }
}

fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quote::fixtures::{USDC, USER, family, other};

    #[test]
    fn an_outlay_counts_for_one_account_however_that_is_spelled() {
        let of = |family: &Family, currency: &str, user: &str| {
            let payment = Payment {
                network: "base",
                currency,
                amount: Amount::ZERO,
                user: Some((family, user)),
            };
            payment.outlay(family, 1, 2)
        };
        let upper = |text: &str| format!("0x{}", text[2..].to_uppercase());
        let evm = of(family(), USDC, USER);
        assert_eq!(of(family(), &upper(USDC), &upper(USER)), evm);
        assert_eq!(
            (evm.currency.as_str(), evm.user.as_deref()),
            (USDC, Some(USER))
        );
        let base58 = |user: &str| of(other::family(), other::USDC, user);
        assert_eq!(base58(other::USER), base58(other::USER));
        assert_ne!(base58(other::USER), base58(&other::USER.to_lowercase()));
        let currency = of(other::family(), &other::USDC.to_lowercase(), other::USER);
        assert_ne!(currency, base58(other::USER));
    }

    /// Two spellings of a depositor's address, where something else is paid on another family's chain.
    #[test]
    fn a_user_of_another_family_is_one_however_that_family_spells_him() {
        let mut families = vm::FAMILIES.iter();
        let ton: &Family = families.find(|family| family.short == "tonvm").unwrap();
        let of = |user: &str| {
            let payment = Payment {
                network: "base",
                currency: USDC,
                amount: Amount::ZERO,
                user: Some((ton, user)),
            };
            payment.outlay(family(), 1, 2)
        };
        let zero = format!("0:{}", "0".repeat(64));
        assert_eq!(of(ton.codec.native()), of(&zero));
        assert_ne!(of(&zero), of(&zero.replacen("00", "01", 1)));
    }
}
