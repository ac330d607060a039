//! Quotes: a body made valid, priced, and turned into steps and an order. Amounts are integers
//! throughout; only answers hold formatted texts.
//!
//! `intent`, `route`, `fees`, `order`, `details`, `record`, `late` and `holds` are pure; `service` puts
//! them together, `draft` makes a request of it, `multi` does so for several inputs at once; `reads`, `admission`,
//! `offers`, `fill`, `steps`, `whole`, `reprice` and `toll` ask the world.

mod admission;
pub mod answer;
pub mod body;
pub mod caller;
pub mod code;
pub mod details;
mod draft;
pub mod fees;
pub mod figures;
pub mod fill;
pub mod holds;
pub mod intent;
pub mod late;
pub mod multi;
pub mod offers;
pub mod order;
pub mod reads;
pub mod record;
pub mod reprice;
pub mod route;
#[cfg(test)]
pub mod scene;
pub mod service;
pub mod steps;
pub mod swap;
#[cfg(test)]
mod tests;
pub mod toll;
pub mod usd;
pub mod venue;
pub mod whole;

pub use crate::show;
