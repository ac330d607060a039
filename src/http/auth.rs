//! Who may call what: keys by digest, and the window of callers without one. It decides from the
//! key and the socket address alone, before any work is done for a request.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HeaderName},
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    ApiError,
    limit::{self, Allowance, Limiter, Standing},
    router::Access,
};

/// The header that keys come in.
pub const KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What a known key is called in logs; never the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyLabel(Arc<str>);

impl KeyLabel {
    pub fn new(label: &str) -> Self {
        Self(label.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The known keys, as SHA-256 digests: what a lookup takes says nothing about the keys.
#[derive(Clone, Default)]
pub struct Keys {
    labels: HashMap<[u8; 32], KeyLabel>,
}

impl Keys {
    /// From pairs of key and label. An empty key is never a key.
    pub fn new<K: AsRef<str>, L: AsRef<str>>(pairs: impl IntoIterator<Item = (K, L)>) -> Self {
        let labels = pairs
            .into_iter()
            .filter(|(key, _)| !key.as_ref().is_empty())
            .map(|(key, label)| {
                (
                    digest(key.as_ref().as_bytes()),
                    KeyLabel::new(label.as_ref()),
                )
            })
            .collect();
        Self { labels }
    }

    /// The label of `key`, if it is known.
    pub fn label(&self, key: &[u8]) -> Option<&KeyLabel> {
        let given = digest(key);
        let (known, label) = self.labels.get_key_value(&given)?;
        bool::from(known.ct_eq(&given)).then_some(label)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.labels.len())
    }
}

fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// How a request was let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    pub key: Option<KeyLabel>,
    /// Present only for a caller without a known key, where a limit counts.
    pub standing: Option<Standing>,
}

/// The keys and the limit of one listener.
#[derive(Debug, Default)]
pub struct Gate {
    keys: Option<Keys>,
    bearer: bool,
    limiter: Option<Mutex<Limiter<IpAddr>>>,
}

impl Gate {
    /// `keys`: `None` asks nobody for a key. `keyless`: callers without a known key are let in
    /// within this limit instead of being refused (or instead of being free, without keys).
    pub fn new(keys: Option<Keys>, keyless: Option<Allowance>) -> Self {
        Self {
            keys,
            bearer: false,
            limiter: keyless.map(|allowance| Mutex::new(Limiter::new(allowance))),
        }
    }

    /// Takes `authorization: Bearer <key>` where there is no `x-api-key`.
    #[must_use]
    pub fn or_bearer(self) -> Self {
        Self {
            bearer: true,
            ..self
        }
    }

    /// The key that a caller shows, known or not.
    pub fn key<'a>(&self, headers: &'a HeaderMap) -> Option<&'a [u8]> {
        if let Some(key) = headers.get(KEY) {
            return Some(key.as_bytes());
        }
        let shown = headers.get(AUTHORIZATION).filter(|_| self.bearer)?;
        let (scheme, key) = shown.as_bytes().split_at_checked(7)?;
        scheme
            .eq_ignore_ascii_case(b"bearer ")
            .then(|| key.trim_ascii())
    }

    /// 401 or 429, or how the request was let in. `now` in milliseconds of a clock that never
    /// goes back.
    pub fn admit(
        &self,
        access: Access,
        key: Option<&[u8]>,
        address: IpAddr,
        now: u64,
    ) -> Result<Admission, ApiError> {
        let known = key.and_then(|key| self.keys.as_ref()?.label(key)).cloned();
        if known.is_some() || access == Access::Open {
            return Ok(Admission {
                key: known,
                standing: None,
            });
        }
        let Some(limiter) = &self.limiter else {
            let closed = access == Access::Protected && self.keys.is_some();
            return if closed {
                Err(ApiError::Unauthorized)
            } else {
                Ok(Admission::default())
            };
        };
        let mut limiter = limiter.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = limiter.check(limit::caller(address), now);
        if !standing.allowed {
            return Err(ApiError::RateLimited(standing));
        }
        Ok(Admission {
            key: None,
            standing: Some(standing),
        })
    }
}

