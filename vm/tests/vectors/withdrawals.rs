//! Withdrawals, withdraw requests, triggers and Bitcoin PSBTs.

use crate::harness::Row;

/// File and answer, one row each.
pub const ROWS: &[Row] = &[];
