//! Whether the fill would work on the destination, and what it takes.

use alloy::primitives::B256;
use vm::{
    Address,
    trade::{self, Draft, Fee, FillTerms, Providers, Revert, TradingProvider, Unfit},
};

use super::{
    amounts::Amounts,
    code::{Code, Refused},
    context::Context,
    fill::{self, Due, Fill, proxy, router},
    intent::Intent,
    pricing_chain::PricingChain,
};

/// What the fill costs at the rate of `usual`. Where no node says it, a plain payment costs what is `usual`, unless its
/// chain charges for more than work: nobody knows how much.
pub async fn taken(
    context: &Context,
    intent: &Intent<'_>,
    fill: &Fill,
    usual: Fee,
) -> Result<Fee, Refused> {
    let chain = context.chain(&intent.destination)?;
    let plain = fill.calls.is_empty() && !chain.providers.limits.besides;
    match simulated(chain, intent, fill).await {
        Err(refused) if plain && refused.code == Code::RpcHttpError => Ok(usual),
        taken => Ok(Fee {
            rate: usual.rate,
            ..taken?
        }),
    }
}

/// What the fill costs as it would be sent, by agreement of providers; refused when it would revert
/// or no node would take it.
async fn simulated(chain: &PricingChain, intent: &Intent<'_>, fill: &Fill) -> Result<Fee, Refused> {
    let payments = fill.payments.iter().map(Due::payout).collect::<Vec<_>>();
    let router = router(&intent.destination)?;
    let proxy = proxy(&intent.destination)?;
    let trade::Fill { draft, spender, .. } = chain.steps()?.fill(&FillTerms {
        solver: &chain.account,
        router: router.as_ref(),
        proxy: proxy.as_ref(),
        payments: &payments,
        calls: &fill.calls,
        authorizations: &intent.authorizations,
        order: B256::repeat_byte(0xee),
    })?;
    if let Some(spender) = spender {
        ready(chain, &spender, fill).await?;
    }
    if let Err(unfit) = chain.providers.wallet.admit(&draft).await? {
        return Err(refused(&unfit));
    }
    let fee = chain.providers.fee(&draft).await?;
    match fee {
        Ok(fee) => Ok(fee),
        Err(revert) => Err(reverted(chain, &draft, &revert).await),
    }
}

/// Why the chain would not take the fill.
fn refused(unfit: &Unfit) -> Refused {
    match unfit {
        Unfit::Currency(why) => {
            let what = format!("destinationCurrency: {why}");
            Refused::new(Code::UnsupportedCurrency, what)
        }
        unfit => {
            let what = format!("txs, authorizationList: {unfit}");
            Refused::new(Code::InvalidExtraTxs, what)
        }
    }
}

/// Refused until the solver lets `spender` take what the fill pays: without that the simulation would speak of the
/// order's calls.
async fn ready(chain: &PricingChain, spender: &Address, fill: &Fill) -> Result<(), Refused> {
    for due in &fill.payments {
        let providers = &chain.providers;
        let approved = providers.approved(&chain.account, spender, &due.currency);
        if approved.await? < due.amount {
            let what = "the solver does not make calls with this currency yet";
            return Err(Refused::new(Code::ServiceUnavailable, what));
        }
    }
    Ok(())
}

async fn reverted(chain: &PricingChain, draft: &Draft, revert: &Revert) -> Refused {
    let ask = |provider: TradingProvider| async move { provider.scanner.head().await };
    let head = chain.providers.failover.first(ask).await.ok();
    Refused::reverted(draft, revert, head.map(|block| block.number))
}

/// Code of others may take what the caller and the operator allow, besides what is usual for a transaction and its
/// payments. Where a fill runs none (it makes no calls, and no account of the chain runs code when it is paid), nothing
/// is limited: there `usual` is no upper bound, and the operator's limit of a transaction is all that counts.
pub fn limited(
    providers: &Providers,
    intent: &Intent<'_>,
    amounts: &Amounts,
    work: u64,
) -> Result<(), Refused> {
    if intent.calls.is_empty() && providers.contracts.is_none() {
        return Ok(());
    }
    let allowed = fill::usual(providers, intent, Some(amounts));
    let most = providers.limits.calls_work;
    let calls = fill::usual_calls(providers, intent);
    let around = fill::usual(providers, intent, None).saturating_sub(calls);
    // The code of a recipient counts, too.
    if work > around.saturating_add(most) {
        let what = format!(
            "txs, recipient: the destination transaction takes {work} units of work, their code may take {most}"
        );
        return Err(Refused::new(Code::DestinationTxFailed, what));
    }
    if intent.calls_work.is_some() && work > allowed {
        let what = format!(
            "txsGasLimit, gasLimitForDepositSpecifiedTxs: the destination transaction takes {work} units of work"
        );
        return Err(Refused::new(Code::DestinationTxFailed, what));
    }
    Ok(())
}
