//! Whether the oracle would attest a payment that is about to be made, by the oracle's own code
//! ([`attest::plan`](crate::attest::plan)). The solver makes no other payments. Pure.

use std::sync::Arc;

use vm::{
    Address, Amount, Bytes, ChainId, CodecError, FillRouters, OrderCall, U256, protocol::limits,
    trade::Payout,
};

use crate::{
    attest::{
        Refusal,
        backing::Tolerance,
        claim::Families,
        deposit::Message,
        order::Terms,
        plan::{Attestable, Due, Funding, Plan, Planned},
        recover::PATIENCE,
        refund::{self, Refund},
    },
    request::{Request, fact::Deposit},
};

/// How a deposit can be given back so that the oracle attests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The refund option of the order's input.
    pub option: usize,
    /// The least that has to be paid.
    pub minimum: Amount,
    /// Unix seconds; the refund must be in a block before it.
    pub deadline: u64,
}

/// A payment as it is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Payment<'a> {
    pub from: &'a Address,
    /// Unix seconds by which it is in a block.
    pub by: u64,
    /// The fill router that it goes through, if it does.
    pub router: Option<&'a Address>,
    pub payouts: &'a [Payout],
    pub calls: &'a [OrderCall],
}

/// A deposit of a request's order.
#[derive(Clone, Copy)]
pub struct Deposited<'a> {
    pub request: &'a Request,
    pub deposit: &'a Deposit,
    pub families: Families<'a>,
    /// The fill routers that count on the chain of the payment.
    pub routers: &'a FillRouters,
}

/// Seconds in which a payment becomes final and is settled at the hub.
const SETTLED: u64 = 21_600;

/// Seconds that are left for giving a deposit back after its last fill.
const REFUNDING: u64 = 86_400;

/// Until when a payment may rest on a deposit, in unix seconds. Later the depositor can withdraw it through the hub
/// with any oracle's word, and nothing would be left for the solver.
pub fn until(deposit: &Deposit) -> u64 {
    deposit.place.time.saturating_add(PATIENCE - SETTLED)
}

/// Until when a deposit can be filled, in unix seconds: the day after that is left for giving it back.
pub fn fill_until(deposit: &Deposit) -> u64 {
    until(deposit).saturating_sub(REFUNDING)
}

/// Whether a fill of the order, as it was quoted, would be attested with this deposit. Which router it goes
/// through is judged when it is made.
pub fn fill(request: &Request, deposit: &Deposit, families: Families<'_>) -> Result<(), Refusal> {
    let terms = Terms::new(&request.order, families)?;
    let output = &terms.output;
    let unreadable = |why: CodecError| Refusal::Malformed(why.to_string().into());
    let codec = output.family.orders;
    let decoded = |call: &Bytes| {
        let codec = codec.ok_or_else(|| Refusal::CallsUnsupported((&output.chain).into()))?;
        codec.decode_call(call).map_err(unreadable)
    };
    let calls = output.calls.iter().map(decoded);
    let calls = calls.collect::<Result<Vec<_>, Refusal>>()?;
    let payouts = output.payments.iter().map(|payment| Payout {
        to: payment.recipient.clone(),
        currency: payment.currency.clone(),
        amount: payment.minimum,
    });
    let payouts: Vec<_> = payouts.collect();
    let router = codec.and_then(|codec| codec.decode_extra_data(&output.extra_data).ok());
    let routed = !calls.is_empty() || payouts.len() > 1;
    let this = Deposited {
        request,
        deposit,
        families,
        routers: &FillRouters::Any,
    };
    let payment = Payment {
        from: &solver(&terms),
        by: 0,
        router: router.as_ref().filter(|_| routed),
        payouts: &payouts,
        calls: &calls,
    };
    this.filled(&payment).map(drop)
}

