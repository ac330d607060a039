//! The error codes. A row says what happened, what to do, and whether to try again. A listener serves the rows of its
//! surface as pages under [`PATH`]; its API description enumerates them.

use serde::Serialize;
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use crate::json::schema::one_of;

/// The path of the list of a listener's codes; the page of one code is below it.
pub const PATH: &str = "/documentation/errors";

/// Whether the same request may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    Never,
    Later,
    /// Depends on the answer: its `retryable` or its message says so.
    Varying,
}

impl Retry {
    /// The text of the code's page.
    pub fn text(self) -> &'static str {
        match self {
            Self::Never => "No: the same request fails again. Change it first.",
            Self::Later => {
                "Yes, later: the same request may succeed then. Wait longer after every try."
            }
            Self::Varying => {
                "It depends: the answer says whether the same request may succeed later."
            }
        }
    }
}

/// One error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Stable, in capitals.
    pub text: &'static str,
    pub retry: Retry,
    pub happened: &'static str,
    pub advice: &'static str,
}

type Text = &'static str;

/// A code whose error is final.
pub const fn never(text: Text, happened: Text, advice: Text) -> Code {
    code(text, Retry::Never, happened, advice)
}

/// A code whose error may pass with time.
pub const fn later(text: Text, happened: Text, advice: Text) -> Code {
    code(text, Retry::Later, happened, advice)
}

/// A code whose error is final in some answers only: the answer says so.
pub const fn varying(text: Text, happened: Text, advice: Text) -> Code {
    code(text, Retry::Varying, happened, advice)
}

const fn code(text: Text, retry: Retry, happened: Text, advice: Text) -> Code {
    Code {
        text,
        retry,
        happened,
        advice,
    }
}

/// The codes of a surface, in the order of the documentation.
pub type Codes = &'static [&'static [Code]];

/// The row of `text`; ignores case.
pub fn find(codes: Codes, text: &str) -> Option<&'static Code> {
    let mut all = codes.iter().copied().flatten();
    all.find(|code| code.text.eq_ignore_ascii_case(text))
}

/// The path of a code's page on the listener that answered with the code.
pub fn page(code: &str) -> String {
    format!("{PATH}/{code}")
}

