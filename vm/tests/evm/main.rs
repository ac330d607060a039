//! The ethereum family against recorded answers, hostile logs and lying nodes.

mod agreement;
mod chain;
mod decode;
mod hostile;
mod node;
mod provider;
