//! The README's first command: the whole of it on one machine, then left running for the curious.

mod abroad;
mod across;
mod act;
pub mod api;
mod evidence;
pub mod life;
pub mod oracles;
pub mod page;
mod paste;
mod story;

use std::sync::Arc;

use anyhow::Result;
use devnet::world::{Abroad, Devnet, Options};
use tokio::signal::unix::{Signal, SignalKind, signal};

use evidence::Proof;
use oracles::{Oracles, Setup};
use page::{Ledger, Page};
use paste::Paste;
use story::Story;

/// Runs the story; with `once` shows then what its statements rest on, without it stays up until Ctrl-C or SIGTERM.
pub async fn run(once: bool) -> Result<()> {
    let page = Page::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let directory = tempfile::Builder::new()
        .prefix("intentd-devnet-")
        .tempdir()?;
    let Some((world, sites)) = start(&page, &mut terminate).await? else {
        return Ok(());
    };
    let mut files = world.files();
    let (mut more, mut blocks) = (Vec::new(), Vec::new());
    for site in &sites {
        site.tell(&mut files)?;
        site.trade(&mut files)?;
        for account in [site.solver_account(&world.solver)?, site.account("user")?] {
            site.endow(&account).await?;
        }
        blocks.push(site.run());
    }
    let (name, key) = Abroad::solver_key();
    more.push((name.to_owned(), key));
    let setup = Setup { files, more };
    let mut oracles = Oracles::start(&world, &setup, directory.path()).await?;
    introduce(&page, (&world, &sites), &oracles)?;
    let told = tokio::select! {
        told = tell((&world, &sites), &oracles, &page) => Some(told?),
        _ = tokio::signal::ctrl_c() => None,
        _ = terminate.recv() => None,
    };
    let (proved, urls) = (told.is_some() && once, oracles.urls.clone());
    if let (Some(told), false) = (told, once) {
        let paste = Paste {
            page: &page,
            world: &world,
            abroad: &sites,
            oracles: &oracles,
            directory: directory.path(),
        };
        paste.print(&told)?;
        tokio::select! {
            end = oracles.ended() => end?,
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        page.line("\nstopping")?;
    }
    oracles.stop().await?;
    if !proved {
        return Ok(());
    }
    let proof = Proof {
        page: &page,
        world: &world,
        setup: &setup,
        urls: &urls,
        directory: directory.path(),
    };
    proof.show(&mut terminate).await
}

/// The world, and the chains abroad; `None` where somebody ends it before they are up.
async fn start(page: &Page, terminate: &mut Signal) -> Result<Option<(Devnet, Vec<Arc<Abroad>>)>> {
    let options = Options {
        block_time: Some(1),
        ..Options::default()
    };
    page.line("starting three chains, compiling and deploying contracts ...")?;
    let world = Devnet::with(options).await?;
    tokio::select! {
        sites = abroad::start(page) => Ok(Some((world, sites?))),
        _ = tokio::signal::ctrl_c() => Ok(None),
        _ = terminate.recv() => Ok(None),
    }
}

async fn tell(
    (world, abroad): (&Devnet, &[Arc<Abroad>]),
    oracles: &Oracles,
    page: &Page,
) -> Result<story::Recap> {
    let mut ledger = Ledger::new(world);
    for site in [&world.origin, &world.destination] {
        ledger.watch(site, "user", world.user.address()).await?;
        ledger.watch(site, "solver", world.solver.address()).await?;
    }
    let depository = world.origin.depository;
    ledger
        .watch(&world.origin, "depository", depository)
        .await?;
    let solver = world.destination.alias(world.solver.address())?;
    ledger.watch_hub("solver", solver).await?;
    let mut story = Story {
        world,
        abroad,
        oracles,
        page,
        ledger,
        acts: 0,
    };
    story.tell().await
}

fn introduce(
    page: &Page,
    (world, abroad): (&Devnet, &[Arc<Abroad>]),
    oracles: &Oracles,
) -> Result<()> {
    page.heading("Chains")?;
    for site in [&world.origin, &world.destination] {
        page.fact(
            site.id,
            format!("{} (chain id {})", site.node.url, site.node.chain_id),
        )?;
        page.fact("  depository", site.depository)?;
        page.fact("  fill router", site.router)?;
        page.fact("  USD token", site.token)?;
    }
    let hub = &world.hub;
    page.fact(
        "hub",
        format!("{} (chain id {})", hub.node.url, hub.node.chain_id),
    )?;
    page.fact("  balances", hub.hub)?;
    page.fact("  oracle contract", hub.oracle)?;
    for site in abroad {
        let number = site.number();
        page.fact(
            site.id(),
            format!("{} ({}, {number} to the API)", site.url(), site.names().0),
        )?;
    }
    page.heading("People")?;
    page.fact("user", world.user.address())?;
    page.fact("solver", world.solver.address())?;
    let alias = world.destination.alias(world.solver.address())?;
    page.fact("  at the hub", alias)?;
    for site in abroad {
        let (name, ..) = site.names();
        page.fact(&format!("  on {name}"), site.solver_account(&world.solver)?)?;
    }
    page.fact("allocator", world.allocator.address())?;
    page.heading("Oracles")?;
    for (oracle, url) in world.oracles.iter().zip(&oracles.urls) {
        page.fact(&oracle.name, format!("{url} signs as {}", oracle.address()))?;
    }
    page.heading("Integrator API")?;
    page.fact("baseApiUrl", &oracles.api.url)?;
    Ok(())
}
