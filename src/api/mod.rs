//! The HTTP surfaces: route tables and their data types. The only users of those types.

pub mod intents;
pub mod oracle;

#[cfg(test)]
mod tests;
