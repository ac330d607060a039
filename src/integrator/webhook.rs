//! Decides which URLs events may go to. Pure: the sender checks the addresses of the name when it connects.

use url::Url;

/// The most bytes of a URL.
const LENGTH: usize = 1024;

/// Why a URL is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("the webhook's URL must begin with https://")]
    Scheme,
    #[error("the webhook's URL has no host")]
    Host,
    #[error("the webhook's URL must have no user name and password: use a header")]
    Credentials,
    #[error("the webhook's URL must have no fragment")]
    Fragment,
    #[error("the webhook's URL has more than {LENGTH} bytes")]
    Long,
}

/// Whether events may go to `url`: HTTPS, and with `plain` also HTTP. The sender checks the addresses of its name
/// later.
pub fn check(url: &Url, plain: bool) -> Result<(), UrlError> {
    match url.scheme() {
        "https" => {}
        "http" if plain => {}
        _ => return Err(UrlError::Scheme),
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err(UrlError::Host);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlError::Credentials);
    }
    if url.fragment().is_some() {
        return Err(UrlError::Fragment);
    }
    let long = url.as_str().len() > LENGTH;
    (!long).then_some(()).ok_or(UrlError::Long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_table() {
        use UrlError::{Credentials, Fragment, Scheme};
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
            assert_eq!(check(&url.parse().unwrap(), plain), expected, "{url}");
        }
        let long = format!("https://example.org/{}", "a".repeat(LENGTH));
        assert_eq!(check(&long.parse().unwrap(), true), Err(UrlError::Long));
    }
}
