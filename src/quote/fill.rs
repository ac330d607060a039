//! What the solver will do on the destination, and whether it would work.

use alloy::primitives::{B256, U256};
use vm::{
    Address, CodecError, OrderCall,
    trade::{Authorization, Call, Draft, FillTerms, Payout, Revert, Spend, Trade},
};

use super::{
    code::{Code, Refused},
    figures::Figures,
    intent::Intent,
    order::{Due, LIFE, router},
    route::Route,
    service::Quoter,
    swap::SwapOrder,
    venue::Venue,
};

/// Gas of a plain payment, native or of a token, when no node says.
const NATIVE: u64 = 30_000;
const TOKEN: u64 = 75_000;
/// Of the router around its calls, and of a call that nobody limited.
const ROUTED: u64 = 100_000;
const CALL: u64 = 150_000;

/// Payments and calls of an order.
#[derive(Clone, Debug, Default)]
pub struct Fill {
    pub payments: Vec<Due>,
    pub calls: Vec<OrderCall>,
}

/// A codec's complaint about what was checked before is our mistake.
impl From<CodecError> for Refused {
    fn from(error: CodecError) -> Self {
        tracing::error!(%error, "no quote: a transaction cannot be built");
        Self::new(Code::UnknownError, "the transaction cannot be built")
    }
}

/// Gas units to expect of the destination transaction before anything was simulated.
pub fn table(intent: &Intent<'_>, figures: Option<&Figures>) -> u64 {
    let native = super::intent::is_native(&intent.destination);
    let count = u64::try_from(intent.calls.len()).unwrap_or(u64::MAX);
    let calls = intent
        .calls_gas
        .unwrap_or_else(|| count.saturating_mul(CALL));
    let swap = figures.and_then(|figures| figures.swap_out.as_ref());
    let base = match (count, swap) {
        (0, None) if native => NATIVE,
        (0, None) => TOKEN,
        _ => ROUTED,
    };
    base.saturating_add(calls)
        .saturating_add(swap.map_or(0, |offer| offer.gas))
}

impl Quoter {
    /// What the order promises to pay and to call; `now` in unix seconds.
    pub(super) fn fill(
        &self,
        intent: &Intent<'_>,
        route: &Route<'_>,
        figures: &Figures,
        now: u64,
    ) -> Result<Fill, Refused> {
        let output = &intent.destination;
        let whole = |to: &Address| Due {
            to: to.clone(),
            currency: output.address.clone(),
            amount: figures.output,
            minimum: figures.minimum,
        };
        if intent.own || (intent.calls.is_empty() && figures.swap_out.is_none()) {
            return Ok(Fill {
                payments: vec![whole(&intent.recipient)],
                calls: Vec::new(),
            });
        }
        let spent = super::intent::total(&intent.calls);
        if spent.is_none_or(|spent| spent > figures.minimum) {
            let what = "txs.value: the calls need more than the output";
            return Err(Refused::new(Code::InvalidExtraTxs, what));
        }
        let router = router(output)?.ok_or_else(|| {
            let what = "the destination chain has no fill router";
            Refused::new(Code::Erc20RouterAddressNotFound, what)
        })?;
        if figures.swap_out.is_some() {
            return self.swapping(intent, route, figures, (router, now));
        }
        if !super::intent::is_native(output) {
            return Ok(Fill {
                payments: vec![whole(&router)],
                calls: intent.calls.clone(),
            });
        }
        Ok(native(intent, figures.output, &router))
    }

    /// The router is paid in what the solver has, and exchanges it.
    fn swapping(
        &self,
        intent: &Intent<'_>,
        route: &Route<'_>,
        figures: &Figures,
        (router, now): (Address, u64),
    ) -> Result<Fill, Refused> {
        let Some(offer) = &figures.swap_out else {
            return Ok(Fill::default());
        };
        let recipient = if intent.calls.is_empty() {
            &intent.recipient
        } else {
            &router
        };
        let order = SwapOrder {
            payer: router.clone(),
            recipient: recipient.clone(),
            limit: figures.minimum,
            deadline: now.saturating_add(LIFE),
        };
        let swap = self.parts.offers.build(offer, &order)?;
        let mut calls = Vec::new();
        if let Some(spender) = &swap.spender {
            let spend = Spend {
                spender,
                currency: &route.given.address,
                amount: figures.sum.given,
            };
            let steps = self.venue(&route.given)?.steps()?;
            let approve = steps.approve(&router, &spend, route.given.currency.approval_reset)?;
            calls.extend(approve.into_iter().map(|step| ordered(step.call)));
        }
        calls.push(ordered(swap.call));
        calls.extend(intent.calls.iter().cloned());
        Ok(Fill {
            payments: vec![Due {
                to: router,
                currency: route.given.address.clone(),
                amount: figures.sum.given,
                minimum: figures.sum.given,
            }],
            calls,
        })
    }

