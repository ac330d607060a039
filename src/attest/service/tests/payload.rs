//! Payload params of withdrawals that have been initiated.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{
    owned::{funded, given_back, owned, returning},
    *,
};
use crate::{
    chains::permits::{OF_ALL, enter},
    hub::Spender,
};

type Case = (&'static str, fn(&mut OwnedClaim));

pub(super) fn with_spender(mut world: World) -> World {
    let contract = EvmAddress::repeat_byte(3);
    world.oracle.hub.settings.allocator_spender = Some(Spender {
        contract,
        chain: "1313161554".into(),
        domain: vm::protocol::message::Domain::allocator_spender(
            U256::from(1_313_161_554),
            contract,
        ),
    });
    world
}

/// A world in which every hub account holds 500.
pub(super) fn apart() -> World {
    with_spender(funded())
}

pub(super) async fn told(world: &World, claim: &OwnedClaim) -> &'static str {
    word(world.oracle.owned_initiated(claim, None).await)
}

#[tokio::test]
async fn what_the_allocator_is_told_is_signed_for_its_spender_and_again_with_the_same_bytes() {
    let (world, claim) = (apart(), owned(|_| {}));
    let first = world.oracle.owned_initiated(&claim, None).await.unwrap();
    let message = first.params.message().unwrap();
    let spender = world.oracle.hub.settings.allocator_spender.clone().unwrap();
    let [ours] = &first.signatures[..] else {
        panic!("{first:?}");
    };
    let own = world.oracle.journal.signer();
    assert_eq!(
        ours.signature.recover(&message.digest(&spender.domain)),
        Ok(own)
    );
    let domain = ["1313161554".to_owned(), format!("{:#x}", spender.contract)];
    assert_eq!(ours.domain, Some(domain));
    assert_eq!(message.amount, U256::from(500));
    let again = world.oracle.owned_initiated(&claim, None).await.unwrap();
    assert_eq!(again.signatures, first.signatures);
    let key = format!("payload/{}", message.payload_id());
    let entry = world.oracle.journal.entry(&key).await.unwrap().unwrap();
    assert_eq!(entry.facts[0].chain, "relay");
}

#[tokio::test]
async fn the_address_holds_the_amount_in_a_final_block_and_now() {
    let claim = owned(|_| {});
    let less = "WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT";
    for (balance, answer) in [(0, less), (499, less), (500, "OK"), (501, "OK")] {
        let world = apart();
        *world.hub.balance.lock().unwrap() = U256::from(balance);
        assert_eq!(told(&world, &claim).await, answer, "{balance}");
    }
    let world = apart();
    *world.hub.spent.lock().unwrap() = Some(U256::from(499));
    let found = told(&world, &claim).await;
    assert_eq!(found, "WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT");
    *world.hub.spent.lock().unwrap() = None;
    *world.hub.settled.lock().unwrap() = None;
    let found = told(&world, &claim).await;
    assert_eq!(found, "WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT");
    *world.hub.broken.lock().unwrap() = Some(ReadError::Quorum("two of three".into()));
    assert_eq!(told(&world, &claim).await, "read");
}

/// What the owner did not sign is not signed: others would choose for him, and the first choice stands.
#[tokio::test]
async fn only_the_owner_says_what_the_allocator_is_told() {
    let other: &[Case] = &[
        ("OWNER_SIGNATURE_INVALID", |claim| {
            claim.requested.amount = "400".into();
        }),
        ("OWNER_SIGNATURE_INVALID", |claim| {
            claim.requested.recipient = DEPOSITOR.into();
        }),
        ("OWNER_SIGNATURE_INVALID", |claim| {
            claim.requested.additional = Some(Map::new());
        }),
        ("DEPOSITORY_NOT_CONFIGURED", |claim| {
            claim.depository = Some(RECIPIENT.into());
        }),
        ("CHAIN_NOT_AVAILABLE", |claim| {
            claim.requested.chain = "q".into();
        }),
    ];
    for (code, change) in other {
        let mut claim = owned(|_| {});
        change(&mut claim);
        assert_eq!(told(&apart(), &claim).await, *code);
    }
    let without = funded();
    let missing = without.oracle.owned_initiated(&owned(|_| {}), None).await;
    let missing = missing.unwrap_err().to_string();
    assert_eq!(missing, "Missing allocator spender config");
}

