//! The bitcoin family against recorded answers, hostile transactions and lying nodes.

mod decode;
mod node;
mod read;
