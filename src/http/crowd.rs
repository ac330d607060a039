//! How many of something each address has at one time: connections, requests, sockets. What one caller
//! has at hand is an address, or of IPv6 a /64; whoever has a /48 has 65,536 of those and gets a few
//! times as much, not all there is. Memory: an entry for each address that has something.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use super::limit::{Caller, caller};

/// Times the share of a /64 that the /48 around it has.
const SITE: usize = 4;

/// See the module.
#[derive(Debug)]
pub struct Crowd {
    most: usize,
    /// By caller (`false`) and by what the caller's connection to the internet comes with (`true`).
    counts: Mutex<HashMap<(Caller, bool), usize>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Member {
    crowd: Arc<Crowd>,
    caller: Caller,
}

impl Crowd {
    /// At most `most` of each address.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            counts: Mutex::default(),
        })
    }

    /// One more of `address`; `None` when it has as many as it may.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Member> {
        let caller = caller(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let room = |(key, most): &((Caller, bool), usize)| {
            counts.get(key).is_none_or(|count| count < most)
        };
        let keys = keys(caller, self.most);
        if !keys.iter().all(room) {
            return None;
        }
        for (key, _) in keys {
            *counts.entry(key).or_default() += 1;
        }
        Some(Member {
            crowd: self.clone(),
            caller,
        })
    }
}

/// Where a caller is counted, and up to what.
fn keys(caller: Caller, most: usize) -> [((Caller, bool), usize); 2] {
    [
        ((caller, false), most),
        ((caller.connection(), true), most.saturating_mul(SITE)),
    ]
}

impl Drop for Member {
    fn drop(&mut self) {
        let counts = &self.crowd.counts;
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, _) in keys(self.caller, 0) {
            let left = counts.get_mut(&key).map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            if left == 0 {
                counts.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_share_and_a_site_a_few_times_as_much() {
        let crowd = Crowd::new(2);
        let enter = |text: &str| crowd.enter(text.parse().unwrap());
        let (first, second) = (enter("1.2.3.4").unwrap(), enter("::ffff:1.2.3.4").unwrap());
        assert!(enter("1.2.3.4").is_none());
        assert!(enter("1.2.3.5").is_some());
        drop(first);
        assert!(enter("1.2.3.4").is_some());
        // Four /64s of one /48 have all that it gets.
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
        assert!(crowd.counts.lock().unwrap().is_empty());
    }
}
