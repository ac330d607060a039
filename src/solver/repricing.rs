//! Orders whose price does not hold any more, mostly because their deposits came late, and what they are worth now.

use async_trait::async_trait;
use vm::{Amount, protocol::limits::SETTLEMENT_TOGETHER};

use super::{Solver, View, claim, judge::Offer};
use crate::{
    request::{Request, fact::Deposit, reason::FailReason},
    store::rows::claim::{Leg, Stage},
};

/// What an order whose price does not hold any more is worth now. Never more than was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repriced {
    /// Everything that was promised.
    Promised,
    /// So much of the order's one payment: at least its minimum.
    Less(Amount),
    /// Too little for the order.
    Nothing,
}

/// Why an order has no price now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the order has no price now: {0}")]
pub struct Unpriced(pub String);

/// What an order costs besides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burden {
    /// What the destination charges for the fill besides its work, in the native currency.
    pub besides: Amount,
    /// Deposits in the transaction of the order's deposit: they are settled together.
    pub together: u32,
}

/// Prices orders anew.
#[async_trait]
pub trait Repricing: Send + Sync {
    /// By what market and fees say at `now` (unix seconds).
    async fn reprice(
        &self,
        request: &Request,
        burden: Burden,
        now: u64,
    ) -> Result<Repriced, Unpriced>;
}

impl Solver {
    /// The offer of now for an order that was quoted `amounts`. `together`: deposits in the transaction of its own.
    pub(super) async fn reprice(
        &self,
        (request, together): (&Request, u32),
        amounts: Vec<Amount>,
        now: u64,
    ) -> Offer {
        let order = request.order_id;
        let repriced = async {
            let besides = self.fill_besides(request, &amounts).await;
            let besides = besides.map_err(|error| Unpriced(error.to_string()))?;
            let burden = Burden { besides, together };
            let repriced = self.repricing.reprice(request, burden, now).await?;
            Ok::<_, Unpriced>((repriced, Some(besides)))
        };
        match repriced.await {
            Ok((Repriced::Promised, besides)) => Offer::Pay(amounts, besides),
            Ok((Repriced::Less(amount), besides)) => {
                tracing::info!(%order, %amount, "a late deposit is filled at what it is worth now");
                Offer::Pay(vec![amount], besides)
            }
            Ok((Repriced::Nothing, _)) => Offer::Refuse(FailReason::Slippage),
            Err(error) => {
                tracing::warn!(%order, %error, "a late deposit waits");
                Offer::Unpriced
            }
        }
    }

    /// Whether the order's price does not hold any more. Its deposit came too late, or came in time and has waited,
    /// whatever for (a user who can make his own fill fail could choose among prices otherwise), or came with so many
    /// others that its settlement is dearer. Or a fill of the order ended unpaid where payments expire: it may have been kept
    /// out of all blocks.
    pub(super) fn is_repriced(&self, view: &View, deposit: &Deposit) -> bool {
        let crowded = deposit.together > SETTLEMENT_TOGETHER;
        let mut fills = claim::fills(&view.claim);
        let unpaid = fills.any(|leg| leg.stage == Stage::Failed && self.expires(leg));
        is_late(view, deposit) || crowded || unpaid || self.has_lapsed(view, deposit)
    }

    /// Whether an honest deposit, however long its chain took, would have been paid for by now.
    fn has_lapsed(&self, view: &View, deposit: &Deposit) -> bool {
        let (now, patience) = (view.now / 1_000, self.patience.funds);
        let account = self.accounts.get(&deposit.network);
        let finality = account.map_or(0, |account| account.chain.finality());
        let most = finality.saturating_mul(2).saturating_add(patience);
        let since = claim::since(&view.claim, &deposit.onchain_id);
        let waited = since.map_or(0, |since| now.saturating_sub(since));
        let request = &view.request;
        let until = request.mined_until.unwrap_or(request.valid_until);
        waited >= patience || now > until.saturating_add(most)
    }

    /// Whether payments on the network of `leg` expire.
    pub(super) fn expires(&self, leg: &Leg) -> bool {
        let account = self.accounts.get(&leg.network);
        account.is_some_and(|account| account.chain.expires())
    }
}

/// Whether a deposit came after the time that the order's price held for.
pub(super) fn is_late(view: &View, deposit: &Deposit) -> bool {
    let (until, mined) = (view.request.valid_until, deposit.place.time);
    match view.request.mined_until {
        Some(last) => {
            let since = view.facts.waited_since(deposit);
            since.is_none_or(|since| since > until) || mined > last
        }
        None => mined > until,
    }
}
