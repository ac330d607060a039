//! The mints that were read before, for what is built without a question: a mint is what enough of a chain's providers
//! said of it last, each for itself.
//!
//! A step is built without its chain's name. So where chains say different things of one address, nothing is known.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use moka::sync::Cache;
use solana_pubkey::Pubkey;

use super::mint::Mint;

/// Mints that are remembered.
const REMEMBERED: u64 = 10_000;

static MEMORY: LazyLock<Memory> = LazyLock::new(|| Memory {
    required: Mutex::default(),
    said: Cache::new(REMEMBERED),
});

/// A provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderId {
    pub chain: Arc<str>,
    /// Its place in the operator's list.
    pub position: usize,
    pub name: Arc<str>,
}

/// What providers said.
struct Memory {
    /// How many providers of a chain must say the same.
    required: Mutex<BTreeMap<Arc<str>, usize>>,
    said: Cache<Pubkey, Arc<BTreeMap<ProviderId, Mint>>>,
}

/// Believes what so many providers of a chain say alike.
pub fn believe(chain: &str, required: usize) {
    MEMORY.required().insert(chain.into(), required);
}

/// A provider's word on a mint. It takes the place of the word that it gave before.
pub fn heard(provider: &ProviderId, mint: &Mint) {
    MEMORY.said.entry(mint.key).and_upsert_with(|said| {
        let mut said = said.map_or_else(BTreeMap::new, |said| (*said.into_value()).clone());
        said.insert(provider.clone(), mint.clone());
        Arc::new(said)
    });
}

/// A mint, as far as providers agree on it.
pub fn known(key: &Pubkey) -> Option<Mint> {
    let said = MEMORY.said.get(key)?;
    let required = MEMORY.required();
    let chains: BTreeSet<_> = said.keys().map(|one| &one.chain).collect();
    let agreed = chains.into_iter().filter_map(|chain| {
        let required = *required.get(chain)?;
        let own = || said.iter().filter(|(one, _)| one.chain == *chain);
        let alike = |mint: &Mint| own().filter(|(_, other)| *other == mint).count();
        let mut mints = own().map(|(_, mint)| mint);
        mints.find(|mint| alike(mint) >= required)
    });
    let mut agreed = agreed.collect::<Vec<_>>().into_iter();
    let first = agreed.next()?;
    agreed.all(|other| other == first).then(|| first.clone())
}

impl Memory {
    fn required(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, usize>> {
        self.required.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixtures::{costly, key, old},
        *,
    };

    fn provider(chain: &str, at: usize) -> ProviderId {
        ProviderId {
            chain: chain.into(),
            position: at,
            name: "host".into(),
        }
    }

    #[test]
    fn one_provider_of_three_says_nothing_and_hides_nothing() {
        let at = key(0xd1);
        let sound = Mint::read(&at, &old(6)).unwrap();
        let dear = Mint::read(&at, &costly(6, [(0, u64::MAX, 9_000); 2])).unwrap();
        believe("memory-two", 2);
        let says = |place, mint| heard(&provider("memory-two", place), mint);
        says(1, &dear);
        assert_eq!(known(&at), None);
        // However often, and whenever, it says so.
        says(1, &dear);
        says(2, &sound);
        assert_eq!(known(&at), None);
        says(3, &sound);
        says(1, &dear);
        assert_eq!(known(&at), Some(sound.clone()));
        // What has changed counts once enough have seen it.
        says(2, &dear);
        assert_eq!(known(&at), Some(dear));
        assert_eq!(known(&key(0xd2)), None);
    }

    #[test]
    fn chains_that_say_different_things_are_not_mixed() {
        let at = key(0xd3);
        let sound = Mint::read(&at, &old(6)).unwrap();
        let other = Mint::read(&at, &old(9)).unwrap();
        believe("memory-main", 2);
        // A chain that nobody trades on, and one provider of another one.
        heard(&provider("memory-none", 1), &other);
        heard(&provider("memory-main", 1), &sound);
        heard(&provider("memory-test", 2), &sound);
        assert_eq!(known(&at), None);
        heard(&provider("memory-main", 2), &sound);
        assert_eq!(known(&at), Some(sound.clone()));
        believe("memory-test", 1);
        assert_eq!(known(&at), Some(sound));
        heard(&provider("memory-test", 2), &other);
        assert_eq!(known(&at), None);
    }
}
