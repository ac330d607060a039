//! Every history of the guide's matrix (src/guide/conformance.md), for every family that reads chains: three providers
//! over HTTP of which some lie or are lost, the family's own reader, the quorum, and the oracle with its journal. A row
//! is written once, in the words of no family; a family fills its column with a [`Script`]. A cell is green by what was
//! signed, or by the code with which nothing was, and has a part in which the same, with nothing wrong, is signed.
//!
//! `cargo test --test conformance -- --nocapture` prints the matrix. `INTENTD_FAMILY=bitcoin` selects a column,
//! `INTENTD_ROW=reorg` the rows whose case contains that text.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[path = "../../vm/tests/families/bitcoin/allocator.rs"]
mod allocator;
mod bitcoin;
mod cells;
mod deal;
mod ethereum;
mod family;
mod ledger;
mod matrix;
mod node;
#[path = "../../vm/tests/families/server.rs"]
mod server;
mod solana;
mod table;
mod tls;
mod verdict;
mod withdrawal;
mod world;

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Mutex, time::Instant};

use cells::Stop;
use family::Script;
use matrix::{Cell, printed};
use table::{ROWS, Row};

/// The columns.
const FAMILIES: &[&dyn Script] = &[&ethereum::Ethereum, &bitcoin::Bitcoin, &solana::Solana];
/// Cells at a time: most of them wait most of the time.
const AT_ONCE: usize = 12;

/// A variable of the environment.
#[allow(clippy::disallowed_methods)]
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Plays one cell; a panic is a result, too.
fn played(runtime: &tokio::runtime::Runtime, row: &Row, script: &'static dyn Script) -> Cell {
    let begun = Instant::now();
    let play = AssertUnwindSafe(|| runtime.handle().block_on((row.play)(script)));
    let result = match std::panic::catch_unwind(play) {
        Ok(Ok(())) => return Cell::Green(begun.elapsed()),
        Ok(Err(stop)) => stop,
        Err(_) => Stop::Wrong("a panic".into()),
    };
    match result {
        Stop::NotApplicable(why) => Cell::NotApplicable(why),
        Stop::Wrong(what) => Cell::Wrong(what),
    }
}

/// Plays cells, given by row and column, several at a time.
fn all(wanted: Vec<(usize, usize)>) -> BTreeMap<(usize, usize), Cell> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (wanted, found) = (Mutex::new(wanted.into_iter()), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let Some((row, column)) = wanted.lock().unwrap().next() else {
                return;
            };
            let cell = played(&runtime, &ROWS[row], FAMILIES[column]);
            found.lock().unwrap().insert((row, column), cell);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn every_family_survives_every_row_that_applies() {
    let (row, family) = (set("INTENTD_ROW"), set("INTENTD_FAMILY"));
    let is_row = |at: &usize| {
        let case = ROWS[*at].case;
        row.as_ref().is_none_or(|part| case.contains(part))
    };
    let is_family = |at: &usize| {
        let column = FAMILIES[*at].column();
        family.as_ref().is_none_or(|wanted| column == wanted)
    };
    let columns: Vec<_> = (0..FAMILIES.len()).filter(is_family).collect();
    let wanted = (0..ROWS.len()).filter(is_row);
    let wanted: Vec<_> = wanted
        .flat_map(|row| columns.iter().map(move |column| (row, *column)))
        .collect();
    assert!(!wanted.is_empty(), "nothing is called so");
    let cells = all(wanted);
    let text = printed(&cells);
    println!("{text}");
    for ((row, column), cell) in &cells {
        let (row, column) = (&ROWS[*row], FAMILIES[*column].column());
        match cell {
            Cell::Wrong(what) => println!("WRONG {}, {}, {column}: {what}", row.group, row.case),
            Cell::Green(time) if time.as_secs() >= 10 => {
                println!(
                    "{} s: {}, {}, {column}",
                    time.as_secs(),
                    row.group,
                    row.case
                );
            }
            _ => {}
        }
    }
    let wrong = |cell: &&Cell| matches!(cell, Cell::Wrong(_));
    assert_eq!(cells.values().filter(wrong).count(), 0, "wrong cells");
    if row.is_none() && family.is_none() {
        let page = include_str!("../../src/guide/conformance.md");
        assert!(
            page.contains(&text),
            "src/guide/conformance.md has another matrix"
        );
    }
}

#[test]
fn every_family_that_reads_chains_has_a_column() {
    let columns = FAMILIES.iter().map(|script| script.family().name);
    let mut columns: Vec<_> = columns.collect();
    let readers = vm::FAMILIES.iter().filter(|family| family.open.is_some());
    let mut readers: Vec<_> = readers.map(|family| family.name).collect();
    columns.sort_unstable();
    readers.sort_unstable();
    assert_eq!(columns, readers);
}

#[test]
fn page_has_the_rows_of_the_table() {
    let page = matrix::part(include_str!("../../src/guide/conformance.md"));
    let shown: Vec<_> = matrix::rows_of(page).collect();
    let known: Vec<_> = ROWS.iter().map(|row| (row.case, row.must)).collect();
    assert_eq!(shown, known);
    let mut groups: Vec<_> = ROWS.iter().map(|row| row.group).collect();
    groups.dedup();
    let titles = page.lines().filter_map(|line| line.strip_prefix("### "));
    assert_eq!(titles.collect::<Vec<_>>(), groups);
}
