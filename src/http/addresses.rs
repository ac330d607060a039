//! Limits per client address: connections, requests and sockets at one time, and messages over sockets. A caller is
//! an IPv4 address or an IPv6 /64. A holder of a /48 (a site) has 65,536 of those, so the site as a whole gets `SITE`
//! times the limit; of what all callers share ([`AddressLimit::of`]) no more than half. Memory: one entry per address
//! that holds something.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    limit::{Caller, Limiter, Quota, caller},
    locked,
};

/// A /48 gets this many times the limit of a /64.
const SITE: usize = 4;

/// Counts what each client address holds at one time and refuses more than the limit.
#[derive(Debug)]
pub struct AddressLimit {
    /// The limit of a caller and of its [`site`](Caller::site).
    most: [usize; 2],
    counts: Mutex<HashMap<Counted, usize>>,
}

/// Whose units are counted. An IPv4 address is its own site: without the two kinds its units would be counted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Counted {
    Caller(Caller),
    Site(Caller),
}

impl Counted {
    /// The two that a caller's units are counted for.
    fn of(caller: Caller) -> [Self; 2] {
        [Self::Caller(caller), Self::Site(caller.site())]
    }
}

/// One counted unit of an address; dropping it gives the unit back.
#[derive(Debug)]
pub struct AddressPermit {
    limit: Arc<AddressLimit>,
    caller: Caller,
}

impl AddressLimit {
    /// Allows at most `most` units per address.
    pub fn new(most: usize) -> Arc<Self> {
        Self::of(usize::MAX, most)
    }

    /// As [`Self::new`], of `all` units that every caller shares: a /48 gets at most half of them, or as much as one
    /// address.
    pub fn of(all: usize, most: usize) -> Arc<Self> {
        let site = most.saturating_mul(SITE).min(most.max(all / 2));
        Arc::new(Self {
            most: [most, site],
            counts: Mutex::default(),
        })
    }

    /// Counts one more unit of `address`; `None` when the address is at its limit.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<AddressPermit> {
        let caller = caller(address);
        let mut counts = locked(&self.counts);
        let counted = Counted::of(caller);
        let below =
            |(one, most): (&Counted, &usize)| counts.get(one).is_none_or(|count| count < most);
        if !counted.iter().zip(&self.most).all(below) {
            return None;
        }
        for one in counted {
            *counts.entry(one).or_default() += 1;
        }
        Some(AddressPermit {
            limit: self.clone(),
            caller,
        })
    }
}

impl AddressPermit {
    /// The same bytes, which keep the unit counted until the last copy of them is dropped.
    pub fn holding(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes {
            bytes,
            _permit: self,
        })
    }
}

/// Bytes that count as a unit of an address.
struct CountedBytes {
    bytes: Bytes,
    _permit: AddressPermit,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut counts = locked(&self.limit.counts);
        for one in Counted::of(self.caller) {
            if let Entry::Occupied(mut count) = counts.entry(one) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }
}

/// Counts the messages that each address sends over all its sockets.
#[derive(Debug)]
pub struct MessageLimit {
    windows: Mutex<Limiter<Caller>>,
    begun: Instant,
}

impl MessageLimit {
    pub fn new(each: Quota) -> Arc<Self> {
        Arc::new(Self {
            windows: Mutex::new(Limiter::new(each)),
            begun: Instant::now(),
        })
    }

    /// Counts one message of `caller` and returns whether it is within the limit.
    fn count(&self, caller: Caller) -> bool {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        locked(&self.windows).check(caller, now).allowed
    }
}

/// The permit of a long-lived answer: a stream or a WebSocket.
pub struct SocketPermit {
    surface: &'static str,
    _of_all: OwnedSemaphorePermit,
    of_address: AddressPermit,
    messages: Arc<MessageLimit>,
}

impl SocketPermit {
    pub fn new(
        surface: &'static str,
        of_all: OwnedSemaphorePermit,
        of_address: AddressPermit,
        messages: Arc<MessageLimit>,
    ) -> Arc<Self> {
        metrics::gauge!("intentd_http_sockets", "surface" => surface).increment(1.0);
        Arc::new(Self {
            surface,
            _of_all: of_all,
            of_address,
            messages,
        })
    }

    /// Counts a message of the peer and returns whether it is within the limit.
    pub fn count_message(&self) -> bool {
        self.messages.count(self.of_address.caller)
    }
}

impl Drop for SocketPermit {
    fn drop(&mut self) {
        metrics::gauge!("intentd_http_sockets", "surface" => self.surface).decrement(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_a_site_a_few_times_as_much() {
        let limit = AddressLimit::new(2);
        let enter = |text: &str| limit.enter(text.parse().unwrap());
        let (first, second) = (enter("1.2.3.4").unwrap(), enter("::ffff:1.2.3.4").unwrap());
        assert!(enter("1.2.3.4").is_none());
        assert!(enter("1.2.3.5").is_some());
        drop(first);
        assert!(enter("1.2.3.4").is_some());
        // Four /64s of one /48 use up its limit.
        let of = |n: u32| enter(&format!("2001:db8:1:{n:x}::{n:x}"));
        let mut held = Vec::new();
        for n in 0..4 {
            held.extend([of(n).unwrap(), of(n).unwrap()]);
            assert!(of(n).is_none());
        }
        assert!(of(5).is_none());
        assert!(enter("2001:db8:2::1").is_some());
        held.clear();
        assert!(of(5).is_some());
        drop(second);
        assert!(limit.counts.lock().unwrap().is_empty());
    }

    #[test]
    fn a_site_takes_no_more_than_half_of_what_all_share() {
        let limit = AddressLimit::of(6, 2);
        let enter = |text: &str| limit.enter(text.parse().unwrap());
        let addresses = ["2001:db8:1:1::1", "2001:db8:1:1::1", "2001:db8:1:2::1"];
        let _held = addresses.map(|text| enter(text).unwrap());
        assert!(enter("2001:db8:1:2::1").is_none());
        assert!(enter("2001:db8:2:1::1").is_some());
        // One address has its share all the same.
        let limit = AddressLimit::of(6, 4);
        let _held = [(); 4].map(|()| limit.enter("1.2.3.4".parse().unwrap()).unwrap());
        assert!(limit.enter("1.2.3.4".parse().unwrap()).is_none());
    }

    #[test]
    fn bytes_count_until_the_last_copy_is_dropped() {
        let limit = AddressLimit::new(1);
        let enter = || limit.enter("1.2.3.4".parse().unwrap());
        let mut left = enter().unwrap().holding(Bytes::from_static(b"answer"));
        let sent = left.split_to(3);
        assert_eq!((&sent[..], &left[..]), (&b"ans"[..], &b"wer"[..]));
        drop(sent);
        assert!(enter().is_none());
        drop(left);
        assert!(enter().is_some());
    }
}
