//! What a deposit was more than its order asked for. The hub gives the solver the whole deposit for
//! the fill, so that nothing else is to be attested; it goes back once the fill is final. Pure.

use vm::Amount;

use super::{Case, Step, Verdict, Worth, refund};
use crate::{
    request::{
        Request,
        fact::{Deposit, Purpose},
        mismatch,
    },
    solver::claimable,
    store::rows::claim::{Claim, Leg, Stage},
};

/// Transactions that may fail in blocks before it is left.
const MOST_FAILED: usize = 3;

/// What `deposit` was too much, where a final fill has used it and nothing gives it back yet.
pub fn due(request: &Request, claim: &Claim, deposit: &Deposit) -> Option<Amount> {
    let of = |purpose, leg: &Leg| leg.purpose == purpose && leg.deposit == deposit.onchain_id;
    let filled = |leg: &Leg| of(Purpose::Fill, leg) && leg.stage == Stage::Final;
    let begun = |leg: &Leg| of(Purpose::Excess, leg) && leg.stage != Stage::Failed;
    let legs = &claim.legs;
    let asked = mismatch::asked(request)?;
    let due = deposit.amount.checked_sub(asked)?;
    let open = legs.iter().any(filled) && !legs.iter().any(begun);
    (open && !due.is_zero()).then_some(due)
}

/// It is left where it is worth less than its transfer for as long as a refund could be made.
pub(super) fn verdict(case: &Case<'_>, deposit: &Deposit) -> Verdict {
    let Some(amount) = due(case.request, case.claim, deposit) else {
        return Verdict::Nothing;
    };
    match case.worths.get(&deposit.onchain_id) {
        None => return Verdict::Wait,
        Some(Worth::Unknown | Worth::Dust) => return Verdict::Nothing,
        Some(Worth::Something) => {}
    }
    let id = &deposit.onchain_id;
    let tried = refund::failed(case, id, Purpose::Excess);
    let way = claimable::refund(case.request, deposit, case.families);
    let late = way.is_ok_and(|way| way.deadline <= case.now.saturating_add(case.patience.margin));
    if late || tried >= MOST_FAILED {
        return Verdict::Nothing;
    }
    match refund::pause(case, deposit) {
        Some(pause) if pause.until > case.now => Verdict::Until(pause.until),
        _ => Verdict::Do(Step::Excess {
            deposit: *id,
            amount,
        }),
    }
}
