//! Listeners over a real TCP listener and a store in memory.

use std::{net::SocketAddr, sync::LazyLock};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sha2::Digest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite::Message};

use super::*;
use crate::{
    api::intents::{error::ERRORS, events::ROUTES},
    http::{Gate, Keys, Known, Router, Surface, auth::Table, serve},
    integrator::{Integrator, Scope, Tier},
    request::{
        Execution,
        fact::{Facts, Standing, State},
        fixtures,
    },
    store::{Batch, integrators::IntegratorsError, memory::MemoryStore},
};

const START: u64 = 1_700_000_000_000;
/// How long a close may take on a busy machine.
const CLOSES: Duration = Duration::from_secs(60);

/// Unix milliseconds.
fn clock() -> u64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    START + u64::try_from(BEGUN.elapsed().as_millis()).unwrap()
}

struct Rig {
    fanout: Arc<Fanout>,
    requests: Requests,
    integrators: Integrators,
    address: SocketAddr,
    shutdown: CancellationToken,
}

/// The key of `app` quoted requests 1 and 2, that of `other` request 3; request 4 has no key.
async fn rig() -> Rig {
    let requests = Requests::open(Arc::new(MemoryStore::new())).await.unwrap();
    for (number, key) in [
        (1, Some("app")),
        (2, Some("app")),
        (3, Some("other")),
        (4, None),
    ] {
        let mut request = fixtures::request(number);
        request.api_key = key.map(Into::into);
        requests.insert(&request, Batch::new()).await.unwrap();
    }
    rig_on(requests).await
}

