//! Which routes ask what of keys, and how much of them a key may have (guide: protocol 11.2).

use crate::{
    http::{
        Access, Terms,
        auth::{Plan, Share},
        limit::Quota,
    },
    integrator::{Scope, Tier},
};

/// Buckets of routes; all other routes are in the one without a name.
const QUOTES: &str = "quotes";
const REQUESTS: &str = "requests";
const REQUESTS_V3: &str = "requests-v3";
const TRANSACTIONS: &str = "transactions";

/// Quotes: a key is welcome, not needed.
pub const QUOTE: Access = keyed(Some(Scope::Quote), QUOTES, false);
/// `/transactions/status`: any key, or none.
pub const TRANSACTION_STATUS: Access = keyed(None, TRANSACTIONS, false);
/// `/requests` and `/requests/v2`.
pub const LISTING: Access = keyed(Some(Scope::RequestsRead), REQUESTS, false);
/// `/requests/v3`: nobody without a key.
pub const LISTING_V3: Access = keyed(Some(Scope::RequestsRead), REQUESTS_V3, true);

const fn keyed(scope: Option<Scope>, bucket: &'static str, required: bool) -> Access {
    let scope = match scope {
        Some(scope) => Some(scope.text()),
        None => None,
    };
    Access::Keyed(Terms {
        scope,
        bucket,
        required,
    })
}

/// What callers may take.
#[derive(Clone, Debug)]
pub struct Plans {
    /// Each address without a key, and each with one that has used up its own.
    pub keyless: Plan,
    pub default: Plan,
    pub elevated: Plan,
}

/// The limits by who and what, as operators name them: requests in so many milliseconds.
pub const LIMITS: [(&str, &str, u32, u64); 12] = [
    ("keyless", "quotes", 60, MINUTE),
    ("keyless", "others", 120, MINUTE),
    ("default", "quotes", 60, MINUTE),
    ("default", "requests", 200, MINUTE),
    ("default", "transactions", 200, MINUTE),
    ("default", "others", 200, MINUTE),
    ("elevated", "quotes", 10, SECOND),
    ("elevated", "requests", 10, SECOND),
    ("elevated", "requests-v3", 20, SECOND),
    ("elevated", "transactions", 10, SECOND),
    ("elevated", "others", 200, MINUTE),
    // Sockets say so much, whoever has them.
    ("address", "messages", 1200, MINUTE),
];
const MINUTE: u64 = 60_000;
const SECOND: u64 = 1000;

/// Whether a limit has this name.
pub fn is_limit(name: &str) -> bool {
    let mut known = LIMITS.iter().map(|(who, what, ..)| (*who, *what));
    name.split_once('.')
        .is_some_and(|parts| known.any(|it| it == parts))
}

/// The limit that stands under these names; `own` are the operator's.
pub fn limit(own: &[(String, Quota)], who: &str, what: &str) -> Option<Quota> {
    let mut usual = LIMITS.iter();
    let usual = usual.find(|(a, b, ..)| (*a, *b) == (who, what));
    let usual = usual.map(|(_, _, max, window_ms)| Quota {
        max: *max,
        window_ms: *window_ms,
    });
    let name = format!("{who}.{what}");
    let own = own.iter().rev().find(|(known, _)| *known == name);
    usual.map(|usual| own.map_or(usual, |(_, own)| *own))
}

impl Plans {
    /// With the operator's limits instead of the usual ones.
    pub fn of(own: &[(String, Quota)]) -> Self {
        let share = |who: &str, what: &str, bucket, counter| {
            let quota = limit(own, who, what)?;
            Some(Share {
                bucket,
                counter,
                quota,
            })
        };
        let plan = |who: &str, listings: &str| -> Plan {
            let v3 = if listings == REQUESTS {
                REQUESTS
            } else {
                REQUESTS_V3
            };
            let shares = [
                share(who, "quotes", QUOTES, QUOTES),
                share(who, "requests", REQUESTS, REQUESTS),
                share(who, listings, REQUESTS_V3, v3),
                share(who, "transactions", TRANSACTIONS, TRANSACTIONS),
                share(who, "others", "", ""),
            ];
            shares.into_iter().flatten().collect()
        };
        Self {
            keyless: plan("keyless", REQUESTS),
            default: plan("default", REQUESTS),
            elevated: plan("elevated", REQUESTS_V3),
        }
    }

    /// What a key of `tier` may take.
    pub fn of_tier(&self, tier: Tier) -> Plan {
        match tier {
            Tier::Default => self.default.clone(),
            Tier::Elevated => self.elevated.clone(),
            Tier::Unlimited => Plan::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// guide: protocol 11.2: requests per window, and which routes share one.
    #[test]
    fn limits_are_those_of_the_document() {
        let plans = Plans::of(&[]);
        let rows = |plan: &Plan| {
            let row = |share: &Share| {
                let Quota { max, window_ms } = share.quota;
                (share.bucket, share.counter, max, window_ms)
            };
            plan.iter().map(row).collect::<Vec<_>>()
        };
        let minute = |bucket, counter, max| (bucket, counter, max, 60_000);
        let second = |bucket, max| (bucket, bucket, max, 1000);
        assert_eq!(
            rows(&plans.of_tier(Tier::Default)),
            [
                minute("quotes", "quotes", 60),
                minute("requests", "requests", 200),
                minute("requests-v3", "requests", 200),
                minute("transactions", "transactions", 200),
                minute("", "", 200),
            ]
        );
        assert_eq!(
            rows(&plans.of_tier(Tier::Elevated)),
            [
                second("quotes", 10),
                second("requests", 10),
                second("requests-v3", 20),
                second("transactions", 10),
                minute("", "", 200),
            ]
        );
        assert!(plans.of_tier(Tier::Unlimited).is_empty());
        assert_eq!(
            rows(&plans.keyless),
            [minute("quotes", "quotes", 60), minute("", "", 120)]
        );
    }

    #[test]
    fn operators_change_each_limit_by_its_name() {
        let own = |max| Quota { max, window_ms: 7 };
        let plans = Plans::of(&[
            ("keyless.quotes".to_owned(), own(1)),
            ("elevated.requests-v3".to_owned(), own(2)),
            ("elevated.requests-v3".to_owned(), own(3)),
        ]);
        assert_eq!(plans.keyless[0].quota, own(1));
        assert_eq!(plans.elevated[2].quota, own(3));
        assert_eq!(plans.default, Plans::of(&[]).default);
        assert_eq!(limit(&[], "nobody", "quotes"), None);
    }
}
