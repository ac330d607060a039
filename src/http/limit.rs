//! Fixed window per caller. Pure: time is an argument, in milliseconds of any clock that never
//! goes back; memory is bounded whatever the number of callers.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
};

/// Callers with a window of their own; all beyond share one, so that memory stays bounded and a
/// flood of addresses cannot lift the limit.
const CALLERS: usize = 65_536;

/// Requests that a caller may make in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub max: u32,
    pub window_ms: u64,
}

/// Where a caller stands after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub allowed: bool,
    pub limit: u32,
    pub remaining: u32,
    /// Milliseconds until the window ends.
    pub reset_ms: u64,
}

impl Standing {
    /// What `x-ratelimit-reset` and `retry-after` say.
    pub fn reset_seconds(&self) -> u64 {
        self.reset_ms.div_ceil(1000)
    }
}

#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    count: u32,
}

/// One window per key (rate_limiter.json in the known answers is the truth).
#[derive(Debug)]
pub struct Limiter<K> {
    allowance: Allowance,
    windows: HashMap<K, Window>,
    others: Window,
    purged: u64,
}

/// For keys with allowances of their own, of up to a minute each.
impl<K: Eq + Hash> Default for Limiter<K> {
    fn default() -> Self {
        Self::new(Allowance {
            max: 0,
            window_ms: 60_000,
        })
    }
}

impl<K: Eq + Hash> Limiter<K> {
    pub fn new(allowance: Allowance) -> Self {
        Self {
            allowance,
            windows: HashMap::new(),
            others: Window { start: 0, count: 0 },
            purged: 0,
        }
    }

    /// Counts a request of `key` at `now`.
    pub fn check(&mut self, key: K, now: u64) -> Standing {
        self.count(key, self.allowance, now)
    }

    /// As [`Self::check`], with an allowance of the key's own.
    pub fn count(&mut self, key: K, allowance: Allowance, now: u64) -> Standing {
        self.make_room(now);
        let full = self.windows.len() >= CALLERS;
        let window = match self.windows.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(_) if full => &mut self.others,
            Entry::Vacant(entry) => entry.insert(Window {
                start: now,
                count: 0,
            }),
        };
        window.count_one(allowance, now)
    }

    /// Forgets ended windows, at most once per window length, when the table is full.
    fn make_room(&mut self, now: u64) {
        let length = self.allowance.window_ms;
        if self.windows.len() < CALLERS || now < self.purged.saturating_add(length) {
            return;
        }
        self.purged = now;
        self.windows.retain(|_, window| !window.ended(length, now));
    }
}

impl Window {
    fn ended(&self, length: u64, now: u64) -> bool {
        now >= self.start.saturating_add(length)
    }

    fn count_one(&mut self, allowance: Allowance, now: u64) -> Standing {
        if self.ended(allowance.window_ms, now) {
            *self = Window {
                start: now,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(1);
        Standing {
            allowed: self.count <= allowance.max,
            limit: allowance.max,
            remaining: allowance.max.saturating_sub(self.count),
            reset_ms: (self.start.saturating_add(allowance.window_ms)).saturating_sub(now),
        }
    }
}

/// Whose window a socket address counts in: the address itself, for IPv6 its /64, which is what one
/// caller has at hand.
pub fn caller(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let network = u128::from(v6) & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Allowance = Allowance {
        max: 2,
        window_ms: 1000,
    };

    #[test]
    fn window_allows_max_then_refuses_until_it_ends() {
        let mut limiter = Limiter::new(TWO);
        let seen: Vec<_> = [0, 1, 2, 999, 1000]
            .map(|now| limiter.check("a", now).allowed)
            .into();
        assert_eq!(seen, [true, true, false, false, true]);
    }

    #[test]
    fn callers_do_not_share_a_window() {
        let mut limiter = Limiter::new(TWO);
        limiter.check("a", 0);
        limiter.check("a", 0);
        assert!(limiter.check("b", 0).allowed);
        assert!(!limiter.check("a", 0).allowed);
    }

    #[test]
    fn many_callers_share_one_window_beyond_the_bound() {
        let mut limiter = Limiter::new(TWO);
        for caller in 0..CALLERS {
            assert!(limiter.check(caller, 5000).allowed);
        }
        let late: Vec<_> = (0..3)
            .map(|n| limiter.check(CALLERS + n, 5000).allowed)
            .collect();
        assert_eq!(late, [true, true, false]);
        assert_eq!(limiter.windows.len(), CALLERS);
        assert!(limiter.check(CALLERS, 6000).allowed);
        assert_eq!(limiter.windows.len(), 1);
    }

    #[test]
    fn addresses_of_one_caller_are_one() {
        let same = [
            ("1.2.3.4", "::ffff:1.2.3.4", true),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("1.2.3.4", "1.2.3.5", false),
            ("2001:db8::1", "2001:db8:0:1::1", false),
        ];
        for (a, b, expected) in same {
            let [a, b] = [a, b].map(|text| caller(text.parse().unwrap()));
            assert_eq!(a == b, expected, "{a} {b}");
        }
    }

    #[test]
    fn reset_rounds_up_to_seconds() {
        let at = |reset_ms| Standing {
            allowed: true,
            limit: 1,
            remaining: 0,
            reset_ms,
        };
        assert_eq!(
            [0, 1, 1000, 1001].map(|ms| at(ms).reset_seconds()),
            [0, 1, 1, 2]
        );
    }
}