/// How the deposit can be given back.
pub fn refund(
    request: &Request,
    deposit: &Deposit,
    families: Families<'_>,
) -> Result<Way, Refusal> {
    let this = Deposited {
        request,
        deposit,
        families,
        routers: &FillRouters::Any,
    };
    let terms = Terms::new(&request.order, families)?;
    let message = this.message(&terms)?;
    let difference = this.judge(|plan| plan.named())?;
    let input = terms.inputs.first().ok_or(Refusal::MissingInput(0))?;
    let mut here = input.refunds.iter().enumerate().filter(|(_, option)| {
        option.chain == deposit.network && option.currency == message.deposit.currency
    });
    let (at, option) = here.next().ok_or(Refusal::InvalidRefund(0))?;
    let to = refund::recipient(0, option, &message)?;
    // Such a refund would succeed, and pay nobody.
    if to.bytes() == terms.solver.as_slice() {
        return Err(Refusal::NoRefundRecipient(0));
    }
    let whole = [Payout {
        to,
        currency: option.currency.clone(),
        amount: deposit.amount,
    }];
    let payment = Payment {
        from: &solver(&terms),
        by: 0,
        router: None,
        payouts: &whole,
        calls: &[],
    };
    this.refunded(at, &payment)?;
    Ok(Way {
        option: at,
        minimum: U256::saturating_from(difference.scale(option.minimum)),
        deadline: option.deadline.min(until(deposit)),
    })
}

/// Whether oracles can read a deposit. An order that they cannot read says nothing about its deposits.
pub fn attestable(request: &Request, deposit: &Deposit, families: Families<'_>) -> bool {
    let terms = Terms::new(&request.order, families);
    terms.map_or(true, |terms| message(&terms, deposit, families).is_ok())
}

impl Deposited<'_> {
    /// Whether `payment` would be attested as the order's fill.
    pub fn filled(&self, payment: &Payment<'_>) -> Result<Attestable, Refusal> {
        let chain = &self.request.order.output.chain_id;
        let dues: Vec<_> = payment.payouts.iter().map(due).collect();
        self.judge(|plan| plan.fill(&payment.planned(chain, &dues)))
    }

    /// Whether `payment` would be attested as the deposit's refund by the order's `option`.
    pub fn refunded(&self, option: usize, payment: &Payment<'_>) -> Result<Attestable, Refusal> {
        let dues: Vec<_> = payment.payouts.iter().map(due).collect();
        let planned = [payment.planned(&self.deposit.network, &dues)];
        let refunds = [Refund { input: 0, option }];
        self.judge(|plan| plan.refund(&refunds, &planned))
    }

    fn judge<T>(&self, judge: impl FnOnce(&Plan<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let terms = Terms::new(&self.request.order, self.families)?;
        let deposits = [Funding {
            input: 0,
            message: self.message(&terms)?,
        }];
        judge(&Plan {
            order: &self.request.order,
            families: self.families,
            routers: self.routers,
            deposits: &deposits,
            // The settler signs its claims, so that no oracle's own matters.
            tolerance: Tolerance::default(),
        })
    }

    fn message(&self, terms: &Terms) -> Result<Message, Refusal> {
        message(terms, self.deposit, self.families)
    }
}

