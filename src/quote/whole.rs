//! Whether a token arrives as it is sent. One that takes a fee on transfers leaves the depository, the
//! router or the recipient short of what its events say: it is not quoted. The tries are calls that
//! are never sent: to an account that nobody has seen before, and back from there, so that a token
//! cannot know who asks. What cannot be tried, for want of money, is let through.
//!
//! What providers agree on counts: one of them switches no token off, and lets none through. What the
//! solver's own account finds holds for everybody. What a caller's finds holds for the caller
//! alone: whoever names an account decides how a transfer from there ends.

use std::{collections::HashMap, sync::Mutex, sync::PoisonError};

use alloy::primitives::{B256, U256};
use moka::sync::Cache;
use vm::{
    Address,
    trade::{Call, PaymentTerms, Spend},
};

use super::{
    code::{Code, Refused},
    figures::Figures,
    intent::{Intent, Side, is_native},
    reads::Reads,
    route::Route,
    service::Quoter,
    swap::{SwapOffer, SwapOrder},
};
use crate::request::Operation;

/// Seconds that a verdict is believed.
const BELIEVED: u64 = 600;
/// A token that passed is believed with so many times the amount: rounding hides a fee on little.
const FOLD: u64 = 10;
/// Verdicts of callers that are kept.
const MOST_CALLERS: u64 = 4_096;
/// Stands in for an order.
const ORDER: B256 = B256::repeat_byte(0xee);

/// What was found.
#[derive(Clone, Copy)]
struct Verdict {
    whole: bool,
    amount: U256,
    /// Unix seconds.
    at: u64,
}

/// A network's name and a currency's address.
type Token = (String, String);

/// What is known of tokens.
pub struct Verdicts {
    /// The market's currencies only: memory stays bounded.
    shared: Mutex<HashMap<Token, Verdict>>,
    callers: Cache<(Token, Address), Verdict>,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self {
            shared: Mutex::default(),
            callers: Cache::new(MOST_CALLERS),
        }
    }
}

impl Verdict {
    fn holds(&self, amount: U256, now: u64) -> Option<bool> {
        let known = !self.whole || amount <= self.amount.saturating_mul(U256::from(FOLD));
        let fresh = now < self.at.saturating_add(BELIEVED);
        (known && fresh).then_some(self.whole)
    }
}

impl Verdicts {
    /// What holds for `amount`: everybody's verdict, or else that of the `caller`.
    fn of(&self, token: &Token, caller: Option<&Address>, amount: U256, now: u64) -> Option<bool> {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = shared.get(token).copied();
        let held = |verdict: Verdict| verdict.holds(amount, now);
        shared.and_then(held).or_else(|| {
            let own = (token.clone(), caller?.clone());
            self.callers.get(&own).and_then(held)
        })
    }

    fn put(&self, token: Token, caller: Option<&Address>, verdict: Verdict) {
        match caller {
            Some(caller) => self.callers.insert((token, caller.clone()), verdict),
            None => {
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                shared.insert(token, verdict);
            }
        }
    }
}

/// Calls of one account, and the one after which the money must be back. The first must work without
/// the last for a verdict.
struct Trial<'a> {
    side: &'a Side<'a>,
    /// Whom the verdict binds; `None`: everybody.
    caller: Option<&'a Address>,
    /// What the quote needs to arrive whole, and what is tried.
    needed: U256,
    amount: U256,
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
        let mut trials = Vec::new();
        if reads.balance >= figures.input {
            let caller = Some(&intent.user);
            let amounts = (figures.input, figures.input);
            trials.push(self.transfer(&intent.origin, caller, amounts)?);
        }
        if !intent.own {
            // The caller chooses what is given, never what is tried.
            let amounts = (figures.sum.given, reads.available);
            trials.push(self.transfer(&route.given, None, amounts)?);
        }
        let funded = !intent.own || reads.balance >= figures.input_limit;
        if let Some((offer, from)) = bought(intent, figures).filter(|_| funded) {
            let caller = intent.own.then_some(&intent.user);
            let from = from.unwrap_or(&route.given);
            trials.push(self.exchange((from, offer), caller, &intent.destination, now)?);
        }
        let judged = trials.iter().flatten().map(|trial| self.judged(trial, now));
        futures::future::try_join_all(judged).await?;
        Ok(())
    }

    async fn judged(&self, trial: &Trial<'_>, now: u64) -> Result<(), Refused> {
        let side = trial.side;
        let token = (
            side.network.name.clone(),
            side.address.text().to_lowercase(),
        );
        let known = self.verdicts.of(&token, trial.caller, trial.needed, now);
        let whole = match known {
            Some(known) => known,
            None => {
                let Some(whole) = self.tried(trial).await else {
                    return Ok(());
                };
                let amount = trial.amount;
                let found = Verdict {
                    whole,
                    amount,
                    at: now,
                };
                self.verdicts.put(token, trial.caller, found);
                whole
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
    async fn tried(&self, trial: &Trial<'_>) -> Option<bool> {
        let mut whole = trial.there.clone();
        whole.push(trial.back.clone());
        if self.works(trial.side, &whole).await? {
            return Some(true);
        }
        if !self.works(trial.side, &trial.there).await? {
            return None;
        }
        // A price that moved between the two looks like a fee; a fee is there now, too.
        self.works(trial.side, &whole).await
    }

    async fn works(&self, side: &Side<'_>, calls: &[Call]) -> Option<bool> {
        let providers = &self.venue(side).ok()?.providers;
        Some(providers.rehearse(calls).await.ok()?.is_ok())
    }

    /// Away and back; what is needed, and what is tried.
    fn transfer<'a>(
        &'a self,
        side: &'a Side<'a>,
        caller: Option<&'a Address>,
        (needed, amount): (U256, U256),
    ) -> Result<Option<Trial<'a>>, Refused> {
        if is_native(side) {
            return Ok(None);
        }
        let owner = caller.unwrap_or(&self.solver);
        let nobody = self.nobody(side)?;
        Ok(Some(Trial {
            side,
            caller,
            needed,
            amount,
            there: vec![self.payment(side, (owner, &nobody), amount)?],
            back: self.payment(side, (&nobody, owner), amount)?,
        }))
    }

    /// An exchange that pays somebody, and what it must have fetched.
    fn exchange<'a>(
        &'a self,
        (from, offer): (&Side<'_>, &SwapOffer),
        caller: Option<&'a Address>,
        side: &'a Side<'a>,
        now: u64,
    ) -> Result<Option<Trial<'a>>, Refused> {
        if is_native(side) {
            return Ok(None);
        }
        let owner = caller.unwrap_or(&self.solver);
        let nobody = self.nobody(side)?;
        let exact = offer.terms.exact_input;
        let order = SwapOrder {
            payer: owner.clone(),
            recipient: nobody.clone(),
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
        Ok(Some(Trial {
            side,
            caller,
            needed: offer.output,
            amount: offer.output,
            there,
            back: self.payment(side, (&nobody, owner), offer.output)?,
        }))
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

    /// An account that nobody has used, and that no token can know.
    fn nobody(&self, side: &Side<'_>) -> Result<Address, Refused> {
        let entropy = self.entropy()?;
        let text = alloy::hex::encode_prefixed(&entropy[12..]);
        Ok(side.spec.family.address(&text)?)
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
