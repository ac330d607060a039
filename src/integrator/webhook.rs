//! Where events may be sent and with which headers: looked at when an operator says it and again
//! before every delivery. Pure.

use std::collections::BTreeMap;

use hyper::header::{HeaderName, HeaderValue};
use url::Url;

/// Headers that an integrator may add.
const HEADERS: usize = 16;
/// Bytes of a header's name and value, and of the URL.
const LENGTH: usize = 1024;
/// Names that belong to the transport or to us; those that end with `-` are prefixes.
const RESERVED: [&str; 13] = [
    "connection",
    "content-",
    "expect",
    "host",
    "keep-alive",
    "proxy-",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-event-id",
    "x-signature-",
];

/// Why nothing may be sent there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    #[error("the webhook's URL must begin with https://")]
    Scheme,
    #[error("the webhook's URL has no host")]
    Host,
    #[error("the webhook's URL must have no user name and password: use a header")]
    Credentials,
    #[error("the webhook's URL must have no fragment")]
    Fragment,
    #[error("the webhook's URL has more than {LENGTH} bytes")]
    LongUrl,
    #[error("header {0}: not a header's name")]
    Name(String),
    #[error("header {0}: the name is taken")]
    Reserved(String),
    #[error("header {0}: the value has characters that no header may have")]
    Value(String),
    #[error("header {0}: more than {LENGTH} bytes")]
    Long(String),
    #[error("header {0}: stands there twice")]
    Twice(String),
    #[error("more than {HEADERS} headers")]
    Many,
}

/// Whether events may go to `url`: HTTPS, or plain HTTP too where the operator lets them. Says nothing
/// of the addresses behind it.
pub fn check_url(url: &Url, plain: bool) -> Result<(), WebhookError> {
    match url.scheme() {
        "https" => {}
        "http" if plain => {}
        _ => return Err(WebhookError::Scheme),
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(WebhookError::Host);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(WebhookError::Credentials);
    }
    if url.fragment().is_some() {
        return Err(WebhookError::Fragment);
    }
    let long = url.as_str().len() > LENGTH;
    (!long).then_some(()).ok_or(WebhookError::LongUrl)
}

/// The headers as they are sent: none of ours, no byte that could end one. Names in any case.
pub fn headers(
    given: &BTreeMap<String, String>,
) -> Result<Vec<(HeaderName, HeaderValue)>, WebhookError> {
    if given.len() > HEADERS {
        return Err(WebhookError::Many);
    }
    let mut sent: Vec<(HeaderName, HeaderValue)> = Vec::new();
    for (name, value) in given {
        let shown = || name.escape_debug().to_string();
        let (name, value) = header(name, value)?;
        if sent.iter().any(|(known, _)| *known == name) {
            return Err(WebhookError::Twice(shown()));
        }
        sent.push((name, value));
    }
    Ok(sent)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), WebhookError> {
    // What is refused is repeated, so that it must not end a line.
    let shown = || {
        name.chars()
            .take(64)
            .collect::<String>()
            .escape_debug()
            .to_string()
    };
    if name.len() + value.len() > LENGTH {
        return Err(WebhookError::Long(shown()));
    }
    let token = HeaderName::from_bytes(name.as_bytes());
    let token = token.map_err(|_| WebhookError::Name(shown()))?;
    let text = token.as_str();
    let reserved = |taken: &str| match taken.ends_with('-') {
        true => text.starts_with(taken),
        false => text == taken,
    };
    if RESERVED.into_iter().any(reserved) {
        return Err(WebhookError::Reserved(shown()));
    }
    let plain = value
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    let value = HeaderValue::from_str(value).ok().filter(|_| plain);
    Ok((token, value.ok_or_else(|| WebhookError::Value(shown()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, value: &str) -> Result<(), WebhookError> {
        let given = [(name.to_owned(), value.to_owned())].into();
        headers(&given).map(drop)
    }

    #[test]
    fn url_table() {
        use WebhookError::{Credentials, Fragment, Scheme};
        for (url, plain, expected) in [
            ("https://example.org/hook?a=b", false, Ok(())),
            ("https://10.0.0.1:8443/", false, Ok(())),
            ("http://example.org/", false, Err(Scheme)),
            ("http://127.0.0.1:1/", true, Ok(())),
            ("file:///etc/passwd", true, Err(Scheme)),
            ("ftp://a/", true, Err(Scheme)),
            ("data:text/plain,a", true, Err(Scheme)),
            ("https://me:secret@example.org/", false, Err(Credentials)),
            ("https://me@example.org/", false, Err(Credentials)),
            ("https://example.org/#a", false, Err(Fragment)),
        ] {
            assert_eq!(check_url(&url.parse().unwrap(), plain), expected, "{url}");
        }
        let long = format!("https://example.org/{}", "a".repeat(LENGTH));
        assert_eq!(
            check_url(&long.parse().unwrap(), true),
            Err(WebhookError::LongUrl)
        );
    }

    #[test]
    fn headers_of_ours_and_of_the_transport_are_named_and_refused() {
        for name in [
            "content-type",
            "Content-Type",
            "CONTENT-LENGTH",
            "content-encoding",
            "Host",
            "connection",
            "Transfer-Encoding",
            "user-agent",
            "te",
            "Expect",
            "X-Signature-SHA256",
            "x-signature-timestamp",
            "x-signature-",
            "X-Event-Id",
        ] {
            assert_eq!(
                one(name, "a"),
                Err(WebhookError::Reserved(name.into())),
                "{name}"
            );
        }
        for name in [
            "authorization",
            "x-api-key",
            "x-event",
            "x-signatures",
            "tea",
            "hosting",
        ] {
            assert_eq!(one(name, "a b\tc"), Ok(()), "{name}");
        }
    }

    #[test]
    fn nothing_can_be_injected() {
        for name in ["", " ", "a b", "a:", "a\r\nb", "a\0", "é", "(a)"] {
            assert!(
                matches!(one(name, "a"), Err(WebhookError::Name(_))),
                "{name:?}"
            );
        }
        for value in ["a\r\nx-event-id: 1", "a\n", "a\r", "\0", "é", "\u{7f}"] {
            let refused = one("x-a", value);
            assert_eq!(refused, Err(WebhookError::Value("x-a".into())), "{value:?}");
        }
        let told = one("a\r\nb", "a").unwrap_err().to_string();
        assert!(!told.contains(['\r', '\n']), "{told}");
    }

    #[test]
    fn headers_are_few_short_and_stand_once() {
        let many = (0..=HEADERS).map(|n| (format!("x-{n}"), String::new()));
        assert_eq!(headers(&many.collect()), Err(WebhookError::Many));
        let long = "a".repeat(LENGTH);
        assert_eq!(one("x-a", &long), Err(WebhookError::Long("x-a".into())));
        let twice = ["X-A", "x-a"].map(|name| (name.to_owned(), String::new()));
        assert_eq!(
            headers(&twice.into()),
            Err(WebhookError::Twice("x-a".into()))
        );
        let given = [("X-A".to_owned(), "1".to_owned())].into();
        let sent = headers(&given).unwrap();
        assert_eq!(
            (sent[0].0.as_str(), sent[0].1.as_bytes()),
            ("x-a", &b"1"[..])
        );
    }
}
