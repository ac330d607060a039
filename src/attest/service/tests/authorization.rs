//! Withdraw requests that their spenders ask for, and the hashes that the allocator has for them.

use serde_json::Map;
use vm::protocol::message::Domain;

use super::{
    owned::{funded, given_back, named_by_other, owned, returning, with_second_depository},
    requested::{claim, hash, unnamed},
    *,
};

type Case = (&'static str, fn(&mut OwnedClaim));

const ALLOCATOR: EvmAddress = EvmAddress::repeat_byte(5);

pub(super) fn with_allocator(mut world: World) -> World {
    world.oracle.hub.settings.hub_allocator = Some(ALLOCATOR);
    world
}

pub(super) async fn authorized(world: &World, claim: &OwnedClaim) -> &'static str {
    word(world.oracle.authorization(claim, None).await)
}

#[tokio::test]
async fn a_request_is_signed_for_the_allocator_and_again_with_the_same_bytes() {
    let (world, claim) = (with_allocator(funded()), owned(|_| {}));
    let first = world.oracle.authorization(&claim, None).await.unwrap();
    let domain = Domain::allocator(U256::from(31337), ALLOCATOR);
    let message = first.request.message().unwrap();
    let [ours] = &first.signatures[..] else {
        panic!("{first:?}");
    };
    let own = world.oracle.journal.signer();
    assert_eq!(ours.signature.recover(&message.digest(&domain)), Ok(own));
    let depository = fixtures::spec("ethereum").depository.unwrap();
    assert_eq!(message.depository[..], depository.bytes()[..]);
    let again = world.oracle.authorization(&claim, None).await.unwrap();
    assert_eq!(again.signatures, first.signatures);
}

/// The kind of the statement that has what another one needs.
fn holder<T>(refused: Result<T, Error>) -> Option<String> {
    match refused {
        Err(Error::Journal(JournalError::Conflict { holder, .. })) => {
            Some(holder?.split('/').next()?.to_owned())
        }
        _ => None,
    }
}

/// The owner signs the same for an initiation: whoever sees one must not make two withdrawals of it.
#[tokio::test]
async fn an_owners_signature_serves_an_initiation_or_an_authorization() {
    let (world, claim) = (with_allocator(funded()), owned(|_| {}));
    assert_eq!(world.initiated(&claim).await, "OK");
    let refused = world.oracle.authorization(&claim, None).await;
    assert_eq!(holder(refused).as_deref(), Some("initiation"));
    let world = with_allocator(funded());
    assert_eq!(authorized(&world, &claim).await, "OK");
    let refused = world.oracle.owned_initiation(&claim, None).await;
    assert_eq!(holder(refused).as_deref(), Some("authorization"));
    // Whoever brought it there, its owner has the same signature.
    assert_eq!(authorized(&world, &claim).await, "OK");
    let other = owned(|requested| requested.nonce = B256::with_last_byte(10).to_string());
    assert_eq!(world.initiated(&other).await, "OK");
}

/// The signature does not cover the depository.
#[tokio::test]
async fn another_depository_is_another_request_of_the_same_nonce() {
    let world = with_allocator(with_second_depository(false));
    let claim = owned(|_| {});
    let spec = &world.oracle.chains["ethereum"].chain.as_ref().unwrap().spec;
    let second = spec.additional_depositories[0].text().to_owned();
    let elsewhere = OwnedClaim {
        depository: Some(second),
        ..claim.clone()
    };
    assert_eq!(authorized(&world, &claim).await, "OK");
    assert_eq!(authorized(&world, &elsewhere).await, "conflict");
    let mut bound = with_allocator(with_second_depository(false));
    bound.oracle.bound_nonces = true;
    let found = authorized(&bound, &elsewhere).await;
    assert_eq!(found, "WITHDRAWAL_NONCE_UNBOUND");
    let unknown = OwnedClaim {
        depository: Some(RECIPIENT.into()),
        ..claim
    };
    let found = authorized(&bound, &unknown).await;
    assert_eq!(found, "DEPOSITORY_NOT_CONFIGURED");
}

