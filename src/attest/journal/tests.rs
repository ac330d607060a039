use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use k256::{
    ecdsa::{SigningKey, signature::hazmat::RandomizedPrehashSigner},
    elliptic_curve::rand_core::OsRng,
};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use vm::{
    Address, Finality, FinalityTag, Payment, PaymentKind, Receipt, Transaction, U256,
    evidence::{Answer, Question, Read, Rule},
    testing,
    types::TxRef,
};

use super::*;
use crate::{
    attest::{
        basis, evidence,
        statement::{self, Mode, Verdict},
    },
    sign::raw::RawKey,
    store::{Kind, Range, memory::MemoryStore, rows::void, sled::SledStore},
};

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const OTHER: &str = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a";

fn b(byte: u8) -> B256 {
    B256::repeat_byte(byte)
}

fn base() -> ChainId {
    ChainId::new("base")
}

fn tx(byte: u8) -> TxRef {
    TxRef {
        text: format!("{byte:#x}").into(),
        bytes: vec![byte].into(),
        hint: None,
    }
}

fn block(number: u64, hash: u8) -> Block {
    Block {
        number,
        hash: b(hash),
        parent: b(0),
        time: 1000 + number,
    }
}

fn deposit(transaction: u8, hash: u8, digest: u8) -> Statement {
    Statement::deposit(
        &base(),
        &tx(transaction),
        Mode::Slow,
        &block(7, hash),
        b(digest),
    )
}

fn fill(order: u8, ids: &[u8], digest: u8) -> Statement {
    outcome(order, ids, digest)
}

fn refund(order: u8, ids: &[u8], digest: u8) -> Statement {
    outcome(order, ids, digest)
}

fn outcome(order: u8, ids: &[u8], digest: u8) -> Statement {
    let ids: Vec<_> = ids.iter().copied().map(b).collect();
    Statement::outcome(b(order), &ids, b(digest))
}

/// A non-deterministic signer, like a key service, that counts its calls.
struct Service {
    key: SigningKey,
    calls: AtomicUsize,
    /// The row that must be in the store at the time of a call.
    durable: Option<(Arc<MemoryStore>, Key)>,
}

impl Service {
    fn new() -> Self {
        let key = SigningKey::from_slice(&alloy::hex::decode(KEY).unwrap()).unwrap();
        Self {
            key,
            calls: AtomicUsize::new(0),
            durable: None,
        }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Signer for Service {
    fn address(&self) -> EvmAddress {
        EvmAddress::from_public_key(self.key.verifying_key())
    }

    fn public_key(&self) -> [u8; 33] {
        let point = self.key.verifying_key().to_encoded_point(true);
        point.as_bytes().try_into().unwrap()
    }

    fn deterministic(&self) -> bool {
        false
    }

    async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if let Some((store, key)) = &self.durable {
            assert!(
                store.read(key).await.unwrap().is_some(),
                "signed before it was recorded"
            );
        }
        tokio::task::yield_now().await;
        let signature: k256::ecdsa::Signature = self
            .key
            .sign_prehash_with_rng(&mut OsRng, &digest[..])
            .unwrap();
        let (r, s) = signature.split_bytes();
        let join = |odd| Signature::from_scalars(B256::from_slice(&r), B256::from_slice(&s), odd);
        let (even, odd) = (join(false).unwrap(), join(true).unwrap());
        Ok(if even.recover(digest) == Ok(self.address()) {
            even
        } else {
            odd
        })
    }
}

/// Reports one key's account and signs with another key.
struct Impostor(RawKey, RawKey);

#[async_trait]
impl Signer for Impostor {
    fn address(&self) -> EvmAddress {
        self.0.address()
    }

    fn public_key(&self) -> [u8; 33] {
        self.0.public_key()
    }

    fn deterministic(&self) -> bool {
        true
    }

