//! Fees of a request: as quoted, and as they turned out. Costs are negative; an amount is without sign.

use alloy::primitives::U256;
use serde::Serialize;
use utoipa::ToSchema;
use vm::protocol::BASIS_POINTS;

use super::CaseView;
use crate::{
    format,
    request::{
        Execution,
        quoted::{Amount, Currency, Details},
        status::Status,
        summary,
    },
};

/// One part of the fees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordFee)]
pub struct Fee {
    /// Negative for a cost.
    pub usd: String,
    /// Smallest units of the fees' currency, without sign.
    pub amount: String,
    pub amount_formatted: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordFeeParts)]
pub struct Parts {
    pub swap: Fee,
    pub execution: Fee,
    pub platform: Fee,
    pub app: Fee,
    pub sponsored: Fee,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordFees)]
pub struct Fees {
    pub quoted: Parts,
    /// Left out until the request has ended. Filled: what the fill's gas cost is in `execution`, at the price
    /// of then, or else at the quote's; all else is as quoted. Refunded: `execution` is what the refund
    /// kept of the deposit, and nothing else was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Parts>,
    pub currency: Currency,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordAppFee)]
pub struct AppFee {
    pub recipient: String,
    pub bps: String,
    pub amount: String,
    pub amount_formatted: String,
    /// Only of what is owed: at the price when the deposit was taken, or else at the quote's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount_usd: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordAppFees)]
pub struct AppFees {
    pub quoted: Vec<AppFee>,
    /// Empty until the request is filled: only then are they owed.
    pub actual: Vec<AppFee>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
}

/// The service's own share of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordPlatformFee)]
pub struct PlatformFee {
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_id: Option<String>,
    relay_fee_bps: u64,
    /// Always 0: the share is not divided.
    integrator_fee_bps: u64,
    total_fee_bps: u64,
    relay_fee: Amount,
    integrator_fee: Amount,
    total_platform_fee: Amount,
    integrator_fee_recipient: Option<String>,
}

/// The parts in millionths of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Impacts {
    pub swap: i128,
    pub execution: i128,
    pub platform: i128,
    pub app: i128,
}

