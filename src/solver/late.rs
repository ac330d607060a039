//! Orders whose deposits came after the time that their price held for.

use async_trait::async_trait;
use vm::Amount;

use super::{Solver, View, claim, judge::Offer};
use crate::{
    price::settlement::TOGETHER,
    request::{Request, fact::Deposit, reason::FailReason},
};

/// What an order whose deposit came late is worth now. Never more than was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repriced {
    /// Everything that was promised.
    Promised,
    /// So much of the order's one payment: at least its minimum.
    Less(Amount),
    /// Too little for the order.
    Nothing,
}

/// It cannot be said now what the order is worth.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the order has no price now: {0}")]
pub struct Unpriced(pub String);

/// What an order costs besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burden {
    /// Wei that the destination charges for the fill's bytes.
    pub data: Amount,
    /// Deposits in the transaction of its own one, which are settled with it.
    pub together: u32,
}

/// Prices orders anew.
#[async_trait]
pub trait Repricing: Send + Sync {
    /// By what market and gas say at `now` (unix seconds).
    async fn reprice(
        &self,
        request: &Request,
        burden: Burden,
        now: u64,
    ) -> Result<Repriced, Unpriced>;
}

impl Solver {
    /// What an order gets now that was quoted `amounts`, and whose deposit is one of so many.
    pub(super) async fn reprice(
        &self,
        (request, together): (&Request, u32),
        amounts: Vec<Amount>,
        now: u64,
    ) -> Offer {
        let order = request.order_id;
        let repriced = async {
            let data = self.data_fee(request, &amounts).await;
            let data = data.map_err(|error| Unpriced(error.to_string()))?;
            let burden = Burden { data, together };
            self.repricing.reprice(request, burden, now).await
        };
        match repriced.await {
            Ok(Repriced::Promised) => Offer::Pay(amounts),
            Ok(Repriced::Less(amount)) => {
                tracing::info!(%order, %amount, "a late deposit is filled at what it is worth now");
                Offer::Pay(vec![amount])
            }
            Ok(Repriced::Nothing) => Offer::Refuse(FailReason::Slippage),
            Err(error) => {
                tracing::warn!(%order, %error, "a late deposit waits");
                Offer::Unpriced
            }
        }
    }
}

impl Solver {
    /// Whether the order's price does not hold: its deposit came too late, or came in time and waits, for
    /// whatever reason (else who can make his own fill fail chooses among prices), or so many others came with
    /// it that its settlement is dearer.
    pub(super) fn is_repriced(&self, view: &View, deposit: &Deposit) -> bool {
        let crowded = deposit.together > TOGETHER;
        is_late(&view.request, deposit) || crowded || self.has_lapsed(view, deposit)
    }

    /// Whether an honest deposit, however long its chain took, would have been paid for by now.
    fn has_lapsed(&self, view: &View, deposit: &Deposit) -> bool {
        let (now, patience) = (view.now / 1_000, self.patience.funds);
        let lane = self.lanes.get(&deposit.network);
        let finality = lane.map_or(0, |lane| lane.site.finality());
        let most = finality.saturating_mul(2).saturating_add(patience);
        let since = claim::since(&view.claim, &deposit.onchain_id);
        let waited = since.map_or(0, |since| now.saturating_sub(since));
        waited >= patience || now > view.request.valid_until.saturating_add(most)
    }
}

/// Whether a deposit came after the time that the order's price held for.
pub fn is_late(request: &Request, deposit: &Deposit) -> bool {
    deposit.place.time > request.valid_until
}
