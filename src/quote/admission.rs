//! Whether the solver may pay what is quoted.

use alloy::primitives::U256;

use super::{
    code::{Code, Refused},
    figures::Figures,
    fill::{Fill, FillGas},
    intent::{Intent, is_native},
    reads::Reads,
    route::Route,
    service::{Quoter, drained},
    venue::{Admission, Hands, Payment},
};

/// What an order asks of the solver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burden<'a> {
    /// Units of what the solver gives.
    pub amount: U256,
    /// The same in usd e18, as it counts where the solver gives it.
    pub usd: U256,
    /// Usd e18 of what else is given to the same user, in other currencies.
    pub besides: U256,
    /// Of the native currency, gas included; nothing for what pays a token plainly.
    pub native: U256,
    /// Wei.
    pub gas: U256,
    pub hands: Hands,
    pub key: Option<&'a str>,
}

impl<'a> Burden<'a> {
    pub(super) fn of(
        (route, reads): (&Route<'_>, &Reads),
        figures: &Figures,
        (fill, gas): (&Fill, FillGas),
        key: Option<&'a str>,
    ) -> Self {
        let amount = figures.sum.given;
        let given = is_native(&route.given);
        let plain = !given && fill.calls.is_empty() && fill.payments.len() <= 1;
        let value = if given { amount } else { U256::ZERO };
        let gas = reads.destination_fees.cost(gas).unwrap_or(U256::MAX);
        let usd = reads.deal.given.given().usd(amount);
        let native = match plain {
            true => U256::ZERO,
            false => value.saturating_add(gas),
        };
        Self {
            amount,
            usd: usd.unwrap_or(U256::MAX),
            besides: U256::ZERO,
            native,
            gas,
            hands: reads.hands,
            key,
        }
    }

    /// With what `other` asks on the same network: of the `same` currency, or of another one.
    pub(super) fn with(self, other: Self, same: bool) -> Self {
        let (amount, besides) = match same {
            true => (other.amount, U256::ZERO),
            false => (U256::ZERO, other.usd),
        };
        Self {
            amount: self.amount.saturating_add(amount),
            besides: self.besides.saturating_add(besides),
            native: self.native.saturating_add(other.native),
            gas: self.gas.saturating_add(other.gas),
            ..self
        }
    }
}

impl Quoter {
    /// Refuses what the solver may not pay at `now`, unix seconds.
    pub(super) async fn admitted(
        &self,
        intent: &Intent<'_>,
        route: &Route<'_>,
        burden: Burden<'_>,
        now: u64,
    ) -> Result<(), Refused> {
        if intent.own {
            return Ok(());
        }
        let payment = Payment {
            network: &route.given.network.name,
            currency: &route.given.address,
            amount: burden.amount,
            besides: burden.besides,
            user: match intent.calls.is_empty() {
                true => &intent.recipient,
                false => &intent.user,
            },
            native: burden.native,
            hands: burden.hands,
            gas: burden.gas,
            key: burden.key,
            now,
        };
        let admission = self.parts.capacity.admits(payment).await;
        let admission = admission.map_err(|error| {
            tracing::warn!(%error, "no quote");
            Refused::new(Code::ServiceUnavailable, "the solver does not answer")
        })?;
        match admission {
            Admission::Open => Ok(()),
            Admission::Capped => Err(Refused::new(
                Code::RouteTemporarilyRestricted,
                "amount: more than is paid on this route within an hour; try less, or later",
            )),
            Admission::Held => Err(Refused::new(
                Code::RouteTemporarilyRestricted,
                "txs, recipient: too much is under way there that its recipients can let fail; try later",
            )),
            Admission::Short => {
                let native = route.given.network.native();
                Err(drained(
                    native.unwrap_or(route.given.currency),
                    &route.given,
                ))
            }
            Admission::Paused => Err(Refused::new(
                Code::ServiceUnavailable,
                "the solver is paused",
            )),
        }
    }
}
