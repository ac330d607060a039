//! Entries of the generic mapping, for which clients sign.

use vm::{
    ChainId,
    protocol::message::{Domain, NoFillOrRefund, NonceMapping},
};

use super::*;
use crate::attest::mapping::{NoFillOrRefundClaim, NonceMappingClaim};

const ID: &str = "0x7b1fda4a2dada0d6d83f09c04be751c5460378158671343f1bd8886605e06e69";
const OTHER: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";

/// The world with the contract of entries.
fn mapped() -> World {
    let mut world = world();
    world.oracle.hub.settings.generic_mapping = Some(EvmAddress::repeat_byte(8));
    world
}

fn sign(digest: &B256) -> String {
    let signature = fixtures::key().sign_hash_sync(digest).unwrap();
    alloy::hex::encode_prefixed(signature.as_bytes())
}

/// The wallet's signature that its transfer with the nonce 17 is the deposit for `id`.
fn wallet_signature(id: &str, depositor: Option<&str>) -> String {
    let message = NonceMapping {
        chain_id: "base".into(),
        wallet: fixtures::key().address(),
        depositor: depositor.map(|text| text.parse().unwrap()),
        id: id.parse().unwrap(),
        nonce: U256::from(17),
    };
    let domain = match depositor {
        Some(_) => Domain::nonce_mapping,
        None => Domain::first_nonce_mapping,
    };
    sign(&message.digest(&domain(U256::from(1))))
}

async fn map(world: &World, id: &str, depositor: Option<&str>) -> Result<MappingAnswer, Error> {
    let (wallet, signature) = (fixtures::sender(), wallet_signature(id, depositor));
    let claim = NonceMappingClaim {
        wallet_chain_id: "base",
        wallet: wallet.text(),
        nonce: "17",
        id,
        depositor,
        signature_chain_id: "ethereum",
        signature: &signature,
    };
    world.oracle.nonce_mapping(&claim, None).await
}

async fn give_up(world: &World, signature: &str) -> Result<MappingAnswer, Error> {
    let solver = fixtures::sender();
    let claim = NoFillOrRefundClaim {
        solver_chain_id: "base",
        solver: solver.text(),
        order_id: ID,
        signature,
    };
    world.oracle.no_fill_or_refund(&claim, None).await
}

fn solver_signature() -> String {
    let message = NoFillOrRefund {
        chain_id: "base".into(),
        solver: fixtures::key().address(),
        order_id: ID.parse().unwrap(),
    };
    sign(&message.digest(&Domain::no_fill_or_refund(U256::from(1))))
}

#[tokio::test]
async fn an_entry_is_signed_for_its_contract_and_again_with_the_same_bytes() {
    let world = mapped();
    let first = map(&world, ID, Some(DEPOSITOR)).await.unwrap();
    let domain = Domain::generic_mapping(U256::from(31337), EvmAddress::repeat_byte(8));
    let digest = first.entry.mapping.digest(&domain);
    let [ours] = &first.signatures[..] else {
        panic!("{first:?}");
    };
    let own = world.oracle.journal.signer();
    assert_eq!(ours.signature.recover(&digest), Ok(own));
    let contract = format!("{:#x}", EvmAddress::repeat_byte(8));
    assert_eq!(ours.domain, Some(["31337".to_owned(), contract]));
    let again = map(&world, ID, Some(DEPOSITOR)).await.unwrap();
    assert_eq!(again.signatures, first.signatures);
    let wallet = alias(&ChainId::new("base"), &fixtures::sender());
    let key = format!("mapping/{wallet:#x}/{}", first.entry.mapping.id);
    assert!(world.oracle.journal.entry(&key).await.unwrap().is_some());
}

/// Its wallet signs another one, or the same without a depositor: the entry stands.
#[tokio::test]
async fn a_nonce_of_a_wallet_has_one_entry_for_ever() {
    let world = mapped();
    map(&world, ID, Some(DEPOSITOR)).await.unwrap();
    for (id, depositor) in [(OTHER, Some(DEPOSITOR)), (ID, Some(RECIPIENT)), (ID, None)] {
        assert_eq!(word(map(&world, id, depositor).await), "conflict", "{id}");
    }
    let first = mapped();
    map(&first, ID, None).await.unwrap();
    assert_eq!(word(map(&first, ID, Some(DEPOSITOR)).await), "conflict");
}

#[tokio::test]
async fn an_order_is_given_up_by_its_solver_only() {
    let world = mapped();
    let answer = give_up(&world, &solver_signature()).await.unwrap();
    assert_eq!(answer.entry.data, "0x01");
    let other = mapped();
    let refused = give_up(&other, &wallet_signature(ID, None)).await;
    assert_eq!(word(refused), "SIGNATURE_INVALID");
    assert!(journal_is_empty(&other).await);
}

/// Whoever makes a key signs for as many entries as it likes, and their rows live for ever.
#[tokio::test]
async fn below_the_reserve_a_stranger_makes_no_new_entry() {
    let world = mapped();
    let first = map(&world, ID, Some(DEPOSITOR)).await.unwrap();
    let low = full(world);
    let again = asking::by(false, map(&low, ID, Some(DEPOSITOR))).await;
    assert_eq!(again.unwrap().signatures, first.signatures);
    let signature = solver_signature();
    for (keyed, expected) in [(false, "room"), (true, "OK"), (false, "OK")] {
        let given_up = asking::by(keyed, give_up(&low, &signature)).await;
        assert_eq!(word(given_up), expected, "{keyed}");
    }
    let free = mapped();
    let given_up = asking::by(false, give_up(&free, &signature)).await;
    assert_eq!(word(given_up), "OK");
}

/// The number of a chain is known where nobody reads it.
#[tokio::test]
async fn a_wallet_may_sign_on_a_chain_that_is_not_read() {
    let mut world = mapped();
    let known = world.oracle.chains.get_mut("ethereum").unwrap();
    known.chain = Err("no provider".into());
    map(&world, ID, Some(DEPOSITOR)).await.unwrap();
    world
        .oracle
        .chains
        .get_mut("ethereum")
        .unwrap()
        .hub_chain_id = None;
    let refused = map(&world, ID, Some(DEPOSITOR)).await;
    assert_eq!(word(refused), "CHAIN_NOT_AVAILABLE");
}

#[tokio::test]
async fn without_the_contract_nothing_is_signed() {
    let world = world();
    let refused = map(&world, ID, Some(DEPOSITOR)).await.unwrap_err();
    assert_eq!(refused.to_string(), "Missing generic mapping config");
    let refused = give_up(&world, &solver_signature()).await;
    assert_eq!(word(refused), "CONTRACT_NOT_CONFIGURED");
    assert!(journal_is_empty(&world).await);
}

async fn journal_is_empty(world: &World) -> bool {
    let wallet = alias(&ChainId::new("base"), &fixtures::sender());
    let user = wallet.to_checksum(None);
    let nonce = vm::protocol::mapping::nonce_mapping_id("17");
    let order = vm::protocol::mapping::no_fill_or_refund(&user, ID)
        .unwrap()
        .id;
    let mut entries = Vec::new();
    for id in [nonce, order] {
        let key = format!("mapping/{wallet:#x}/{id}");
        entries.push(world.oracle.journal.entry(&key).await.unwrap());
    }
    entries.iter().all(Option::is_none)
}
