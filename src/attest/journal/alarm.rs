//! What the operator is told of a statement that contradicts a signed one.

use super::JournalError;
use crate::attest::statement::Statement;

/// Counts and logs a conflict. One between what clients ask for raises no alarm: whoever makes a key, or shows a
/// returned deposit, can ask for two statements that contradict each other.
pub(super) fn alarm(statement: &Statement, error: &JournalError) {
    let JournalError::Conflict {
        key,
        existing,
        holder,
        ..
    } = error
    else {
        return;
    };
    let kind = statement.kind().to_owned();
    if is_clients(statement, holder.as_deref()) {
        metrics::counter!("intentd_contradicting_clients_total", "kind" => kind).increment(1);
        tracing::info!(key, existing, "refused to sign what a client contradicts");
        return;
    }
    metrics::counter!("intentd_conflicting_statements_total", "kind" => kind).increment(1);
    tracing::error!(key, existing, "refused to sign a conflicting statement");
}

/// The kinds of statements by which clients spend a balance that the hub shows. A client's signature or a returned
/// deposit allows each of them.
const SPENDING: [&str; 4] = ["initiation", "authorization", "transfer", "payload"];

/// Whether a conflict is between what clients ask for: the statement rests on no block, so that only its client's
/// signature says what it says; or it spends a balance, and so does the statement that has what it needs. `holder` is
/// the key of that one; `None` if it stands under the same key.
fn is_clients(statement: &Statement, holder: Option<&str>) -> bool {
    let spends = |key: &str| {
        let kind = key.split('/').next();
        kind.is_some_and(|kind| SPENDING.contains(&kind))
    };
    let key = statement.key.as_str();
    statement.facts.is_empty() || (spends(key) && spends(holder.unwrap_or(key)))
}
