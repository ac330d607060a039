//! How many attestations a second, how long each takes, and how often a provider is asked for one.
//!
//! `cargo bench --bench attestations` starts a chain node of its own (see [`node`]), the real daemon
//! as a process of its own with a fresh data directory, and clients that keep their connections and
//! ask for a different transaction each time, unless the row says otherwise. One table row is one claim over one setting:
//!
//! - **family**: of which chains the claim is. Each family has a daemon of its own.
//! - **providers**: 1, or 3 of which 2 must agree; **delay**: what the node adds to every request.
//! - **header**: `known` where the transaction's block was read before, `new` where every single
//!   transaction lies in an old block of its own; `again` where the same deposit is asked about again and
//!   again while its block is watched, `past` where its block is watched no longer, `reads` where a build still
//!   reads the chain for that 45 s later; `-` for a family whose reader keeps no block, so that each transaction
//!   has its block read.
//! - **round trips**: the median in units of what one plain request to the node takes, so that the
//!   figure does not depend on the machine; **posts**: requests that one provider got for one
//!   attestation, without the background's reading of heads but for a few a second (a fill rests on
//!   two chains, which are asked at the same time).
//! - **CPU**: what the daemon's own process used for one attestation, all its threads; **rest**:
//!   what node and clients used for it, which share the machine's cores with the daemon.
//!
//! `--baseline <binary>` measures another build of the daemon beside: each row is of both, one right after the
//! other, and a third line has each figure of the daemon divided by the baseline's.
//!
//! Nothing here is asserted but that every answer is a signed attestation. Figures of a busy machine
//! are the machine's: compare columns of one run.

#![expect(
    clippy::print_stdout,
    clippy::float_arithmetic,
    reason = "a table for people"
)]

mod bitcoin;
mod daemon;
mod gap;
mod load;
mod node;
mod prepared;
mod solana;
mod world;

