//! What the operator is told of a statement that contradicts a signed one.

use super::JournalError;
use crate::attest::statement::Statement;

/// Counts and logs a conflict. What only its client's signature says raises no alarm: whoever makes a key signs two
/// statements that contradict each other.
pub(super) fn alarm(statement: &Statement, error: &JournalError) {
    let JournalError::Conflict { key, existing, .. } = error else {
        return;
    };
    let kind = statement.kind().to_owned();
    if is_clients(statement) {
        metrics::counter!("intentd_contradicting_clients_total", "kind" => kind).increment(1);
        tracing::info!(key, existing, "refused to sign what a client contradicts");
        return;
    }
    metrics::counter!("intentd_conflicting_statements_total", "kind" => kind).increment(1);
    tracing::error!(key, existing, "refused to sign a conflicting statement");
}

/// Whether only its client's signature says what the statement says. Such a statement rests on no block; or its client
/// spends a balance, and it rests on the hub's state alone, which shows that there is enough.
fn is_clients(statement: &Statement) -> bool {
    let spends = matches!(statement.kind(), "transfer" | "initiation");
    let mut facts = statement.facts.iter();
    facts.all(|fact| spends && fact.transaction.is_empty())
}
