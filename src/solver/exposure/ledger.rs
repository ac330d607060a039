//! What the solver has paid in an hour, and how much it may. Pure: time is an argument.
//!
//! A fill enters before it is paid, so that two at once do not share what is left of a limit, and leaves when the
//! solver has been paid for it. The recipient counts as the user, or the depositor where the order makes calls: whoever
//! wants to use up another's limit has to pay him.

use std::collections::HashMap;

use alloy::primitives::B256;

use crate::store::rows::outlay::Outlay;

/// Seconds that a fill counts.
pub const WINDOW: u64 = 3_600;

/// Millionths of a dollar an hour; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub network: Option<u64>,
    pub currency: Option<u64>,
    pub user: Option<u64>,
}

impl Limits {
    /// What is left of them where `usd` millionths of a dollar are paid to the same user in other currencies.
    #[must_use]
    pub fn besides(self, usd: u64) -> Self {
        let left = |limit: Option<u64>| limit.map(|limit| limit.saturating_sub(usd));
        Self {
            network: left(self.network),
            currency: self.currency,
            user: left(self.user),
        }
    }
}

/// Fills of the last hour, by request.
#[derive(Debug, Default)]
pub struct Ledger(HashMap<B256, Outlay>);

impl Ledger {
    /// Whether `outlay` goes beyond a limit, besides what other requests were paid.
    pub fn exceeds(&self, request: Option<&B256>, outlay: &Outlay, limits: Limits) -> bool {
        let recent = |one: &Outlay| outlay.at.saturating_sub(one.at) < WINDOW;
        let others = || {
            let others = self.0.iter().filter(move |(id, _)| Some(*id) != request);
            others
                .map(|(_, one)| one)
                .filter(|one| recent(one) && one.network == outlay.network)
        };
        let beyond = |limit: Option<u64>, counts: fn(&Outlay, &Outlay) -> bool| {
            let spent = others().filter(|one| counts(one, outlay));
            let spent = spent.fold(outlay.usd, |sum, one| sum.saturating_add(one.usd));
            limit.is_some_and(|limit| spent > limit)
        };
        let user = limits.user.filter(|_| outlay.user.is_some());
        beyond(limits.network, |_, _| true)
            || beyond(limits.currency, |one, other| one.currency == other.currency)
            || beyond(user, |one, other| one.user == other.user)
    }

    /// Counts a fill; whether it is within the limits.
    pub fn enter(&mut self, request: B256, outlay: Outlay, limits: Limits) -> bool {
        let fits = !self.exceeds(Some(&request), &outlay, limits);
        if fits {
            self.0.insert(request, outlay);
        }
        fits
    }

    /// Counts what was paid before.
    pub fn know(&mut self, request: B256, outlay: Outlay) {
        self.0.insert(request, outlay);
    }

    /// What a request counts.
    pub fn of(&self, request: &B256) -> Option<&Outlay> {
        self.0.get(request)
    }

    /// A fill that was not paid after all.
    pub fn leave(&mut self, request: &B256) {
        self.0.remove(request);
    }

    /// Forgets fills that no longer count at `now` (unix seconds), and returns their requests.
    pub fn expire(&mut self, now: u64) -> Vec<B256> {
        let old = |one: &Outlay| now.saturating_sub(one.at) >= WINDOW;
        let gone: Vec<_> = self
            .0
            .iter()
            .filter(|(_, one)| old(one))
            .map(|(id, _)| *id)
            .collect();
        for id in &gone {
            self.0.remove(id);
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlay(at: u64, currency: &str, user: &str, usd: u64) -> Outlay {
        Outlay {
            at,
            network: "base".into(),
            currency: currency.into(),
            user: Some(user.into()),
            usd,
        }
    }

    fn id(number: u8) -> B256 {
        B256::repeat_byte(number)
    }

    #[test]
    fn each_limit_counts_what_it_is_about() {
        let limits = Limits {
            network: Some(100),
            currency: Some(60),
            user: Some(40),
        };
        let mut ledger = Ledger::default();
        assert!(ledger.enter(id(1), outlay(0, "a", "x", 40), limits));
        assert!(
            !ledger.enter(id(2), outlay(1, "a", "x", 1), limits),
            "the user's"
        );
        assert!(
            !ledger.enter(id(2), outlay(1, "a", "y", 21), limits),
            "the currency's"
        );
        assert!(ledger.enter(id(2), outlay(1, "a", "y", 20), limits));
        assert!(ledger.enter(id(3), outlay(1, "b", "z", 40), limits));
        assert!(
            !ledger.enter(id(4), outlay(1, "c", "w", 1), limits),
            "the network's"
        );
        let elsewhere = Outlay {
            network: "other".into(),
            ..outlay(1, "a", "x", 40)
        };
        assert!(ledger.enter(id(4), elsewhere, limits));
        assert!(ledger.enter(id(5), outlay(1, "a", "x", 1_000), Limits::default()));
    }

    #[test]
    fn what_is_paid_in_other_currencies_leaves_less_of_what_they_share() {
        let limits = Limits {
            network: Some(100),
            currency: Some(60),
            user: Some(80),
        };
        let ledger = Ledger::default();
        let fits = |usd, besides| {
            let limits = limits.besides(besides);
            !ledger.exceeds(None, &outlay(0, "a", "x", usd), limits)
        };
        assert!(fits(60, 0) && !fits(61, 0), "the currency's");
        assert!(fits(60, 20) && !fits(60, 21), "the user's");
        assert!(fits(0, 80) && !fits(1, u64::MAX));
        let nobodys = Outlay {
            user: None,
            ..outlay(0, "a", "x", 60)
        };
        let beyond = [40, 41].map(|more| ledger.exceeds(None, &nobodys, limits.besides(more)));
        assert_eq!(beyond, [false, true], "the network's");
    }

    #[test]
    fn what_nobody_has_counts_for_nobody() {
        let limits = Limits {
            network: Some(100),
            user: Some(40),
            ..Limits::default()
        };
        let nobodys = |usd| Outlay {
            user: None,
            ..outlay(0, "a", "x", usd)
        };
        let mut ledger = Ledger::default();
        assert!(ledger.enter(id(1), nobodys(50), limits));
        assert!(ledger.enter(id(2), nobodys(45), limits));
        assert!(!ledger.enter(id(3), nobodys(6), limits), "the network's");
        assert!(ledger.enter(id(3), outlay(0, "a", "x", 5), limits));
    }

    #[test]
    fn request_counts_once_and_for_an_hour() {
        let limits = Limits {
            network: Some(100),
            ..Limits::default()
        };
        let mut ledger = Ledger::default();
        assert!(ledger.enter(id(1), outlay(0, "a", "x", 100), limits));
        // It is looked at again and again while it waits.
        assert!(ledger.enter(id(1), outlay(10, "a", "x", 100), limits));
        let other = |at| outlay(at, "a", "y", 100);
        assert!(!ledger.enter(id(2), other(3_609), limits));
        assert!(ledger.enter(id(2), other(3_610), limits));
        assert_eq!(ledger.expire(3_610), [id(1)]);
        ledger.leave(&id(2));
        assert!(ledger.enter(id(3), other(3_611), limits));
    }
}
