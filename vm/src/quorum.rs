//! Agreement of several providers (written once for all families).
