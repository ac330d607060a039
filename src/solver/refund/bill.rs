//! What giving back costs: its gas, its chain's charges for bytes, its settlement.

use vm::{Address, Amount, U256, trade::Call};

use super::{Gift, payment};
use crate::{
    market::Currency,
    price::{Price, PriceError, beside},
    request::{fact::Purpose, reason::RefundFailReason},
    solver::{Paid, Solver, SolverError, View, account::SolverAccount},
};

/// Gas units that a refund may take beyond what a transaction takes that does nothing.
const MOST_GAS: u64 = 300_000;

impl Solver {
    /// The gas that giving back takes, and what it costs with its settlement in the gift's currency
    /// (`None` where no number says it); or why it is not given now.
    pub(super) async fn bill(
        &self,
        view: &View,
        gift: &Gift<'_>,
        (to, currency): (&Address, &Address),
    ) -> Result<Result<(u64, Option<Amount>), Paid>, SolverError> {
        let manual = RefundFailReason::ManualRefundRequired;
        let lane = self.lane(&gift.deposit.network)?;
        let call = payment(lane, (to, currency, gift.amount), view.request.order_id)?;
        let Some(gas) = self.gas(lane, &call).await? else {
            return Ok(Err(Paid::Refused(manual)));
        };
        let now = view.now / 1_000;
        let cost = match self.cost(lane, currency, (&call, gas), now).await {
            Err(SolverError::Price(PriceError::Unknown(_))) => {
                return Ok(Err(Paid::NotYet(manual)));
            }
            cost => cost?,
        };
        // What is too much of a filled order is settled with it.
        let settlement = match gift.purpose {
            Purpose::Refund => {
                let together = gift.deposit.together;
                self.settled(lane, (currency, together), now).await
            }
            Purpose::Fill | Purpose::Excess => Amount::ZERO,
        };
        Ok(Ok((gas, cost.map(|cost| cost.saturating_add(settlement)))))
    }

    /// The gas that a refund is sent with; `None` where it would revert, then too, or takes more than
    /// anybody needs to receive money.
    async fn gas(&self, lane: &SolverAccount, call: &Call) -> Result<Option<u64>, SolverError> {
        let Ok(gas) = lane.estimate(call, &[]).await? else {
            return Ok(None);
        };
        if gas > MOST_GAS && gas > lane.idle().await?.saturating_add(MOST_GAS) {
            tracing::warn!(to = call.to.text(), gas, "a refund takes too much gas");
            return Ok(None);
        }
        let sent = lane.rehearse(call, &[], gas).await?;
        Ok(sent.is_ok().then_some(gas))
    }

    /// What a call that takes `gas` units costs in a currency, rounded up; `None` where no number says
    /// it.
    async fn cost(
        &self,
        lane: &SolverAccount,
        currency: &Address,
        (call, gas): (&Call, u64),
        now: u64,
    ) -> Result<Option<Amount>, SolverError> {
        let cost = lane.cost(call, gas).await?;
        if *currency == lane.site.native {
            return Ok(Some(cost));
        }
        let native = lane.site.market.as_ref().and_then(|market| market.native());
        let unlisted = || PriceError::Unknown(currency.text().to_owned());
        let native = native.ok_or_else(unlisted)?;
        let listed = lane.site.listed(currency.text()).ok_or_else(unlisted)?;
        let prices = (
            self.prices.price(native, now).await?,
            self.prices.price(listed, now).await?,
        );
        Ok(converted(cost, (native, prices.0), (listed, prices.1)))
    }

    /// What the settlement of a refund costs in a currency, whose deposit is one of so many. Without a price
    /// it is ours: no refund waits for it.
    async fn settled(
        &self,
        lane: &SolverAccount,
        (currency, together): (&Address, u32),
        now: u64,
    ) -> Amount {
        let Some(listed) = lane.site.listed(currency.text()) else {
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

/// `amount` of one currency in another, rounded up: what is paid counts at its most, what is kept for
/// it at its least.
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
