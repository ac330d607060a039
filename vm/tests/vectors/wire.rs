//! Addresses, transaction ids, orders, hub identifiers, actions and deterministic ids.

use crate::harness::Row;

/// File and answer, one row each.
pub const ROWS: &[Row] = &[];
