//! The ethereum family against recorded answers, hostile logs and lying nodes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::type_complexity,
    reason = "what a test finds broken ends it"
)]

mod agreement;
mod chain;
mod decode;
mod hostile;
mod node;
mod provider;
