//! The scene's summary with what leads to it, and its quote.

use crate::{
    request::{
        fact::{Facts, Standing},
        scene,
        summary::{Summary, VERSION},
    },
    store::{
        Key,
        rows::{self, large, order, quote, summary, version},
        summaries,
    },
};

fn summarized() -> Summary {
    Summary::of(&scene::request(1), &paid())
}

fn paid() -> Facts {
    Facts {
        version: 1,
        deposits: vec![scene::deposit(1, Standing::Final)],
        ..Facts::default()
    }
}

/// The summary of the request.
pub fn summary() -> Vec<u8> {
    summary::encode(&summarized()).unwrap()
}

/// A row that leads to it.
pub fn leading() -> Key {
    let rows = rows::listed::rows(&summarized()).unwrap();
    rows.into_keys().next().unwrap()
}

pub(super) fn listed() -> Vec<(Key, Vec<u8>)> {
    let found = summarized();
    let own = [
        (summary::key(&found.id), summary()),
        (version::key(summaries::MADE), version::encode(VERSION)),
    ];
    let rows = rows::listed::rows(&found).unwrap();
    let sent = rows::listed::sendings(&found, &paid());
    own.into_iter().chain(rows).chain(sent).collect()
}

/// A quote that nobody has acted on.
pub(super) fn quoted() -> Vec<(Key, Vec<u8>)> {
    let request = scene::request(3);
    let large = large::Large {
        bytes: 5_000,
        by: 7,
        keyed: false,
        network: "origin".into(),
        valid_until: 1_700_000_060,
    };
    vec![
        (quote::key(&request.id), quote::encode(&request).unwrap()),
        (order::key(&request.order_id), order::encode(&request.id)),
        (large::key(&request.id), large.encode().unwrap()),
    ]
}