    /// Gas units of the fill by the provider's estimate; refused when it would revert.
    pub(super) async fn simulate(&self, intent: &Intent<'_>, fill: &Fill) -> Result<u64, Refused> {
        let venue = self.venue(&intent.destination)?;
        let payments = fill.payments.iter().map(Due::payout).collect::<Vec<_>>();
        let router = router(&intent.destination)?;
        let call = venue.steps()?.fill(&FillTerms {
            solver: &self.solver,
            router: router.as_ref(),
            payments: &payments,
            calls: &fill.calls,
            order: B256::repeat_byte(0xee),
        })?;
        let routed = payments.len() > 1 || !fill.calls.is_empty();
        let mut calls = match router.as_ref().filter(|_| routed) {
            Some(router) => self.allowances(intent, router, &payments)?,
            None => Vec::new(),
        };
        let before = calls.len();
        calls.push(call);
        let (calls, authorizations) = (&calls, &intent.authorizations);
        let tried = if before > 0 {
            let ask =
                |trade: Trade| async move { trade.rehearsal.rehearse(calls, authorizations).await };
            venue.ask(ask).await?
        } else {
            self.estimated(venue, calls[before].clone(), authorizations)
                .await?
        };
        match tried {
            Ok(gas) => Ok(gas),
            Err(revert) => Err(self.reverted(intent, &calls[before], revert).await),
        }
    }

    async fn estimated(
        &self,
        venue: &Venue,
        call: Call,
        authorizations: &[Authorization],
    ) -> Result<Result<u64, Revert>, Refused> {
        let draft = &Draft {
            call,
            authorizations: authorizations.to_vec(),
            nonce: 0,
            gas: 0,
            max_fee: 0,
            max_priority_fee: 0,
        };
        let ask = |trade: Trade| async move { trade.writer.estimate(draft).await };
        Ok(venue.ask(ask).await?)
    }

    /// What lets the router take the payments: the solver allows it no more than it is about to pay,
    /// and not before it pays.
    fn allowances(
        &self,
        intent: &Intent<'_>,
        router: &Address,
        payments: &[Payout],
    ) -> Result<Vec<Call>, Refused> {
        let side = &intent.destination;
        let native = side.spec.family.native()?;
        let steps = self.venue(side)?.steps()?;
        let mut calls = Vec::new();
        for paid in payments.iter().filter(|paid| paid.currency != native) {
            let listed = side.network.currency(paid.currency.text());
            let reset = listed.is_some_and(|currency| currency.approval_reset);
            let spend = Spend {
                spender: router,
                currency: &paid.currency,
                amount: paid.amount,
            };
            let approve = steps.approve(&self.solver, &spend, reset)?;
            calls.extend(approve.into_iter().map(|step| step.call));
        }
        Ok(calls)
    }

    async fn reverted(&self, intent: &Intent<'_>, call: &Call, revert: Revert) -> Refused {
        let venue = self.venue(&intent.destination);
        let revert = match venue.as_ref().map(|venue| venue.steps()) {
            Ok(Ok(steps)) if revert.reason.is_empty() => steps.explain(&revert.data),
            _ => revert,
        };
        let head = match venue {
            Ok(venue) => {
                let ask = |trade: Trade| async move { trade.scanner.head().await };
                venue.ask(ask).await.ok()
            }
            Err(_) => None,
        };
        Refused::reverted(call, &revert, head.map(|block| block.number))
    }
}

impl Due {
    fn payout(&self) -> Payout {
        Payout {
            to: self.to.clone(),
            currency: self.currency.clone(),
            amount: self.amount,
        }
    }
}

/// The router is paid what its calls spend, the recipient the rest. A call without data is a
/// payment: the router reports it as one.
fn native(intent: &Intent<'_>, output: U256, router: &Address) -> Fill {
    let currency = &intent.destination.address;
    let due = |to: &Address, amount: U256| Due {
        to: to.clone(),
        currency: currency.clone(),
        amount,
        minimum: amount,
    };
    let (calls, plain): (Vec<_>, Vec<_>) = intent
        .calls
        .iter()
        .cloned()
        .partition(|call| !call.data.is_empty());
    let spent = super::intent::total(&calls).unwrap_or_default();
    let mut rest = output.saturating_sub(spent);
    let mut payments = Vec::new();
    if !spent.is_zero() {
        payments.push(due(router, spent));
    }
    for call in &plain {
        rest = rest.saturating_sub(call.value);
        payments.push(due(&call.to, call.value));
    }
    if !rest.is_zero() {
        payments.push(due(&intent.recipient, rest));
    }
    Fill { payments, calls }
}

fn ordered(call: Call) -> OrderCall {
    OrderCall {
        to: call.to,
        data: call.data,
        value: call.value,
    }
}
