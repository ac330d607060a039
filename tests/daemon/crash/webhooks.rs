//! The process that tells integrators is killed between a fact, the commit of what is owed, the call
//! and its record. Every fact that was acknowledged is told at least once, and whatever is told twice
//! is told under the same id in the same words.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use intentd::{
    integrator::{Integrator, Key, Tier, Webhook},
    store::{
        Batch, Store, check,
        integrators::{Integrators, IntegratorsError},
        requests::Requests,
        rows::{DEAD, DELIVERY},
        sled::SledStore,
        walk::Walk,
    },
    webhook::{self, WebhookContext, guard::Reach, post::HttpSender},
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_util::sync::CancellationToken;

use super::{Dice, FIRST, PLACE, crashes};
use crate::support::request::{paid, request};

/// Tells this test binary to be the one that is killed: where it calls.
const HOOK: &str = "INTENTD_TEST_CRASH_HOOK";
/// In the child a second passes this often in a second, so that retries come soon.
const HASTE: u64 = 200;
const APPS: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(120);

fn label(app: u64) -> String {
    format!("app {app}")
}

async fn add(integrators: &Integrators, app: u64, url: &str) {
    let url = format!("{url}/{app}").parse().unwrap();
    let webhook = Webhook {
        url,
        headers: BTreeMap::new(),
    };
    let integrator = Integrator {
        label: label(app),
        scopes: [].into(),
        tier: Tier::Default,
        keys: vec![Key {
            digest: [u8::try_from(app).unwrap(); 32],
            created_at: 1,
            expires_at: None,
        }],
        webhook: Some(webhook),
        wallet: None,
        proved_at: 0,
        created_at: 1,
        revoked_at: None,
    };
    let put = |_| Ok::<_, IntegratorsError>(integrator.clone());
    integrators.change(&label(app), put).await.unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test has no composition root")]
fn millis() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(now.unwrap().as_millis()).unwrap()
}

/// The child: facts one after the other, each told to somebody; `0` makes none and only tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "the parent of this test process speaks to it so"
)]
async fn telling() {
    let Ok(url) = std::env::var(HOOK) else {
        return;
    };
    let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let place = std::env::var(PLACE).unwrap();
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let store: Arc<dyn Store> = Arc::new(SledStore::open(Path::new(&place)).unwrap());
    let requests = Requests::open(store.clone()).await.unwrap();
    let integrators = Integrators::open(store).await.unwrap();
    for app in 0..APPS {
        add(&integrators, app, &url).await;
    }
    let (begun, since) = (millis(), Instant::now());
    let clock = move || begun + u64::try_from(since.elapsed().as_millis()).unwrap() * HASTE;
    let (_desk, worker) = webhook::open(WebhookContext {
        requests: requests.clone(),
        integrators,
        post: Arc::new(HttpSender::new(Reach::Anywhere).unwrap()),
        reach: Reach::Anywhere,
        clock: Box::new(clock),
        random: || 200,
    });
    tokio::spawn(worker.run(CancellationToken::new()));
    if first == 0 {
        std::future::pending::<()>().await;
    }
    for number in first.. {
        let request = request(number, &label(number % APPS));
        requests.insert(&request, Batch::new()).await.unwrap();
        let change = |facts: &mut _| paid(facts, number);
        let recorded = requests.record(&request.id, millis(), Batch::new(), change);
        recorded.await.unwrap();
        let line = format!("\nfact {} .\n", request.id);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
}

fn spawn(place: &Path, url: &str, first: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "crash::webhooks::telling"])
        .env(PLACE, place)
        .env(HOOK, url)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What was told: bodies by event, and how many copies came.
#[derive(Default)]
struct Heard {
    bodies: Mutex<BTreeMap<u64, String>>,
    copies: AtomicUsize,
    wakes: Notify,
    /// Calls of this life; at zero the process is killed.
    left: AtomicU64,
    /// It is killed before it has an answer to that call.
    hold: AtomicBool,
    /// The calls that were never answered.
    held: Mutex<Vec<(u64, String)>>,
}

/// A receiver that now and then says no.
async fn receive(heard: Arc<Heard>, dice: Arc<Dice>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (heard, dice) = (heard.clone(), dice.clone());
            tokio::spawn(async move { while_open(stream, &heard, &dice).await });
        }
    });
    url
}

async fn while_open(stream: TcpStream, heard: &Heard, dice: &Dice) {
    let mut stream = BufReader::new(stream);
    while let Some((id, body)) = call(&mut stream).await {
        // Between call and record.
        if heard.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            if heard.hold.load(Ordering::SeqCst) {
                heard.held.lock().unwrap().push((id, body));
                heard.wakes.notify_one();
                call(&mut stream).await;
                return;
            }
            heard.wakes.notify_one();
        }
        let refused = dice.below(10) == 0;
        if !refused {
            let mut bodies = heard.bodies.lock().unwrap();
            let before = bodies.insert(id, body.clone());
            assert!(before.is_none_or(|before| before == body), "{id} changed");
            heard.copies.fetch_add(1, Ordering::Relaxed);
        }
        let status = if refused { "500 No" } else { "200 OK" };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// The event's id and the body of the next call, if it is whole.
async fn call(stream: &mut BufReader<TcpStream>) -> Option<(u64, String)> {
    let (mut id, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let line = line.trim_end();
        if let Some((name, value)) = line.split_once(": ") {
            match name {
                "x-event-id" => id = value.parse().unwrap(),
                "content-length" => length = value.parse().unwrap(),
                _ => {}
            }
        } else if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    (id > 0).then(|| (id, String::from_utf8(body).unwrap()))
}

/// What kills a life.
enum Moment {
    /// So many facts were acknowledged.
    Fact(usize),
    /// So many calls have come.
    Call,
}

#[expect(
    clippy::disallowed_methods,
    reason = "timers of the runtime know no microseconds"
)]
fn linger(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}

