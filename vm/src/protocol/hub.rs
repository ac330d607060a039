//! Hub identifiers: aliases, token ids, order and withdrawal addresses (settlement.md 2).
