//! How long everything else waits while the largest claims are attested: a client of its own asks for
//! next to nothing all the time, and its longest wait is the longest time for which the daemon did
//! nothing else.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::{
    daemon::Daemon,
    load::{self, Load, Measured},
    node::Node,
    world::{self, World},
};

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(2);
/// Questions before the transaction is asked about: what the machine itself makes them wait.
const QUIET: Duration = Duration::from_secs(2);

/// What a client that asks all the time waited for, ascending.
type Waits = Vec<Duration>;

/// The longest time for which anything else may wait, unless the machine itself makes it wait longer.
const MOST: Duration = Duration::from_millis(50);

/// Prints the waits without and with each of the two largest claims, for one provider and for three; fails
/// where one is too long.
pub async fn rows(binary: &Path, world: &World, node: &Node) -> Result<()> {
    println!(
        "{} events, {} deposits of one fill; waits of another client in ms",
        world.events,
        world::WIDEST
    );
    println!("claim    providers  attested s  quiet p50    max  beside p50    p99    max");
    let mut late = Vec::new();
    for providers in [1, 3] {
        let urls = |chain: &str| node.urls(chain, Duration::ZERO, providers);
        let daemon = Daemon::start(binary, &world::chains(), urls).await?;
        let load = Load {
            address: daemon.address,
            connections: 1,
            limit: Duration::from_secs(60),
        };
        load.run(load::DEPOSIT, &world.deposits[..1]).await?;
        let claims = [
            ("deposit", load::DEPOSIT, &world.huge),
            ("fill", load::FILL, &world.widest),
        ];
        for (claim, route, body) in claims {
            let quiet = Asking::start(daemon.address);
            tokio::time::sleep(QUIET).await;
            let quiet = quiet.stop()?;
            let beside = Asking::start(daemon.address);
            let measured = load.run(route, std::slice::from_ref(body)).await?;
            let beside = beside.stop()?;
            print!("{claim:<8} {providers:>9} ");
            row(&measured, &quiet, &beside);
            if at(&beside, 100) > MOST.max(at(&quiet, 100)) {
                late.push(format!("{claim} with {providers}: {:?}", at(&beside, 100)));
            }
        }
    }
    if !late.is_empty() {
        bail!("others waited for more than {MOST:?}: {}", late.join(", "));
    }
    Ok(())
}

fn row(measured: &Measured, quiet: &Waits, beside: &Waits) {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{:>11.2} {:>10.2} {:>6.1} {:>11.2} {:>6.1} {:>6.1}",
        measured.quantile(1.0).as_secs_f64(),
        milliseconds(at(quiet, 50)),
        milliseconds(at(quiet, 100)),
        milliseconds(at(beside, 50)),
        milliseconds(at(beside, 99)),
        milliseconds(at(beside, 100)),
    );
}

/// The wait that so many of a hundred did not exceed.
fn at(waits: &Waits, part: usize) -> Duration {
    let at = waits.len().saturating_sub(1) * part / 100;
    waits.get(at).copied().unwrap_or_default()
}

#[allow(clippy::disallowed_methods, reason = "the thread is its own")]
fn pause() {
    thread::sleep(PAUSE);
}

/// Asks in a thread of its own: the client's runtime has enough to do.
struct Asking {
    done: Arc<AtomicBool>,
    thread: JoinHandle<Result<Waits>>,
}

impl Asking {
    fn start(address: SocketAddr) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let end = done.clone();
        let thread = thread::spawn(move || {
            let mut waits = Waits::new();
            let mut stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            while !end.load(Relaxed) {
                let sent = Instant::now();
                stream.write_all(b"GET /lives/v1 HTTP/1.1\r\nhost: a\r\n\r\n")?;
                answer(&mut stream)?;
                waits.push(sent.elapsed());
                pause();
            }
            waits.sort_unstable();
            Ok(waits)
        });
        Self { done, thread }
    }

    fn stop(self) -> Result<Waits> {
        self.done.store(true, Relaxed);
        match self.thread.join() {
            Ok(waits) => waits,
            Err(_) => bail!("the client died"),
        }
    }
}

/// Reads one answer whose body has a length.
fn answer(stream: &mut TcpStream) -> Result<()> {
    let mut read = Vec::new();
    let mut piece = [0; 1024];
    loop {
        let head = read.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&read[..head]).to_lowercase();
            if !text.starts_with("http/1.1 200") {
                bail!("{text}");
            }
            let length = text.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.lines().next());
            let length: usize = length.unwrap_or("0").trim().parse()?;
            if read.len() >= head + 4 + length {
                return Ok(());
            }
        }
        let count = stream.read(&mut piece)?;
        if count == 0 {
            bail!("the daemon closed the connection");
        }
        read.extend_from_slice(&piece[..count]);
    }
}
