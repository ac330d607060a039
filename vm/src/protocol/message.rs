//! Every typed-data message of oracle.md 5 and the v2.1 message ids.
