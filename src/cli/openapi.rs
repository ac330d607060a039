//! `intentd openapi`: what a listener publishes under `/documentation/json`, without a daemon.

use clap::ValueEnum;

use crate::{
    api::{intents, oracle},
    http::{Router, openapi, plain, router::RouteError, system},
};

/// Whose description.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Listener {
    Integrator,
    Oracle,
    Operations,
}

/// Everything that the listener's routes say of themselves, as JSON.
pub fn description(listener: Listener) -> Result<String, RouteError> {
    let router = Router::default();
    let (router, about, errors) = match listener {
        Listener::Integrator => (
            router
                .describing(&system::LIVES)
                .describing(intents::ROUTES)
                .describing(&intents::events::ROUTES)
                .describing(&intents::charts::ROUTES),
            intents::ABOUT,
            intents::error::ERRORS,
        ),
        Listener::Oracle => (
            router.describing(&system::ALIVE).describing(oracle::ROUTES),
            oracle::ABOUT,
            oracle::ERRORS,
        ),
        Listener::Operations => (
            router.describing(&system::OPERATIONS),
            system::ABOUT,
            plain::PLAIN,
        ),
    };
    openapi::described(&router, about, errors)
}
