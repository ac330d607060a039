//! The signatures of a delivery (guide: protocol 11.15). Pure.

use alloy::hex;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// The header with the time of the try: unix seconds in decimal.
pub const TIMESTAMP: &str = "x-signature-timestamp";
/// The header with the [`signature`] of the oldest form.
pub const SIGNATURE: &str = "x-signature-sha256";
/// The header with [`signatures`].
pub const SIGNATURES: &str = "x-signature-v2";

/// Hex of the HMAC-SHA256 of `<timestamp>.<event>.<body>` by each of the keys, newest first, separated by commas. A
/// receiver checks the one of its own key. The event number prevents that a captured delivery is replayed as another
/// event.
pub fn signatures<'a>(
    digests: impl Iterator<Item = &'a [u8; 32]>,
    timestamp: u64,
    (event, body): (u64, &str),
) -> String {
    let named = format!("{event}.{body}");
    let all = digests.map(|digest| signature(digest, timestamp, &named));
    all.collect::<Vec<_>>().join(",")
}

/// Hex of the HMAC-SHA256 of `<timestamp>.<body>` with `digest`, the SHA-256 of the API key (see
/// [`crate::integrator`]). `timestamp` in unix seconds.
pub fn signature(digest: &[u8; 32], timestamp: u64, body: &str) -> String {
    // An HMAC takes keys of any length.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(digest) else {
        return String::new();
    };
    mac.update(timestamp.to_string().as_bytes());
    mac.update(b".");
    mac.update(body.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use super::*;

    /// Node: `createHmac('sha256', key).update('1700000000.' + body).digest('hex')` with the key itself.
    #[test]
    fn what_the_digest_signs_the_key_verifies() {
        let key = format!("ik_{}0123", "ab".repeat(32));
        assert!(key.len() > 64);
        let body = r#"{"event":"request.status.updated","timestamp":1700000000123,"data":{"status":"success","referrer":"zoë ✓"}}"#;
        let signed = signature(&Sha256::digest(&key).into(), 1_700_000_000, body);
        let node = "e27897474cf12ebd31f99d43fa192ca9012292180395e11a399452c4018fd59d";
        assert_eq!(signed, node);
    }

    #[test]
    fn key_time_and_body_are_all_signed() {
        let signed = signature(&[1; 32], 1, "{}");
        for other in [
            signature(&[2; 32], 1, "{}"),
            signature(&[1; 32], 2, "{}"),
            signature(&[1; 32], 1, "{ }"),
        ] {
            assert_ne!(other, signed);
        }
    }
}
