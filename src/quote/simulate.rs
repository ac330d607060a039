//! Whether the fill would work on the destination, and what it takes.

use alloy::primitives::B256;
use vm::{
    Address,
    trade::{Call, FillTerms, Intended, Revert, TradingProvider},
};

use super::{
    amounts::Amounts,
    code::{Code, Refused},
    context::Context,
    fill::{self, Due, Fill, proxy, router},
    intent::Intent,
    market_data::FillGas,
    pricing_chain::PricingChain,
};

/// What the fill takes. Where no node says, a plain payment takes what the table knows, unless its
/// chain charges for bytes, too: that is in no table.
pub async fn taken(
    context: &Context,
    intent: &Intent<'_>,
    fill: &Fill,
    known: FillGas,
) -> Result<FillGas, Refused> {
    let venue = context.venue(&intent.destination)?;
    let plain = fill.calls.is_empty() && venue.providers.limits().data_fees.is_none();
    match simulated(context, intent, fill).await {
        Err(refused) if plain && refused.code == Code::RpcHttpError => Ok(known),
        taken => taken,
    }
}

/// What the fill takes as it would be sent, by agreement of providers; refused when it would revert
/// or no node would take it.
async fn simulated(
    context: &Context,
    intent: &Intent<'_>,
    fill: &Fill,
) -> Result<FillGas, Refused> {
    let venue = context.venue(&intent.destination)?;
    let payments = fill.payments.iter().map(Due::payout).collect::<Vec<_>>();
    let router = router(&intent.destination)?;
    let proxy = proxy(&intent.destination)?;
    let call = venue.steps()?.fill(&FillTerms {
        solver: &context.solver,
        router: router.as_ref(),
        proxy: proxy.as_ref(),
        payments: &payments,
        calls: &fill.calls,
        order: B256::repeat_byte(0xee),
    })?;
    if let Some(proxy) = proxy.filter(|proxy| *proxy == call.to) {
        ready(context, venue, &proxy, fill).await?;
    }
    let intended = &Intended {
        authorizations: &intent.authorizations,
        ..Intended::free(&call)
    };
    if let Err(unfit) = venue.providers.admit(intended).await? {
        let what = format!("txs, authorizationList: {unfit}");
        return Err(Refused::new(Code::InvalidExtraTxs, what));
    }
    match venue.providers.cost(intended).await? {
        Ok(cost) => Ok(FillGas {
            units: cost.gas,
            data: cost.data,
        }),
        Err(revert) => Err(reverted(venue, &call, revert).await),
    }
}

/// Refused until the solver has allowed the proxy to take what the fill pays: without that the
/// simulation would speak of the order's calls.
async fn ready(
    context: &Context,
    venue: &PricingChain,
    proxy: &Address,
    fill: &Fill,
) -> Result<(), Refused> {
    for due in &fill.payments {
        let providers = &venue.providers;
        let allowed = providers.allowance(&context.solver, proxy, &due.currency);
        if allowed.await? < due.amount {
            let what = "the solver does not make calls with this currency yet";
            return Err(Refused::new(Code::ServiceUnavailable, what));
        }
    }
    Ok(())
}

async fn reverted(venue: &PricingChain, call: &Call, revert: Revert) -> Refused {
    let revert = match venue.steps() {
        Ok(steps) if revert.reason.is_empty() => steps.explain(&revert.data),
        _ => revert,
    };
    let ask = |trade: TradingProvider| async move { trade.scanner.head().await };
    let head = venue.ask(ask).await.ok();
    Refused::reverted(call, &revert, head.map(|block| block.number))
}

/// The calls may use what the caller allowed, besides what a transaction and its payments take.
pub fn limited(intent: &Intent<'_>, amounts: &Amounts, gas: u64) -> Result<(), Refused> {
    let allowed = fill::table(intent, Some(amounts));
    let most = intent.destination.network.limits.calls_gas;
    let around = fill::table(intent, None).saturating_sub(fill::calls(intent));
    // Also a recipient's own code.
    if gas > around.saturating_add(most) {
        let what = format!(
            "txs, recipient: the destination transaction takes {gas} gas, their code may take {most}"
        );
        return Err(Refused::new(Code::DestinationTxFailed, what));
    }
    if intent.calls_gas.is_some() && gas > allowed {
        let what = format!(
            "txsGasLimit, gasLimitForDepositSpecifiedTxs: the destination transaction takes {gas} gas"
        );
        return Err(Refused::new(Code::DestinationTxFailed, what));
    }
    Ok(())
}
