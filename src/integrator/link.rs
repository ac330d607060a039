//! The link of a sponsorship wallet: the message that its holder signs, and the check of the signature. Pure.

use vm::{
    CodecError,
    protocol::{signature::verify_personal, text::evm_address},
};

/// The greatest age of a message in seconds.
const WINDOW: u64 = 5 * 60;

/// A link of a wallet to an integrator, at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// The name of this service, different from that of every other service.
    pub service: &'a str,
    /// The integrator's label.
    pub label: &'a str,
    /// `0x` and 40 lower-case hex digits; see [`address`].
    pub wallet: &'a str,
    /// Unix seconds.
    pub time: u64,
}

/// Why a wallet is not linked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error("{0}")]
    Address(String),
    #[error("the message must be of the last {} minutes: sign a new one", WINDOW / 60)]
    Time,
    #[error("a message of this time has linked a wallet already: sign a new one")]
    Used,
    #[error("the wallet has not signed this message")]
    Signature,
}

/// A wallet's address in the form of links (lower case); the checksum of a mixed-case address must be right.
pub fn address(text: &str) -> Result<String, LinkError> {
    let address = evm_address(text).map_err(|CodecError(why)| LinkError::Address(why))?;
    Ok(format!("{address:#x}"))
}

impl Link<'_> {
    /// The text that the wallet signs with personal_sign (EIP-191).
    pub fn message(&self) -> String {
        let Self {
            service,
            label,
            wallet,
            time,
        } = self;
        format!(
            "Link a wallet to an API key\n\nService: {service}\nKey: {label}\nWallet: {wallet}\n\
             Time: {time}\n\nWhat this key sponsors may then be paid from the wallet's balance at \
             this service. Signing costs nothing and moves nothing."
        )
    }

    /// Whether the wallet signed [`Self::message`] shortly before `now` (unix seconds).
    pub fn verify(&self, signature: &str, now: u64) -> Result<(), LinkError> {
        let age = now.checked_sub(self.time);
        if age.is_none_or(|age| age > WINDOW) {
            return Err(LinkError::Time);
        }
        verify_personal(self.wallet, self.message().as_bytes(), signature)
            .map_err(|_| LinkError::Signature)
    }
}

#[cfg(test)]
mod tests {
    use alloy::signers::{SignerSync, local::PrivateKeySigner};

    use super::*;

    const NOW: u64 = 1_700_000_000;

    fn wallet(number: u8) -> PrivateKeySigner {
        PrivateKeySigner::from_slice(&[number; 32]).unwrap()
    }

    fn signed(by: &PrivateKeySigner, message: &str) -> String {
        by.sign_message_sync(message.as_bytes())
            .unwrap()
            .to_string()
    }

    #[test]
    fn only_the_wallets_signature_over_this_very_message_links_it() {
        let (own, other) = (wallet(1), wallet(2));
        let text = |signer: &PrivateKeySigner| format!("{:#x}", signer.address());
        let (mine, others) = (text(&own), text(&other));
        let link = Link {
            service: "intentd test 0x1",
            label: "app",
            wallet: &mine,
            time: NOW,
        };
        let signature = signed(&own, &link.message());
        assert_eq!(link.verify(&signature, NOW), Ok(()));
        let refused = Err(LinkError::Signature);
        for (what, changed) in [
            (
                "service",
                Link {
                    service: "intentd test 0x2",
                    ..link
                },
            ),
            (
                "label",
                Link {
                    label: "app2",
                    ..link
                },
            ),
            (
                "wallet",
                Link {
                    wallet: &others,
                    ..link
                },
            ),
            (
                "time",
                Link {
                    time: NOW - 1,
                    ..link
                },
            ),
        ] {
            assert_eq!(changed.verify(&signature, NOW), refused, "{what}");
        }
        assert_eq!(link.verify(&signed(&other, &link.message()), NOW), refused);
        for rubbish in ["", "0x", "0x12", &signature[2..], &signature[..130], "0xzz"] {
            assert_eq!(link.verify(rubbish, NOW), refused, "{rubbish}");
        }
    }

    #[test]
    fn old_and_early_messages_link_nothing() {
        let own = wallet(1);
        let mine = format!("{:#x}", own.address());
        let link = Link {
            service: "s",
            label: "app",
            wallet: &mine,
            time: NOW,
        };
        let signature = signed(&own, &link.message());
        for (now, fine) in [
            (NOW, true),
            (NOW + WINDOW, true),
            (NOW - 1, false),
            (NOW + WINDOW + 1, false),
            (0, false),
            (u64::MAX, false),
        ] {
            let expected = if fine { Ok(()) } else { Err(LinkError::Time) };
            assert_eq!(link.verify(&signature, now), expected, "{now}");
        }
    }

    #[test]
    fn addresses_are_spelled_one_way() {
        let checksummed = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
        let lower = checksummed.to_lowercase();
        assert_eq!(address(checksummed), Ok(lower.clone()));
        assert_eq!(address(&lower), Ok(lower));
        for wrong in [
            "",
            "0x",
            "70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "0x70997970c51812dc3A010C7d01b50e0d17dc79C8",
            "0x1",
        ] {
            assert!(
                matches!(address(wrong), Err(LinkError::Address(_))),
                "{wrong}"
            );
        }
    }
}