#[tokio::test]
async fn what_the_spender_did_not_ask_for_is_not_authorized() {
    let changes: &[Case] = &[
        ("OWNER_SIGNATURE_INVALID", |claim| {
            claim.requested.amount = "499".into();
        }),
        ("OWNER_SIGNATURE_INVALID", |claim| {
            claim.requested.recipient = DEPOSITOR.into();
        }),
        ("OWNER_SIGNATURE_INVALID", |claim| {
            claim.requested.owner = DEPOSITOR.into();
        }),
        ("OWNER_SIGNATURE_INVALID", |claim| {
            claim.requested.additional = Some(Map::new());
        }),
        ("INVALID_REQUEST", |claim| {
            claim.requested.nonce = "12".into();
        }),
        ("WITHDRAWAL_ZERO", |claim| {
            claim.requested.amount = "0".into();
        }),
        ("CHAIN_NOT_AVAILABLE", |claim| {
            claim.requested.owner_chain = "relay".into();
        }),
    ];
    for (code, change) in changes {
        let mut claim = owned(|_| {});
        change(&mut claim);
        assert_eq!(authorized(&with_allocator(funded()), &claim).await, *code);
    }
    let found = authorized(&funded(), &owned(|_| {})).await;
    assert_eq!(found, "CONTRACT_NOT_CONFIGURED");
}

/// The hub would take the amount, and no oracle would give it back.
#[tokio::test]
async fn a_request_of_whose_end_nobody_could_say_anything_is_not_authorized() {
    let (world, claim) = (with_allocator(unnamed(funded())), owned(|_| {}));
    let refused = world.oracle.authorization(&claim, None).await.unwrap_err();
    assert!(
        refused.to_string().contains("body/additionalData"),
        "{refused}"
    );
    assert_eq!(authorized(&world, &claim).await, "INVALID_REQUEST");
    // The nonce is not used up.
    assert_eq!(world.initiated(&claim).await, "OK");
}

#[tokio::test]
async fn chains_whose_withdrawals_the_allocator_does_not_take_are_named() {
    let mut world = with_allocator(funded());
    let other = Reachable {
        family: Some(&vm::hyperliquid::FAMILY),
        hub_chain_id: None,
        spec: None,
        chain: Err("nobody reads it".into()),
        keys: None,
    };
    world.oracle.chains.insert("perps".into(), other);
    let claim = owned(|requested| requested.chain = "perps".into());
    let refused = world.oracle.authorization(&claim, None).await.unwrap_err();
    let wanted = "Withdrawals on hyperliquid-vm are not supported by this endpoint";
    assert_eq!(refused.to_string(), wanted);
}

#[tokio::test]
async fn a_deposit_that_returned_allows_an_authorization_or_an_initiation() {
    let fixture = Fixture::new();
    let (world, claim) = (with_allocator(given_back(&fixture)), returning(&fixture));
    assert_eq!(authorized(&world, &claim).await, "OK");
    assert_eq!(authorized(&world, &claim).await, "OK");
    assert_eq!(world.initiated(&claim).await, "conflict");
    assert_eq!(word(world.fill(&fixture).await), "conflict");
    let mut other = claim.clone();
    other.requested.nonce = B256::with_last_byte(10).to_string();
    assert_eq!(authorized(&world, &other).await, "conflict");
    let mut bound = with_allocator(given_back(&fixture));
    bound.oracle.bound_nonces = true;
    let found = authorized(&bound, &other).await;
    assert_eq!(found, "WITHDRAWAL_NONCE_UNBOUND");
    let mut more = claim.clone();
    more.requested.additional = Some(Map::new());
    let found = authorized(&bound, &more).await;
    assert_eq!(found, "OWNER_SIGNATURE_MISSING");
    *bound.hub.mapped.lock().unwrap() = false;
    assert_eq!(authorized(&bound, &claim).await, "ORDER_NOT_GIVEN_UP");
}

/// The blocks of the hub that statements rest on.
async fn watched_at_hub(world: &World) -> Vec<Block> {
    let hub = vm::ChainId::new("relay");
    let rows = world.oracle.journal.watched(&hub, None, 9).await.unwrap();
    rows.into_iter().map(|row| row.block).collect()
}

/// A hub that loses the recovery has given nothing back.
#[tokio::test]
async fn what_a_returned_deposit_allows_rests_on_the_hubs_block_that_shows_its_recovery() {
    let fixture = Fixture::new();
    let (world, claim) = (with_allocator(given_back(&fixture)), returning(&fixture));
    assert_eq!(authorized(&world, &claim).await, "OK");
    assert_eq!(watched_at_hub(&world).await, [fixtures::block(10)]);
    // Nothing was read at the hub for an owner's own word, or it gave no answer.
    let world = with_allocator(funded());
    assert_eq!(authorized(&world, &owned(|_| {})).await, "OK");
    assert_eq!(watched_at_hub(&world).await, []);
    let world = with_allocator(given_back(&fixture));
    *world.hub.executed.lock().unwrap() = None;
    assert_eq!(authorized(&world, &claim).await, "OK");
    assert_eq!(watched_at_hub(&world).await, []);
}

