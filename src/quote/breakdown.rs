//! Fees and details of an answer: amounts as texts, and the impacts, which add up in millionths of a
//! dollar (guide: protocol 11.9). Pure.

use alloy::primitives::{I256, U256};
use vm::protocol::BASIS_POINTS;

use super::{
    amounts::Amounts,
    answer::{
        Amount, Currency, Details, Expanded, Fees, Impact, Metadata, Route as RouteAnswer,
        RouteLeg, Tolerance, Tolerances, Usd,
    },
    code::{Code, Refused},
    fees,
    fill::Priced,
    intent::Side,
    market_data::Case,
    usd::{DOLLAR, Worth},
};
use crate::{
    format,
    request::{Operation, TradeType, quoted::joint_router},
};

/// Basis points that a swap may lose before it needs `overridePriceImpact`.
const MOST_IMPACT: u64 = 1_500;
/// The solver's own legs.
const SOLVER: &str = "relay";

/// What the texts are made of.
pub struct Breakdown<'a, 'm> {
    pub case: &'a Case<'m>,
    pub amounts: &'a Amounts,
    pub own: OwnCost,
}

/// What the user's own transactions cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCost {
    pub work: u64,
    /// Of the native currency, besides the work: for bytes, for new accounts.
    pub besides: U256,
}

/// So much of a currency; below zero where a cost is a gain.
pub type Part<'m> = (Side<'m>, Worth, I256);

/// What may be lost of a whole, in units of the side's currency.
pub struct Loss<'a, 'm> {
    pub side: &'a Side<'m>,
    pub worth: Worth,
    pub lost: U256,
    pub of: U256,
}

/// Costs and gains in millionths of a dollar; the parts add up to the total.
#[derive(Default)]
pub struct Impacts {
    pub input: U256,
    pub total: I256,
    pub swap: I256,
    pub execution: I256,
    pub relay: I256,
    pub app: I256,
    /// [`Impacts::total`] without any fee.
    pub bare: I256,
}

impl Impacts {
    /// In dollars, and in percent of what goes in.
    pub fn shown(&self, usd: I256) -> Impact {
        Impact {
            usd: format::usd(usd),
            percent: format::percent(usd, self.input),
        }
    }

    pub fn expanded(&self) -> Expanded {
        let part = |usd| Usd {
            usd: format::usd_short(usd),
        };
        Expanded {
            swap: part(self.swap),
            execution: part(self.execution),
            relay: part(self.relay),
            app: part(self.app),
        }
    }
}

pub fn signed(amount: U256) -> I256 {
    I256::try_from(amount).unwrap_or(I256::MAX)
}

fn micro(worth: Worth, amount: U256) -> U256 {
    format::micro(worth.usd(amount).unwrap_or_default())
}

pub fn micro_signed(worth: Worth, amount: I256) -> I256 {
    let micro = signed(micro(worth, amount.unsigned_abs()));
    if amount.is_negative() { -micro } else { micro }
}

impl<'a, 'm> Breakdown<'a, 'm> {
    /// With what the user's own transactions cost.
    pub fn of(priced: &'a Priced<'m>, own: OwnCost) -> Self {
        Self {
            case: &priced.case,
            amounts: &priced.amounts,
            own,
        }
    }

    /// `fees`.
    pub fn fees(&self) -> Fees {
        let (native, worth, units) = self.gas();
        let gas = self.relayer_gas();
        let service = self.service();
        Fees {
            gas: fee(&native, worth, units),
            relayer: self.fee(gas.saturating_add(service)),
            relayer_gas: self.fee(gas),
            relayer_service: self.fee(service),
            app: self.fee(self.app()),
            subsidized: self.fee(I256::ZERO),
        }
    }

