//! Hub actions: MINT, BURN, TRANSFER, FAST_MINT (settlement.md 5).
