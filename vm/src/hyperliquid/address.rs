//! Addresses, currencies and transaction ids of `hyperliquid-vm` (guide: protocol 2.2).

use crate::protocol::address::HexAddresses;

/// Converts addresses, currencies and transaction ids of `hyperliquid-vm` between text and bytes.
pub static ADDRESSES: HexAddresses = HexAddresses {
    native: "0x00000000000000000000000000000000",
};
