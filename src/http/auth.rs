//! Keys, their scopes and shares, and the rate limits of callers without a key. [`Gate`] decides from the key and the
//! client address alone, before the handler does any work.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HeaderName},
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::{
    ApiError,
    limit::{KeyLabel, Limiter, Quota, Standing, Subject},
    locked,
    router::{Access, Terms},
};

/// The request header that carries a key.
pub const KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Names of the headers with a caller's standing: limit, remaining requests, seconds until the window resets.
pub type StandingNames = [&'static str; 3];
/// The names that oracles of the network use.
const PLAIN: StandingNames = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];
/// draft-ietf-httpapi-ratelimit-headers, 03.
pub const RATE_LIMIT: StandingNames = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];

/// How many requests of a bucket a key may make. Shares with the same `counter` are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub bucket: &'static str,
    pub counter: &'static str,
    pub quota: Quota,
}

/// The shares of a key, or of callers without one. A bucket without a share is not counted.
pub type Plan = Arc<[Share]>;

/// A key that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub label: KeyLabel,
    pub scopes: Arc<[&'static str]>,
    pub plan: Plan,
    /// The key is unknown from this time on; same unit as the `now` of [`Table::find`].
    pub expires_at: Option<u64>,
}

/// Keys by their SHA-256 digests, so that the time of a lookup reveals nothing about a key.
#[derive(Default)]
pub struct Table(HashMap<[u8; 32], Arc<Known>>);

impl Table {
    pub fn new(keys: impl IntoIterator<Item = ([u8; 32], Known)>) -> Self {
        let shared = keys
            .into_iter()
            .map(|(digest, known)| (digest, known.into()));
        Self(shared.collect())
    }

    /// The key with this digest, if it has not expired.
    pub fn find(&self, digest: &[u8; 32], now: u64) -> Option<Arc<Known>> {
        let (stored, known) = self.0.get_key_value(digest)?;
        let alive = known.expires_at.is_none_or(|end| now < end);
        (bool::from(stored.ct_eq(digest)) && alive).then(|| known.clone())
    }
}

type Lookup = dyn Fn(&[u8; 32]) -> Option<Arc<Known>> + Send + Sync;

/// The known keys of a listener.
#[derive(Clone)]
pub struct Keys(Arc<Lookup>);

impl Keys {
    /// Builds keys without scopes and without limits from pairs of key and label. An empty key never matches.
    pub fn new<K: AsRef<str>, L: AsRef<str>>(pairs: impl IntoIterator<Item = (K, L)>) -> Self {
        let known = pairs
            .into_iter()
            .filter(|(key, _)| !key.as_ref().is_empty())
            .map(|(key, label)| {
                let known = Known {
                    label: KeyLabel::new(label.as_ref()),
                    scopes: Arc::default(),
                    plan: Plan::default(),
                    expires_at: None,
                };
                (digest(key.as_ref().as_bytes()), known)
            });
        let table = Table::new(known);
        Self::looked_up(move |digest| table.find(digest, 0))
    }

    /// Keys that change at run time: every request calls `lookup` with the SHA-256 of its key.
    pub fn looked_up(
        lookup: impl Fn(&[u8; 32]) -> Option<Arc<Known>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(lookup))
    }

    /// The entry of `key`, if the key is known.
    pub fn find(&self, key: &[u8]) -> Option<Arc<Known>> {
        (self.0)(&digest(key))
    }
}

fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}

/// The result of [`Gate::admit`] for an admitted request.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    pub key: Option<Arc<Known>>,
    /// `None` where no limit applies.
    pub standing: Option<Standing>,
    /// Lets a handler count the request more than once.
    pub toll: Toll,
}

/// The result of [`Gate::admit`] for a refused request.
#[derive(Debug)]
pub struct Denial {
    pub error: ApiError,
    pub standing: Option<Standing>,
}

