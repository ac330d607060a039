//! What the operator is told of a statement that contradicts a signed one.

use super::JournalError;
use crate::attest::statement::Statement;

/// Counts and logs a conflict. A statement that rests on no block rests on its client's signature alone: whoever makes a
/// key signs two that contradict each other, so that raises no alarm.
pub(super) fn alarm(statement: &Statement, error: &JournalError) {
    let JournalError::Conflict { key, existing, .. } = error else {
        return;
    };
    let kind = statement.kind().to_owned();
    if statement.facts.is_empty() {
        metrics::counter!("intentd_contradicting_clients_total", "kind" => kind).increment(1);
        tracing::info!(key, existing, "refused to sign what a client contradicts");
        return;
    }
    metrics::counter!("intentd_conflicting_statements_total", "kind" => kind).increment(1);
    tracing::error!(key, existing, "refused to sign a conflicting statement");
}
