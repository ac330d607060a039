//! Withdrawals of `ethereum-vm`: call requests of the depository (guide: protocol 8.1). Pure.

use crate::protocol::{call::CallRequests, text};

/// Reads and writes withdrawals as the call requests that the depository executes.
pub static WITHDRAWALS: CallRequests = CallRequests {
    parse: text::evm_address,
    write: |address| format!("{address:#x}"),
    native: "0x0000000000000000000000000000000000000000",
    param: |address| text::bytes(address).map(alloy::hex::encode_prefixed),
};