use std::{
    mem::take,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::{Parser, ValueEnum};
use serde_json::{Value, json};

use self::{
    daemon::Daemon,
    load::{Load, Measured},
    node::Node,
    prepared::Prepared,
    world::World,
};

/// How often the same request is repeated, for each transaction of another row.
const AGAIN: usize = 8;
/// The longest wait until a block is watched no longer.
const WATCHED: Duration = Duration::from_secs(45);
/// The pause between two checks of that.
const LOOK: Duration = Duration::from_millis(500);

/// Measures attestations per second, latency and round trips.
#[derive(Debug, Parser)]
struct Arguments {
    /// Given by cargo; without it (as under `cargo test --benches`) nothing is measured.
    #[arg(long, hide = true)]
    bench: bool,
    /// Connections that ask at the same time.
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// How long a row is measured.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Different transactions of each kind; a row ends when it has used them up.
    #[arg(long, default_value_t = 30_000)]
    transactions: u32,
    /// Only rows of that family.
    #[arg(long)]
    family: Option<Family>,
    /// Only rows with that many providers.
    #[arg(long)]
    providers: Option<usize>,
    /// Only rows with that delay, in milliseconds.
    #[arg(long)]
    delay: Option<u64>,
    /// Only how long everything else waits while a transaction of `--events` is attested: see [`gap`].
    #[arg(long, conflicts_with = "family")]
    gap: bool,
    /// Events of that transaction.
    #[arg(long, default_value_t = 100_000)]
    events: u32,
    /// Another build of the daemon to measure. One that cannot read all families needs `--family`.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_intentd"))]
    daemon: PathBuf,
    /// A build to compare it with.
    #[arg(long)]
    baseline: Option<PathBuf>,
    /// Prints the daemon's process id and waits before each row, for a profiler to be attached.
    #[arg(long, hide = true)]
    pause: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
enum Family {
    Ethereum,
    Bitcoin,
    Solana,
}

/// What of a family is measured.
struct Subject {
    family: Family,
    /// Entries of a chains file. A node of the first is asked `probe`.
    chains: Value,
    probe: &'static str,
    node: Node,
    claims: Vec<Claim>,
}

/// One kind of claim: its columns, and its requests.
struct Claim {
    name: &'static str,
    header: &'static str,
    route: &'static str,
    bodies: Vec<Bytes>,
    /// Waits until the statement's block is watched no longer, then measures.
    past: bool,
}

/// A build of the daemon.
struct Build {
    name: &'static str,
    daemon: Daemon,
}

/// What one row says of one build.
struct Measurements {
    measured: Measured,
    /// Of all providers together, for one attestation.
    posts: f64,
    /// Microseconds of the daemon and of all else, for one attestation.
    cpu: f64,
    rest: f64,
    /// In MiB.
    resident: u64,
    /// Whether the chain was still read for a claim that had to be past.
    still_reads: bool,
}

/// What the columns beside the measured ones say.
struct Setting {
    providers: usize,
    delay: Duration,
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.bench {
        return Ok(());
    }
    if arguments.gap {
        let world = Arc::new(World::new(1)?.with_huge(arguments.events)?);
        let node = Node::start(world.clone()).await?;
        return gap::rows(&arguments.daemon, &world, &node).await;
    }
    head(&arguments);
    for family in Family::value_variants() {
        if arguments.family.is_none_or(|only| only == *family) {
            let subject = Subject::new(*family, arguments.transactions).await?;
            settings(&arguments, &subject).await?;
        }
    }
    Ok(())
}

impl Subject {
    async fn new(family: Family, transactions: u32) -> Result<Self> {
        match family {
            Family::Ethereum => Self::ethereum(transactions).await,
            Family::Bitcoin => {
                let chain = bitcoin::chain(transactions)?;
                Self::prepared(family, bitcoin::PROBE, chain).await
            }
            Family::Solana => {
                let chain = solana::chain(transactions);
                Self::prepared(family, solana::PROBE, chain).await
            }
        }
    }

    async fn ethereum(transactions: u32) -> Result<Self> {
        let mut world = World::new(transactions)?;
        let claim = |name, header, route, bodies: &mut Vec<Bytes>| Claim {
            name,
            header,
            route,
            bodies: take(bodies),
            past: false,
        };
        let repeat = |header, bodies: &[Bytes], past| Claim {
            name: "deposit",
            header,
            route: load::DEPOSIT,
            bodies: vec![bodies[0].clone(); bodies.len() * AGAIN],
            past,
        };
        let again = repeat("again", &world.deposits, false);
        let past = repeat("past", &world.old_deposits, true);
        let claims = vec![
            claim("deposit", "known", load::DEPOSIT, &mut world.deposits),
            claim("deposit", "new", load::DEPOSIT, &mut world.old_deposits),
            claim("fill", "known", load::FILL, &mut world.fills),
            again,
            past,
        ];
        Ok(Self {
            family: Family::Ethereum,
            chains: world::chains(),
            probe: world::PROBE,
            node: Node::start(Arc::new(world)).await?,
            claims,
        })
    }

    async fn prepared(family: Family, probe: &'static str, mut chain: Prepared) -> Result<Self> {
        let claim = Claim {
            name: "deposit",
            header: "-",
            route: load::DEPOSIT,
            bodies: take(&mut chain.deposits),
            past: false,
        };
        Ok(Self {
            family,
            chains: json!([chain.entry]),
            probe,
            node: Node::start(chain).await?,
            claims: vec![claim],
        })
    }
}

async fn settings(arguments: &Arguments, subject: &Subject) -> Result<()> {
    for providers in [1, 3] {
        for delay in [0, 20] {
            let wanted = arguments.providers.is_none_or(|only| only == providers)
                && arguments.delay.is_none_or(|only| only == delay);
            let setting = Setting {
                providers,
                delay: Duration::from_millis(delay),
            };
            if wanted {
                rows(arguments, subject, &setting).await?;
            }
        }
    }
    Ok(())
}

async fn rows(arguments: &Arguments, subject: &Subject, setting: &Setting) -> Result<()> {
    let Subject { chains, node, .. } = subject;
    let urls = |chain: &str| node.urls(chain, setting.delay, setting.providers);
    let mut builds = Vec::new();
    let baseline = arguments.baseline.iter();
    let baseline = baseline.map(|binary| ("baseline", binary));
    for (name, binary) in baseline.chain([("daemon", &arguments.daemon)]) {
        let daemon = Daemon::start(binary, chains, urls).await?;
        builds.push(Build { name, daemon });
    }
    let first = chains[0]["id"].as_str().context("no chain")?;
    let round_trip = load::round_trip(&urls(first)[0], subject.probe).await?;
    for claim in &subject.claims {
        let mut all = Vec::new();
        for Build { name, daemon } in &builds {
            let it = measure(arguments, node, claim, daemon).await?;
            let (family, of) = (subject.family, claim.name);
            let header = match it.still_reads {
                true => "reads",
                false => claim.header,
            };
            print!("{family:<8} {of:<8} {header:<7} ");
            row(setting, &it, round_trip, name);
            all.push(it);
        }
        if let [baseline, daemon] = &all[..] {
            ratios(baseline, daemon);
        }
    }
    Ok(())
}

/// Measures one claim with one build.
async fn measure(
    arguments: &Arguments,
    node: &Node,
    claim: &Claim,
    daemon: &Daemon,
) -> Result<Measurements> {
    let load = Load {
        address: daemon.address,
        connections: arguments.connections,
        limit: Duration::from_secs(arguments.seconds),
    };
    // The first ones open connections and read the headers of the newest blocks.
    let (first, rest) = claim
        .bodies
        .split_at(arguments.connections.min(claim.bodies.len()));
    load.run(claim.route, first).await?;
    let still_reads = claim.past && !past(&load, node, claim.route, &first[..1]).await?;
    if arguments.pause {
        let (name, header) = (claim.name, claim.header);
        println!("# next: {name} {header}, process {}", daemon.id());
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let (posts, used, own) = (node.posts(), daemon.used()?, daemon::used("self")?);
    let measured = load.run(claim.route, rest).await?;
    let count = measured.count() as f64;
    let each = |used: Duration| used.as_secs_f64() * 1e6 / count;
    Ok(Measurements {
        posts: (node.posts() - posts) as f64 / count,
        cpu: each(daemon.used()? - used),
        rest: each(daemon::used("self")? - own),
        resident: daemon.resident()? >> 20,
        still_reads,
        measured,
    })
}

/// Repeats a claim until it is answered without a read of the chain; `false` for a build that still reads it after
/// [`WATCHED`].
async fn past(load: &Load, node: &Node, route: &'static str, claim: &[Bytes]) -> Result<bool> {
    let begun = Instant::now();
    loop {
        let posts = node.posts();
        load.run(route, claim).await?;
        if node.posts() == posts {
            return Ok(true);
        }
        if begun.elapsed() > WATCHED {
            return Ok(false);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn head(arguments: &Arguments) {
    let (connections, seconds) = (arguments.connections, arguments.seconds);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{connections} connections, {seconds} s a row, {cores} cores for all");
    println!(
        "family   claim    header  providers delay ms      per s   p50 ms   p99 ms  round trips  posts  CPU us  rest us  RSS MiB"
    );
}

fn row(setting: &Setting, it: &Measurements, round_trip: Duration, build: &str) {
    let Measurements {
        measured,
        posts,
        cpu,
        rest,
        resident,
        ..
    } = it;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let middle = measured.quantile(0.5);
    println!(
        "{:>9} {:>8} {:>10.0} {:>8.2} {:>8.2} {:>12.2} {:>6.2} {cpu:>7.0} {rest:>8.0} {resident:>8} {build}",
        setting.providers,
        setting.delay.as_millis(),
        measured.rate(),
        milliseconds(middle),
        milliseconds(measured.quantile(0.99)),
        middle.as_secs_f64() / round_trip.as_secs_f64(),
        posts / setting.providers as f64,
    );
}

/// Prints each figure of the daemon divided by the baseline's.
fn ratios(baseline: &Measurements, daemon: &Measurements) {
    let ratio = |of: fn(&Measurements) -> f64| of(daemon) / of(baseline);
    println!(
        "{:>43} {:>9.2}x {:>7.2}x {:>7.2}x {:>26.2}x {:>16.2}x",
        "daemon / baseline",
        ratio(|it| it.measured.rate()),
        ratio(|it| it.measured.quantile(0.5).as_secs_f64()),
        ratio(|it| it.measured.quantile(0.99).as_secs_f64()),
        ratio(|it| it.cpu),
        ratio(|it| it.resident as f64),
    );
}