    /// What the user's own transactions cost, in the origin's native currency.
    pub fn gas(&self) -> Part<'m> {
        let origin = &self.case.intent.origin;
        let native = Side {
            currency: origin.network.native().unwrap_or(origin.currency),
            ..origin.clone()
        };
        let work = self.case.market.own_rate.of(self.own.work);
        let units = work.saturating_add(self.own.besides);
        (native, self.case.market.origin_native, signed(units))
    }

    /// `amount` of the deposited currency.
    pub fn paid(&self, amount: I256) -> Part<'m> {
        (self.case.route.paid.clone(), self.case.market.paid, amount)
    }

    pub fn relayer_gas(&self) -> I256 {
        signed(self.amounts.sum.gas)
    }

    pub fn service(&self) -> I256 {
        let sum = &self.amounts.sum;
        let own = signed(sum.flat.saturating_add(sum.relay));
        own.saturating_add(self.amounts.swap_cost)
    }

    pub fn app(&self) -> I256 {
        signed(self.amounts.sum.app)
    }

    fn fee(&self, amount: I256) -> Amount {
        fee(&self.case.route.paid, self.case.market.paid, amount)
    }

    pub fn impacts(&self) -> Impacts {
        let (sum, paid) = (&self.amounts.sum, self.case.market.paid);
        let input = micro(self.case.market.input, self.amounts.input);
        let output = micro(self.case.market.output, self.amounts.output);
        let total = signed(output).saturating_sub(signed(input));
        let own = self.case.intent.own;
        let flat = if own {
            U256::ZERO
        } else {
            format::micro(fees::flat().saturating_add(self.case.market.deal.settlement))
        };
        let execution = -signed(micro(paid, sum.gas).saturating_add(flat));
        let relay = -signed(micro(paid, sum.relay));
        let app = -signed(micro(paid, sum.app));
        let relayer = micro_signed(paid, signed(sum.gas).saturating_add(self.service()));
        Impacts {
            input,
            total,
            swap: total - execution - relay - app,
            execution,
            relay,
            app,
            bare: total.saturating_add(relayer) - app,
        }
    }

    /// Refuses what is not worth doing.
    pub fn check(&self) -> Result<(), Refused> {
        let (intent, impacts) = (&self.case.intent, self.impacts());
        let usd = self.case.market.input.usd(self.amounts.input);
        let dust = usd.is_none_or(|usd| usd < DOLLAR / U256::from(20));
        let swap = intent.operation == Operation::Swap && intent.calls.is_empty();
        if intent.same_chain() && swap && dust {
            let what = "amount: a swap on one chain needs $0.05";
            return Err(Refused::new(Code::AmountTooLow, what));
        }
        let swaps = self.amounts.swap_in.is_some() || self.amounts.swap_out.is_some();
        let lost = impacts.swap.is_negative() && swaps;
        let most = impacts.input.saturating_mul(U256::from(MOST_IMPACT));
        let most = most / U256::from(BASIS_POINTS);
        if lost && impacts.swap.unsigned_abs() > most && !intent.override_price_impact {
            let what = "amount: the swap loses more than 15 % against the market";
            return Err(Refused::new(Code::SwapImpactTooHigh, what));
        }
        Ok(())
    }

    /// `details`; a price has fewer of them.
    pub fn details(&self, whole: bool) -> Details {
        let (intent, amounts, market) = (&self.case.intent, self.amounts, &self.case.market);
        let impacts = self.impacts();
        let input = amount(&intent.origin, market.input, amounts.input, amounts.input);
        let output = self.output();
        let paid = amounts.sum.paid;
        let decimals = |side: &Side<'_>| side.currency.decimals;
        Details {
            operation: operation(intent.operation).to_owned(),
            sender: intent.user.to_string(),
            recipient: intent.recipient.to_string(),
            rate: format::rate(
                (amounts.input, decimals(&intent.origin)),
                (amounts.output, decimals(&intent.destination)),
            ),
            refund_currency: amount(&self.case.route.paid, market.paid, paid, paid),
            total_impact: impacts.shown(impacts.total),
            swap_impact: impacts.shown(impacts.bare),
            expanded_price_impact: whole.then(|| impacts.expanded()),
            slippage_tolerance: self.tolerances(),
            time_estimate: self.seconds(),
            valid_until: None,
            user_balance: market.balance.to_string(),
            is_fixed_rate: whole.then_some(false),
            route: whole.then(|| self.legs(&input, &output)),
            currency_in: input,
            currency_out: output,
        }
    }

    /// See [`Intent::seconds_for`](super::intent::Intent::seconds_for).
    pub fn seconds(&self) -> u64 {
        let (paid, units) = (&self.case.route.paid, self.amounts.sum.paid);
        self.case.intent.seconds_for(paid, units)
    }

    fn output(&self) -> Amount {
        let (amounts, market) = (self.amounts, &self.case.market);
        let side = &self.case.intent.destination;
        amount(side, market.output, amounts.output, amounts.minimum)
    }

    /// What may be lost, on the side where it would be: the origin's, the destination's.
    pub fn losses(&self) -> [Loss<'_, 'm>; 2] {
        let (intent, amounts, market) = (&self.case.intent, self.amounts, &self.case.market);
        let output = |lost: U256| Loss {
            side: &intent.destination,
            worth: market.output,
            lost,
            of: amounts.output,
        };
        let lost = amounts.output.saturating_sub(amounts.minimum);
        let start = match &amounts.swap_in {
            None => output(U256::ZERO),
            Some((offer, limit)) if intent.trade_type == TradeType::ExactInput => {
                let (side, worth) = match intent.own {
                    true => (&intent.destination, market.output),
                    false => (&self.case.route.paid, market.paid),
                };
                Loss {
                    side,
                    worth,
                    lost: offer.output.saturating_sub(*limit),
                    of: offer.output,
                }
            }
            Some((offer, limit)) => Loss {
                side: &intent.origin,
                worth: market.input,
                lost: limit.saturating_sub(offer.input),
                of: offer.input,
            },
        };
        match intent.own {
            true if lost.is_zero() => [start, output(U256::ZERO)],
            true => [output(lost), output(U256::ZERO)],
            false => [start, output(lost)],
        }
    }

    fn tolerances(&self) -> Tolerances {
        let [origin, destination] = self.losses().map(|loss| Tolerance {
            usd: format::usd(signed(micro(loss.worth, loss.lost))),
            value: loss.lost.to_string(),
            percent: format::percent_cut(loss.lost, loss.of),
        });
        Tolerances {
            origin,
            destination,
        }
    }

    /// Both sides; as one, the origin's, where they are on one chain.
    fn legs(&self, input: &Amount, output: &Amount) -> RouteAnswer {
        let (amounts, market, route) = (self.amounts, &self.case.market, &self.case.route);
        let leg = |from: Amount, to: Amount, router: &str| RouteLeg {
            input_currency: from,
            output_currency: to,
            router: router.to_owned(),
        };
        let source = amounts
            .swap_in
            .as_ref()
            .map_or(SOLVER, |(offer, _)| offer.source);
        let target = amounts
            .swap_out
            .as_ref()
            .map_or(SOLVER, |offer| offer.source);
        let sum = &amounts.sum;
        let paid = amount(&route.paid, market.paid, sum.paid, sum.paid);
        if self.case.intent.same_chain() {
            let router = match self.case.intent.own {
                true => source,
                false => joint_router([input, &paid], [source, target]),
            };
            return RouteAnswer {
                origin: leg(input.clone(), output.clone(), router),
                destination: None,
            };
        }
        let given = amount(&route.given, market.given, sum.given, sum.given);
        RouteAnswer {
            origin: leg(input.clone(), paid, source),
            destination: Some(leg(given, output.clone(), target)),
        }
    }
}

