//! Quotes: a body made valid, priced, and turned into steps and an order. Amounts are integers
//! throughout; only answers hold formatted texts.

pub mod swap;
