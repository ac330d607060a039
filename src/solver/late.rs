//! Orders whose deposits came after the time that their price held for.

use async_trait::async_trait;
use vm::{Amount, protocol::limits::SETTLEMENT_TOGETHER};

use super::{Solver, View, claim, judge::Offer};
use crate::{
    request::{
        Request,
        fact::{Deposit, Purpose},
        reason::FailReason,
    },
    store::rows::claim::{Claim, Leg, Stage},
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

/// Why an order has no price now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the order has no price now: {0}")]
pub struct Unpriced(pub String);

/// What an order costs besides its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burden {
    /// What the destination charges for the fill besides its work, in the native currency.
    pub data: Amount,
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
            let data = self.fill_besides(request, &amounts).await;
            let data = data.map_err(|error| Unpriced(error.to_string()))?;
            let burden = Burden { data, together };
            let repriced = self.repricing.reprice(request, burden, now).await?;
            Ok::<_, Unpriced>((repriced, Some(data)))
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
}

impl Solver {
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
}

impl Solver {
    /// Whether the price of a fill that no block has holds no more, where payments expire: its recipient can keep each
    /// version out of all blocks until that has expired (he closes his account), and let a later one land when the price
    /// has moved in his favour.
    ///
    /// Where payments do not expire, each version can land from its signature until the payment is over: its recipient may
    /// at most delay it, or let it fail in its block, which ends it. He has no choice among prices, and a cancellation
    /// costs a fee and may come too late. Such a fill is replaced by dearer versions, and cancelled near its deadline.
    pub(super) fn is_overdue(&self, view: &View, leg: &Leg) -> bool {
        let waited = (view.now / 1_000).saturating_sub(leg.begun);
        leg.purpose == Purpose::Fill && self.expires(leg) && waited >= self.patience.funds
    }

    /// `claim` of an order whose fill was overdue and has expired: it is judged anew, at the price of then, with all the
    /// patience that an order has. Once for each deposit, so that it ends: `None` where that was done, or the fill was not
    /// overdue.
    pub(super) fn judged_anew(&self, view: &View, claim: &Claim, leg: &Leg) -> Option<Claim> {
        let first = claim::fills(claim).filter(|one| one.deposit == leg.deposit);
        let anew = first.count() == 1 && self.is_overdue(view, leg);
        anew.then(|| claim::wait_anew(claim, leg.deposit, view.now / 1_000))
    }

    /// Whether payments on the network of `leg` expire.
    fn expires(&self, leg: &Leg) -> bool {
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