/// The depository would pay both, and the hub has the money once.
#[tokio::test]
async fn a_withdrawal_address_has_one_payload_whatever_it_holds() {
    let world = apart();
    assert_eq!(told(&world, &owned(|_| {})).await, "OK");
    // Somebody sends it more.
    *world.hub.balance.lock().unwrap() = U256::from(600);
    for amount in ["600", "499"] {
        let other = owned(|requested| requested.amount = amount.into());
        assert_eq!(told(&world, &other).await, "conflict", "{amount}");
    }
    assert_eq!(told(&world, &owned(|_| {})).await, "OK");
    let next = owned(|requested| {
        requested.amount = "600".into();
        requested.nonce = B256::with_last_byte(10).to_string();
    });
    assert_eq!(told(&world, &next).await, "OK");
}

/// The signature of the first one is out, and a reorg does not take it back.
#[tokio::test]
async fn a_withdrawal_address_has_one_payload_also_after_a_reorg_of_the_hub() {
    let (world, claim) = (apart(), owned(|_| {}));
    let first = world.oracle.owned_initiated(&claim, None).await.unwrap();
    let key = format!("payload/{}", first.params.message().unwrap().payload_id());
    let (hub, journal) = (vm::ChainId::new("relay"), &world.oracle.journal);
    let gone = fixtures::block(10);
    assert!(journal.reorged(&key, &hub, &gone, 5).await.unwrap());
    let halt = journal.halted(&hub).await.unwrap().unwrap();
    assert!(journal.clear(&hub, &halt.id()).await.unwrap());
    assert_eq!(journal.entry(&key).await.unwrap(), None);
    // The hub goes on with another block, and with more at the address.
    *world.hub.settled.lock().unwrap() = Some(fixtures::block(11));
    *world.hub.balance.lock().unwrap() = U256::from(501);
    let whole = owned(|requested| requested.amount = "501".into());
    assert_eq!(told(&world, &whole).await, "conflict");
    let again = world.oracle.owned_initiated(&claim, None).await.unwrap();
    assert_eq!(again.signatures, first.signatures);
    assert_eq!(
        world.watched("relay", "payload").await,
        [fixtures::block(11)]
    );
}

/// The first oracle would refuse the payload of the whole for ever, and the second one that of the amount.
#[tokio::test]
async fn a_unit_that_is_sent_between_two_oracles_signatures_parts_them_in_nothing() {
    let (first, second, claim) = (apart(), apart(), owned(|_| {}));
    let signed = first.oracle.owned_initiated(&claim, None).await.unwrap();
    for world in [&first, &second] {
        *world.hub.balance.lock().unwrap() = U256::from(501);
        let later = world.oracle.owned_initiated(&claim, None).await.unwrap();
        assert_eq!(later.params, signed.params);
        // It is the same address, whose one payload that is.
        let whole = owned(|requested| requested.amount = "501".into());
        assert_eq!(told(world, &whole).await, "conflict");
    }
}

#[tokio::test]
async fn a_deposit_that_returned_is_initiated_and_then_told_to_the_allocator() {
    let fixture = Fixture::new();
    let (world, claim) = (given_back(&fixture), returning(&fixture));
    assert_eq!(world.initiated(&claim).await, "OK");
    *world.hub.balance.lock().unwrap() = U256::from(999);
    let found = told(&world, &claim).await;
    assert_eq!(found, "WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT");
    // Nobody may have signed for what somebody sends there.
    *world.hub.balance.lock().unwrap() = U256::from(1001);
    assert_eq!(told(&world, &claim).await, "OK");
    // It rests on the deposit's block, too.
    let deposited = fixture.deposits[0].seen().receipt().unwrap().block.clone();
    assert_eq!(world.watched("ethereum", "payload").await, [deposited]);
    // Nobody signed what else the allocator is told.
    let mut more = claim;
    more.requested.additional = Some(Map::from_iter([("x".to_owned(), Value::Null)]));
    let world = given_back(&fixture);
    assert_eq!(told(&world, &more).await, "OWNER_SIGNATURE_MISSING");
}

