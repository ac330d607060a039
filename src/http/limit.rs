//! A fixed-window rate limit per caller. Time is an argument, in milliseconds of any monotonic clock. Memory is
//! bounded for any number of callers.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt::{self, Display, Formatter},
    hash::Hash,
    iter::successors,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

/// The most windows of a table; all other callers share one more window, so that memory stays bounded and a flood of
/// addresses cannot lift the limit.
const CALLERS: usize = 65_536;
/// From this many remaining windows on, [`Table::make_room`] also drops those that were charged ahead of time.
const MANY: usize = CALLERS / 8;
/// The most callers of one /48 with a window of their own; its other callers share the window of the /48, so that one
/// internet connection cannot fill the table with its addresses.
const OF_A_SITE: usize = 256;
/// The same for a /32, the size of a network operator's allocation; the windows of its /48s count towards it.
const OF_AN_OPERATOR: usize = 4_096;
/// The most milliseconds beyond now that a heavy request may charge ahead; at least one window.
const AHEAD: u64 = 60_000;

/// The requests that a caller may make in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub max: u32,
    pub window_ms: u64,
}

/// A caller's state after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub allowed: bool,
    pub limit: u32,
    pub remaining: u32,
    /// Milliseconds until the window ends.
    pub reset_ms: u64,
}

impl Standing {
    /// The value of `x-ratelimit-reset` and `retry-after`, in seconds.
    pub fn reset_seconds(&self) -> u64 {
        self.reset_ms.div_ceil(1000)
    }
}

#[derive(Clone, Copy, Debug)]
struct Window {
    start: u64,
    count: u32,
}

/// What a window belongs to.
pub trait Key: Eq + Hash + Clone {
    /// The wider key around this one, and how many keys within it may have a window of their own; the others share the
    /// window of the wider one.
    fn wider(&self) -> Option<(Self, usize)> {
        None
    }
}

impl Key for String {}

/// The wider keys around `key`, the narrowest first.
fn around<K: Key>(key: &K) -> impl Iterator<Item = (K, usize)> + use<K> {
    successors(key.wider(), |(wider, _)| wider.wider())
}

/// One window per key (rate_limiter.json of the known answers is normative).
#[derive(Debug)]
pub struct Limiter<K> {
    quota: Quota,
    /// Windows of keys without a wider one: IPv4 addresses and names.
    single: Table<K>,
    /// Windows of keys with a wider one (IPv6). A holder of such keys has many, so they have a table of their own and
    /// cannot displace the others.
    nested: Table<K>,
}

#[derive(Debug)]
struct Table<K> {
    windows: HashMap<K, Window>,
    /// The number of windows within each wider key.
    within: HashMap<K, usize>,
    /// The shared window of all keys beyond [`CALLERS`].
    others: Window,
    /// When [`Self::make_room`] last ran.
    purged: u64,
}

/// For keys with quotas of their own, with windows of up to a minute.
impl<K: Key> Default for Limiter<K> {
    fn default() -> Self {
        Self::new(Quota {
            max: 0,
            window_ms: 60_000,
        })
    }
}

impl<K: Key> Limiter<K> {
    pub fn new(quota: Quota) -> Self {
        Self {
            quota,
            single: Table::default(),
            nested: Table::default(),
        }
    }

    /// Counts one request of `key` at `now`.
    pub fn check(&mut self, key: K, now: u64) -> Standing {
        self.count(key, self.quota, now)
    }

    /// As [`Self::check`], with the key's own quota.
    pub fn count(&mut self, key: K, quota: Quota, now: u64) -> Standing {
        self.window(key, now).count_one(quota, now)
    }

    /// Counts `more` requests for one that was already admitted. What exceeds the window's quota is taken from
    /// the next windows, up to `AHEAD`.
    pub fn charge(&mut self, key: K, quota: Quota, more: u32, now: u64) -> Standing {
        self.window(key, now).charge(quota, more, now)
    }

