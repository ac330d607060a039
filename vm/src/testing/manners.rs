//! Providers that are of no use.

/// How a provider of a scripted chain behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manners {
    /// Heights that it is behind.
    pub lag: u64,
    /// It answers nothing, or errors only.
    pub down: bool,
    /// It shows no transaction.
    pub blind: bool,
}
