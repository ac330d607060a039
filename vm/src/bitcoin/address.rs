//! Addresses, currencies and transaction ids of `bitcoin-vm` (guide: protocol 2.2).
//!
//! A Base58 address becomes `ff`, version and hash; a witness address becomes version and program. The leading `ff`
//! distinguishes a key hash from a version 0 program of the same bytes.

use bitcoin::bech32::{
    Bech32, Bech32m, Fe32, Hrp,
    primitives::decode::{CheckedHrpstring, CheckedHrpstringError},
    segwit,
};

use super::network::Network;
use crate::{Address, Codec, CodecError, protocol::text};

const LEGACY: u8 = 0xff;
/// The native currency's text on every network, and its bytes.
const NATIVE: (&str, [u8; 20]) = ("bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqmql8k8", [0; 20]);
/// The most characters of a bech32 text (BIP 173).
const LONGEST: usize = 90;

/// The version bytes of P2PKH addresses, on the main network and on others.
const KEY_HASHES: [u8; 2] = [0, 111];

/// Whether this is the address of a key, P2WPKH or P2PKH: withdrawals from it are judged.
pub fn is_key_hash(address: &Address) -> bool {
    match address.bytes() {
        [0, hash @ ..] => hash.len() == 20,
        [LEGACY, version, hash @ ..] => KEY_HASHES.contains(version) && hash.len() == 20,
        _ => false,
    }
}

/// Converts addresses, currencies and transaction ids between text and bytes.
impl Codec for Network {
    fn native(&self) -> &'static str {
        NATIVE.0
    }

    fn encode_address(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        let bytes = if text == NATIVE.0 {
            Some(NATIVE.1.to_vec())
        } else if text.starts_with(self.initials) {
            legacy(text)
        } else {
            witness(text, self.hrp)
        };
        bytes.ok_or_else(|| CodecError("Unsupported address format".into()))
    }

    fn decode_address(&self, bytes: &[u8]) -> Result<String, CodecError> {
        if *bytes == NATIVE.1 {
            return Ok(NATIVE.0.to_owned());
        }
        match bytes.split_first() {
            Some((&LEGACY, hash)) if hash.len() == 21 && self.versions.contains(&hash[0]) => {
                Ok(bs58::encode(hash).with_check().into_string())
            }
            Some((&LEGACY, _)) => Err(CodecError(
                "Unsupported legacy bitcoin address encoding".into(),
            )),
            Some((&version, program)) => witness_text(self.hrp, version, program)
                .ok_or_else(|| CodecError("Unsupported bitcoin witness program".into())),
            None => Err(CodecError("Empty bitcoin address".into())),
        }
    }

    /// Converts the leading hex pairs and drops the rest: the published definition of these bytes.
    /// [`Family::tx`](crate::Family::tx) refuses texts that do not decode to themselves.
    fn encode_transaction_id(&self, text: &str) -> Result<Vec<u8>, CodecError> {
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
        Ok(text.as_bytes().chunks_exact(2).map_while(pair).collect())
    }

    fn decode_transaction_id(&self, bytes: &[u8]) -> Result<String, CodecError> {
        Ok(alloy::hex::encode(bytes))
    }
}

fn legacy(text: &str) -> Option<Vec<u8>> {
    let decoded = text::base58(text).ok()?;
    // Too short for a checksum: the published bytes of such a text are the bare prefix.
    let payload = if decoded.len() <= 4 {
        Vec::new()
    } else {
        text::base58_check(text, bs58::Alphabet::BITCOIN)?
    };
    Some([&[LEGACY], payload.as_slice()].concat())
}

fn witness(text: &str, hrp: &str) -> Option<Vec<u8>> {
    if text.len() > LONGEST || text.bytes().any(|b| b.is_ascii_uppercase()) {
        return None;
    }
    let v0 = CheckedHrpstring::new::<Bech32>(text);
    let later = CheckedHrpstring::new::<Bech32m>(text);
    program(hrp, v0, |version| version == 0).or_else(|| program(hrp, later, |version| version > 0))
}

fn program(
    hrp: &str,
    parsed: Result<CheckedHrpstring<'_>, CheckedHrpstringError>,
    suits: fn(u8) -> bool,
) -> Option<Vec<u8>> {
    let mut parsed = parsed.ok()?;
    let version = parsed.remove_witness_version()?.to_u8();
    let sound =
        suits(version) && parsed.hrp().as_str() == hrp && parsed.validate_segwit_padding().is_ok();
    sound.then(|| std::iter::once(version).chain(parsed.byte_iter()).collect())
}

fn witness_text(hrp: &str, version: u8, program: &[u8]) -> Option<String> {
    let version = Fe32::try_from(version).ok().filter(|v| v.to_u8() <= 16)?;
    // The prefix and "1", the version, five bits per character, the checksum.
    if hrp.len() + 2 + (program.len() * 8).div_ceil(5) + 6 > LONGEST {
        return None;
    }
    let mut text = String::new();
    let hrp = Hrp::parse(hrp).ok()?;
    segwit::encode_lower_to_fmt_unchecked(&mut text, hrp, version, program).ok()?;
    Some(text)
}