/// As `details.operation` spells it.
pub fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Bridge => "bridge",
        Operation::Swap => "swap",
        Operation::Send => "send",
        Operation::Wrap => "wrap",
        Operation::Unwrap => "unwrap",
    }
}

pub fn amount(side: &Side<'_>, worth: Worth, amount: U256, minimum: U256) -> Amount {
    Amount {
        amount: amount.to_string(),
        amount_formatted: format::units(amount, side.currency.decimals),
        amount_usd: format::usd(signed(micro(worth, amount))),
        minimum_amount: minimum.to_string(),
        currency: currency(side),
    }
}

pub fn fee(side: &Side<'_>, worth: Worth, amount: I256) -> Amount {
    Amount {
        amount: amount.to_string(),
        amount_formatted: format::signed_units(amount, side.currency.decimals),
        amount_usd: format::usd_fee(micro_signed(worth, amount)),
        minimum_amount: amount.to_string(),
        currency: currency(side),
    }
}

fn currency(side: &Side<'_>) -> Currency {
    let currency = side.currency;
    let address = side.spec.family.currency(&currency.address).ok();
    let native = address.is_some_and(|address| {
        let side = Side {
            address,
            ..side.clone()
        };
        side.is_native()
    });
    Currency {
        chain_id: side.network.chain_id,
        address: currency.address.clone(),
        symbol: currency.symbol.clone(),
        name: currency.name.clone(),
        decimals: currency.decimals,
        metadata: Metadata {
            logo_uri: currency.logo_uri.clone().unwrap_or_default(),
            verified: true,
            is_native: native,
        },
    }
}
