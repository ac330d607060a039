//! The order, its id and its wire form (settlement.md 3).
