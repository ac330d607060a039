//! Exports of older versions, made by them. Format 1: a deposit, two fills and a refund were signed, a third
//! fill is void, and its chain is halted. Format 3: a fill was sent, and no block with it was final.

use std::{fs, sync::Arc};

use alloy::primitives::B256;
use intentd::{
    attest::{
        journal::{Journal, JournalError},
        statement::{Mode, Statement, Verdict},
    },
    sign::raw::RawKey,
    store::{
        Store, check,
        dump::{self, DumpError, Foot, Imported, Line},
        memory::MemoryStore,
        rows::{
            self,
            account::{self, Account},
            attempt::{self, Attempt, Owner},
            claim::Claim,
        },
    },
};
use sha2::{Digest, Sha256};
use vm::{
    ethereum::trade::CarriedAccount,
    types::{Block, ChainId, TxRef},
};

use super::{DataDir, KEY};

const EXPORT: &str = include_str!("../../fixtures/store-format-1.jsonl");
const UNDER_WAY: &str = include_str!("../../fixtures/store-format-3.jsonl");
/// The request that is being filled, on which network, and the transaction that was sent for it.
const FILLING: &str = "0x01a20f3b1e61a03cca629b0d88af1415da25438b792e8f4526bd82898a995244";
const DESTINATION: &str = "destination";
const SENT: &str = "0xf1bbcf8bfac9e516499d259194830cf7beaf987839425d7bb7f2212a95c8f4d3";

/// Orders and the deposits that they ended for: of a fill, and of a refund.
const FILLED: [&str; 2] = [
    "0x35d7b5c459559158bbf70d3d95bdc5ed274d5f4c91bb41a3e456a2982f8b0f48",
    "0x1d1ae632fae8b543416a0f2f44ca59ede0d037ca6d1aa9f9f616f99e225f69c4",
];
const REFUNDED: [&str; 2] = [
    "0xca32c5b3b29956bfed1b2d936b728373d9f8b243fdf84b188551aba2044c2b24",
    "0xb8f4973ed169f9a6cba70192d7613c9544494ac3243017c3e62d51cfbc0eeac3",
];
const PAYMENT: &str = "0x6ae56d4e188dcc612364ea374a6f181c7a6e18ff755a4d70ca5db48c66d29731";
const DEPOSITED: &str = "0x81a576ec1fab230515b8e7da89033598f44c56222ec945d798696db8d3aabc74";
/// What follows `fill/` or `refund/` in the names of the first fill, and of the one that is void.
const SUBJECT: &str = "0x35d7b5c459559158bbf70d3d95bdc5ed274d5f4c91bb41a3e456a2982f8b0f48/0x782d2770e9a308b12ecab8827b5643b5baab67297383c15bfc2e30d8be253605";
const VOID: &str = "0x82b6d3d4d85fc71d43f297dd37ac9cb8ebd87acb8a6151e26cb74cb853d709db/0x74fc1a5567bce1e49514f8135b0a6d4a759fcaa4b0f142c6e5c30cc390a05400";

fn word(text: &str) -> B256 {
    text.parse().unwrap()
}

fn tx(text: &str) -> TxRef {
    TxRef {
        text: text.into(),
        bytes: word(text).to_vec().into(),
        hint: None,
    }
}