/// Lets a child live until its moment and some microseconds more; what it acknowledged.
async fn life(mut child: Child, moment: Moment, heard: &Heard, micros: u64) -> Vec<String> {
    let out = tokio::process::ChildStdout::from_std(child.stdout.take().unwrap()).unwrap();
    let mut lines = BufReader::new(out).lines();
    let (mut facts, mut alive) = (Vec::new(), true);
    loop {
        let killing = tokio::select! {
            line = lines.next_line() => {
                let Some(line) = line.unwrap() else { break };
                let words: Vec<_> = line.split(' ').collect();
                if let ["fact", id, "."] = words[..] {
                    facts.push(id.to_owned());
                }
                matches!(moment, Moment::Fact(count) if facts.len() >= count)
            }
            () = heard.wakes.notified() => true,
        };
        if alive && killing {
            linger(micros);
            child.kill().unwrap();
            alive = false;
        }
    }
    child.wait().unwrap();
    assert!(!alive, "the child died by itself");
    facts
}

async fn count(store: &dyn Store, kind: intentd::store::Kind) -> usize {
    let (mut walk, mut count) = (Walk::of(store, kind), 0);
    loop {
        match walk.page().await.unwrap().len() {
            0 => return count,
            page => count += page,
        }
    }
}

/// The last life: until every event of the log has been told.
async fn finish(place: &Path, url: &str, heard: &Heard) {
    let events = {
        let store: Arc<dyn Store> = Arc::new(SledStore::open(place).unwrap());
        let requests = Requests::open(store.clone()).await.unwrap();
        let newest = *requests.newest_event().borrow();
        store.close().await;
        newest
    };
    heard.left.store(0, Ordering::SeqCst);
    let mut child = spawn(place, url, 0);
    let all = async {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        while heard.bodies.lock().unwrap().len() < usize::try_from(events).unwrap() {
            looks.tick().await;
        }
    };
    let told = tokio::time::timeout(PATIENCE, all).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let bodies = heard.bodies.lock().unwrap();
    assert!(told.is_ok(), "{} of {events} were told", bodies.len());
    assert!(bodies.keys().copied().eq(1..=events));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_told_under_one_id_however_often_the_process_dies() {
    let (crashes, dice) = (crashes(), Arc::new(Dice::new()));
    let place = tempfile::tempdir().unwrap();
    let heard = Arc::new(Heard::default());
    let url = receive(heard.clone(), dice.clone()).await;
    let (mut acknowledged, mut between) = (Vec::new(), false);
    for crash in 0..crashes {
        let some = 1 + dice.below(60);
        let moment = match dice.below(2) {
            0 => Moment::Fact(some),
            _ => Moment::Call,
        };
        let calls = match moment {
            Moment::Fact(_) => 0,
            Moment::Call => u64::try_from(some).unwrap(),
        };
        let micros = u64::try_from(dice.below(3_000)).unwrap();
        let first = heard.held.lock().unwrap().is_empty();
        heard
            .hold
            .store(first || micros.is_multiple_of(2), Ordering::SeqCst);
        heard.left.store(calls, Ordering::SeqCst);
        between |= calls > 0;
        let child = spawn(place.path(), &url, (crash + 1) * 1_000_000);
        acknowledged.extend(life(child, moment, &heard, micros).await);
    }
    finish(place.path(), &url, &heard).await;
    let bodies = heard.bodies.lock().unwrap().clone();
    let mut told = HashMap::<String, usize>::new();
    for body in bodies.values() {
        let body: Value = serde_json::from_str(body).unwrap();
        let id = body["data"]["requestId"].as_str().unwrap();
        *told.entry(id.to_owned()).or_default() += 1;
    }
    for id in &acknowledged {
        assert_eq!(told.get(id), Some(&1), "{id}");
    }
    let store = SledStore::open(place.path()).unwrap();
    let report = check::check(&store).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
    assert_eq!(count(&store, DEAD).await, 0);
    let held = heard.held.lock().unwrap().clone();
    assert_eq!(
        between,
        !held.is_empty(),
        "kills between a call and its record"
    );
    for (id, body) in &held {
        assert_eq!(bodies.get(id), Some(body), "{id} is told again as it was");
    }
    let copies = heard.copies.load(Ordering::Relaxed);
    assert!(copies >= bodies.len() && !acknowledged.is_empty());
    println!(
        "{crashes} kills, {} before an answer: {} facts acknowledged, {} events, {} copies, {} on their way at the end",
        held.len(),
        acknowledged.len(),
        bodies.len(),
        heard.copies.load(Ordering::Relaxed),
        count(&store, DELIVERY).await,
    );
}
