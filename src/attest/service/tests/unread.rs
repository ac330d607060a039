//! Chains that this oracle does not read: what is signed by their entries alone, and what is not signed.

use vm::{ChainEntry, protocol::message::Domain};

use super::{
    authorization::with_allocator,
    exchange::{EXECUTOR, asked, exchanging},
    owned::{funded, given_back, owned, returning},
    payload::{apart, told},
    requested::{claim, hash_of},
    trigger::{self, ORDER, mapping},
    *,
};
use crate::attest::statement::Outcome;

/// A chain's name and family; a depository, a currency and an account there; what a withdraw request says besides.
type Listed = (&'static str, &'static Family, [&'static str; 3], Value);

const DEPOSITORY: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";

fn listed() -> [Listed; 6] {
    [
        (
            "lighter",
            &vm::lighter::FAMILY,
            ["722011", "0", "723072"],
            json!({ "lighter-vm": { "nonce": 1, "apiKeyIndex": 2, "usdcFee": 3 } }),
        ),
        (
            "ton",
            &vm::ton::FAMILY,
            [
                "0:f37b9f6fd97ece249cb48d9aa5d0202570ad130b7b7d4ce4dd0f4cd551b3d9bd",
                "EQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAM9c",
                "0:90c11c111d29bc317cab83480500edb045e59f9b4ec7ba145343c7d83644c6ee",
            ],
            Value::Null,
        ),
        (
            "tron",
            &vm::tron::FAMILY,
            [
                "TQ3iRBjav8EBpfSVih8pPUP4ES9hk1pwD9",
                "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb",
                "TRNCo4hWodUNndQeGqvwh6QyfC6TUSCpx6",
            ],
            Value::Null,
        ),
        (
            "xrp",
            &vm::xrp::FAMILY,
            [
                "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh",
                "rrrrrrrrrrrrrrrrrrrrrhoLvTp",
                "rwVkNZa3iHcwaHbiUPAFLJUHAwk8AupV1C",
            ],
            json!({ "xrp-vm": { "sequence": 1, "fee": 12, "lastLedgerSequence": 9 } }),
        ),
        (
            "hyperliquid",
            &vm::hyperliquid::FAMILY,
            [
                "0x85594c5d28ac8bf20e6ef0b9620f648f3737607f",
                "0x00000000000000000000000000000000",
                RECIPIENT,
            ],
            json!({ "hyperliquid-vm": { "nonce": 1 } }),
        ),
        (
            "arbitrum",
            fixtures::family(),
            [DEPOSITORY, NATIVE, RECIPIENT],
            Value::Null,
        ),
    ]
}

/// `world` with these chains, of which it reads none.
fn unread(mut world: World) -> World {
    for (id, family, [depository, ..], _) in listed() {
        let entry = json!({ "id": id, "hubChainId": "7", "depository": depository });
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        let reachable = Reachable {
            family: Some(family),
            hub_chain_id: Some(U256::from(7)),
            spec: Some(entry.spec(family, false).unwrap()),
            chain: Err("nobody reads it".into()),
            keys: None,
        };
        world.oracle.chains.insert(id.into(), reachable);
    }
    world
}

#[tokio::test]
async fn what_an_owner_asks_for_on_a_chain_that_is_not_read_is_authorized() {
    for (id, family, [depository, currency, account], additional) in listed() {
        let world = unread(with_allocator(funded()));
        let claim = owned(|requested| {
            requested.chain = id.into();
            requested.currency = currency.into();
            requested.recipient = account.into();
            requested.additional = additional.as_object().cloned();
        });
        let found = world.oracle.authorization(&claim, None).await;
        if !family.authorizable {
            assert_eq!(word(found), "WITHDRAWALS_UNSUPPORTED", "{id}");
            continue;
        }
        let answer = found.unwrap();
        let message = answer.request.message().unwrap();
        let depository = family.account(depository).unwrap();
        assert_eq!(message.chain_id, id);
        assert_eq!(message.depository[..], depository.bytes()[..], "{id}");
        let own = world.oracle.journal.signer();
        let digest = message.digest(&answer.domain);
        assert_eq!(answer.signatures[0].signature.recover(&digest), Ok(own));
        let mut forged = claim;
        forged.requested.amount = "499".into();
        let found = word(world.oracle.authorization(&forged, None).await);
        assert_eq!(found, "OWNER_SIGNATURE_INVALID", "{id}");
    }
    let world = unread(with_allocator(funded()));
    let unknown = owned(|requested| requested.chain = "nochain".into());
    let found = word(world.oracle.authorization(&unknown, None).await);
    assert_eq!(found, "CHAIN_NOT_AVAILABLE");
}

#[tokio::test]
async fn hashes_of_a_request_to_a_chain_that_is_not_read_are_signed_and_not_its_end() {
    let world = unread(with_allocator(world()));
    for (id, family, [depository, currency, account], additional) in listed() {
        let asked = RequestClaim {
            chain: id.into(),
            currency: currency.into(),
            receiver: account.into(),
            additional: additional.as_object().cloned(),
            ..claim()
        };
        let hash = hash_of(&asked, depository, family);
        let index = (hash, U256::ZERO).abi_encode_params();
        let one = B256::repeat_byte(1);
        world.hub.words.lock().unwrap().insert(index, one);
        let answer = world.oracle.inclusion(&asked, &[0], None).await.unwrap();
        assert_eq!(answer.inclusion.withdraw_request_hash, hash, "{id}");
        let domain = Domain::withdraw_request(U256::from(31337));
        let digest = answer.inclusion.digest(&domain);
        let own = world.oracle.journal.signer();
        assert_eq!(answer.signatures[0].signature.recover(&digest), Ok(own));
        let other = RequestClaim {
            depository: Some(account.into()),
            ..asked.clone()
        };
        let found = word(world.oracle.inclusion(&other, &[0], None).await);
        assert_eq!(found, "DEPOSITORY_NOT_CONFIGURED", "{id}");
        let ended = word(world.oracle.requested_withdrawal(&asked, None).await);
        assert_eq!(ended, "closed", "{id}");
    }
    let unknown = RequestClaim {
        chain: "nochain".into(),
        ..claim()
    };
    let found = word(world.oracle.inclusion(&unknown, &[0], None).await);
    assert_eq!(found, "CHAIN_NOT_AVAILABLE");
}

#[tokio::test]
async fn a_trigger_of_a_payment_on_a_chain_that_is_not_read_is_signed() {
    let world = unread(mapping(ORDER));
    for (id, family, [depository, ..], _) in listed() {
        let mut claim = trigger::claim();
        claim.input.vm_type = family.name.into();
        claim.input.chain_id = id.into();
        let (hash, order) = (claim.hash().unwrap(), ORDER.parse().unwrap());
        world.hub.words.lock().unwrap().insert(hash.to_vec(), order);
        let answer = world.oracle.trigger(&claim, None).await.unwrap();
        let depository = family.account(depository).unwrap();
        let named = &answer.trigger.input_depository;
        assert_eq!(named[..], depository.bytes()[..], "{id}");
        let digest = answer.trigger.digest(&Domain::trigger(U256::from(31337)));
        let own = world.oracle.journal.signer();
        assert_eq!(answer.signatures[0].signature.recover(&digest), Ok(own));
    }
}

#[tokio::test]
async fn an_order_that_pays_on_a_chain_that_is_not_read_ends_at_the_hub() {
    let fixture = Fixture::ordering(|order| order.output.chain_id = "arbitrum".into());
    let claim = asked(&fixture, Outcome::Fill);
    let world = unread(exchanging(&fixture));
    let answer = world.oracle.exchange(&claim, None).await.unwrap();
    let request = &answer.request;
    assert_eq!(request.out_chain_id, "arbitrum");
    assert_eq!(request.depository[..], address(DEPOSITORY).bytes()[..]);
    let domain = Domain::executor(U256::from(31337), EXECUTOR);
    let digest = request.digest(&domain);
    let own = world.oracle.journal.signer();
    assert_eq!(answer.signatures[0].signature.recover(&digest), Ok(own));
    assert_eq!(word(world.fill(&fixture).await), "closed");
    let without = exchanging(&fixture);
    let found = word(without.oracle.exchange(&claim, None).await);
    assert_eq!(found, "CHAIN_NOT_AVAILABLE");
}

/// How a withdrawal ends, and so who gets what is set apart for it, only its chain shows.
#[tokio::test]
async fn nothing_is_set_apart_for_a_chain_that_is_not_read_and_what_was_goes_on() {
    let world = unread(apart());
    let claim = owned(|requested| requested.chain = "arbitrum".into());
    assert_eq!(world.initiated(&claim).await, "closed");
    assert_eq!(told(&world, &claim).await, "OK");
    let ended = OwnedWithdrawalClaim {
        owned: claim,
        transaction: None,
        hints: None,
    };
    let found = word(world.oracle.owned_withdrawal(&ended, None).await);
    assert_eq!(found, "closed");
    let mut first = initiation_claim(500);
    first.address.chain = "arbitrum".into();
    let found = word(world.oracle.initiation(&first, None).await);
    assert_eq!(found, "closed");
    assert_eq!(word(world.oracle.initiated(&first).await), "OK");
    first.address.chain = "nochain".into();
    let found = word(world.oracle.initiated(&first).await);
    assert_eq!(found, "CHAIN_NOT_AVAILABLE");
}

/// Whoever asks uses the deposit up.
#[tokio::test]
async fn a_deposit_goes_back_by_no_withdrawal_to_a_chain_that_is_not_read() {
    let refunded = |chain: &str| {
        let fixture = Fixture::ordering(|order| order.inputs[0].refunds[0].chain_id = chain.into());
        let mut claim = returning(&fixture);
        claim.requested.chain = chain.into();
        (unread(with_allocator(given_back(&fixture))), claim)
    };
    for (chain, expected) in [("ethereum", "OK"), ("arbitrum", "closed")] {
        let (world, claim) = refunded(chain);
        let found = word(world.oracle.authorization(&claim, None).await);
        assert_eq!(found, expected, "{chain}");
        let (world, claim) = refunded(chain);
        assert_eq!(world.initiated(&claim).await, expected, "{chain}");
    }
}
