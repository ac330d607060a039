//! Withdraw requests of the hub's own allocator.

use std::sync::LazyLock;

use vm::protocol::{
    action::Action,
    request::{WithdrawCall, WithdrawRequest},
};

use super::{owned::Signed, *};

/// A code, and the change that is refused with it.
type Change<T> = (&'static str, fn(&mut T));

pub(super) fn claim() -> RequestClaim {
    RequestClaim {
        chain: "ethereum".into(),
        depository: None,
        currency: NATIVE.into(),
        amount: "700".into(),
        spender_chain: "base".into(),
        spender: DEPOSITOR.into(),
        receiver: RECIPIENT.into(),
        nonce: B256::with_last_byte(9).to_string(),
        additional: None,
        transaction: None,
        hints: None,
    }
}

pub(super) fn hash(claim: &RequestClaim) -> B256 {
    let depository = fixtures::spec("ethereum").depository.unwrap();
    hash_of(claim, depository.text(), fixtures::family())
}

/// The hash of a request to a chain of `family`.
pub(super) fn hash_of(claim: &RequestClaim, depository: &str, family: &Family) -> B256 {
    let call = WithdrawCall {
        chain_id: claim.chain.clone(),
        depository: depository.to_owned(),
        currency: claim.currency.clone(),
        amount: claim.amount.parse().unwrap(),
        spender_chain_id: claim.spender_chain.clone(),
        spender: claim.spender.clone(),
        receiver: claim.receiver.clone(),
        nonce: claim.nonce.clone(),
        additional_data: claim.additional.clone(),
    };
    let request = WithdrawRequest::new(&call, family, fixtures::family()).unwrap();
    request.message().unwrap().request_hash()
}

/// A world whose hub has an allocator that has recorded the claim's withdrawal.
fn recorded(claim: &RequestClaim) -> World {
    let mut world = world();
    world.oracle.hub.settings.hub_allocator = Some(EvmAddress::repeat_byte(5));
    world.oracle.hub.settings.executor = Some(EvmAddress::repeat_byte(6));
    let payload: Bytes = encoded(|_| {}).parse().unwrap();
    world
        .hub
        .payloads
        .lock()
        .unwrap()
        .insert(hash(claim), payload);
    world
}

/// The same, where no transaction of the depository names a withdrawal.
pub(super) fn unnamed(mut world: World) -> World {
    static FAMILY: LazyLock<Family> = LazyLock::new(|| Family {
        payloads: Some(&Signed),
        ..*fixtures::family()
    });
    let mut spec = fixtures::spec("ethereum");
    spec.family = &FAMILY;
    let known = world.oracle.chains.get_mut("ethereum").unwrap();
    known.chain.as_mut().unwrap().spec = Arc::new(spec);
    world
}

impl World {
    async fn requested(&self, claim: &RequestClaim) -> Result<EndedAnswer, Error> {
        self.oracle.requested_withdrawal(claim, None).await
    }

    fn ends(&self, status: WithdrawalStatus) {
        *self.ethereum.status.lock().unwrap() = status;
    }
}

/// Who gets what back.
fn minted(answer: EndedAnswer) -> (EvmAddress, U256) {
    let execution = answer.attested.unwrap().execution;
    match Action::decode(&execution.actions[0]).unwrap() {
        Action::Mint { to, amount, .. } => (to, amount),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_expired_request_gives_its_amount_back_and_no_other_one_does() {
    let claim = claim();
    let world = recorded(&claim);
    for status in [WithdrawalStatus::Pending, WithdrawalStatus::Executed] {
        world.ends(status);
        let answer = world.requested(&claim).await.unwrap();
        assert_eq!(answer.status, status);
        assert!(answer.attested.is_none());
    }
    world.ends(WithdrawalStatus::Expired);
    let first = world.requested(&claim).await.unwrap();
    assert_eq!(first.status, WithdrawalStatus::Expired);
    let again = world.requested(&claim).await.unwrap();
    assert_eq!(first.attested, again.attested);
    let key = id::deterministic(&[&hash(&claim).to_string(), "2"]);
    let execution = &first.attested.as_ref().unwrap().execution;
    assert_eq!(execution.idempotency_key, key);
    // What the hub took, whatever the recorded withdrawal pays.
    let spender = alias(&vm::ChainId::new("base"), &address(DEPOSITOR));
    assert_eq!(minted(first), (spender, U256::from(700)));
    // The blocks that it was judged at are watched.
    for chain in ["ethereum", "relay"] {
        let chain = vm::ChainId::new(chain);
        let watched = world.oracle.journal.watched(&chain, None, 9).await;
        assert_eq!(watched.unwrap()[0].block, fixtures::block(10));
    }
}

/// Who pays the fee of a withdrawal may spend that elsewhere: it expires, and the depository did nothing.
#[tokio::test]
async fn a_transaction_without_the_depository_may_end_a_request_but_not_execute_it() {
    let read = Read::new("ethereum", 0xaa);
    let silent = claim();
    let naming = RequestClaim {
        transaction: Some(read.tx.text.to_string()),
        ..claim()
    };
    let world = unnamed(recorded(&naming));
    world.ethereum.add(&read);
    world.ends(WithdrawalStatus::Executed);
    let executed = word(world.requested(&naming).await);
    assert_eq!(executed, "WITHDRAWAL_NOT_IN_TRANSACTION");
    world.ends(WithdrawalStatus::Expired);
    let named = world.requested(&naming).await.unwrap();
    assert!(named.attested.is_some());
    let same = world.requested(&silent).await.unwrap();
    assert_eq!(named.attested, same.attested);
    // Where transactions name their withdrawals, one that names none shows nothing.
    let world = recorded(&naming);
    world.ethereum.add(&read);
    world.ends(WithdrawalStatus::Expired);
    let expired = word(world.requested(&naming).await);
    assert_eq!(expired, "WITHDRAWAL_NOT_IN_TRANSACTION");
}

#[tokio::test]
async fn what_the_executor_spent_returns_to_the_order() {
    let executor = format!("{:#x}", EvmAddress::repeat_byte(6));
    let claim = RequestClaim {
        spender_chain: "relay".into(),
        spender: executor.clone(),
        ..claim()
    };
    let world = recorded(&claim);
    world.ends(WithdrawalStatus::Expired);
    let nobody = word(world.requested(&claim).await);
    assert_eq!(nobody, "ORDER_ACCOUNT_MISSING");
    let order = EvmAddress::repeat_byte(7);
    *world.hub.order_account.lock().unwrap() = order;
    let (to, _) = minted(world.requested(&claim).await.unwrap());
    assert_eq!(to, order);
    // The executor's address on another chain is another account.
    let other = RequestClaim {
        spender_chain: "base".into(),
        ..claim
    };
    let world = recorded(&other);
    world.ends(WithdrawalStatus::Expired);
    let (to, _) = minted(world.requested(&other).await.unwrap());
    assert_eq!(to, alias(&vm::ChainId::new("base"), &address(&executor)));
}

#[tokio::test]
async fn a_request_is_what_the_allocator_recorded() {
    let cases: &[Change<RequestClaim>] = &[
        ("WITHDRAW_REQUEST_NOT_AVAILABLE", |c| {
            c.amount = "701".into();
        }),
        ("WITHDRAW_REQUEST_NOT_AVAILABLE", |c| {
            c.receiver = DEPOSITOR.into();
        }),
        ("WITHDRAW_REQUEST_NOT_AVAILABLE", |c| {
            c.spender = RECIPIENT.into();
        }),
        ("WITHDRAWAL_ZERO", |c| c.amount = "0".into()),
        ("INVALID_REQUEST", |c| c.amount = "x".into()),
        ("INVALID_REQUEST", |c| c.nonce = "1".into()),
        ("INVALID_REQUEST", |c| c.receiver = "x".into()),
        ("CHAIN_NOT_AVAILABLE", |c| c.chain = "nochain".into()),
        ("CHAIN_NOT_AVAILABLE", |c| {
            c.spender_chain = "nochain".into();
        }),
        ("DEPOSITORY_NOT_CONFIGURED", |c| {
            c.depository = Some(RECIPIENT.into());
        }),
        ("TRANSACTION_MISSING", |c| {
            c.transaction = Some(fixtures::tx(0x55).text.to_string());
        }),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        let world = recorded(&claim());
        world.ends(WithdrawalStatus::Expired);
        let mut claim = claim();
        change(&mut claim);
        assert_eq!(word(world.requested(&claim).await), *code, "{at}");
    }
    let states: &[Change<World>] = &[
        ("read", |w| {
            *w.hub.broken.lock().unwrap() = Some(ReadError::Quorum("two forks".into()));
        }),
        ("read", |w| {
            *w.ethereum.broken.lock().unwrap() = Some(ReadError::Quorum("two forks".into()));
        }),
        ("allocator", |w| w.oracle.hub.settings.hub_allocator = None),
        ("WITHDRAW_REQUEST_NOT_AVAILABLE", |w| {
            *w.hub.settled.lock().unwrap() = None;
        }),
        ("OK", |_| {}),
    ];
    for (at, (code, change)) in states.iter().enumerate() {
        let mut world = recorded(&claim());
        world.ends(WithdrawalStatus::Expired);
        change(&mut world);
        assert_eq!(word(world.requested(&claim()).await), *code, "{at}");
    }
}
