//! Integrators' keys as the listener looks them up, always by the newest rows: a revoked key is refused before the
//! operator has the answer to his command.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::{
    api::intents::access::Plans,
    http::{KeyLabel, Keys, Known, auth::Table},
    integrator::{Integrator, Scope},
    store::integrators::{ByLabel, Integrators},
};

/// The lookup table of one version of the integrators.
struct Index {
    /// Kept alive, so that a newer version has another address.
    integrators: Arc<ByLabel>,
    table: Table,
}

impl Index {
    fn of(integrators: Arc<ByLabel>, plans: &Plans) -> Self {
        let keys = integrators.values().flat_map(|one| known(one, plans));
        Self {
            table: Table::new(keys),
            integrators,
        }
    }
}

/// Looks keys up in the newest version of `integrators`, with the `plans` of their tiers. `clock` in unix milliseconds.
pub fn keys(integrators: &Integrators, plans: Plans, clock: fn() -> u64) -> Keys {
    let integrators = integrators.clone();
    let index = ArcSwap::from_pointee(Index::of(integrators.all(), &plans));
    Keys::looked_up(move |digest| {
        let integrators = integrators.all();
        let mut current = index.load_full();
        if !Arc::ptr_eq(&current.integrators, &integrators) {
            current = Arc::new(Index::of(integrators, &plans));
            index.store(current.clone());
        }
        current.table.find(digest, clock())
    })
}

fn known(one: &Integrator, plans: &Plans) -> Vec<([u8; 32], Known)> {
    if one.revoked_at.is_some() {
        return Vec::new();
    }
    let scopes: Arc<[_]> = one.scopes.iter().copied().map(Scope::text).collect();
    let keys = one.keys.iter().map(|key| {
        let known = Known {
            label: KeyLabel::new(&one.label),
            scopes: scopes.clone(),
            plan: plans.of_tier(one.tier),
            expires_at: key.expires_at,
        };
        (key.digest, known)
    });
    keys.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        integrator::{Tier, change::usual_scopes, key::ApiKey},
        store::{integrators::IntegratorsError, memory::MemoryStore},
    };

    const NOW: u64 = 1_000_000;

    #[tokio::test]
    async fn a_change_counts_from_the_next_request_on() {
        let integrators = Integrators::open(Arc::new(MemoryStore::new()));
        let integrators = integrators.await.unwrap();
        let keys = keys(&integrators, Plans::of(&[]), || NOW);
        let text = |n: u8| ApiKey::new(&[n; 32]);
        let label = |n: u8| {
            let found = keys.find(text(n).expose().as_bytes());
            found.map(|known| known.label.as_str().to_owned())
        };
        assert_eq!(label(1), None);
        let change = async |to: Integrator| {
            let changed = integrators.change::<IntegratorsError>("app", |_| Ok(to.clone()));
            Integrator::clone(&changed.await.unwrap())
        };
        let app = Integrator::new("app", usual_scopes(), Tier::Default, text(1).digest(), 5);
        let app = change(app.unwrap()).await;
        assert_eq!(label(1).as_deref(), Some("app"));
        let known = keys.find(text(1).expose().as_bytes()).unwrap();
        assert_eq!(known.scopes[..], ["quote", "requests:read"]);
        // The stored digest is no key.
        assert_eq!(keys.find(&text(1).digest()), None);
        let app = change(app.rotated(text(2).digest(), 1, NOW).unwrap()).await;
        assert_eq!((label(1).is_some(), label(2).is_some()), (true, true));
        let app = change(app.rotated(text(3).digest(), 0, NOW).unwrap()).await;
        assert_eq!((label(1), label(2), label(3).is_some()), (None, None, true));
        change(app.revoked(NOW).unwrap()).await;
        assert_eq!(label(3), None);
    }

    #[tokio::test]
    async fn a_grace_ends_by_the_clock() {
        let integrators = Integrators::open(Arc::new(MemoryStore::new()));
        let integrators = integrators.await.unwrap();
        let [old, new] = [1, 2].map(|n| ApiKey::new(&[n; 32]));
        let app = Integrator::new("app", usual_scopes(), Tier::Default, old.digest(), 5);
        let app = app.unwrap().rotated(new.digest(), 100, NOW).unwrap();
        let added = integrators.change::<IntegratorsError>("app", |_| Ok(app.clone()));
        added.await.unwrap();
        for (clock, alive) in [((|| NOW + 99) as fn() -> u64, true), (|| NOW + 100, false)] {
            let keys = keys(&integrators, Plans::of(&[]), clock);
            let found = |key: &ApiKey| keys.find(key.expose().as_bytes()).is_some();
            assert_eq!((found(&old), found(&new)), (alive, true));
        }
    }
}