/// A code in a body. The API description enumerates the codes of its surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(value_type = String)]
#[serde(transparent)]
pub struct ErrorCode(pub &'static str);

/// The name of [`ErrorCode`] in the API description.
pub const SCHEMA: &str = "ErrorCode";

/// The schema of [`ErrorCode`] on a surface with `codes`.
pub fn schema(codes: Codes) -> RefOr<Schema> {
    let texts = codes.iter().copied().flatten().map(|code| code.text);
    one_of(&format!("Stable. What each means: {PATH}"), texts)
}

/// The codes of the server itself; every surface may answer with them.
pub const SERVER: &[Code] = &[
    never(
        "ROUTE_NOT_FOUND",
        "There is no such route on this listener.",
        "Compare method and path with the reference. The oracle and the integrator API are different listeners.",
    ),
    never(
        "METHOD_NOT_ALLOWED",
        "The path is known, with other methods than the request's.",
        "Use one of the methods that the header allow lists.",
    ),
    never(
        "NOT_SUPPORTED_YET",
        "The route is known from elsewhere, and this version does not serve it.",
        "Do without it. The reference lists what is served.",
    ),
    never(
        "INVALID_JSON",
        "The body is no valid JSON.",
        "Send one JSON object in UTF-8. The message says where reading ended.",
    ),
    never(
        "INVALID_BODY",
        "The body is no JSON object, or it was cut short.",
        "Send one whole JSON object, with its right length.",
    ),
    never(
        "EMPTY_BODY",
        "The body is empty.",
        "Send the JSON object that the reference describes for the route.",
    ),
    never(
        "MISSING_FIELD",
        "A field that the route needs is not there.",
        "Add the field that the message names.",
    ),
    never(
        "INVALID_FIELD",
        "A field or parameter does not have the form that the route expects.",
        "Correct the field that the message names. The reference has its form.",
    ),
    never(
        "INVALID_AMOUNT",
        "A number that stands where an amount does cannot be read in one way only.",
        "Send the digits of whole smallest units as a text, without sign, fraction or exponent.",
    ),
    never(
        "DUPLICATE_HEADER",
        "A header that may stand only once stands more than once.",
        "Send the header that the message names once. Look at proxies that add headers.",
    ),
    never(
        "AMBIGUOUS_LENGTH",
        "The request says its length in two ways.",
        "Send either Content-Length or Transfer-Encoding. Look at proxies on the way.",
    ),
    later(
        "REQUEST_TIMEOUT",
        "The body did not arrive in time.",
        "Send it again, at once and without pauses. Nothing was done.",
    ),
    never(
        "UPGRADE_REQUIRED",
        "The route is a WebSocket, and the request was a plain one.",
        "Open it with a WebSocket client, or use the route for plain requests.",
    ),
    never(
        "INVALID_HANDSHAKE",
        "The request was to become a WebSocket, and its handshake is wrong.",
        "Open it as RFC 6455 says. The message names what is wrong.",
    ),
    never(
        "HTTP1_REQUIRED",
        "WebSockets are opened over HTTP/1.1, and the request came over HTTP/2.",
        "Have the client, or the proxy before it, use HTTP/1.1 here.",
    ),
    never(
        "UNAUTHORIZED",
        "The route needs a known API key, and the request has none.",
        "Send the key in the header x-api-key. A key that was rotated or taken back is not known any more.",
    ),
    never(
        "FORBIDDEN",
        "The key is known and may not do this.",
        "Ask the operator for a key with the scope that the route needs.",
    ),
    later(
        "RATE_LIMITED",
        "A key or an address has sent all the requests that it may send for now.",
        "Wait for as many seconds as the headers tell. A key has limits of its own.",
    ),
    later(
        "OVERLOADED",
        "Too many requests are being answered now, of this address or of all.",
        "Send fewer requests at one time, and read their answers. Nothing was done.",
    ),
    later(
        "TOO_MANY_SOCKETS",
        "No permit is free for one more stream or WebSocket.",
        "Close what is not read. One connection can follow many requests.",
    ),
    never(
        "REFUSED",
        "The chain or its rules say no. The message says why.",
        "Read the message and change the request.",
    ),
    never(
        "TRANSACTION_TOO_LARGE",
        "A transaction is larger than what is read of one.",
        "Use another transaction. Nothing of this one is read.",
    ),
    later(
        "QUORUM_UNAVAILABLE",
        "Not enough providers of the chain gave one answer.",
        "Ask again. Providers differ for seconds after a block, for longer when one is ill.",
    ),
    later(
        "CHAIN_UNAVAILABLE",
        "The chain cannot be read now, or this service does not read it.",
        "Ask again. Where it stays so, ask for the list of chains.",
    ),
    later(
        "CHAIN_DOUBTFUL",
        "The chain's provider gave answers that contradict each other.",
        "Ask again. Nothing was decided on these answers.",
    ),
];

/// The codes of the server itself on the oracle's surface ([`super::plain`]).
pub const PLAIN: &[Code] = &[
    never(
        "FST_ERR_CTP_INVALID_MEDIA_TYPE",
        "The body is no JSON by its own account.",
        "Send the header content-type: application/json.",
    ),
    never(
        "FST_ERR_CTP_BODY_TOO_LARGE",
        "The body is larger than what is read.",
        "Send less in one request. The reference has the limit.",
    ),
    later(
        "INTERNAL",
        "The service has a fault of its own.",
        "Ask again. Where it stays so, tell the operator the time and the route.",
    ),
    later(
        "DEADLINE_EXCEEDED",
        "The answer took longer than a request may take.",
        "Ask again. What was begun may have been done: ask for it before you repeat it.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_by_its_name_alone() {
        let codes: Codes = &[SERVER, PLAIN];
        assert_eq!(
            find(codes, "internal").map(|code| code.text),
            Some("INTERNAL")
        );
        assert_eq!(find(codes, "INTERN"), None);
        assert_eq!(find(&[SERVER], "INTERNAL"), None);
        assert_eq!(page("INTERNAL"), "/documentation/errors/INTERNAL");
    }

    #[test]
    fn the_description_enumerates_them() {
        let schema = serde_json::to_value(schema(&[PLAIN])).unwrap();
        let texts: Vec<_> = PLAIN.iter().map(|code| code.text).collect();
        assert_eq!(schema["type"], "string");
        assert_eq!(schema["enum"], serde_json::json!(texts));
        let body = serde_json::to_value(ErrorCode("X")).unwrap();
        assert_eq!(body, "X");
    }
}