impl CaseView<'_> {
    /// As quoted.
    pub(super) fn impacts(&self) -> Option<Impacts> {
        let expanded = self.details()?.expanded_price_impact.as_ref()?;
        let micro = |text: &str| format::micro_of(text).unwrap_or_default();
        Some(Impacts {
            swap: micro(&expanded.swap.usd),
            execution: micro(&expanded.execution.usd),
            platform: micro(&expanded.relay.usd),
            app: micro(&expanded.app.usd),
        })
    }

    /// As they turned out, once the request is filled or its deposit was given back.
    pub(super) fn actual_impacts(&self) -> Option<Impacts> {
        let quoted = self.impacts()?;
        match self.verdict.status {
            Status::Success => {}
            Status::Refund => return self.kept(),
            _ => return None,
        }
        let gas = self.gas().zip(self.quoted.fees.as_ref());
        let execution = gas.map_or(quoted.execution, |(actual, fees)| {
            quoted.execution + fees.relayer_gas.micro() - actual
        });
        Some(Impacts {
            execution,
            ..quoted
        })
    }

    /// What a refund left of the deposit with the solver.
    fn kept(&self) -> Option<Impacts> {
        let (deposit, refund) = (self.deposit()?, self.refunded()?);
        let deposited = (&*deposit.network, &*deposit.currency);
        if !self.is_quoted(&refund.currency, deposited) {
            return None;
        }
        let kept = deposit.amount.saturating_sub(refund.units());
        Some(Impacts {
            swap: 0,
            execution: -refund.worth(kept),
            platform: 0,
            app: 0,
        })
    }

    /// What the fill's gas cost, millionths of a dollar: at the price of then, or else at the quote's.
    fn gas(&self) -> Option<i128> {
        let request = self.case.request;
        if request.execution == Execution::User {
            return None;
        }
        let (fill, place) = summary::filled(self.case.facts)?;
        let tx_details = self.tx_details(&fill.network, &fill.transaction)?;
        if !tx_details.is_of(place) {
            return None;
        }
        if let Some(then) = tx_details.fee_micro() {
            return Some(then);
        }
        let native = |amount: &&Amount| {
            let currency = &amount.currency;
            currency.metadata.is_native && currency.chain_id == request.destination.chain
        };
        let amounts = self.amounts()?.into_iter().filter(native);
        // The greatest has the most digits of the price.
        let priced = amounts.max_by_key(|amount| amount.micro())?;
        (priced.micro() > 0).then(|| priced.worth(tx_details.fee))
    }

    /// Everything that the quote priced.
    fn amounts(&self) -> Option<Vec<&Amount>> {
        let details = self.details()?;
        let mut all = vec![
            &details.currency_in,
            &details.currency_out,
            &details.refund_currency,
        ];
        all.extend(self.quoted.fees.as_ref().map(|fees| &fees.gas));
        if let Some(route) = &details.route {
            all.extend([&route.origin.input_currency, &route.origin.output_currency]);
            let there = route.destination.iter();
            all.extend(there.flat_map(|leg| [&leg.input_currency, &leg.output_currency]));
        }
        Some(all)
    }

    pub(super) fn fees(&self) -> Option<Fees> {
        let details = self.details()?;
        Some(Fees {
            quoted: parts(details, self.impacts()?),
            actual: self.actual_impacts().map(|actual| parts(details, actual)),
            currency: details.refund_currency.currency.clone(),
        })
    }

    pub(super) fn app_fees(&self) -> AppFees {
        let priced = self.quoted.fees.as_ref().map(|fees| &fees.app);
        let fee = |fee: &crate::request::quoted::AppFee, paid: bool| {
            let units = U256::from_str_radix(&fee.amount, 10).unwrap_or_default();
            let decimals = priced.map_or(0, |priced| priced.currency.decimals);
            let then = || priced.and_then(|priced| self.then(priced, units));
            let quoted = || priced.map(|priced| priced.with(units).amount_usd);
            let usd = then().or_else(quoted);
            AppFee {
                recipient: fee.recipient.clone(),
                bps: fee.bps.clone(),
                amount: fee.amount.clone(),
                amount_formatted: format::units(units, decimals),
                amount_usd: usd.filter(|_| paid),
            }
        };
        let all = |paid| {
            self.quoted
                .app_fees
                .iter()
                .map(|one| fee(one, paid))
                .collect()
        };
        AppFees {
            quoted: all(false),
            actual: match self.verdict.status {
                Status::Success => all(true),
                _ => Vec::new(),
            },
            currency: priced.map(|priced| priced.currency.clone()),
        }
    }

    /// What units of the deposited currency were worth when the deposit was taken, in dollars.
    fn then(&self, priced: &Amount, units: U256) -> Option<String> {
        let deposit = self.deposit()?;
        let deposited = (&*deposit.network, &*deposit.currency);
        if !self.is_quoted(&priced.currency, deposited) {
            return None;
        }
        let tx_details = self.tx_details(&deposit.network, &deposit.transaction)?;
        let known = tx_details.is_of(&deposit.place).then_some(tx_details)?;
        let micro = known.worth(&deposit.currency, units)?;
        Some(format::usd(format::from_micro(micro)))
    }

    /// As quoted.
    pub(super) fn platform_fee(&self) -> Option<PlatformFee> {
        let (paid, impacts) = (&self.details()?.refund_currency, self.impacts()?);
        let own = paid.bought(impacts.platform.unsigned_abs());
        let scaled = own.saturating_mul(U256::from(BASIS_POINTS));
        let half = paid.units() / U256::from(2);
        let bps = scaled.saturating_add(half).checked_div(paid.units());
        let bps = bps
            .and_then(|bps| u64::try_from(bps).ok())
            .unwrap_or_default();
        let fee = paid.with(own);
        Some(PlatformFee {
            bucket: None,
            rule_id: None,
            relay_fee_bps: bps,
            integrator_fee_bps: 0,
            total_fee_bps: bps,
            relay_fee: fee.clone(),
            integrator_fee: paid.with(U256::ZERO),
            total_platform_fee: fee,
            integrator_fee_recipient: None,
        })
    }
}

fn parts(details: &Details, impacts: Impacts) -> Parts {
    let paid = &details.refund_currency;
    let fee = |micro: i128| {
        let units = paid.bought(micro.unsigned_abs());
        Fee {
            usd: format::usd_short(format::from_micro(micro)),
            amount: units.to_string(),
            amount_formatted: format::units(units, paid.currency.decimals),
        }
    };
    Parts {
        swap: fee(impacts.swap),
        execution: fee(impacts.execution),
        platform: fee(impacts.platform),
        app: fee(impacts.app),
        sponsored: fee(0),
    }
}
