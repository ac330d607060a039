//! The oracle's routes: one file each, with its data types and a short handler. Nothing is judged
//! here: a handler turns a body into a claim, and an attestation into an answer.

mod answer;
mod chains;
pub mod codes;
mod deposits;
mod error;
mod exchanges;
mod fills;
mod hints;
mod initiated;
mod initiation;
mod kept;
mod mapping;
mod order;
mod owned;
mod question;
mod recording;
mod recover;
mod refunds;
mod requests;
mod transfers;
mod triggers;
mod under_way;
mod withdrawals;

use std::sync::Arc;

use hyper::Method;
use utoipa::ToSchema;

use self::{kept::KeptAnswers, recording::recorded, under_way::UnderWay};
use crate::{
    attest::{Refusal, service::Attestor, shadow::Shadow, statement::Outcome},
    http::{About, Access, Docs, Flag, Handler, Query, Request, Route, Shape},
};

pub use chains::Listed;
pub use error::ERRORS;

/// What the handlers answer from.
pub struct State {
    pub oracle: Attestor,
    /// Every configured chain in the order of the chains file.
    pub listed: Vec<Listed>,
    /// Labels of the keys that may use `force`.
    pub force: Vec<String>,
    pub repeated: Repeated,
    /// There when no signature is let out.
    pub shadow: Option<Arc<Shadow>>,
}

/// What equal requests share.
#[derive(Default)]
pub struct Repeated {
    /// Answers judged over evidence.
    kept: KeptAnswers,
    under_way: UnderWay,
}

impl State {
    /// Whether a claim is forced; refused unless the caller's key may.
    fn forced(&self, wanted: Option<Flag>, request: &Request) -> Result<bool, Refusal> {
        let wanted = wanted.is_some_and(|flag| flag.0);
        let mut able = self.force.iter();
        match wanted && !able.any(|label| request.label() == Some(label)) {
            true => Err(Refusal::ForceNotAllowed),
            false => Ok(wanted),
        }
    }
}

/// What its description says of the whole.
pub const ABOUT: About = About {
    title: "intentd oracle",
    text: "Reads chains through several providers, judges deposits, fills, refunds and withdrawals, and signs \
           what is true, so that the settlement contracts can move money. Every refusal has a stable `code`; \
           what each means is told under `/documentation/errors`.",
    groups: &[
        ("Service", "Whether the service itself answers."),
        ("Chains", "What claims may be about."),
        (
            "Attestations",
            "Claims, and the signatures of what is true of them.",
        ),
    ],
};

