use alloy::primitives::{address, b256};
use k256::ecdsa::SigningKey;
use vm::protocol::signature::Signature;

use super::*;

const KEY: B256 = b256!("59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
const SIGNER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const ID: &str = "0x7b1fda4a2dada0d6d83f09c04be751c5460378158671343f1bd8886605e06e69";
const DEPOSITOR: &str = "0x18e3309e01aac183654bedf707780d07062be485";

fn network(chain: &str) -> Option<Network> {
    let (family, number) = match chain {
        "ethereum" => ("ethereum-vm", 1),
        "base" => ("ethereum-vm", 8453),
        "hyperliquid" => ("hyperliquid-vm", 1337),
        "solana" => ("solana-vm", 7),
        _ => return None,
    };
    Some(Network {
        family: vm::family(family)?,
        hub_chain_id: U256::from(number),
    })
}

fn sign(digest: &B256) -> String {
    let key = SigningKey::from_slice(&KEY[..]).unwrap();
    let (signature, id) = key.sign_prehash_recoverable(&digest[..]).unwrap();
    let (r, s) = signature.split_bytes();
    Signature::from_scalars(B256::from_slice(&r), B256::from_slice(&s), id.is_y_odd())
        .unwrap()
        .to_string()
}

/// A signature of [`SIGNER`] for chain number `number`.
fn mapping_signature(wallet_chain: &str, number: u64) -> String {
    let message = NonceMapping {
        chain_id: wallet_chain.to_owned(),
        wallet: address!("70997970c51812dc3a010c7d01b50e0d17dc79c8"),
        depositor: Some(address!("18e3309e01aac183654bedf707780d07062be485")),
        id: ID.parse().unwrap(),
        nonce: U256::from(17),
    };
    sign(&message.digest(&Domain::nonce_mapping(U256::from(number))))
}

fn claim(signature: &str) -> NonceMappingClaim<'_> {
    NonceMappingClaim {
        wallet_chain_id: "hyperliquid",
        wallet: SIGNER,
        nonce: "17",
        id: ID,
        depositor: Some(DEPOSITOR),
        signature_chain_id: "base",
        signature,
    }
}

fn solver_signature(number: u64) -> String {
    let message = NoFillOrRefund {
        chain_id: "base".to_owned(),
        solver: address!("70997970c51812dc3a010c7d01b50e0d17dc79c8"),
        order_id: ID.parse().unwrap(),
    };
    sign(&message.digest(&Domain::no_fill_or_refund(U256::from(number))))
}

fn solver_claim(signature: &str) -> NoFillOrRefundClaim<'_> {
    NoFillOrRefundClaim {
        solver_chain_id: "base",
        solver: SIGNER,
        order_id: ID,
        signature,
    }
}

#[test]
fn a_wallets_word_becomes_an_entry_under_its_alias() {
    let signature = mapping_signature("hyperliquid", 8453);
    let Entry {
        mapping: entry,
        data,
    } = claim(&signature).judge(&network).unwrap();
    assert_eq!(data, format!("{ID}{}", &DEPOSITOR[2..]));
    let wallet = network("hyperliquid").unwrap().family.address(SIGNER);
    assert_eq!(
        entry.user,
        alias(&ChainId::new("hyperliquid"), &wallet.unwrap())
    );
    assert_eq!(entry.id, mapping::nonce_mapping_id("17"));
    assert_eq!(entry.data.len(), 52);
}

#[test]
fn a_word_for_another_chain_nonce_or_depositor_is_refused() {
    let signature = mapping_signature("hyperliquid", 8453);
    let good = claim(&signature);
    let wrong = [
        NonceMappingClaim {
            wallet_chain_id: "ethereum",
            ..good
        },
        NonceMappingClaim {
            wallet: DEPOSITOR,
            ..good
        },
        NonceMappingClaim {
            nonce: "18",
            ..good
        },
        NonceMappingClaim {
            id: &format!("0x{}", "11".repeat(32)),
            ..good
        },
        NonceMappingClaim {
            depositor: Some(SIGNER),
            ..good
        },
        NonceMappingClaim {
            signature_chain_id: "ethereum",
            ..good
        },
        NonceMappingClaim {
            signature: &signature[..130],
            ..good
        },
        NonceMappingClaim {
            signature: "0x",
            ..good
        },
        NonceMappingClaim {
            signature: "",
            ..good
        },
    ];
    for claim in wrong {
        assert_eq!(
            claim.judge(&network),
            Err(Refusal::ClientSignature),
            "{claim:?}"
        );
    }
}

