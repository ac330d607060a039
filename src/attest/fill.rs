//! Decides whether a transaction fills an order (guide: protocol 7.3). Pure: no I/O, no clock.

use alloy::primitives::aliases::U1024;
use vm::{Address, OrderCall, Receipt, RouterCall, Seen};

use super::{
    Refusal,
    backing::Backing,
    claim::malformed,
    measured::{Measured, Paid, What},
    order::{OutputTerms, Terms},
    paid::{self, Expected, Ledger, Named, Served},
    statement::Outcome,
};

/// Refuses a fill that falls short of the order; returns the payments that serve it, and the rules that they meet.
pub fn judge(terms: &Terms, backing: &Backing<'_>, seen: &Seen<'_>) -> Result<Paid, Refusal> {
    let output = &terms.output;
    check_ordered(output)?;
    backing.check(terms)?;
    let receipt = paid::usable(seen, terms.id, output.deadline)?;
    paid::check_apart(seen, backing.inputs, (terms.id, terms.solver))?;
    let mut ledger = Ledger::default();
    let mut rules = Vec::with_capacity(output.payments.len() + 2);
    for (index, payment) in output.payments.iter().enumerate() {
        let mut expected = Expected {
            order: terms.id,
            recipient: &payment.recipient,
            currency: &payment.currency,
            deadline: output.deadline,
            solver: terms.solver,
            router: None,
            payer: backing.payer(Outcome::Fill),
        };
        let router = ledger.router(seen, &expected, &named(output))?;
        expected.router = router.as_ref();
        let minimum = U1024::from(payment.minimum);
        let paid = ledger.paid(seen, &expected)?;
        if paid < minimum {
            let short = Refusal::InsufficientFill {
                index,
                paid: paid.to_string().into(),
                minimum: minimum.to_string().into(),
            };
            return Err(ledger.short(seen, (&expected, &named(output)), short));
        }
        ledger.take(seen, &expected, minimum);
        rules.push(Measured {
            what: What::Payment(index),
            found: paid,
            bound: minimum,
        });
    }
    check_calls(output, seen, receipt)?;
    let mut served = ledger.served()?;
    // An order may ask for calls only: without this, one transaction would serve every deposit of it.
    if !output.calls.is_empty() {
        served.push(Served::calls(seen, terms.solver));
        let made = U1024::from(output.calls.len());
        rules.push(Measured {
            what: What::Calls,
            found: made,
            bound: made,
        });
    }
    rules.push(Measured::in_time(receipt.block.time, output.deadline));
    Ok(Paid { served, rules })
}

/// Refuses an order that a payment of nothing would fill.
pub fn check_ordered(output: &OutputTerms) -> Result<(), Refusal> {
    let pays = output.payments.iter().any(|p| !p.minimum.is_zero());
    if !pays && output.calls.is_empty() {
        return Err(Refusal::NothingOrdered);
    }
    calls(output).map(|_| ())
}

/// The ordered calls and the router that must make them; `None` without calls.
fn calls(output: &OutputTerms) -> Result<Option<(Address, Vec<OrderCall>)>, Refusal> {
    if output.calls.is_empty() {
        return Ok(None);
    }
    let unsupported = || Refusal::CallsUnsupported(output.chain.as_str().into());
    let codec = output.family.orders.ok_or_else(unsupported)?;
    let router = named(output).router()?.ok_or_else(unsupported)?;
    let wanted = output.calls.iter().enumerate().map(|(index, call)| {
        let wanted = codec.decode_call(call);
        wanted.map_err(|error| malformed(&format!("order.output.calls[{index}]"), error))
    });
    Ok(Some((router, wanted.collect::<Result<_, _>>()?)))
}

fn named(output: &OutputTerms) -> Named<'_> {
    Named {
        family: output.family,
        extra_data: &output.extra_data,
        path: "order.output.extraData",
    }
}

/// Checks that the order's router made every ordered call in sequence. Other calls may stand in between; one call
/// serves one ordered call.
fn check_calls(output: &OutputTerms, seen: &Seen<'_>, receipt: &Receipt) -> Result<(), Refusal> {
    let Some((router, wanted)) = calls(output)? else {
        return Ok(());
    };
    named(output).check_listed(seen, &router)?;
    let mut made = receipt.calls.iter().filter(|call| call.router == router);
    let all = wanted
        .iter()
        .all(|wanted| made.any(|call| is(call, wanted)));
    all.then_some(()).ok_or(Refusal::MissingCalls)
}

fn is(made: &RouterCall, wanted: &OrderCall) -> bool {
    made.to == wanted.to && made.data == wanted.data && made.value == wanted.value
}