impl<'a> Payment<'a> {
    fn planned(&self, chain: &'a str, payments: &'a [Due<'a>]) -> Planned<'a> {
        Planned {
            chain,
            by: self.by,
            from: self.from,
            router: self.router,
            payments,
            calls: self.calls,
        }
    }
}

fn due(payout: &Payout) -> Due<'_> {
    Due {
        recipient: &payout.to,
        currency: &payout.currency,
        amount: payout.amount,
    }
}

/// The account that the order's solver promised with.
fn solver(terms: &Terms) -> Address {
    let text = format!("{:#x}", terms.solver);
    Address::from_parts(&text, terms.solver.to_vec())
}

/// The deposit as the oracle reads it.
fn message(terms: &Terms, deposit: &Deposit, families: Families<'_>) -> Result<Message, Refusal> {
    // All deposits of a transaction are attested together, or none of them is.
    limits::fits(usize::try_from(deposit.together).unwrap_or(usize::MAX))?;
    let missing = || Refusal::ChainNotAvailable(deposit.network.as_str().into());
    let family = families(&deposit.network).ok_or_else(missing)?;
    let address = |text: &str| {
        let read = family.address(text);
        read.map_err(|why| Refusal::Malformed(why.to_string().into()))
    };
    Ok(Message {
        chain: ChainId::new(&deposit.network),
        transaction: Arc::from(deposit.transaction.as_str()),
        onchain_id: deposit.onchain_id,
        deposit: vm::Deposit {
            index: 0,
            id: terms.name().into(),
            depository: address(&deposit.depository)?,
            depositor: address(&deposit.depositor)?,
            currency: address(&deposit.currency)?,
            amount: deposit.amount,
            named_by_other: deposit.named_by_other,
            by_depositor: deposit.own,
        },
        timestamp: deposit.place.time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{fact::Standing, fixtures};

    fn family(_: &str) -> Option<&'static vm::Family> {
        Some(vm::SETTLEMENT)
    }

    fn request() -> Request {
        let mut request = fixtures::request(1);
        request.order.solver = "0x00000000000000000000000000000000000000a1".into();
        request
    }

    fn judged(change: fn(&mut Request, &mut Deposit)) -> (bool, Option<Way>) {
        let (mut request, mut deposit) = (request(), fixtures::deposit(1, Standing::Final));
        change(&mut request, &mut deposit);
        let filled = fill(&request, &deposit, &family).is_ok();
        (filled, refund(&request, &deposit, &family).ok())
    }

    fn way(option: usize, minimum: u64) -> Option<Way> {
        Some(Way {
            option,
            minimum: U256::from(minimum),
            deadline: until(&fixtures::deposit(1, Standing::Final)),
        })
    }

    #[test]
    fn what_the_oracle_refuses_for_ever_is_not_claimable() {
        assert_eq!(judged(|_, _| ()), (true, way(0, 0)));
        let elsewhere = judged(|request, deposit| {
            let mut there = request.order.inputs[0].refunds[0].clone();
            there.chain_id = "destination".into();
            request.order.inputs[0].refunds.push(there);
            deposit.network = "destination".into();
        });
        assert_eq!(elsewhere, (false, None));
        let foreign = judged(|_, deposit| deposit.currency = vm::SETTLEMENT.codec.native().into());
        assert_eq!(foreign, (false, None));
        let without = judged(|request, _| request.order.inputs[0].refunds.clear());
        assert_eq!(without, (true, None));
        let broken = judged(|request, _| request.order.output.payments[0].currency = "x".into());
        assert_eq!(broken, (false, None));
        let crowded = judged(|_, deposit| deposit.together = 1 + limits::ACTIONS as u32);
        assert_eq!(crowded, (false, None));
        let full = judged(|_, deposit| deposit.together = limits::ACTIONS as u32);
        assert_eq!(full, (true, way(0, 0)));
        let own = judged(|request, _| {
            let solver = request.order.solver.clone();
            request.order.inputs[0].refunds[0].recipient = solver;
        });
        assert_eq!(own, (true, None));
        let nothing = judged(|request, _| request.order.output.payments.clear());
        assert_eq!(nothing, (false, way(0, 0)));
    }

    #[test]
    fn minimum_of_a_refund_follows_what_was_deposited() {
        let with = |amount: u64| {
            let (mut request, mut deposit) = (request(), fixtures::deposit(1, Standing::Final));
            request.order.inputs[0].refunds[0].minimum_amount = "90000000".into();
            deposit.amount = U256::from(amount);
            refund(&request, &deposit, &family).ok()
        };
        assert_eq!(with(100_000_000), way(0, 90_000_000));
        assert_eq!(with(1_000_000), way(0, 900_000));
        assert_eq!(with(200_000_000), way(0, 180_000_000));
    }
}
