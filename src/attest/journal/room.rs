//! Frees payments that serve one statement and are needed by another.
//!
//! Anybody may claim a deposit with any payment of its order, so the payment of a true claim may already serve
//! another statement. The journal keeps the other payments that a statement was shown. If one of them is free or can
//! be freed, it serves that statement instead; each payment still serves one statement. The solver's own payments are
//! kept apart, so that strangers with tiny payments fill only their own part.

use std::collections::HashSet;

use futures::future::BoxFuture;

use super::{Journal, JournalError, commit::serving};
use crate::store::rows::{
    consumption,
    entry::{self, Entry},
};

/// The most statements that one claim may move to other payments.
const DEEP: usize = 16;

impl Journal {
    /// Moves the statement `holder` to other payments so that `what` becomes free; returns whether to try again: it is
    /// free now, or a row changed meanwhile.
    pub(super) async fn freed(&self, what: &str, holder: &str) -> Result<bool, JournalError> {
        self.free(what, holder, &mut HashSet::new()).await
    }

    fn free<'a>(
        &'a self,
        what: &'a str,
        holder: &'a str,
        asked: &'a mut HashSet<String>,
    ) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(async move {
            if asked.len() >= DEEP || !asked.insert(holder.to_owned()) {
                return Ok(false);
            }
            let Some(found) = self.store.read(&entry::key(holder)).await? else {
                return Ok(false);
            };
            let entry = Entry::decode(&found)?;
            for shown in &entry.shown {
                let other = !shown.payments.iter().any(|payment| payment == what);
                if other && self.all_free(&shown.payments, holder, asked).await? {
                    let batch = serving(holder, (&entry, found), shown)?;
                    // Where a row changed after it was read, the commit is refused.
                    self.store.commit(batch).await?;
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Whether each of `payments` is free or can be freed, or a row changed meanwhile.
    async fn all_free(
        &self,
        payments: &[String],
        holder: &str,
        asked: &mut HashSet<String>,
    ) -> Result<bool, JournalError> {
        for payment in payments {
            let Some(row) = self.store.read(&consumption::key(payment)).await? else {
                continue;
            };
            let by = consumption::decode(&row)?;
            if by != holder && !self.free(payment, &by, asked).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
