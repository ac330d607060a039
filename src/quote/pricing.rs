//! The price of an intent that the solver would take on.

use vm::trade::Fee;

use super::{
    admission::{Burden, admit, drained},
    amounts::{Amounts, Pricing},
    breakdown::{Breakdown, OwnCost},
    code::{Code, Refused},
    context::Context,
    fee_on_transfer,
    fill::{self, Fill, Priced, fill},
    intent::Intent,
    market_data,
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
    let (amounts, fill, fee) = settled(context, &pricing).await?;
    let priced = Priced {
        case,
        amounts,
        fill,
        fee,
    };
    futures::try_join!(
        fee_on_transfer::check(context, &priced),
        admit(context, &priced.case, Burden::of(&priced, key))
    )?;
    Breakdown::of(&priced, OwnCost::default()).check()?;
    Ok(priced)
}

/// Amounts and fill that agree on the fill's fee: priced by the usual work, simulated with the real payment, and
/// priced again with what that took.
async fn settled(
    context: &Context,
    pricing: &Pricing<'_, '_>,
) -> Result<(Amounts, Fill, Fee), Refused> {
    let (case, intent) = (pricing.case, &pricing.case.intent);
    let providers = &context.chain(&intent.destination)?.providers;
    let mut fee = Fee {
        work: fill::usual(providers, intent, None),
        rate: case.market.destination_rate,
        ..Fee::default()
    };
    let mut amounts = match pricing.amounts(fee).await {
        // The usual work may be dearer than what this fill takes.
        Err(refused) if refused.code == Code::AmountTooLow => {
            pricing.amounts(Fee::default()).await?
        }
        amounts => amounts?,
    };
    let mut promised = fill(context, case, &amounts).await?;
    if !intent.own {
        enough(pricing, &amounts)?;
        fee = simulate::taken(context, intent, &promised, fee).await?;
        simulate::limited(providers, intent, &amounts, fee.work)?;
        amounts = pricing.amounts(fee).await?;
        promised = fill(context, case, &amounts).await?;
    }
    enough(pricing, &amounts)?;
    Ok((amounts, promised, fee))
}

fn enough(pricing: &Pricing<'_, '_>, amounts: &Amounts) -> Result<(), Refused> {
    if amounts.sum.given > pricing.case.market.available {
        let given = &pricing.case.route.given;
        return Err(drained(given.currency, given));
    }
    Ok(())
}
