use std::collections::BTreeSet;

use alloy::primitives::B256;

use super::*;
use crate::{
    integrator::{Integrator, Tier, change::usual_scopes},
    request::{
        fact::{Facts, Purpose, Standing},
        fixtures as request_scene,
    },
    store::{
        Batch, Kind,
        fixtures::{self, NETWORK, NONCE, STATEMENT},
        memory::MemoryStore,
        rows::{
            self, KINDS,
            attempt::{self, Owner},
            claim::{Claim, Stage},
            cursor::{Cursor, Mark},
        },
    },
};

async fn world() -> MemoryStore {
    let store = MemoryStore::new();
    fixtures::fill(&store, fixtures::rows()).await;
    store
}

#[tokio::test]
async fn a_store_with_rows_of_every_kind_is_whole() {
    let report = check(&world().await).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
    let counted: Vec<_> = report.counts.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(counted, KINDS.map(|kind| kind.name));
    let text = report.to_string();
    assert!(text.contains("lane                  1"), "{text}");
    let end = format!("{} rows, 0 defects", fixtures::count());
    assert!(text.ends_with(&end), "{text}");
    let nothing = check(&MemoryStore::new()).await.unwrap();
    assert_eq!(nothing.to_string(), "0 rows, 0 defects");
}

/// The defects listed after `change` to the fixture.
async fn defects_after(change: Batch) -> Vec<String> {
    let store = world().await;
    store.commit(change).await.unwrap();
    let report = check(&store).await.unwrap();
    assert_eq!(report.defects, report.listed.len() as u64);
    report.listed.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn every_byte_that_a_decoder_refuses_is_told() {
    for (key, value) in fixtures::rows() {
        let kind = rows::kind(key.kind).unwrap().name;
        let newer = [&[99], &value[1..]].concat();
        for bytes in [Vec::new(), newer] {
            let defects = defects_after(Batch::new().put(key.clone(), bytes)).await;
            let wanted = format!("{kind} ");
            let about = defects
                .iter()
                .any(|line| line.starts_with(&wanted) && line.contains("unreadable"));
            assert!(about, "{kind}: {defects:?}");
        }
    }
    let foreign = Key::new(Kind(200), "x");
    let defects = defects_after(Batch::new().put(foreign, vec![1])).await;
    assert_eq!(defects, ["unknown x: unreadable foreign row: unknown kind"]);
}

#[tokio::test]
async fn names_that_are_none_are_told() {
    for RowKind { kind, name, .. } in KINDS {
        if ["cursor", "halt", "consumption", "lease"].contains(&name) {
            continue;
        }
        let key = Key::new(kind, [0xff; 3]);
        let defects = defects_after(Batch::new().put(key, vec![1, 0])).await;
        assert_eq!(defects.len(), 1, "{name}: {defects:?}");
        assert!(
            defects[0].starts_with(&format!("{name} 0xffffff: ")),
            "{defects:?}"
        );
    }
}

/// Every reference: the deleted row, and the kinds that miss it.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn a_row_that_is_missing_is_missed_by_who_names_it() {
    let (request, id) = (request_scene::request(1), fixtures::id());
    let quote = request_scene::request(3);
    let deposit = request_scene::deposit(1, Standing::Final).onchain_id;
    let cases: &[(Key, &[&str])] = &[
        (rows::entry::key(STATEMENT), &["slot", "watch"]),
        (rows::slot::key("slot"), &["entry"]),
        (rows::consumption::key("payment"), &["entry"]),
        (
            rows::request::key(&id),
            &[
                "order", "facts", "open", "claim", "event", "witness", "summary",
            ],
        ),
        (rows::order::key(&request.order_id), &["request"]),
        (
            rows::facts::key(&id),
            &["sighting", "claim", "summary", "listed"],
        ),
        (
            rows::summary::key(&id),
            &[
                "request", "listed", "listed", "listed", "listed", "listed", "listed", "listed",
            ],
        ),
        (rows::quote::key(&quote.id), &["order", "large"]),
        (rows::large::key(&quote.id), &[]),
        (rows::order::key(&quote.order_id), &["quote"]),
        (fixtures::leading(), &["summary"]),
        (rows::claim::key(&id), &["settlement", "attempt"]),
        (rows::account::key(NETWORK), &["attempt"]),
        (
            attempt::key(NETWORK, &fixtures::attempt_id(NONCE)),
            &["claim", "reservation", "resource"],
        ),
        (
            attempt::resource(NETWORK, &fixtures::attempt_id(NONCE)),
            &["attempt"],
        ),
        (rows::event::key(1), &["delivery", "dead", "history"]),
        (rows::history::key(&id, 1), &["event"]),
        (rows::integrator::key("app"), &["delivery", "dead"]),
        (
            rows::evidence::key(STATEMENT, fixtures::statement().at),
            &["claimed"],
        ),
        // No other row refers to these.
        (rows::about::key(NETWORK, "0x01", STATEMENT), &[]),
        (rows::claimed::key(&B256::repeat_byte(6)), &[]),
        (rows::delivery::key("app", 1), &[]),
        (rows::dead::key("app", 1), &[]),
        (
            rows::watch::key(&fixtures::statement().facts[0], STATEMENT),
            &[],
        ),
        (rows::cursor::key(NETWORK), &[]),
        (rows::tx_details::seen(NETWORK, "0xa"), &[]),
        (rows::open::key(&id), &[]),
        (rows::settlement::key(&id, &deposit), &[]),
        (rows::parked::key(&id, &deposit), &[]),
        (rows::pause::key(), &[]),
    ];
    let mut leaning = BTreeSet::new();
    for (key, missed) in cases {
        leaning.extend(missed.iter().map(|by| (*by, key.kind)));
        let defects = defects_after(Batch::new().delete(key.clone())).await;
        let by: Vec<_> = defects
            .iter()
            .map(|line| line.split(' ').next().unwrap())
            .collect();
        assert_eq!(by, *missed, "without {key:?}: {defects:?}");
    }
    // The table of kinds has the same references, and those without an example here.
    let table: BTreeSet<_> = KINDS
        .iter()
        .flat_map(|one| one.refers.iter().map(|to| (one.name, *to)))
        .collect();
    let unseen = [
        ("about", rows::ENTRY),
        ("about", rows::VOID),
        ("attempt", rows::REQUEST),
        ("parked", rows::CLAIM),
        ("quote", rows::FACTS),
        ("quote", rows::REQUEST),
        ("void", rows::VOID),
    ];
    leaning.extend(unseen);
    assert_eq!(leaning, table);
}

