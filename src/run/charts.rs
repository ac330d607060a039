//! Charts and trends, put together: the sampler of prices, the count of what is bought, and the routes' state.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{notify::Task, parts::Trading, pricing};
use crate::{
    api::intents::{State, charts},
    chains::{Chains, Opened},
    chart::{Sampler, Trends},
};

/// Opens the state of the chart routes, with its background tasks. `client` asks HTTP services for prices and follows
/// no redirects.
pub fn open(
    trading: &Trading,
    chains: &Chains,
    state: &Arc<State>,
    client: &reqwest::Client,
    shutdown: &CancellationToken,
) -> anyhow::Result<(Arc<charts::State>, [Task; 2])> {
    let head_calls = |name: &str| {
        let opened = chains.get(name)?.chain.as_ref().ok();
        opened.map(Opened::head_calls)
    };
    let prices = Arc::new(pricing::feeds(trading, head_calls, client)?);
    let sampler = Sampler::new(state.market.clone(), prices, &state.requests);
    let sampling = sampler.run(state.clock, shutdown.clone());
    let trends = Arc::new(Trends::new(state.market.clone(), &state.requests));
    let following = trends.clone().run(state.clock, shutdown.clone());
    let tasks: [Task; 2] = [
        ("prices over time".into(), Box::pin(sampling)),
        ("trends".into(), Box::pin(following)),
    ];
    Ok((Arc::new(charts::State::over(state, trends)), tasks))
}