/// How an unknown path is treated: the paths that the network's clients know as free stay so, all
/// others count.
pub fn unrouted(path: &str) -> Access {
    let free = path == "/" || path.starts_with("/documentation") || path.starts_with("/lives");
    if free { Access::Open } else { Access::Counted }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new([("good", "client"), ("", "nobody")])
    }

    #[test]
    fn only_a_whole_known_key_has_a_label() {
        let keys = keys();
        assert_eq!(keys.label(b"good"), Some(&KeyLabel::new("client")));
        for other in [
            "",
            "goo",
            "goodd",
            "GOOD",
            "constructor",
            "__proto__",
            "good ",
        ] {
            assert_eq!(keys.label(other.as_bytes()), None, "{other}");
        }
        assert_eq!(keys.label(&[0xff, 0xfe]), None);
    }

    /// Keys set, limit set, access, key → status, or (let in) whether it is counted.
    type GateCase = (bool, bool, Access, Option<&'static str>, Result<bool, u16>);

    #[test]
    fn gate_table() {
        use Access::{Counted, Open, Protected};
        let cases: &[GateCase] = &[
            (false, false, Protected, None, Ok(false)),
            (false, false, Protected, Some("good"), Ok(false)),
            (true, false, Protected, None, Err(401)),
            (true, false, Protected, Some("bad"), Err(401)),
            (true, false, Protected, Some(""), Err(401)),
            (true, false, Protected, Some("__proto__"), Err(401)),
            (true, false, Protected, Some("good"), Ok(false)),
            (true, false, Open, None, Ok(false)),
            (true, false, Counted, None, Ok(false)),
            (true, true, Protected, None, Ok(true)),
            (true, true, Protected, Some("bad"), Ok(true)),
            (true, true, Protected, Some("good"), Ok(false)),
            (true, true, Counted, None, Ok(true)),
            (true, true, Open, None, Ok(false)),
            (false, true, Protected, Some("good"), Ok(true)),
        ];
        for (with_keys, with_limit, access, key, expected) in cases {
            let gate = Gate::new(
                with_keys.then(keys),
                with_limit.then_some(Allowance {
                    max: 1,
                    window_ms: 1000,
                }),
            );
            let address = IpAddr::from([127, 0, 0, 1]);
            let got = gate
                .admit(*access, key.map(str::as_bytes), address, 0)
                .map(|admission| admission.standing.is_some())
                .map_err(|error| error.status().as_u16());
            assert_eq!(
                &got, expected,
                "{with_keys} {with_limit} {access:?} {key:?}"
            );
        }
    }

    #[test]
    fn keyless_caller_is_refused_above_the_limit_and_a_known_key_is_not() {
        let allowance = Allowance {
            max: 1,
            window_ms: 1000,
        };
        let gate = Gate::new(Some(keys()), Some(allowance));
        let ask = |key, now| {
            let address = IpAddr::from([127, 0, 0, 1]);
            gate.admit(Access::Protected, key, address, now)
        };
        assert!(ask(None, 0).is_ok());
        assert!(matches!(ask(None, 1), Err(ApiError::RateLimited(_))));
        assert!(ask(Some(b"good".as_slice()), 1).is_ok());
        assert!(ask(None, 1000).is_ok());
    }

    #[test]
    fn unknown_paths_that_were_free_stay_free() {
        for (path, free) in [
            ("/", true),
            ("/livesxyz", true),
            ("/documentation/x", true),
            ("/nope", false),
            ("//", false),
        ] {
            assert_eq!(unrouted(path) == Access::Open, free, "{path}");
        }
    }

    #[test]
    fn a_bearer_counts_only_where_it_may_and_behind_the_own_header() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            let typed = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), value.parse().unwrap())
            };
            pairs.iter().map(typed).collect()
        };
        let (plain, bearer) = (Gate::default(), Gate::default().or_bearer());
        let own = headers(&[("x-api-key", "a"), ("authorization", "Bearer b")]);
        assert_eq!(
            (plain.key(&own), bearer.key(&own)),
            (Some(&b"a"[..]), Some(&b"a"[..]))
        );
        let other = headers(&[("authorization", "bearer  b ")]);
        assert_eq!(
            (plain.key(&other), bearer.key(&other)),
            (None, Some(&b"b"[..]))
        );
        for text in ["Basic b", "Bearer", ""] {
            let pair = [("authorization", text)];
            assert_eq!(bearer.key(&headers(&pair)), None, "{text}");
        }
    }
}
