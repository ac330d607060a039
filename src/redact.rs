//! Secrets out of texts that reach a log. Pure.

use url::Url;

const MASK: &str = "[REDACTED]";
/// A query parameter whose name contains one of these carries a credential.
const NAMES: [&str; 7] = [
    "key",
    "token",
    "secret",
    "password",
    "auth",
    "signature",
    "credential",
];

/// A URL with its user, password and credentials in the query masked; what is no absolute URL stays
/// as it is (redact_error_url.json in the known answers).
pub fn url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return text.to_owned();
    };
    let named = !url.username().is_empty() || url.password().is_some();
    // Both fail only for URLs without a host, which cannot hold a user either.
    if named && (url.set_username(MASK).is_err() || url.set_password(None).is_err()) {
        return MASK.to_owned();
    }
    if url.query_pairs().any(|(name, _)| secret(&name)) {
        let pairs: Vec<_> = url
            .query_pairs()
            .map(|(name, value)| {
                let value = if secret(&name) { MASK.into() } else { value };
                (name.into_owned(), value.into_owned())
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    url.into()
}

/// A text with every http(s) and ws(s) URL in it cut to its host: providers' paths are credentials.
pub fn text(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let scheme = rest[..at]
            .rfind(|c: char| !c.is_ascii_alphanumeric())
            .map_or(0, |before| {
                before + rest[before..].chars().next().map_or(1, char::len_utf8)
            });
        let end = rest[at + 3..]
            .find(|c: char| c.is_whitespace() || "\"'<>)]},`".contains(c))
            .map_or(rest.len(), |length| at + 3 + length);
        clean.push_str(&rest[..scheme]);
        clean.push_str(&origin(&rest[scheme..end]));
        rest = &rest[end..];
    }
    clean.push_str(rest);
    clean
}

fn origin(text: &str) -> String {
    let Ok(url) = Url::parse(text) else {
        return MASK.to_owned();
    };
    let host = url.host_str().unwrap_or_default();
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    format!("{}://{host}{port}", url.scheme())
}

fn secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_in_a_text_are_cut_to_their_host() {
        let cases = [
            ("plain", "plain"),
            (
                "error sending request for url (https://rpc.example/v2/SECRET?x=1): timed out",
                "error sending request for url (https://rpc.example): timed out",
            ),
            ("https://u:p@h:81/p", "https://h:81"),
            ("a wss://h/k, b http://i/k", "a wss://h, b http://i"),
            ("http://", MASK),
            ("é://", "é[REDACTED]"),
        ];
        for (given, expected) in cases {
            assert_eq!(text(given), expected);
        }
    }

    #[test]
    fn only_credentials_in_a_url_are_masked() {
        let cases = [
            ("https://h/?x=1&y=2", "https://h/?x=1&y=2"),
            ("https://u@h/", "https://%5BREDACTED%5D@h/"),
            (
                "https://h/?AuthToken=1",
                "https://h/?AuthToken=%5BREDACTED%5D",
            ),
            ("/rel?key=1", "/rel?key=1"),
        ];
        for (given, expected) in cases {
            assert_eq!(url(given), expected);
        }
    }
}
