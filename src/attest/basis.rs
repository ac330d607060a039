//! The basis of an answer: what it depends on and what can change. An answer that depends on rows of the journal alone
//! can be given again as it is while those rows stand.

use std::sync::{Mutex, PoisonError};

use crate::store::{Batch, Preconditions};

tokio::task_local! {
    /// `None` once the answer depends on more than rows of the journal.
    static BASIS: Mutex<Option<Preconditions>>;
}

/// Does `work`, which answers over evidence in place of the chains. Returns with its answer the preconditions under which
/// the journal signed; `None` where the answer depends on anything else that can change, or nothing was signed.
pub async fn of<T>(work: impl Future<Output = T>) -> (T, Option<Preconditions>) {
    let noted = async {
        let answer = work.await;
        (answer, changed(Option::take).flatten())
    };
    let empty = Mutex::new(Some(Preconditions::default()));
    let (answer, basis) = BASIS.scope(empty, noted).await;
    (answer, basis.filter(|basis| !basis.is_empty()))
}

/// Notes that the answer depends on the preconditions of `batch`.
pub fn add(batch: &Batch) {
    changed(|basis| {
        if let Some(basis) = basis {
            basis.extend(batch);
        }
    });
}

/// Notes that the answer depends on something that is no row of the journal. Whoever reads such a thing for an answer
/// says so.
pub fn not_only_rows() {
    changed(|basis| *basis = None);
}

/// `None` where nobody wants to know.
fn changed<T>(change: impl FnOnce(&mut Option<Preconditions>) -> T) -> Option<T> {
    let apply = |basis: &Mutex<_>| {
        let mut basis = basis.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut basis)
    };
    BASIS.try_with(apply).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Expect, Key, Kind, Store, memory::MemoryStore};

    fn absent(name: &str) -> Batch {
        Batch::new().expect(Key::new(Kind(7), name), Expect::Absent)
    }

    #[tokio::test]
    async fn an_answer_has_a_basis_unless_it_depends_on_more_than_rows() {
        let (answer, basis) = of(async {
            add(&absent("a"));
            add(&absent("b"));
            7
        })
        .await;
        let (store, basis) = (MemoryStore::new(), basis.unwrap());
        assert!(answer == 7 && basis.hold(&store).await.unwrap());
        let b = Batch::new().put(Key::new(Kind(7), "b"), Vec::new());
        store.commit(b).await.unwrap();
        assert!(!basis.hold(&store).await.unwrap());

        let (_, basis) = of(async {
            add(&absent("a"));
            not_only_rows();
            add(&absent("b"));
        })
        .await;
        assert!(basis.is_none());
        assert!(of(async {}).await.1.is_none());
        // Nobody wants to know.
        add(&absent("a"));
        not_only_rows();
    }
}
