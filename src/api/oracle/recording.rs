//! What every route of the oracle does around its handler: it reads in the place of its caller and records why it
//! signs, answers an equal request of long ago from what was recorded then, and lets no signature out of a shadow.

use futures::{FutureExt, future::BoxFuture};
use serde_json::Value;
use vm::{B256, evidence::Replay};

use super::{Shared, under_way};
use crate::{
    attest::{
        basis,
        document::remove_signatures,
        evidence::{self, Claim, Known},
        journal::Repeated,
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

/// The answer over the evidence of an equal request whose statement is watched no longer, else over the chains: with all
/// equal ones of its caller that are under way.
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
    // The content type is not in the digest.
    let digest = request.is_json().then(|| claim.digest()).flatten();
    let digests = digest.map(|digest| (digest, claim.of_caller(&digest)));
    let earlier = match digests {
        Some(digests) => earlier(&state, digests, &request, handler).await,
        None => Earlier::Open,
    };
    let is_new = match earlier {
        Earlier::Answer(answer) => {
            metrics::counter!("intentd_answers_from_evidence_total").increment(1);
            return Ok(answer);
        }
        Earlier::New => true,
        Earlier::Open => false,
    };
    let under_way = state.repeated.under_way.clone();
    let shared = digests.map(|(_, of_caller)| under_way::shared_by(&of_caller, &request.headers));
    // Boxed: the state of a handler is large, and would be moved with all that is around it.
    let judging = handler(state, request).boxed();
    let judging = evidence::of(claim, Known { digest, is_new }, judging);
    let judging = asking::by(keyed, judging);
    match shared {
        Some(shared) => under_way.join(shared, judging).await,
        None => judging.await,
    }
}

/// What earlier claims say about an equal one.
enum Earlier {
    /// Its answer.
    Answer(Response),
    /// None was signed.
    New,
    /// Only the chains can answer.
    Open,
}

/// The answer to the claim with this digest over the evidence of an equal one of any caller, judged by the rights of
/// this one. The answer itself is kept for its caller.
async fn earlier<F>(
    state: &Shared,
    (claim, of_caller): (B256, B256),
    request: &Request,
    handler: Handler<F>,
) -> Earlier
where
    F: Future<Output = Result<Response, ApiError>> + Send + 'static,
{
    let journal = &state.oracle.journal;
    if let Some(answer) = state.repeated.kept.find(&of_caller, journal).await {
        return Earlier::Answer(answer);
    }
    let evidence = match journal.repeated(&claim).await {
        Ok(Repeated::Settled(evidence)) => evidence,
        Ok(Repeated::New) => return Earlier::New,
        Ok(Repeated::Open) | Err(_) => return Earlier::Open,
    };
    let keyed = request.key.is_some();
    let judging = asking::by(keyed, handler(state.clone(), request.clone()).boxed());
    let replay = Replay::new(evidence.reads);
    let (answer, basis) = basis::of(replay.answering(judging)).await;
    let Ok(answer) = answer else {
        return Earlier::Open;
    };
    if let Some(basis) = basis {
        state.repeated.kept.keep(of_caller, &answer, basis);
    }
    Earlier::Answer(answer)
}

/// An answer without its signatures.
fn silent(answer: Response) -> Result<(Answered, Response), ApiError> {
    let whole = answer.body.bytes().cloned().unwrap_or_default();
    let mut body: Value = serde_json::from_slice(&whole).map_err(ApiError::internal)?;
    remove_signatures(&mut body);
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
