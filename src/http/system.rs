//! Routes about the process itself: alive, ready, metrics. What "ready" means is told by the
//! composition root.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use hyper::{Method, StatusCode, header::HeaderValue};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    About, Access, ApiError, Docs, Query, Request, Response, Route, Shape, error::Described,
};

const EXPOSITION: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// What the routes of this file answer from.
pub struct System {
    /// `IMAGE_TAG`.
    pub version: Option<String>,
    pub readiness: ReadinessCheck,
    /// Prometheus' text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Asks everything that an attestation needs; quick, and free of side effects.
pub type ReadinessCheck = Arc<dyn Fn() -> BoxFuture<'static, Readiness> + Send + Sync>;

/// Can it attest now? `ready` is true when the hub and every served chain can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Readiness {
    pub ready: bool,
    /// Why not, where it is no single chain's fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub chains: Vec<ChainReadiness>,
}

impl Readiness {
    /// Ready when all `chains` are.
    pub fn of(chains: Vec<ChainReadiness>) -> Self {
        Self {
            ready: chains.iter().all(|chain| chain.ready),
            reason: None,
            chains,
        }
    }
}

/// One chain's part in [`Readiness`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChainReadiness {
    pub id: String,
    pub ready: bool,
    /// Why not, without anything secret (no URL of a provider).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What an operator should change although it works, e.g. a single provider in production.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The process answers.
#[derive(Serialize, ToSchema)]
struct Alive {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
struct Lives {
    /// `1` or `true` adds the version.
    with_report: Option<String>,
}

/// For surfaces that tell nothing of the inside.
pub static LIVES: [Route<System>; 2] = [alive("/lives"), alive("/lives/v1")];

const fn alive(path: &'static str) -> Route<System> {
    Route {
        method: Method::GET,
        path,
        access: Access::Open,
        handler: |system, request| async move { lives(&system, &request) }.boxed(),
        docs: Some(Docs {
            summary: "Check liveness",
            text: "For load balancers and clients that choose a server: a 200 says that requests are answered, not \
                   that every chain can be read.",
            group: "Service",
            query: Query::of::<Lives>(),
            body: None,
            answer: Shape::of::<Alive>(),
            also: &[],
        }),
    }
}

/// For the oracle's surface: the path that clients of the network know.
pub static ALIVE: [Route<System>; 1] = [alive("/lives/v1")];

/// What the description of the operator's listener says of the whole.
pub const ABOUT: About = About {
    title: "intentd operations",
    text: "What operators watch: whether the daemon is alive, whether it is ready, and, under `/metrics`, its \
           metrics in Prometheus' text format.",
    groups: &[("Service", "Whether the service itself answers.")],
};

/// For the operator's listener only: who sees these knows what the daemon reads and how well.
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
    let asked: Lives = request.query()?;
    let report = matches!(asked.with_report.as_deref(), Some("1" | "true"));
    // Clients of the network know the text `undefined` for a build without a tag.
    let version = || system.version.clone().unwrap_or_else(|| "undefined".into());
    Response::json(&Alive {
        status: "ok",
        version: report.then(version),
    })
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
