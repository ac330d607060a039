//! What owners of hub accounts ask for, and returned deposits.

use std::sync::LazyLock;

use async_trait::async_trait;
use serde_json::{Map, Value};
use vm::{
    Bytes, CodecError, KeyReader, OwnerKeys, PayloadCodec, Spending, WithdrawalCodec,
    WithdrawalInfo,
    protocol::{
        action::Action,
        hub::WithdrawalAccount,
        owner::{Kind, Operation},
        request::{PayloadParams, PayloadRequest, WithdrawCall},
    },
};

use super::{
    authorization::{authorized, with_allocator},
    payload::with_spender,
    *,
};
use crate::attest::owner::{OwnerSignature, Requested};

fn requested(kind: Kind) -> Requested {
    Requested {
        kind,
        chain: "ethereum".into(),
        currency: NATIVE.into(),
        amount: "500".into(),
        owner_chain: "base".into(),
        owner: format!("{:#x}", fixtures::key().address()),
        recipient: RECIPIENT.into(),
        nonce: B256::with_last_byte(9).to_string(),
        additional: None,
    }
}

/// The signature of the tests' key.
fn signed(requested: &Requested) -> String {
    let additional = requested.additional.clone().map(Value::Object);
    let operation = Operation {
        kind: requested.kind,
        chain_id: &requested.chain,
        currency: &requested.currency,
        amount: &requested.amount,
        owner_chain_id: &requested.owner_chain,
        owner: &requested.owner,
        recipient: &requested.recipient,
        nonce: &requested.nonce,
        additional: additional.as_ref(),
    };
    fixtures::sign(operation.digest().into())
}

fn transfer(change: impl FnOnce(&mut Requested)) -> TransferClaim {
    let mut requested = requested(Kind::Transfer);
    change(&mut requested);
    TransferClaim {
        signature: OwnerSignature::plain(&signed(&requested)),
        requested,
    }
}

pub(super) fn owned(change: impl FnOnce(&mut Requested)) -> OwnedClaim {
    let mut requested = requested(Kind::Withdrawal);
    change(&mut requested);
    OwnedClaim {
        proof: Proof::Signature(OwnerSignature::plain(&signed(&requested))),
        requested,
        depository: None,
    }
}

/// A world in which every hub account holds 500.
pub(super) fn funded() -> World {
    let world = world();
    *world.hub.balance.lock().unwrap() = U256::from(500);
    world
}

impl World {
    async fn transferred(&self, claim: &TransferClaim) -> &'static str {
        word(self.oracle.transfer(claim, None).await)
    }

    pub(super) async fn initiated(&self, claim: &OwnedClaim) -> &'static str {
        word(self.oracle.owned_initiation(claim, None).await)
    }
}

/// Keys of one Lighter account, as a quorum says.
struct Keys(Result<Option<Bytes>, ReadError>);

#[async_trait]
impl KeyReader for Keys {
    async fn owner_key(&self, owner: &vm::Address) -> Result<Option<Bytes>, ReadError> {
        assert_eq!(owner.to_string(), ACCOUNT);
        self.0.clone()
    }
}

const ACCOUNT: &str = "722011";

/// A world with that account's chain.
fn with_keys(keys: Result<Result<Option<Bytes>, ReadError>, Closed>) -> World {
    let entry = json!({ "id": "lighter", "vmType": "lighter-vm", "hubChainId": "7" });
    let entry: vm::ChainEntry = serde_json::from_value(entry).unwrap();
    let spec = entry.spec(&vm::lighter::FAMILY, false).unwrap();
    let reader = |said| OwnerKeys {
        spec,
        reader: Arc::new(Keys(said)),
    };
    let reachable = Reachable {
        family: Some(&vm::lighter::FAMILY),
        hub_chain_id: None,
        spec: None,
        chain: Err("this version does not read it".into()),
        keys: Some(keys.map(reader)),
    };
    let mut world = funded();
    world.oracle.chains.insert("lighter".into(), reachable);
    world
}

#[tokio::test]
async fn an_owner_signs_with_the_key_that_only_its_chain_knows() {
    let own: Bytes = fixtures::key().address().to_vec().into();
    let claim = || {
        transfer(|requested| {
            requested.owner_chain = "lighter".into();
            requested.owner = ACCOUNT.into();
        })
    };
    let world = with_keys(Ok(Ok(Some(own.clone()))));
    assert_eq!(world.transferred(&claim()).await, "OK");
    let mut more = claim();
    more.requested.amount = "499".into();
    assert_eq!(world.transferred(&more).await, "OWNER_SIGNATURE_INVALID");

    let other = Bytes::from(vec![7; 20]);
    let silent = ReadError::Quorum("nobody answers".into());
    for (code, keys) in [
        ("OWNER_SIGNATURE_INVALID", Ok(Ok(Some(other)))),
        ("OWNER_SIGNATURE_INVALID", Ok(Ok(None))),
        (
            "OWNER_SIGNATURE_INVALID",
            Ok(Ok(Some(own[1..].to_vec().into()))),
        ),
        ("read", Ok(Err(silent))),
        ("closed", Err("no provider: set LIGHTER_RPC_URL".into())),
    ] {
        let world = with_keys(keys);
        assert_eq!(world.transferred(&claim()).await, code);
    }
}

