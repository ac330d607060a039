//! What the solver will do on the destination, and whether it would work.

use alloy::primitives::{B256, U256};
use vm::{
    Address, CodecError, OrderCall,
    trade::{Call, FillTerms, Intended, Payout, Revert, Spend, Trade},
};

use super::{
    code::{Code, Refused},
    figures::Figures,
    intent::{Intent, Side},
    late,
    order::{Due, SWAP_LIFE, proxy, router},
    route::Route,
    service::Quoter,
    swap::{SwapOffer, SwapOrder},
    venue::Venue,
};

/// Gas of a plain payment, native or of a token, when no node says.
const NATIVE: u64 = 30_000;
const TOKEN: u64 = 75_000;
/// Of the router around its calls: what it is paid, an allowance, what it pays; and of a call that
/// nobody limited.
const ROUTED: u64 = 200_000;
const CALL: u64 = 150_000;

/// What a fill takes on its chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FillGas {
    pub units: u64,
    /// Wei that the chain charges for the transaction's bytes besides gas.
    pub data: U256,
}

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
    let count = intent.calls.len();
    let calls = calls(intent);
    let swap = figures.and_then(|figures| figures.swap_out.as_ref());
    let base = match (count, swap) {
        (0, None) => plain(native),
        _ => ROUTED,
    };
    base.saturating_add(calls)
        .saturating_add(swap.map_or(0, |offer| offer.gas))
}

/// The table's gas units of a payment without calls or exchange.
pub fn plain(native: bool) -> u64 {
    if native { NATIVE } else { TOKEN }
}

/// The part of the table that is for the order's calls.
pub fn calls(intent: &Intent<'_>) -> u64 {
    let count = u64::try_from(intent.calls.len()).unwrap_or(u64::MAX);
    let each = || count.saturating_mul(CALL);
    intent.calls_gas.unwrap_or_else(each)
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
            let mut due = whole(&intent.recipient);
            // What late gas may take besides: only the order's own minimum can let it.
            let late = intent.late_slippage.filter(|_| !intent.own);
            let late = late::tolerated(figures.output, late);
            due.minimum = due.minimum.saturating_sub(late).max(U256::from(1));
            return Ok(Fill {
                payments: vec![due],
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
        if !super::intent::is_native(&route.given) && proxy(output)?.is_none() {
            let what = "the destination chain has no contract that pays the router in tokens";
            return Err(Refused::new(Code::Erc20RouterAddressNotFound, what));
        }
        if figures.swap_out.is_none() && super::intent::is_native(output) {
            let mut fill = native(intent, figures.output, &router);
            fill.calls.extend(sweeps(intent, &router)?);
            return Ok(fill);
        }
        let (payment, mut calls) = match &figures.swap_out {
            None => (whole(&router), Vec::new()),
            Some(offer) => {
                // Time to deposit, for the deposit to be final twice over, and to be filled.
                let wait = intent.seconds().saturating_mul(2).saturating_add(SWAP_LIFE);
                let deadline = now.saturating_add(self.parts.validity).saturating_add(wait);
                self.swapping(route, figures, offer, (&router, deadline))?
            }
        };
        calls.extend(intent.calls.iter().cloned());
        calls.extend(sweeps(intent, &router)?);
        Ok(Fill {
            payments: vec![payment],
            calls,
        })
    }

    /// The router is paid in what the solver has, and exchanges it for itself.
    fn swapping(
        &self,
        route: &Route<'_>,
        figures: &Figures,
        offer: &SwapOffer,
        (router, deadline): (&Address, u64),
    ) -> Result<(Due, Vec<OrderCall>), Refused> {
        let (amount, exact) = (figures.sum.given, !offer.terms.exact_input);
        let order = SwapOrder {
            payer: router.clone(),
            recipient: router.clone(),
            limit: if exact { amount } else { figures.minimum },
            deadline,
        };
        let swap = self.parts.offers.build(offer, &order)?;
        let mut calls = Vec::new();
        if let Some(spender) = &swap.spender {
            let spend = Spend {
                spender,
                currency: &route.given.address,
                amount,
            };
            let steps = self.venue(&route.given)?.steps()?;
            let approve = steps.approve(router, &spend, route.given.currency.approval_reset)?;
            calls.extend(approve.into_iter().map(|step| ordered(step.call)));
        }
        calls.push(ordered(swap.call));
        if exact {
            // What the exchange did not need: before anybody's calls, which could take it.
            calls.push(sweep(&route.given, router, &self.solver)?);
        }
        let payment = Due {
            to: router.clone(),
            currency: route.given.address.clone(),
            amount,
            minimum: amount,
        };
        Ok((payment, calls))
    }

    /// What the fill takes as it would be sent, by agreement of providers; refused when it would revert
    /// or no node would take it.
    pub(super) async fn simulate(
        &self,
        intent: &Intent<'_>,
        fill: &Fill,
    ) -> Result<FillGas, Refused> {
        let venue = self.venue(&intent.destination)?;
        let payments = fill.payments.iter().map(Due::payout).collect::<Vec<_>>();
        let router = router(&intent.destination)?;
        let proxy = proxy(&intent.destination)?;
        let call = venue.steps()?.fill(&FillTerms {
            solver: &self.solver,
            router: router.as_ref(),
            proxy: proxy.as_ref(),
            payments: &payments,
            calls: &fill.calls,
            order: B256::repeat_byte(0xee),
        })?;
        if let Some(proxy) = proxy.filter(|proxy| *proxy == call.to) {
            self.ready(venue, &proxy, fill).await?;
        }
        let intended = &Intended {
            authorizations: &intent.authorizations,
            ..Intended::free(&call)
        };
        if let Err(unfit) = venue.providers.admit(intended).await? {
            let what = format!("txs, authorizationList: {unfit}");
            return Err(Refused::new(Code::InvalidExtraTxs, what));
        }
        match venue.providers.cost(intended).await? {
            Ok(cost) => Ok(FillGas {
                units: cost.gas,
                data: cost.data,
            }),
            Err(revert) => Err(self.reverted(intent, &call, revert).await),
        }
    }

    /// Refused until the solver has allowed the proxy to take what the fill pays: without that the
    /// simulation would speak of the order's calls.
    async fn ready(&self, venue: &Venue, proxy: &Address, fill: &Fill) -> Result<(), Refused> {
        for due in &fill.payments {
            let allowed = venue
                .providers
                .allowance(&self.solver, proxy, &due.currency);
            if allowed.await? < due.amount {
                let what = "the solver does not make calls with this currency yet";
                return Err(Refused::new(Code::ServiceUnavailable, what));
            }
        }
        Ok(())
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

/// What the calls leave is the recipient's, in the router it would be anybody's: what was bought, and the
/// native currency last.
fn sweeps(intent: &Intent<'_>, router: &Address) -> Result<Vec<OrderCall>, CodecError> {
    let (output, to) = (&intent.destination, &intent.recipient);
    let orders = output.spec.family.orders;
    let orders = orders.ok_or_else(|| CodecError("the family has no calls".into()))?;
    let mut calls = Vec::new();
    if !super::intent::is_native(output) {
        calls.push(sweep(output, router, to)?);
    }
    calls.push(orders.sweep(router, &output.spec.family.native()?, to)?);
    Ok(calls)
}

/// A call by which the router gives all that it has of a currency.
fn sweep(of: &Side<'_>, router: &Address, to: &Address) -> Result<OrderCall, CodecError> {
    let orders = of.spec.family.orders;
    let orders = orders.ok_or_else(|| CodecError("the family has no calls".into()))?;
    orders.sweep(router, &of.address, to)
}
