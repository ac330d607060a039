//! Addresses, currencies and transaction ids of `xrp-vm` (guide: protocol 2.2): the 20-byte account id,
//! written as a classic address or as an X-address, which may carry a destination tag.

use bs58::Alphabet;

use crate::{Codec, CodecError, protocol::text};

const CLASSIC: u8 = 0;
const X_MAIN: [u8; 2] = [0x05, 0x44];
const X_TEST: [u8; 2] = [0x04, 0x93];

/// An account, and the tag that identifies a payer there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub account: [u8; 20],
    pub tag: Option<u32>,
}

impl Destination {
    /// The account's classic address.
    pub fn address(&self) -> String {
        classic(&self.account)
    }
}

/// Converts addresses, currencies and transaction ids of `xrp-vm` between text and bytes.
pub struct Addresses;

impl Codec for Addresses {
    fn native(&self) -> &'static str {
        "rrrrrrrrrrrrrrrrrrrrrhoLvTp"
    }

    fn encode_address(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        let destination = destination(text)?;
        if destination.tag.is_none() {
            return Ok(destination.account.to_vec());
        }
        Err(CodecError(
            "XRP X-address carries a destination tag; supply the tag separately and use the \
             classic address"
                .into(),
        ))
    }

    fn decode_address(&self, bytes: &[u8]) -> Result<String, CodecError> {
        let length = bytes.len();
        let account = bytes.try_into().map_err(|_| {
            CodecError(format!(
                "Invalid XRP account id byte length {length}; expected 20"
            ))
        })?;
        Ok(classic(account))
    }

    fn encode_transaction_id(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        if text.len() == 64 {
            return text::padded(text);
        }
        let length = text.len();
        Err(CodecError(format!(
            "Invalid XRP transaction id length {length}; expected 64 hex chars"
        )))
    }

    fn decode_transaction_id(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(alloy::hex::encode_upper(bytes))
    }
}

/// Parses a classic address or an X-address of either network.
pub fn destination(text: &str) -> Result<Destination, CodecError> {
    text::base58_check(text, Alphabet::RIPPLE)
        .and_then(|payload| parse(&payload))
        .ok_or_else(|| CodecError(format!("Invalid XRP address: {}", text::short(text))))
}

fn classic(account: &[u8; 20]) -> String {
    bs58::encode(account)
        .with_alphabet(Alphabet::RIPPLE)
        .with_check_version(CLASSIC)
        .into_string()
}

/// A classic payload is version and account; an X-address is prefix, account, flag and a tag in 8 little-endian
/// bytes, of which 4 are in use.
fn parse(payload: &[u8]) -> Option<Destination> {
    if let Some((&CLASSIC, account)) = payload.split_first()
        && let Ok(account) = account.try_into()
    {
        return Some(Destination { account, tag: None });
    }
    let (prefix, rest) = payload.split_first_chunk::<2>()?;
    let (account, rest) = rest.split_first_chunk::<20>()?;
    let (flag, rest) = rest.split_first()?;
    let tag = u64::from_le_bytes(rest.try_into().ok()?);
    let tag = match flag {
        0 if tag == 0 => None,
        1 => Some(u32::try_from(tag).ok()?),
        _ => return None,
    };
    [X_MAIN, X_TEST].contains(prefix).then_some(Destination {
        account: *account,
        tag,
    })
}
