//! The amounts of a request, from what the user gives to what the recipient gets.

use alloy::primitives::{I256, U256};

use super::{
    code::{Code, Refused},
    fees::{self, Fault, Level, Sum, Terms},
    fill::FillGas,
    intent::{Intent, Side},
    offers::{Search, Wanted},
    reads::Reads,
    route::Route,
    swap::SwapOffer,
    usd::{Round, Worth},
};
use crate::{
    market::Class,
    request::{Operation, TradeType},
};

/// Basis points that an exchange may fetch less than the price sources say before its limit is theirs:
/// of what is traded a lot, and of the rest.
const IMPACT: u16 = 500;
const THIN_IMPACT: u16 = 1_500;

/// See the module.
#[derive(Clone, Debug)]
pub struct Figures {
    /// What the user is expected to spend of the origin's currency, and at most.
    pub input: U256,
    pub input_limit: U256,
    /// The fees, and what is deposited and given; all of it goes through where there are none.
    pub sum: Sum,
    /// What the recipient gets, and at least.
    pub output: U256,
    pub minimum: U256,
    /// The user's exchange, and what it must fetch at least (or may cost, of an exact output).
    pub swap_in: Option<(SwapOffer, U256)>,
    /// The exchange in the solver's fill.
    pub swap_out: Option<SwapOffer>,
    /// What the fill's exchange loses against the market, in units of what is deposited.
    pub swap_cost: I256,
}

/// What the amounts depend on.
pub struct Pricing<'a, 'm> {
    pub intent: &'a Intent<'m>,
    pub route: &'a Route<'m>,
    pub reads: &'a Reads,
    pub offers: Search<'a>,
}

fn too_much() -> Refused {
    Refused::new(
        Code::InsufficientLiquidity,
        "amount: more than anybody has of it",
    )
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::TooLow => Self::new(Code::AmountTooLow, "amount: does not cover the fees"),
            Fault::TooMuch => too_much(),
        }
    }
}

impl Pricing<'_, '_> {
    /// The amounts of a request whose destination transaction takes `gas`.
    pub async fn figures(&self, gas: FillGas) -> Result<Figures, Refused> {
        let figures = if self.intent.own {
            self.own().await?
        } else {
            self.solved(gas).await?
        };
        // Differences of amounts must fit a signed number.
        let amounts = [figures.input_limit, figures.sum.paid, figures.output];
        if amounts.iter().any(|amount| amount.bit(255)) {
            return Err(too_much());
        }
        Ok(figures)
    }

    /// The slippage of an amount worth `usd`.
    fn slippage(&self, usd: U256) -> u16 {
        let given = self.intent.slippage;
        given.unwrap_or_else(|| fees::automatic(usd))
    }

