//! Addresses, currencies and transaction ids of `ton-vm` (guide: protocol 2.2): the account hash in the
//! basechain, raw (`0:<hex>`) or friendly (base64 of tag, workchain, hash and CRC-16).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{Codec, CodecError, protocol::text};

const BOUNCEABLE: u8 = 0x11;
const NON_BOUNCEABLE: u8 = 0x51;
const TEST_ONLY: u8 = 0x80;

/// Converts addresses, currencies and transaction ids of `ton-vm` between text and bytes.
pub struct Addresses;

impl Codec for Addresses {
    fn native(&self) -> &'static str {
        "EQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAM9c"
    }

    fn encode_address(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        let (workchain, hash) = raw(text)
            .or_else(|| friendly(text))
            .ok_or_else(|| CodecError(format!("Unknown address type: {}", text::short(text))))?;
        if workchain == 0 {
            return Ok(hash);
        }
        Err(CodecError(format!(
            "TON address on workchain {workchain} does not match the expected basechain \
             (workchain 0) for this chainId"
        )))
    }

    fn decode_address(&self, bytes: &[u8]) -> Result<String, CodecError> {
        if bytes.len() == 32 {
            return Ok(format!("0:{}", alloy::hex::encode(bytes)));
        }
        let length = bytes.len();
        Err(CodecError(format!(
            "Invalid TON address byte length {length}; expected 32"
        )))
    }

    fn encode_transaction_id(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        if text.len() == 64 {
            return text::padded(text);
        }
        let length = text.len();
        Err(CodecError(format!(
            "Invalid TON transaction id length {length}; expected 64 hex chars"
        )))
    }

    fn decode_transaction_id(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(alloy::hex::encode(bytes))
    }
}

fn raw(text: &str) -> Option<(i32, Vec<u8>)> {
    let (workchain, hash) = text.split_once(':')?;
    let hash = text::padded(hash).ok().filter(|_| hash.len() == 64)?;
    Some((workchain.parse().ok()?, hash))
}

fn friendly(text: &str) -> Option<(i32, Vec<u8>)> {
    let url = text.replace('+', "-").replace('/', "_");
    let bytes: [u8; 36] = URL_SAFE_NO_PAD.decode(url).ok()?.try_into().ok()?;
    let (content, crc) = bytes.split_at(34);
    let tag = content[0] & !TEST_ONLY;
    let sound = matches!(tag, BOUNCEABLE | NON_BOUNCEABLE) && crc == crc16(content).to_be_bytes();
    sound.then(|| (i32::from(content[1].cast_signed()), content[2..].to_vec()))
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    })
}
