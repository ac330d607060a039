//! The amounts of a request, from what the user gives to what the recipient gets.

use alloy::primitives::{I256, U256};
use vm::trade::{Fee, SwapOffer};

use super::{
    code::{Code, Refused},
    fees::{self, Fault, Sum, Terms, Valued},
    market_data::Case,
    swaps::{End, Search, Wanted},
    usd::Round,
};
use crate::{
    market::Class,
    request::{Operation, TradeType},
};

/// Basis points that an exchange may fetch less than the price sources say before its limit is theirs:
/// of what is traded a lot, and of the rest.
const IMPACT: u16 = 500;
const THIN_IMPACT: u16 = 1_500;

/// What the parties of a request give and get.
#[derive(Clone, Debug)]
pub struct Amounts {
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
    pub case: &'a Case<'m>,
    pub swaps: Search<'a>,
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

impl<'a, 'm> Pricing<'a, 'm> {
    /// The amounts where the fill costs `fee`.
    pub async fn amounts(&self, fee: Fee) -> Result<Amounts, Refused> {
        let amounts = match self.case.intent.own {
            true => self.own().await?,
            false => self.solved(fee).await?,
        };
        // Their differences must fit a signed number.
        let all = [amounts.input_limit, amounts.sum.paid, amounts.output];
        if all.iter().any(|amount| amount.bit(255)) {
            return Err(too_much());
        }
        Ok(amounts)
    }

    /// The slippage of an amount worth `usd`.
    fn slippage(&self, usd: Option<U256>) -> Result<u16, Refused> {
        let (usd, given) = (usd.ok_or_else(too_much)?, self.case.intent.slippage);
        Ok(given.unwrap_or_else(|| fees::automatic(usd)))
    }

    fn terms(&self, fee: Fee) -> Result<Terms<'_>, Refused> {
        let (route, deal) = (&self.case.route, &self.case.market.deal);
        let gas = deal.gas.given().usd(fee.total()).ok_or_else(too_much)?;
        let paid = Valued::new(route.paid.currency, deal.paid);
        let given = Valued::new(route.given.currency, deal.given);
        let terms = Terms::of(paid, given, gas, deal.settlement);
        Ok(Terms {
            app: &self.case.intent.app_fees,
            ..terms.for_operation(self.case.intent.operation)
        })
    }

    async fn solved(&self, fee: Fee) -> Result<Amounts, Refused> {
        let (terms, market) = (self.terms(fee)?, &self.case.market);
        let mut amounts = match self.case.intent.trade_type {
            TradeType::ExactInput => self.forward(&terms).await?,
            _ => self.backward(&terms).await?,
        };
        if self.case.route.swap_out {
            let worth = |one: Option<U256>| one.ok_or_else(too_much);
            let before = worth(market.given.usd(amounts.sum.given))?;
            let after = worth(market.output.usd(amounts.output))?;
            let lost = worth(market.paid.units(before.abs_diff(after)))?;
            let lost = I256::try_from(lost).map_err(|_| too_much())?;
            amounts.swap_cost = if before < after { -lost } else { lost };
        }
        Ok(amounts)
    }

    async fn forward(&self, terms: &Terms<'_>) -> Result<Amounts, Refused> {
        let Case {
            intent,
            route,
            market,
            ..
        } = self.case;
        let (amount, inward) = (intent.amount, self.inward());
        let swap_in = match route.swap_in {
            false => None,
            true => {
                let offer = self.swaps.best(inward, amount, true).await?;
                let slippage = self.slippage(market.paid.usd(offer.output))?;
                let least = least(inward, &offer, slippage);
                Some((offer, least))
            }
        };
        let sum = terms.forward(swap_in.as_ref().map_or(amount, |(_, least)| *least))?;
        let outward = self.outward();
        let swap_out = match route.swap_out {
            false => None,
            true => Some(self.swaps.best(outward, sum.given, true).await?),
        };
        let output = swap_out.as_ref().map_or(sum.given, |offer| offer.output);
        let slippage = self.slippage(market.output.usd(output))?;
        // Calls are written for one amount.
        let exact = swap_out.is_none() && !intent.calls.is_empty();
        let slippage = if exact { 0 } else { slippage };
        Ok(Amounts {
            input: amount,
            input_limit: amount,
            sum,
            output,
            minimum: match &swap_out {
                None => fees::minimum(output, slippage),
                Some(offer) => least(outward, offer, slippage),
            },
            swap_in,
            swap_out,
            swap_cost: I256::ZERO,
        })
    }

