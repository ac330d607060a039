//! What of a request is passed on to peers.

use crate::{
    attest::peers::{Question, Shown},
    http::{Flag, Request},
};

/// What peers are asked, if the caller wants them asked.
pub fn question(request: &Request, wanted: Option<Flag>) -> Option<Question> {
    wanted.filter(|flag| flag.0).map(|_| Question {
        target: request.target.clone(),
        body: request.body.clone(),
        key: request.header("x-api-key").map(Into::into),
        shown: Shown::Any,
    })
}

/// A stranger's claim that counts as more requests is for peers that know us.
const LIGHT: usize = 4;

/// The same of a claim that counts as `weight` requests. A forced one is for peers that see the
/// caller's key. A peer that knows nobody's counts a stranger's heavy one as ours: it would have nothing left
/// for those who ask here next.
pub fn weighing(
    request: &Request,
    wanted: Option<Flag>,
    (forced, weight): (bool, usize),
) -> Option<Question> {
    let shown = match (forced, &request.key) {
        (true, _) => Shown::Callers,
        (false, None) if weight > LIGHT => Shown::Own,
        _ => Shown::Any,
    };
    question(request, wanted).map(|question| Question { shown, ..question })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hyper::{HeaderMap, Method, Version};

    use super::*;
    use crate::http::KeyLabel;

    fn asked(key: Option<&str>) -> Request {
        Request {
            method: Method::POST,
            version: Version::HTTP_11,
            target: "/".into(),
            headers: HeaderMap::new(),
            body: "{}".into(),
            client: Ipv4Addr::LOCALHOST.into(),
            key: key.map(KeyLabel::new),
            scopes: [].into(),
            params: Vec::new(),
            toll: crate::http::auth::Toll::default(),
        }
    }

    /// A peer that is shown no key counts what all who ask here ask as one caller's.
    #[test]
    fn a_strangers_heavy_claim_is_for_peers_that_know_us() {
        for (key, forced, weight, expected) in [
            (None, false, 1, Shown::Any),
            (None, false, LIGHT, Shown::Any),
            (None, false, LIGHT + 1, Shown::Own),
            (Some("k"), false, 64, Shown::Any),
            (Some("k"), true, 64, Shown::Callers),
        ] {
            let question = weighing(&asked(key), Some(Flag(true)), (forced, weight));
            let shown = question.map(|question| question.shown);
            assert_eq!(shown, Some(expected), "{key:?} {forced} {weight}");
            assert!(weighing(&asked(key), None, (forced, weight)).is_none());
        }
    }
}
