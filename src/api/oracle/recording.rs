//! What every route of the oracle does around its handler: it reads in the place of its caller and records why it
//! signs, answers an equal request of long ago from what was recorded then, and lets no signature out of a shadow.

use futures::future::BoxFuture;
use serde_json::Value;
use vm::evidence::Replay;

use super::Shared;
use crate::{
    attest::{
        document::unsigned,
        evidence::{self, Claim},
        shadow::{Answered, Shadow},
    },
    chains::asking,
    http::{ApiError, Request, Response, auth::KEY},
};

pub type Answer = BoxFuture<'static, Result<Response, ApiError>>;

/// A route's handler.
type Handler<F> = fn(Shared, Request) -> F;

/// Answers `request` by `handler`.
pub fn recorded<F>(state: Shared, request: Request, handler: Handler<F>) -> Answer
where
    F: Future<Output = Result<Response, ApiError>> + Send + 'static,
{
    Box::pin(async move {
        let claim = Claim {
            target: request.target.clone(),
            body: request.body.clone().into(),
            key: request.label().map(str::to_owned),
        };
        let Some(shadow) = state.shadow.clone() else {
            return judged(state, claim, request, handler).await;
        };
        let secret = request.headers.get(KEY).and_then(|key| key.to_str().ok());
        let secret = secret.map(str::to_owned);
        let now = (state.oracle.clock)();
        let answer = judged(state, claim.clone(), request, handler).await;
        let (own, answer) = silent(answer.unwrap_or_else(|error| error.into_response()))?;
        Shadow::compare(&shadow, claim, secret, own, now);
        Ok(answer)
    })
}

/// The answer over the evidence of an equal request whose statement is watched no longer, else over the chains.
async fn judged<F>(
    state: Shared,
    claim: Claim,
    request: Request,
    handler: Handler<F>,
) -> Result<Response, ApiError>
where
    F: Future<Output = Result<Response, ApiError>> + Send + 'static,
{
    let keyed = request.key.is_some();
    if let Some(digest) = claim.digest()
        && let Ok(Some(evidence)) = state.oracle.journal.repeated(&digest).await
    {
        let judging = asking::by(keyed, handler(state.clone(), request.clone()));
        // Whatever the evidence cannot answer the chains can.
        if let Ok(answer) = Replay::new(evidence.reads).answering(judging).await {
            metrics::counter!("intentd_answers_from_evidence_total").increment(1);
            return Ok(answer);
        }
    }
    asking::by(keyed, evidence::of(claim, handler(state, request))).await
}

/// An answer without its signatures.
fn silent(answer: Response) -> Result<(Answered, Response), ApiError> {
    let whole = answer.body.bytes().cloned().unwrap_or_default();
    let mut body: Value = serde_json::from_slice(&whole).map_err(ApiError::internal)?;
    unsigned(&mut body);
    let answer = Response {
        body: Response::json_with(answer.status, &body)?.body,
        ..answer
    };
    let own = Answered {
        status: answer.status.as_u16(),
        body,
    };
    Ok((own, answer))
}
