//! Whether a fill costs so much more than the user paid for it that it waits for a better minute.

use vm::{
    Amount, U256,
    trade::{Authorization, Call},
};

use super::{Solver, SolverError, View, account::SolverAccount, fill::GAS_ROOM};

/// How many times what was charged for it a fill may cost: for its gas, and for its bytes, whose price is
/// another chain's. Both move by themselves.
const FOLD: u64 = 2;

/// What more a fill's gas may cost, cents. Where gas costs next to nothing, its price says nothing.
const ROOM: u64 = 10;

/// Where what is above the charge comes to more than this (cents), it is dear from a quarter of the charge on:
/// nobody is to have the solver pay half of his own calls.
const MUCH: u64 = 500;

/// Usd e18.
const CENT: u64 = 10_000_000_000_000_000;

impl Solver {
    /// Whether the order's fill as `call` costs too much now.
    pub(super) async fn is_dear(
        &self,
        view: &View,
        lane: &SolverAccount,
        (call, authorizations): (&Call, &[Authorization]),
    ) -> Result<bool, SolverError> {
        let (request, order) = (&view.request, view.request.order_id);
        let fees = lane.fees().await?;
        let price = Amount::from(fees.price());
        let gas = Amount::from(request.fill_gas);
        let charged = request.fill_price.saturating_mul(gas);
        let more = price.saturating_sub(request.fill_price).saturating_mul(gas);
        let cent = self.cent(lane, view.now / 1_000).await;
        let cents = |number: u64| cent.saturating_mul(U256::from(number));
        let twice = charged.saturating_mul(U256::from(FOLD - 1));
        let most = twice.saturating_add(cents(ROOM));
        if more > most.min(cents(MUCH).max(charged / U256::from(4))) {
            tracing::warn!(%order, %price, charged = %request.fill_price, "gas is too dear now");
            return Ok(true);
        }
        let asked = lane.data_fee(call, authorizations).await?;
        if asked.is_zero() {
            return Ok(false);
        }
        let room = fees.of(GAS_ROOM);
        let charged = request.fill_data.saturating_mul(Amount::from(FOLD));
        let most = charged.saturating_add(room);
        if asked > most {
            tracing::warn!(%order, %asked, %most, "a fill's bytes are too dear now");
        }
        Ok(asked > most)
    }

    /// Wei; nothing where the native currency has no price.
    async fn cent(&self, lane: &SolverAccount, now: u64) -> Amount {
        let market = lane.site.market.as_ref();
        let Some(native) = market.and_then(|market| market.native()) else {
            return Amount::ZERO;
        };
        let Ok(price) = self.prices.price(native, now).await else {
            return Amount::ZERO;
        };
        let unit = U256::from(10).saturating_pow(U256::from(native.decimals));
        let cent = unit.saturating_mul(U256::from(CENT));
        cent.checked_div(price.most).unwrap_or_default()
    }
}
