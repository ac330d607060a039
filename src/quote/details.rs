//! Fees and details of an answer: amounts as texts, and the impacts, which add up in millionths of a
//! dollar (guide: protocol 11.9). Pure.

mod joint;

use alloy::primitives::{I256, U256};

use super::{
    answer::{
        Amount, Currency, Details, Expanded, Fees, Impact, Metadata, Route as RouteAnswer,
        RouteLeg, Tolerance, Tolerances, Usd,
    },
    code::{Code, Refused},
    fees,
    figures::Figures,
    intent::{Intent, Side, is_native},
    reads::Reads,
    route::Route,
    show,
    usd::{DOLLAR, Worth},
};
use crate::request::{Operation, TradeType};

pub use joint::Joint;

/// Hundredths of a percent that a swap may lose before it needs `overridePriceImpact`.
const MOST_IMPACT: u64 = 1_500;
/// The solver's own legs.
const SOLVER: &str = "relay";

/// What the texts are made of.
pub struct Sheet<'a, 'm> {
    pub intent: &'a Intent<'m>,
    pub route: &'a Route<'m>,
    pub reads: &'a Reads,
    pub figures: &'a Figures,
    /// Gas units of the user's own transactions.
    pub gas: U256,
}

/// So much of a currency; below zero where a cost is a gain.
type Part<'m> = (Side<'m>, Worth, I256);

/// What may be lost of a whole, in units of the side's currency.
struct Loss<'a, 'm> {
    side: &'a Side<'m>,
    worth: Worth,
    lost: U256,
    of: U256,
}

/// Costs and gains in millionths of a dollar; the parts add up to the total.
#[derive(Default)]
struct Impacts {
    input: U256,
    total: I256,
    swap: I256,
    execution: I256,
    relay: I256,
    app: I256,
    /// [`Impacts::total`] without any fee.
    bare: I256,
}

impl Impacts {
    /// In dollars, and in percent of what goes in.
    fn shown(&self, usd: I256) -> Impact {
        Impact {
            usd: show::usd(usd),
            percent: show::percent(usd, self.input),
        }
    }

    fn expanded(&self) -> Expanded {
        let part = |usd| Usd {
            usd: show::usd_short(usd),
        };
        Expanded {
            swap: part(self.swap),
            execution: part(self.execution),
            relay: part(self.relay),
            app: part(self.app),
        }
    }
}

fn signed(amount: U256) -> I256 {
    I256::try_from(amount).unwrap_or(I256::MAX)
}

fn micro(worth: Worth, amount: U256) -> U256 {
    show::micro(worth.usd(amount).unwrap_or_default())
}

fn micro_signed(worth: Worth, amount: I256) -> I256 {
    let micro = signed(micro(worth, amount.unsigned_abs()));
    if amount.is_negative() { -micro } else { micro }
}

