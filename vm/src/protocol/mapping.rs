//! Generic mapping entries: nonce mapping, no fill or refund (settlement.md 6).
