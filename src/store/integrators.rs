//! Integrators in the store. All code reads and changes them through this module, which holds all of them in memory.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use super::{Batch, Store, StoreError, rows::RowError, rows::integrator as rows};
use crate::integrator::Integrator;

/// Integrators by label.
pub type ByLabel = BTreeMap<String, Arc<Integrator>>;

/// Why integrators cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegratorsError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Row(#[from] RowError),
}

/// Reads and changes integrators, and announces changes.
#[derive(Clone)]
pub struct Integrators {
    store: Arc<dyn Store>,
    all: watch::Sender<Arc<ByLabel>>,
    /// One change at a time, so that the memory never returns to an older state.
    turn: Arc<Mutex<()>>,
}

impl Integrators {
    /// Reads all integrators into memory.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, IntegratorsError> {
        let mut all = ByLabel::new();
        for (_, bytes) in store.scan(rows::range()).await? {
            let one = rows::decode(&bytes)?;
            all.insert(one.label.clone(), Arc::new(one));
        }
        let all = watch::Sender::new(Arc::new(all));
        let turn = Arc::default();
        Ok(Self { store, all, turn })
    }

    /// The current integrators.
    pub fn all(&self) -> Arc<ByLabel> {
        self.all.borrow().clone()
    }

    /// Wakes when an integrator has changed.
    pub fn changes(&self) -> watch::Receiver<Arc<ByLabel>> {
        self.all.subscribe()
    }

    /// Changes the integrator under `label`. `change` runs again when another process changed the row meanwhile; its
    /// error changes nothing. When this returns, the change is durable and visible ([`Self::changes`]); a caller that
    /// stops waiting does not undo it.
    pub async fn change<E: From<IntegratorsError>>(
        &self,
        label: &str,
        change: impl Fn(Option<Integrator>) -> Result<Integrator, E>,
    ) -> Result<Arc<Integrator>, E> {
        let key = rows::key(label);
        loop {
            let turn = self.turn.clone().lock_owned().await;
            let found = self
                .store
                .read(&key)
                .await
                .map_err(IntegratorsError::from)?;
            let before = found.as_deref().map(rows::decode).transpose();
            let after = change(before.map_err(IntegratorsError::from)?)?;
            let bytes = rows::encode(&after).map_err(IntegratorsError::from)?;
            let batch = Batch::new().swap(key.clone(), found, bytes);
            let kept = self.clone().keep(batch, after, turn);
            let kept = tokio::spawn(kept).await;
            let kept = kept.map_err(|_| IntegratorsError::Store(StoreError::Closed))?;
            if let Some(after) = kept? {
                return Ok(after);
            }
        }
    }

    /// `None` when the stored row has changed meanwhile.
    async fn keep(
        self,
        batch: Batch,
        after: Integrator,
        _turn: OwnedMutexGuard<()>,
    ) -> Result<Option<Arc<Integrator>>, IntegratorsError> {
        if !self.store.commit(batch).await?.is_applied() {
            return Ok(None);
        }
        let after = Arc::new(after);
        self.all.send_modify(|all| {
            Arc::make_mut(all).insert(after.label.clone(), after.clone());
        });
        Ok(Some(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{integrator::Tier, store::memory::MemoryStore};

    fn app() -> Integrator {
        Integrator {
            label: "app".into(),
            scopes: [crate::integrator::Scope::Quote].into(),
            tier: Tier::Default,
            keys: Vec::new(),
            webhook: None,
            wallet: None,
            proved_at: 0,
            created_at: 5,
            revoked_at: None,
        }
    }

    #[tokio::test]
    async fn changes_at_the_same_time_are_all_in_the_book() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let integrators = Integrators::open(store.clone()).await.unwrap();
        let add = integrators.change::<IntegratorsError>("app", |_| Ok(app()));
        add.await.unwrap();
        let count = async || {
            let more = |found: Option<Integrator>| {
                let found = found.unwrap();
                let created_at = found.created_at + 1;
                Ok::<_, IntegratorsError>(Integrator {
                    created_at,
                    ..found
                })
            };
            integrators.change("app", more).await.unwrap();
        };
        futures::future::join_all((0..20).map(|_| count())).await;
        assert_eq!(integrators.all()["app"].created_at, 25);
        assert_eq!(
            Integrators::open(store).await.unwrap().all(),
            integrators.all()
        );
    }

    #[tokio::test]
    async fn what_is_changed_is_there_after_a_restart_and_what_is_refused_is_not() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let integrators = Integrators::open(store.clone()).await.unwrap();
        let mut changes = integrators.changes();
        let added = integrators.change::<IntegratorsError>("app", |_| Ok(app()));
        added.await.unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        let no = || IntegratorsError::Store(StoreError::Closed);
        let refused = integrators.change("app", |_| Err::<Integrator, _>(no()));
        assert_eq!(refused.await, Err(no()));
        assert!(!changes.has_changed().unwrap());
        let again = Integrators::open(store).await.unwrap();
        assert_eq!(again.all(), integrators.all());
        assert_eq!(*again.all()["app"], app());
    }
}
