//! The solver's keys by scheme: each family's accounts have keys of one.

use std::sync::Arc;

use vm::{
    Address, CodecError, Family,
    trade::{self, Scheme},
};

use super::{Signer, families::Secp256k1};

/// The variable of the environment that has the solver's key of a scheme.
pub const fn variable(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Secp256k1 => "SOLVER_PRIVATE_KEY",
        Scheme::Ed25519 => "SOLVER_ED25519_KEY",
    }
}

/// The keys that the solver promises and pays with.
#[derive(Clone)]
pub struct KeyRing {
    /// Orders are promised with it, too, whatever the family of their chains.
    pub secp256k1: Arc<dyn Signer>,
    pub ed25519: Option<Arc<dyn trade::Signer>>,
}

impl KeyRing {
    /// The ring of a solver that has accounts with secp256k1 keys only.
    pub fn of_secp256k1(key: Arc<dyn Signer>) -> Self {
        Self {
            secp256k1: key,
            ed25519: None,
        }
    }

    /// The key of a scheme, as families ask for it; `None` where there is none.
    pub fn of(&self, scheme: Scheme) -> Option<Arc<dyn trade::Signer>> {
        match scheme {
            Scheme::Secp256k1 => Some(Arc::new(Secp256k1(self.secp256k1.clone()))),
            Scheme::Ed25519 => self.ed25519.clone(),
        }
    }

    /// The key of a family's accounts. An error where there is none, with the variable that it would stand in.
    pub fn key(&self, family: &Family) -> Result<Arc<dyn trade::Signer>, CodecError> {
        let keys = family.keys.ok_or_else(|| keyless(family))?;
        self.of(keys.scheme).ok_or_else(|| {
            let (variable, family) = (variable(keys.scheme), family.name);
            CodecError(format!("{variable} is needed for accounts of {family}"))
        })
    }

    /// The solver's account on chains of a family. An error as of [`Self::key`].
    pub fn account(&self, family: &Family) -> Result<Address, CodecError> {
        let keys = family.keys.ok_or_else(|| keyless(family))?;
        (keys.account)(&self.key(family)?.public_key())
    }
}

fn keyless(family: &Family) -> CodecError {
    let name = family.name;
    CodecError(format!("this version has no accounts of {name}"))
}

/// A key that the solver had before.
#[derive(Clone)]
pub enum FormerKey {
    Secp256k1(Arc<dyn Signer>),
    Ed25519(Arc<dyn trade::Signer>),
}

impl FormerKey {
    /// The key as a family asks for it; `None` where the family's accounts have keys of another scheme.
    pub fn key(&self, family: &Family) -> Option<Arc<dyn trade::Signer>> {
        match (family.keys?.scheme, self) {
            (Scheme::Secp256k1, Self::Secp256k1(key)) => Some(Arc::new(Secp256k1(key.clone()))),
            (Scheme::Ed25519, Self::Ed25519(key)) => Some(key.clone()),
            _ => None,
        }
    }

    /// The key that orders may have been promised with; `None` of a scheme that promises nothing.
    pub fn promising(&self) -> Option<&Arc<dyn Signer>> {
        match self {
            Self::Secp256k1(key) => Some(key),
            Self::Ed25519(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use vm::FamilyKeys;

    use super::*;
    use crate::sign::{ed25519::Ed25519Key, raw::RawKey};

    const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    const SEED: &str = "0x9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

    fn ring(ed25519: Option<&str>) -> KeyRing {
        let ed25519 = ed25519.map(|text| Ed25519Key::parse(text).unwrap());
        KeyRing {
            secp256k1: Arc::new(RawKey::parse(KEY).unwrap()),
            ed25519: ed25519.map(|key| Arc::new(key) as Arc<dyn trade::Signer>),
        }
    }

    /// A family like the one of a name, whose accounts are public keys of a scheme.
    fn family(name: &str, scheme: Scheme) -> Family {
        let account = |key: &[u8]| {
            let text = alloy::hex::encode_prefixed(key);
            Ok(Address::from_parts(&text, key.to_vec()))
        };
        let keys = Some(FamilyKeys { scheme, account });
        let found = vm::family(name).unwrap();
        Family { keys, ..*found }
    }

    #[test]
    fn a_family_has_the_account_of_its_scheme() {
        let ethereum = vm::family("ethereum-vm").unwrap();
        let ring = ring(Some(SEED));
        let account = ring.account(ethereum).unwrap();
        assert_eq!(account.bytes(), ring.secp256k1.address().as_slice());
        let solana = family("solana-vm", Scheme::Ed25519);
        let account = ring.account(&solana).unwrap();
        let key = ring.of(Scheme::Ed25519).unwrap();
        assert_eq!(account.bytes(), &key.public_key()[..]);
    }

    #[test]
    fn a_missing_key_is_named_with_its_family() {
        let refused = ring(None).account(&family("solana-vm", Scheme::Ed25519));
        let what = "SOLVER_ED25519_KEY is needed for accounts of solana-vm";
        assert_eq!(refused, Err(CodecError(what.to_owned())));
        let keyless = Family {
            keys: None,
            ..*vm::family("lighter-vm").unwrap()
        };
        let refused = ring(Some(SEED)).account(&keyless).unwrap_err();
        assert!(refused.0.contains("lighter-vm"), "{refused}");
    }

    #[test]
    fn former_keys_are_of_either_scheme_and_have_accounts_of_it_only() {
        let old = FormerKey::Secp256k1(Arc::new(RawKey::parse(KEY).unwrap()));
        let ed25519 = FormerKey::Ed25519(Arc::new(Ed25519Key::parse(SEED).unwrap()));
        let solana = family("solana-vm", Scheme::Ed25519);
        let ethereum = family("ethereum-vm", Scheme::Secp256k1);
        let has = |key: &FormerKey| {
            let accounts = [&ethereum, &solana].map(|family| key.key(family).is_some());
            (accounts, key.promising().is_some())
        };
        assert_eq!(has(&old), ([true, false], true));
        assert_eq!(has(&ed25519), ([false, true], false));
    }
}
