//! Routes about the process itself: liveness, readiness, metrics. The composition root supplies the readiness check.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use hyper::{Method, StatusCode, header::HeaderValue};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    About, Access, ApiError, Docs, Handler, Query, Request, Response, Route, Shape,
    error::Described,
};

const EXPOSITION: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The state of these routes.
pub struct System {
    /// The image tag (`IMAGE_TAG`).
    pub version: Option<String>,
    pub readiness: ReadinessCheck,
    /// Renders the metrics in Prometheus' text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Checks everything that an attestation needs; quick, without side effects.
pub type ReadinessCheck = Arc<dyn Fn() -> BoxFuture<'static, Readiness> + Send + Sync>;

/// Whether the daemon can attest now: `ready` is true when the hub and every served chain are ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Readiness {
    pub ready: bool,
    /// The reason when it is not a single chain's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub chains: Vec<ChainReadiness>,
}

impl Readiness {
    /// Ready when all `chains` are ready.
    pub fn of(chains: Vec<ChainReadiness>) -> Self {
        Self {
            ready: chains.iter().all(|chain| chain.ready),
            reason: None,
            chains,
        }
    }
}

/// The readiness of one chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChainReadiness {
    pub id: String,
    pub ready: bool,
    /// The reason, without secrets (no provider URL).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What an operator should change although the chain works, e.g. a single provider in production.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The answer of a live process.
#[derive(Serialize, ToSchema)]
struct Alive {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

/// The answer of a live process on the integrator's surface.
#[derive(Serialize, ToSchema)]
#[schema(as = AliveWithReport)]
struct Reported {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    report: Option<Report>,
}

/// What is known of the process.
#[derive(Serialize, ToSchema)]
#[schema(as = LivenessReport)]
struct Report {
    version: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct Lives {
    /// `1` or `true` adds the version.
    with_report: Option<String>,
}

/// For the integrator's surface: its clients look for the version in a report.
pub static LIVES: [Route<System>; 2] = [reported("/lives"), reported("/lives/v1")];

const fn reported(path: &'static str) -> Route<System> {
    live(path, Shape::of::<Reported>(), |system, request| {
        async move { lives_with_report(&system, &request) }.boxed()
    })
}

const fn alive(path: &'static str) -> Route<System> {
    live(path, Shape::of::<Alive>(), |system, request| {
        async move { lives(&system, &request) }.boxed()
    })
}

const fn live(path: &'static str, answer: Shape, handler: Handler<System>) -> Route<System> {
    Route {
        method: Method::GET,
        path,
        access: Access::Open,
        handler,
        docs: Some(Docs {
            summary: "Check liveness",
            text: "For load balancers and clients that choose a server: a 200 says that requests are answered, not \
                   that every chain can be read.",
            group: "Service",
            query: Query::of::<Lives>(),
            body: None,
            answer,
            also: &[],
        }),
    }
}

/// For the oracle's surface: the path that the network's clients know.
pub static ALIVE: [Route<System>; 1] = [alive("/lives/v1")];

/// The general part of the operator listener's API description.
pub const ABOUT: About = About {
    title: "intentd operations",
    text: "What operators watch: whether the daemon is alive, whether it is ready, and, under `/metrics`, its \
           metrics in Prometheus' text format.",
    groups: &[("Service", "Whether the service itself answers.")],
};

/// For the operator's listener only: these routes reveal what the daemon reads and how well.
pub static OPERATIONS: [Route<System>; 3] = [
    alive("/lives/v1"),
    Route {
        method: Method::GET,
        path: "/readyz",
        access: Access::Open,
        handler: |system, _| async move { ready(&system).await }.boxed(),
        docs: Some(Docs {
            summary: "Check readiness",
            text: "Whether the hub and each chain can be attested now, and why one cannot. 503 when one cannot. Signs nothing and \
                  changes nothing.",
            group: "Service",
            query: Query::NONE,
            body: None,
            answer: Shape::of::<Readiness>(),
            also: &[Described::of::<Readiness>(
                "503",
                "A chain cannot be attested now",
                false,
            )],
        }),
    },
    Route {
        method: Method::GET,
        path: "/metrics",
        access: Access::Open,
        handler: |system, _| async move { Ok(metrics(&system)) }.boxed(),
        docs: None,
    },
];

fn lives(system: &System, request: &Request) -> Result<Response, ApiError> {
    Response::json(&Alive {
        status: "ok",
        version: version(system, request)?,
    })
}

fn lives_with_report(system: &System, request: &Request) -> Result<Response, ApiError> {
    let version = version(system, request)?;
    Response::json(&Reported {
        status: "ok",
        version: version.clone(),
        report: version.map(|version| Report { version }),
    })
}

/// `None` where nobody asks for it.
fn version(system: &System, request: &Request) -> Result<Option<String>, ApiError> {
    let asked: Lives = request.query()?;
    let report = matches!(asked.with_report.as_deref(), Some("1" | "true"));
    // The network's clients know the text `undefined` for a build without a tag.
    let version = || system.version.clone().unwrap_or_else(|| "undefined".into());
    Ok(report.then(version))
}

async fn ready(system: &System) -> Result<Response, ApiError> {
    let readiness = (system.readiness)().await;
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    Response::json_with(status, &readiness)
}

fn metrics(system: &System) -> Response {
    Response::of(StatusCode::OK, EXPOSITION, (system.metrics)().into())
}