#[tokio::test]
async fn an_order_that_another_named_authorizes_a_withdrawal_to_the_depositor_only() {
    for (recipient, expected) in [(RECIPIENT, "DEPOSIT_NAMED_BY_OTHER"), (DEPOSITOR, "OK")] {
        let (fixture, claim) = named_by_other(recipient);
        let world = with_allocator(given_back(&fixture));
        assert_eq!(authorized(&world, &claim).await, expected, "{recipient}");
    }
}

/// Whoever asks first uses a returned deposit up: an authorization that leads nowhere would keep it from its depositor.
#[tokio::test]
async fn a_deposit_that_returned_authorizes_only_what_the_allocator_serves() {
    let fixture = Fixture::new();
    let (world, claim) = (with_allocator(given_back(&fixture)), returning(&fixture));
    *world.hub.serves.lock().unwrap() = false;
    let found = authorized(&world, &claim).await;
    assert_eq!(found, "WITHDRAWALS_UNSUPPORTED");
    // The owner's own word is his own risk, and the deposit is not used up.
    assert_eq!(authorized(&world, &owned(|_| {})).await, "OK");
    assert_eq!(world.initiated(&claim).await, "OK");
}

/// A world whose allocator has these hashes for the request of [`claim`], by index.
fn hashing(hashes: &[(u64, u8)]) -> World {
    let world = with_allocator(world());
    for (index, byte) in hashes {
        set(&world, *index, *byte);
    }
    world
}

fn set(world: &World, index: u64, byte: u8) {
    let arguments = (hash(&claim()), U256::from(index)).abi_encode_params();
    let mut words = world.hub.words.lock().unwrap();
    words.insert(arguments, B256::repeat_byte(byte));
}

async fn included(world: &World, indexes: &[u64]) -> &'static str {
    word(world.oracle.inclusion(&claim(), indexes, None).await)
}

#[tokio::test]
async fn hashes_are_signed_in_the_order_of_their_indexes() {
    let world = hashing(&[(0, 1), (2, 3)]);
    let InclusionAnswer {
        inclusion: signed,
        signatures,
    } = world
        .oracle
        .inclusion(&claim(), &[2, 0], None)
        .await
        .unwrap();
    assert_eq!(signed.withdraw_request_hash, hash(&claim()));
    assert_eq!(signed.hashes_to_sign, [3, 1].map(B256::repeat_byte));
    let digest = signed.digest(&Domain::withdraw_request(U256::from(31337)));
    let own = world.oracle.journal.signer();
    assert_eq!(signatures[0].signature.recover(&digest), Ok(own));
    assert_eq!(signed.allocator, ALLOCATOR);
    let watched = world.watched("relay", "inclusion").await;
    assert_eq!(watched, [fixtures::block(10)]);
    // Each list of indexes is a statement, and they agree about each index.
    assert_eq!(included(&world, &[0]).await, "OK");
    assert_eq!(included(&world, &[2, 0]).await, "OK");
}

#[tokio::test]
async fn what_the_allocator_does_not_have_is_not_signed() {
    let world = hashing(&[(0, 1)]);
    let refused = world.oracle.inclusion(&claim(), &[0, 1], None).await;
    let refused = refused.unwrap_err().to_string();
    assert_eq!(
        refused,
        "Hash to sign not set for withdraw request at index 1"
    );
    *world.hub.settled.lock().unwrap() = None;
    assert_eq!(included(&world, &[0]).await, "HASH_TO_SIGN_NOT_SET");
    *world.hub.broken.lock().unwrap() = Some(ReadError::Doubtful("two answers".into()));
    assert_eq!(included(&world, &[0]).await, "doubtful");
    let without = hashing(&[(0, 1)]);
    let mut other = claim();
    other.amount = "701".into();
    let other = word(without.oracle.inclusion(&other, &[0], None).await);
    assert_eq!(other, "HASH_TO_SIGN_NOT_SET");
    let unknown = word(world.oracle.inclusion(&claim(), &[0], None).await);
    assert_eq!(unknown, "doubtful");
    assert_eq!(included(&super::world(), &[0]).await, "allocator");
}