/// The caller and the [`Share::counter`] that its requests are counted in.
type Counter = (Subject, &'static str);
type Windows = Arc<Mutex<Limiter<Counter>>>;
type Count = fn(&mut Limiter<Counter>, Counter, Quota, u32, u64) -> Standing;

/// Counts an admitted request again, for requests that weigh more than one; does nothing where no limit applies.
#[derive(Clone, Debug, Default)]
pub struct Toll(Option<Arc<Counted>>);

#[derive(Debug)]
struct Counted {
    windows: Windows,
    key: Counter,
    quota: Quota,
    now: u64,
    /// The standing after the last charge.
    standing: Mutex<Option<Standing>>,
}

impl Toll {
    /// Counts the request `more` additional times: see [`Limiter::charge`].
    pub fn charge(&self, more: u32) {
        self.again(more, Limiter::charge);
    }

    /// Counts the request `more` additional times; when the caller has fewer requests left, counts nothing and
    /// returns its standing: see [`Limiter::take`].
    pub fn take(&self, more: u32) -> Result<(), Standing> {
        match self.again(more, Limiter::take) {
            Some(standing) if !standing.allowed => Err(standing),
            _ => Ok(()),
        }
    }

    fn again(&self, more: u32, count: Count) -> Option<Standing> {
        let counted = self.0.as_deref().filter(|_| more > 0)?;
        let mut windows = locked(&counted.windows);
        let key = counted.key.clone();
        let standing = count(&mut windows, key, counted.quota, more, counted.now);
        *locked(&counted.standing) = Some(standing);
        Some(standing)
    }

    /// The standing after the last charge.
    pub fn standing(&self) -> Option<Standing> {
        self.0.as_deref().and_then(|it| *locked(&it.standing))
    }
}

/// The keys and the limits of one listener.
pub struct Gate {
    keys: Option<Keys>,
    bearer: bool,
    keyless: Option<Plan>,
    /// Windows of callers without a key.
    callers: Windows,
    /// Windows of keys.
    counters: Windows,
    /// The headers that carry the standing, as [`Self::with_names`] sets them.
    pub names: StandingNames,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new(None, None)
    }
}

impl Gate {
    /// `keys`: with `None` no route requires a key. `keyless`: the gate admits callers without a known key within
    /// this limit; with `None` it refuses them (or, without keys, does not count them).
    pub fn new(keys: Option<Keys>, keyless: Option<Quota>) -> Self {
        let all = |quota| {
            let (bucket, counter) = ("", "");
            Plan::from([Share {
                bucket,
                counter,
                quota,
            }])
        };
        Self::planned(keys, keyless.map(all))
    }

    /// As [`Self::new`], with a plan instead of one limit for callers without a key.
    pub fn planned(keys: Option<Keys>, keyless: Option<Plan>) -> Self {
        let windows = keyless.iter().flat_map(|plan| plan.iter());
        let longest = windows.map(|share| share.quota.window_ms).max();
        Self {
            keys,
            bearer: false,
            callers: Arc::new(Mutex::new(Limiter::new(Quota {
                max: 0,
                window_ms: longest.unwrap_or(60_000),
            }))),
            keyless,
            counters: Arc::default(),
            names: PLAIN,
        }
    }

    /// Whether the listener has keys.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Also accepts `authorization: Bearer <key>` where there is no `x-api-key`, or an empty one.
    #[must_use]
    pub fn or_bearer(self) -> Self {
        Self {
            bearer: true,
            ..self
        }
    }

    /// Sets the headers in which answers carry the caller's standing.
    #[must_use]
    pub fn with_names(self, names: StandingNames) -> Self {
        Self { names, ..self }
    }

    /// The key that the request carries, known or not. An empty `x-api-key` is none.
    pub fn key<'a>(&self, headers: &'a HeaderMap) -> Option<&'a [u8]> {
        if let Some(key) = headers.get(KEY).filter(|key| !key.is_empty()) {
            return Some(key.as_bytes());
        }
        let shown = headers.get(AUTHORIZATION).filter(|_| self.bearer)?;
        let (scheme, key) = shown.as_bytes().split_at_checked(7)?;
        scheme
            .eq_ignore_ascii_case(b"bearer ")
            .then(|| key.trim_ascii())
    }

    /// Admits the request, or refuses it with 401, 403 or 429. Refused requests count too. A key that has used up its
    /// own share falls back to the share of callers without a key, so that a key never has less. `now` is in
    /// milliseconds of a monotonic clock.
    pub fn admit(
        &self,
        access: Access,
        key: Option<&[u8]>,
        address: IpAddr,
        now: u64,
    ) -> Result<Admission, Denial> {
        let shown = key.filter(|key| !key.is_empty());
        let known = shown.and_then(|key| self.keys.as_ref()?.find(key));
        let unused = known.as_deref().is_some_and(|known| unused(known, access));
        let (shown, known) = if unused { (None, None) } else { (shown, known) };
        let shared = || {
            let plan = self.keyless.as_deref()?;
            counted(&self.callers, plan, Subject::of(address), access, now)
        };
        let own = |known: &Known| {
            let subject = Subject::Key(known.label.clone());
            counted(&self.counters, &known.plan, subject, access, now)
        };
        let counted = match (&known, access) {
            (_, Access::Open) => None,
            (None, _) => shared(),
            (Some(known), _) => match own(known) {
                Some(own) if !own.0.allowed => shared().filter(|it| it.0.allowed).or(Some(own)),
                own => own,
            },
        };
        let (standing, toll) = counted.unzip();
        let error = match standing {
            Some(standing) if !standing.allowed => Some(ApiError::RateLimited(standing)),
            _ => self.refusal(access, shown.is_some(), known.as_deref()),
        };
        match error {
            Some(error) => Err(Denial { error, standing }),
            None => Ok(Admission {
                key: known,
                standing,
                toll: toll.unwrap_or_default(),
            }),
        }
    }

    fn refusal(&self, access: Access, shown: bool, known: Option<&Known>) -> Option<ApiError> {
        let closed = match (access, known) {
            (Access::Keyed(Terms { scope, .. }), Some(known)) => {
                let missing = scope.filter(|scope| !known.scopes.contains(scope));
                return missing.map(ApiError::Forbidden);
            }
            (Access::Keyed(terms), None) => terms.required || (shown && terms.scope.is_some()),
            (Access::Protected, None) => self.has_keys() && self.keyless.is_none(),
            _ => false,
        };
        closed.then_some(ApiError::Unauthorized)
    }
}

