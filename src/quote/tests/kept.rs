//! What a quote takes of the store: every row that its commit writes, with names and kinds.

use alloy::primitives::keccak256;
use serde_json::{Value, json};

use super::{
    Code,
    fixtures::{Fixture, NATIVE, OTHER, TOKEN},
};
use crate::store::{
    Kind,
    rows::{LARGE, ORDER, QUOTE, large::Large},
    walk::{Stored, Walk},
};

/// Bytes that a quote without a deposit may take.
const MOST: usize = 2 << 10;

/// The rows of one quote, by kind; `None` where it is refused.
async fn rows(changes: Value) -> Option<Vec<Stored>> {
    let fixture = Fixture::default();
    if let Err(refused) = fixture.quote(changes).await {
        assert_eq!(refused.code, Code::InvalidExtraTxs, "{refused}");
        return None;
    }
    let store = fixture.with(|world| world.store.clone());
    let (mut walk, mut all) = (Walk::new(&*store), Vec::new());
    loop {
        let page = walk.page().await.unwrap();
        if page.is_empty() {
            return Some(all);
        }
        all.extend(page);
    }
}

fn kinds(rows: &[Stored]) -> Vec<Kind> {
    rows.iter().map(|(key, _)| key.kind).collect()
}

fn bytes(rows: &[Stored]) -> usize {
    let row = |(key, value): &Stored| size_of::<Kind>() + key.name.len() + value.len();
    rows.iter().map(row).sum()
}

/// `calls` calls with so many bytes of data together, in which nothing repeats.
fn txs(calls: usize, bytes: usize) -> Value {
    let words = (0..bytes.div_ceil(32)).map(|at| keccak256(at.to_be_bytes()));
    let data: Vec<u8> = words.flat_map(|word| word.0).take(bytes).collect();
    let parts = data.chunks(bytes.div_ceil(calls).max(1));
    let txs = parts.map(|part| json!({"to": OTHER, "data": alloy::hex::encode_prefixed(part)}));
    json!({"txs": txs.collect::<Vec<_>>()})
}

#[tokio::test]
async fn a_usual_quote_takes_two_kilobytes_at_most_in_two_rows() {
    for changes in [
        json!({}),
        json!({"originCurrency": NATIVE, "destinationCurrency": NATIVE, "amount": super::ETH}),
        json!({"destinationCurrency": TOKEN}),
        json!({"authorizationList": [super::authorization(|_| ())]}),
        txs(1, 100),
    ] {
        let asked = changes.to_string();
        let rows = rows(changes).await.unwrap();
        assert_eq!(kinds(&rows), [ORDER, QUOTE], "{asked}");
        assert!(bytes(&rows) <= MOST, "{} bytes: {asked}", bytes(&rows));
    }
}

/// A quote has two rows within two kilobytes, or a third one that has it counted and forgotten early.
#[tokio::test]
async fn what_is_not_counted_takes_two_kilobytes_at_most_whatever_its_calls_are() {
    let (mut small, mut large) = (Vec::new(), 0);
    for data in (16..2 * MOST).step_by(24) {
        let rows = rows(txs(1, data)).await.unwrap();
        if kinds(&rows) == [ORDER, QUOTE] {
            small.push(bytes(&rows));
        } else {
            assert_eq!(kinds(&rows), [ORDER, QUOTE, LARGE], "{data}");
            large += 1;
        }
    }
    let most = small.iter().max().copied().unwrap_or_default();
    assert!(most <= MOST, "{most} bytes");
    assert!(small.len() > 5 && large > 5, "{} {large}", small.len());
    // It has all of its room.
    assert!(most > MOST - 200, "{most} bytes");
}

/// Whoever has no key gets no larger one: 50 calls, with as much data as a transaction has.
#[tokio::test]
async fn the_largest_quote_is_counted_with_all_of_its_bytes() {
    let mut largest = None;
    for kilobytes in (64..=128).rev() {
        largest = rows(txs(50, kilobytes << 10)).await;
        if largest.is_some() {
            break;
        }
    }
    let kept = largest.unwrap();
    assert_eq!(kinds(&kept), [ORDER, QUOTE, LARGE]);
    let (row, counted) = (&kept[1].1, Large::decode(&kept[2].1).unwrap());
    assert_eq!((counted.bytes, counted.keyed), (row.len() as u64, false));
    // What is not counted are names, and the rows that lead to it.
    assert!(bytes(&kept) - row.len() <= 256, "{}", bytes(&kept));
    assert!(row.len() > 20 * MOST, "{} bytes", row.len());
    assert!(rows(txs(51, 51 * 32)).await.is_none());
}
