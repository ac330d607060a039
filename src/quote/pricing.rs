//! The price of an intent that the solver would take on.

use alloy::primitives::U256;

use super::{
    admission::{Burden, admit, drained},
    amounts::{Amounts, Pricing},
    breakdown::Breakdown,
    code::{Code, Refused},
    context::Context,
    fee_on_transfer,
    fill::{self, Fill, Priced, fill},
    intent::Intent,
    market_data::{self, FillGas},
    route::Route,
    simulate,
    swaps::Search,
};

/// Amounts, and the fill that was simulated with them; refused where the solver cannot or may not pay.
pub async fn price<'m>(
    context: &Context,
    intent: Intent<'m>,
    key: Option<&str>,
) -> Result<Priced<'m>, Refused> {
    let route = Route::of(&intent)?;
    let case = market_data::read(context, intent, route).await?;
    if case.market.available.is_zero() {
        return Err(drained(case.route.given.currency, &case.route.given));
    }
    let pricing = Pricing {
        case: &case,
        swaps: Search::new(&context.deps.swaps),
    };
    let (amounts, fill, fill_gas) = settled(context, &pricing).await?;
    let priced = Priced {
        case,
        amounts,
        fill,
        fill_gas,
    };
    futures::try_join!(
        fee_on_transfer::check(context, &priced),
        admit(context, &priced.case, Burden::of(&priced, key))
    )?;
    Breakdown::of(&priced, U256::ZERO).check()?;
    Ok(priced)
}

/// Amounts and fill that agree on the gas: priced by the table, simulated with the real payment, and
/// priced again with what that took.
async fn settled(
    context: &Context,
    pricing: &Pricing<'_, '_>,
) -> Result<(Amounts, Fill, FillGas), Refused> {
    let (case, intent) = (pricing.case, &pricing.case.intent);
    let mut gas = FillGas {
        units: fill::table(intent, None),
        data: U256::ZERO,
    };
    let mut amounts = match pricing.amounts(gas).await {
        // The table may be dearer than the chain.
        Err(refused) if refused.code == Code::AmountTooLow => {
            pricing.amounts(FillGas::default()).await?
        }
        amounts => amounts?,
    };
    let mut promised = fill(context, case, &amounts)?;
    if !intent.own {
        enough(pricing, &amounts)?;
        gas = simulate::taken(context, intent, &promised, gas).await?;
        simulate::limited(intent, &amounts, gas.units)?;
        amounts = pricing.amounts(gas).await?;
        promised = fill(context, case, &amounts)?;
    }
    enough(pricing, &amounts)?;
    Ok((amounts, promised, gas))
}

fn enough(pricing: &Pricing<'_, '_>, amounts: &Amounts) -> Result<(), Refused> {
    if amounts.sum.given > pricing.case.market.available {
        let given = &pricing.case.route.given;
        return Err(drained(given.currency, given));
    }
    Ok(())
}
