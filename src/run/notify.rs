//! What goes out about requests: answers of the integrator API, sockets, webhooks.

use std::sync::Arc;

use futures::future::BoxFuture;
use hyper::header::HeaderName;
use tokio_util::sync::CancellationToken;

use super::{
    clock::unix_millis,
    keys::keys,
    listening::{self, Listening},
};
use crate::{
    api::intents::{
        ABOUT,
        access::Plans,
        error::ERRORS,
        retirement::{self, Retirement},
    },
    config::Config,
    http::{
        Gate, Limits, Router, Surface, any_origin, auth::RATE_LIMIT, forwarded::Proxies,
        surface::Finish,
    },
    store::{integrators::Integrators, listing::Listing, requests::Requests},
    stream::Fanout,
    webhook::{self, admin::AdminHandle, guard::Reach, post::HttpSender},
};

/// Who reaches the integrator API's routes: its limits, proxies and plans.
pub struct Front {
    pub limits: Limits,
    pub proxies: Proxies,
    pub plans: Plans,
}

impl Front {
    pub fn of(config: &Config, listening: &Listening) -> Self {
        Self {
            limits: listening.integrator,
            proxies: listening::proxies(config),
            plans: Plans::of(&listening::rates(&config.listen.rates)),
        }
    }
}

/// A background task with its name.
pub type Task = (String, BoxFuture<'static, ()>);

/// Builds what goes out about requests.
pub struct Notifier<'a> {
    pub requests: &'a Requests,
    pub integrators: &'a Integrators,
    pub shutdown: &'a CancellationToken,
}

impl Notifier<'_> {
    /// The surface of the integrator API.
    pub fn surface(&self, dates: Retirement, front: Front, router: Router) -> Surface {
        let exposed = ["deprecation", "sunset", "link", "retry-after"];
        let exposed = exposed.into_iter().chain(RATE_LIMIT);
        let keyless = front.plans.keyless.clone();
        let keys = keys(self.integrators, front.plans, unix_millis);
        Surface {
            lenient: true,
            limits: front.limits,
            proxies: front.proxies,
            gate: Gate::planned(Some(keys), Some(keyless))
                .or_bearer()
                .with_names(RATE_LIMIT),
            errors: ERRORS,
            finish: Some(finish(dates)),
            cors: Some(any_origin(exposed.map(HeaderName::from_static))),
            ..Surface::new("integrator", ABOUT, router)
        }
    }

    /// Sockets over the log of events.
    pub fn streams(&self, tasks: &mut Vec<Task>) -> Arc<Fanout> {
        let fanout = Fanout::new(self.requests.clone());
        let following = fanout.clone().run(self.shutdown.clone());
        tasks.push(("streams".into(), Box::pin(following)));
        let (integrators, shutdown) = (self.integrators.clone(), self.shutdown.clone());
        let watching = fanout.clone().watch(integrators, unix_millis, shutdown);
        tasks.push(("lost keys".into(), Box::pin(watching)));
        fanout
    }

    /// Webhooks over the log of events, and what the operator asks about them.
    pub fn webhooks(&self, reach: Reach, tasks: &mut Vec<Task>) -> anyhow::Result<AdminHandle> {
        if reach == Reach::Anywhere {
            tracing::warn!("WEBHOOK_ALLOW_PRIVATE: webhooks may go into private networks");
        }
        let (handle, worker) = webhook::open(webhook::WebhookContext {
            requests: self.requests.clone(),
            integrators: self.integrators.clone(),
            post: Arc::new(HttpSender::new(reach)?),
            reach,
            clock: Box::new(unix_millis),
            // Without randomness pauses have no jitter.
            random: || getrandom::u64().unwrap_or_default(),
        });
        let working = worker.run(self.shutdown.clone());
        tasks.push(("webhooks".into(), Box::pin(working)));
        Ok(handle)
    }

    /// Reads the requests of an older version into the listing, then waits for the end.
    pub fn listing(&self, listing: Listing) -> Task {
        let shutdown = self.shutdown.clone();
        let reading = async move {
            let made = shutdown.run_until_cancelled(listing.complete()).await;
            if let Some(Err(error)) = made {
                tracing::error!(%error, "requests cannot be listed until a restart");
            }
            shutdown.cancelled().await;
        };
        ("listing".into(), Box::pin(reading))
    }
}

/// Marks the answers of what is being retired.
fn finish(dates: Retirement) -> Finish {
    Arc::new(move |route, response| match route {
        retirement::PATH => dates.mark(response),
        _ => response,
    })
}
