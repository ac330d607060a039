//! What to do for a payment that is in no block: it is sent, held back or cancelled.

use vm::{Kept, Transaction};

use crate::{
    request::fact::{Deposit, Purpose, Standing},
    solver::{Solver, SolverError, View, account::Push, claimable, refund::option},
    store::rows::claim::{Leg, Stage},
};

impl Solver {
    /// What to do for a payment that is in no block: without its deposit it must not land. A reorg that removed a
    /// refund may have removed its deposit too, before the index notices.
    pub(super) async fn push(&self, view: &View, leg: &Leg) -> Result<Push, SolverError> {
        let deposit = view.deposit(&leg.deposit);
        let standing = deposit.map(|deposit| deposit.standing);
        let unwanted = self.is_too_late(view, leg) || self.is_overdue(view, leg);
        Ok(match (standing, deposit) {
            (Some(Standing::Reorged), _) => Push::Cancel,
            // It must not land whatever becomes of its deposit.
            _ if leg.stage == Stage::Open && unwanted => Push::Cancel,
            (Some(Standing::Included), _) => Push::Hold,
            (_, Some(deposit)) if deposit.network == leg.network => {
                match self.is_there(deposit).await? {
                    true => Push::Send,
                    false => Push::Hold,
                }
            }
            _ => Push::Send,
        })
    }

    /// Whether a quorum has the deposit where it was final.
    async fn is_there(&self, deposit: &Deposit) -> Result<bool, SolverError> {
        let chain = &self.account(&deposit.network)?.chain;
        let (found, _) = chain.agreed(&deposit.transaction).await?;
        // Anybody may have made that transaction large.
        let found = Kept::new(found);
        Ok(
            matches!(&*found, Transaction::Succeeded(receipt) if receipt.block.hash == deposit.place.hash),
        )
    }

    /// Whether a payment that is in no block yet comes too late for its deadline: it would not count.
    pub(super) fn is_too_late(&self, view: &View, leg: &Leg) -> bool {
        let deposit = view.deposit(&leg.deposit);
        let (ordered, kept) = match leg.purpose {
            Purpose::Fill => {
                let deadline = view.request.order.output.deadline;
                (Some(deadline), deposit.map(claimable::fill_until))
            }
            Purpose::Refund => {
                let option = deposit.and_then(|deposit| option(&view.request, deposit));
                let deadline = option.map(|(_, refund)| refund.deadline);
                (deadline, deposit.map(claimable::until))
            }
            Purpose::Excess => (None, deposit.map(claimable::until)),
        };
        let deadline = ordered.map(u64::from).into_iter().chain(kept).min();
        // A payment is begun with the whole margin before its deadline. Half of it is its time to land, and half that of
        // what cancels it.
        let landing = self.margins()(&leg.network) / 2;
        deadline.is_some_and(|deadline| deadline <= (view.now / 1_000).saturating_add(landing))
    }

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
}