async fn rig_on(requests: Requests) -> Rig {
    let fanout = Fanout::new(requests.clone());
    let shutdown = CancellationToken::new();
    tokio::spawn(fanout.clone().run(shutdown.clone()));
    let integrators = Integrators::open(requests.store().clone()).await.unwrap();
    let watching = fanout
        .clone()
        .watch(integrators.clone(), clock, shutdown.clone());
    tokio::spawn(watching);
    let router = Router::default().with(&fanout, &ROUTES).unwrap();
    let known = |label: &'static str, scopes: &[&'static str]| Known {
        label: KeyLabel::new(label),
        scopes: scopes.into(),
        plan: Default::default(),
        expires_at: None,
    };
    let digest = |key: &str| <[u8; 32]>::from(sha2::Sha256::digest(key));
    let table = Table::new([
        (digest("k-app"), known("app", &["requests:read"])),
        (digest("k-other"), known("other", &["requests:read"])),
        (digest("k-blind"), known("blind", &["quote"])),
    ]);
    let keys = Keys::looked_up(move |digest| table.find(digest, 0));
    let surface = Surface {
        gate: Gate::new(Some(keys), None),
        errors: ERRORS,
        ..Surface::new("test", "Test", router)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Arc::new(surface.open().unwrap());
    tokio::spawn(serve(listener, app, shutdown.clone()));
    Rig {
        fanout,
        requests,
        integrators,
        address,
        shutdown,
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Toggles the status, so that every step is an event.
fn step(facts: &mut Facts) {
    if facts.deposits.pop().is_none() {
        facts.deposits.push(fixtures::deposit(1, Standing::Final));
    }
}

fn id(number: u8) -> String {
    fixtures::request(number).id.to_string()
}

impl Rig {
    /// Makes the next event of request `number`, at `START + at`.
    async fn step(&self, number: u8, at: u64) {
        let id = fixtures::request(number).id;
        let recorded = self.requests.record(&id, START + at, Batch::new(), step);
        recorded.await.unwrap();
    }

    async fn socket(&self, path: &str) -> Peer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (peer, _) = client_async(format!("ws://a{path}"), stream).await.unwrap();
        let mut peer = Peer(peer);
        let ready = peer.heard().await;
        assert_eq!(
            (&ready["type"], &ready["status"]),
            (&json!("connection"), &json!("ready"))
        );
        assert!(ready["data"]["id"].is_string());
        peer
    }

    async fn ask(&self, target: &str, headers: &str) -> Reader {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nhost: a\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        Reader {
            stream,
            head: String::from_utf8(head).unwrap(),
            text: String::new(),
        }
    }

    async fn feed(&self, target: &str, headers: &str) -> Reader {
        let mut reader = self.ask(target, headers).await;
        assert!(reader.head.starts_with("HTTP/1.1 200"), "{}", reader.head);
        assert!(reader.head.contains("content-type: text/event-stream"));
        assert_eq!(reader.block().await.unwrap(), "retry: 2000");
        reader
    }

    async fn refused(&self, target: &str, headers: &str) -> (u16, String) {
        let mut reader = self.ask(target, headers).await;
        let status = reader.head[9..12].parse().unwrap();
        let length = reader.head.split("content-length: ").nth(1).unwrap();
        let length = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        reader.stream.read_exact(&mut body).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        (status, body["errorCode"].as_str().unwrap().to_owned())
    }
}

struct Peer(WebSocketStream<TcpStream>);

impl Peer {
    async fn says(&mut self, kind: &str, filters: Value) {
        let message = json!({"type": kind, "event": "request.status.updated", "filters": filters});
        self.0
            .send(Message::text(message.to_string()))
            .await
            .unwrap();
    }

    async fn heard(&mut self) -> Value {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn subscribed(&mut self, number: u8) -> Value {
        self.says("subscribe", json!({"id": id(number)})).await;
        let reply = self.heard().await;
        assert_eq!(reply["status"], "success", "{reply}");
        assert_eq!(reply["data"]["filters"]["id"], id(number));
        let now = self.heard().await;
        assert_eq!(now["event"], "request.status.updated");
        assert_eq!(now["data"]["requestId"], id(number));
        now
    }

    /// The request and the time of the next event.
    async fn event(&mut self) -> (String, u64) {
        let event = self.heard().await;
        let at = event["publishedAt"].as_u64().unwrap();
        assert_eq!(event["data"]["updatedAt"], at, "{event}");
        (
            event["data"]["requestId"].as_str().unwrap().to_owned(),
            at - START,
        )
    }

    async fn refusal(&mut self) -> String {
        let reply = self.heard().await;
        assert_eq!(reply["status"], "error", "{reply}");
        reply["data"]["code"].as_str().unwrap().to_owned()
    }

    async fn code(&mut self) -> (u16, String) {
        let closed = async {
            loop {
                match self.0.next().await.unwrap().unwrap() {
                    Message::Close(Some(frame)) => {
                        return (frame.code.into(), frame.reason.to_string());
                    }
                    Message::Close(None) => panic!("closed without a reason"),
                    _ => {}
                }
            }
        };
        let closed = tokio::time::timeout(CLOSES, closed).await;
        closed.expect("the socket stays open")
    }
}

/// A reader of chunks that are blocks of Server-Sent Events.
struct Reader {
    stream: TcpStream,
    head: String,
    text: String,
}

impl Reader {
    /// The next block; `None` at the end.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let mut size = Vec::new();
            while !size.ends_with(b"\r\n") {
                size.push(self.stream.read_u8().await.ok()?);
            }
            let size = std::str::from_utf8(&size).unwrap().trim();
            let size = usize::from_str_radix(size, 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).await.ok()?;
            if size == 0 {
                return None;
            }
            self.text
                .push_str(std::str::from_utf8(&chunk[..size]).unwrap());
        }
    }

    /// The next block with an event: its number, if any, and its body.
    async fn event(&mut self) -> Option<(Option<u64>, Value)> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| {
                let mut lines = block.lines();
                lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()))
            };
            let Some(data) = field("data") else { continue };
            assert_eq!(field("event").unwrap(), "request.status.updated");
            let number = field("id").map(|id| id.parse().unwrap());
            return Some((number, serde_json::from_str(&data).unwrap()));
        }
    }
}

