//! What owners of hub accounts ask for, and their signatures (guide: protocol 6.3). Pure: no I/O, no clock.

use std::sync::Arc;

use serde_json::{Map, Value};
use vm::{
    Address, Amount, Bytes, ChainSpec, EvmAddress, Family, OwnerClaim,
    protocol::{
        owner::{Kind, Operation},
        text,
    },
};

use super::{
    Refusal,
    claim::{Families, malformed},
    execution,
};

/// An operation on its owner's hub account, as the caller wrote it: the owner's signature covers these texts.
#[derive(Clone, Debug)]
pub struct Requested {
    pub kind: Kind,
    pub chain: String,
    pub currency: String,
    pub amount: String,
    pub owner_chain: String,
    pub owner: String,
    pub recipient: String,
    pub nonce: String,
    /// By family name.
    pub additional: Option<Map<String, Value>>,
}

/// The owner of a hub account.
#[derive(Clone, Debug)]
pub struct Owner {
    pub family: &'static Family,
    pub address: Address,
    pub account: EvmAddress,
}

/// An owner's signature as the caller wrote it.
#[derive(Clone, Debug)]
pub struct OwnerSignature {
    pub text: String,
    /// How it was made, by family name. The signature need not cover it.
    pub metadata: Option<Map<String, Value>>,
}

impl OwnerSignature {
    /// A signature of which nothing else is said.
    pub fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            metadata: None,
        }
    }
}

/// What an owner's chain has for the check of a signature.
#[derive(Clone, Debug)]
pub struct KnownOwner {
    pub spec: Arc<ChainSpec>,
    /// `None`: the chain has no key of the owner's.
    pub key: Option<Bytes>,
}

impl Requested {
    /// Parses the owner; its chain must be configured.
    pub fn owner(&self, families: Families<'_>) -> Result<Owner, Refusal> {
        let chain = &self.owner_chain;
        let family = families(chain).ok_or_else(|| Refusal::ChainNotAvailable(chain.into()))?;
        let address = family.account(&self.owner);
        let address = address.map_err(|why| malformed("body/owner", why))?;
        Ok(Owner {
            family,
            account: execution::account(chain, &address),
            address,
        })
    }

    /// Parses the amount, which must not be zero.
    pub fn amount(&self) -> Result<Amount, Refusal> {
        let amount = text::number(&self.amount);
        let amount = amount.map_err(|why| malformed("body/amount", why))?;
        match (amount.is_zero(), self.kind) {
            (false, _) => Ok(amount),
            (true, Kind::Withdrawal) => Err(Refusal::ZeroWithdrawal),
            (true, Kind::Transfer) => Err(Refusal::ZeroTransfer),
        }
    }

    /// Refuses a signature that is none whatever key the owner's chain has: before that is read.
    pub fn check_form(
        &self,
        owner: &Owner,
        signature: &OwnerSignature,
        spec: &ChainSpec,
    ) -> Result<(), Refusal> {
        let verifier = owner.family.owners.ok_or(Refusal::OwnerFamily)?;
        let checked = verifier.check(&OwnerClaim {
            settings: Some(&spec.additional),
            ..self.claim(owner, signature)
        });
        checked.map_err(|why| Refusal::OwnerDenied(why.0.into()))
    }

    /// Refuses an operation without the signature of its owner. `known` is what the owner's chain has, where the family
    /// reads it.
    pub fn check_signature(
        &self,
        owner: &Owner,
        signature: &OwnerSignature,
        known: Option<&KnownOwner>,
    ) -> Result<(), Refusal> {
        let verifier = owner.family.owners.ok_or(Refusal::OwnerFamily)?;
        let signed = verifier.verify(&OwnerClaim {
            key: known.and_then(|known| known.key.as_ref()),
            settings: known.map(|known| &known.spec.additional),
            ..self.claim(owner, signature)
        });
        signed.map_err(|why| Refusal::OwnerDenied(why.0.into()))
    }

    /// A claim without what the owner's chain has.
    fn claim<'a>(&'a self, owner: &Owner, signature: &'a OwnerSignature) -> OwnerClaim<'a> {
        let metadata = signature.metadata.as_ref();
        OwnerClaim {
            digest: self.digest(),
            owner: &self.owner,
            signature: &signature.text,
            metadata: metadata.and_then(|metadata| metadata.get(owner.family.name)),
            key: None,
            settings: None,
        }
    }

    /// What the owner signs.
    fn digest(&self) -> [u8; 32] {
        let additional = self.additional.clone().map(Value::Object);
        let operation = Operation {
            kind: self.kind,
            chain_id: &self.chain,
            currency: &self.currency,
            amount: &self.amount,
            owner_chain_id: &self.owner_chain,
            owner: &self.owner,
            recipient: &self.recipient,
            nonce: &self.nonce,
            additional: additional.as_ref(),
        };
        operation.digest()
    }

    /// Refuses what only the owner may choose: with a returned deposit, whoever asks could choose it, and the first
    /// choice stands.
    pub fn check_bare(&self) -> Result<(), Refusal> {
        match self.additional {
            Some(_) => Err(Refusal::AdditionalUnsigned),
            None => Ok(()),
        }
    }