    async fn sign(&self, digest: &B256) -> Result<Signature, SignError> {
        self.1.sign(digest).await
    }
}

fn raw() -> Arc<RawKey> {
    Arc::new(RawKey::parse(KEY).unwrap())
}

fn journal() -> Journal {
    Journal::new(Arc::new(MemoryStore::new()), raw())
}

fn serviced() -> (Journal, Arc<Service>) {
    let service = Arc::new(Service::new());
    (
        Journal::new(Arc::new(MemoryStore::new()), service.clone()),
        service,
    )
}

async fn conflict(journal: &Journal, statement: &Statement) -> String {
    match journal.sign(statement, 2).await {
        Err(JournalError::Conflict { key, existing, .. }) => {
            assert_eq!(key, statement.key);
            existing
        }
        other => panic!("{} was not a conflict but {other:?}", statement.key),
    }
}

#[tokio::test]
async fn the_same_statement_gives_the_same_signature() {
    let (journal, service) = serviced();
    let first = journal.sign(&deposit(1, 1, 1), 1).await.unwrap();
    assert_eq!(first.recover(&b(1)), Ok(journal.signer()));
    assert_eq!(journal.sign(&deposit(1, 1, 1), 99).await.unwrap(), first);
    assert_eq!(service.calls(), 1);
    assert_eq!(
        journal
            .entry(&deposit(1, 1, 1).key)
            .await
            .unwrap()
            .unwrap()
            .at,
        1
    );
    assert_ne!(journal.sign(&deposit(2, 1, 2), 1).await.unwrap(), first);
}

#[tokio::test]
async fn a_signature_is_stored_unless_it_can_be_made_again() {
    for (signer, stored) in [
        (raw() as Arc<dyn Signer>, false),
        (Arc::new(Service::new()) as Arc<dyn Signer>, true),
    ] {
        let store = Arc::new(MemoryStore::new());
        let journal = Journal::new(store.clone(), signer);
        let made = journal.sign(&deposit(1, 1, 1), 1).await.unwrap();
        let row = store
            .read(&signature::key(&b(1), &journal.signer()))
            .await
            .unwrap();
        let row = row.map(|row| signature::decode(&row).unwrap());
        assert_eq!(row, stored.then_some(*made.as_bytes()));
        assert_eq!(journal.sign(&deposit(1, 1, 1), 1).await.unwrap(), made);
    }
}

#[tokio::test]
async fn a_stored_signature_that_is_not_ours_is_not_given_out() {
    let store = Arc::new(MemoryStore::new());
    let service = Arc::new(Service::new());
    let journal = Journal::new(store.clone(), service);
    journal.sign(&deposit(1, 1, 1), 1).await.unwrap();
    let other = RawKey::parse(OTHER).unwrap().sign(&b(1)).await.unwrap();
    let row = signature::encode(other.as_bytes());
    let swapped = Batch::new().put(signature::key(&b(1), &journal.signer()), row);
    store.commit(swapped).await.unwrap();
    let refused = journal.sign(&deposit(1, 1, 1), 1).await;
    assert!(matches!(
        refused,
        Err(JournalError::Signer(SignError::Foreign))
    ));
}

#[tokio::test]
async fn an_entry_is_there_before_the_signer_is_called() {
    let store = Arc::new(MemoryStore::new());
    let key = entry::key(&deposit(1, 1, 1).key);
    let service = Service {
        durable: Some((store.clone(), key)),
        ..Service::new()
    };
    Journal::new(store, Arc::new(service))
        .sign(&deposit(1, 1, 1), 1)
        .await
        .unwrap();
}

fn initiation(nonce: u8, key: u8, digest: u8) -> Statement {
    let once = (EvmAddress::repeat_byte(7), b(nonce));
    Statement::initiation(&ChainId::new("relay"), once, b(key), b(digest))
}

#[tokio::test]
async fn a_returned_deposit_serves_its_recovery_or_nothing() {
    let returning = || initiation(1, 1, 1).returning(b(1), b(5));
    let (recovered, used) = (journal(), journal());
    let recovery = Statement::recover(b(1), b(5), b(2));
    recovered.sign(&recovery, 1).await.unwrap();
    recovered.sign(&returning(), 2).await.unwrap();
    conflict(&recovered, &fill(1, &[1, 2], 3)).await;
    let both = fill(1, &[1, 2], 3);
    used.sign(&both, 1).await.unwrap();
    let existing = conflict(&used, &returning()).await;
    assert!(existing.contains(&both.key), "{existing}");
    let neither = journal();
    neither.sign(&returning(), 1).await.unwrap();
    neither.sign(&recovery, 2).await.unwrap();
}

#[tokio::test]
async fn a_withdrawers_nonce_initiates_one_withdrawal() {
    let (journal, _) = serviced();
    journal.sign(&initiation(1, 1, 1), 1).await.unwrap();
    journal.sign(&initiation(1, 1, 1), 2).await.unwrap();
    let other = journal.sign(&initiation(1, 2, 2), 3).await;
    assert!(matches!(other, Err(JournalError::Conflict { .. })));
    journal.sign(&initiation(2, 2, 2), 4).await.unwrap();
}

#[test]
fn a_halt_is_expected_once_for_each_chain() {
    let halts = |statement: &Statement| {
        let batch = commit::recording(statement, None, 1).unwrap();
        batch.kinds().filter(|kind| *kind == rows::HALT).count()
    };
    let here = deposit(1, 1, 1).as_of(&base(), &block(8, 2));
    assert_eq!((here.facts.len(), halts(&here)), (2, 1));
    let there = here.as_of(&ChainId::new("zora"), &block(9, 3));
    assert_eq!((there.facts.len(), halts(&there)), (3, 2));
}

#[tokio::test]
async fn a_halted_chain_holds_back_what_rests_on_no_block_of_it() {
    let (journal, _) = serviced();
    let (hub, account) = (ChainId::new("relay"), EvmAddress::repeat_byte(7));
    let withdrawal = Statement::withdrawal(&base(), b(1), Verdict::Expired, b(1));
    let ending = (statement::Outcome::Fill, b(1), b(2));
    let of_hub = [
        initiation(1, 1, 2),
        Statement::authorization(&hub, (account, b(2)), b(1), b(3)),
        Statement::exchange(&hub, ending, b(4)),
        Statement::inclusion(&hub, b(1), &[(U256::ZERO, b(9))], b(5)),
        Statement::payload(&hub, account, b(1), b(6)),
        Statement::transfer(&hub, (account, "a"), b(1), b(7)),
        Statement::trigger(&hub, b(1), b(8)),
    ];
    let of_hub = of_hub.map(|statement| (hub.clone(), statement));
    for (chain, statement) in [(base(), withdrawal)].into_iter().chain(of_hub) {
        journal.halt(&chain, "reorg", 1).await.unwrap();
        let held = journal.sign(&statement, 2).await;
        let is_held = matches!(held, Err(JournalError::Halted(halted)) if halted == chain);
        assert!(is_held, "{}", statement.key);
        let id = journal.halted(&chain).await.unwrap().unwrap().id();
        assert!(journal.clear(&chain, &id).await.unwrap());
        journal.sign(&statement, 3).await.unwrap();
    }
}

#[tokio::test]
async fn another_digest_under_a_key_is_refused() {
    let (journal, service) = serviced();
    let statements = |digest| {
        [
            deposit(1, 1, digest),
            fill(1, &[1], digest),
            refund(2, &[2], digest),
            Statement::withdrawal(&base(), b(1), Verdict::Executed, b(digest)),
            initiation(1, 1, digest),
        ]
    };
    for statement in statements(1) {
        journal.sign(&statement, 1).await.unwrap();
    }
    let calls = service.calls();
    for statement in statements(2) {
        assert!(
            conflict(&journal, &statement)
                .await
                .contains("under the same key")
        );
    }
    assert_eq!(service.calls(), calls);
    for statement in statements(1) {
        journal.sign(&statement, 3).await.unwrap();
    }
}

/// What is counted and what is logged while `work` is done.
fn reported(work: impl Future<Output = ()>) -> (String, String) {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let log = Log::default();
    // With a single subscriber, the first thread that passes an event decides for all threads whether it is recorded,
    // and other tests pass the same events without a subscriber.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || {
        tracing::subscriber::with_default(subscriber, || runtime.block_on(work));
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    (handle.render(), log)
}

#[test]
fn a_conflict_is_counted_and_raises_an_alarm() {
    let read = |statement: Statement| statement.as_of(&base(), &block(7, 1));
    let (counters, log) = reported(async {
        let journal = journal();
        let filled = read(fill(1, &[1], 1));
        journal.sign(&filled, 1).await.unwrap();
        journal.sign(&filled, 1).await.unwrap();
        conflict(&journal, &read(refund(1, &[1], 2))).await;
    });
    let counted = r#"intentd_conflicting_statements_total{kind="outcome"} 1"#;
    assert!(counters.contains(counted), "{counters}");
    let alarms: Vec<_> = log.lines().filter(|line| line.contains("ERROR")).collect();
    assert!(
        matches!(alarms[..], [alarm] if alarm.contains(&refund(1, &[1], 2).key)),
        "{log}"
    );
}

/// Whoever makes a key has as many of these as it likes.
#[test]
fn what_a_client_contradicts_is_counted_apart_and_raises_no_alarm() {
    let mapping = |digest| Statement::mapping(EvmAddress::repeat_byte(7), b(1), b(digest));
    let (counters, log) = reported(async {
        let journal = journal();
        journal.sign(&mapping(1), 1).await.unwrap();
        conflict(&journal, &mapping(2)).await;
    });
    let counted = r#"intentd_contradicting_clients_total{kind="mapping"} 1"#;
    assert!(counters.contains(counted), "{counters}");
    let alarm = "intentd_conflicting_statements_total";
    assert!(!counters.contains(alarm), "{counters}");
    assert!(
        log.contains(&mapping(2).key) && !log.contains("ERROR"),
        "{log}"
    );
}

/// A balance of one unit is enough for as many as its owner likes.
#[test]
fn what_an_owner_signs_twice_under_one_nonce_raises_no_alarm() {
    let hub = ChainId::new("relay");
    let initiated = |key| initiation(1, key, key).as_of(&hub, &block(7, 1));
    let moved = |key| {
        let once = (EvmAddress::repeat_byte(7), "a");
        Statement::transfer(&hub, once, b(key), b(key + 2)).as_of(&hub, &block(7, 1))
    };
    let (counters, log) = reported(async {
        let journal = journal();
        journal.sign(&initiated(1), 1).await.unwrap();
        conflict(&journal, &initiated(2)).await;
        journal.sign(&moved(1), 1).await.unwrap();
        conflict(&journal, &moved(2)).await;
    });
    for kind in ["initiation", "transfer"] {
        let counted = format!("intentd_contradicting_clients_total{{kind=\"{kind}\"}} 1");
        assert!(counters.contains(&counted), "{counters}");
    }
    assert!(!log.contains("ERROR"), "{log}");
}

/// A deposit shows that it goes back, not its owner's signature.
#[test]
fn a_return_beside_an_outcome_raises_an_alarm() {
    let returning = initiation(1, 1, 1).returning(b(1), b(5));
    let returning = returning.resting_on(&base(), &tx(1), &block(7, 1));
    let (counters, log) = reported(async {
        let journal = journal();
        journal.sign(&fill(1, &[1], 2), 1).await.unwrap();
        conflict(&journal, &returning).await;
    });
    let counted = r#"intentd_conflicting_statements_total{kind="initiation"} 1"#;
    assert!(counters.contains(counted), "{counters}");
    assert!(log.contains("ERROR"), "{log}");
}

/// The deposit's return is asked for at two routes, and under two nonces; and with another amount under one nonce.
#[test]
fn who_asks_twice_for_one_return_raises_no_alarm() {
    let hub = ChainId::new("relay");
    let returning = |statement: Statement| {
        let returning = statement.returning(b(1), b(5));
        returning.resting_on(&base(), &tx(1), &block(7, 1))
    };
    let once = (EvmAddress::repeat_byte(7), b(1));
    let authorized = Statement::authorization(&hub, once, b(2), b(3));
    let (counters, log) = reported(async {
        let journal = journal();
        let first = returning(initiation(1, 1, 1));
        journal.sign(&first, 1).await.unwrap();
        let existing = conflict(&journal, &returning(authorized)).await;
        assert!(existing.contains(&first.key), "{existing}");
        let existing = conflict(&journal, &returning(initiation(2, 2, 2))).await;
        assert!(existing.contains("return/"), "{existing}");
        let existing = conflict(&journal, &returning(initiation(1, 1, 4))).await;
        assert!(existing.contains("under the same key"), "{existing}");
    });
    for (kind, count) in [("authorization", 1), ("initiation", 2)] {
        let counted = format!("intentd_contradicting_clients_total{{kind=\"{kind}\"}} {count}");
        assert!(counters.contains(&counted), "{counters}");
    }
    let alarm = "intentd_conflicting_statements_total";
    assert!(!counters.contains(alarm), "{counters}");
    assert!(!log.contains("ERROR"), "{log}");
}

/// With one unit more at the address, its owner signs for another amount.
#[test]
fn who_asks_for_two_payloads_of_one_address_raises_no_alarm() {
    let hub = ChainId::new("relay");
    let told = |id, digest| {
        let address = EvmAddress::repeat_byte(7);
        let statement = Statement::payload(&hub, address, b(id), b(digest));
        statement.as_of(&hub, &block(7, 1))
    };
    let (counters, log) = reported(async {
        let journal = journal();
        journal.sign(&told(1, 1), 1).await.unwrap();
        conflict(&journal, &told(2, 2)).await;
    });
    let counted = r#"intentd_contradicting_clients_total{kind="payload"} 1"#;
    assert!(counters.contains(counted), "{counters}");
    assert!(!log.contains("ERROR"), "{log}");
}

/// Neither is a client's word: the hub gave the deposit back, and something else that is signed has it.
#[test]
fn an_authorization_beside_an_outcome_or_another_recovery_raises_an_alarm() {
    let once = (EvmAddress::repeat_byte(7), b(1));
    let hub = ChainId::new("relay");
    let authorized = Statement::authorization(&hub, once, b(2), b(3)).returning(b(1), b(5));
    let authorized = authorized.resting_on(&base(), &tx(1), &block(7, 1));
    for other in [fill(1, &[1], 2), Statement::recover(b(1), b(6), b(2))] {
        let (counters, log) = reported(async {
            let journal = journal();
            journal.sign(&other, 1).await.unwrap();
            let existing = conflict(&journal, &authorized).await;
            assert!(existing.contains(&other.key), "{existing}");
        });
        let counted = r#"intentd_conflicting_statements_total{kind="authorization"} 1"#;
        assert!(counters.contains(counted), "{counters}");
        assert!(log.contains("ERROR"), "{log}");
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn opposites_are_refused_whichever_came_first() {
    let withdrawal = |verdict| Statement::withdrawal(&base(), b(1), verdict, b(8));
    let executed = withdrawal(Verdict::Executed);
    let expired = withdrawal(Verdict::Expired);
    for (first, second) in [(&executed, &expired), (&expired, &executed)] {
        let journal = journal();
        journal.sign(first, 1).await.unwrap();
        assert_eq!(conflict(&journal, second).await, first.key);
        journal.sign(first, 1).await.unwrap();
    }
    let (fill, refund) = (fill(1, &[1, 2], 1), refund(1, &[2, 1], 2));
    for (first, second) in [(&fill, &refund), (&refund, &fill)] {
        let journal = journal();
        journal.sign(first, 1).await.unwrap();
        let existing = conflict(&journal, second).await;
        assert!(existing.contains("under the same key"), "{existing}");
        journal.sign(first, 1).await.unwrap();
    }
}

/// A stranger claims the deposit 1 with the payment that the solver made for the deposit 2.
#[tokio::test]
async fn claim_with_anothers_payment_bars_no_true_claim() {
    let paid = |id: u8, by: u8| fill(1, &[id], id).paid_by(&base(), &tx(by), 0);
    let resting = |id, by| paid(id, by).resting_on(&base(), &tx(by), &block(u64::from(by), by));
    let journal = journal();
    journal.sign(&resting(1, 8), 1).await.unwrap();
    // 8 serves 1 now, so it cannot serve 2.
    conflict(&journal, &resting(2, 8)).await;
    // The true claim for 1 frees 8.
    let signed = journal.sign(&resting(1, 7), 2).await.unwrap();
    assert_eq!(signed, journal.sign(&resting(1, 8), 2).await.unwrap());
    let entry = journal.entry(&paid(1, 7).key).await.unwrap().unwrap();
    assert_eq!((entry.at, entry.facts.len()), (1, 2));
    journal.sign(&resting(1, 7), 2).await.unwrap();
    journal.sign(&resting(2, 8), 3).await.unwrap();
    // Both statements stand: each is signed again with either payment; a third deposit is not signed.
    for (id, by) in [(1, 8), (2, 7), (1, 7), (2, 8)] {
        journal.sign(&resting(id, by), 4).await.unwrap();
        conflict(&journal, &resting(3, by)).await;
    }
    // A claim without a payment frees none.
    journal.sign(&fill(1, &[1], 1), 5).await.unwrap();
    conflict(&journal, &resting(3, 7)).await;
    conflict(&journal, &resting(3, 8)).await;
}

/// The statement that has a payment is shown others between the read and the commit that would free the payment.
#[tokio::test]
async fn a_payment_is_freed_although_its_statement_changes_meanwhile() {
    let paid = |id: u8, by: u8| fill(1, &[id], id).paid_by(&base(), &tx(by), 0);
    let twin = Arc::new(MemoryStore::default());
    let other = Journal::new(twin.clone(), raw());
    let store = Arc::new(Preceded {
        store: MemoryStore::default(),
        before: Mutex::default(),
    });
    let journal = Journal::new(store.clone(), raw());
    for by in [8, 7] {
        other.sign(&paid(1, by), 1).await.unwrap();
        journal.sign(&paid(1, by), 1).await.unwrap();
    }
    let (at, two) = rows_of(&*twin, rows::ENTRY).await.remove(0);
    other.sign(&paid(1, 6), 1).await.unwrap();
    let (_, three) = rows_of(&*twin, rows::ENTRY).await.remove(0);
    assert_ne!(two, three);
    let change = |row: &Vec<u8>| Some(Batch::new().put(at.clone(), row.clone()));
    let before = |all: Vec<Option<Batch>>| *store.before.lock().unwrap() = all;
    // Once before each commit that frees it.
    let mut always = vec![None];
    for row in [&two, &three, &two, &three] {
        always.extend([change(row), None]);
    }
    before(always);
    conflict(&journal, &paid(2, 8)).await;
    assert!(store.before.lock().unwrap().is_empty());
    // Only before the first one.
    before(vec![change(&three), None]);
    journal.sign(&paid(2, 8), 2).await.unwrap();
    assert!(store.before.lock().unwrap().is_empty());
    let entry = journal.entry(&paid(1, 8).key).await.unwrap().unwrap();
    assert!(
        entry
            .consumes
            .iter()
            .all(|one| one.what != "payment/base/0x08/0")
    );
    conflict(&journal, &paid(3, 8)).await;
}

/// Anybody may claim an order without fees with any payments for it: tiny payments of strangers fill only the
/// strangers' part.
#[tokio::test]
async fn strangers_slivers_leave_what_the_solver_paid_itself_its_room() {
    let (chain, journal) = (base(), journal());
    let paid = |id: u8, by: u8, count: u32| {
        let tx = tx(by);
        let payments = (0..count).map(|index| (&chain, &tx, index));
        fill(1, &[id], id).paid_by_all(payments)
    };
    let own = |id, by| paid(id, by, 1).by_solver(true);
    let sign = async |statement: Statement| journal.sign(&statement, 1).await.map(drop);
    // The tiny payments serve another deposit.
    sign(paid(3, 50, 64)).await.unwrap();
    sign(own(1, 9)).await.unwrap();
    sign(paid(1, 50, 64)).await.unwrap();
    // The strangers' part is full, ...
    sign(paid(1, 51, 1)).await.unwrap();
    conflict(&journal, &own(2, 9)).await;
    // ... the solver's part is not: its payment 9 is free for its own deposit.
    sign(own(1, 8)).await.unwrap();
    sign(own(2, 9)).await.unwrap();
    let entry = journal.entry(&own(1, 8).key).await.unwrap().unwrap();
    let kept: Vec<_> = entry
        .shown
        .iter()
        .map(|it| (it.payments.len(), it.own))
        .collect();
    assert_eq!((kept, entry.own), (vec![(64, false), (1, true)], true));
    // The solver's part is limited too.
    for by in 100..200 {
        sign(own(1, by)).await.unwrap();
    }
    let entry = journal.entry(&own(1, 8).key).await.unwrap().unwrap();
    assert_eq!(entry.shown.len(), 1 + 64);
}

#[tokio::test]
async fn a_deposit_serves_one_order() {
    let journal = journal();
    journal.sign(&fill(1, &[1, 2], 1), 1).await.unwrap();
    for second in [
        fill(2, &[2], 2),
        fill(1, &[2], 2),
        refund(2, &[2, 3], 2),
        refund(1, &[1], 2),
    ] {
        assert!(
            conflict(&journal, &second)
                .await
                .contains("which serves outcome/")
        );
    }
    journal.sign(&fill(2, &[3], 2), 1).await.unwrap();
}

#[tokio::test]
async fn a_payment_serves_one_order() {
    let journal = journal();
    let paid = |order, index| fill(order, &[order], order).paid_by(&base(), &tx(9), index);
    journal.sign(&paid(1, 0), 1).await.unwrap();
    let existing = conflict(&journal, &paid(2, 0)).await;
    assert!(
        existing.starts_with("payment/base/0x09/0, which serves outcome/"),
        "{existing}"
    );
    assert!(journal.entry(&paid(2, 0).key).await.unwrap().is_none());
    journal.sign(&paid(3, 1), 1).await.unwrap();
}

#[tokio::test]
async fn a_repeated_statement_uses_up_what_it_adds() {
    let journal = journal();
    // First forced, without payments; then with one, which is consumed from then on.
    let forced = journal.sign(&fill(1, &[1], 1), 1).await.unwrap();
    let paid = |order| fill(order, &[order], order).paid_by(&base(), &tx(9), 0);
    assert_eq!(journal.sign(&paid(1), 1).await.unwrap(), forced);
    conflict(&journal, &paid(2)).await;

    journal
        .sign(&fill(3, &[3], 3).paid_by(&base(), &tx(9), 1), 1)
        .await
        .unwrap();
    // A payment of another statement serves no second one, and changes nothing.
    let borrowed = fill(1, &[1], 1).paid_by(&base(), &tx(9), 1);
    assert_eq!(journal.sign(&borrowed, 1).await.unwrap(), forced);
    conflict(&journal, &paid(2)).await;
}

#[tokio::test]
async fn another_block_is_signed_only_after_the_first_is_void() {
    let journal = journal();
    let (first, second) = (deposit(1, 1, 1), deposit(1, 2, 2));
    journal.sign(&first, 1).await.unwrap();
    match journal.sign(&second, 2).await {
        Err(JournalError::OtherBlock {
            key,
            block: found,
            chain,
        }) => {
            assert_eq!(
                (key, found, chain),
                (first.key.clone(), block(7, 1), base())
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(journal.void(&first.key, "reorged", 3).await.unwrap());
    assert!(!journal.void(&first.key, "again", 3).await.unwrap());
    assert_eq!(journal.entry(&first.key).await.unwrap(), None);
    journal.sign(&second, 4).await.unwrap();
    let back = journal.sign(&first, 5).await;
    assert!(matches!(back, Err(JournalError::OtherBlock { key, .. }) if key == second.key));
    let fast = Statement::deposit(&base(), &tx(1), Mode::Fast, &block(7, 2), b(3));
    journal.sign(&fast, 6).await.unwrap();
}

#[tokio::test]
async fn who_comes_second_to_a_reorg_halts_nothing_and_voids_nothing_else() {
    let journal = journal();
    let (first, second) = (deposit(1, 1, 1).early(), deposit(1, 2, 2).early());
    let (chain, block) = (base(), first.facts[0].block.clone());
    let gone = || journal.reorged(&first.key, &chain, &block, 2);
    journal.sign(&first, 1).await.unwrap();
    assert!(gone().await.unwrap());
    assert!(!gone().await.unwrap());
    journal.sign(&second, 3).await.unwrap();
    assert!(!gone().await.unwrap());
    assert!(journal.entry(&second.key).await.unwrap().is_some());
    assert_eq!(journal.halted(&base()).await.unwrap(), None);
}

#[tokio::test]
async fn a_void_statement_frees_its_deposits_and_payments_and_is_remembered() {
    let store = Arc::new(MemoryStore::new());
    let journal = Journal::new(store.clone(), raw());
    let paid =
        fill(1, &[1], 1)
            .paid_by(&base(), &tx(9), 0)
            .resting_on(&base(), &tx(9), &block(5, 5));
    for round in 0..2 {
        journal.sign(&paid, round).await.unwrap();
        assert_eq!(journal.watched(&base(), None, 9).await.unwrap().len(), 1);
        assert!(
            journal
                .void(&paid.key, "reorged", 10 + round)
                .await
                .unwrap()
        );
    }
    assert_eq!(journal.watched(&base(), None, 9).await.unwrap(), []);
    journal
        .sign(&refund(1, &[1], 2).paid_by(&base(), &tx(9), 0), 3)
        .await
        .unwrap();

    let voids = store.scan(void::range(&paid.key)).await.unwrap();
    let voids: Vec<_> = voids
        .iter()
        .map(|(_, row)| void::Void::decode(row).unwrap())
        .collect();
    assert_eq!(
        voids
            .iter()
            .map(|void| (void.entry.at, void.at))
            .collect::<Vec<_>>(),
        [(0, 10), (1, 11)]
    );
    assert_eq!(
        (voids[0].entry.digest, voids[0].why.as_str()),
        (b(1), "reorged")
    );
}

/// No reorg takes a signature back: whoever has it may use it all the same.
#[tokio::test]
async fn a_void_statement_keeps_what_says_that_its_signature_is_out() {
    let (hub, account) = (ChainId::new("relay"), EvmAddress::repeat_byte(7));
    let told = |id, digest| Statement::payload(&hub, account, b(id), b(digest));
    let moved = |key, digest| Statement::transfer(&hub, (account, "a"), b(key), b(digest));
    let authorized = |nonce, digest| {
        let once = (account, b(nonce));
        Statement::authorization(&hub, once, b(digest), b(digest))
    };
    let included = |hash, digest| {
        let hashes = [(U256::ZERO, b(hash))];
        Statement::inclusion(&hub, b(1), &hashes, b(digest))
    };
    let returning = |nonce| initiation(nonce, nonce, nonce).returning(b(1), b(5));
    for (signed, other) in [
        (told(1, 1), told(2, 2)),
        (moved(1, 1), moved(2, 2)),
        // The keys of these have no amount.
        (moved(1, 1), moved(1, 2)),
        (initiation(1, 1, 1), initiation(1, 1, 2)),
        (included(1, 1), included(2, 2)),
        (initiation(1, 1, 1), initiation(1, 2, 2)),
        (initiation(1, 1, 1), authorized(1, 2)),
        (authorized(1, 1), initiation(1, 2, 2)),
        (returning(1), returning(2)),
        (returning(1), authorized(2, 2).returning(b(1), b(5))),
        (returning(1), fill(1, &[1], 2)),
    ] {
        let journal = journal();
        let first = journal.sign(&signed, 1).await.unwrap();
        assert!(journal.void(&signed.key, "reorged", 2).await.unwrap());
        conflict(&journal, &other).await;
        // It rests on another block now.
        let again = signed.clone().as_of(&hub, &block(8, 2));
        assert_eq!(journal.sign(&again, 3).await.unwrap(), first);
        conflict(&journal, &other).await;
    }
}

#[tokio::test]
async fn one_that_becomes_void_meanwhile_lets_no_other_digest_pass() {
    let store = Arc::new(Preceded {
        store: MemoryStore::default(),
        before: Mutex::default(),
    });
    let journal = Journal::new(store.clone(), raw());
    let signed = initiation(1, 1, 1);
    let first = journal.sign(&signed, 1).await.unwrap();
    let entry = journal.entry(&signed.key).await.unwrap().unwrap();
    let gone = commit::release(&signed.key, &entry).unwrap();
    let row = Void {
        entry,
        why: "reorged".into(),
        at: 2,
    };
    let gone = gone.put(void::key(&signed.key, 0), row.encode().unwrap());
    *store.before.lock().unwrap() = vec![Some(gone)];
    let existing = conflict(&journal, &initiation(1, 1, 2)).await;
    assert!(existing.ends_with("which is void"), "{existing}");
    assert!(store.before.lock().unwrap().is_empty());
    assert_eq!(journal.sign(&signed, 3).await.unwrap(), first);
}

/// What went back before the reorg may pay the order's solver now.
#[tokio::test]
async fn a_void_recovery_frees_its_deposit() {
    let journal = journal();
    let recovery = Statement::recover(b(1), b(5), b(2));
    journal.sign(&recovery, 1).await.unwrap();
    conflict(&journal, &fill(1, &[1], 3)).await;
    assert!(journal.void(&recovery.key, "reorged", 2).await.unwrap());
    journal.sign(&fill(1, &[1], 3), 3).await.unwrap();
    conflict(&journal, &recovery).await;
}

#[tokio::test]
async fn a_halted_chain_signs_nothing_until_it_is_cleared() {
    let (journal, service) = serviced();
    let standing = deposit(1, 1, 1);
    journal.sign(&standing, 1).await.unwrap();
    assert!(journal.halt(&base(), "reorg", 5).await.unwrap());
    assert!(!journal.halt(&base(), "another", 6).await.unwrap());
    let across = fill(1, &[1], 2)
        .resting_on(&ChainId::new("zora"), &tx(1), &block(1, 1))
        .resting_on(&base(), &tx(1), &block(1, 1));
    for statement in [&standing, &deposit(2, 1, 2), &across] {
        let refused = journal.sign(statement, 7).await;
        assert!(matches!(refused, Err(JournalError::Halted(chain)) if chain == base()));
    }
    assert_eq!(service.calls(), 1);
    let halt = Halt {
        why: "reorg".into(),
        at: 5,
        also: vec!["another".into()],
        more: 0,
    };
    assert_eq!(journal.halted(&base()).await.unwrap(), Some(halt.clone()));
    assert_eq!(journal.halts().await.unwrap(), [(base(), halt)]);
    let zora = Statement::deposit(
        &ChainId::new("zora"),
        &tx(1),
        Mode::Slow,
        &block(1, 1),
        b(3),
    );
    journal.sign(&zora, 8).await.unwrap();

    // A reason found after the operator looked is not cleared with the listed ones.
    let listed = journal.halted(&base()).await.unwrap().unwrap().id();
    assert!(!journal.halt(&base(), "reorg", 6).await.unwrap());
    assert_eq!(journal.halted(&base()).await.unwrap().unwrap().id(), listed);
    assert!(!journal.halt(&base(), "third", 7).await.unwrap());
    assert!(!journal.clear(&base(), &listed).await.unwrap());
    for number in 0..20 {
        let why = format!("reason {number}");
        journal.halt(&base(), &why, 8).await.unwrap();
    }
    let halt = journal.halted(&base()).await.unwrap().unwrap();
    assert_eq!((halt.also.len(), halt.more), (16, 6));
    assert!(journal.clear(&base(), &halt.id()).await.unwrap());
    assert!(!journal.clear(&base(), &halt.id()).await.unwrap());
    assert_eq!(journal.halted(&base()).await.unwrap(), None);
    journal.sign(&across, 9).await.unwrap();
}

#[tokio::test]
async fn blocks_are_watched_until_they_are_past() {
    let journal = journal();
    let at = |transaction, number| {
        let digest = b(transaction);
        Statement::deposit(
            &base(),
            &tx(transaction),
            Mode::Slow,
            &block(number, 1),
            digest,
        )
    };
    for (transaction, number) in [(1, 300), (2, 5), (3, 256), (4, 5)] {
        journal.sign(&at(transaction, number), 1).await.unwrap();
    }
    let elsewhere = ChainId::new("base2");
    let other = Statement::deposit(&elsewhere, &tx(1), Mode::Slow, &block(1, 1), b(9));
    journal.sign(&other, 1).await.unwrap();

    let all = journal.watched(&base(), None, 9).await.unwrap();
    assert_eq!(
        all.iter().map(|row| row.block.number).collect::<Vec<_>>(),
        [5, 5, 256, 300]
    );
    assert_eq!(all[2].statement, at(3, 256).key);
    assert_eq!(all[2].block, block(256, 1));
    assert_eq!(
        journal
            .watched(&base(), Some(&all[1].cursor), 1)
            .await
            .unwrap(),
        all[2..3]
    );

    let low: Vec<_> = all[..2].iter().map(|row| row.cursor.clone()).collect();
    journal.unwatch(&low).await.unwrap();
    journal.unwatch(&[]).await.unwrap();
    assert_eq!(journal.watched(&base(), None, 9).await.unwrap(), all[2..]);
    assert_eq!(journal.watched(&elsewhere, None, 9).await.unwrap().len(), 1);
    journal.sign(&at(2, 5), 2).await.unwrap();
    assert_eq!(
        journal.watched(&base(), None, 9).await.unwrap(),
        all[2..],
        "watched once"
    );
}

#[tokio::test]
async fn a_foreign_signature_is_not_given_out() {
    let impostor = Impostor(RawKey::parse(KEY).unwrap(), RawKey::parse(OTHER).unwrap());
    let store = Arc::new(MemoryStore::new());
    let journal = Journal::new(store.clone(), Arc::new(impostor));
    for _ in 0..2 {
        let refused = journal.sign(&deposit(1, 1, 1), 1).await;
        assert!(matches!(
            refused,
            Err(JournalError::Signer(SignError::Foreign))
        ));
    }
    // The right signer completes the entry of the impostor.
    let journal = Journal::new(store, raw());
    assert!(journal.sign(&deposit(1, 1, 1), 2).await.is_ok());
}

#[tokio::test]
async fn a_new_key_signs_standing_statements_with_its_own() {
    let store = Arc::new(MemoryStore::new());
    let old = Journal::new(store.clone(), raw())
        .sign(&deposit(1, 1, 1), 1)
        .await
        .unwrap();
    let journal = Journal::new(store, Arc::new(RawKey::parse(OTHER).unwrap()));
    let new = journal.sign(&deposit(1, 1, 1), 1).await.unwrap();
    assert_ne!(old, new);
    assert_eq!(new.recover(&b(1)), Ok(journal.signer()));
    conflict(&journal, &deposit(1, 1, 2)).await;
}

#[tokio::test]
async fn nothing_is_signed_when_the_store_has_failed() {
    let store = Arc::new(MemoryStore::new());
    let service = Arc::new(Service::new());
    let journal = Journal::new(store.clone(), service.clone());
    store.fail("disk full");
    let refused = journal.sign(&deposit(1, 1, 1), 1).await;
    assert!(matches!(refused, Err(JournalError::Unsure(why)) if why.contains("disk full")));
    assert!(matches!(
        journal.halted(&base()).await,
        Err(JournalError::Unsure(_))
    ));
    assert!(matches!(
        journal.void("k", "w", 1).await,
        Err(JournalError::Unsure(_))
    ));
    assert_eq!(service.calls(), 0);
}

#[tokio::test]
async fn an_unreadable_row_is_doubt_and_no_signature() {
    let store = Arc::new(MemoryStore::new());
    let journal = Journal::new(store.clone(), raw());
    let standing = deposit(1, 1, 1);
    for garbage in [&b""[..], b"\x02{}", b"\x01{", b"\xff"] {
        let row = Batch::new().put(entry::key(&standing.key), garbage.to_vec());
        store.commit(row).await.unwrap();
        assert!(matches!(
            journal.sign(&standing, 1).await,
            Err(JournalError::Unsure(_))
        ));
    }
}

#[tokio::test]
async fn the_payload_is_handed_back() {
    let journal = journal();
    let statement = Statement::withdrawal(&base(), b(1), Verdict::Executed, b(1));
    assert_eq!(journal.entry(&statement.key).await.unwrap(), None);
    journal
        .sign(&statement.clone().keeping(vec![1, 2]), 1)
        .await
        .unwrap();
    let entry = journal.entry(&statement.key).await.unwrap().unwrap();
    assert_eq!((entry.digest, entry.payload.as_ref()), (b(1), &[1, 2][..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_requests_share_one_signature() {
    for round in 0..50 {
        let (journal, service) = serviced();
        let journal = Arc::new(journal);
        let tasks = (0..16).map(|_| {
            let journal = journal.clone();
            tokio::spawn(async move { journal.sign(&deposit(1, 1, round), 1).await.unwrap() })
        });
        let signatures = futures::future::join_all(tasks).await;
        let first = signatures[0].as_ref().unwrap();
        assert!(
            signatures
                .iter()
                .all(|signature| signature.as_ref().unwrap() == first)
        );
        assert_eq!(service.calls(), 1);
        assert!(journal.signing.lock().unwrap().is_empty());
    }
}

/// A store in which others commit before a commit's answer arrives.
struct Overtaken(MemoryStore);

#[async_trait]
impl Store for Overtaken {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        let outcome = self.0.commit(batch).await;
        tokio::task::yield_now().await;
        outcome
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.0.scan(range).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

#[tokio::test]
async fn who_recorded_first_and_signs_last_shares_the_signature() {
    let service = Arc::new(Service::new());
    let journal = Journal::new(Arc::new(Overtaken(MemoryStore::new())), service.clone());
    let statement = deposit(1, 1, 1);
    let mut first = Box::pin(journal.sign(&statement, 1));
    assert!(futures::poll!(&mut first).is_pending());
    assert!(journal.entry(&statement.key).await.unwrap().is_some());
    let second = journal.sign(&statement, 1).await.unwrap();
    assert_eq!(first.await.unwrap(), second);
    assert_eq!(service.calls(), 1);
    assert!(journal.signing.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_request_that_goes_away_leaves_the_signing_to_the_next() {
    let (journal, service) = serviced();
    let statement = deposit(1, 1, 1);
    {
        let mut abandoned = Box::pin(journal.sign(&statement, 1));
        while service.calls() == 0 {
            assert!(futures::poll!(&mut abandoned).is_pending());
        }
    }
    assert!(journal.signing.lock().unwrap().is_empty());
    journal.sign(&statement, 2).await.unwrap();
    assert_eq!(service.calls(), 2);
}

/// Signs all statements concurrently and returns those that were signed.
async fn race(store: Arc<dyn Store>, statements: Vec<Statement>) -> Vec<(Statement, Signature)> {
    let journal = Arc::new(Journal::new(store, raw()));
    let tasks = statements.into_iter().map(|statement| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let signed = journal.sign(&statement, 1).await;
            (statement, signed)
        })
    });
    let mut won = Vec::new();
    for task in futures::future::join_all(tasks).await {
        match task.unwrap() {
            (statement, Ok(signature)) => won.push((statement, signature)),
            (_, Err(JournalError::Conflict { .. } | JournalError::OtherBlock { .. })) => {}
            (_, Err(e)) => panic!("{e}"),
        }
    }
    won
}

fn assert_compatible(won: &[(Statement, Signature)]) {
    let mut digests = HashMap::new();
    let mut used = HashMap::new();
    let mut slots = HashMap::new();
    for (statement, signature) in won {
        let known = *digests.entry(&statement.key).or_insert(statement.digest);
        assert_eq!(known, statement.digest, "two digests under one key");
        assert!(signature.recover(&statement.digest).is_ok());
        let deposits = statement.consumes.iter();
        for consumption in deposits.filter(|c| c.what.starts_with("deposit/")) {
            let by = used.entry(&consumption.what).or_insert(&consumption.by);
            assert_eq!(*by, &consumption.by, "consumed twice");
        }
        if let Some(slot) = &statement.slot {
            assert_eq!(
                slots.entry(slot).or_insert(&statement.key),
                &&statement.key,
                "slot held twice"
            );
        }
    }
    assert_each_is_paid(won);
    for (statement, _) in won {
        assert!(
            !statement
                .excludes
                .iter()
                .any(|key| digests.contains_key(key)),
            "opposites"
        );
    }
}

/// There are at most as many statements with payments as there are payments.
fn assert_each_is_paid(won: &[(Statement, Signature)]) {
    let payment = |statement: &Statement| {
        let mut consumed = statement.consumes.iter().map(|c| c.what.clone());
        consumed.find(|what| what.starts_with("payment/"))
    };
    let (mut payments, mut paid) = (HashSet::new(), HashMap::new());
    for (statement, _) in won {
        let by = payment(statement);
        *paid.entry(&statement.key).or_insert(true) &= by.is_some();
        payments.extend(by);
    }
    assert!(paid.values().filter(|all| **all).count() <= payments.len());
}

fn any_statement() -> impl Strategy<Value = Statement> {
    let ids = proptest::collection::vec(1..5u8, 1..3);
    prop_oneof![
        (
            any::<bool>(),
            1..3u8,
            ids,
            1..3u8,
            proptest::option::of(0..3u32)
        )
            .prop_map(|(filled, order, ids, digest, payment)| {
                let statement = if filled {
                    fill(order, &ids, digest)
                } else {
                    refund(order, &ids, digest + 10)
                };
                match payment {
                    Some(index) => statement.paid_by(&base(), &tx(9), index),
                    None => statement,
                }
            }),
        (1..3u8, 1..3u8, 1..3u8).prop_map(|(tx, hash, digest)| deposit(tx, hash, digest + 20)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn racing_statements_never_contradict_each_other(
        statements in proptest::collection::vec(any_statement(), 2..40),
        durable in proptest::bool::weighted(0.25),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let won = runtime.block_on(async {
            let store: Arc<dyn Store> = if durable {
                Arc::new(SledStore::open(directory.path()).unwrap())
            } else {
                Arc::new(MemoryStore::new())
            };
            race(store, statements).await
        });
        prop_assert!(!won.is_empty());
        assert_compatible(&won);
    }
}

#[tokio::test]
async fn what_was_signed_outlives_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Arc::new(SledStore::open(directory.path()).unwrap());
    let service = Arc::new(Service::new());
    let first = {
        let journal = Journal::new(open(), service.clone());
        journal
            .halt(&ChainId::new("zora"), "reorg", 1)
            .await
            .unwrap();
        journal.sign(&fill(1, &[1], 1), 1).await.unwrap()
    };
    let journal = Journal::new(open(), service.clone());
    assert_eq!(journal.sign(&fill(1, &[1], 1), 2).await.unwrap(), first);
    assert_eq!(service.calls(), 1);
    conflict(&journal, &fill(2, &[1], 2)).await;
    conflict(&journal, &fill(1, &[1], 2)).await;
    assert!(
        journal
            .halted(&ChainId::new("zora"))
            .await
            .unwrap()
            .is_some()
    );
}

fn known(claim: &evidence::Claim, is_new: bool) -> evidence::Known {
    evidence::Known {
        digest: claim.digest(),
        is_new,
    }
}

/// Signs `statement` at `now` while a request to `target` is judged.
async fn judged(journal: &Journal, target: &str, statement: &Statement, now: u64) {
    let claim = evidence::Claim {
        target: target.into(),
        body: b"{}".to_vec().into(),
        key: None,
    };
    let known = known(&claim, false);
    let signed = evidence::of(claim, known, journal.sign(statement, now)).await;
    signed.unwrap();
}

#[tokio::test]
async fn why_a_statement_was_signed_is_kept_with_it_and_with_those_that_are_void() {
    let store = Arc::new(MemoryStore::default());
    let judge = Judge {
        version: "1.2.3".into(),
        configuration: b(9),
        ..Judge::default()
    };
    let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
    let journal = journal.judged_by(judge);
    let statement = fill(1, &[2], 3);
    let why = async |at: u64| {
        let entry = journal.entry(&statement.key).await.unwrap();
        let mut entry = entry.unwrap_or_else(|| super::halts::entry_of(&statement, at));
        entry.at = at;
        let why = journal.why(&statement.key, &entry).await.unwrap();
        why.map(|why| (why.target, why.version, why.configuration))
    };
    let kept = |target: &str| Some((target.to_owned(), "1.2.3".to_owned(), b(9)));
    judged(&journal, "/first", &statement, 5).await;
    // The same again is the same statement, which was signed for the first request.
    judged(&journal, "/second", &statement, 6).await;
    assert_eq!((why(5).await, why(6).await), (kept("/first"), None));
    assert!(journal.void(&statement.key, "gone", 7).await.unwrap());
    judged(&journal, "/third", &statement, 8).await;
    assert_eq!(
        (why(5).await, why(8).await),
        (kept("/first"), kept("/third"))
    );
    // Nobody said why: it is signed all the same.
    let other = fill(4, &[5], 6);
    journal.sign(&other, 9).await.unwrap();
    let entry = journal.entry(&other.key).await.unwrap().unwrap();
    assert_eq!(journal.why(&other.key, &entry).await.unwrap(), None);
}

/// A store whose rows of a kind are not read one by one.
struct Unread(MemoryStore, Kind);

#[async_trait]
impl Store for Unread {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        self.0.commit(batch).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        match key.kind == self.1 {
            true => Err(StoreError::Closed),
            false => self.0.read(key).await,
        }
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.0.scan(range).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

#[tokio::test]
async fn a_new_claims_statement_is_not_looked_for_before_its_commit() {
    let key = Arc::new(RawKey::parse(KEY).unwrap());
    let journal = Journal::new(Arc::new(Unread(MemoryStore::new(), rows::ENTRY)), key);
    let sign = async |target: &str, statement: &Statement, is_new: bool| {
        let claim = evidence::Claim {
            target: target.into(),
            body: b"{}".to_vec().into(),
            key: None,
        };
        let known = known(&claim, is_new);
        evidence::of(claim, known, journal.sign(statement, 5)).await
    };
    let statement = fill(1, &[2], 3);
    let looked = sign("/first", &statement, false).await;
    assert!(matches!(looked, Err(JournalError::Unsure(_))), "{looked:?}");
    let first = sign("/first", &statement, true).await.unwrap();
    // Another claim of the same statement, and of one that contradicts it.
    let second = sign("/second", &statement, true).await.unwrap();
    assert_eq!(second, first);
    let refused = sign("/third", &refund(1, &[2], 4), true).await;
    assert!(matches!(refused, Err(JournalError::Conflict { .. })));
}

/// A statement's first claim and its repeats read no evidence: only another claim does.
#[tokio::test]
async fn evidence_is_read_for_another_claim_of_what_stands_only() {
    let key = Arc::new(RawKey::parse(KEY).unwrap());
    let journal = Journal::new(Arc::new(Unread(MemoryStore::new(), rows::EVIDENCE)), key);
    let statement = fill(1, &[2], 3);
    let sign = async |spaces: usize, is_new: bool| {
        let claim = spelled(spaces, Some("k"));
        let known = known(&claim, is_new);
        evidence::of(claim, known, journal.sign(&statement, 5)).await
    };
    let first = sign(0, true).await.unwrap();
    assert_eq!(sign(0, false).await.unwrap(), first);
    let other = sign(1, true).await;
    assert!(matches!(other, Err(JournalError::Unsure(_))), "{other:?}");
}

/// A claim with so many spaces behind its body.
fn spelled(spaces: usize, key: Option<&str>) -> evidence::Claim {
    evidence::Claim {
        target: "/spelled".into(),
        body: format!("{{}}{}", " ".repeat(spaces)).into_bytes().into(),
        key: key.map(str::to_owned),
    }
}

/// Signs `statement` at `now` for a claim as the oracle does.
async fn claimed(journal: &Journal, claim: evidence::Claim, statement: &Statement, now: u64) {
    let is_new = match claim.digest() {
        Some(digest) => matches!(journal.repeated(&digest).await.unwrap(), Repeated::New),
        None => false,
    };
    let known = known(&claim, is_new);
    let signed = evidence::of(claim, known, journal.sign(statement, now)).await;
    signed.unwrap();
}

/// All rows of a kind.
async fn rows_of(store: &dyn Store, kind: Kind) -> Vec<(Key, Vec<u8>)> {
    let all = Range::new(kind, &[], None, usize::MAX);
    store.scan(all).await.unwrap()
}

/// The body and the caller in the evidence of a statement that stands.
async fn asked_by(journal: &Journal, statement: &Statement) -> (String, Option<String>) {
    let entry = journal.entry(&statement.key).await.unwrap().unwrap();
    let why = journal.why(&statement.key, &entry).await.unwrap().unwrap();
    (why.body, why.key)
}

async fn unwatch_all(journal: &Journal) {
    let watched = journal.watched(&base(), None, 100).await.unwrap();
    let watched: Vec<_> = watched.into_iter().map(|one| one.cursor).collect();
    journal.unwatch(&watched).await.unwrap();
}

/// What a stranger pads, of which 2 KB are kept where nothing is read: with a digest, and without.
const LONG: [usize; 2] = [3 << 10, 9 << 10];

/// A stranger claims first and pads it, so that nobody is told why.
#[tokio::test]
async fn evidence_without_its_claim_takes_the_next_one_and_whole_evidence_none() {
    for key in [None, Some("k")] {
        let store = Arc::new(MemoryStore::default());
        let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
        let statement = deposit(0x11, 1, 2);
        let kept = async || {
            let [why, of] = [rows::EVIDENCE, rows::CLAIMED].map(|kind| rows_of(&*store, kind));
            (why.await, of.await)
        };
        claimed(&journal, spelled(LONG[0], None), &statement, 5).await;
        let first = kept().await;
        let nothing = (String::new(), None);
        assert_eq!(asked_by(&journal, &statement).await, nothing);
        claimed(&journal, spelled(LONG[1], None), &statement, 6).await;
        assert_eq!(kept().await, first);
        claimed(&journal, spelled(0, key), &statement, 7).await;
        let whole = ("{}".to_owned(), key.map(str::to_owned));
        assert_eq!(asked_by(&journal, &statement).await, whole);
        let second = kept().await;
        assert_eq!((second.0.len(), second.1.len()), (1, 1));
        // The same again, padding, and other spellings of strangers.
        for spaces in [0, LONG[0], LONG[1], 1] {
            claimed(&journal, spelled(spaces, None), &statement, 8).await;
            assert_eq!(kept().await, second, "{spaces}");
        }
    }
}

/// Evidence tells by which rules the statement was signed.
#[tokio::test]
async fn evidence_without_its_claim_takes_none_that_was_judged_by_other_rules() {
    let store = Arc::new(MemoryStore::default());
    let signer = || Arc::new(RawKey::parse(KEY).unwrap());
    let statement = deposit(0x11, 1, 2);
    let by = |version: &str| {
        let judge = Judge {
            version: version.into(),
            ..Judge::default()
        };
        Journal::new(store.clone(), signer()).judged_by(judge)
    };
    claimed(&by("1"), spelled(LONG[0], None), &statement, 5).await;
    let first = rows_of(&*store, rows::EVIDENCE).await;
    claimed(&by("2"), spelled(0, None), &statement, 6).await;
    assert_eq!(rows_of(&*store, rows::EVIDENCE).await, first);
    claimed(&by("1"), spelled(1, None), &statement, 7).await;
    assert_ne!(rows_of(&*store, rows::EVIDENCE).await, first);
}

/// Nor are strangers' spellings answered without a chain: rows of them could fill the disk.
#[tokio::test]
async fn what_stands_is_known_as_signed_for_each_spelling_of_keys_and_for_one_of_strangers() {
    let store = Arc::new(MemoryStore::default());
    let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
    let statement = deposit(0x11, 1, 2);
    claimed(&journal, spelled(0, None), &statement, 5).await;
    let first = rows_of(&*store, rows::EVIDENCE).await;
    claimed(&journal, spelled(1, None), &statement, 6).await;
    claimed(&journal, spelled(2, Some("k")), &statement, 6).await;
    // Too large to keep.
    claimed(&journal, spelled(257 << 10, Some("k")), &statement, 6).await;
    unwatch_all(&journal).await;
    for (spaces, is_known) in [(0, true), (1, false), (2, true)] {
        let digest = spelled(spaces, None).digest().unwrap();
        let found = journal.repeated(&digest).await.unwrap();
        let is_found = match found {
            Repeated::Settled(found) => found.body == "{}",
            Repeated::New | Repeated::Open => false,
        };
        assert_eq!(is_found, is_known, "{spaces}");
    }
    assert_eq!(rows_of(&*store, rows::EVIDENCE).await, first);
    assert_eq!(rows_of(&*store, rows::CLAIMED).await.len(), 2);
}

/// Also where the claim was signed before, for the statement that became void.
#[tokio::test]
async fn evidence_of_what_is_signed_again_takes_a_claim_of_before() {
    let journal = journal();
    let statement = deposit(0x11, 1, 2);
    claimed(&journal, spelled(0, None), &statement, 5).await;
    assert!(journal.void(&statement.key, "gone", 6).await.unwrap());
    claimed(&journal, spelled(LONG[1], None), &statement, 7).await;
    assert_eq!(asked_by(&journal, &statement).await.0, "");
    claimed(&journal, spelled(0, None), &statement, 8).await;
    assert_eq!(asked_by(&journal, &statement).await.0, "{}");
    unwatch_all(&journal).await;
    let digest = spelled(0, None).digest().unwrap();
    let found = journal.repeated(&digest).await.unwrap();
    assert!(matches!(found, Repeated::Settled(_)), "{found:?}");
}

/// A read of a transaction that takes more than is kept for a stranger, and less than for a key.
fn long_read() -> Read {
    let payment = |index: u32| {
        let account = Sha256::digest(index.to_be_bytes());
        Payment {
            index,
            kind: PaymentKind::Transfer,
            recipient: Address::from_parts("0x", account.to_vec()),
            currency: Address::from_parts("0x", vec![7]),
            amount: U256::from(1),
        }
    };
    let receipt = Receipt {
        payments: (0..500).map(payment).collect(),
        ..testing::receipt(block(7, 1))
    };
    Read {
        chain: base(),
        question: asked(0x11),
        answer: Answer::Transaction(Box::new(Transaction::Succeeded(receipt))),
        required: 1,
        votes: Vec::new(),
    }
}

#[tokio::test]
async fn evidence_with_a_digest_of_a_transaction_takes_that_with_the_transaction() {
    let store = Arc::new(MemoryStore::default());
    let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
    let (statement, read) = (deposit(0x11, 1, 2), long_read());
    let lacks = async |claim: evidence::Claim| {
        let known = known(&claim, true);
        let work = async {
            vm::evidence::note(|| read.clone());
            journal.sign(&statement, 5).await.unwrap();
        };
        evidence::of(claim, known, work).await;
        let entry = journal.entry(&statement.key).await.unwrap().unwrap();
        let why = journal.why(&statement.key, &entry).await.unwrap();
        why.unwrap().lacks()
    };
    let kept = async || {
        let [why, of] = [rows::EVIDENCE, rows::CLAIMED].map(|kind| rows_of(&*store, kind));
        (why.await, of.await)
    };
    assert_eq!(lacks(spelled(LONG[1], None)).await, 2);
    // The request is kept now. It cannot be judged again, so nothing is noted as signed for it.
    assert_eq!(lacks(spelled(0, None)).await, 1);
    let first = kept().await;
    assert_eq!((first.0.len(), first.1.len()), (1, 0));
    for spaces in [0, 1, LONG[1]] {
        assert_eq!(lacks(spelled(spaces, None)).await, 1, "{spaces}");
        assert_eq!(kept().await, first, "{spaces}");
    }
    assert_eq!(lacks(spelled(0, Some("k"))).await, 0);
    let whole = kept().await;
    assert_eq!((whole.0.len(), whole.1.len()), (1, 1));
    assert_eq!(lacks(spelled(1, None)).await, 0);
    assert_eq!(kept().await, whole);
}

/// A store in which something else is committed before a commit.
struct Preceded {
    store: MemoryStore,
    /// What is committed before the next commits, the last one first.
    before: Mutex<Vec<Option<Batch>>>,
}

#[async_trait]
impl Store for Preceded {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        let other = self.before.lock().unwrap().pop().flatten();
        if let Some(other) = other {
            self.store.commit(other).await?;
        }
        self.store.commit(batch).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.store.scan(range).await
    }

    async fn close(&self) {
        self.store.close().await;
    }
}

#[tokio::test]
async fn of_two_claims_that_complete_evidence_at_once_the_first_one_stays() {
    let key = || Arc::new(RawKey::parse(KEY).unwrap());
    let statement = deposit(0x11, 1, 2);
    let twin = Arc::new(MemoryStore::default());
    let whole = spelled(0, Some("first"));
    claimed(&Journal::new(twin.clone(), key()), whole, &statement, 5).await;
    let (at, row) = rows_of(&*twin, rows::EVIDENCE).await.remove(0);
    let store = Arc::new(Preceded {
        store: MemoryStore::default(),
        before: Mutex::default(),
    });
    let journal = Journal::new(store.clone(), key());
    claimed(&journal, spelled(LONG[1], None), &statement, 5).await;
    // The first commit finds that the statement stands.
    *store.before.lock().unwrap() = vec![Some(Batch::new().put(at, row)), None];
    claimed(&journal, spelled(1, Some("second")), &statement, 6).await;
    assert!(store.before.lock().unwrap().is_empty());
    let (body, by) = asked_by(&journal, &statement).await;
    assert_eq!((&*body, by.as_deref()), ("{}", Some("first")));
    assert_eq!(rows_of(&*store, rows::CLAIMED).await.len(), 1);
}

#[tokio::test]
async fn a_refused_statement_leaves_no_evidence() {
    let store = Arc::new(MemoryStore::default());
    let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
    judged(&journal, "/first", &fill(1, &[2], 3), 5).await;
    let claim = evidence::Claim {
        target: "/second".into(),
        body: b"{}".to_vec().into(),
        key: None,
    };
    let conflicting = refund(1, &[2], 4);
    let known = known(&claim, false);
    let refused = evidence::of(claim, known, journal.sign(&conflicting, 6)).await;
    assert!(matches!(refused, Err(JournalError::Conflict { .. })));
    let all = Range::new(rows::EVIDENCE, &[], None, usize::MAX);
    assert_eq!(store.scan(all).await.unwrap().len(), 1);
}

#[tokio::test]
async fn statements_are_found_by_their_transaction_and_signed_again_only_while_they_stand() {
    let store = Arc::new(MemoryStore::default());
    let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
    let credited = deposit(0x11, 1, 2);
    let paid = fill(1, &[2], 3).paid_by(&base(), &tx(0x11), 0).resting_on(
        &base(),
        &tx(0x11),
        &block(7, 1),
    );
    journal.sign(&credited, 5).await.unwrap();
    let made = journal.sign(&paid, 5).await.unwrap();
    let about =
        async |chain: &str, transaction: &str| journal.about(chain, transaction).await.unwrap();
    assert_eq!(
        about("base", "0x11").await,
        [credited.key.clone(), paid.key.clone()]
    );
    assert_eq!(
        (about("base", "0x1").await, about("bas", "0x11").await),
        (vec![], vec![])
    );
    assert_eq!(journal.signature_of(&paid.key).await.unwrap(), Some(made));
    journal
        .reorged(&credited.key, &base(), &block(7, 1), 6)
        .await
        .unwrap();
    // A void statement is found, too.
    assert_eq!(
        about("base", "0x11").await,
        [credited.key.clone(), paid.key.clone()]
    );
    assert_eq!(journal.voids(&credited.key).await.unwrap().len(), 1);
    // The chain is halted.
    assert_eq!(journal.signature_of(&paid.key).await.unwrap(), None);
    assert_eq!(journal.signature_of(&credited.key).await.unwrap(), None);
}

/// A store whose commits fail, although it is read: a row that was applied is never durable.
struct Unflushed(Arc<dyn Store>);

#[async_trait]
impl Store for Unflushed {
    async fn commit(&self, _: Batch) -> Result<Outcome, StoreError> {
        Err(StoreError::Failed("disk full".into()))
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.read(key).await
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.0.scan(range).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

#[tokio::test]
async fn what_was_signed_is_signed_again_only_while_its_durable_entry_stands_unhalted() {
    let statement = deposit(0x11, 1, 2);
    let store = Arc::new(Preceded {
        store: MemoryStore::default(),
        before: Mutex::default(),
    });
    let journal = Journal::new(store.clone(), raw());
    let made = journal.sign(&statement, 5).await.unwrap();
    let again = async || journal.signature_of(&statement.key).await.unwrap();
    assert_eq!(again().await, Some(made));
    let unflushed = Journal::new(Arc::new(Unflushed(store.clone())), raw());
    let refused = unflushed.signature_of(&statement.key).await;
    assert!(matches!(refused, Err(JournalError::Unsure(why)) if why.contains("disk full")));
    // After the entry is read, others halt the chain, clear the halt, and void the statement.
    let meanwhile = |batch: Batch| *store.before.lock().unwrap() = vec![Some(batch)];
    let (halted, halt) = (rows::halt::key("base"), Halt::default());
    meanwhile(Batch::new().put(halted.clone(), halt.encode().unwrap()));
    assert_eq!(again().await, None);
    meanwhile(Batch::new().delete(halted));
    assert_eq!(again().await, Some(made));
    meanwhile(Batch::new().delete(entry::key(&statement.key)));
    assert_eq!(again().await, None);
}

/// That `chain` was asked this.
fn noted(chain: &ChainId, question: Question) {
    vm::evidence::note(|| Read {
        chain: chain.clone(),
        question,
        answer: Answer::Sequence(0),
        required: 1,
        votes: Vec::new(),
    });
}

/// What is asked about the transaction `byte`.
fn asked(byte: u8) -> Question {
    Question::Transaction {
        transaction: tx(byte),
        head: b(8),
    }
}

/// Signs `statement` for a claim for which `questions` were asked of the chain [`base`].
async fn signed_after(journal: &Journal, statement: &Statement, questions: Vec<Question>) {
    let claim = evidence::Claim {
        target: "/asked".into(),
        body: b"{}".to_vec().into(),
        key: None,
    };
    let work = async {
        questions.into_iter().for_each(|one| noted(&base(), one));
        journal.sign(statement, 5).await.unwrap();
    };
    let known = known(&claim, false);
    evidence::of(claim, known, work).await;
}

#[tokio::test]
async fn statements_are_found_by_every_transaction_that_was_read_for_them_and_when_they_are_void() {
    let journal = journal();
    let paid = fill(1, &[2], 3).paid_by(&base(), &tx(0x22), 0);
    // The deposit, twice: from an older head, too.
    signed_after(&journal, &paid, vec![asked(0x11), asked(0x11), asked(0x22)]).await;
    let executed = Statement::withdrawal(&base(), b(4), Verdict::Executed, b(5));
    let status = Question::Withdrawal {
        encoded: Default::default(),
        transaction: Some(tx(0x33)),
        block: b(8),
    };
    let head = Question::Head { fresh: false };
    signed_after(&journal, &executed, vec![head, status]).await;
    for void in [false, true] {
        let about = async |transaction: &str| journal.about("base", transaction).await.unwrap();
        assert_eq!(
            about("0x11").await,
            std::slice::from_ref(&paid.key),
            "{void}"
        );
        assert_eq!(
            about("0x22").await,
            std::slice::from_ref(&paid.key),
            "{void}"
        );
        assert_eq!(
            about("0x33").await,
            std::slice::from_ref(&executed.key),
            "{void}"
        );
        assert_eq!(about("0x44").await, [""; 0]);
        for key in [&paid.key, &executed.key] {
            journal.void(key, "gone", 6).await.unwrap();
        }
    }
}

/// A payment that a statement is shown later leads to it, and a refused statement is found by nothing.
#[tokio::test]
async fn a_later_payment_leads_to_its_statement_and_a_refused_statement_is_not_found() {
    let journal = journal();
    let paid = |by: u8| fill(1, &[2], 3).paid_by(&base(), &tx(by), 0);
    journal.sign(&paid(0x11), 5).await.unwrap();
    signed_after(&journal, &paid(0x22), vec![asked(0x22)]).await;
    let about = async |transaction: &str| journal.about("base", transaction).await.unwrap();
    assert_eq!(about("0x22").await, [paid(0x22).key]);
    let conflicting = refund(1, &[2], 4).paid_by(&base(), &tx(0x33), 0);
    conflict(&journal, &conflicting).await;
    assert_eq!(about("0x33").await, [""; 0]);
}

/// An older version wrote no rows that lead from a transaction to its statements.
#[tokio::test]
async fn statements_of_older_versions_are_found_while_they_stand() {
    let store = Arc::new(MemoryStore::default());
    let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
    let credited = deposit(0x11, 1, 2);
    let paid = fill(1, &[2], 3).paid_by(&base(), &tx(0x11), 0);
    for statement in [&credited, &paid] {
        journal.sign(statement, 5).await.unwrap();
    }
    let all = || Range::new(rows::ABOUT, &[], None, usize::MAX);
    let led = store.scan(all()).await.unwrap();
    assert_eq!(led.len(), 2);
    let older = led.into_iter().map(|(key, _)| key);
    store
        .commit(older.fold(Batch::new(), Batch::delete))
        .await
        .unwrap();
    let both = [credited.key.clone(), paid.key.clone()];
    assert_eq!(journal.about("base", "0x11").await.unwrap(), both);
    journal.void(&credited.key, "gone", 6).await.unwrap();
    assert_eq!(journal.about("base", "0x11").await.unwrap(), both[1..]);
    // The same again adds nothing.
    journal.sign(&paid, 7).await.unwrap();
    assert_eq!(store.scan(all()).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_statement_is_found_by_no_more_transactions_than_a_claim_can_name() {
    let store = Arc::new(MemoryStore::default());
    let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
    let questions = (0..=255).map(asked).collect();
    signed_after(&journal, &fill(1, &[2], 3), questions).await;
    let all = Range::new(rows::ABOUT, &[], None, usize::MAX);
    let most = 2 * crate::attest::claim::MOST_ITEMS;
    assert_eq!(store.scan(all).await.unwrap().len(), most);
}

/// The rules of the evidence of a statement that was signed for `questions` about the chain [`base`].
async fn rules(statement: &Statement, questions: Vec<Question>) -> Vec<String> {
    let finality = |blocks| Finality {
        blocks,
        seconds: 30,
        tag: Some(FinalityTag::Safe),
    };
    let judge = Judge {
        finality: [(base(), finality(10)), (ChainId::new("zora"), finality(9))].into(),
        ..Judge::default()
    };
    let store = Arc::new(MemoryStore::default());
    let journal = Journal::new(store, Arc::new(RawKey::parse(KEY).unwrap())).judged_by(judge);
    signed_after(&journal, statement, questions).await;
    let entry = journal.entry(&statement.key).await.unwrap().unwrap();
    let why = journal.why(&statement.key, &entry).await.unwrap().unwrap();
    why.rules.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_rule_that_was_applied_is_kept_with_a_statement() {
    let settled = || Question::Settled { head: b(8) };
    let own = ["base: 10 blocks, 30 s, safe"];
    let slow = deposit(0x11, 1, 2);
    assert_eq!(rules(&slow, vec![asked(0x11), asked(0x22)]).await, own);
    assert_eq!(rules(&slow, vec![settled()]).await, own);
    let tier = |chain: &str| Rule {
        chain: ChainId::new(chain),
        finality: Finality {
            blocks: 2,
            seconds: 0,
            tag: None,
        },
        fast: true,
    };
    let fast = slow.clone().judged_by(tier("base"));
    assert_eq!(
        rules(&fast, vec![asked(0x11)]).await,
        ["base: 2 blocks, 0 s, fast"]
    );
    // A rule of another chain, and a head, which need not be final.
    let other = slow.clone().judged_by(tier("zora"));
    assert_eq!(rules(&other, vec![asked(0x11)]).await, own);
    let head = Question::Head { fresh: true };
    assert_eq!(rules(&fast, vec![head]).await, [""; 0]);
}

#[tokio::test]
async fn an_equal_request_finds_its_evidence_once_nothing_watches_and_records_nothing_over_it() {
    let store = Arc::new(MemoryStore::default());
    let journal = Journal::new(store.clone(), Arc::new(RawKey::parse(KEY).unwrap()));
    let statement = deposit(0x11, 1, 2);
    let claim = |target: &str, key: Option<&str>| evidence::Claim {
        target: target.into(),
        body: b"{}".to_vec().into(),
        key: key.map(str::to_owned),
    };
    judged(&journal, "/first", &statement, 5).await;
    let found =
        async |of: evidence::Claim| match journal.repeated(&of.digest().unwrap()).await.unwrap() {
            Repeated::Settled(found) => Some(found.target),
            Repeated::New | Repeated::Open => None,
        };
    assert_eq!(
        found(claim("/first", None)).await,
        None,
        "its block is watched"
    );
    let watched = journal.watched(&base(), None, 100).await.unwrap();
    let watched: Vec<_> = watched.into_iter().map(|one| one.cursor).collect();
    journal.unwatch(&watched).await.unwrap();
    assert_eq!(
        found(claim("/first", None)).await.as_deref(),
        Some("/first")
    );
    assert_eq!(found(claim("/other", None)).await, None);
    let keyed = found(claim("/first", Some("label"))).await;
    assert_eq!(keyed.as_deref(), Some("/first"), "whoever asks");
    assert!(journal.void(&statement.key, "gone", 7).await.unwrap());
    assert_eq!(found(claim("/first", None)).await, None, "it is void");
    // Whoever had found it before does not bring it back.
    let replay = vm::evidence::Replay::new(Vec::new());
    let again = replay.answering(journal.sign(&statement, 8)).await;
    assert!(matches!(again, Err(JournalError::Unsure(_))), "{again:?}");
    assert_eq!(journal.entry(&statement.key).await.unwrap(), None);
}

/// The basis of a repeated signature is what the journal checks before it signs again.
#[tokio::test]
async fn the_basis_of_a_repeated_signature_falls_with_a_halt_and_with_the_statement() {
    let journal = journal();
    let (statement, other) = (deposit(1, 1, 1), deposit(2, 2, 2));
    let noted = async |statement: &Statement, now| {
        let (signed, basis) = basis::of(journal.sign(statement, now)).await;
        signed.unwrap();
        basis.unwrap()
    };
    // That of the first signature is the absence of what it writes.
    let first = noted(&statement, 1).await;
    assert!(!journal.still_holds(&first).await.unwrap());
    let again = noted(&statement, 2).await;
    assert!(journal.still_holds(&again).await.unwrap());
    journal.sign(&other, 2).await.unwrap();
    assert!(journal.still_holds(&again).await.unwrap());
    journal.halt(&base(), "a test", 3).await.unwrap();
    assert!(!journal.still_holds(&again).await.unwrap());
    let (_, halt) = journal.halts().await.unwrap().remove(0);
    assert!(journal.clear(&base(), &halt.id()).await.unwrap());
    assert!(journal.still_holds(&again).await.unwrap());
    journal.void(&statement.key, "a test", 4).await.unwrap();
    assert!(!journal.still_holds(&again).await.unwrap());
    // It is signed anew at another time.
    journal.sign(&statement, 5).await.unwrap();
    assert!(!journal.still_holds(&again).await.unwrap());
}

/// A payment that serves another statement is not noted: whoever shows it next is judged again.
#[tokio::test]
async fn a_payment_that_serves_another_statement_leaves_no_basis() {
    let paid = |id: u8, by: u8| fill(1, &[id], id).paid_by(&base(), &tx(by), 0);
    let journal = journal();
    journal.sign(&fill(1, &[1], 1), 1).await.unwrap();
    journal.sign(&paid(2, 7), 1).await.unwrap();
    for (statement, has) in [(fill(1, &[1], 1), true), (paid(1, 7), false)] {
        let (signed, basis) = basis::of(journal.sign(&statement, 2)).await;
        assert!(signed.is_ok() && basis.is_some() == has, "{statement:?}");
    }
}

#[test]
fn large_claims_are_not_kept_and_claims_are_told_apart() {
    let claim = |target: &str, body: usize, key: Option<&str>| evidence::Claim {
        target: target.into(),
        body: vec![b'x'; body].into(),
        key: key.map(str::to_owned),
    };
    let digests = [
        claim("/a", 1, None),
        claim("/ax", 0, None),
        claim("/a", 2, None),
        claim("/a", 1, Some("")),
        claim("/a", 1, Some("k")),
    ];
    let all = digests.iter().map(|claim| claim.digest().unwrap());
    assert_eq!(all.collect::<HashSet<_>>().len(), 3);
    let all = digests
        .iter()
        .map(|claim| claim.of_caller(&claim.digest().unwrap()));
    assert_eq!(all.collect::<HashSet<_>>().len(), 5);
    // Target and body together.
    for (most, key) in [(8 << 10, None), (256 << 10, Some("k"))] {
        assert!(claim("/a", most - 2, key).digest().is_some());
        assert_eq!(claim("/a", most - 1, key).digest(), None);
    }
}