    /// Counts `more` requests for one that was already admitted if the window has room for all of them, else none. An
    /// amount above a whole window is allowed and counted as [`Self::charge`] does.
    pub fn take(&mut self, key: K, quota: Quota, more: u32, now: u64) -> Standing {
        let window = self.window(key, now);
        match more < quota.max {
            true => window.take(quota, more, now),
            false => Standing {
                allowed: true,
                ..window.charge(quota, more, now)
            },
        }
    }

    fn window(&mut self, key: K, now: u64) -> &mut Window {
        let table = match key.wider() {
            Some(_) => &mut self.nested,
            None => &mut self.single,
        };
        table.window(key, self.quota.window_ms, now)
    }
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self {
            windows: HashMap::new(),
            within: HashMap::new(),
            others: Window { start: 0, count: 0 },
            purged: 0,
        }
    }
}

impl<K: Key> Table<K> {
    /// The window that `key` counts in; `length` is in milliseconds.
    fn window(&mut self, key: K, length: u64, now: u64) -> &mut Window {
        let key = self.counted_as(key, length, now);
        let full = self.windows.len() >= CALLERS;
        match self.windows.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(_) if full => &mut self.others,
            Entry::Vacant(entry) => {
                for (wider, _) in around(entry.key()) {
                    *self.within.entry(wider).or_default() += 1;
                }
                entry.insert(Window {
                    start: now,
                    count: 0,
                })
            }
        }
    }

    /// The key whose window `key` counts in: its own, or the narrowest of the wider ones that has a window or is not full.
    fn counted_as(&mut self, key: K, length: u64, now: u64) -> K {
        if self.windows.contains_key(&key) {
            return key;
        }
        let is_full = |this: &Self, (wider, most): &(K, usize)| {
            this.within.get(wider).is_some_and(|count| count >= most)
        };
        if self.windows.len() >= CALLERS || around(&key).any(|wider| is_full(self, &wider)) {
            self.make_room(length, now);
        }
        around(&key).fold(key, |found, wider| {
            match !self.windows.contains_key(&found) && is_full(self, &wider) {
                true => wider.0,
                false => found,
            }
        })
    }

    /// Drops ended windows, and windows of callers with one request whose last quarter of a window had none. If many
    /// windows remain, it also drops those charged ahead, so that nobody can keep the table full with a few requests.
    fn make_room(&mut self, length: u64, now: u64) {
        let pause = length / 4;
        if now < self.purged.saturating_add(pause) {
            return;
        }
        self.purged = now;
        self.windows.retain(|_, window| match window.count {
            0 | 1 => !window.ended(pause, now),
            _ => !window.ended(length, now),
        });
        if self.windows.len() >= MANY {
            self.windows.retain(|_, window| window.start <= now);
        }
        self.within.clear();
        for (wider, _) in self.windows.keys().flat_map(around) {
            *self.within.entry(wider).or_default() += 1;
        }
    }
}

impl Window {
    fn ended(&self, length: u64, now: u64) -> bool {
        now >= self.start.saturating_add(length)
    }

