//! Fees and details of several orders as one answer has them: what is of one currency is added up, what is not
//! counts in the first order's currency, by the prices of the quotes. Dollars are the sums of the orders' dollars.
//! Pure.

use alloy::primitives::{I256, U256};

use super::{
    answer::{Amount, Details, Fees, Tolerance, Tolerances},
    breakdown::{Breakdown, Impacts, Loss, Part, amount, fee, micro_signed, operation, signed},
    intent::Side,
    usd::{Round, Worth},
};
use crate::{format, request::Operation};

/// Several orders, added up.
pub struct Joint<'a, 'm> {
    first: &'a Breakdown<'a, 'm>,
    all: &'a [Breakdown<'a, 'm>],
}

/// What several parts come to.
struct Total<'m> {
    side: Side<'m>,
    worth: Worth,
    /// In units of that side's currency.
    amount: I256,
    /// Millionths of a dollar.
    usd: I256,
}

impl Total<'_> {
    fn add(&mut self, (side, worth, amount): Part<'_>) {
        let units = self.units(&side, worth, amount);
        self.amount = self.amount.saturating_add(units);
        self.usd = self.usd.saturating_add(micro_signed(worth, amount));
    }

    /// In units of the total's currency: of costs rather one too many.
    fn units(&self, side: &Side<'_>, worth: Worth, amount: I256) -> I256 {
        let here = side.network.chain_id == self.side.network.chain_id;
        if here && side.currency.address == self.side.currency.address {
            return amount;
        }
        let (gain, units) = (amount.is_negative(), amount.unsigned_abs());
        let round = if gain { Round::Down } else { Round::Up };
        let units = worth.exchange(self.worth, units, round);
        let units = signed(units.unwrap_or(U256::MAX));
        if gain { -units } else { units }
    }

    /// As `fees` has it.
    fn fee(&self) -> Amount {
        Amount {
            amount_usd: format::usd_fee(self.usd),
            ..fee(&self.side, self.worth, self.amount)
        }
    }

    /// As `details` has it.
    fn shown(&self, minimum: I256) -> Amount {
        let (units, minimum) = (self.amount.unsigned_abs(), minimum.unsigned_abs());
        Amount {
            amount_usd: format::usd(self.usd),
            ..amount(&self.side, self.worth, units, minimum)
        }
    }

    fn coins(&self) -> (U256, u8) {
        (self.amount.unsigned_abs(), self.side.currency.decimals)
    }
}

impl<'a, 'm> Joint<'a, 'm> {
    /// Of orders for one currency and recipient; `None` of no order.
    pub fn of(all: &'a [Breakdown<'a, 'm>]) -> Option<Self> {
        let first = all.first()?;
        Some(Self { first, all })
    }

    fn sum(&self, part: impl Fn(&Breakdown<'a, 'm>) -> Part<'m>) -> Total<'m> {
        let (side, worth, _) = part(self.first);
        let mut total = Total {
            side,
            worth,
            amount: I256::ZERO,
            usd: I256::ZERO,
        };
        self.all.iter().for_each(|one| total.add(part(one)));
        total
    }

    /// `fees`.
    pub fn fees(&self) -> Fees {
        let gas = self.sum(|one| one.paid(one.relayer_gas()));
        let service = self.sum(|one| one.paid(one.service()));
        let relayer = self.sum(|one| {
            let gas = one.relayer_gas();
            one.paid(gas.saturating_add(one.service()))
        });
        let relayer = Total {
            amount: gas.amount.saturating_add(service.amount),
            ..relayer
        };
        Fees {
            gas: self.sum(|one| one.gas()).fee(),
            relayer: relayer.fee(),
            relayer_gas: gas.fee(),
            relayer_service: service.fee(),
            app: self.sum(|one| one.paid(one.app())).fee(),
            subsidized: self.sum(|one| one.paid(I256::ZERO)).fee(),
        }
    }

    /// `details`; each order's route is its own.
    pub fn details(&self) -> Details {
        let (intent, impacts) = (&self.first.case.intent, self.impacts());
        let output = |units: fn(&Breakdown<'_, '_>) -> U256| {
            self.sum(move |one| {
                let side = one.case.intent.destination.clone();
                (side, one.case.market.output, signed(units(one)))
            })
        };
        let input = self.sum(|one| {
            let units = signed(one.amounts.input);
            (one.case.intent.origin.clone(), one.case.market.input, units)
        });
        let paid = self.sum(|one| one.paid(signed(one.amounts.sum.paid)));
        let least = output(|one| one.amounts.minimum).amount;
        let output = output(|one| one.amounts.output);
        let seconds = self.all.iter().map(Breakdown::seconds).max();
        Details {
            operation: self.operation().to_owned(),
            sender: intent.user.to_string(),
            recipient: intent.recipient.to_string(),
            rate: format::rate(input.coins(), output.coins()),
            currency_in: input.shown(input.amount),
            currency_out: output.shown(least),
            refund_currency: paid.shown(paid.amount),
            total_impact: impacts.shown(impacts.total),
            swap_impact: impacts.shown(impacts.bare),
            expanded_price_impact: Some(impacts.expanded()),
            slippage_tolerance: Tolerances {
                origin: self.tolerance(true),
                destination: self.tolerance(false),
            },
            time_estimate: seconds.unwrap_or_default(),
            valid_until: None,
            user_balance: self.first.case.market.balance.to_string(),
            is_fixed_rate: Some(false),
            route: None,
        }
    }

    /// What they have in common.
    fn operation(&self) -> &'static str {
        let first = self.first.case.intent.operation;
        let mut all = self.all.iter();
        operation(match all.all(|one| one.case.intent.operation == first) {
            true => first,
            false => Operation::Swap,
        })
    }

    /// On the origins, or else at the destination.
    fn tolerance(&self, origins: bool) -> Tolerance {
        let sum = |units: fn(&Loss<'_, '_>) -> U256| {
            self.sum(move |one| {
                let [origin, destination] = one.losses();
                let loss = if origins { origin } else { destination };
                (loss.side.clone(), loss.worth, signed(units(&loss)))
            })
        };
        let (lost, of) = (sum(|loss| loss.lost), sum(|loss| loss.of));
        let (units, _) = lost.coins();
        Tolerance {
            usd: format::usd(lost.usd),
            value: units.to_string(),
            percent: format::percent_cut(units, of.coins().0),
        }
    }

    fn impacts(&self) -> Impacts {
        let parts = self.all.iter().map(Breakdown::impacts);
        parts.fold(Impacts::default(), |sum, one| Impacts {
            input: sum.input.saturating_add(one.input),
            total: sum.total.saturating_add(one.total),
            swap: sum.swap.saturating_add(one.swap),
            execution: sum.execution.saturating_add(one.execution),
            relay: sum.relay.saturating_add(one.relay),
            app: sum.app.saturating_add(one.app),
            bare: sum.bare.saturating_add(one.bare),
        })
    }
}