impl<'m> Sheet<'_, 'm> {
    /// `fees`.
    pub fn fees(&self) -> Fees {
        let (native, worth, wei) = self.gas();
        let gas = self.relayer_gas();
        let service = self.service();
        Fees {
            gas: fee(&native, worth, wei),
            relayer: self.fee(gas.saturating_add(service)),
            relayer_gas: self.fee(gas),
            relayer_service: self.fee(service),
            app: self.fee(self.app()),
            subsidized: self.fee(I256::ZERO),
        }
    }

    /// What the user's own transactions cost, in the origin's native currency.
    fn gas(&self) -> Part<'m> {
        let origin = &self.intent.origin;
        let native = Side {
            currency: origin.network.native().unwrap_or(origin.currency),
            ..origin.clone()
        };
        let wei = self.gas.saturating_mul(self.reads.origin_fees.price());
        (native, self.reads.origin_native, signed(wei))
    }

    /// So much of what is deposited.
    fn paid(&self, amount: I256) -> Part<'m> {
        (self.route.paid.clone(), self.reads.paid, amount)
    }

    fn relayer_gas(&self) -> I256 {
        signed(self.figures.sum.gas)
    }

    fn service(&self) -> I256 {
        let sum = &self.figures.sum;
        let own = signed(sum.flat.saturating_add(sum.relay));
        own.saturating_add(self.figures.swap_cost)
    }

    fn app(&self) -> I256 {
        signed(self.figures.sum.app)
    }

    fn fee(&self, amount: I256) -> Amount {
        fee(&self.route.paid, self.reads.paid, amount)
    }

    fn impacts(&self) -> Impacts {
        let (sum, paid) = (&self.figures.sum, self.reads.paid);
        let input = micro(self.reads.input, self.figures.input);
        let output = micro(self.reads.output, self.figures.output);
        let total = signed(output).saturating_sub(signed(input));
        let own = self.intent.own;
        let flat = if own {
            U256::ZERO
        } else {
            show::micro(fees::flat().saturating_add(self.reads.deal.settlement))
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
        let (intent, impacts) = (self.intent, self.impacts());
        let usd = self.reads.input.usd(self.figures.input);
        let dust = usd.is_none_or(|usd| usd < DOLLAR / U256::from(20));
        let swap = intent.operation == Operation::Swap && intent.calls.is_empty();
        if intent.same_chain() && swap && dust {
            let what = "amount: a swap on one chain needs $0.05";
            return Err(Refused::new(Code::AmountTooLow, what));
        }
        let swaps = self.figures.swap_in.is_some() || self.figures.swap_out.is_some();
        let lost = impacts.swap.is_negative() && swaps;
        let most = impacts.input.saturating_mul(U256::from(MOST_IMPACT)) / U256::from(10_000);
        if lost && impacts.swap.unsigned_abs() > most && !intent.override_price_impact {
            let what = "amount: the swap loses more than 15 % against the market";
            return Err(Refused::new(Code::SwapImpactTooHigh, what));
        }
        Ok(())
    }

    /// `details`; a price has fewer of them.
    pub fn details(&self, whole: bool) -> Details {
        let (intent, figures, reads) = (self.intent, self.figures, self.reads);
        let impacts = self.impacts();
        let input = amount(&intent.origin, reads.input, figures.input, figures.input);
        let output = self.output();
        let paid = figures.sum.paid;
        let decimals = |side: &Side<'_>| side.currency.decimals;
        Details {
            operation: operation(intent.operation).to_owned(),
            sender: intent.user.to_string(),
            recipient: intent.recipient.to_string(),
            rate: show::rate(
                (figures.input, decimals(&intent.origin)),
                (figures.output, decimals(&intent.destination)),
            ),
            refund_currency: amount(&self.route.paid, reads.paid, paid, paid),
            total_impact: impacts.shown(impacts.total),
            swap_impact: impacts.shown(impacts.bare),
            expanded_price_impact: whole.then(|| impacts.expanded()),
            slippage_tolerance: self.tolerances(),
            time_estimate: self.intent.seconds(),
            valid_until: None,
            user_balance: reads.balance.to_string(),
            is_fixed_rate: whole.then_some(false),
            route: whole.then(|| self.legs(&input, &output)),
            currency_in: input,
            currency_out: output,
        }
    }

    fn output(&self) -> Amount {
        let (figures, reads) = (self.figures, self.reads);
        let side = &self.intent.destination;
        amount(side, reads.output, figures.output, figures.minimum)
    }

    /// What may be lost, on the side where it would be: the origin's, the destination's.
    fn losses(&self) -> [Loss<'_, 'm>; 2] {
        let (intent, figures, reads) = (self.intent, self.figures, self.reads);
        let output = |lost: U256| Loss {
            side: &intent.destination,
            worth: reads.output,
            lost,
            of: figures.output,
        };
        let lost = figures.output.saturating_sub(figures.minimum);
        let start = match &figures.swap_in {
            None => output(U256::ZERO),
            Some((offer, limit)) if intent.trade_type == TradeType::ExactInput => {
                let (side, worth) = match intent.own {
                    true => (&intent.destination, reads.output),
                    false => (&self.route.paid, reads.paid),
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
                worth: reads.input,
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
            usd: show::usd(signed(micro(loss.worth, loss.lost))),
            value: loss.lost.to_string(),
            percent: show::percent_cut(loss.lost, loss.of),
        });
        Tolerances {
            origin,
            destination,
        }
    }

    fn legs(&self, input: &Amount, output: &Amount) -> RouteAnswer {
        let (figures, reads, route) = (self.figures, self.reads, self.route);
        let leg = |from: Amount, to: Amount, router: &str| RouteLeg {
            input_currency: from,
            output_currency: to,
            router: router.to_owned(),
        };
        let source = figures
            .swap_in
            .as_ref()
            .map_or(SOLVER, |(offer, _)| offer.source);
        if self.intent.own {
            return RouteAnswer {
                origin: leg(input.clone(), output.clone(), source),
                destination: None,
            };
        }
        let sum = &figures.sum;
        let paid = amount(&route.paid, reads.paid, sum.paid, sum.paid);
        let given = amount(&route.given, reads.given, sum.given, sum.given);
        let target = figures
            .swap_out
            .as_ref()
            .map_or(SOLVER, |offer| offer.source);
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

fn amount(side: &Side<'_>, worth: Worth, amount: U256, minimum: U256) -> Amount {
    Amount {
        amount: amount.to_string(),
        amount_formatted: show::units(amount, side.currency.decimals),
        amount_usd: show::usd(signed(micro(worth, amount))),
        minimum_amount: minimum.to_string(),
        currency: currency(side),
    }
}

fn fee(side: &Side<'_>, worth: Worth, amount: I256) -> Amount {
    Amount {
        amount: amount.to_string(),
        amount_formatted: show::signed_units(amount, side.currency.decimals),
        amount_usd: show::usd_fee(micro_signed(worth, amount)),
        minimum_amount: amount.to_string(),
        currency: currency(side),
    }
}

fn currency(side: &Side<'_>) -> Currency {
    let currency = side.currency;
    let address = side.spec.family.address(&currency.address).ok();
    let native = address.is_some_and(|address| {
        let side = Side {
            address,
            ..side.clone()
        };
        is_native(&side)
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
