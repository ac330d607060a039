//! Quotes: a body made valid, priced, and turned into an order and steps. Amounts are integers
//! throughout; only answers hold formatted texts.
//!
//! A straight pipeline, in which no file uses one behind it (`tests/architecture.rs` has the ranks):
//!
//! 1. intent: `body`, `intent` (every refusal that needs no network);
//! 2. route: `route`, `holds`;
//! 3. market data: `swaps`, `pricing_chain`, `verdicts`, `context` (what every stage works with), `market_data`;
//! 4. amounts: `fees`, `late`, `amounts`;
//! 5. fill: `fill`, `simulate`, `admission`, `fee_on_transfer`, `breakdown`, `joint`, `pricing` (the stages up to here);
//! 6. order: `order`;
//! 7. steps: `steps`;
//! 8. answer: `record`, `draft`;
//! 9. `service`, `multi`, `toll`, `reprice`: what others ask for.
//!
//! `code`, `usd` and `answer` are words that all of them use.

pub mod admission;
pub mod amounts;
pub mod answer;
pub mod body;
pub mod breakdown;
pub mod code;
pub mod context;
mod draft;
mod fee_on_transfer;
pub mod fees;
pub mod fill;
#[cfg(test)]
pub mod fixtures;
pub mod holds;
pub mod intent;
pub mod joint;
pub mod late;
pub mod market_data;
pub mod multi;
pub mod order;
mod pricing;
pub mod pricing_chain;
pub mod record;
pub mod reprice;
pub mod route;
pub mod service;
mod simulate;
pub mod steps;
pub mod swaps;
#[cfg(test)]
mod tests;
pub mod toll;
pub mod usd;
pub mod verdicts;
