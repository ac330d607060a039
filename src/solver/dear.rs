//! Whether a fill costs so much more than the user paid for it that it waits for a better minute.

use vm::{
    Amount, U256,
    trade::{Draft, Work},
};

use super::{Solver, SolverError, View, account::SolverAccount};

/// How many times the charge a fill may cost. It holds for the fill's work and for what the chain charges besides, each
/// by itself: the latter follows another chain's rate.
const FOLD: u64 = 2;

/// Cents that a fill's work may cost beyond that: where work costs next to nothing, a multiple of the charge says
/// nothing.
const ROOM: u64 = 10;

/// Cents above the charge from which on a quarter of the charge is the limit: no user can have the solver pay half of
/// his own calls.
const MUCH: u64 = 500;

/// A cent in usd e18.
const CENT: u64 = 10_000_000_000_000_000;

impl Solver {
    /// What the chain may charge for the order's fill besides its work, in the native currency; `None`: the fill costs
    /// too much now.
    pub(super) async fn most_besides(
        &self,
        view: &View,
        account: &SolverAccount,
        draft: &Draft,
    ) -> Result<Option<Amount>, SolverError> {
        let (request, order) = (&view.request, view.request.order_id);
        let rate = account.recent_rate().await?;
        let rate = account.chain.providers.rate_as_signed(rate);
        let work = request.fill_work;
        let charged = request.fill_rate.saturating_mul(Amount::from(work));
        let more = rate.of(work).saturating_sub(charged);
        let cent = self.cent(account, view.now / 1_000).await;
        let cents = |number: u64| cent.saturating_mul(U256::from(number));
        let twice = charged.saturating_mul(U256::from(FOLD - 1));
        let most = twice.saturating_add(cents(ROOM));
        if more > most.min(cents(MUCH).max(charged / U256::from(4))) {
            let (rate, charged) = (rate.expected(), request.fill_rate);
            tracing::warn!(%order, rate, %charged, "gas is too dear now");
            return Ok(None);
        }
        let room = rate.of((account.chain.providers.usual)(Work::Room));
        let charged = request.fill_besides.saturating_mul(Amount::from(FOLD));
        let most = charged.saturating_add(room);
        let asked = account.besides(draft).await?;
        if asked > most {
            tracing::warn!(%order, %asked, %most, "the chain charges too much for a fill besides its work now");
            return Ok(None);
        }
        Ok(Some(most))
    }

    /// A cent in the native currency's smallest unit; nothing where the native currency has no price.
    async fn cent(&self, account: &SolverAccount, now: u64) -> Amount {
        let market = account.chain.market.as_ref();
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
