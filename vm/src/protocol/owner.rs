//! Owner operations and their digest (oracle.md 5).
