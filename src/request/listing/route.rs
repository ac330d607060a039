//! What was quoted of each side, and what came of it.

use alloy::primitives::U256;
use serde::Serialize;
use utoipa::ToSchema;
use vm::spelled_alike;

use super::CaseView;
use crate::{
    format,
    request::{
        Execution,
        fact::{Attempt, Purpose},
        quoted::{self, Amount, Details},
        render,
        status::Status,
        tx_details::Change,
    },
};

/// One side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordLeg)]
pub struct Leg {
    pub input_currency: Option<Amount>,
    pub output_currency: Option<Amount>,
    pub router: String,
    /// The exchanges that the caller let this side go through, all where it is empty. In version 2 only: version
    /// 3 has the caller's lists beside the sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub included_swap_sources: Option<Vec<String>>,
}

/// Both. A request on one chain has an origin only, whose output is what comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordLegs)]
pub struct Legs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Leg>,
    /// Left out where both are on one chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Leg>,
}

/// Both as they turned out; as quoted where nothing has been seen. What brought nothing out has no output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordActualLegs)]
pub struct Actual {
    pub origin: Option<Leg>,
    pub destination: Option<Leg>,
    /// Coins out for a coin in; left out while nothing has come out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
}

impl Leg {
    fn of(leg: &quoted::Leg) -> Self {
        Self {
            input_currency: Some(leg.input_currency.clone()),
            output_currency: Some(leg.output_currency.clone()),
            router: leg.router.clone(),
            included_swap_sources: None,
        }
    }
}

impl Actual {
    fn quoted(legs: Legs, details: &Details) -> Self {
        Self {
            origin: legs.origin,
            destination: legs.destination,
            rate: Some(details.rate.clone()),
        }
    }

    /// Nothing has come out of the `input`.
    fn without_output(origin: Option<Leg>, input: Option<Amount>) -> Self {
        Self {
            origin: origin.map(|leg| Leg {
                input_currency: input,
                output_currency: None,
                ..leg
            }),
            destination: None,
            rate: None,
        }
    }
}