    fn count_one(&mut self, quota: Quota, now: u64) -> Standing {
        if self.ended(quota.window_ms, now) {
            *self = Window {
                start: now,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(1);
        self.standing(quota, now)
    }

    fn charge(&mut self, quota: Quota, more: u32, now: u64) -> Standing {
        let full_windows = |count: u32| count.saturating_sub(1).checked_div(quota.max);
        let before = full_windows(self.count).unwrap_or_default();
        self.count = self.count.saturating_add(more);
        let beyond = full_windows(self.count).unwrap_or_default() - before;
        let longer = quota.window_ms.saturating_mul(beyond.into());
        let most = now.saturating_add(AHEAD.max(quota.window_ms));
        self.start = self.start.saturating_add(longer).min(most.max(self.start));
        self.standing(quota, now)
    }

    fn take(&mut self, quota: Quota, more: u32, now: u64) -> Standing {
        let after = self.count.saturating_add(more);
        let room = after <= quota.max;
        if room {
            self.count = after;
        }
        Standing {
            allowed: room,
            ..self.standing(quota, now)
        }
    }

    fn standing(&self, quota: Quota, now: u64) -> Standing {
        Standing {
            allowed: self.count <= quota.max,
            limit: quota.max,
            remaining: quota.max.saturating_sub(self.count),
            reset_ms: (self.start.saturating_add(quota.window_ms)).saturating_sub(now),
        }
    }
}

/// The caller that a socket address counts for: the IPv4 address, or the /64 of an IPv6 address, since one caller has
/// a whole /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The address; zero beyond `bits`.
    prefix: Ipv6Addr,
    /// The length of the prefix; 128 for an IPv4 address.
    bits: u8,
}

/// The [`Caller`] of an address; an IPv4-mapped address counts as IPv4.
pub fn caller(address: IpAddr) -> Caller {
    match address.to_canonical() {
        IpAddr::V6(v6) => Caller::of(v6, 64),
        IpAddr::V4(v4) => Caller::of(v4.to_ipv6_mapped(), 128),
    }
}

impl Caller {
    fn of(address: Ipv6Addr, bits: u8) -> Self {
        let mask = u128::MAX.checked_shl(128 - u32::from(bits));
        let prefix = Ipv6Addr::from(u128::from(address) & mask.unwrap_or_default());
        Self { prefix, bits }
    }

    /// What one internet connection has: a /48 for IPv6, else the address.
    pub fn site(self) -> Self {
        match self.bits {
            64 => Self::of(self.prefix, 48),
            _ => self,
        }
    }
}

impl Display for Caller {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.prefix, self.bits)
    }
}

impl Key for Caller {
    fn wider(&self) -> Option<(Self, usize)> {
        match self.bits {
            64 => Some((Self::of(self.prefix, 48), OF_A_SITE)),
            48 => Some((Self::of(self.prefix, 32), OF_AN_OPERATOR)),
            _ => None,
        }
    }
}

/// The name of a known key in logs; it never contains the key.
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

/// The unit whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A caller without a key.
    Address(Caller),
    Key(KeyLabel),
}

impl Subject {
    /// The subject of a caller without a key at `address`.
    pub fn of(address: IpAddr) -> Self {
        Self::Address(caller(address))
    }
}

impl Key for Subject {
    fn wider(&self) -> Option<(Self, usize)> {
        match self {
            Self::Address(address) => {
                let (wider, most) = address.wider()?;
                Some((Self::Address(wider), most))
            }
            Self::Key(_) => None,
        }
    }
}