    fn terms(&self, gas: FillGas) -> Result<Terms<'_>, Refused> {
        let (intent, route, reads) = (self.intent, self.route, self.reads);
        let wei = reads.destination_fees.cost(gas);
        let deal = &reads.deal;
        let gas = wei.and_then(|wei| deal.gas.given().usd(wei));
        let (paid, given) = (route.paid.currency, route.given.currency);
        let turning = matches!(intent.operation, Operation::Wrap | Operation::Unwrap);
        Ok(Terms {
            paid: deal.paid.taken(),
            given: deal.given.given(),
            level: Level::of((paid, &deal.paid.price), (given, &deal.given.price)),
            gas: gas.ok_or_else(too_much)?,
            flat: fees::flat().saturating_add(deal.settlement),
            bps: if turning { 0 } else { fees::bps(paid, given) },
            app: &intent.app_fees,
        })
    }

    async fn solved(&self, gas: FillGas) -> Result<Figures, Refused> {
        let terms = self.terms(gas)?;
        let mut figures = if self.intent.trade_type == TradeType::ExactInput {
            self.forward(&terms).await?
        } else {
            self.backward(&terms).await?
        };
        if self.route.swap_out {
            let worth = |one: Option<U256>| one.ok_or_else(too_much);
            let before = worth(self.reads.given.usd(figures.sum.given))?;
            let after = worth(self.reads.output.usd(figures.output))?;
            let lost = worth(self.reads.paid.units(before.abs_diff(after)))?;
            let lost = I256::try_from(lost).map_err(|_| too_much())?;
            figures.swap_cost = if before < after { -lost } else { lost };
        }
        Ok(figures)
    }

    async fn forward(&self, terms: &Terms<'_>) -> Result<Figures, Refused> {
        let amount = self.intent.amount;
        let swap_in = match self.route.swap_in {
            false => None,
            true => {
                let offer = self.offers.best(self.inward(), amount, true).await?;
                let usd = self.reads.paid.usd(offer.output).ok_or_else(too_much)?;
                let ends = (&self.intent.origin, &self.route.paid);
                let worths = (self.reads.input, self.reads.paid);
                let least = self.least(&offer, self.slippage(usd), ends, worths);
                Some((offer, least))
            }
        };
        let sum = terms.forward(swap_in.as_ref().map_or(amount, |(_, least)| *least))?;
        let swap_out = match self.route.swap_out {
            false => None,
            true => Some(self.offers.best(self.outward(), sum.given, true).await?),
        };
        let output = swap_out.as_ref().map_or(sum.given, |offer| offer.output);
        let usd = self.reads.output.usd(output).ok_or_else(too_much)?;
        // Calls are written for one amount.
        let exact = swap_out.is_none() && !self.intent.calls.is_empty();
        let slippage = if exact { 0 } else { self.slippage(usd) };
        Ok(Figures {
            input: amount,
            input_limit: amount,
            sum,
            output,
            minimum: match &swap_out {
                None => fees::minimum(output, slippage),
                Some(offer) => self.least_out(offer, slippage),
            },
            swap_in,
            swap_out,
            swap_cost: I256::ZERO,
        })
    }

    async fn backward(&self, terms: &Terms<'_>) -> Result<Figures, Refused> {
        let output = self.intent.amount;
        let exact = self.intent.trade_type == TradeType::ExactOutput;
        let usd = self.reads.output.usd(output).ok_or_else(too_much)?;
        let slippage = self.slippage(usd);
        let minimum = fees::minimum(output, if exact { 0 } else { slippage });
        let (swap_out, given) = match self.route.swap_out {
            false => (None, output),
            true => {
                let (offer, given) = self.covering(slippage, minimum).await?;
                (Some(offer), given)
            }
        };
        let sum = terms.backward(given)?;
        let swap_in = match self.route.swap_in {
            false => None,
            true => {
                let offer = self.offers.best(self.inward(), sum.paid, false).await?;
                let ends = (&self.intent.origin, &self.route.paid);
                let worths = (self.reads.input, self.reads.paid);
                let most = self.most(&offer, slippage, ends, worths);
                Some((offer, most.ok_or_else(too_much)?))
            }
        };
        let spent = swap_in.as_ref().map(|(offer, most)| (offer.input, *most));
        let (input, input_limit) = spent.unwrap_or((sum.paid, sum.paid));
        Ok(Figures {
            input,
            input_limit,
            sum,
            output,
            minimum,
            swap_in,
            swap_out,
            swap_cost: I256::ZERO,
        })
    }

    /// An exchange that covers the output, and what is given for it: all of it is exchanged, so that
    /// the surplus is the recipient's. Where that is to be the solver's, exactly the output is bought.
    async fn covering(&self, slippage: u16, minimum: U256) -> Result<(SwapOffer, U256), Refused> {
        let exact = self.intent.trade_type == TradeType::ExactOutput;
        let wanted = self.outward();
        let found = self.offers.best(wanted, self.intent.amount, false).await?;
        let margin = if exact { slippage } else { 0 };
        let given = fees::maximum(found.input, margin).ok_or_else(too_much)?;
        if exact && self.intent.true_exact_output {
            return Ok((found, given));
        }
        let offer = self.offers.best(wanted, given, true).await?;
        if offer.output < minimum {
            let what = "no swap gives the wanted output within the slippage";
            return Err(Refused::new(Code::NoInternalSwapRoutesFound, what));
        }
        Ok((offer, given))
    }

    /// The user's own transaction: no fees but gas.
    async fn own(&self) -> Result<Figures, Refused> {
        let amount = self.intent.amount;
        if self.intent.operation == Operation::Send {
            return Ok(through(amount, amount));
        }
        let wanted = Wanted {
            intent: self.intent,
            input: &self.intent.origin,
            output: &self.intent.destination,
            origin: true,
        };
        let turning = self.intent.operation != Operation::Swap;
        let slippage = |usd: Option<U256>| {
            let usd = usd.ok_or_else(too_much)?;
            Ok::<_, Refused>(if turning { 0 } else { self.slippage(usd) })
        };
        if self.intent.trade_type == TradeType::ExactOutput {
            let offer = self.offers.best(wanted, amount, false).await?;
            let bps = slippage(self.reads.input.usd(offer.input))?;
            let ends = (&self.intent.origin, &self.intent.destination);
            let worths = (self.reads.input, self.reads.output);
            let most = self.most(&offer, bps, ends, worths);
            let most = most.ok_or_else(too_much)?;
            return Ok(Figures {
                input_limit: most,
                swap_in: Some((offer.clone(), most)),
                ..through(offer.input, amount)
            });
        }
        let input = match self.intent.trade_type {
            TradeType::ExactInput => amount,
            _ => self.offers.best(wanted, amount, false).await?.input,
        };
        let offer = self.offers.best(wanted, input, true).await?;
        let bps = slippage(self.reads.output.usd(offer.output))?;
        let ends = (&self.intent.origin, &self.intent.destination);
        let worths = (self.reads.input, self.reads.output);
        let least = self.least(&offer, bps, ends, worths);
        Ok(Figures {
            minimum: least,
            swap_in: Some((offer.clone(), least)),
            ..through(input, offer.output)
        })
    }

    /// The least that an exchange must fetch. What one provider offered is not the only measure: where
    /// that is poor, the price sources are.
    fn least(
        &self,
        offer: &SwapOffer,
        slippage: u16,
        (from, to): (&Side<'_>, &Side<'_>),
        (input, output): (Worth, Worth),
    ) -> U256 {
        let least = fees::minimum(offer.output, slippage);
        let market = input.exchange(output, offer.input, Round::Down);
        let Some(market) = market.filter(|_| !self.intent.override_price_impact) else {
            return least;
        };
        let floor = fees::minimum(market, slippage.max(impact(from, to)));
        least.max(floor.min(offer.output))
    }

    /// The most that an exchange may cost, in the same way.
    fn most(
        &self,
        offer: &SwapOffer,
        slippage: u16,
        (from, to): (&Side<'_>, &Side<'_>),
        (input, output): (Worth, Worth),
    ) -> Option<U256> {
        let most = fees::maximum(offer.input, slippage)?;
        let market = output.exchange(input, offer.output, Round::Up);
        let Some(market) = market.filter(|_| !self.intent.override_price_impact) else {
            return Some(most);
        };
        let ceiling = fees::maximum(market, slippage.max(impact(from, to)))?;
        Some(most.min(ceiling.max(offer.input)))
    }

    /// The same of the exchange in the solver's fill.
    fn least_out(&self, offer: &SwapOffer, slippage: u16) -> U256 {
        let ends = (&self.route.given, &self.intent.destination);
        self.least(offer, slippage, ends, (self.reads.given, self.reads.output))
    }

    fn inward(&self) -> Wanted<'_, '_> {
        Wanted {
            intent: self.intent,
            input: &self.intent.origin,
            output: &self.route.paid,
            origin: true,
        }
    }

    fn outward(&self) -> Wanted<'_, '_> {
        Wanted {
            intent: self.intent,
            input: &self.route.given,
            output: &self.intent.destination,
            origin: false,
        }
    }
}

fn impact(from: &Side<'_>, to: &Side<'_>) -> u16 {
    let known = |side: &Side<'_>| side.currency.class != Class::Other;
    match known(from) && known(to) {
        true => IMPACT,
        false => THIN_IMPACT,
    }
}

/// Nothing is taken on the way.
fn through(input: U256, output: U256) -> Figures {
    Figures {
        input,
        input_limit: input,
        sum: Sum {
            paid: input,
            gas: U256::ZERO,
            flat: U256::ZERO,
            relay: U256::ZERO,
            app: U256::ZERO,
            given: output,
        },
        output,
        minimum: output,
        swap_in: None,
        swap_out: None,
        swap_cost: I256::ZERO,
    }
}
