//! Which routes ask what of keys, and how much of them a key may have (integrator-api.md 2).

use crate::{
    http::{
        Access, Terms,
        auth::{Plan, Share},
        limit::Allowance,
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

/// What a key of `tier` may take.
pub fn plan(tier: Tier) -> Plan {
    match tier {
        Tier::Default => DEFAULT,
        Tier::Elevated => ELEVATED,
        Tier::Unlimited => &[],
    }
}

const DEFAULT: Plan = &[
    minutely(QUOTES, QUOTES, 50),
    minutely(REQUESTS, REQUESTS, 200),
    minutely(REQUESTS_V3, REQUESTS, 200),
    minutely(TRANSACTIONS, TRANSACTIONS, 200),
    minutely("", "", 200),
];

const ELEVATED: Plan = &[
    secondly(QUOTES, 10),
    secondly(REQUESTS, 10),
    secondly(REQUESTS_V3, 20),
    secondly(TRANSACTIONS, 10),
    minutely("", "", 200),
];

const fn minutely(bucket: &'static str, counter: &'static str, max: u32) -> Share {
    let window_ms = 60_000;
    let allowance = Allowance { max, window_ms };
    Share {
        bucket,
        counter,
        allowance,
    }
}

const fn secondly(bucket: &'static str, max: u32) -> Share {
    let window_ms = 1000;
    let allowance = Allowance { max, window_ms };
    Share {
        bucket,
        counter: bucket,
        allowance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// integrator-api.md 2: requests per window, and which routes share one.
    #[test]
    fn limits_are_those_of_the_document() {
        let rows = |tier| {
            let row = |share: &Share| {
                let Allowance { max, window_ms } = share.allowance;
                (share.bucket, share.counter, max, window_ms)
            };
            plan(tier).iter().map(row).collect::<Vec<_>>()
        };
        let minute = |bucket, counter, max| (bucket, counter, max, 60_000);
        let second = |bucket, max| (bucket, bucket, max, 1000);
        assert_eq!(
            rows(Tier::Default),
            [
                minute("quotes", "quotes", 50),
                minute("requests", "requests", 200),
                minute("requests-v3", "requests", 200),
                minute("transactions", "transactions", 200),
                minute("", "", 200),
            ]
        );
        assert_eq!(
            rows(Tier::Elevated),
            [
                second("quotes", 10),
                second("requests", 10),
                second("requests-v3", 20),
                second("transactions", 10),
                minute("", "", 200),
            ]
        );
        assert!(plan(Tier::Unlimited).is_empty());
    }
}
