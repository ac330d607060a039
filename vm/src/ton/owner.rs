//! Owner signatures of `ton-vm`: TonConnect signData over the digest's hex text (guide: protocol 6.3).
//!
//! The caller reads the wallet's public key from its contract.

use alloy::hex;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Codec, OwnerClaim, OwnerVerifier, Refusal, protocol::signature::signature_hex};

/// Verifies owner signatures of `ton-vm`. The claim's context has `timestamp` (unix seconds), `domain` (of the app
/// that asked the wallet), `publicKey` (64 hex digits) and `signDataDomain` (of the accepted apps).
pub struct Owners;

impl OwnerVerifier for Owners {
    /// The account's public key.
    fn needs_chain(&self) -> bool {
        true
    }

    fn verify(&self, claim: &OwnerClaim<'_>) -> Result<(), Refusal> {
        let context = Context::of(claim.context)?;
        if !context.is_ours() {
            return Err(Refusal(format!(
                "Signature domain {} is not allowed",
                context.domain
            )));
        }
        let wrong = || Refusal("Invalid signature".into());
        let account: [u8; 32] = super::address::Addresses
            .encode_address(claim.owner)
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| Refusal("Invalid TON owner address".into()))?;
        let payload = hex::encode(claim.digest);
        let hash = sign_data_hash(&account, context.domain, context.timestamp, &payload);
        let signature: [u8; 64] = signature_hex(claim.signature)
            .ok()
            .and_then(|bytes| <[u8; 64]>::try_from(&bytes[..]).ok())
            .ok_or_else(|| Refusal("Invalid signature length".into()))?;
        VerifyingKey::from_bytes(&context.public_key)
            .and_then(|key| key.verify_strict(&hash, &Signature::from_bytes(&signature)))
            .map_err(|_| wrong())
    }
}

struct Context<'a> {
    timestamp: i64,
    domain: &'a str,
    public_key: [u8; 32],
    sign_data_domain: &'a str,
}

impl<'a> Context<'a> {
    fn of(context: Option<&'a Value>) -> Result<Self, Refusal> {
        let field = |key: &str| context.and_then(|context| context.get(key));
        let text = |key: &str| field(key).and_then(Value::as_str).filter(|s| !s.is_empty());
        let missing = |what: &str| Refusal(format!("Missing {what} of the TON signature"));
        Ok(Self {
            timestamp: field("timestamp")
                .and_then(Value::as_i64)
                .ok_or_else(|| missing("timestamp"))?,
            domain: text("domain").ok_or_else(|| missing("domain"))?,
            public_key: text("publicKey")
                .and_then(|key| hex::decode(key).ok())
                .and_then(|key| key.try_into().ok())
                .ok_or_else(|| missing("publicKey"))?,
            sign_data_domain: text("signDataDomain").ok_or_else(|| missing("signDataDomain"))?,
        })
    }

    /// Whether the app's domain is the accepted one or a subdomain of it.
    fn is_ours(&self) -> bool {
        self.domain
            .strip_suffix(self.sign_data_domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.') && rest.len() > 1)
    }
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
