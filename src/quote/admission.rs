//! Whether the solver may pay what is quoted.

use alloy::primitives::U256;

use super::{
    code::{Code, Refused},
    context::Context,
    fill::Priced,
    intent::Side,
    market_data::Case,
    pricing_chain::{Admission, Hands, Payment},
};
use crate::market::Currency;

/// What an order asks of the solver.
#[derive(Clone, Copy, Debug)]
pub struct Burden<'a> {
    /// Units of what the solver gives.
    pub amount: U256,
    /// The same in usd e18, as it counts where the solver gives it.
    pub usd: U256,
    /// Usd e18 of what else is given to the same user, in other currencies.
    pub besides: U256,
    /// Of the native currency, the fill's fee included; nothing for what pays a token plainly.
    pub native: U256,
    /// The fill's fee, in the native currency's smallest unit.
    pub fee: U256,
    pub hands: Hands,
    pub key: Option<&'a str>,
}

impl<'a> Burden<'a> {
    pub fn of(priced: &Priced<'_>, key: Option<&'a str>) -> Self {
        let Priced {
            case,
            amounts,
            fill,
            fee,
        } = priced;
        let (market, amount) = (&case.market, amounts.sum.given);
        let given = case.route.given.is_native();
        let plain = !given && fill.calls.is_empty() && fill.payments.len() <= 1;
        let value = if given { amount } else { U256::ZERO };
        let fee = fee.total();
        let usd = market.deal.given.given().usd(amount);
        let native = match plain {
            true => U256::ZERO,
            false => value.saturating_add(fee),
        };
        Self {
            amount,
            usd: usd.unwrap_or(U256::MAX),
            besides: U256::ZERO,
            native,
            fee,
            hands: market.hands,
            key,
        }
    }

    /// With what `other` asks on the same network: of the `same` currency, or of another one.
    pub fn with(self, other: Self, same: bool) -> Self {
        let (amount, besides) = match same {
            true => (other.amount, U256::ZERO),
            false => (U256::ZERO, other.usd),
        };
        Self {
            amount: self.amount.saturating_add(amount),
            besides: self.besides.saturating_add(besides),
            native: self.native.saturating_add(other.native),
            fee: self.fee.saturating_add(other.fee),
            ..self
        }
    }
}

/// Refuses what the solver may not pay.
pub async fn admit(context: &Context, case: &Case<'_>, burden: Burden<'_>) -> Result<(), Refused> {
    let Case { intent, route, .. } = case;
    if intent.own {
        return Ok(());
    }
    let payment = Payment {
        network: &route.given.network.name,
        currency: &route.given.address,
        amount: burden.amount,
        besides: burden.besides,
        user: match intent.calls.is_empty() {
            true => (intent.destination.spec.family, &intent.recipient),
            false => (intent.origin.spec.family, &intent.user),
        },
        native: burden.native,
        hands: burden.hands,
        fee: burden.fee,
        key: burden.key,
        now: case.seconds(),
    };
    let admission = context.deps.capacity.admits(payment).await;
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

/// The solver has too little of a currency on the network of what it gives.
pub fn drained(currency: &Currency, given: &Side<'_>) -> Refused {
    let what = format!(
        "amount: the solver has not enough {} on {}",
        currency.symbol, given.network.display_name
    );
    Refused::new(Code::InsufficientLiquidity, what)
}
