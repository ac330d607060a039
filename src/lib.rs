//! intentd.