fn lines(export: &str) -> Vec<Line> {
    let lines = export.lines().filter(|line| line.starts_with("{\"kind\""));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The export with more rows, as whole as it was.
fn with(more: Vec<(u8, Vec<u8>, Vec<u8>)>) -> Vec<u8> {
    let mut lines = lines(EXPORT);
    lines.extend(more.into_iter().map(|(kind, name, value)| Line {
        kind,
        name: name.into(),
        value: value.into(),
    }));
    written(EXPORT, lines)
}

/// An export with the head of `export` and other rows.
fn written(export: &str, mut lines: Vec<Line>) -> Vec<u8> {
    lines.sort_by_key(|line| (line.kind, line.name.clone()));
    let mut bytes = format!("{}\n", export.lines().next().unwrap());
    for line in &lines {
        bytes += &format!("{}\n", serde_json::to_string(line).unwrap());
    }
    let foot = Foot {
        rows: lines.len() as u64,
        sha256: B256::from_slice(&Sha256::digest(&bytes)),
    };
    bytes += &format!("{}\n", serde_json::to_string(&foot).unwrap());
    bytes.into_bytes()
}

async fn read(bytes: &[u8]) -> Result<(MemoryStore, Imported), DumpError> {
    let store = MemoryStore::new();
    let imported = dump::read(&store, &mut &*bytes).await?;
    let report = check::check(&store).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
    Ok((store, imported))
}

/// The value of the first row of `kind` whose name begins so.
fn of(kind: u8, name: &str) -> Vec<u8> {
    let lines = lines(EXPORT).into_iter();
    let mut found = lines.filter(|line| line.kind == kind);
    let row = found.find(|line| line.name.starts_with(name.as_bytes()));
    row.unwrap().value.to_vec()
}

fn journal(store: Arc<dyn Store>) -> Journal {
    Journal::new(store, Arc::new(RawKey::parse(KEY).unwrap()))
}

fn claim(deposit: &str, stage: &str) -> (u8, Vec<u8>, Vec<u8>) {
    let leg =
        serde_json::json!({"purpose": "fill", "deposit": deposit, "stage": stage, "nonce": 7});
    let claim =
        serde_json::json!({"failure": null, "legs": [leg], "given_up": [], "settling": true});
    let value = [&[1], claim.to_string().as_bytes()].concat();
    (15, vec![5; 32], value)
}

fn is_conflict(signed: &Result<impl Sized, JournalError>) -> bool {
    matches!(signed, Err(JournalError::Conflict { .. }))
}

#[tokio::test]
async fn what_an_older_version_signed_bars_its_opposite() {
    let (place, files) = (DataDir::new(), DataDir::new());
    let file = files.0.path().join("export");
    fs::write(&file, EXPORT).unwrap();
    let said = place.good(&["store", "import", file.to_str().unwrap()]);
    assert!(said.starts_with("20 rows in "), "{said}");
    let verified = place.good(&["store", "verify"]);
    assert!(verified.contains("20 rows, 0 defects"), "{verified}");

    let both = place.open();
    let journal = journal(both.journal.clone());
    for pair in [FILLED, REFUNDED] {
        ends_once(&journal, pair.map(word)).await;
    }
    used_up(&journal).await;
    let voids = journal.voids(&format!("outcome/{VOID}")).await.unwrap();
    assert_eq!(voids.len(), 1);
}

/// What was signed for the deposit is signed again, and nothing else.
async fn ends_once(journal: &Journal, [order, deposit]: [B256; 2]) {
    let other = B256::repeat_byte(7);
    let opposite = Statement::outcome(order, &[deposit], other);
    let stood = journal.entry(&opposite.key).await.unwrap().unwrap();
    for barred in [
        opposite,
        Statement::outcome(other, &[deposit], other),
        Statement::outcome(order, &[deposit, other], other),
        Statement::recover(deposit, other, other),
    ] {
        let signed = journal.sign(&barred, 9).await;
        assert!(is_conflict(&signed), "{}: {signed:?}", barred.key);
    }
    let same = Statement::outcome(order, &[deposit], stood.digest);
    let signed = journal.sign(&same, 9).await.unwrap();
    let by = signed.recover(&stood.digest).unwrap();
    assert_eq!(by, journal.signer());
}

/// A payment serves one outcome, a transaction's deposits are of one block, and a halted chain stays halted.
async fn used_up(journal: &Journal) {
    let (other, base) = (B256::repeat_byte(7), ChainId::new("base"));
    let paid = Statement::outcome(other, &[other], other);
    let paid = paid.paid_by(&base, &tx(PAYMENT), u32::MAX);
    assert!(is_conflict(&journal.sign(&paid, 9).await));

    let block = Block {
        number: 28,
        hash: other,
        parent: other,
        time: 9,
    };
    let origin = ChainId::new("ethereum");
    let moved = Statement::deposit(&origin, &tx(DEPOSITED), Mode::Slow, &block, other);
    let signed = journal.sign(&moved, 9).await;
    let elsewhere = matches!(signed, Err(JournalError::OtherBlock { .. }));
    assert!(elsewhere, "{signed:?}");
    let halted = Statement::outcome(other, &[other], other).as_of(&base, &block);
    let signed = journal.sign(&halted, 9).await;
    assert!(matches!(signed, Err(JournalError::Halted(_))), "{signed:?}");
}

/// What was executed was signed under a key that named a transaction: another one would burn twice.
#[tokio::test]
async fn a_withdrawal_has_one_verdict_and_one_digest() {
    let (id, other) = (B256::repeat_byte(5), B256::repeat_byte(7));
    let name = format!("withdrawal/ethereum/{id}/executed");
    let value = of(1, &format!("fill/{SUBJECT}"));
    let bytes = with(vec![(1, name.clone().into_bytes(), value)]);
    let (store, _) = read(&bytes).await.unwrap();
    let journal = journal(Arc::new(store));
    assert!(journal.entry(&name).await.unwrap().is_some());
    for verdict in [Verdict::Executed, Verdict::Expired] {
        let chain = ChainId::new("ethereum");
        let again = Statement::withdrawal(&chain, id, verdict, other);
        let signed = journal.sign(&again, 9).await;
        assert!(is_conflict(&signed), "{signed:?}");
    }
}

#[tokio::test]
async fn an_older_export_with_money_under_way_is_refused() {
    let id = || vec![5; 32];
    let slot = b"base\0\0\0\0\0\0\0\0\x07".to_vec();
    for (row, what) in [
        ((14, id(), vec![1]), "open 1"),
        (claim(FILLED[1], "Open"), "claim 1"),
        (claim(FILLED[1], "Confirmed"), "claim 1"),
        // Paid, and nothing signed says so: whoever deposited it could take it back.
        (claim(PAYMENT, "Final"), "claim 1"),
        ((16, slot, vec![1]), "lane 1"),
        ((17, b"base\0aa\0".to_vec(), vec![1]), "reservation 1"),
        ((19, id(), vec![1]), "settlement 1"),
        ((22, b"ui\0".to_vec(), vec![1]), "delivery 1"),
    ] {
        let refused = read(&with(vec![row])).await.err().unwrap();
        let text = refused.to_string();
        assert!(matches!(refused, DumpError::Unfinished(_)), "{text}");
        assert!(text.contains(&format!("({what})")), "{text}");
        assert!(text.contains("finish this with the version"), "{text}");
    }
    let refused = read(&with(vec![(28, id(), vec![1])])).await.err().unwrap();
    assert!(matches!(refused, DumpError::Row(_)), "{refused}");
}

#[tokio::test]
async fn of_an_older_export_the_rest_is_left_out_and_counted() {
    let bytes = with(vec![
        (8, vec![5; 32], vec![1]),
        (8, vec![6; 32], vec![1]),
        (11, b"base".to_vec(), vec![1]),
        claim(FILLED[1], "Final"),
        (16, b"base".to_vec(), vec![1]),
    ]);
    let (_, imported) = read(&bytes).await.unwrap();
    assert_eq!(
        imported.to_string(),
        "20 rows (left out: request 2, cursor 1, claim 1, lane 1)"
    );
    let (_, failed) = read(&with(vec![claim(PAYMENT, "Failed")])).await.unwrap();
    assert_eq!(failed.left_out, [("claim", 1)]);
}

#[tokio::test]
async fn the_two_names_of_an_outcome_are_one() {
    let both = (
        1,
        format!("refund/{SUBJECT}"),
        of(1, &format!("fill/{SUBJECT}")),
    );
    let refused = read(&with(vec![(both.0, both.1.into_bytes(), both.2)])).await;
    assert!(matches!(refused, Err(DumpError::Opposites)));

    let first = [format!("refund/{VOID}").as_bytes(), &[0; 5]].concat();
    let again = with(vec![(6, first, of(6, &format!("fill/{VOID}")))]);
    let (store, imported) = read(&again).await.unwrap();
    assert_eq!(imported.rows, 21);
    let journal = journal(Arc::new(store));
    let voids = journal.voids(&format!("outcome/{VOID}")).await.unwrap();
    assert_eq!(voids.len(), 2);
}

#[tokio::test]
async fn a_payment_that_was_under_way_still_is_after_the_import() {
    let (store, imported) = read(UNDER_WAY.as_bytes()).await.unwrap();
    assert_eq!(imported.to_string(), "36 rows");
    let attempts = store.scan(attempt::range(DESTINATION, 9)).await.unwrap();
    let [(key, value)] = &attempts[..] else {
        panic!("{attempts:?}")
    };
    let (id, attempt) = (
        attempt::id(DESTINATION, key).unwrap(),
        Attempt::decode(value).unwrap(),
    );
    assert_eq!(attempt.owner, Owner::Request(word(FILLING)));
    let sent: Vec<_> = attempt.signed.iter().map(|one| &one.id[..]).collect();
    assert_eq!(sent, [SENT]);
    let claim = store.read(&rows::claim::key(&word(FILLING))).await.unwrap();
    let claim = Claim::decode(&claim.unwrap()).unwrap();
    let legs: Vec<_> = claim.legs.iter().map(|leg| &leg.attempt).collect();
    assert_eq!(legs, [&id]);
    // What it holds nobody else takes, and the account goes on behind it.
    for resource in &attempt.resources {
        let holder = store.read(&attempt::resource(DESTINATION, resource)).await;
        assert_eq!(attempt::held_by(&holder.unwrap().unwrap()).unwrap(), id);
    }
    assert_eq!(attempt.resources.len(), 1);
    let account = store.read(&account::key(DESTINATION)).await.unwrap();
    let account = Account::decode(&account.unwrap()).unwrap();
    let known = CarriedAccount {
        next: 2,
        skipped: Vec::new(),
    };
    assert_eq!(account.own, known.own());
}

#[tokio::test]
async fn a_payment_whose_nonce_nobody_knows_is_not_imported() {
    let mut lines = lines(UNDER_WAY);
    for line in lines.iter_mut().filter(|line| line.kind == 15) {
        let text = String::from_utf8(line.value.to_vec()).unwrap();
        assert!(text.contains("\"nonce\""), "{text}");
        line.value = text.replace("\"nonce\"", "\"once\"").into_bytes().into();
    }
    let refused = read(&written(UNDER_WAY, lines)).await.err().unwrap();
    assert!(matches!(refused, DumpError::Row(_)), "{refused}");
}
