//! Payload params (v2.2) and withdraw requests (v2.3) with their hashes (settlement.md 7).
