//! The bitcoin family against recorded answers, hostile transactions and lying nodes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod decode;
mod node;
mod read;
