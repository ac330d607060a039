//! The order of a quote: what its id promises. Pure.

use alloy::primitives::U256;
use vm::{
    Address, CodecError, OrderCall,
    protocol::order::{
        Input, InputPayment, Order, Output, OutputPayment, Refund, VERSION, vouched_salt,
    },
};

use super::{
    context::Context,
    fill::{Due, Priced, router},
    intent::{LIFE, Side},
};

/// Seconds from the deadline of a fill to that of its refunds: what comes with the last block, or cannot be
/// given back at once, has days.
pub const GRACE: u64 = 604_800;

/// A refund leaves at least one part in so many of what it gives back. A payment of dust is none, and
/// an honest refund stays possible until fees would take 99 % of the deposit.
const REFUND_PART: u64 = 100;
/// The least refund of anything: a single unit is nobody's refund.
const LEAST_REFUND: u64 = 2;

/// The order of what was priced. Refunds are possible on both chains where they have the same accounts, on the
/// destination in what the solver gives.
pub fn order(
    context: &Context,
    priced: &Priced<'_>,
    random: [u8; 16],
) -> Result<Order, CodecError> {
    let (case, sum) = (&priced.case, &priced.amounts.sum);
    let (paid, given) = (&case.route.paid, &case.route.given);
    let after = |seconds| {
        u32::try_from(case.seconds().saturating_add(seconds))
            .map_err(|_| CodecError("the deadline is above 32 bits".into()))
    };
    let (deadline, refund_by) = (after(LIFE)?, after(LIFE + GRACE)?);
    let refund_to = &case.intent.refund_to;
    let mut refunds = vec![refund(refund_to, paid, sum.paid, refund_by)?];
    // Who is refunded has an account of the origin's family.
    if paid.network.name != given.network.name && paid.is_like(given) {
        refunds.push(refund(refund_to, given, sum.given, refund_by)?);
    }
    let input = InputPayment {
        chain_id: paid.network.name.clone(),
        currency: paid.address.to_string(),
        amount: sum.paid.to_string(),
        weight: "1".into(),
    };
    Ok(Order {
        version: VERSION.into(),
        solver_chain_id: context.deps.solver_chain.clone(),
        solver: context.solver.to_string(),
        // The solver signs its claims, so that nobody else says what its payments are for.
        salt: vouched_salt(random).to_string(),
        inputs: vec![Input {
            payment: input,
            refunds,
        }],
        output: Output {
            chain_id: given.network.name.clone(),
            payments: priced.fill.payments.iter().map(payment).collect(),
            calls: calls(given, &priced.fill.calls)?,
            deadline,
            extra_data: extra_data(given)?,
        },
        fees: Vec::new(),
    })
}

fn refund(to: &Address, side: &Side<'_>, of: U256, deadline: u32) -> Result<Refund, CodecError> {
    Ok(Refund {
        chain_id: side.network.name.clone(),
        recipient: to.to_string(),
        currency: side.address.to_string(),
        minimum_amount: refund_minimum(of).to_string(),
        deadline,
        extra_data: extra_data(side)?,
    })
}

fn calls(side: &Side<'_>, calls: &[OrderCall]) -> Result<Vec<String>, CodecError> {
    let orders = side.spec.family.orders;
    let calls = calls.iter().map(|call| {
        let orders = orders.ok_or_else(|| CodecError("the family has no calls".into()))?;
        Ok(alloy::hex::encode_prefixed(orders.encode_call(call)?))
    });
    calls.collect()
}

fn payment(due: &Due) -> OutputPayment {
    OutputPayment {
        recipient: due.to.to_string(),
        currency: due.currency.to_string(),
        minimum_amount: due.minimum.to_string(),
        expected_amount: due.amount.to_string(),
    }
}

/// What a refund of `amount` must leave; oracles scale it with what was deposited.
fn refund_minimum(amount: U256) -> U256 {
    let part = amount / U256::from(REFUND_PART);
    part.max(U256::from(LEAST_REFUND)).min(amount)
}

/// The chain's fill router, as orders name it; `0x` where there is none.
fn extra_data(side: &Side<'_>) -> Result<String, CodecError> {
    let Some((router, orders)) = router(side)?.zip(side.spec.family.orders) else {
        return Ok("0x".into());
    };
    Ok(alloy::hex::encode_prefixed(
        orders.encode_extra_data(&router)?,
    ))
}