#[tokio::test]
async fn a_subscriber_sees_what_is_and_then_what_happens() {
    let rig = rig().await;
    for path in ["/", "/ws"] {
        let mut peer = rig.socket(path).await;
        let now = peer.subscribed(4).await;
        let begun = now["publishedAt"].as_u64().unwrap() - START;
        for at in begun + 1..begun + 10 {
            rig.step(4, at).await;
            rig.step(1, at).await;
            assert_eq!(peer.event().await, (id(4), at));
        }
        peer.says("unsubscribe", json!({"id": id(4)})).await;
        let reply = peer.heard().await;
        assert_eq!(reply["data"]["filters"]["id"], id(4), "{reply}");
        rig.step(4, begun + 10).await;
        let again = peer.subscribed(4).await;
        assert_eq!(again["publishedAt"], START + begun + 10);
        peer.says("unsubscribe", Value::Null).await;
        let reply = peer.heard().await;
        assert_eq!(reply["data"], json!({"event": "request.status.updated"}));
    }
}

/// The client would wait on its socket for ever; at the end of it, it asks.
#[tokio::test]
async fn a_socket_for_what_nobody_may_ever_tell_of_is_closed() {
    let rig = rig().await;
    let mut own = fixtures::request(5);
    own.execution = Execution::User;
    rig.requests.insert(&own, Batch::new()).await.unwrap();
    let why = "nobody may ever tell of it: ask for the status";
    for path in ["/", "/?apiKey=k-app"] {
        let mut peer = rig.socket(path).await;
        assert_eq!(peer.subscribed(5).await["data"]["status"], "waiting");
        assert_eq!(peer.code().await, (1000, why.to_owned()), "{path}");
    }
    // What a solver fills is heard of, though nothing is known of it yet.
    let mut filled = rig.socket("/").await;
    assert_eq!(filled.subscribed(4).await["data"]["status"], "waiting");
    // Whoever follows more keeps the socket.
    let mut both = rig.socket("/").await;
    both.subscribed(4).await;
    both.subscribed(5).await;
    let mut all = rig.socket("/?apiKey=k-other").await;
    all.says("subscribe", json!({})).await;
    assert_eq!(all.heard().await["status"], "success");
    all.subscribed(5).await;
    rig.step(4, 1).await;
    assert_eq!(filled.event().await, (id(4), 1));
    assert_eq!(both.event().await, (id(4), 1));
    // Once somebody has told of it, it is followed like any other.
    let record = async |at: u64, state: State| {
        let change = |facts: &mut Facts| facts.own = vec![fixtures::sent("0x05", state.clone())];
        let recorded = rig
            .requests
            .record(&own.id, START + at, Batch::new(), change);
        recorded.await.unwrap();
    };
    record(2, State::Broadcast).await;
    let mut known = rig.socket("/").await;
    assert_eq!(known.subscribed(5).await["data"]["status"], "pending");
    record(3, State::Confirmed(fixtures::place(3))).await;
    for peer in [&mut both, &mut all] {
        assert_eq!(peer.event().await, (id(5), 2));
        assert_eq!(peer.event().await, (id(5), 3));
    }
    assert_eq!(known.event().await, (id(5), 3));
    let mut ended = rig.socket("/").await;
    assert_eq!(ended.subscribed(5).await["data"]["status"], "success");
    ended.says("unsubscribe", json!({"id": id(5)})).await;
    assert_eq!(ended.heard().await["status"], "success");
}

#[tokio::test]
async fn a_key_hears_of_all_its_requests_and_of_no_others() {
    let rig = rig().await;
    let mut nobody = rig.socket("/").await;
    nobody.says("subscribe", json!({})).await;
    assert_eq!(nobody.refusal().await, "KEY_REQUIRED");
    let mut app = rig.socket("/?apiKey=k-app").await;
    app.says("subscribe", Value::Null).await;
    assert_eq!(app.heard().await["status"], "success");
    // A second interest in one of them does not duplicate events.
    app.subscribed(1).await;
    let mut other = rig.socket("/ws?apiKey=k-other").await;
    other.says("subscribe", json!({})).await;
    assert_eq!(other.heard().await["status"], "success");
    for (at, number) in [(1, 1), (2, 3), (3, 4), (4, 2), (5, 1)] {
        rig.step(number, at).await;
    }
    for (at, number) in [(1, 1), (4, 2), (5, 1)] {
        assert_eq!(app.event().await, (id(number), at));
    }
    assert_eq!(other.event().await, (id(3), 2));
}

