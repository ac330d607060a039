//! The oracle's judgements, and the journal of what it has signed.

pub mod journal;
pub mod statement;
