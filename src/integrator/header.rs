//! Decides which headers an integrator may add to its events. Pure.

use std::collections::BTreeMap;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// The most headers of an integrator.
pub const MOST: usize = 32;
/// The most bytes of a header, name included.
pub const LONGEST: usize = 4 << 10;

/// Headers that the daemon sets, that belong to the connection, or that change how the body is read.
const RESERVED: [&str; 19] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-event-given-up",
    "x-event-id",
];
/// Prefixes that no header may have.
const RESERVED_PREFIXES: [&str; 3] = ["proxy-", "x-signature-", "x-forwarded-"];

/// Why a header is not sent. The error names the header, never its value: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("there are more than {MOST} headers")]
    TooMany,
    #[error("header {0:?} is longer than {LONGEST} bytes")]
    TooLong(String),
    #[error("header {0:?} has an invalid name")]
    Name(String),
    #[error("header {0} is ours to set")]
    Reserved(String),
    #[error("the value of header {0} is not visible ASCII")]
    Value(String),
    #[error("header {0} occurs twice")]
    Twice(String),
}

/// The headers as the daemon sends them; an error names the first one that is refused.
pub fn headers(asked: &BTreeMap<String, String>) -> Result<HeaderMap, HeaderError> {
    if asked.len() > MOST {
        return Err(HeaderError::TooMany);
    }
    let mut headers = HeaderMap::with_capacity(asked.len());
    for (name, value) in asked {
        let (name, value) = header(name, value)?;
        if headers.contains_key(&name) {
            return Err(HeaderError::Twice(name.to_string()));
        }
        headers.insert(name, value);
    }
    Ok(headers)
}

/// One header as the daemon sends it, marked as sensitive.
pub fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), HeaderError> {
    if name.len() + value.len() > LONGEST {
        return Err(HeaderError::TooLong(name.chars().take(64).collect()));
    }
    let parsed: HeaderName = name
        .parse()
        .map_err(|_| HeaderError::Name(name.to_owned()))?;
    // The parsed name is in lower case.
    let text = parsed.as_str();
    let prefixed = RESERVED_PREFIXES.iter().any(|with| text.starts_with(with));
    if prefixed || RESERVED.contains(&text) {
        return Err(HeaderError::Reserved(text.to_owned()));
    }
    let wrong = || HeaderError::Value(text.to_owned());
    let visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if !value.bytes().all(visible) {
        return Err(wrong());
    }
    let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_headers_are_sent_as_they_are() {
        for (name, value) in [
            ("Authorization", "Bearer a.b-c"),
            ("x-api-key", ""),
            ("X-Tenant", "one, two; three=\"4\""),
        ] {
            let (found, sent) = header(name, value).unwrap();
            assert_eq!(found.as_str(), name.to_lowercase());
            assert_eq!(sent, value);
            assert!(!format!("{sent:?}").contains("Bearer"));
        }
    }

    #[test]
    fn nobody_overrides_ours_or_injects() {
        for name in [
            "Content-Type",
            "CONTENT-LENGTH",
            "host",
            "Transfer-Encoding",
            "User-Agent",
            "X-Event-Id",
            "X-Signature-SHA256",
            "x-signature-timestamp",
            "x-signature-anything",
            "Proxy-Authorization",
            "X-Forwarded-For",
            "connection",
            "Expect",
        ] {
            let refused = header(name, "x");
            let reserved = HeaderError::Reserved(name.to_lowercase());
            assert_eq!(refused, Err(reserved), "{name}");
        }
        for name in ["", "a b", "a:", "a\r\nb", "ä", "a\0", " host", "host "] {
            let refused = header(name, "x");
            assert_eq!(refused, Err(HeaderError::Name(name.into())), "{name:?}");
        }
        for value in ["a\r\nHost: b", "a\nb", "a\rb", "a\0", "é", "\u{7f}", "a\tb"] {
            let refused = header("x-a", value);
            assert_eq!(refused, Err(HeaderError::Value("x-a".into())), "{value:?}");
        }
        let long = "x".repeat(LONGEST);
        assert_eq!(header("a", &long), Err(HeaderError::TooLong("a".into())));
    }

    #[test]
    fn headers_are_few_and_different() {
        let named = |names: &[&str]| -> BTreeMap<_, _> {
            let pair = |name: &&str| ((*name).to_owned(), "v".to_owned());
            names.iter().map(pair).collect()
        };
        assert_eq!(headers(&named(&["a", "b"])).unwrap().len(), 2);
        let twice = headers(&named(&["A", "a"]));
        assert_eq!(twice, Err(HeaderError::Twice("a".into())));
        let many: Vec<_> = (0..=MOST).map(|n| format!("h{n}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(headers(&named(&many)), Err(HeaderError::TooMany));
    }
}
