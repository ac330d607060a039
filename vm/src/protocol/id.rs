//! Deterministic ids: sha256 of joined texts (oracle.md 7).
