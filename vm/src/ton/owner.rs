//! Owner signatures of `ton-vm`: TonConnect signData over the digest's hex text (guide: protocol 6.3).
//!
//! The caller reads the wallet's key from its contract.

use alloy::hex;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    Codec, OwnerClaim, OwnerVerifier, Refusal,
    protocol::{json, signature::signature_hex, text},
};

/// Verifies owner signatures of `ton-vm`. The claim's key is the wallet's, its metadata `timestamp` (unix seconds) and
/// `domain` (of the app that asked the wallet); the chain's settings have `signDataDomain` (of the accepted apps).
pub struct Owners;

impl OwnerVerifier for Owners {
    fn check(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        Signed::of(claim).map(|_| ())
    }

    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        let signed = Signed::of(claim)?;
        let no_key = || Refusal(format!("TON account {} has no public key", claim.owner));
        let key = claim.key.map(|key| <[u8; 32]>::try_from(&key[..]));
        let key = key.and_then(Result::ok).ok_or_else(no_key)?;
        let payload = hex::encode(claim.digest);
        let hash = sign_data_hash(&signed.account, signed.domain, signed.timestamp, &payload);
        VerifyingKey::from_bytes(&key)
            .and_then(|key| key.verify_strict(&hash, &signed.signature))
            .map_err(|_| Refusal("Invalid signature".into()))
    }
}

/// What a claim says of its signature.
struct Signed<'a> {
    timestamp: i64,
    domain: &'a str,
    account: [u8; 32],
    signature: Signature,
}

impl<'a> Signed<'a> {
    /// Refuses what no key makes good.
    fn of(claim: &OwnerClaim<'a>) -> Result<Self, Refusal> {
        let said = |name: &str| claim.metadata.and_then(|metadata| metadata.get(name));
        let missing = |what: &str| Refusal(format!("Missing {what} of the TON signature"));
        let word = |value: Option<&'a Value>, name: &str| {
            let text = value.and_then(Value::as_str);
            let text = text.filter(|text| !text.is_empty());
            text.ok_or_else(|| missing(name))
        };
        let timestamp = said("timestamp").filter(|value| !value.is_null());
        let timestamp = timestamp.ok_or_else(|| missing("timestamp"))?;
        let timestamp = json::text::deserialize(timestamp)
            .map_err(|_| Refusal("Invalid timestamp of the TON signature".into()))?;
        let domain = word(said("domain"), "domain")?;
        let accepted = claim.settings.and_then(|it| it.get("signDataDomain"));
        if !is_below(domain, word(accepted, "signDataDomain")?) {
            let domain = text::short(domain);
            return Err(Refusal(format!("Signature domain {domain} is not allowed")));
        }
        let account = super::address::Addresses.encode_address(claim.owner);
        let account = account.ok().and_then(|bytes| bytes.try_into().ok());
        let signature = signature_hex(claim.signature).ok();
        let signature = signature.and_then(|bytes| <[u8; 64]>::try_from(&bytes[..]).ok());
        Ok(Self {
            timestamp,
            domain,
            account: account.ok_or_else(|| Refusal("Invalid TON owner address".into()))?,
            signature: signature
                .map(|bytes| Signature::from_bytes(&bytes))
                .ok_or_else(|| Refusal("Invalid signature length".into()))?,
        })
    }
}

/// Whether `domain` is the accepted one or a subdomain of it.
fn is_below(domain: &str, accepted: &str) -> bool {
    domain
        .strip_suffix(accepted)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.') && rest.len() > 1)
}

/// The hash that a wallet signs when TonConnect asks it to sign a text. `account`: the hash part of its address in
/// the basechain; `timestamp`: unix seconds.
pub fn sign_data_hash(account: &[u8; 32], domain: &str, timestamp: i64, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update([0xff, 0xff]);
    hash.update("ton-connect/sign-data/");
    hash.update(0i32.to_be_bytes());
    hash.update(account);
    hash.update(length(domain));
    hash.update(domain);
    hash.update(timestamp.to_be_bytes());
    hash.update("txt");
    hash.update(length(text));
    hash.update(text);
    hash.finalize().into()
}

/// No text that gets here is near 4 GB.
fn length(text: &str) -> [u8; 4] {
    u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes()
}