async fn each_is_told(cases: Vec<(Key, Vec<u8>, &str)>) {
    for (key, value, wanted) in cases {
        let defects = defects_after(Batch::new().put(key, value)).await;
        let found = defects.iter().any(|line| line.contains(wanted));
        assert!(found, "{wanted}: {defects:?}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn statements_and_requests_that_contradict_each_other_are_told() {
    let (id, other) = (fixtures::id(), B256::repeat_byte(0x77));
    let order = request_scene::request(1).order_id;
    let second = rows::request::encode(&request_scene::request(2)).unwrap();
    let mark = Mark {
        number: 7,
        hash: other,
    };
    let cursor = Cursor {
        next: 3,
        marks: vec![mark],
        ..Cursor::default()
    };
    let twice = Facts {
        deposits: vec![request_scene::deposit(1, Standing::Final); 2],
        ..Facts::default()
    };
    let foreign = rows::signature::key(&other, &Default::default());
    each_is_told(vec![
        (
            rows::slot::key("slot"),
            rows::slot::encode("another"),
            "does not hold its slot",
        ),
        (
            rows::consumption::key("payment"),
            rows::consumption::encode("another"),
            "not its own: payment",
        ),
        (
            foreign,
            rows::signature::encode(&[1; 65]),
            "it is not the signer's",
        ),
        (
            rows::order::key(&order),
            rows::order::encode(&other),
            "not its request",
        ),
        (rows::request::key(&id), second, "it is request"),
        (
            rows::cursor::key(NETWORK),
            cursor.encode().unwrap(),
            "out of order",
        ),
        (
            rows::facts::key(&id),
            rows::facts::encode(&twice).unwrap(),
            "twice",
        ),
        (
            rows::facts::key(&id),
            rows::facts::encode(&Facts::default()).unwrap(),
            "it says something else than its request and facts",
        ),
        (
            rows::quote::key(&id),
            rows::quote::encode(&request_scene::request(1)).unwrap(),
            "still a quote",
        ),
        (
            Key::new(rows::LISTED, b"c\x01elsewhere".as_slice()),
            fixtures::summary(),
            "it is not where its summary belongs",
        ),
    ])
    .await;
}

#[tokio::test]
async fn payments_that_contradict_each_other_are_told() {
    let held = fixtures::attempt_id(NONCE);
    let (id, slot) = (fixtures::id(), attempt::key(NETWORK, &held));
    let mut refunded = fixtures::claim();
    let mut refund = refunded.legs[0].clone();
    (refund.purpose, refund.stage) = (Purpose::Refund, Stage::Final);
    refunded.legs.push(refund);
    let mut foreign = fixtures::attempt();
    foreign.owner = Owner::Request(B256::repeat_byte(0x77));
    let mut bare = fixtures::attempt();
    bare.signed.clear();
    let mut empty = fixtures::attempt();
    empty.resources.clear();
    let (behind, other) = (fixtures::lane(NONCE), fixtures::attempt_id(8));
    let nobody = rows::lease::Lease { fence: 0, since: 1 };
    each_is_told(vec![
        (
            rows::claim::key(&id),
            refunded.encode().unwrap(),
            "is used twice",
        ),
        (
            slot.clone(),
            foreign.encode().unwrap(),
            "nonce 7 of origin is not its own",
        ),
        (
            slot.clone(),
            bare.encode().unwrap(),
            "no transaction has the nonce",
        ),
        (
            slot,
            empty.encode().unwrap(),
            "its attempt does not hold it",
        ),
        (
            attempt::resource(NETWORK, &held),
            attempt::holder(&other),
            "it does not hold what it says",
        ),
        (
            rows::account::key(NETWORK),
            behind.encode().unwrap(),
            "has not come to this nonce",
        ),
        (
            rows::lease::key("x"),
            nobody.encode().unwrap(),
            "nobody has held it",
        ),
    ])
    .await;
}

#[tokio::test]
async fn what_a_void_statement_consumed_may_be_free() {
    let gone = rows::void::Void {
        entry: fixtures::statement(),
        why: "reorg".into(),
        at: 1,
    };
    let change = Batch::new()
        .put(rows::void::key(STATEMENT, 1), gone.encode().unwrap())
        .delete(rows::consumption::key("payment"));
    assert_eq!(defects_after(change).await, [""; 0]);
    let late = Batch::new().put(rows::void::key(STATEMENT, 5), gone.encode().unwrap());
    let defects = defects_after(late).await;
    assert!(
        defects[0].contains("the void before it is missing"),
        "{defects:?}"
    );
}

#[tokio::test]
async fn a_transaction_that_leads_to_nothing_that_was_signed_is_told() {
    let lead = |statement: &str| {
        let key = rows::about::key(NETWORK, "0x02", statement);
        Batch::new().put(key, rows::about::encode())
    };
    // It stands no longer, and is void.
    let gone = lead(STATEMENT)
        .delete(rows::entry::key(STATEMENT))
        .delete(rows::slot::key("slot"))
        .delete(rows::watch::key(&fixtures::statement().facts[0], STATEMENT));
    assert_eq!(defects_after(gone).await, [""; 0]);
    let standing = lead(STATEMENT).delete(rows::void::key(STATEMENT, 0));
    assert_eq!(defects_after(standing).await, [""; 0]);
    let defects = defects_after(lead("deposit/base/0x2")).await;
    assert_eq!(defects.len(), 1, "{defects:?}");
    assert!(
        defects[0].ends_with("deposit/base/0x2 was never signed"),
        "{defects:?}"
    );
}

#[tokio::test]
async fn many_defects_are_counted_and_some_told() {
    let store = MemoryStore::new();
    let put = |batch: Batch, n: u16| batch.put(Key::new(Kind(250), n.to_be_bytes()), vec![1]);
    store
        .commit((0..300).fold(Batch::new(), put))
        .await
        .unwrap();
    let report = check(&store).await.unwrap();
    assert_eq!((report.defects, report.listed.len()), (300, MOST_LISTED));
}

#[tokio::test]
async fn integrators_under_a_wrong_name_or_with_somebody_elses_key_are_told() {
    let other = Integrator::new("other", usual_scopes(), Tier::Default, [9; 32], 5).unwrap();
    let named = |label: &str| {
        let value = rows::integrator::encode(&other).unwrap();
        (rows::integrator::key(label), value)
    };
    let ((key, value), (wrong, same)) = (named("other"), named("wrong"));
    each_is_told(vec![
        (
            key,
            value,
            "integrator other: key 09090909 stands there twice",
        ),
        (wrong, same, "integrator wrong: it is other"),
    ])
    .await;
}

#[tokio::test]
async fn what_the_index_parked_needs_no_claim_and_what_the_solver_uses_is_not_parked() {
    let id = fixtures::id();
    let deposit = request_scene::deposit(1, Standing::Final).onchain_id;
    let claim = |change: fn(&mut Claim)| {
        let mut claim = fixtures::claim();
        change(&mut claim);
        Batch::new().put(rows::claim::key(&id), claim.encode().unwrap())
    };
    assert_eq!(defects_after(claim(|_| {})).await, Vec::<String>::new());
    let uses = defects_after(claim(|claim| claim.parked.clear())).await;
    assert!(uses[0].starts_with("parked "), "{uses:?}");
    assert!(
        uses[0].ends_with("its claim goes on with the deposit"),
        "{uses:?}"
    );
    let listed = rows::parked::key(&id, &deposit);
    let row = world().await.read(&listed).await.unwrap().unwrap();
    let other = rows::parked::key(&id, &B256::repeat_byte(0x77));
    assert_eq!(
        defects_after(Batch::new().put(other, row)).await,
        Vec::<String>::new()
    );
}
