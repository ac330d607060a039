//! Entries of the generic mapping that wallets sign for, in the first version of the message.

use alloy::primitives::{Address, B256, U256};
use devnet::account::Account;
use serde_json::{Value, json};
use vm::{
    ChainId,
    protocol::{
        hub::alias,
        mapping,
        message::{Domain, NonceMapping, TypedMessage},
        signature::{recover_wallet, signature_hex},
    },
};

use crate::support::{
    daemon::{Answer, daemon},
    world,
};

const FIRST: &str = "/attestations/signatures/nonce-mapping/v1";
const SECOND: &str = "/attestations/signatures/nonce-mapping/v2";
const ORDER: &str = "0x35d7b5c459559158bbf70d3d95bdc5ed274d5f4c91bb41a3e456a2982f8b0f48";
const CONTRACT: &str = "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9";
/// Who signs with the daemon's key.
const SIGNER: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
/// Of the hub, and of the chain on which the wallet signs.
const NUMBER: U256 = U256::from_limbs([31_337, 0, 0, 0]);

fn wallet() -> Account {
    Account::named("wallet").unwrap()
}

/// The wallet's word that its transfer with the nonce 17 is the deposit for the order, signed in `domain`.
fn body(domain: &Domain) -> Value {
    let wallet = wallet();
    let message = NonceMapping {
        chain_id: "hyperliquid".into(),
        wallet: wallet.address(),
        depositor: None,
        id: ORDER.parse().unwrap(),
        nonce: U256::from(17),
    };
    let signature = wallet.sign_digest(message.digest(domain)).unwrap();
    json!({
        "walletChainId": "hyperliquid", "wallet": wallet.address().to_string(), "nonce": "17",
        "id": ORDER, "signatureChainId": "ethereum", "signature": signature.to_string(),
    })
}

fn refused(answer: &Answer) {
    let found = (answer.status.as_u16(), answer.code());
    assert_eq!(found, (400, "SIGNATURE_INVALID".into()), "{}", answer.body);
    assert_eq!(answer.json()["message"], "Invalid signature");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_of_the_first_version_is_signed_for_its_wallets_word_alone() {
    let world = world::world().await;
    let daemon = daemon().recorded(&world).start().await;
    let sound = body(&Domain::first_nonce_mapping(NUMBER));
    let answer = daemon.attest(FIRST, &sound).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let json = answer.json();
    let shown = &json["genericMapping"];
    let family = vm::family("hyperliquid-vm").unwrap();
    let account = family.account(&wallet().address().to_string()).unwrap();
    let user = alias(&ChainId::new("hyperliquid"), &account).to_checksum(None);
    let id: B256 = ORDER.parse().unwrap();
    let entry = mapping::nonce_mapping(&user, "17", id, None).unwrap();
    assert_eq!(&entry.data[..], id.as_slice(), "it names no depositor");
    for (field, wanted) in [
        ("user", user),
        ("id", entry.id.to_string()),
        ("data", ORDER.to_owned()),
        ("nonce", entry.nonce.to_string()),
    ] {
        assert_eq!(shown[field], wanted, "{field}");
    }
    let [ours] = &shown["signatures"].as_array().unwrap()[..] else {
        panic!("{shown}");
    };
    assert_eq!(ours["genericMappingChainId"], NUMBER.to_string());
    assert_eq!(ours["genericMappingContract"], CONTRACT);
    assert_eq!(ours["oracleSigner"], SIGNER);
    let domain = Domain::generic_mapping(NUMBER, CONTRACT.parse().unwrap());
    let signature = signature_hex(ours["signature"].as_str().unwrap()).unwrap();
    let signer = recover_wallet(&signature, &entry.digest(&domain));
    let own: Address = SIGNER.parse().unwrap();
    assert_eq!(signer, Ok(own));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_word_than_the_first_versions_makes_no_entry_of_it() {
    let world = world::world().await;
    let daemon = daemon().recorded(&world).start().await;
    let sound = body(&Domain::first_nonce_mapping(NUMBER));
    let other_order = B256::repeat_byte(7).to_string();
    for (field, value) in [
        ("nonce", "18"),
        ("wallet", CONTRACT),
        ("id", other_order.as_str()),
    ] {
        let mut changed = sound.clone();
        changed[field] = json!(value);
        refused(&daemon.attest(FIRST, &changed).await);
    }
    // The domains are two: neither version's word is the other's.
    let other = body(&Domain::nonce_mapping(NUMBER));
    refused(&daemon.attest(FIRST, &other).await);
    let mut second = sound.clone();
    second["depositor"] = json!(Address::ZERO.to_string());
    refused(&daemon.attest(SECOND, &second).await);
    let mut elsewhere = sound;
    elsewhere["signatureChainId"] = json!("hyperliquid");
    let answer = daemon.attest(FIRST, &elsewhere).await;
    assert_eq!(
        answer.code(),
        "SIGNATURE_CHAIN_UNSUPPORTED",
        "{}",
        answer.body
    );
    daemon.stop().await;
}
