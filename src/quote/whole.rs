//! Whether a token arrives as it is sent. One that takes a fee on transfers leaves the depository, the
//! router or the recipient short of what its events say: it is not quoted. The tries are calls that
//! are never sent; what cannot be tried, for want of a router or of money, is let through.

use std::{collections::HashMap, sync::Mutex, sync::PoisonError};

use alloy::primitives::{B256, U256};
use vm::{
    Address, CodecError, OrderCall,
    trade::{Call, FillTerms, PaymentTerms, Spend, Trade},
};

use super::{
    code::{Code, Refused},
    figures::Figures,
    intent::{Intent, Side, is_native},
    order::router,
    reads::Reads,
    route::Route,
    service::Quoter,
    swap::{SwapOffer, SwapOrder},
};
use crate::request::Operation;

/// Seconds that a verdict is believed.
const BELIEVED: u64 = 600;
/// Stands in for an order.
const ORDER: B256 = B256::repeat_byte(0xee);

/// Verdicts by network and currency, and when they were found (unix seconds).
#[derive(Default)]
pub struct Verdicts(Mutex<HashMap<(String, String), (bool, u64)>>);

impl Verdicts {
    fn of(&self, side: &Side<'_>, now: u64) -> Option<bool> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (whole, at) = *known.get(&key(side))?;
        (now < at.saturating_add(BELIEVED)).then_some(whole)
    }

    fn put(&self, side: &Side<'_>, whole: bool, now: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(key(side), (whole, now));
    }
}

/// The market's currencies only: memory stays bounded.
fn key(side: &Side<'_>) -> (String, String) {
    (
        side.network.name.clone(),
        side.address.text().to_lowercase(),
    )
}

/// Calls of one account, and those after which the money must be back. The first must work without
/// the second for a verdict.
struct Trial {
    there: Vec<Call>,
    back: Call,
}

impl Quoter {
    /// Refuses a request in which a token takes a fee; `now` in unix seconds.
    pub(super) async fn whole(
        &self,
        (intent, route): (&Intent<'_>, &Route<'_>),
        reads: &Reads,
        figures: &Figures,
        now: u64,
    ) -> Result<(), Refused> {
        let origin = &intent.origin;
        let mut trials = Vec::new();
        if reads.balance >= figures.input {
            let trial = self.transfer(origin, &intent.user, figures.input)?;
            trials.push((origin, trial));
        }
        if !intent.own {
            let given = &route.given;
            let trial = self.transfer(given, &self.solver, figures.sum.given)?;
            trials.push((given, trial));
        }
        let funded = !intent.own || reads.balance >= figures.input_limit;
        if let Some((offer, from)) = bought(intent, figures).filter(|_| funded) {
            let owner = if intent.own {
                &intent.user
            } else {
                &self.solver
            };
            let trial = self.exchange((from.unwrap_or(&route.given), offer), owner, intent, now)?;
            trials.push((&intent.destination, trial));
        }
        let judged = trials
            .iter()
            .map(|(side, trial)| self.judged(side, trial.as_ref(), now));
        futures::future::try_join_all(judged).await?;
        Ok(())
    }

    async fn judged(
        &self,
        side: &Side<'_>,
        trial: Option<&Trial>,
        now: u64,
    ) -> Result<(), Refused> {
        let Some(trial) = trial else {
            return Ok(());
        };
        let whole = match self.verdicts.of(side, now) {
            Some(known) => known,
            None => {
                let Some(found) = self.tried(side, trial).await else {
                    return Ok(());
                };
                self.verdicts.put(side, found, now);
                found
            }
        };
        if whole {
            return Ok(());
        }
        let what = format!(
            "{}: {} takes a fee on transfers",
            side.network.display_name, side.currency.symbol
        );
        Err(Refused::new(Code::UnsupportedCurrency, what))
    }

