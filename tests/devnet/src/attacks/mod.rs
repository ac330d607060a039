//! What a stranger without a key tries, on real nodes, each beside an honest user's order: what came of
//! it is read from balances, the hub and the operator's lists, before and after.

mod arena;
mod calls;
mod claims;
mod deposits;
mod judge;
mod life;
mod market;
mod providers;
mod said;
mod stranger;
mod submitted;
mod table;
mod wealth;

use std::{path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use tokio::signal::unix::{SignalKind, signal};

use crate::demo::{oracles::Oracles, page::Page};
use arena::Arena;
use judge::Judge;
use table::{ATTACKS, Attack};

/// Tries the attacks of these names, or all; whether none gained anything or changed anybody's outcome.
pub async fn run(names: &[&str]) -> Result<bool> {
    let attacks = chosen(names)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let directory = tempfile::Builder::new()
        .prefix("intentd-devnet-")
        .tempdir()?;
    let page = Page::new();
    tokio::select! {
        clean = all(&attacks, &page, directory.path()) => clean,
        _ = tokio::signal::ctrl_c() => Ok(false),
        _ = terminate.recv() => Ok(false),
    }
}

fn chosen(names: &[&str]) -> Result<Vec<&'static Attack>> {
    if names.is_empty() {
        return Ok(ATTACKS.iter().collect());
    }
    let one = |name: &&str| {
        let known = || ATTACKS.iter().map(|attack| attack.name);
        let found = ATTACKS.iter().find(|attack| attack.name == *name);
        found.with_context(|| {
            let known: Vec<_> = known().collect();
            format!("no attack {name}; there are {}", known.join(", "))
        })
    };
    names.iter().map(one).collect()
}

async fn all(attacks: &[&Attack], page: &Page, directory: &Path) -> Result<bool> {
    page.line("starting three chains, compiling and deploying contracts ...")?;
    let (arena, oracles) = Arena::start(directory).await?;
    let fought = fight(&arena, attacks, page).await;
    drop(arena);
    let stopped = Oracles::stop(oracles).await;
    let clean = fought?;
    stopped?;
    Ok(clean)
}

async fn fight(arena: &std::sync::Arc<Arena>, attacks: &[&Attack], page: &Page) -> Result<bool> {
    let begun = Instant::now();
    let judge = Judge::alone(arena, attacks, page).await?;
    let mut lost = 0;
    for attack in attacks {
        let verdict = judge.attack(arena, attack).await;
        lost += usize::from(!verdict.is_nothing());
        page.line(&format!("\n{:<20} {}", attack.name, attack.tried))?;
        for line in &verdict.lines {
            page.line(&format!("{:<20} {line}", ""))?;
        }
    }
    ensure!(!attacks.is_empty(), "nothing was tried");
    page.line(&format!(
        "\n{} attempts in {} s: {}",
        attacks.len(),
        begun.elapsed().as_secs(),
        match lost {
            0 => "none gained anything, every honest order ended as without them".to_owned(),
            lost => format!("{lost} gained something, or changed what became of somebody else"),
        }
    ))?;
    Ok(lost == 0)
}
