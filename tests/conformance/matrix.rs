//! The matrix as text: a Markdown table for each group, and why cells do not apply.

use std::{collections::BTreeMap, time::Duration};

use crate::{FAMILIES, table::ROWS};

/// What came of a row for a family.
pub enum Cell {
    /// It is as it must be, after so long.
    Green(Duration),
    Wrong(String),
    /// The row does not apply, because of this.
    NotApplicable(&'static str),
}

/// The width of the first two columns.
const WIDTHS: [usize; 2] = [42, 36];

fn line(first: [&str; 2], rest: &[&str]) -> String {
    let ([case, must], [wide, less]) = (first, WIDTHS);
    let mut line = format!("| {case:<wide$} | {must:<less$} |");
    for cell in rest {
        line += &format!(" {cell:<8} |");
    }
    line + "\n"
}

/// The matrix. Cells that were not played are empty.
pub fn printed(cells: &BTreeMap<(usize, usize), Cell>) -> String {
    let columns: Vec<_> = FAMILIES.iter().map(|family| family.column()).collect();
    let ruler = vec!["---"; columns.len()];
    let (mut text, mut group) = (String::new(), "");
    for (at, row) in ROWS.iter().enumerate() {
        if row.group != group {
            group = row.group;
            text += &format!("\n### {group}\n\n");
            text += &line(["Case", "Must"], &columns);
            text += &line(["---", "---"], &ruler);
        }
        let marks = (0..columns.len()).map(|column| match cells.get(&(at, column)) {
            Some(Cell::Green(_)) => "ok",
            Some(Cell::Wrong(_)) => "WRONG",
            Some(Cell::NotApplicable(_)) => "n/a",
            None => "",
        });
        text += &line([row.case, row.must], &marks.collect::<Vec<_>>());
    }
    text += "\n## Cells that do not apply\n\n";
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for ((row, column), cell) in cells {
        if let Cell::NotApplicable(why) = cell {
            let rows = reasons.entry((columns[*column], *why)).or_default();
            rows.push(ROWS[*row].case);
        }
    }
    for ((column, why), rows) in reasons {
        text += &format!("- {column}: {why} ({}).\n", rows.join("; "));
    }
    text
}

/// The part of a page that shows the rows.
pub fn part(page: &str) -> &str {
    let (_, part) = page.split_once("\n## The matrix\n").unwrap();
    part.split("\n## ").next().unwrap()
}

/// Case and rule of each row that a page shows.
pub fn rows_of(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = page.lines().filter(|line| line.starts_with("| "));
    lines.filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let row = (cells.next()?, cells.next()?);
        (row.0 != "Case" && row.0 != "---").then_some(row)
    })
}