#[tokio::test]
async fn whoever_comes_back_for_one_request_reads_its_events_only() {
    let rig = rig().await;
    for at in 1..=300 {
        rig.step(4, at).await;
        rig.step(1, at).await;
    }
    let target = format!("/events?requestId={}", id(4));
    while rig
        .fanout
        .past_of(&[fixtures::request(4).id], 0)
        .is_none_or(|own| own.len() < 300)
    {
        tokio::task::yield_now().await;
    }
    // Listeners without a key do not delay those that read everything of their keys.
    let everything = rig
        .fanout
        .late
        .acquire_many(u32::try_from(LATE).unwrap())
        .await;
    let mut reader = rig.feed(&target, "last-event-id: 2\r\n").await;
    for number in 2..=300 {
        let (number_seen, body) = reader.event().await.unwrap();
        assert_eq!(number_seen, Some(2 * number - 1));
        assert_eq!(body["data"]["requestId"], id(4));
    }
    rig.step(4, 301).await;
    assert_eq!(reader.event().await.unwrap().0, Some(601));
    // They do not wait for each other while the past is still being read.
    rig.fanout.post().past = Past::default();
    let mut early = rig.feed(&target, "last-event-id: 2\r\n").await;
    let first = tokio::time::timeout(Duration::from_secs(5), early.event()).await;
    assert_eq!(first.expect("it waits for others").unwrap().0, Some(3));
    drop(everything);
    // An index that began after the reader left proves nothing about the time before.
    let fresh = rig_on(rig.requests.clone()).await;
    let mut reader = fresh.feed(&target, "last-event-id: 2\r\n").await;
    assert_eq!(reader.event().await.unwrap().0, Some(3));
}

#[tokio::test]
async fn a_referrer_is_told_to_the_owner_of_the_key_only() {
    let rig = rig().await;
    let mut named = fixtures::request(5);
    named.referrer = Some("somebody".into());
    named.api_key = Some("app".into());
    rig.requests.insert(&named, Batch::new()).await.unwrap();
    let target = format!("/events?requestId={}", id(5));
    let cases = [
        ("/", "", Value::Null),
        ("/?apiKey=k-other", "x-api-key: k-other\r\n", Value::Null),
        ("/?apiKey=k-blind", "x-api-key: k-blind\r\n", Value::Null),
        ("/?apiKey=k-app", "x-api-key: k-app\r\n", json!("somebody")),
    ];
    for (at, (path, headers, wanted)) in (1..).zip(cases) {
        let mut peer = rig.socket(path).await;
        let now = peer.subscribed(5).await;
        let mut reader = rig.feed(&target, headers).await;
        let shown = reader.event().await.unwrap().1;
        rig.step(5, at).await;
        let heard = peer.heard().await;
        let read = reader.event().await.unwrap().1;
        for event in [now, shown, heard, read] {
            assert_eq!(event["data"]["referrer"], wanted, "{path}: {event}");
        }
    }
}

#[tokio::test]
async fn a_key_that_may_not_read_hears_of_single_requests_only() {
    let rig = rig().await;
    let mut blind = rig.socket("/?apiKey=k-blind").await;
    blind.subscribed(1).await;
    blind.says("subscribe", json!({})).await;
    assert_eq!(blind.refusal().await, "KEY_REQUIRED");
    let refused = rig.refused("/events", "x-api-key: k-blind\r\n").await;
    assert_eq!(refused, (403, "FORBIDDEN".into()));
}