    async fn backward(&self, terms: &Terms<'_>) -> Result<Amounts, Refused> {
        let Case {
            intent,
            route,
            market,
            ..
        } = self.case;
        let (output, inward) = (intent.amount, self.inward());
        let exact = intent.trade_type == TradeType::ExactOutput;
        let slippage = self.slippage(market.output.usd(output))?;
        let minimum = fees::minimum(output, if exact { 0 } else { slippage });
        let (swap_out, given) = match route.swap_out {
            false => (None, output),
            true => {
                let (offer, given) = self.covering(slippage, minimum).await?;
                (Some(offer), given)
            }
        };
        let sum = terms.backward(given)?;
        let swap_in = match route.swap_in {
            false => None,
            true => {
                let offer = self.swaps.best(inward, sum.paid, false).await?;
                let most = most(inward, &offer, slippage).ok_or_else(too_much)?;
                Some((offer, most))
            }
        };
        let spent = swap_in.as_ref().map(|(offer, most)| (offer.input, *most));
        let (input, input_limit) = spent.unwrap_or((sum.paid, sum.paid));
        Ok(Amounts {
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
        let (intent, wanted) = (&self.case.intent, self.outward());
        let exact = intent.trade_type == TradeType::ExactOutput;
        let found = self.swaps.best(wanted, intent.amount, false).await?;
        let margin = if exact { slipping(wanted, slippage) } else { 0 };
        let given = fees::maximum(found.input, margin).ok_or_else(too_much)?;
        if exact && intent.true_exact_output {
            return Ok((found, given));
        }
        let offer = self.swaps.best(wanted, given, true).await?;
        if offer.output < minimum {
            let what = "no swap gives the wanted output within the slippage";
            return Err(Refused::new(Code::NoInternalSwapRoutesFound, what));
        }
        Ok((offer, given))
    }

    /// The user's own transaction: no fees but gas.
    async fn own(&self) -> Result<Amounts, Refused> {
        let (intent, market) = (&self.case.intent, &self.case.market);
        let amount = intent.amount;
        if intent.operation == Operation::Send {
            return Ok(through(amount, amount));
        }
        let from = End::new(&intent.origin, market.input);
        let wanted = self.wanted(from, End::new(&intent.destination, market.output), true);
        if intent.trade_type == TradeType::ExactOutput {
            let offer = self.swaps.best(wanted, amount, false).await?;
            let slippage = self.slippage(market.input.usd(offer.input))?;
            let most = most(wanted, &offer, slippage).ok_or_else(too_much)?;
            return Ok(Amounts {
                input_limit: most,
                swap_in: Some((offer.clone(), most)),
                ..through(offer.input, amount)
            });
        }
        let input = match intent.trade_type {
            TradeType::ExactInput => amount,
            _ => self.swaps.best(wanted, amount, false).await?.input,
        };
        let offer = self.swaps.best(wanted, input, true).await?;
        let slippage = self.slippage(market.output.usd(offer.output))?;
        let least = least(wanted, &offer, slippage);
        Ok(Amounts {
            minimum: least,
            swap_in: Some((offer.clone(), least)),
            ..through(input, offer.output)
        })
    }

    /// The user's exchange before a deposit.
    fn inward(&self) -> Wanted<'a, 'm> {
        let (case, market) = (self.case, &self.case.market);
        let from = End::new(&case.intent.origin, market.input);
        self.wanted(from, End::new(&case.route.paid, market.paid), true)
    }

    /// The exchange in the solver's fill.
    fn outward(&self) -> Wanted<'a, 'm> {
        let (case, market) = (self.case, &self.case.market);
        let to = End::new(&case.intent.destination, market.output);
        self.wanted(End::new(&case.route.given, market.given), to, false)
    }

    fn wanted(&self, from: End<'a, 'm>, to: End<'a, 'm>, origin: bool) -> Wanted<'a, 'm> {
        Wanted {
            intent: &self.case.intent,
            from,
            to,
            origin,
        }
    }
}

/// The least that an exchange must fetch. What one provider offered is not the only measure: where
/// that is poor, the price sources are.
fn least(wanted: Wanted<'_, '_>, offer: &SwapOffer, slippage: u16) -> U256 {
    let slippage = slipping(wanted, slippage);
    let least = fees::minimum(offer.output, slippage);
    let (from, to) = (wanted.from.worth, wanted.to.worth);
    let market = from.exchange(to, offer.input, Round::Down);
    let Some(market) = market.filter(|_| !wanted.intent.override_price_impact) else {
        return least;
    };
    let floor = fees::minimum(market, slippage.max(impact(wanted)));
    least.max(floor.min(offer.output))
}

/// The most that an exchange may cost, in the same way.
fn most(wanted: Wanted<'_, '_>, offer: &SwapOffer, slippage: u16) -> Option<U256> {
    let slippage = slipping(wanted, slippage);
    let most = fees::maximum(offer.input, slippage)?;
    let (from, to) = (wanted.from.worth, wanted.to.worth);
    let market = to.exchange(from, offer.output, Round::Up);
    let Some(market) = market.filter(|_| !wanted.intent.override_price_impact) else {
        return Some(most);
    };
    let ceiling = fees::maximum(market, slippage.max(impact(wanted)))?;
    Some(most.min(ceiling.max(offer.input)))
}

/// The slippage of an exchange where so much is allowed: nothing slips where the native currency is wrapped or
/// unwrapped.
fn slipping(wanted: Wanted<'_, '_>, allowed: u16) -> u16 {
    match wanted.from.side.wraps(wanted.to.side) {
        true => 0,
        false => allowed,
    }
}

fn impact(wanted: Wanted<'_, '_>) -> u16 {
    let known = |end: End<'_, '_>| end.side.currency.class != Class::Other;
    match known(wanted.from) && known(wanted.to) {
        true => IMPACT,
        false => THIN_IMPACT,
    }
}

/// Nothing is taken on the way.
fn through(input: U256, output: U256) -> Amounts {
    Amounts {
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
