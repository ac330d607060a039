//! The forms of partial signatures of the allocator's key (guide: protocol 8.4). Pure; verifies nothing.

use alloy::hex;
use bitcoin::{
    ecdsa::Signature,
    secp256k1::{self, ecdsa},
    sighash::EcdsaSighashType,
};
use serde::Deserialize;

use crate::CodecError;

/// The values of a compact signature's recovery byte.
const RECOVERY: [u8; 4] = [0, 1, 27, 28];
/// The values of a recovery byte before a compact signature, as wallets write it.
const HEADER: [u8; 2] = [27, 28];

/// Reads DER with its sighash byte, 64 bytes compact, or 65 bytes with a recovery byte after (else before) the
/// compact signature; always for `SIGHASH_ALL`. A high s stays high.
pub fn normalise(bytes: &[u8]) -> Result<Signature, CodecError> {
    if let Some(der) = der(bytes) {
        return Ok(der);
    }
    let compact = match bytes {
        [compact @ .., last] if bytes.len() == 65 && RECOVERY.contains(last) => compact,
        [first, compact @ ..] if bytes.len() == 65 && HEADER.contains(first) => compact,
        _ => bytes,
    };
    ecdsa::Signature::from_compact(compact)
        .map(Signature::sighash_all)
        .map_err(|_| {
            CodecError(format!(
                "not a Bitcoin signature: expected DER with SIGHASH_ALL, 64 bytes, or 65 with a \
                 recovery byte, got {} bytes",
                bytes.len()
            ))
        })
}

fn der(bytes: &[u8]) -> Option<Signature> {
    let (&sighash, der) = bytes.split_last()?;
    let all = sighash == EcdsaSighashType::All.to_u32() as u8;
    let signature = ecdsa::Signature::from_der(der).ok().filter(|_| all)?;
    // Accepts only the canonical spelling.
    (*signature.serialize_der() == *der).then(|| Signature::sighash_all(signature))
}

/// The JSON of the signature service: `r` is the x of a compressed point.
#[derive(Deserialize)]
struct Served {
    big_r: Point,
    s: Scalar,
    recovery_id: u8,
}

#[derive(Deserialize)]
struct Point {
    affine_point: String,
}

#[derive(Deserialize)]
struct Scalar {
    scalar: String,
}

/// Extracts `r ++ s ++ v` (v 27 or 28) from the JSON text of the signature service.
pub fn extract(json: &[u8]) -> Result<[u8; 65], CodecError> {
    let refused = || CodecError("not a signature of the signature service".into());
    let served: Served = serde_json::from_slice(json).map_err(|_| refused())?;
    let mut point = [0; 33];
    hex::decode_to_slice(&served.big_r.affine_point, &mut point).map_err(|_| refused())?;
    secp256k1::PublicKey::from_slice(&point).map_err(|_| refused())?;
    let mut signature = [0; 65];
    signature[..32].copy_from_slice(&point[1..]);
    hex::decode_to_slice(&served.s.scalar, &mut signature[32..64]).map_err(|_| refused())?;
    if served.recovery_id > 1 {
        return Err(refused());
    }
    signature[64] = 27 + served.recovery_id;
    Ok(signature)
}

#[cfg(test)]
mod tests {
    use super::{extract, normalise};

    fn compact() -> Vec<u8> {
        [[0x58; 32], [0x11; 32]].concat()
    }

    #[test]
    fn one_signature_in_all_its_forms() {
        let plain = normalise(&compact()).unwrap();
        assert_eq!(normalise(&plain.to_vec()).unwrap(), plain);
        for recovery in [0, 1, 27, 28] {
            let behind = [compact(), vec![recovery]].concat();
            assert_eq!(normalise(&behind).unwrap(), plain);
        }
        for header in [27, 28] {
            let before = [vec![header], compact()].concat();
            assert_eq!(normalise(&before).unwrap(), plain);
        }
    }

    #[test]
    fn other_lengths_sighashes_and_recovery_bytes_are_refused() {
        let der = normalise(&compact()).unwrap().to_vec();
        let mut none = der.clone();
        *none.last_mut().unwrap() = 2;
        let cut = &der[..der.len() - 2];
        let odd = [compact(), vec![29]].concat();
        for bytes in [
            &none[..],
            cut,
            &odd,
            &compact()[..63],
            &[],
            &[0x30],
            &[0xff; 64],
        ] {
            assert!(normalise(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn points_off_the_curve_and_short_scalars_are_refused() {
        let json = |point: &str, scalar: &str, id: u8| {
            format!(
                r#"{{"big_r":{{"affine_point":"{point}"}},"s":{{"scalar":"{scalar}"}},"recovery_id":{id}}}"#
            )
        };
        let point = "03A95A1C1F2F193BA4A760F435D7A09EFDE1790B72E484E456092BF1605BD9235E";
        let scalar = "6CA89313D5E0EDF72798E0932BFAEB5D53699188FCAB3D81DEC23B02FF6E2942";
        assert_eq!(extract(json(point, scalar, 1).as_bytes()).unwrap()[64], 28);
        let off = format!("02{}", "00".repeat(32));
        for bad in [
            json(&off, scalar, 1),
            json(point, "6C", 1),
            json(point, scalar, 4),
            json(&point[2..], scalar, 0),
            String::new(),
        ] {
            assert!(extract(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