#[tokio::test]
async fn who_came_with_a_key_is_let_go_when_it_is_lost() {
    type Change = fn(Integrator) -> Integrator;
    let losses: [Change; 4] = [
        |app| app.revoked(clock()).unwrap(),
        |app| app.rotated([2; 32], 0, clock()).unwrap(),
        |app| app.rotated([2; 32], 50, clock()).unwrap(),
        |app| app.allowed(Some([Scope::Quote].into()), None).unwrap(),
    ];
    for lose in losses {
        let rig = rig().await;
        let scopes = || [Scope::Quote, Scope::RequestsRead].into();
        let app = Integrator::new("app", scopes(), Tier::Default, [1; 32], START).unwrap();
        let change = async |to: Integrator| {
            let to = |_| Ok::<_, IntegratorsError>(to.clone());
            rig.integrators.change("app", to).await.unwrap();
        };
        change(app.clone()).await;
        let [mut all, mut idle, mut other] = [
            rig.socket("/?apiKey=k-app").await,
            rig.socket("/?apiKey=k-app").await,
            rig.socket("/?apiKey=k-other").await,
        ];
        for peer in [&mut all, &mut other] {
            peer.says("subscribe", json!({})).await;
            assert_eq!(peer.heard().await["status"], "success");
        }
        let mut feed = rig.feed("/events", "x-api-key: k-app\r\n").await;
        // A change that does not concern the key keeps the listener.
        change(app.clone().with_webhook(None).unwrap()).await;
        rig.step(1, 1).await;
        assert_eq!(all.event().await, (id(1), 1));
        change(lose(app)).await;
        assert_eq!(all.code().await.0, 1013);
        // Its subscription to the integrator's requests comes too late.
        assert_eq!(idle.code().await.0, 1013);
        while feed.block().await.is_some() {}
        rig.step(3, 1).await;
        assert_eq!(other.event().await, (id(3), 1));
    }
}

#[tokio::test]
async fn mistakes_are_told_and_many_of_them_end_the_socket() {
    let rig = rig().await;
    let mut peer = rig.socket("/").await;
    for (text, code) in [
        ("{\"type\":", "INVALID_MESSAGE"),
        ("7", "INVALID_MESSAGE"),
        ("{\"type\":\"publish\"}", "INVALID_TYPE"),
        (
            "{\"type\":\"subscribe\",\"event\":\"x\"}",
            "UNSUPPORTED_EVENT",
        ),
    ] {
        peer.0.send(Message::text(text)).await.unwrap();
        assert_eq!(peer.refusal().await, code, "{text}");
    }
    for (filters, code) in [
        (json!({"id": "0x12"}), "INVALID_REQUEST_ID"),
        (json!({"id": B256::repeat_byte(9)}), "REQUEST_NOT_FOUND"),
        (json!({}), "KEY_REQUIRED"),
    ] {
        peer.says("subscribe", filters).await;
        assert_eq!(peer.refusal().await, code);
    }
    peer.subscribed(1).await;
    peer.says("subscribe", json!({"id": 7})).await;
    assert_eq!(peer.refusal().await, "INVALID_MESSAGE");
    assert_eq!(peer.code().await, (1008, "too many mistakes".into()));
}

#[tokio::test]
async fn a_flood_of_subscriptions_ends_the_socket() {
    let requests = Requests::open(Arc::new(MemoryStore::new())).await.unwrap();
    for number in 1..=101 {
        let request = fixtures::request(number);
        requests.insert(&request, Batch::new()).await.unwrap();
    }
    let rig = rig_on(requests).await;
    let mut peer = rig.socket("/").await;
    for number in 1..=100 {
        peer.subscribed(number).await;
    }
    peer.says("subscribe", json!({"id": id(101)})).await;
    assert_eq!(peer.refusal().await, "TOO_MANY_SUBSCRIPTIONS");
    peer.subscribed(100).await;
    peer.says("unsubscribe", json!({"id": id(100)})).await;
    assert_eq!(peer.heard().await["status"], "success");
    peer.subscribed(101).await;
    for _ in 0..300 {
        peer.says("subscribe", json!({"id": id(7)})).await;
    }
    assert_eq!(peer.code().await, (1008, "too many messages".into()));
}

/// Wherever a subscription falls between changes, the states only get newer, end with the newest, and miss nothing
/// after the first state shown.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_between_what_is_shown_and_what_is_heard() {
    let rig = rig().await;
    let changing = async {
        for at in 1..=400 {
            rig.step(4, at).await;
        }
    };
    let watching = (0..8).map(|_| async {
        let mut peer = rig.socket("/").await;
        let now = peer.subscribed(4).await;
        let mut seen = now["publishedAt"].as_u64().unwrap() - START;
        while seen < 400 {
            assert_eq!(peer.event().await, (id(4), seen + 1));
            seen += 1;
        }
    });
    let feeding = (0..8).map(|_| async {
        let target = format!("/events?requestId={}", id(4));
        let mut reader = rig.feed(&target, "").await;
        let (number, now) = reader.event().await.unwrap();
        assert_eq!(number, None);
        let mut seen = now["timestamp"].as_u64().unwrap() - START;
        while seen < 400 {
            let (number, event) = reader.event().await.unwrap();
            assert_eq!(event["timestamp"], START + seen + 1);
            assert_eq!(number, Some(seen + 1));
            seen += 1;
        }
    });
    tokio::join!(
        changing,
        futures::future::join_all(watching),
        futures::future::join_all(feeding)
    );
}

