//! What the quote said ([`Request::quoted`]), as the listing shows it.

use alloy::primitives::U256;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, Value, to_raw_value};
use utoipa::ToSchema;
use vm::spelled_alike;

use super::Request;
use crate::format;

/// What costs more to give back than it is worth, whatever gas costs: millionths of a dollar.
const NOTHING: u128 = 50_000;

/// The quote as JSON text: most who read a request need none of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quote(Box<RawValue>);

/// The parts that are listed; what is not there, or cannot be read, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Quoted {
    pub fees: Option<Fees>,
    pub details: Option<Details>,
    pub app_fees: Vec<AppFee>,
    /// Both sides are of one asset, on whichever networks.
    pub one_asset: bool,
    /// Which exchanges the caller let the route go through.
    pub swap_sources: SwapSources,
}

/// Names of exchanges; an empty list is one that the caller did not give.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SwapSources {
    pub included: Vec<String>,
    pub excluded: Vec<String>,
    pub origin: Vec<String>,
    pub destination: Vec<String>,
}

impl SwapSources {
    /// The names in force on the origin (or else the destination): those of its own list, else of the common one.
    pub fn of_side(&self, origin: bool) -> &[String] {
        let own = match origin {
            true => &self.origin,
            false => &self.destination,
        };
        match own.as_slice() {
            [] => &self.included,
            own => own,
        }
    }
}

/// `fees`: `gas` in the origin's native currency, the others in the deposited one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fees {
    pub gas: Amount,
    pub relayer_gas: Amount,
    pub relayer_service: Amount,
    pub app: Amount,
}

/// `details`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    pub currency_in: Amount,
    pub currency_out: Amount,
    pub refund_currency: Amount,
    pub expanded_price_impact: Option<Expanded>,
    pub slippage_tolerance: Option<Tolerances>,
    pub rate: String,
    pub time_estimate: u64,
    #[serde(default)]
    pub is_fixed_rate: bool,
    pub route: Option<Route>,
}

/// The impact's parts; costs are negative.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Expanded {
    pub swap: Usd,
    pub execution: Usd,
    pub relay: Usd,
    pub app: Usd,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = RecordUsd)]
pub struct Usd {
    pub usd: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Tolerances {
    pub origin: Tolerance,
    pub destination: Tolerance,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Tolerance {
    pub percent: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Route {
    pub origin: Leg,
    pub destination: Option<Leg>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leg {
    pub input_currency: Amount,
    pub output_currency: Amount,
    pub router: String,
}

/// An amount of a currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteAmount)]
pub struct Amount {
    pub currency: Currency,
    /// Smallest units.
    pub amount: String,
    pub amount_formatted: String,
    pub amount_usd: String,
    pub minimum_amount: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteCurrency)]
pub struct Currency {
    pub chain_id: u64,
    pub address: String,
    pub symbol: String,
    pub name: String,
    pub decimals: u8,
    pub metadata: Metadata,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = QuoteMetadata)]
pub struct Metadata {
    #[serde(rename = "logoURI")]
    pub logo_uri: String,
    pub verified: bool,
    pub is_native: bool,
}

/// What an integrator is owed, in units of the deposited currency.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AppFee {
    pub recipient: String,
    pub bps: String,
    pub amount: String,
}

impl Quote {
    pub fn json(&self) -> &str {
        self.0.get()
    }
}

impl From<Value> for Quote {
    fn from(quote: Value) -> Self {
        // A value always has a text.
        Self(to_raw_value(&quote).unwrap_or_default())
    }
}

impl PartialEq for Quote {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl Quoted {
    /// The request's quote.
    pub fn of(request: &Request) -> Self {
        serde_json::from_str(request.quoted.json()).unwrap_or_default()
    }
}

/// Whether so much of a network's currency is next to nothing at the price of the request's quote; never where
/// that has no price for it.
pub fn is_nothing(request: &Request, (network, currency): (&str, &str), units: U256) -> bool {
    let Some(asked) = request.order.inputs.first().map(|input| &input.payment) else {
        return false;
    };
    if network != asked.chain_id || !spelled_alike(currency, &asked.currency) {
        return false;
    }
    Quoted::of(request).details.is_some_and(|details| {
        let priced = details.currency_in;
        let same = spelled_alike(currency, &priced.currency.address);
        same && units <= priced.bought(NOTHING)
    })
}

/// The router of a route on one chain, whose sides are shown as one: that of the side that exchanges, the origin's
/// where both do. `origin` is what goes into the origin's side and what comes out of it; `routers` are both sides',
/// the origin's first.
pub fn joint_router<'r>(origin: [&Amount; 2], routers: [&'r str; 2]) -> &'r str {
    let [from, to] = origin.map(|amount| &amount.currency.address);
    let [here, there] = routers;
    match spelled_alike(from, to) {
        true => there,
        false => here,
    }
}

impl Amount {
    /// Smallest units; zero for what is no number.
    pub fn units(&self) -> U256 {
        U256::from_str_radix(&self.amount, 10).unwrap_or_default()
    }

    /// Millionths of a dollar; zero for what is no number.
    pub fn micro(&self) -> i128 {
        format::micro_of(&self.amount_usd).unwrap_or_default()
    }

    /// `units` of the same currency at the same price.
    #[must_use]
    pub fn with(&self, units: U256) -> Self {
        Self {
            currency: self.currency.clone(),
            amount: units.to_string(),
            amount_formatted: format::units(units, self.currency.decimals),
            amount_usd: format::usd(format::from_micro(self.worth(units))),
            minimum_amount: units.to_string(),
        }
    }

    /// What `units` are worth at the price of this amount, millionths of a dollar, rounded down.
    pub fn worth(&self, units: U256) -> i128 {
        let micro = U256::from(self.micro().unsigned_abs());
        format::share(units, micro, self.units())
    }

    /// The units that `micro` millionths of a dollar are at the price of this amount, rounded down.
    pub fn bought(&self, micro: u128) -> U256 {
        let own = U256::from(self.micro().unsigned_abs());
        let bought = U256::from(micro).checked_mul(self.units());
        bought
            .and_then(|all| all.checked_div(own))
            .unwrap_or_default()
    }
}
