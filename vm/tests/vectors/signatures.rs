//! Typed-data messages, mappings, owner digests and signatures, KMS signatures.

use crate::harness::Row;

/// File and answer, one row each.
pub const ROWS: &[Row] = &[];
