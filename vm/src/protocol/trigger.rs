//! Deposit address triggers (settlement.md 8).