#[tokio::test]
async fn an_index_has_one_hash_for_ever() {
    let world = hashing(&[(0, 1), (1, 2)]);
    assert_eq!(included(&world, &[0]).await, "OK");
    set(&world, 0, 9);
    assert_eq!(included(&world, &[0]).await, "conflict");
    assert_eq!(included(&world, &[1, 0]).await, "conflict");
    assert_eq!(included(&world, &[1]).await, "OK");
}

#[tokio::test]
async fn a_list_of_indexes_is_short_and_names_each_once() {
    let world = hashing(&[(0, 1)]);
    let long: Vec<u64> = (0..=limits::ITEMS as u64).collect();
    assert_eq!(included(&world, &long).await, "TOO_MANY_ITEMS");
    assert_eq!(included(&world, &[]).await, "INVALID_REQUEST");
    assert_eq!(included(&world, &[0, 0]).await, "INVALID_REQUEST");
    assert!(world.hub.asked.lock().unwrap().is_empty());
}

/// How many hashes the allocator was asked for.
fn asked(world: &World) -> usize {
    let asked = world.hub.asked.lock().unwrap();
    let of_hashes = asked
        .iter()
        .filter(|data| data.starts_with(&[0xd5, 0x3a, 0x5d, 0xf6]));
    of_hashes.count()
}

/// Each is asked of all providers, and a list costs its caller nothing.
#[tokio::test]
async fn an_index_without_a_hash_ends_the_reading_of_a_list() {
    let all: Vec<u64> = (0..limits::ITEMS as u64).collect();
    let none = hashing(&[]);
    assert_eq!(included(&none, &all).await, "HASH_TO_SIGN_NOT_SET");
    assert_eq!(asked(&none), 1);
    let one = hashing(&[(0, 1)]);
    assert_eq!(included(&one, &all).await, "HASH_TO_SIGN_NOT_SET");
    assert!(asked(&one) < 10, "{}", asked(&one));
    let hashes: Vec<(u64, u8)> = (0..64).map(|index| (index, index as u8 + 1)).collect();
    let every = hashing(&hashes);
    assert_eq!(included(&every, &all).await, "OK");
    assert_eq!(asked(&every), all.len());
}

/// Counts the calls that are begun; none ends.
fn hanging() -> Arc<Script<AtomicUsize>> {
    let answers = Answers {
        view: Some(|own: &Script<AtomicUsize>, _, _, _| {
            own.fetch_add(1, SeqCst);
            Box::pin(std::future::pending())
        }),
        ..Answers::default()
    };
    Script::at(0).answering(AtomicUsize::new(0), answers)
}

#[tokio::test]
async fn strangers_leave_a_third_of_the_hubs_calls_to_keys() {
    let script = hanging();
    let chain = Chain {
        spec: Arc::new(fixtures::spec("relay")),
        reader: script.clone(),
        state: Some(script.clone()),
    };
    let hub = Hub::new(world().oracle.hub.settings.clone(), Ok(chain));
    let block = fixtures::block(10);
    let ask = |keyed| Box::pin(asking::by(keyed, hub.is_executed(B256::ZERO, &block)));
    let mut strangers: Vec<_> = (0..40).map(|_| ask(false)).collect();
    for stranger in &mut strangers {
        assert!(futures::poll!(stranger).is_pending());
    }
    assert_eq!(script.load(SeqCst), 32);
    let mut keyed = ask(true);
    assert!(futures::poll!(&mut keyed).is_pending());
    assert_eq!(script.load(SeqCst), 33);
}

#[tokio::test]
async fn below_the_reserve_a_stranger_has_no_new_request_signed_but_for_a_deposit() {
    let (low, claim) = (full(with_allocator(funded())), owned(|_| {}));
    let hashes = full(hashing(&[(0, 1)]));
    for (keyed, expected) in [(false, "room"), (true, "OK"), (false, "OK")] {
        let found = asking::by(keyed, authorized(&low, &claim)).await;
        assert_eq!(found, expected, "{keyed}");
        let found = asking::by(keyed, included(&hashes, &[0])).await;
        assert_eq!(found, expected, "{keyed}");
    }
    let fixture = Fixture::new();
    let (back, claim) = (
        full(with_allocator(given_back(&fixture))),
        returning(&fixture),
    );
    let found = asking::by(false, authorized(&back, &claim)).await;
    assert_eq!(found, "OK");
}
