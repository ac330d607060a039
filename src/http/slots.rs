//! How many protected requests of a listener are in progress at one time. Half of them is for callers with a key, so that
//! strangers whose requests wait do not stop those.

use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};

/// The slots of a listener's protected requests.
#[derive(Debug)]
pub struct Slots {
    all: Semaphore,
    /// A caller without a key needs one of these as well.
    strangers: Semaphore,
}

/// A slot; dropping it gives it back.
#[derive(Debug)]
pub struct Slot<'a> {
    _one: SemaphorePermit<'a>,
    _stranger: Option<SemaphorePermit<'a>>,
}

impl Slots {
    /// `most` slots. With `keys`, callers without one have half of them, rounded up; where nobody has a key, all.
    pub fn new(most: usize, keys: bool) -> Self {
        let strangers = if keys { most.div_ceil(2) } else { most };
        Self {
            all: Semaphore::new(most),
            strangers: Semaphore::new(strangers),
        }
    }

    /// Takes a slot for a caller, with a known key or without one; an error when there is none for it.
    pub fn take(&self, keyed: bool) -> Result<Slot<'_>, TryAcquireError> {
        let stranger = match keyed {
            true => None,
            false => Some(self.strangers.try_acquire()?),
        };
        Ok(Slot {
            _one: self.all.try_acquire()?,
            _stranger: stranger,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_have_half_of_the_slots_and_keys_have_all() {
        let slots = Slots::new(4, true);
        let strangers = [slots.take(false).unwrap(), slots.take(false).unwrap()];
        assert!(slots.take(false).is_err());
        let keys = [slots.take(true).unwrap(), slots.take(true).unwrap()];
        assert!(slots.take(true).is_err());
        drop(strangers);
        let more = [slots.take(true).unwrap(), slots.take(true).unwrap()];
        // None is left for strangers, and their own are not used up by that.
        assert!(slots.take(false).is_err());
        drop((keys, more));
        assert!(slots.take(false).is_ok());
    }

    #[test]
    fn without_keys_everybody_has_all_slots() {
        let slots = Slots::new(2, false);
        let _held = [slots.take(false).unwrap(), slots.take(false).unwrap()];
        assert!(slots.take(false).is_err());
    }
}