    /// `None`: the node cannot say, or the owner cannot pay.
    async fn tried(&self, side: &Side<'_>, trial: &Trial) -> Option<bool> {
        let mut calls = trial.there.clone();
        calls.push(trial.back.clone());
        for (calls, whole) in [(&calls, true), (&trial.there, false)] {
            let ask = |trade: Trade| async move { trade.rehearsal.rehearse(calls).await };
            let answer = self.venue(side).ok()?.ask(ask).await;
            if answer.ok()?.is_ok() {
                return Some(whole);
            }
        }
        None
    }

    /// To the router and back.
    fn transfer(
        &self,
        side: &Side<'_>,
        owner: &Address,
        amount: U256,
    ) -> Result<Option<Trial>, Refused> {
        let router = router(side)?.filter(|_| !is_native(side));
        let Some(router) = router else {
            return Ok(None);
        };
        let there = self.payment(side, (owner, &router), amount)?;
        let back = self.returned(side, (&router, owner), amount)?;
        Ok(Some(Trial {
            there: vec![there],
            back,
        }))
    }

    /// An exchange that pays the router, and what it must have fetched.
    fn exchange(
        &self,
        (from, offer): (&Side<'_>, &SwapOffer),
        owner: &Address,
        intent: &Intent<'_>,
        now: u64,
    ) -> Result<Option<Trial>, Refused> {
        let side = &intent.destination;
        let router = router(side)?.filter(|_| !is_native(side));
        let Some(router) = router else {
            return Ok(None);
        };
        let exact = offer.terms.exact_input;
        let order = SwapOrder {
            payer: owner.clone(),
            recipient: router.clone(),
            limit: if exact { offer.output } else { offer.input },
            deadline: now.saturating_add(BELIEVED),
        };
        // A wrap pays who pays it only: it is not tried, and takes nothing.
        let Ok(swap) = self.parts.offers.0.build(offer, &order) else {
            return Ok(None);
        };
        let mut there = Vec::new();
        if let Some(spender) = &swap.spender {
            let spend = Spend {
                spender,
                currency: &from.address,
                amount: offer.input,
            };
            let steps = self.venue(from)?.steps()?;
            let approve = steps.approve(owner, &spend, from.currency.approval_reset)?;
            there.extend(approve.into_iter().map(|step| step.call));
        }
        there.push(swap.call);
        let back = self.returned(side, (&router, owner), offer.output)?;
        Ok(Some(Trial { there, back }))
    }

    fn payment(
        &self,
        side: &Side<'_>,
        (from, to): (&Address, &Address),
        amount: U256,
    ) -> Result<Call, Refused> {
        let paid = PaymentTerms {
            from,
            to,
            currency: &side.address,
            amount,
            order: ORDER,
        };
        Ok(self.venue(side)?.steps()?.send(&paid)?.call)
    }

    /// The router pays `owner`, at the owner's request.
    fn returned(
        &self,
        side: &Side<'_>,
        (router, owner): (&Address, &Address),
        amount: U256,
    ) -> Result<Call, Refused> {
        let payment = self.payment(side, (router, owner), amount)?;
        let calls = [OrderCall {
            to: payment.to,
            data: payment.data,
            value: payment.value,
        }];
        let terms = FillTerms {
            solver: owner,
            router: Some(router),
            proxy: None,
            payments: &[],
            calls: &calls,
            order: ORDER,
        };
        let call: Result<Call, CodecError> = self.venue(side)?.steps()?.fill(&terms);
        Ok(call?)
    }
}

/// The exchange that ends in the destination's currency, and what goes in where that is the user's.
fn bought<'a>(
    intent: &'a Intent<'_>,
    figures: &'a Figures,
) -> Option<(&'a SwapOffer, Option<&'a Side<'a>>)> {
    if !intent.own {
        return figures.swap_out.as_ref().map(|offer| (offer, None));
    }
    let (offer, _) = figures.swap_in.as_ref()?;
    let swaps = intent.operation == Operation::Swap;
    swaps.then_some((offer, Some(&intent.origin)))
}