type Change<T> = (&'static str, fn(&mut T));

#[tokio::test]
async fn transfer_needs_the_owners_word_and_balance() {
    let cases: &[Change<Requested>] = &[
        ("OWNER_SIGNATURE_INVALID", |r| r.amount = "499".into()),
        ("OWNER_SIGNATURE_INVALID", |r| r.nonce = "other".into()),
        ("OWNER_SIGNATURE_INVALID", |r| r.owner = DEPOSITOR.into()),
        ("OWNER_SIGNATURE_INVALID", |r| {
            r.recipient = DEPOSITOR.into();
        }),
        ("OWNER_SIGNATURE_INVALID", |r| r.chain = "base".into()),
        ("OWNER_SIGNATURE_INVALID", |r| {
            r.currency = fixtures::TOKEN.into();
        }),
        ("OWNER_SIGNATURE_INVALID", |r| {
            r.owner_chain = "ethereum".into();
        }),
        ("TRANSFER_ZERO", |r| r.amount = "0".into()),
        ("INVALID_REQUEST", |r| r.amount = "1.5".into()),
        ("INVALID_REQUEST", |r| r.recipient = "0x12".into()),
        ("INVALID_REQUEST", |r| r.owner = "0x12".into()),
        ("INVALID_REQUEST", |r| r.currency = "x".into()),
        ("CHAIN_NOT_AVAILABLE", |r| r.chain = "nochain".into()),
        ("CHAIN_NOT_AVAILABLE", |r| r.owner_chain = "nochain".into()),
    ];
    let world = funded();
    for (at, (code, change)) in cases.iter().enumerate() {
        let mut claim = transfer(|_| {});
        change(&mut claim.requested);
        assert_eq!(world.transferred(&claim).await, *code, "{at}");
    }
    let withdrawal = signed(&requested(Kind::Withdrawal));
    let claim = TransferClaim {
        signature: OwnerSignature::plain(&withdrawal),
        ..transfer(|_| {})
    };
    assert_eq!(world.transferred(&claim).await, "OWNER_SIGNATURE_INVALID");
    let more = transfer(|r| r.amount = "501".into());
    assert_eq!(world.transferred(&more).await, "BALANCE_INSUFFICIENT");
    // A balance that is not final yet, or was spent since, does not count.
    *world.hub.settled.lock().unwrap() = None;
    assert_eq!(
        world.transferred(&transfer(|_| {})).await,
        "BALANCE_INSUFFICIENT"
    );
    *world.hub.settled.lock().unwrap() = Some(fixtures::block(10));
    *world.hub.spent.lock().unwrap() = Some(U256::from(499));
    assert_eq!(
        world.transferred(&transfer(|_| {})).await,
        "BALANCE_INSUFFICIENT"
    );
    *world.hub.spent.lock().unwrap() = None;
    assert_eq!(world.transferred(&transfer(|_| {})).await, "OK");
}

#[tokio::test]
async fn a_nonce_of_an_owner_serves_one_transfer() {
    let world = funded();
    let nonce = |text: &'static str| transfer(|r| r.nonce = text.into());
    let first = world.oracle.transfer(&nonce("abc"), None).await.unwrap();
    let key = id::deterministic(&[
        "relay",
        &vm::protocol::hub::token_id(&vm::ChainId::new("ethereum"), &address(NATIVE)).to_string(),
        &format!(
            "{:#x}",
            alias(&vm::ChainId::new("base"), &fixtures::sender())
        ),
        RECIPIENT,
        "abc",
    ]);
    assert_eq!(first.execution.idempotency_key, key);
    let again = world.oracle.transfer(&nonce("abc"), None).await.unwrap();
    assert_eq!(first, again);
    // The hub's key ignores the case, too.
    let upper = world.oracle.transfer(&nonce("ABC"), None).await.unwrap();
    assert_eq!(first, upper);
    for change in [
        (|r: &mut Requested| r.amount = "400".into()) as fn(&mut Requested),
        |r| r.recipient = DEPOSITOR.into(),
        |r| r.currency = fixtures::TOKEN.into(),
    ] {
        let other = transfer(|r| {
            r.nonce = "abc".into();
            change(r);
        });
        assert_eq!(world.transferred(&other).await, "conflict");
    }
    assert_eq!(world.transferred(&nonce("abd")).await, "OK");
    // A withdrawal's nonces are others.
    let withdrawal = owned(|r| r.nonce = B256::with_last_byte(0xab).to_string());
    assert_eq!(world.initiated(&withdrawal).await, "OK");
}

/// Others see the signature, peers first.
#[tokio::test]
async fn an_owners_signature_serves_the_withdrawal_that_it_was_made_for() {
    let cases: &[Change<OwnedClaim>] = &[
        ("OWNER_SIGNATURE_INVALID", |c| {
            c.requested.recipient = DEPOSITOR.into();
        }),
        ("OWNER_SIGNATURE_INVALID", |c| {
            c.requested.amount = "499".into();
        }),
        ("OWNER_SIGNATURE_INVALID", |c| {
            c.requested.chain = "base".into();
        }),
        ("OWNER_SIGNATURE_INVALID", |c| {
            c.requested.currency = fixtures::TOKEN.into();
        }),
        ("OWNER_SIGNATURE_INVALID", |c| {
            c.requested.nonce = B256::with_last_byte(8).to_string();
        }),
        ("OWNER_SIGNATURE_INVALID", |c| {
            c.requested.additional = Some(Map::new());
        }),
        ("OWNER_SIGNATURE_INVALID", |c| {
            let other = signed(&requested(Kind::Transfer));
            c.proof = Proof::Signature(OwnerSignature::plain(&other));
        }),
        ("WITHDRAWAL_ZERO", |c| c.requested.amount = "0".into()),
        ("INVALID_REQUEST", |c| c.requested.nonce = "x".into()),
        ("DEPOSITORY_NOT_CONFIGURED", |c| {
            c.depository = Some(RECIPIENT.into());
        }),
    ];
    // Also where real money is at stake: the signature covers the recipient.
    let mut world = funded();
    world.oracle.bound_nonces = true;
    for (at, (code, change)) in cases.iter().enumerate() {
        let mut claim = owned(|_| {});
        change(&mut claim);
        assert_eq!(world.initiated(&claim).await, *code, "{at}");
    }
    let claim = owned(|_| {});
    let first = world.oracle.owned_initiation(&claim, None).await.unwrap();
    let named = OwnedClaim {
        depository: Some("0x5FBDB2315678AFECB367F032D93F642F64180AA3".into()),
        ..claim
    };
    let again = world.oracle.owned_initiation(&named, None).await.unwrap();
    assert_eq!(
        (first.address, &first.attested),
        (again.address, &again.attested)
    );
    // One nonce of an owner moves one amount to one place.
    for change in [
        (|r: &mut Requested| r.amount = "400".into()) as fn(&mut Requested),
        |r| r.recipient = DEPOSITOR.into(),
    ] {
        assert_eq!(world.initiated(&owned(change)).await, "conflict");
    }
    let more = owned(|r| r.amount = "501".into());
    assert_eq!(world.initiated(&more).await, "BALANCE_INSUFFICIENT");
}

/// The two versions of one initiation are one statement.
#[tokio::test]
async fn versions_of_an_initiation_share_their_nonce() {
    let world = funded();
    let first = world.oracle.initiation(&initiation_claim(500), None).await;
    let first = first.unwrap();
    let second = owned(|r| r.nonce = "9".into());
    let second = world.oracle.owned_initiation(&second, None).await.unwrap();
    assert_eq!(first.address, second.address);
    assert_eq!(first.attested, second.attested);
    let other = owned(|r| (r.nonce, r.recipient) = ("9".into(), DEPOSITOR.into()));
    assert_eq!(world.initiated(&other).await, "conflict");
}

const OTHER_DEPOSITORY: &str = "0x00000000000000000000000000000000000000aa";

/// The world with a second depository of `ethereum`.
pub(super) fn with_second_depository(sole: bool) -> World {
    static FAMILY: LazyLock<Family> = LazyLock::new(|| Family {
        sole_depository: false,
        ..*fixtures::family()
    });
    let mut world = funded();
    let mut spec = fixtures::spec("ethereum");
    spec.additional_depositories.push(address(OTHER_DEPOSITORY));
    if !sole {
        spec.family = &FAMILY;
    }
    let known = world.oracle.chains.get_mut("ethereum").unwrap();
    known.chain.as_mut().unwrap().spec = Arc::new(spec);
    world
}

/// The owner's signature does not cover the depository: a stranger could have the money set apart for another one.
#[tokio::test]
async fn another_depository_needs_a_nonce_that_commits_to_it() {
    let at = |nonce: B256| OwnedClaim {
        depository: Some(OTHER_DEPOSITORY.into()),
        ..owned(|r| r.nonce = nonce.to_string())
    };
    let account = WithdrawalAccount {
        chain: &vm::ChainId::new("ethereum"),
        depository: &address(OTHER_DEPOSITORY),
        currency: &address(NATIVE),
        recipient: &address(RECIPIENT),
        owner: alias(&vm::ChainId::new("base"), &fixtures::sender()),
        nonce: U256::from(7) << 128,
    };
    let bound = account.bound_nonce("relay").into();
    let unread = with_second_depository(true);
    assert_eq!(
        unread.initiated(&at(bound)).await,
        "WITHDRAWALS_UNSUPPORTED"
    );
    let mut world = with_second_depository(false);
    world.oracle.bound_nonces = true;
    let free = at(B256::with_last_byte(9));
    assert_eq!(world.initiated(&free).await, "WITHDRAWAL_NONCE_UNBOUND");
    assert_eq!(world.initiated(&at(bound)).await, "OK");
    // The primary one takes any nonce.
    assert_eq!(world.initiated(&owned(|_| {})).await, "OK");
    assert_eq!(with_second_depository(false).initiated(&free).await, "OK");
}

/// The claim that all of the fixture's deposit goes to the recipient of its order's refund.
pub(super) fn returning(fixture: &Fixture) -> OwnedClaim {
    let mut requested = requested(Kind::Withdrawal);
    requested.amount = "1000".into();
    requested.owner_chain = "ethereum".into();
    requested.owner = DEPOSITOR.into();
    requested.recipient = DEPOSITOR.into();
    requested.nonce = recovery(fixture).to_string();
    OwnedClaim {
        requested,
        depository: None,
        proof: Proof::Return(Box::new(ReturnClaim {
            chain: "ethereum".into(),
            transaction: fixture.deposits[0].tx.text.to_string(),
            onchain_id: fixture.inputs[0].onchain_id.clone(),
            order: fixture.order.clone(),
            signature: fixture.signature.clone(),
        })),
    }
}

/// The idempotency key of the deposit's recovery.
fn recovery(fixture: &Fixture) -> B256 {
    id::deterministic(&[&fixture.inputs[0].onchain_id, "recover"])
}

/// A world in which the hub has given the fixture's deposit back to its depositor.
pub(super) fn given_back(fixture: &Fixture) -> World {
    let mut world = with_spender(world().playing(fixture));
    *world.hub.balance.lock().unwrap() = U256::from(1000);
    *world.hub.mapped.lock().unwrap() = true;
    world.oracle.hub.settings.generic_mapping = Some(EvmAddress::repeat_byte(8));
    let mut executed = world.hub.executed.lock().unwrap();
    executed.get_or_insert_default().insert(recovery(fixture));
    drop(executed);
    world
}

fn proof(claim: &mut OwnedClaim) -> &mut ReturnClaim {
    match &mut claim.proof {
        Proof::Return(claim) => claim,
        Proof::Signature(_) => panic!("a signature"),
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn a_deposit_that_returned_goes_where_its_order_refunds_it() {
    let fixture = Fixture::new();
    let cases: &[Change<OwnedClaim>] = &[
        ("RECOVERY_MISMATCH", |c| c.requested.amount = "999".into()),
        ("RECOVERY_MISMATCH", |c| {
            c.requested.recipient = RECIPIENT.into();
        }),
        ("RECOVERY_MISMATCH", |c| {
            c.requested.owner = RECIPIENT.into();
        }),
        ("RECOVERY_MISMATCH", |c| {
            c.requested.owner_chain = "base".into();
        }),
        ("RECOVERY_MISMATCH", |c| c.requested.chain = "base".into()),
        ("RECOVERY_MISMATCH", |c| {
            c.requested.currency = fixtures::TOKEN.into();
        }),
        ("WITHDRAWAL_ZERO", |c| c.requested.amount = "0".into()),
        ("ORDER_SIGNATURE_INVALID", |c| {
            proof(c).signature = "0x".into();
        }),
        ("DEPOSIT_NOT_FOUND", |c| proof(c).onchain_id = "0x1".into()),
        ("CHAIN_NOT_AVAILABLE", |c| proof(c).chain = "nochain".into()),
        ("INVALID_REQUEST", |c| {
            proof(c).transaction = "garbage".into();
        }),
        ("TRANSACTION_MISSING", |c| {
            proof(c).transaction = fixtures::tx(0x55).text.to_string();
        }),
        ("ORDER_MISMATCH", |c| {
            let other = Fixture::ordering(|order| order.salt = "2".into());
            (proof(c).order, proof(c).signature) = (other.order, other.signature);
        }),
        ("ORDER_HAS_SEVERAL_INPUTS", |c| {
            let other = Fixture::ordering(|order| order.inputs.push(order.inputs[0].clone()));
            (proof(c).order, proof(c).signature) = (other.order, other.signature);
        }),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        let mut claim = returning(&fixture);
        change(&mut claim);
        assert_eq!(given_back(&fixture).initiated(&claim).await, *code, "{at}");
    }
    let claim = returning(&fixture);
    let states: &[Change<World>] = &[
        ("ORDER_NOT_GIVEN_UP", |w| {
            *w.hub.mapped.lock().unwrap() = false;
        }),
        ("DEPOSIT_NOT_RECOVERED", |w| {
            w.hub.executed.lock().unwrap().as_mut().unwrap().clear();
        }),
        ("BALANCE_INSUFFICIENT", |w| {
            *w.hub.balance.lock().unwrap() = U256::from(999);
        }),
        ("read", |w| {
            *w.hub.broken.lock().unwrap() = Some(ReadError::Quorum("two forks".into()));
        }),
        ("read", |w| {
            *w.ethereum.broken.lock().unwrap() = Some(ReadError::Quorum("two forks".into()));
        }),
        // A hub that does not say what it executed has to where real money is at stake.
        ("read", |w| {
            *w.hub.executed.lock().unwrap() = None;
            w.oracle.shown_recoveries = true;
        }),
        ("OK", |w| *w.hub.executed.lock().unwrap() = None),
        ("OK", |w| w.oracle.shown_recoveries = true),
        ("OK", |_| {}),
    ];
    for (at, (code, change)) in states.iter().enumerate() {
        let mut world = given_back(&fixture);
        change(&mut world);
        assert_eq!(world.initiated(&claim).await, *code, "{at}");
    }
}

/// A reorg may still take it away.
#[tokio::test]
async fn a_deposit_that_is_not_final_allows_nothing() {
    let fixture = Fixture::new();
    let (claim, end) = (returning(&fixture), ended(returning(&fixture)));
    let asked = async |world: &World| {
        let initiated = world.initiated(&claim).await;
        let told = word(world.oracle.owned_initiated(&claim, None).await);
        let end = word(world.oracle.owned_withdrawal(&end, None).await);
        [initiated, told, end]
    };
    // A deposit allows an initiation or an authorization.
    let world = given_back(&fixture).early();
    let other = with_allocator(given_back(&fixture)).early();
    let early = "TRANSACTION_NOT_FINALIZED";
    assert_eq!(asked(&world).await, [early; 3]);
    assert_eq!(authorized(&other, &claim).await, early);
    for world in [&world, &other] {
        *world.ethereum.fresh.lock().unwrap() = fixture.deposits[0].head.clone();
    }
    assert_eq!(asked(&world).await, ["OK"; 3]);
    assert_eq!(authorized(&other, &claim).await, "OK");
}

/// Two refunds in one currency, or one in another currency than the deposit's.
#[tokio::test]
async fn an_order_says_one_way_for_its_deposit_to_return() {
    let twice = Fixture::ordering(|order| {
        let again = order.inputs[0].refunds[0].clone();
        order.inputs[0].refunds.push(again);
    });
    let elsewhere = Fixture::ordering(|order| {
        order.inputs[0].refunds[0].currency = fixtures::TOKEN.into();
    });
    for fixture in [twice, elsewhere] {
        let mut claim = returning(&fixture);
        assert_eq!(
            given_back(&fixture).initiated(&claim).await,
            "RECOVERY_MISMATCH"
        );
        // What the hub gave back is another currency.
        claim.requested.currency = fixtures::TOKEN.into();
        assert_eq!(
            given_back(&fixture).initiated(&claim).await,
            "RECOVERY_MISMATCH"
        );
    }
}

/// A deposit whose payer did not send the data that names its order, which refunds `recipient`, and the claim that it
/// goes there.
pub(super) fn named_by_other(recipient: &str) -> (Fixture, OwnedClaim) {
    let refunding = Fixture::ordering(|order| {
        order.inputs[0].refunds[0].recipient = recipient.into();
    });
    let fixture = refunding.with(|s| s.deposits[0].deposits()[0].named_by_other = true);
    let mut claim = returning(&fixture);
    claim.requested.recipient = recipient.into();
    (fixture, claim)
}

/// A stranger sends what the depositor signed, behind data that names an order of his own.
#[tokio::test]
async fn an_order_that_another_named_sends_a_returned_deposit_to_its_depositor_only() {
    let spelled = format!("0x{}", DEPOSITOR[2..].to_uppercase());
    for (recipient, expected) in [
        (RECIPIENT, "DEPOSIT_NAMED_BY_OTHER"),
        (DEPOSITOR, "OK"),
        (spelled.as_str(), "OK"),
    ] {
        let (fixture, claim) = named_by_other(recipient);
        let world = given_back(&fixture);
        let found = world.initiated(&claim).await;
        assert_eq!(found, expected, "{recipient}");
        let told = world.oracle.owned_initiated(&claim, None).await;
        assert_eq!(word(told), expected, "{recipient}");
        let end = world.oracle.owned_withdrawal(&ended(claim), None).await;
        assert_eq!(word(end), expected, "{recipient}");
    }
    // An order that the payer named refunds whom it says.
    let (mut fixture, claim) = named_by_other(RECIPIENT);
    fixture.deposits[0].deposits()[0].named_by_other = false;
    assert_eq!(given_back(&fixture).initiated(&claim).await, "OK");
}

/// The native currency's address means the depositor in a refund (guide: protocol 7.4), and is nobody's in a withdrawal.
#[tokio::test]
async fn a_deposit_does_not_return_to_nobody() {
    let fixture = Fixture::ordering(|order| {
        order.inputs[0].refunds[0].recipient = NATIVE.into();
    });
    for recipient in [NATIVE, DEPOSITOR] {
        let mut claim = returning(&fixture);
        claim.requested.recipient = recipient.into();
        let found = given_back(&fixture).initiated(&claim).await;
        assert_eq!(found, "RECOVERY_MISMATCH", "{recipient}");
    }
}

#[tokio::test]
async fn a_deposit_allows_one_withdrawal_and_none_beside_a_fill() {
    let fixture = Fixture::new();
    let world = given_back(&fixture);
    let claim = returning(&fixture);
    let first = world.oracle.owned_initiation(&claim, None).await.unwrap();
    let again = world.oracle.owned_initiation(&claim, None).await.unwrap();
    assert_eq!(first.attested, again.attested);
    let mut other = claim.clone();
    other.requested.nonce = B256::with_last_byte(9).to_string();
    assert_eq!(world.initiated(&other).await, "conflict");
    let filled = given_back(&fixture);
    assert_eq!(word(filled.fill(&fixture).await), "OK");
    assert_eq!(filled.initiated(&claim).await, "conflict");
    // The other way round, too.
    assert_eq!(word(world.fill(&fixture).await), "conflict");
    assert_eq!(word(world.refund(&fixture).await), "conflict");
    // Its block is watched.
    let ethereum = vm::ChainId::new("ethereum");
    let watched = world.oracle.journal.watched(&ethereum, None, 9).await;
    let block = fixture.deposits[0].seen().receipt().unwrap().block.clone();
    assert_eq!(watched.unwrap()[0].block, block);
}

/// What is forced for several deposits is one statement, under another key than what one of them serves.
#[tokio::test]
async fn a_deposit_that_an_outcome_of_several_used_up_allows_no_withdrawal() {
    let fixture = Fixture::new().with(|it| {
        let deposits = it.deposits[0].deposits();
        let second = vm::Deposit {
            index: 1,
            ..deposits[0].clone()
        };
        deposits.push(second);
    });
    let (world, claim) = (given_back(&fixture), returning(&fixture));
    let mut forced = refund_claim(&fixture);
    forced.order.force = true;
    forced.refunds.clear();
    assert_eq!(word(world.oracle.refund(&forced, None).await), "OK");
    assert_eq!(world.initiated(&claim).await, "conflict");
    assert_eq!(given_back(&fixture).initiated(&claim).await, "OK");
}

/// A stranger may claim first, with a nonce that he keeps to himself.
#[tokio::test]
async fn whoever_returns_a_deposit_first_does_not_choose_its_nonce() {
    let fixture = Fixture::new();
    let mut claim = returning(&fixture);
    let mut world = given_back(&fixture);
    world.oracle.bound_nonces = true;
    assert_eq!(world.initiated(&claim).await, "OK");
    claim.requested.nonce = B256::with_last_byte(9).to_string();
    assert_eq!(world.initiated(&claim).await, "WITHDRAWAL_NONCE_UNBOUND");
    assert_eq!(given_back(&fixture).initiated(&claim).await, "OK");
}

/// Each nonce is a row for ever, whatever becomes of the balance.
#[tokio::test]
async fn below_the_reserve_a_stranger_has_no_balance_moved_or_set_apart_but_a_deposits() {
    let (low, first) = (full(funded()), full(funded()));
    let (moved, apart) = (transfer(|_| {}), owned(|_| {}));
    for (keyed, expected) in [(false, "room"), (true, "OK"), (false, "OK")] {
        let found = asking::by(keyed, low.transferred(&moved)).await;
        assert_eq!(found, expected, "{keyed}");
        let found = asking::by(keyed, low.initiated(&apart)).await;
        assert_eq!(found, expected, "{keyed}");
        let claim = initiation_claim(500);
        let found = asking::by(keyed, first.oracle.initiation(&claim, None)).await;
        assert_eq!(word(found), expected, "{keyed}");
    }
    let fixture = Fixture::new();
    let (back, claim) = (full(given_back(&fixture)), returning(&fixture));
    let found = asking::by(false, back.initiated(&claim)).await;
    assert_eq!(found, "OK");
}

/// Withdrawals as those of `ethereum-vm`, whose allocator records them in another form and signs them twice.
pub(super) struct Signed;

impl WithdrawalCodec for Signed {
    fn encode(&self, _: &Value) -> Result<Vec<u8>, CodecError> {
        Err(CodecError("not encoded here".into()))
    }

    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        Ok(json!(String::from_utf8_lossy(encoded)))
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let text = withdrawal.as_str().unwrap();
        WithdrawalInfo {
            id: Ok(B256::repeat_byte(text.len() as u8).to_string()),
            currency: Ok(NATIVE.into()),
            amount: Ok("500".into()),
            recipient: Ok(RECIPIENT.into()),
            sole: Ok(()),
            spending: None,
        }
    }

    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        fixtures::family()
            .withdrawals
            .unwrap()
            .normalize_payload(request)
    }

    fn request_data(&self, _: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        Ok(Vec::new())
    }
}

impl PayloadCodec for Signed {
    fn signatures(&self, payload: &[u8]) -> Result<usize, CodecError> {
        Ok(payload.len())
    }

    fn unsigned(&self, payload: &[u8]) -> Result<Vec<u8>, CodecError> {
        Ok(payload.to_vec())
    }

    fn signed(&self, payload: &[u8], signatures: &[Bytes]) -> Result<Vec<u8>, CodecError> {
        assert_eq!(payload.len(), signatures.len());
        Ok(signatures.concat())
    }

    fn check_request(&self, _: &[u8]) -> Result<(), CodecError> {
        Err(CodecError("nobody could say how it ended".into()))
    }
}

fn ended(owned: OwnedClaim) -> OwnedWithdrawalClaim {
    OwnedWithdrawalClaim {
        owned,
        transaction: None,
        hints: None,
    }
}

/// The claim of version 1 for the same withdrawal.
fn first_version() -> WithdrawalClaim {
    let mut claim = withdrawal_claim();
    claim.address.nonce = B256::with_last_byte(9).to_string();
    claim
}

#[tokio::test]
async fn what_the_allocator_has_ends_as_the_chain_shows_it() {
    for status in [WithdrawalStatus::Executed, WithdrawalStatus::Expired] {
        let world = world();
        let claim = ended(owned(|_| {}));
        let ask =
            async |claim: &OwnedWithdrawalClaim| world.oracle.owned_withdrawal(claim, None).await;
        *world.ethereum.status.lock().unwrap() = status;
        let nothing = ask(&claim).await.unwrap();
        assert_eq!(nothing.status, WithdrawalStatus::Pending);
        assert!(nothing.attested.is_none());
        let before = first_version();
        world.record(&before, &before.withdrawal);
        let found = ask(&claim).await.unwrap();
        assert_eq!(found.status, status);
        // The two versions are one statement.
        let first = world.oracle.withdrawal(&before, None).await.unwrap();
        assert!(first.attested.is_some());
        assert_eq!(found.attested, first.attested);
        let mut forged = claim.clone();
        forged.owned.requested.recipient = DEPOSITOR.into();
        assert_eq!(word(ask(&forged).await), "OWNER_SIGNATURE_INVALID");
        let mut named = claim.clone();
        named.transaction = Some(fixtures::tx(0x55).text.to_string());
        assert_eq!(word(ask(&named).await), "TRANSACTION_MISSING");
        *world.ethereum.status.lock().unwrap() = WithdrawalStatus::Pending;
        assert!(ask(&claim).await.unwrap().attested.is_none());
    }
    let mut world = world();
    world.oracle.hub = Hub::new(world.oracle.hub.settings.clone(), Err("not asked".into()));
    let claim = ended(owned(|_| {}));
    let closed = world.oracle.owned_withdrawal(&claim, None);
    assert_eq!(word(closed.await), "allocator");
}

#[tokio::test]
async fn what_the_allocator_has_not_signed_is_pending() {
    static FAMILY: LazyLock<Family> = LazyLock::new(|| Family {
        withdrawals: Some(&Signed),
        payloads: Some(&Signed),
        ..*fixtures::family()
    });
    let mut world = world();
    let mut spec = fixtures::spec("ethereum");
    spec.family = &FAMILY;
    let known = world.oracle.chains.get_mut("ethereum").unwrap();
    known.chain.as_mut().unwrap().spec = Arc::new(spec);
    *world.ethereum.status.lock().unwrap() = WithdrawalStatus::Executed;
    let claim = ended(owned(|_| {}));
    let ask = async || world.oracle.owned_withdrawal(&claim, None).await;
    world.record(&first_version(), "0x0102");
    let unsigned = ask().await.unwrap();
    assert_eq!(unsigned.status, WithdrawalStatus::Pending);
    assert!(unsigned.attested.is_none());
    *world.aurora.signature.lock().unwrap() = Bytes::from_static(b"abc");
    let signed = ask().await.unwrap().attested.unwrap();
    // The id is that of the withdrawal with both signatures.
    let id = B256::repeat_byte(6).to_string();
    assert_eq!(
        signed.execution.idempotency_key,
        vm::protocol::id::deterministic(&[&id, ""])
    );
    let action = Action::decode(&signed.execution.actions[0]).unwrap();
    assert!(matches!(action, Action::Burn { amount, .. } if amount == U256::from(500)));
    // Reads for each signature are bounded.
    let many = format!("0x{}", "00".repeat(limits::ITEMS + 1));
    world.record(&first_version(), &many);
    assert_eq!(word(ask().await), "TOO_MANY_ITEMS");
}

/// Withdrawals as those of [`Signed`], that are transactions of the depository's own account.
struct Spends;

impl WithdrawalCodec for Spends {
    fn encode(&self, withdrawal: &Value) -> Result<Vec<u8>, CodecError> {
        Signed.encode(withdrawal)
    }

    fn decode(&self, encoded: &[u8]) -> Result<Value, CodecError> {
        Signed.decode(encoded)
    }

    fn describe(&self, withdrawal: &Value) -> WithdrawalInfo {
        let depository = fixtures::spec("ethereum").depository.unwrap();
        WithdrawalInfo {
            spending: Some(Spending {
                payer: depository.text().to_owned(),
                payload: withdrawal.as_str().unwrap().to_owned().into_bytes().into(),
                unproven: Some(Bytes::from_static(b"outputs")),
            }),
            ..Signed.describe(withdrawal)
        }
    }

    fn normalize_payload(&self, request: &PayloadRequest) -> Result<PayloadParams, CodecError> {
        Signed.normalize_payload(request)
    }

    fn request_data(&self, request: &WithdrawCall) -> Result<Vec<u8>, CodecError> {
        Signed.request_data(request)
    }
}

/// Others may have told the allocator: what left the depository is then not what is burned.
#[tokio::test]
async fn no_withdrawal_is_executed_that_says_of_outputs_what_is_not_so() {
    static FAMILY: LazyLock<Family> = LazyLock::new(|| Family {
        withdrawals: Some(&Spends),
        ..*fixtures::family()
    });
    let recorded = || {
        let mut world = world();
        let mut spec = fixtures::spec("ethereum");
        spec.family = &FAMILY;
        let known = world.oracle.chains.get_mut("ethereum").unwrap();
        known.chain.as_mut().unwrap().spec = Arc::new(spec);
        let first = WithdrawalClaim {
            withdrawal: "0x6162".into(),
            ..first_version()
        };
        world.record(&first, &first.withdrawal);
        (world, first)
    };
    let second = ended(owned(|_| {}));
    let said = async |(world, first): &(World, WithdrawalClaim), status| {
        *world.ethereum.status.lock().unwrap() = status;
        let first = word(world.oracle.withdrawal(first, None).await);
        let second = word(world.oracle.owned_withdrawal(&second, None).await);
        [first, second]
    };
    let paid = recorded();
    assert_eq!(said(&paid, WithdrawalStatus::Pending).await, ["OK"; 2]);
    let found = said(&paid, WithdrawalStatus::Executed).await;
    assert_eq!(found, ["OUTPUTS_DIFFERENT"; 2]);
    let outputs = Bytes::from_static(b"outputs");
    paid.0.ethereum.put_outputs(&outputs);
    assert_eq!(said(&paid, WithdrawalStatus::Executed).await, ["OK"; 2]);
    // What the depository never paid goes back.
    assert_eq!(
        said(&recorded(), WithdrawalStatus::Expired).await,
        ["OK"; 2]
    );
}

/// The deposit may be long gone: the withdrawal's end is attested all the same.
#[tokio::test]
async fn the_end_of_a_return_is_attested_for_whoever_shows_its_deposit() {
    let fixture = Fixture::new();
    let world = given_back(&fixture);
    let claim = ended(returning(&fixture));
    let ask =
        async |claim: &OwnedWithdrawalClaim| word(world.oracle.owned_withdrawal(claim, None).await);
    assert_eq!(ask(&claim).await, "OK");
    let mut other = claim.clone();
    other.owned.requested.amount = "999".into();
    assert_eq!(ask(&other).await, "RECOVERY_MISMATCH");
}
