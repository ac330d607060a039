//! The calls within a transaction, as a node's `callTracer` tells them (`debug_traceTransaction`). Pure.

use serde::{Deserialize, de::IgnoredAny};

use crate::{
    ethereum::raw::{Quantity, RawTransaction},
    types::{Amount, EvmAddress},
};

/// Native currency from one account to another.
pub type Move = (EvmAddress, EvmAddress, Amount);

/// Calls that move their value from their sender to whom they call. What runs in its caller's name moves
/// nothing.
const PAYING: [&str; 4] = ["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"];

/// A call, and the calls within it.
#[derive(Clone, Debug, Deserialize)]
pub struct Frame {
    #[serde(rename = "type")]
    kind: String,
    from: EvmAddress,
    /// `None` where nothing could be created.
    to: Option<EvmAddress>,
    value: Option<Quantity>,
    /// It failed: whatever it and the calls within it did is undone.
    error: Option<IgnoredAny>,
    calls: Option<Vec<Self>>,
}

impl Frame {
    /// Whether it is the call that a transaction made, which succeeded.
    pub fn is_of(&self, transaction: &RawTransaction) -> bool {
        let value = |value: Option<Quantity>| value.map_or(Amount::ZERO, |value| value.0);
        self.error.is_none()
            && self.from == transaction.from
            && value(self.value) == value(transaction.value)
            && transaction.to.is_none_or(|to| self.to == Some(to))
    }

    /// What it moved, first to last.
    pub fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        self.collect(&mut moves);
        moves
    }

    /// No deeper than JSON is read.
    fn collect(&self, moves: &mut Vec<Move>) {
        if self.error.is_some() {
            return;
        }
        let pays = PAYING.contains(&self.kind.as_str());
        if let (true, Some(to), Some(value)) = (pays, self.to, self.value)
            && !value.0.is_zero()
        {
            moves.push((self.from, to, value.0));
        }
        for call in self.calls.iter().flatten() {
            call.collect(moves);
        }
    }
}
