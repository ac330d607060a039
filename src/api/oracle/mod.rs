//! The oracle's routes: one file each, with its data types and a short handler. Nothing is judged
//! here: a handler turns a body into a claim, and an attestation into an answer.

mod answer;
mod chains;
pub mod codes;
mod deposits;
mod error;
mod fills;
mod initiated;
mod initiation;
mod order;
mod question;
mod recover;
mod refunds;
mod withdrawals;

use std::sync::Arc;

use futures::future::BoxFuture;
use hyper::Method;
use utoipa::ToSchema;

use crate::{
    attest::{Refusal, service::Oracle},
    chains::asking,
    http::{Access, ApiError, Docs, Flag, Handler, Query, Request, Response, Route, Shape},
};

pub use chains::Listed;
pub use error::ERRORS;

/// What the handlers answer from.
pub struct State {
    pub oracle: Oracle,
    /// Every configured chain in the order of the chains file.
    pub listed: Vec<Listed>,
    /// Labels of the keys that may use `force`.
    pub force: Vec<String>,
}

impl State {
    /// Whether a claim is forced; refused unless the caller's key may.
    fn forced(&self, wanted: Option<Flag>, request: &Request) -> Result<bool, Refusal> {
        let wanted = wanted.is_some_and(|flag| flag.0);
        let mut able = self.force.iter();
        if wanted
            && !able.any(|label| {
                request
                    .key
                    .as_ref()
                    .is_some_and(|key| key.as_str() == label)
            })
        {
            return Err(Refusal::ForceNotAllowed);
        }
        Ok(wanted)
    }
}

type Answer = BoxFuture<'static, Result<Response, ApiError>>;

/// What is read for a request is read in the place of its caller.
fn read_for<F>(request: Request, handler: impl FnOnce(Request) -> F) -> Answer
where
    F: Future<Output = Result<Response, ApiError>> + Send + 'static,
{
    let keyed = request.key.is_some();
    Box::pin(asking::by(keyed, handler(request)))
}

/// The oracle's table.
pub static ROUTES: &[Route<State>] = &[
    Route {
        method: Method::GET,
        path: "/chains/v1",
        access: Access::Protected,
        handler: |state, request| Box::pin(chains::list(state, request)),
        docs: Some(Docs {
            summary: "The configured chains, in their configured order",
            group: "Chains",
            query: Query::NONE,
            body: None,
            answer: Shape::of::<chains::Body>(),
            also: &[],
        }),
    },
    attestation::<deposits::Ask, deposits::Body>(
        "/attestations/depository-deposits/v1",
        "Attests the deposits of a transaction",
        |state, request| read_for(request, |request| deposits::attest(state, request)),
    ),
    attestation::<withdrawals::Ask, withdrawals::Body>(
        "/attestations/depository-withdrawals/v1",
        "Attests how a depository withdrawal ended",
        |state, request| read_for(request, |request| withdrawals::attest(state, request)),
    ),
    attestation::<fills::Ask, fills::Body>(
        "/attestations/solver-fills/v1",
        "Attests that a solver filled an order",
        |state, request| read_for(request, |request| fills::attest(state, request)),
    ),
    attestation::<refunds::Ask, refunds::Body>(
        "/attestations/solver-refunds/v1",
        "Attests that a solver refunded an order",
        |state, request| read_for(request, |request| refunds::attest(state, request)),
    ),
    attestation::<recover::Ask, recover::Body>(
        "/attestations/recover/v1",
        "Attests that a deposit goes back to its depositor through the hub",
        |state, request| read_for(request, |request| recover::attest(state, request)),
    ),
    attestation::<initiation::Ask, initiation::Body>(
        "/attestations/withdrawal-initiation/v1",
        "Attests that a balance is to be set apart for a withdrawal",
        |state, request| read_for(request, |request| initiation::attest(state, request)),
    ),
    attestation::<initiated::Ask, initiated::Body>(
        "/attestations/withdrawal-initiated/v1",
        "Tells what is set apart for a withdrawal; signs nothing",
        |state, request| read_for(request, |request| initiated::tell(state, request)),
    ),
];

const fn attestation<A: ToSchema, B: ToSchema>(
    path: &'static str,
    summary: &'static str,
    handler: Handler<State>,
) -> Route<State> {
    Route {
        method: Method::POST,
        path,
        access: Access::Protected,
        handler,
        docs: Some(Docs {
            summary,
            group: "Attestations",
            query: Query::NONE,
            body: Some(Shape::of::<A>()),
            answer: Shape::of::<B>(),
            also: &[],
        }),
    }
}

/// The state as a handler gets it.
type Shared = Arc<State>;