/// The oracle's table.
pub static ROUTES: &[Route<State>] = &[
    Route {
        method: Method::GET,
        path: "/chains/v1",
        access: Access::Protected,
        handler: |state, request| Box::pin(chains::list(state, request)),
        docs: Some(Docs {
            summary: "List chains",
            text: "The configured chains, in their configured order: what claims may name, with families and \
                   depositories. Also those that cannot be read now.",
            group: "Chains",
            query: Query::NONE,
            body: None,
            answer: Shape::of::<chains::Body>(),
            also: &[],
        }),
    },
    attestation::<deposits::Ask, deposits::Body>(
        "/attestations/depository-deposits/v1",
        (
            "Attest deposits",
            "Attests the deposits of a transaction: reads it through a quorum of providers and signs the execution \
             that mints them at the hub. `fast` takes the weaker finality of the chain's tiers, where it has any.",
        ),
        |state, request| recorded(state, request, deposits::attest),
    ),
    attestation::<withdrawals::Ask, withdrawals::Body>(
        "/attestations/depository-withdrawals/v1",
        (
            "Attest a depository withdrawal",
            "Signs how a depository withdrawal ended: the depository paid it, or its time ran out unpaid. The two \
             exclude each other.",
        ),
        |state, request| recorded(state, request, withdrawals::attest),
    ),
    attestation::<withdrawals::OwnedAsk, withdrawals::EndedBody>(
        "/attestations/depository-withdrawals/v2",
        (
            "Attest a depository withdrawal of any owner",
            "The same for a withdrawal that the allocator has recorded. The owner's signature, or a returned \
             deposit, stands for the right to ask.",
        ),
        |state, request| recorded(state, request, withdrawals::attest_owned),
    ),
    attestation::<withdrawals::RequestedAsk, withdrawals::EndedBody>(
        "/attestations/depository-withdrawals/v3",
        (
            "Attest an expired withdraw request",
            "How a withdraw request of the hub's own allocator ended. Where it expired, signs the execution that \
             gives the amount back to its spender, or to the order that the executor spent it for.",
        ),
        |state, request| recorded(state, request, withdrawals::attest_requested),
    ),
    attestation::<fills::Ask, fills::Body>(
        "/attestations/solver-fills/v1",
        (
            "Attest a fill",
            "Signs that a solver filled an order: judges the order's deposits and the payment of its output. The \
             execution moves the deposits to the solver. A payment serves one order.",
        ),
        |state, request| recorded(state, request, fills::attest),
    ),
    attestation::<refunds::Ask, refunds::Body>(
        "/attestations/solver-refunds/v1",
        (
            "Attest a refund",
            "Signs that a solver refunded an order: judges the order's deposits and the payment of a refund. The \
             execution moves the deposits to the solver. Fill and refund exclude each other.",
        ),
        |state, request| recorded(state, request, refunds::attest),
    ),
    attestation::<recover::Ask, recover::Body>(
        "/attestations/recover/v1",
        (
            "Attest a recovery",
            "For a deposit that nobody filled or gave back: signs the execution that moves it to its \
             depositor's account at the hub.",
        ),
        |state, request| recorded(state, request, recover::attest),
    ),
    attestation::<initiation::Ask, initiation::Body>(
        "/attestations/withdrawal-initiation/v1",
        (
            "Attest a withdrawal initiation",
            "Signs the execution that sets a hub balance apart for the withdrawal that its owner's signature \
             asks for.",
        ),
        |state, request| recorded(state, request, initiation::attest),
    ),
    attestation::<owned::Ask, initiation::OwnedBody>(
        "/attestations/withdrawal-initiation/v2",
        (
            "Attest a withdrawal initiation of any owner",
            "Signs the execution that sets a hub balance apart for the withdrawal that its owner's signature \
             asks for, or for that of a returned deposit.",
        ),
        |state, request| recorded(state, request, initiation::attest_owned),
    ),
    attestation::<initiated::Ask, initiated::Body>(
        "/attestations/withdrawal-initiated/v1",
        (
            "Read an initiated withdrawal",
            "What is set apart for a withdrawal: the hub's own record, read through the same quorum as everything \
             that is signed. Nothing is signed.",
        ),
        |state, request| recorded(state, request, initiated::attest),
    ),
    attestation::<owned::Ask, initiated::PayloadBody>(
        "/attestations/withdrawal-initiated/v2",
        (
            "Attest payload params",
            "Signs what the allocator is to record for a withdrawal, where the withdrawal address holds at least the \
             amount. A withdrawal address has one payload.",
        ),
        |state, request| recorded(state, request, initiated::attest_owned),
    ),
    attestation::<requests::InclusionAsk, requests::InclusionBody>(
        "/attestations/withdraw-requests/v1",
        (
            "Attest the hashes of a withdraw request",
            "Signs which hashes the hub's own allocator has for a withdraw request, at the indexes that are asked for.",
        ),
        |state, request| recorded(state, request, requests::include),
    ),
    attestation::<requests::AuthorizationAsk, requests::AuthorizationBody>(
        "/attestations/withdraw-request-authorization/v1",
        (
            "Attest the authorization of a withdraw request",
            "Signs that a spender asks the hub's own allocator for a withdrawal: its signature says so, or a \
             returned deposit stands for it. A nonce of a spender serves one withdrawal.",
        ),
        |state, request| recorded(state, request, requests::authorize),
    ),
    attestation::<exchanges::Ask, exchanges::Body>(
        "/attestations/withdraw-and-fill/v1",
        (
            "Attest that an order is filled at the hub",
            "Signs the execution that mints a deposit at the hub, and the request that has the hub's executor exchange \
             it and withdraw what the order pays.",
        ),
        |state, request| {
            recorded(state, request, |state, request| {
                exchanges::attest(state, request, Outcome::Fill)
            })
        },
    ),
    attestation::<exchanges::Ask, exchanges::Body>(
        "/attestations/withdraw-and-refund/v1",
        (
            "Attest that an order is refunded at the hub",
            "Signs the execution that mints a deposit at the hub, and the request that has the hub's executor withdraw \
             it as the order's refund option says.",
        ),
        |state, request| {
            recorded(state, request, |state, request| {
                exchanges::attest(state, request, Outcome::Refund)
            })
        },
    ),
    attestation::<triggers::Ask, triggers::Body>(
        "/attestations/deposit-address-triggers/v1",
        (
            "Attest a deposit-address trigger",
            "Signs that a payment to a deposit address is for an order, where the deposit address manager at the hub \
             maps the trigger's hash to it.",
        ),
        |state, request| recorded(state, request, triggers::attest),
    ),
    attestation::<mapping::FirstAsk, mapping::Body>(
        "/attestations/signatures/nonce-mapping/v1",
        (
            "Attest a nonce mapping, first version",
            "As the second version, for signatures that name no depositor: the wallet is the depositor.",
        ),
        |state, request| recorded(state, request, mapping::attest::<mapping::FirstAsk>),
    ),
    attestation::<mapping::Ask, mapping::Body>(
        "/attestations/signatures/nonce-mapping/v2",
        (
            "Attest a nonce mapping",
            "Signs the entry of the hub's generic mapping that says which order a wallet's transfer is the deposit \
             for, and whose. The wallet signed for it. A nonce of a wallet has one entry for ever.",
        ),
        |state, request| recorded(state, request, mapping::attest::<mapping::Ask>),
    ),
    attestation::<mapping::GivenUp, mapping::Body>(
        "/attestations/signatures/no-fill-or-refund/v1",
        (
            "Attest that an order is given up",
            "Signs the entry of the hub's generic mapping that says that a solver neither filled nor refunded an \
             order, and never will. The solver signed for it.",
        ),
        |state, request| recorded(state, request, mapping::attest::<mapping::GivenUp>),
    ),
    attestation::<transfers::Ask, transfers::Body>(
        "/attestations/transfer/v1",
        (
            "Attest a transfer",
            "Signs the execution that moves a balance from its owner's account at the hub to another one. A nonce of \
             an owner serves one transfer.",
        ),
        |state, request| recorded(state, request, transfers::attest),
    ),
];

const fn attestation<A: ToSchema, B: ToSchema>(
    path: &'static str,
    (summary, text): (&'static str, &'static str),
    handler: Handler<State>,
) -> Route<State> {
    Route {
        method: Method::POST,
        path,
        access: Access::Protected,
        handler,
        docs: Some(Docs {
            summary,
            text,
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
