//! Parses the numbers, hex and base58 of the wire. Strict: one value has one meaning, and anything else is refused.

use std::borrow::Cow;

use crate::{Bytes, CodecError, EvmAddress, U256};

/// The longest base58 text: decoding is quadratic in the length, and a Solana signature is the longest value.
const BASE58_LIMIT: usize = 128;

/// Parses an unsigned number of at most 256 bits: decimal digits, or `0x` and hex digits.
pub fn number(text: &str) -> Result<U256, CodecError> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let clean = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_alphanumeric());
    clean
        .then(|| U256::from_str_radix(digits, radix).ok())
        .flatten()
        .ok_or_else(|| CodecError(format!("Not an unsigned 256-bit number: {}", short(text))))
}

/// Parses bytes: `0x` and an even number of hex digits.
pub fn bytes(text: &str) -> Result<Bytes, CodecError> {
    text.strip_prefix("0x")
        .and_then(|digits| alloy::hex::decode(digits).ok())
        .filter(|_| !text.starts_with("0x0x"))
        .map(Bytes::from)
        .ok_or_else(|| not_hex(text))
}

/// Parses hex digits without a prefix; pads an odd number of them with a zero on the left.
pub fn padded(digits: &str) -> Result<Vec<u8>, CodecError> {
    let even: Cow<'_, str> = match digits.len().is_multiple_of(2) {
        true => digits.into(),
        false => format!("0{digits}").into(),
    };
    if even.starts_with("0x") {
        return Err(not_hex(digits));
    }
    alloy::hex::decode(even.as_bytes()).map_err(|_| not_hex(digits))
}

/// Parses the hex digits after the first two characters, whatever those are: the published definition of the bytes of
/// EVM-like families. [`Family::address`](crate::Family::address) and [`Family::tx`](crate::Family::tx) refuse texts
/// that do not decode to themselves.
pub fn behind_prefix(text: &str) -> Result<Vec<u8>, CodecError> {
    let third = text.char_indices().nth(2);
    padded(third.map_or("", |(at, _)| &text[at..]))
}

/// Parses an EVM address: lower case, or with a correct checksum.
pub fn evm_address(text: &str) -> Result<EvmAddress, CodecError> {
    let refused = || CodecError(format!("Address {:?} is invalid", short(text)));
    let digits = text.strip_prefix("0x").ok_or_else(refused)?;
    let raw: [u8; 20] = alloy::hex::decode(digits)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(refused)?;
    let address = EvmAddress::from(raw);
    let known = digits.len() == 40
        && (!digits.bytes().any(|b| b.is_ascii_uppercase()) || address.to_string() == text);
    known.then_some(address).ok_or_else(refused)
}

/// Parses base58 without a checksum, in Bitcoin's alphabet.
pub fn base58(text: &str) -> Result<Vec<u8>, CodecError> {
    let refused = || CodecError(format!("Non-base58 character in {:?}", short(text)));
    if text.len() > BASE58_LIMIT {
        return Err(refused());
    }
    bs58::decode(text).into_vec().map_err(|_| refused())
}

/// Parses base58 with a checksum; returns the payload with its version byte. `None` for a wrong checksum.
pub fn base58_check(text: &str, alphabet: &bs58::Alphabet) -> Option<Vec<u8>> {
    if text.len() > BASE58_LIMIT {
        return None;
    }
    bs58::decode(text)
        .with_alphabet(alphabet)
        .with_check(None)
        .into_vec()
        .ok()
}

/// The first 80 characters of a caller's text, for an error message.
pub fn short(text: &str) -> String {
    first(text, 80)
}

/// The first characters of a text.
pub fn first(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn not_hex(text: &str) -> CodecError {
    CodecError(format!("Not hex: {:?}", short(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_decimal_or_hex_and_nothing_else() {
        assert_eq!(number("15"), Ok(U256::from(15)));
        assert_eq!(number("0xfF"), Ok(U256::from(255)));
        assert_eq!(number(&U256::MAX.to_string()), Ok(U256::MAX));
        for bad in [
            "",
            " 15",
            "15 ",
            "-1",
            "+1",
            "1.5",
            "1e3",
            "0x",
            "0X1",
            "abc",
            "1_000",
            "0b1",
            "٣",
            "115792089237316195423570985008687907853269984665640564039457584007913129639936",
        ] {
            assert!(number(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hex_is_whole_bytes_behind_a_prefix() {
        assert_eq!(bytes("0x"), Ok(Bytes::new()));
        assert_eq!(bytes("0x0aFF"), Ok(Bytes::from_static(&[10, 255])));
        for bad in ["", "0", "0aff", "0X0a", "0xabc", "0xzz", "0x0x12", "0x 1"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_stands_behind_two_characters_is_padded_hex() {
        for text in ["0x0a", "0xa", "xx0a", "€€a"] {
            assert_eq!(behind_prefix(text), Ok(vec![10]), "{text}");
        }
        for text in ["", "0", "0x", "€€"] {
            assert_eq!(behind_prefix(text), Ok(vec![]), "{text}");
        }
        for bad in ["0x0x0a", "0xzz", "0x€", "€€€"] {
            assert!(behind_prefix(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn mixed_case_address_needs_its_checksum() {
        assert!(evm_address("0x52908400098527886e0f7030069857d2e4169ee7").is_ok());
        assert!(evm_address("0x52908400098527886E0F7030069857D2E4169EE7").is_ok());
        for bad in [
            "0x52908400098527886e0F7030069857D2E4169EE7",
            "0x52908400098527886e0f7030069857d2e4169e",
            "52908400098527886e0f7030069857d2e4169ee7",
            "0x0x52908400098527886e0f7030069857d2e4169ee7",
        ] {
            assert!(evm_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn base58_of_unbounded_length_is_refused() {
        assert!(base58(&"1".repeat(BASE58_LIMIT)).is_ok());
        assert!(base58(&"z".repeat(BASE58_LIMIT + 1)).is_err());
    }
}