/// A key within one of several counters.
impl<K: Key> Key for (K, &'static str) {
    fn wider(&self) -> Option<(Self, usize)> {
        let (wider, most) = self.0.wider()?;
        Some(((wider, self.1), most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Quota = Quota {
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
    fn what_is_heavy_takes_the_windows_after_its_own() {
        let mut limiter = Limiter::new(TWO);
        assert!(limiter.check("a", 0).allowed);
        // Seven in all: the rest of this window, two more windows and half of another.
        let standing = limiter.charge("a", TWO, 6, 0);
        assert_eq!((standing.remaining, standing.reset_ms), (0, 4_000));
        let seen = [1, 999, 2_000, 3_999, 4_000].map(|now| limiter.check("a", now).allowed);
        assert_eq!(seen, [false, false, false, false, true]);
        // Refused requests do not extend the window, and other keys have their own.
        assert!(limiter.check("b", 1).allowed);
        // A charge that fits into its window does not affect the next one.
        let standing = limiter.charge("b", TWO, 1, 1);
        assert_eq!((standing.remaining, standing.reset_ms), (0, 1_000));
        assert!(limiter.check("b", 1_001).allowed);
    }

    #[test]
    fn what_is_dear_is_counted_whole_or_not_at_all() {
        let five = Quota { max: 5, ..TWO };
        let mut limiter = Limiter::new(five);
        let mut ask = |more, now| {
            assert!(limiter.check("a", now).allowed);
            let standing = limiter.take("a", five, more, now);
            (standing.allowed, standing.remaining, standing.reset_ms)
        };
        assert_eq!(ask(2, 0), (true, 2, 1_000));
        // The request itself counts; refused charges do not extend the window.
        assert_eq!(ask(2, 100), (false, 1, 900));
        assert_eq!(ask(0, 200), (true, 0, 800));
        // Five fit into a window of five; six do not fit into any and also take the next window.
        assert_eq!(ask(4, 1_000), (true, 0, 1_000));
        assert_eq!(ask(5, 2_000), (true, 0, 2_000));
        let seen = [3_999, 4_000].map(|now| limiter.check("a", now).allowed);
        assert_eq!(seen, [false, true]);
    }

    #[test]
    fn what_is_heavy_takes_a_minute_at_most() {
        let mut limiter = Limiter::new(TWO);
        for _ in 0..3 {
            limiter.check("a", 0);
            let standing = limiter.charge("a", TWO, 20_000, 0);
            assert_eq!((standing.allowed, standing.reset_ms), (false, 61_000));
        }
        let seen = [60_999, 61_000].map(|now| limiter.check("a", now).allowed);
        assert_eq!(seen, [false, true]);
        // At least one window, where that is longer.
        let hour = Quota {
            max: 2,
            window_ms: 3_600_000,
        };
        let mut limiter = Limiter::new(hour);
        limiter.check("a", 0);
        let standing = limiter.charge("a", hour, 20_000, 0);
        assert_eq!(standing.reset_ms, 2 * hour.window_ms);
    }

    #[test]
    fn what_is_charged_ahead_makes_room_first() {
        let mut limiter = Limiter::new(TWO);
        for caller in 0..CALLERS {
            limiter.check(caller, 5_000);
            limiter.charge(caller, TWO, 20, 5_000);
        }
        assert!(!limiter.check(7, 5_500).allowed);
        let fresh: Vec<_> = (0..3)
            .map(|_| limiter.check(CALLERS + 1, 5_600).allowed)
            .collect();
        assert_eq!(fresh, [true, true, false]);
        assert_eq!(limiter.check(CALLERS + 2, 5_600).remaining, 1);
        assert_eq!(limiter.single.windows.len(), 2);
    }

    #[test]
    fn callers_do_not_share_a_window() {
        let mut limiter = Limiter::new(TWO);
        limiter.check("a", 0);
        limiter.check("a", 0);
        assert!(limiter.check("b", 0).allowed);
        assert!(!limiter.check("a", 0).allowed);
    }

    impl Key for &'static str {}
    impl Key for usize {}

    #[test]
    fn a_site_fills_no_table() {
        let mut limiter = Limiter::new(TWO);
        let of = |n: u32| caller(format!("2001:db8:7:{n:x}::1").parse().unwrap());
        for n in 0..65_536 {
            limiter.check(of(n), 5000);
        }
        assert_eq!(limiter.nested.windows.len(), OF_A_SITE + 1);
        // The first callers have windows of their own; the others count as one caller.
        assert!(limiter.check(of(3), 5000).allowed);
        assert!(!limiter.check(of(60_000), 5000).allowed);
        let neighbour = caller("2001:db8:8::1".parse().unwrap());
        assert!(limiter.check(neighbour, 5000).allowed);
        // A full site recovers.
        assert!(limiter.check(of(60_000), 6000).allowed);
        assert!(limiter.nested.windows.len() <= 2);
    }

    #[test]
    fn an_operators_addresses_fill_no_table() {
        let mut limiter = Limiter::new(TWO);
        // A /40: 256 sites, each with as many networks as may have windows of their own.
        for n in 0..65_536_u32 {
            let (site, network) = (n / 256, n % 256);
            let text = format!("2001:db8:{site:x}:{network:x}::1");
            for bucket in ["quotes", "others"] {
                limiter.check((caller(text.parse().unwrap()), bucket), 5_000);
            }
        }
        assert!(limiter.nested.windows.len() <= 2 * (OF_AN_OPERATOR + 257));
        let mut allowed = |text: &str| {
            let who = (caller(text.parse().unwrap()), "quotes");
            limiter.check(who, 5_000).allowed
        };
        // A new caller from elsewhere has a window of its own; the operator's other networks count as one caller.
        for (fresh, times) in [
            ("192.0.2.1", 2),
            ("2001:db9::1", 2),
            ("2001:db8:ffff::1", 0),
        ] {
            assert_eq!((0..3).filter(|_| allowed(fresh)).count(), times, "{fresh}");
        }
        assert!(allowed("2001:db8:0:3::1"), "it was there before");
        // IPv4 has a table of its own, whatever the number of IPv6 operators.
        for n in 0..CALLERS {
            let text = format!("2a{:02x}:{:x}:{n:x}::1", n % 64, n % 128);
            for bucket in ["quotes", "others"] {
                limiter.check((caller(text.parse().unwrap()), bucket), 5_001);
            }
        }
        assert_eq!(limiter.nested.windows.len(), CALLERS);
        let who = (caller("192.0.2.2".parse().unwrap()), "quotes");
        let seen: Vec<_> = (0..3).map(|_| limiter.check(who, 5_002).allowed).collect();
        assert_eq!(seen, [true, true, false]);
        // The table recovers.
        let who = (caller("2001:db8:ffff::1".parse().unwrap()), "quotes");
        assert!(limiter.check(who, 6_003).allowed && limiter.nested.windows.len() < 10);
    }

    #[test]
    fn two_operators_leave_others_by_ipv6_their_windows() {
        let mut limiter = Limiter::new(TWO);
        // As many keys as two operators may have windows for, each twice.
        for n in 0..2 * OF_AN_OPERATOR {
            let (site, network) = (n / OF_A_SITE, n % OF_A_SITE);
            let text = format!("2001:db{:x}:{site:x}:{network:x}::1", site % 2);
            for _ in 0..2 {
                limiter.check(caller(text.parse().unwrap()), 5_000);
            }
        }
        assert!(limiter.nested.windows.len() >= 2 * OF_AN_OPERATOR - 64);
        for fresh in ["2a00::1", "2a00:0:0:1::1", "2a01::1"] {
            let who = caller(fresh.parse().unwrap());
            let seen: Vec<_> = (0..3).map(|_| limiter.check(who, 5_900).allowed).collect();
            assert_eq!(seen, [true, true, false], "{fresh}");
        }
    }

    #[test]
    fn who_asked_once_makes_room_for_neighbours_before_who_asks_on() {
        let mut limiter = Limiter::new(TWO);
        let of = |n: usize| caller(format!("2001:db8:7:{n:x}::1").parse().unwrap());
        for n in 0..OF_A_SITE {
            limiter.check(of(n), 5_000);
        }
        for _ in 0..2 {
            limiter.check(of(7), 5_001);
        }
        // At first it shares the site's window, later it has its own.
        assert_eq!(limiter.check(of(300), 5_002).remaining, 1);
        assert_eq!(limiter.check(of(301), 5_003).remaining, 0);
        let seen: Vec<_> = (0..3)
            .map(|_| limiter.check(of(302), 5_300).allowed)
            .collect();
        assert_eq!(seen, [true, true, false]);
        assert!(!limiter.check(of(7), 5_301).allowed, "asks on");
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
        assert_eq!(limiter.single.windows.len(), CALLERS);
        assert!(limiter.check(CALLERS, 6000).allowed);
        assert_eq!(limiter.single.windows.len(), 1);
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
            assert_eq!(a == b, expected, "{a:?} {b:?}");
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