/// Whoever asks first uses a returned deposit up: a stranger must not leave its money where nothing moves it on.
#[tokio::test]
async fn a_deposit_that_returned_is_set_apart_only_where_the_allocator_can_be_told() {
    static MORE: LazyLock<Family> = LazyLock::new(|| Family {
        withdrawals: vm::bitcoin::FAMILY.withdrawals,
        ..*fixtures::family()
    });
    let (fixture, signed) = (Fixture::new(), owned(|_| {}));
    let claim = returning(&fixture);
    let mut without = given_back(&fixture);
    without.oracle.hub.settings.allocator_spender = None;
    assert_eq!(without.initiated(&claim).await, "CONTRACT_NOT_CONFIGURED");
    assert_eq!(without.initiated(&signed).await, "OK");
    let unserved = given_back(&fixture);
    *unserved.aurora.serves.lock().unwrap() = false;
    let found = unserved.initiated(&claim).await;
    assert_eq!(found, "WITHDRAWALS_UNSUPPORTED");
    assert_eq!(unserved.initiated(&signed).await, "OK");
    *unserved.aurora.broken.lock().unwrap() = Some(ReadError::Quorum("1 of 2".into()));
    assert_eq!(unserved.initiated(&claim).await, "read");
    *unserved.aurora.broken.lock().unwrap() = None;
    // Nothing of that used the deposit up.
    *unserved.aurora.serves.lock().unwrap() = true;
    assert_eq!(unserved.initiated(&claim).await, "OK");
    // The owner says what the allocator is told besides.
    let mut more = given_back(&fixture);
    let mut spec = fixtures::spec("ethereum");
    spec.family = &MORE;
    let known = more.oracle.chains.get_mut("ethereum").unwrap();
    known.chain.as_mut().unwrap().spec = Arc::new(spec);
    assert_eq!(more.initiated(&claim).await, "INVALID_REQUEST");
    assert_eq!(more.initiated(&signed).await, "OK");
}

/// The address of a key, whose signatures do not cover the values of what they spend.
const LEGACY: &str = "1MviEDGCTgEKEJ6cmfL9pBQa5GG4hujXnF";

/// `world` with a chain whose depository has that address. `ethereum` shows its outputs, where it is read.
fn with_bitcoin(mut world: World, is_read: bool) -> World {
    let entry = json!({ "id": "bitcoin", "hubChainId": "7", "depository": LEGACY });
    let entry: vm::ChainEntry = serde_json::from_value(entry).unwrap();
    let spec = entry.spec(&vm::bitcoin::FAMILY, false).unwrap();
    let read = || Chain {
        spec: spec.clone(),
        reader: world.ethereum.clone(),
        state: Some(world.ethereum.clone()),
    };
    let reachable = Reachable {
        family: Some(&vm::bitcoin::FAMILY),
        hub_chain_id: Some(U256::from(7)),
        spec: Some(spec.clone()),
        chain: is_read.then(read).ok_or_else(|| "nobody reads it".into()),
        keys: None,
    };
    world.oracle.chains.insert("bitcoin".into(), reachable);
    world
}

/// What the allocator is told besides: to spend one output of so many satoshis.
fn spending(value: u64) -> Value {
    let utxo = json!({ "txid": "fa".repeat(32), "vout": 0, "value": value.to_string() });
    json!({ "bitcoin-vm": { "allocatorUtxos": [utxo], "feeRate": "1" } })
}

fn withdrawn(value: u64) -> OwnedClaim {
    owned(|requested| {
        requested.chain = "bitcoin".into();
        requested.currency = "bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqmql8k8".into();
        requested.recipient = "bc1qcuqg72jtj44f8j5m9vgt0dh2vzd5llef36zu46".into();
        requested.additional = spending(value).as_object().cloned();
    })
}

/// What the chain is asked where that output is to be spent.
fn outputs(value: u64) -> Bytes {
    let request = json!({
        "chainId": "7", "depository": LEGACY, "currency": "", "amount": "1", "spender": "",
        "recipient": "", "nonce": "", "additionalData": spending(value),
    });
    let request = serde_json::from_value(request).unwrap();
    let unproven = vm::bitcoin::FAMILY.unproven.unwrap();
    unproven(&request).unwrap().unwrap()
}

