//! The excess: what a deposit was more than its order asked for. The hub credits the solver with the whole deposit for
//! the fill, so that the excess needs no attestation of its own. The solver gives it back once the fill is final. Pure.

use vm::Amount;

use super::{Case, Parking, Step, Verdict, Worth, refund};
use crate::{
    request::{
        Request,
        fact::{Deposit, Purpose},
        mismatch,
        reason::{FailReason, RefundFailReason},
    },
    solver::claimable,
    store::rows::claim::{Claim, Leg, Stage},
};

/// The excess of `deposit`, where a final fill has used it and no payment gives the excess back yet.
pub fn due(request: &Request, claim: &Claim, deposit: &Deposit) -> Option<Amount> {
    let of = |purpose, leg: &Leg| leg.purpose == purpose && leg.deposit == deposit.onchain_id;
    let filled = |leg: &Leg| of(Purpose::Fill, leg) && leg.stage == Stage::Final;
    let begun = |leg: &Leg| of(Purpose::Excess, leg) && leg.is_live();
    let legs = &claim.legs;
    let asked = mismatch::asked(request)?;
    let due = deposit.amount.checked_sub(asked)?;
    let open = legs.iter().any(filled)
        && !legs.iter().any(begun)
        && !claim.parked.contains(&deposit.onchain_id);
    (open && !due.is_zero()).then_some(due)
}

/// Dust is left where it is. Any other excess that could not be given back until refunds end is parked.
pub(super) fn verdict(case: &Case<'_>, deposit: &Deposit) -> Verdict {
    let Some(amount) = due(case.request, case.claim, deposit) else {
        return Verdict::Nothing;
    };
    let pause = refund::pause(case, deposit);
    let park = |note: &str, minor| {
        let manual = RefundFailReason::ManualRefundRequired;
        Verdict::Park(Parking {
            deposit: deposit.onchain_id,
            amount,
            reason: FailReason::DoubleSpend,
            why: pause.map_or(manual, |pause| pause.why),
            note: format!("what exceeds its order, which is filled: {note}"),
            minor,
        })
    };
    let way = claimable::refund(case.request, deposit, case.families);
    let over = refund::is_over(case, deposit, &way);
    match case.worths.get(&deposit.onchain_id) {
        None if !over => return refund::later(case),
        None => return park(refund::UNPRICED, false),
        Some(Worth::Dust) => return Verdict::Nothing,
        Some(Worth::Unknown) => return park("a token without a price", true),
        Some(Worth::Something) => {}
    }
    let id = &deposit.onchain_id;
    if over {
        return park("the order's refund has expired", false);
    }
    if refund::is_hopeless(case, id, Purpose::Excess) {
        return park(refund::HOPELESS, false);
    }
    match pause {
        Some(pause) if pause.until > case.now => Verdict::Until(pause.until),
        _ => Verdict::Do(Step::Excess {
            deposit: *id,
            amount,
        }),
    }
}
