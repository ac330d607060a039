//! What a revert's data says (guide: protocol 11.17). Pure.

use alloy::{
    hex,
    sol_types::{Panic, Revert as ErrorString, SolError},
};

use crate::{trade::Revert, types::Bytes};

/// Characters of a reason; the rest is still in the data.
const MAX_REASON: usize = 300;

/// The error that `data` holds, readable.
pub fn explain(data: &[u8]) -> Revert {
    Revert {
        reason: reason(data),
        data: Bytes::copy_from_slice(data),
    }
}

fn reason(data: &[u8]) -> String {
    let Some(selector) = data.first_chunk::<4>() else {
        // Shorter than any selector: nothing that a contract of solc's makes.
        return match data {
            [] => String::new(),
            odd => hex::encode_prefixed(odd),
        };
    };
    let said = match *selector {
        ErrorString::SELECTOR => ErrorString::abi_decode_validate(data)
            .ok()
            .map(|error| printable(&error.reason)),
        Panic::SELECTOR => Panic::abi_decode_validate(data)
            .ok()
            .map(|panic| format!("Panic({:#04x})", panic.code)),
        _ => None,
    };
    said.unwrap_or_else(|| hex::encode_prefixed(selector))
}

/// A stranger's text without control characters, cut to a length that fits an answer.
pub fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_REASON)
        .collect()
}

#[cfg(test)]
mod tests {
    use alloy::primitives::U256;

    use super::*;

    fn error(text: &str) -> Vec<u8> {
        ErrorString {
            reason: text.into(),
        }
        .abi_encode()
    }

    fn panic(code: u64) -> Vec<u8> {
        Panic {
            code: U256::from(code),
        }
        .abi_encode()
    }

    #[test]
    fn reverts_are_readable() {
        let cut = |data: Vec<u8>| data[..30].to_vec();
        for (data, said) in [
            (vec![], ""),
            (error("ERC20: too much"), "ERC20: too much"),
            (error(""), ""),
            (error("a\nb\u{0}c"), "abc"),
            (panic(0x11), "Panic(0x11)"),
            (panic(1), "Panic(0x01)"),
            (hex!("8baa579f").to_vec(), "0x8baa579f"),
            (
                [hex!("8baa579f").as_slice(), &[7; 32]].concat(),
                "0x8baa579f",
            ),
            (vec![0xab, 0xcd], "0xabcd"),
            (cut(error("ERC20")), "0x08c379a0"),
            (cut(panic(1)), "0x4e487b71"),
        ] {
            let found = explain(&data);
            assert_eq!(found.reason, said);
            assert_eq!(found.data, data);
        }
    }

    #[test]
    fn a_long_reason_is_cut() {
        assert_eq!(
            explain(&error(&"ü".repeat(5000))).reason.chars().count(),
            MAX_REASON
        );
    }
}