/// A payload that names a smaller value leaves the rest to miners; one that names a larger value has the hub burn more.
#[tokio::test]
async fn values_that_no_signature_covers_are_those_that_the_chain_shows() {
    let world = with_bitcoin(apart(), true);
    world.ethereum.put_outputs(&outputs(1_000));
    // Nothing is read for whoever has set nothing apart.
    let asked = world.ethereum.asked();
    *world.hub.balance.lock().unwrap() = U256::from(499);
    let found = told(&world, &withdrawn(1_000)).await;
    assert_eq!(found, "WITHDRAWAL_ADDRESS_BALANCE_DIFFERENT");
    assert_eq!(world.ethereum.asked(), asked);
    *world.hub.balance.lock().unwrap() = U256::from(500);
    for lie in [0, 999, 1_001] {
        let found = told(&world, &withdrawn(lie)).await;
        assert_eq!(found, "OUTPUTS_DIFFERENT", "{lie}");
    }
    // Nothing is read for whoever is not the owner.
    let asked = world.ethereum.asked();
    let mut forged = withdrawn(1_000);
    forged.requested.amount = "499".into();
    assert_eq!(told(&world, &forged).await, "OWNER_SIGNATURE_INVALID");
    assert_eq!(world.ethereum.asked(), asked);
    world
        .ethereum
        .fail(Some(ReadError::Quorum("two of three".into())));
    assert_eq!(told(&world, &withdrawn(1_000)).await, "read");
    world.ethereum.fail(None);
    // Nothing of that used the address up.
    assert_eq!(world.initiated(&withdrawn(1_000)).await, "OK");
    assert_eq!(told(&world, &withdrawn(1_000)).await, "OK");
    let found = told(&world, &withdrawn(999)).await;
    assert_eq!(found, "OUTPUTS_DIFFERENT");
}

/// One read of outputs asks each provider for several transactions at a time.
#[tokio::test(start_paused = true)]
async fn a_look_at_outputs_takes_a_permit_for_each_of_its_reads() {
    let (world, claim) = (with_bitcoin(apart(), true), withdrawn(1_000));
    world.ethereum.put_outputs(&outputs(1_000));
    let permits = world.oracle.hub.permits().of(&vm::ChainId::new("bitcoin"));
    let others = (0..=OF_ALL - limits::OUTPUTS_AT_ONCE).map(|_| enter(&permits));
    let others = futures::future::join_all(others).await;
    assert!(others.iter().all(Result::is_ok));
    let mut asked = Box::pin(told(&world, &claim));
    let early = tokio::time::timeout(Duration::from_secs(60), &mut asked).await;
    assert!(early.is_err(), "{early:?}");
    drop(others);
    assert_eq!(asked.await, "OK");
}

#[tokio::test]
async fn values_that_no_signature_covers_are_told_only_where_their_chain_is_read() {
    let world = with_bitcoin(apart(), false);
    assert_eq!(told(&world, &withdrawn(1_000)).await, "closed");
}

/// Nothing would end such a withdrawal: the balance stays where it is.
#[tokio::test]
async fn no_balance_is_set_apart_for_a_depository_of_whose_withdrawals_nothing_is_judged() {
    static BLIND: LazyLock<Family> = LazyLock::new(|| Family {
        withdraws_from: Some(|_| false),
        ..*fixtures::family()
    });
    let mut world = apart();
    assert_eq!(world.initiated(&owned(|_| {})).await, "OK");
    let mut spec = fixtures::spec("ethereum");
    spec.family = &BLIND;
    let known = world.oracle.chains.get_mut("ethereum").unwrap();
    known.chain.as_mut().unwrap().spec = Arc::new(spec);
    let other = owned(|requested| requested.nonce = B256::with_last_byte(8).to_string());
    assert_eq!(world.initiated(&other).await, "WITHDRAWALS_UNSUPPORTED");
    assert_eq!(told(&world, &other).await, "WITHDRAWALS_UNSUPPORTED");
    let first = world.oracle.initiation(&initiation_claim(500), None).await;
    assert_eq!(word(first), "WITHDRAWALS_UNSUPPORTED");
    let read = world.oracle.initiated(&initiation_claim(500)).await;
    assert_eq!(word(read), "OK");
}

/// The depository would pay what nobody gives up, or nothing would end what is told.
#[tokio::test]
async fn the_allocator_is_told_nothing_that_the_family_refuses() {
    static STRICT: LazyLock<Family> = LazyLock::new(|| Family {
        check_payload: Some(|request| match request.amount == U256::from(500) {
            true => Err(vm::CodecError("another currency".into())),
            false => Ok(()),
        }),
        ..*fixtures::family()
    });
    let (mut world, claim) = (apart(), owned(|_| {}));
    let mut spec = fixtures::spec("ethereum");
    let own = spec.family;
    spec.family = &STRICT;
    let set = |world: &mut World, spec| {
        let known = world.oracle.chains.get_mut("ethereum").unwrap();
        known.chain.as_mut().unwrap().spec = Arc::new(spec);
    };
    set(&mut world, spec);
    assert_eq!(told(&world, &claim).await, "INVALID_REQUEST");
    // Nothing of that used the address up.
    let mut spec = fixtures::spec("ethereum");
    spec.family = own;
    set(&mut world, spec);
    assert_eq!(told(&world, &claim).await, "OK");
}