/// Counts a request in the share of `plan` that applies to its route; `None` without such a share.
fn counted(
    windows: &Windows,
    plan: &[Share],
    subject: Subject,
    access: Access,
    now: u64,
) -> Option<(Standing, Toll)> {
    let share = share(plan, access)?;
    let (key, quota) = ((subject, share.counter), share.quota);
    let standing = locked(windows).count(key.clone(), quota, now);
    let counted = Counted {
        windows: windows.clone(),
        key,
        quota,
        now,
        standing: Mutex::default(),
    };
    Some((standing, Toll(Some(counted.into()))))
}

/// Whether the key lacks the route's scope while the route requires no key: the gate then treats it as no key.
fn unused(known: &Known, access: Access) -> bool {
    let Access::Keyed(terms) = access else {
        return false;
    };
    let missing = |scope| !known.scopes.contains(&scope);
    !terms.required && terms.scope.is_some_and(missing)
}

/// The share of a plan that a route counts in: the one of the route's bucket, else the one without a bucket.
fn share(plan: &[Share], access: Access) -> Option<&Share> {
    let bucket = match access {
        Access::Keyed(terms) => terms.bucket,
        _ => "",
    };
    let named = plan.iter().find(|share| share.bucket == bucket);
    named.or_else(|| plan.iter().find(|share| share.bucket.is_empty()))
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
        let label = |key: &[u8]| keys.find(key).map(|known| known.label.clone());
        assert_eq!(label(b"good"), Some(KeyLabel::new("client")));
        for other in [
            "",
            "goo",
            "goodd",
            "GOOD",
            "constructor",
            "__proto__",
            "good ",
        ] {
            assert_eq!(label(other.as_bytes()), None, "{other}");
        }
        assert_eq!(label(&[0xff, 0xfe]), None);
    }

    /// Keys set, limit set, access, key → status, or (if admitted) whether the request counts.
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
                with_limit.then_some(Quota {
                    max: 1,
                    window_ms: 1000,
                }),
            );
            let address = IpAddr::from([127, 0, 0, 1]);
            let got = gate
                .admit(*access, key.map(str::as_bytes), address, 0)
                .map(|admission| admission.standing.is_some())
                .map_err(|denial| denial.error.status().as_u16());
            assert_eq!(
                &got, expected,
                "{with_keys} {with_limit} {access:?} {key:?}"
            );
        }
    }

    #[test]
    fn keyless_caller_is_refused_above_the_limit_and_a_known_key_is_not() {
        let quota = Quota {
            max: 1,
            window_ms: 1000,
        };
        let gate = Gate::new(Some(keys()), Some(quota));
        let ask = |key, now| {
            let address = IpAddr::from([127, 0, 0, 1]);
            gate.admit(Access::Protected, key, address, now)
        };
        assert!(ask(None, 0).is_ok());
        let denial = ask(None, 1).unwrap_err();
        assert!(matches!(denial.error, ApiError::RateLimited(_)));
        assert!(denial.standing.is_some());
        assert!(ask(Some(b"good".as_slice()), 1).is_ok());
        assert!(ask(None, 1000).is_ok());
    }

    const fn window(max: u32, window_ms: u64) -> Quota {
        Quota { max, window_ms }
    }

    const fn share(bucket: &'static str, counter: &'static str, max: u32) -> Share {
        Share {
            bucket,
            counter,
            quota: window(max, 1000),
        }
    }

    const PLAN: [Share; 4] = [
        share("quote", "quote", 1),
        share("a", "both", 2),
        share("b", "both", 2),
        share("", "", 3),
    ];

    /// `good` may quote, `poor` has no scope, `old` has expired.
    fn gate(keyless: Option<Quota>) -> Gate {
        let known = |key: &str, scopes: &[&'static str], expires_at| {
            let known = Known {
                label: KeyLabel::new(key),
                scopes: scopes.into(),
                plan: PLAN.into(),
                expires_at,
            };
            (digest(key.as_bytes()), known)
        };
        let table = Table::new([
            known("good", &["quote"], None),
            known("poor", &[], Some(8)),
            known("old", &["quote"], Some(7)),
        ]);
        let keys = Keys::looked_up(move |digest| table.find(digest, 7));
        Gate::new(Some(keys), keyless)
    }

    const fn keyed(scope: Option<&'static str>, bucket: &'static str, required: bool) -> Access {
        Access::Keyed(Terms {
            scope,
            bucket,
            required,
        })
    }

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn routes_with_terms_table() {
        let optional = keyed(Some("quote"), "quote", false);
        let required = keyed(Some("quote"), "quote", true);
        let free = keyed(None, "a", false);
        for (access, key, expected) in [
            (optional, None, None),
            (optional, Some(""), None),
            (optional, Some("good"), None),
            (optional, Some("poor"), None),
            (optional, Some("old"), Some(401)),
            (optional, Some("__proto__"), Some(401)),
            (required, None, Some(401)),
            (required, Some(""), Some(401)),
            (required, Some("good"), None),
            (required, Some("poor"), Some(403)),
            (required, Some("bad"), Some(401)),
            (free, None, None),
            (free, Some("bad"), None),
            (free, Some("poor"), None),
            (Access::Counted, Some("bad"), None),
            (Access::Open, Some("bad"), None),
        ] {
            for keyless in [None, Some(window(1, 1000))] {
                let key = key.map(str::as_bytes);
                let got = gate(keyless).admit(access, key, HERE, 0);
                let status = got.err().map(|denial| denial.error.status().as_u16());
                assert_eq!(status, expected, "{access:?} {key:?}");
            }
        }
    }

    #[test]
    fn a_key_has_buckets_of_its_own_and_unknown_keys_count_for_their_address() {
        let gate = gate(Some(window(2, 1000)));
        let ask = |access, key: &str, now| {
            let got = gate.admit(access, Some(key.as_bytes()), HERE, now);
            match got {
                Ok(admission) => (200, admission.standing.map(|standing| standing.remaining)),
                Err(denial) => {
                    let remaining = denial.standing.map(|standing| standing.remaining);
                    (denial.error.status().as_u16(), remaining)
                }
            }
        };
        let (quote, a, b) = (
            keyed(Some("quote"), "quote", false),
            keyed(None, "a", false),
            keyed(None, "b", false),
        );
        assert_eq!(ask(quote, "bad", 0), (401, Some(1)));
        assert_eq!(ask(quote, "worse", 0), (401, Some(0)));
        assert_eq!(ask(quote, "bad", 0), (429, Some(0)));
        // The key's other shares are used up.
        assert_eq!(ask(quote, "good", 0), (200, Some(0)));
        assert_eq!(ask(quote, "good", 1), (429, Some(0)));
        assert_eq!(ask(quote, "poor", 1), (429, Some(0)));
        let required = keyed(Some("quote"), "quote", true);
        assert_eq!(ask(required, "poor", 1), (403, Some(0)));
        assert_eq!(ask(a, "good", 1), (200, Some(1)));
        assert_eq!(ask(b, "good", 1), (200, Some(0)));
        assert_eq!(ask(a, "good", 1), (429, Some(0)));
        // A bucket without a share of its own counts in the common share.
        assert_eq!(ask(keyed(None, "c", false), "good", 1), (200, Some(2)));
        assert_eq!(ask(Access::Counted, "good", 1), (200, Some(1)));
        assert_eq!(ask(Access::Open, "good", 1), (200, None));
        assert_eq!(ask(quote, "good", 1000), (200, Some(0)));
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
            assert_eq!(
                matches!(Access::unrouted(path), Access::Open),
                free,
                "{path}"
            );
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
        let empty = headers(&[("x-api-key", ""), ("authorization", "Bearer b")]);
        assert_eq!(
            (plain.key(&empty), bearer.key(&empty)),
            (None, Some(&b"b"[..]))
        );
        assert_eq!(bearer.key(&headers(&[("x-api-key", "")])), None);
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
