//! The ethereum family against recorded answers, hostile logs and lying nodes.

#![allow(clippy::type_complexity, reason = "a test")]

mod agreement;
mod chain;
mod decode;
mod hostile;
mod node;
mod provider;