/// One listener does not read; the other gets everything in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_is_dropped_and_nobody_else_notices() {
    let rig = rig().await;
    let fanout = Fanout::new(rig.requests.clone());
    let (mut slow, mut quick) = (fanout.listen(None), fanout.listen(None));
    let interest = [Interest::Request(fixtures::request(4).id)];
    assert_eq!((slow.want(&interest), quick.want(&interest)), (0, 0));
    tokio::spawn(fanout.clone().run(rig.shutdown.clone()));
    let most = u64::try_from(QUEUE).unwrap() + 50;
    for at in 1..=most {
        rig.step(4, at).await;
        assert_eq!(quick.next().await.unwrap().number, at);
    }
    for number in 1..=u64::try_from(QUEUE).unwrap() {
        assert_eq!(slow.next().await.unwrap().number, number);
    }
    assert!(slow.next().await.is_none());
    assert_eq!(fanout.post().queues.len(), 1);
    drop((slow, quick));
    let post = fanout.post();
    assert!(post.queues.is_empty());
    assert!(
        post.subscriptions
            .takers(fixtures::request(4).id, None)
            .is_empty()
    );
}

/// A reader that is cut off again and again while events arrive, and resumes each time after its last event.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_resumes_without_a_gap_and_without_a_double() {
    const EVENTS: u64 = 1500;
    let rig = rig().await;
    let numbers = [1, 3, 2, 4, 1];
    let changing = async {
        for at in 1..=EVENTS {
            rig.step(numbers[usize::try_from(at % 5).unwrap()], at)
                .await;
        }
    };
    let reading = async |target: &str, key: &str, by_header: bool| {
        let (mut last, mut seen) = (0_u64, Vec::new());
        // Request 2 (the app's) has every event whose number leaves remainder 2.
        while last < EVENTS - 3 {
            let mut reader = if by_header {
                let headers = format!("{key}last-event-id: {last}\r\n");
                rig.feed(target, &headers).await
            } else {
                rig.feed(&format!("{target}lastEventId={last}"), key).await
            };
            for _ in 0..=last % 97 {
                let (number, body) = reader.event().await.unwrap();
                last = number.unwrap();
                assert_eq!(body["timestamp"], START + last);
                seen.push(last);
                if last >= EVENTS - 3 {
                    break;
                }
            }
        }
        seen
    };
    let one = format!("/events?requestId={}&", id(2));
    let both = format!("/events?requestId={}&requestId={}&", id(2), id(4));
    let key = "x-api-key: k-app\r\n";
    let ((), one, both, all) = tokio::join!(
        changing,
        reading(&one, "", true),
        reading(&both, "", false),
        reading("/events?", key, true),
    );
    let matching = |wanted: &[u64], most: u64| -> Vec<u64> {
        let all = 1..=most;
        all.filter(|number| wanted.contains(&(number % 5)))
            .collect()
    };
    let until = |seen: &[u64]| *seen.last().unwrap();
    assert_eq!(one, matching(&[2], until(&one)));
    assert_eq!(both, matching(&[2, 3], until(&both)));
    assert_eq!(all, matching(&[0, 2, 4], until(&all)));
    for seen in [one, both, all] {
        assert!(until(&seen) >= EVENTS - 3);
    }
}

