//! secp256k1 signatures: recovery, EIP-191, DER to r, s, v with low s (oracle.md 5, 6).