#[test]
fn chains_that_cannot_have_signed_are_named() {
    let signature = mapping_signature("hyperliquid", 7);
    let good = claim(&signature);
    let solana = NonceMappingClaim {
        signature_chain_id: "solana",
        ..good
    };
    assert_eq!(solana.judge(&network), Err(Refusal::SignatureChain));
    let unknown = NonceMappingClaim {
        signature_chain_id: "nope",
        ..good
    };
    assert_eq!(
        unknown.judge(&network),
        Err(Refusal::ChainNotAvailable("nope".into()))
    );
    let signature = mapping_signature("nope", 8453);
    let unknown = NonceMappingClaim {
        wallet_chain_id: "nope",
        ..claim(&signature)
    };
    assert_eq!(
        unknown.judge(&network),
        Err(Refusal::ChainNotAvailable("nope".into()))
    );
}

#[test]
fn malformed_fields_are_named() {
    let signature = mapping_signature("hyperliquid", 8453);
    let good = claim(&signature);
    let zero = format!("0x{}", "00".repeat(32));
    let wrong = [
        (
            "nonce",
            NonceMappingClaim {
                nonce: "017",
                ..good
            },
        ),
        (
            "nonce",
            NonceMappingClaim {
                nonce: "0x11",
                ..good
            },
        ),
        ("nonce", NonceMappingClaim { nonce: "", ..good }),
        (
            "nonce",
            NonceMappingClaim {
                nonce: "-17",
                ..good
            },
        ),
        (
            "wallet",
            NonceMappingClaim {
                wallet: "0x1",
                ..good
            },
        ),
        (
            "depositor",
            NonceMappingClaim {
                depositor: Some("0X18e3309e01aac183654bedf707780d07062be485"),
                ..good
            },
        ),
        ("id", NonceMappingClaim { id: "0x12", ..good }),
        ("id", NonceMappingClaim { id: &zero, ..good }),
    ];
    for (field, claim) in wrong {
        let Err(Refusal::Malformed(text)) = claim.judge(&network) else {
            panic!("{claim:?}");
        };
        assert!(
            text.to_string().starts_with(&format!("{field}: ")),
            "{text}"
        );
    }
}

#[test]
fn a_solvers_word_becomes_an_entry_under_its_alias() {
    let signature = solver_signature(8453);
    let Entry {
        mapping: entry,
        data,
    } = solver_claim(&signature).judge(&network).unwrap();
    assert_eq!(data, "0x01");
    assert_eq!(entry.id, mapping::no_fill_or_refund_id(ID));
    assert_eq!(entry.data[..], [1]);
}

#[test]
fn a_solvers_word_for_something_else_is_refused() {
    let signature = solver_signature(8453);
    let good = solver_claim(&signature);
    let other = format!("0x{}", "11".repeat(32));
    let elsewhere = solver_signature(1);
    let wrong = [
        NoFillOrRefundClaim {
            solver: DEPOSITOR,
            ..good
        },
        NoFillOrRefundClaim {
            order_id: &other,
            ..good
        },
        NoFillOrRefundClaim {
            solver_chain_id: "ethereum",
            ..good
        },
        NoFillOrRefundClaim {
            signature: &elsewhere,
            ..good
        },
    ];
    for claim in wrong {
        assert_eq!(
            claim.judge(&network),
            Err(Refusal::ClientSignature),
            "{claim:?}"
        );
    }
    let solana = NoFillOrRefundClaim {
        solver_chain_id: "solana",
        ..good
    };
    assert_eq!(solana.judge(&network), Err(Refusal::SignatureChain));
}

/// A signature of the first version names no depositor, and none of the two is one of the other.
#[test]
fn a_word_of_the_first_version_is_of_that_version_only() {
    let message = NonceMapping {
        chain_id: "hyperliquid".to_owned(),
        wallet: address!("70997970c51812dc3a010c7d01b50e0d17dc79c8"),
        depositor: None,
        id: ID.parse().unwrap(),
        nonce: U256::from(17),
    };
    let number = U256::from(8453);
    let first = sign(&message.digest(&Domain::first_nonce_mapping(number)));
    let without = NonceMappingClaim {
        depositor: None,
        ..claim(&first)
    };
    let Entry { mapping, data } = without.judge(&network).unwrap();
    assert_eq!((data.as_str(), mapping.data.len()), (ID, 32));
    let second = claim(&first);
    assert_eq!(second.judge(&network), Err(Refusal::ClientSignature));
    for other in [
        mapping_signature("hyperliquid", 8453),
        sign(&message.digest(&Domain::nonce_mapping(number))),
    ] {
        let without = NonceMappingClaim {
            signature: &other,
            ..without
        };
        assert_eq!(without.judge(&network), Err(Refusal::ClientSignature));
    }
}

#[test]
fn an_order_has_one_entry_however_it_is_spelled() {
    let signature = solver_signature(8453);
    let upper = format!("0x{}", ID[2..].to_uppercase());
    let claim = NoFillOrRefundClaim {
        order_id: &upper,
        ..solver_claim(&signature)
    };
    let refused = claim.judge(&network).unwrap_err();
    assert_eq!(refused.to_string(), "orderId: expected hex in lower case");
}