#[tokio::test]
async fn a_feed_says_where_it_is_and_refuses_what_it_cannot_resume() {
    let rig = rig().await;
    for at in 1..=5 {
        rig.step(3, at).await;
    }
    let key = "x-api-key: k-app\r\n";
    // No event of this key, and still the reader can resume here.
    let mut reader = rig.feed("/events", key).await;
    let begun: u64 = reader.block().await.unwrap()[4..].parse().unwrap();
    assert!(begun <= 5);
    drop(reader);
    rig.step(1, 6).await;
    let again = format!("{key}last-event-id: {begun}\r\n");
    let mut reader = rig.feed("/events", &again).await;
    assert_eq!(reader.event().await.unwrap().0, Some(6));
    let named = format!("/events?requestId={}&requestId={}", id(1), id(1));
    let mut reader = rig.feed(&named, "").await;
    assert_eq!(reader.event().await.unwrap().1["timestamp"], START + 6);
    rig.step(1, 7).await;
    let (number, event) = reader.event().await.unwrap();
    assert_eq!((number, &event["timestamp"]), (Some(7), &json!(START + 7)));
    let many: String = (0..101).map(|n| format!("requestId=0x{n:064x}&")).collect();
    for (target, headers, expected) in [
        ("/events", "", (401, "UNAUTHORIZED")),
        ("/events?apiKey=k-app", "", (401, "UNAUTHORIZED")),
        ("/events?requestId=0x1", "", (400, "INVALID_REQUEST_ID")),
        (
            &format!("/events?requestId={}", B256::repeat_byte(9)),
            "",
            (404, "REQUEST_NOT_FOUND"),
        ),
        (
            &format!("/events?requestId={}", B256::repeat_byte(9)),
            "last-event-id: 1\r\n",
            (404, "REQUEST_NOT_FOUND"),
        ),
        (
            &format!("/events?{many}"),
            "",
            (400, "TOO_MANY_SUBSCRIPTIONS"),
        ),
        (&named, "last-event-id: 8\r\n", (410, "EVENTS_GONE")),
        (
            &named,
            "last-event-id: 18446744073709551615\r\n",
            (410, "EVENTS_GONE"),
        ),
        (
            &named,
            "last-event-id: 18446744073709551616\r\n",
            (400, "INVALID_EVENT_ID"),
        ),
        (&named, "last-event-id: +1\r\n", (400, "INVALID_EVENT_ID")),
        (&named, "last-event-id: x\r\n", (400, "INVALID_EVENT_ID")),
    ] {
        let (status, code) = rig.refused(target, headers).await;
        assert_eq!((status, code.as_str()), expected, "{target} {headers}");
    }
    rig.shutdown.cancel();
    assert_eq!(reader.event().await, None);
}

/// A pruned event is reported, not skipped.
#[tokio::test]
async fn a_log_whose_beginning_is_gone_resumes_nobody_there() {
    use crate::store::rows;
    let rig = rig().await;
    for at in 1..=5 {
        rig.step(4, at).await;
    }
    let pruned = Batch::new()
        .delete(rows::event::key(1))
        .delete(rows::event::key(2));
    rig.requests.store().commit(pruned).await.unwrap();
    let target = format!("/events?requestId={}", id(4));
    for (last, expected) in [(0, 410), (1, 410)] {
        let headers = format!("last-event-id: {last}\r\n");
        assert_eq!(rig.refused(&target, &headers).await.0, expected);
    }
    let mut reader = rig.feed(&target, "last-event-id: 2\r\n").await;
    for number in 3..=5 {
        assert_eq!(reader.event().await.unwrap().0, Some(number));
    }
}

/// A reader that does not read delays neither the log nor others, and gets the reason when it reads again.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_reads_nothing_is_closed() {
    let rig = rig().await;
    let mut large = fixtures::request(5);
    large.referrer = Some("x".repeat(20_000));
    large.api_key = Some("app".into());
    rig.requests.insert(&large, Batch::new()).await.unwrap();
    let (mut stuck, mut reading) = (
        rig.socket("/?apiKey=k-app").await,
        rig.socket("/?apiKey=k-app").await,
    );
    for peer in [&mut stuck, &mut reading] {
        peer.says("subscribe", json!({})).await;
        assert_eq!(peer.heard().await["status"], "success");
    }
    for at in 1..=3000 {
        rig.step(5, at).await;
        assert_eq!(reading.event().await, (id(5), at));
    }
    assert_eq!(stuck.code().await, (1013, "slow".into()));
}