    /// Why the hub may hold too little for it.
    pub fn insufficient(&self) -> Refusal {
        Refusal::InsufficientFor(self.kind.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use vm::FAMILIES;

    use super::*;

    fn of(data: &Value) -> Requested {
        let text = |field: &str| data[field].as_str().unwrap().to_owned();
        Requested {
            kind: match data["operation"].as_str().unwrap() {
                "transfer" => Kind::Transfer,
                _ => Kind::Withdrawal,
            },
            chain: text("chainId"),
            currency: text("currency"),
            amount: text("amount"),
            owner_chain: text("ownerChainId"),
            owner: text("owner"),
            recipient: text("recipient"),
            nonce: text("nonce"),
            additional: data["additionalData"].as_object().cloned(),
        }
    }

    fn families(chain: &str) -> Option<&'static Family> {
        let name = match chain {
            "ethereum" | "base" => "ethereum-vm".to_owned(),
            other => format!("{other}-vm"),
        };
        FAMILIES.iter().copied().find(|family| family.name == name)
    }

    /// The known signatures of every family, for the operation, amount and owner that they were made for.
    #[test]
    fn owners_of_every_family_sign() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/vm/fixtures/vectors/owner_signature.json"
        );
        let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let mut accepted = std::collections::BTreeSet::new();
        for case in vectors["cases"].as_array().unwrap() {
            let requested = of(&case["input"]["data"]);
            let signature = case["input"]["signature"].as_str().unwrap();
            let Ok(owner) = requested.owner(&families) else {
                assert!(case.get("throws").is_some(), "{}", case["id"]);
                continue;
            };
            let signature = OwnerSignature::plain(signature);
            let signed = requested.check_signature(&owner, &signature, None);
            assert_eq!(
                signed.is_ok(),
                case.get("throws").is_none(),
                "{}",
                case["id"]
            );
            if signed.is_ok() {
                accepted.insert(owner.family.name);
            }
        }
        let expected = [
            "bitcoin-vm",
            "ethereum-vm",
            "hyperliquid-vm",
            "solana-vm",
            "tron-vm",
        ];
        assert!(accepted.iter().eq(expected.iter()), "{accepted:?}");
    }

    fn asked_by(chain: &str, owner: &str) -> Requested {
        of(&serde_json::json!({
            "operation": "transfer", "chainId": "ethereum", "currency": "0x", "amount": "1",
            "recipient": "0x", "nonce": "1", "ownerChainId": chain, "owner": owner,
        }))
    }

    #[test]
    fn owners_that_sign_nothing_or_whose_keys_are_not_known_are_refused() {
        for (chain, owner, wanted) in [
            (
                "lighter",
                "722011",
                "Lighter account 722011 has no l1_address",
            ),
            ("ton", WALLET, "Missing timestamp of the TON signature"),
            ("xrp", "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh", ""),
        ] {
            let mut requested = asked_by(chain, owner);
            let known = requested.owner(&families).unwrap();
            let signed = requested.check_signature(&known, &OwnerSignature::plain("0x"), None);
            let wanted = match wanted {
                "" => Refusal::OwnerFamily,
                text => Refusal::OwnerDenied(text.into()),
            };
            assert_eq!(signed, Err(wanted), "{chain}");
            requested.owner_chain = "nochain".into();
            assert!(requested.owner(&families).is_err());
        }
    }

    const WALLET: &str = "0:f37b9f6fd97ece249cb48d9aa5d0202570ad130b7b7d4ce4dd0f4cd551b3d9bd";

    /// A wallet's key, the settings of its chain and what the caller says make one check.
    #[test]
    fn a_wallet_signs_with_the_key_that_its_chain_has() {
        let key = ed25519_dalek::SigningKey::from_bytes(&[7; 32]);
        let requested = asked_by("ton", WALLET);
        let owner = requested.owner(&families).unwrap();
        let digest = alloy::hex::encode(requested.digest());
        let account = owner.address.bytes().try_into().unwrap();
        let hash = vm::ton::owner::sign_data_hash(account, "app.relay.link", 77, &digest);
        let signature = ed25519_dalek::Signer::sign(&key, &hash).to_bytes();
        let said = |family: &str, timestamp: i64| OwnerSignature {
            text: alloy::hex::encode_prefixed(signature),
            metadata: serde_json::json!({
                family: { "timestamp": timestamp, "domain": "app.relay.link" },
            })
            .as_object()
            .cloned(),
        };
        let known = |key: Option<[u8; 32]>, domain: &str| {
            let entry = serde_json::json!({
                "id": "ton", "vmType": "ton-vm", "hubChainId": "7",
                "additionalData": { "signDataDomain": domain },
            });
            let entry: vm::ChainEntry = serde_json::from_value(entry).unwrap();
            KnownOwner {
                spec: entry.spec(&vm::ton::FAMILY, false).unwrap(),
                key: key.map(|key| key.to_vec().into()),
            }
        };
        let own = Some(key.verifying_key().to_bytes());
        let checked = |said: &OwnerSignature, known: &KnownOwner| {
            requested.check_signature(&owner, said, Some(known))
        };
        assert_eq!(
            checked(&said("ton-vm", 77), &known(own, "relay.link")),
            Ok(())
        );
        for (said, known) in [
            (said("ton-vm", 78), known(own, "relay.link")),
            (said("tron-vm", 77), known(own, "relay.link")),
            (said("ton-vm", 77), known(own, "other.link")),
            (said("ton-vm", 77), known(own, "")),
            (said("ton-vm", 77), known(None, "relay.link")),
            (said("ton-vm", 77), known(Some([9; 32]), "relay.link")),
        ] {
            assert!(checked(&said, &known).is_err());
        }
    }
}