impl CaseView<'_> {
    pub(super) fn quoted_legs(&self) -> Option<Legs> {
        let route = self.details()?.route.as_ref()?;
        let (origin, destination) = match &route.destination {
            None => (Leg::of(&route.origin), None),
            Some(end) if self.case.request.is_same_chain() => (joined(&route.origin, end), None),
            Some(end) => (Leg::of(&route.origin), Some(Leg::of(end))),
        };
        Some(Legs {
            origin: Some(origin),
            destination,
        })
    }

    pub(super) fn actual_legs(&self) -> Option<Actual> {
        let (legs, details) = (self.quoted_legs()?, self.details()?);
        let fill = self.case.facts.alive(Purpose::Fill).next();
        if self.case.request.execution == Execution::User {
            return Some(self.done(legs, details));
        }
        if self.deposit().is_none() && fill.is_none() {
            return Some(Actual::quoted(legs, details));
        }
        let input = self.input(details);
        let Some(fill) = fill else {
            return Some(Actual::without_output(legs.origin, input));
        };
        let output = paid(details, fill).unwrap_or_else(|| self.exchanged(details, fill));
        let alone = legs.destination.is_none();
        Some(Actual {
            rate: rate(input.as_ref(), Some(&output)),
            origin: legs.origin.map(|leg| Leg {
                input_currency: input,
                output_currency: match alone {
                    true => Some(output.clone()),
                    false => leg.output_currency.clone(),
                },
                ..leg
            }),
            destination: legs.destination.map(|leg| Leg {
                output_currency: Some(output),
                ..leg
            }),
        })
    }

    /// What the recipient got of the output where the fill paid an exchange for it: as its transaction shows
    /// it, or else as quoted.
    fn exchanged(&self, details: &Details, fill: &Attempt) -> Amount {
        let quoted = &details.currency_out;
        let seen = self.tx_details(&fill.network, &fill.transaction);
        let seen = seen.filter(|seen| fill.state.place().is_some_and(|place| seen.is_of(place)));
        let got = seen.and_then(|seen| self.received(&seen.changes, details));
        got.map_or_else(|| quoted.clone(), |amount| quoted.with(amount))
    }

    /// What of the output a transaction gave the recipient.
    fn received<'c>(
        &self,
        changes: impl IntoIterator<Item = &'c Change>,
        details: &Details,
    ) -> Option<U256> {
        let request = self.case.request;
        let mut changes = changes.into_iter();
        let received = changes.find(|change| {
            !change.negative
                && spelled_alike(&change.address, &request.recipient)
                && spelled_alike(&change.currency, &details.currency_out.currency.address)
        })?;
        Some(received.amount)
    }

    /// What the user's own transaction did, as far as it has been seen; one that failed brought nothing out.
    fn done(&self, legs: Legs, details: &Details) -> Actual {
        if self.verdict.status == Status::Failure {
            return Actual::without_output(legs.origin, Some(details.currency_in.clone()));
        }
        let seen = self.outgoing();
        let seen = seen.iter().filter(|moved| moved.status == Some("success"));
        let changes = seen
            .filter_map(|moved| moved.tx_details)
            .flat_map(|seen| &seen.changes);
        let Some(received) = self.received(changes, details) else {
            return Actual::quoted(legs, details);
        };
        let output = details.currency_out.with(received);
        Actual {
            rate: rate(Some(&details.currency_in), Some(&output)),
            origin: legs.origin.map(|leg| Leg {
                output_currency: Some(output),
                ..leg
            }),
            destination: legs.destination,
        }
    }

    /// The deposit; as quoted where the fill came first, null in a currency that was not quoted. That of another
    /// network is another currency.
    fn input(&self, details: &Details) -> Option<Amount> {
        let Some(deposit) = self.deposit() else {
            return Some(details.currency_in.clone());
        };
        let deposited = (&*deposit.network, &*deposit.currency);
        // A swap's deposit is in the currency that is swapped into.
        let known = [&details.currency_in, &details.refund_currency];
        let mut known = known.into_iter();
        let same = known.find(|known| self.is_quoted(&known.currency, deposited))?;
        if spelled_alike(
            &details.currency_in.currency.address,
            &same.currency.address,
        ) {
            return Some(same.with(deposit.amount));
        }
        Some(details.currency_in.clone())
    }

    /// What was paid back to the user, null in a currency that was not quoted. What was deposited on the destination is
    /// paid back there.
    pub(super) fn refunded(&self) -> Option<Amount> {
        let (request, facts) = (self.case.request, self.case.facts);
        let mut refunds = facts.alive(Purpose::Refund);
        let refund = refunds.find(|attempt| {
            attempt.state.place().is_some() && !render::is_strangers(request, facts, attempt)
        })?;
        let details = self.details()?;
        let known = [
            &details.refund_currency,
            &details.currency_in,
            &details.currency_out,
        ];
        let refunded = (&*refund.network, &*refund.currency);
        let mut known = known.into_iter();
        let same = known.find(|known| self.is_quoted(&known.currency, refunded))?;
        Some(same.with(refund.amount))
    }
}

/// Both sides of a request on one chain, of a quote that still had both.
fn joined(start: &quoted::Leg, end: &quoted::Leg) -> Leg {
    let origin = [&start.input_currency, &start.output_currency];
    let router = quoted::joint_router(origin, [start.router.as_str(), end.router.as_str()]);
    Leg {
        output_currency: Some(end.output_currency.clone()),
        router: router.to_owned(),
        ..Leg::of(start)
    }
}

fn paid(details: &Details, fill: &Attempt) -> Option<Amount> {
    let quoted = &details.currency_out;
    spelled_alike(&quoted.currency.address, &fill.currency).then(|| quoted.with(fill.amount))
}

fn rate(input: Option<&Amount>, output: Option<&Amount>) -> Option<String> {
    let pair = |amount: &Amount| -> (U256, u8) { (amount.units(), amount.currency.decimals) };
    Some(format::rate(pair(input?), pair(output?)))
}
