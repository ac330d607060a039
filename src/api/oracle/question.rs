//! What of a request is passed on to peers.

use crate::{
    attest::peers::Question,
    http::{Flag, Request},
};

/// What peers are asked, if the caller wants them asked.
pub fn question(request: &Request, wanted: Option<Flag>) -> Option<Question> {
    wanted.filter(|flag| flag.0).map(|_| Question {
        target: request.target.clone(),
        body: request.body.clone(),
        key: request.header("x-api-key").map(Into::into),
        forced: false,
    })
}

/// The same about an order; `forced` as in [`Question::forced`].
pub fn about_order(request: &Request, wanted: Option<Flag>, forced: bool) -> Option<Question> {
    question(request, wanted).map(|question| Question { forced, ..question })
}
