//! What giving a deposit back costs: the transaction's fee, and its settlement.

use vm::{
    Address, Amount, U256,
    trade::{Draft, Payout},
};

use super::{Gift, payment};
use crate::{
    market::Currency,
    price::{Price, PriceError, beside},
    request::{fact::Purpose, reason::RefundFailReason},
    solver::{Paid, Solver, SolverError, View, account::SolverAccount},
};

/// What the transaction that gives back takes.
pub(super) struct Bill {
    pub work: u64,
    /// What its chain charges besides, in the native currency.
    pub besides: Amount,
    /// What it costs with its settlement, in the currency of the gift; `None`: more than a number can say.
    pub cost: Option<Amount>,
}

impl Solver {
    /// What giving back takes; or why nothing is given back now.
    pub(super) async fn bill(
        &self,
        view: &View,
        gift: &Gift<'_>,
        (to, currency): (&Address, &Address),
    ) -> Result<Result<Bill, Paid>, SolverError> {
        let manual = RefundFailReason::ManualRefundRequired;
        let account = self.account(&gift.deposit.network)?;
        let whole = Payout {
            to: to.clone(),
            currency: currency.clone(),
            amount: gift.amount,
        };
        let draft = payment(account, &whole, view.request.order_id)?;
        let Some(work) = self.refund_work(account, to, &draft).await? else {
            return Ok(Err(Paid::Refused(manual)));
        };
        let now = view.now / 1_000;
        let fee = account.fee(&draft, work).await?;
        let cost = match self.cost(account, currency, fee.total(), now).await {
            Err(SolverError::Price(PriceError::Unknown(_))) => {
                return Ok(Err(Paid::NotYet(manual)));
            }
            cost => cost?,
        };
        // The excess over a filled order is settled with the fill.
        let settlement = match gift.purpose {
            Purpose::Refund => {
                let together = gift.deposit.together;
                self.settled(account, (currency, together), now).await
            }
            Purpose::Fill | Purpose::Excess => Amount::ZERO,
        };
        Ok(Ok(Bill {
            work,
            besides: fee.besides,
            cost: cost.map(|cost| cost.saturating_add(settlement)),
        }))
    }

    /// The work that a refund is sent with. `None` where it would fail, or would fail with so much work and no more, or
    /// takes more than anybody needs to receive money.
    async fn refund_work(
        &self,
        account: &SolverAccount,
        to: &Address,
        draft: &Draft,
    ) -> Result<Option<u64>, SolverError> {
        let Ok(work) = account.simulate(draft).await? else {
            return Ok(None);
        };
        if !account.is_modest(work).await? {
            tracing::warn!(to = to.text(), gas = work, "a refund takes too much gas");
            return Ok(None);
        }
        Ok(Some(work))
    }

    /// A fee in another currency, rounded up; `None`: more than a number can say.
    async fn cost(
        &self,
        account: &SolverAccount,
        currency: &Address,
        fee: Amount,
        now: u64,
    ) -> Result<Option<Amount>, SolverError> {
        if *currency == account.chain.native {
            return Ok(Some(fee));
        }
        let native = account
            .chain
            .market
            .as_ref()
            .and_then(|market| market.native());
        let unlisted = || PriceError::Unknown(currency.text().to_owned());
        let native = native.ok_or_else(unlisted)?;
        let listed = account.chain.listed(currency.text()).ok_or_else(unlisted)?;
        let prices = (
            self.prices.price(native, now).await?,
            self.prices.price(listed, now).await?,
        );
        Ok(converted(fee, (native, prices.0), (listed, prices.1)))
    }

    /// What the settlement of a refund costs in a currency; `together`: deposits in the deposit's transaction. Without
    /// a price the solver bears it: no refund waits for that price.
    async fn settled(
        &self,
        account: &SolverAccount,
        (currency, together): (&Address, u32),
        now: u64,
    ) -> Amount {
        let Some(listed) = account.chain.listed(currency.text()) else {
            return Amount::ZERO;
        };
        let asked = futures::try_join!(
            self.settlement.settlement(now),
            self.prices.price(listed, now)
        );
        let coin = U256::from(10).checked_pow(U256::from(listed.decimals));
        let cost = asked.ok().and_then(|(usd, price)| {
            let others = beside(usd, together);
            let usd = usd.checked_add(others)?;
            let worth = usd.checked_mul(coin?)?;
            (!price.least.is_zero()).then(|| worth.div_ceil(price.least))
        });
        cost.unwrap_or_default()
    }
}

/// `amount` of one currency in another, rounded up. The first counts at its highest price, the second at its lowest.
pub fn converted(
    amount: Amount,
    from: (&Currency, Price),
    to: (&Currency, Price),
) -> Option<Amount> {
    let unit = |currency: &Currency| U256::from(10).checked_pow(U256::from(currency.decimals));
    let above = amount.checked_mul(from.1.most)?.checked_mul(unit(to.0)?)?;
    let below = unit(from.0)?.checked_mul(to.1.least)?;
    (!below.is_zero()).then(|| above.div_ceil(below))
}
