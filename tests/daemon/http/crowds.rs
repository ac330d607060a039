//! What one address can take of a listener, and who counts as one when proxies stand in front.

use std::time::Duration;

use bytes::Bytes;
use h2::{RecvStream, client::SendRequest};
use hyper::{Request, Response};
use intentd::http::{
    Each, Limits,
    forwarded::{ForwardedHeader, Proxies},
    limit::Quota,
};
use tokio::io::AsyncReadExt;

use super::rig::{Client, Rig, Setup, roomy};

const GET: &str = "GET /free HTTP/1.1\r\nhost: a\r\n\r\n";
const SLOW: &str = "GET /slow HTTP/1.1\r\nhost: a\r\n\r\n";
const SHAKE: &str = "GET /repeat HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

async fn each(change: impl FnOnce(&mut Each)) -> Rig {
    let mut limits = roomy();
    change(&mut limits.each);
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    setup.start().await
}

fn here() -> Proxies {
    Proxies {
        networks: vec!["127.0.0.0/8".parse().unwrap()],
        hops: usize::MAX,
        header: ForwardedHeader::XForwardedFor,
    }
}

/// Whether a new connection is answered.
async fn answered(rig: &Rig) -> bool {
    let mut client = rig.connect().await;
    client.write(GET).await;
    client.answer(false).await.is_some()
}

#[tokio::test]
async fn an_address_takes_its_share_of_the_connections_and_no_more() {
    let rig = each(|each| each.connections = 3).await;
    let mut held: Vec<Client> = Vec::new();
    for _ in 0..3 {
        let mut client = rig.connect().await;
        client.write(GET).await;
        assert_eq!(client.answer(false).await.unwrap().status, 200);
        held.push(client);
    }
    assert!(!answered(&rig).await, "a fourth connection was answered");
    assert!(!answered(&rig).await);
    held.pop();
    while !answered(&rig).await {}
}

#[tokio::test]
async fn the_connections_of_a_trusted_proxy_are_everybodys() {
    let mut limits = roomy();
    limits.each.connections = 1;
    let setup = Setup {
        limits,
        proxies: here(),
        ..Setup::default()
    };
    let rig = setup.start().await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut client = rig.connect().await;
        client.write(GET).await;
        assert_eq!(client.answer(false).await.unwrap().status, 200);
        held.push(client);
    }
}

#[tokio::test]
async fn streams_of_one_connection_count_as_requests_of_its_address() {
    let rig = each(|each| each.requests = 2).await;
    let (mut send, connection) = h2::client::handshake(rig.connect().await.0).await.unwrap();
    tokio::spawn(connection);
    let mut ask = |path: &str| {
        let request = Request::get(format!("http://a{path}")).body(()).unwrap();
        send.send_request(request, true).unwrap().0
    };
    let mut slow = Vec::new();
    for _ in 0..2 {
        slow.push(ask("/slow"));
        rig.state.begun.notified().await;
    }
    assert_eq!(ask("/free").await.unwrap().status(), 503);
    // The address, not the connection.
    assert_eq!(rig.get("/free").await.status, 503);
    rig.state.go.notify_one();
    rig.state.go.notify_one();
    for answer in slow {
        assert_eq!(answer.await.unwrap().status(), 200);
    }
    assert_eq!(ask("/free").await.unwrap().status(), 200);
}

/// An HTTP/2 connection whose streams have room for `window` bytes.
async fn narrow(rig: &Rig, window: u32) -> SendRequest<Bytes> {
    let (send, connection) = h2::client::Builder::new()
        .initial_window_size(window)
        .handshake::<_, Bytes>(rig.connect().await.0)
        .await
        .unwrap();
    tokio::spawn(connection);
    send
}

/// The head of an answer; whoever keeps it does not read the rest.
async fn head(send: &mut SendRequest<Bytes>, path: &str) -> Response<RecvStream> {
    let request = Request::get(format!("http://a{path}")).body(()).unwrap();
    let (answer, _) = send.send_request(request, true).unwrap();
    answer.await.unwrap()
}

#[tokio::test]
async fn answers_that_nobody_reads_count_until_they_are_given_up() {
    // Without a window hyper holds the answer; with a byte of it, h2 does.
    for window in [0, 1] {
        let rig = each(|each| each.requests = 2).await;
        let mut send = narrow(&rig, window).await;
        let mut unread = Vec::new();
        for _ in 0..2 {
            let answer = head(&mut send, "/free").await;
            assert_eq!(answer.status(), 200);
            unread.push(answer);
        }
        // The address, not the connection.
        let over = rig.get("/free").await;
        assert_eq!(over.status, 503, "a window of {window}");
        assert!(over.body.contains("\"OVERLOADED\""), "{over:?}");
        drop(unread);
        while rig.get("/free").await.status != 200 {}
    }
}

#[tokio::test]
async fn refusals_that_nobody_reads_count_as_well_and_then_have_no_body() {
    let rig = each(|each| each.requests = 1).await;
    let mut send = narrow(&rig, 0).await;
    let mut unread = Vec::new();
    for (status, ended) in [(200, false), (503, false), (503, true), (503, true)] {
        let answer = head(&mut send, "/free").await;
        let found = (answer.status().as_u16(), answer.body().is_end_stream());
        assert_eq!(found, (status, ended));
        unread.push(answer);
    }
    let over = rig.get("/free").await;
    assert_eq!((over.status, over.body.as_str()), (503, ""));
    drop(unread);
    while rig.get("/free").await.status != 200 {}
}

#[tokio::test]
async fn answers_that_are_read_count_no_longer_while_their_connections_stay() {
    let rig = each(|each| each.requests = 1).await;
    let mut clients = [rig.connect().await, rig.connect().await];
    let mut send = narrow(&rig, 65_535).await;
    for _ in 0..3 {
        for client in &mut clients {
            client.write(GET).await;
            assert_eq!(client.answer(false).await.unwrap().status, 200);
        }
        let answer = head(&mut send, "/documentation/errors").await;
        assert_eq!(answer.status(), 200);
        let mut body = answer.into_body();
        let mut read = 0;
        while let Some(piece) = body.data().await {
            read += piece.unwrap().len();
        }
        assert!(read > 1_000, "{read}");
    }
}

#[tokio::test]
async fn an_address_takes_its_share_of_the_sockets() {
    let rig = each(|each| each.sockets = 2).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = rig.connect().await;
        client.write(SHAKE).await;
        assert_eq!(client.answer(true).await.unwrap().status, 101);
        held.push(client);
    }
    let answer = rig.send(SHAKE).await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("TOO_MANY_SOCKETS"), "{answer:?}");
    assert_eq!(rig.get("/free").await.status, 200);
    drop(held.pop());
    while rig.send(SHAKE).await.status != 101 {}
}

#[tokio::test]
async fn what_an_address_says_is_counted_over_all_its_sockets_pings_too() {
    let messages = Quota {
        max: 3,
        window_ms: 60_000,
    };
    let rig = each(|each| each.messages = messages).await;
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let mut client = rig.connect().await;
        client.write(SHAKE).await;
        assert_eq!(client.answer(true).await.unwrap().status, 101);
        sockets.push(client);
    }
    let (text, ping) = ([0x81, 0x81, 0, 0, 0, 0, b'a'], [0x89, 0x80, 0, 0, 0, 0]);
    let [first, second] = &mut sockets[..] else {
        panic!("two sockets")
    };
    first.write(text).await;
    let mut said = [0; 3];
    first.0.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"\x81\x01a");
    second.write([&text[..], &ping].concat()).await;
    second.0.read_exact(&mut said).await.unwrap();
    let mut pong = [0; 2];
    second.0.read_exact(&mut pong).await.unwrap();
    first.write(text).await;
    let mut rest = Vec::new();
    first.0.read_to_end(&mut rest).await.unwrap();
    assert!(rest.ends_with(b"too many messages"), "{rest:?}");
}

async fn aged(age: Duration) -> Rig {
    let limits = Limits { age, ..roomy() };
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    setup.start().await
}

#[tokio::test]
async fn a_connection_grows_old_but_no_request_is_lost() {
    let rig = aged(Duration::from_secs(1)).await;
    let mut idle = rig.connect().await;
    idle.write(GET).await;
    assert_eq!(idle.answer(false).await.unwrap().status, 200);
    let mut busy = rig.connect().await;
    busy.write(SLOW).await;
    rig.state.begun.notified().await;
    let mut socket = rig.connect().await;
    socket.write(SHAKE).await;
    assert_eq!(socket.answer(true).await.unwrap().status, 101);
    // The newest: where it has ended, the others have grown old, too.
    let mut newest = rig.connect().await;
    newest.write(GET).await;
    assert_eq!(newest.answer(false).await.unwrap().status, 200);
    assert!(idle.ends_silently().await);
    assert!(newest.ends_silently().await);
    rig.state.go.notify_one();
    let answer = busy.answer(false).await.unwrap();
    assert_eq!(
        (answer.status, answer.header("connection")),
        (200, Some("close"))
    );
    socket.write([0x81, 0x81, 0, 0, 0, 0, b'a']).await;
    let mut said = [0; 3];
    socket.0.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"\x81\x01a");
}

#[tokio::test]
async fn pings_keep_no_connection_for_ever() {
    // It does not answer the goodbye either: what a request may take is what it is given.
    let short = Duration::from_millis(200);
    let limits = Limits {
        age: short,
        body_time: short,
        deadline: short,
        ..roomy()
    };
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    let rig = setup.start().await;
    let mut client = rig.connect().await;
    client
        .write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await;
    let pings = async {
        let mut answers = vec![0; 4096];
        loop {
            client.write(b"\0\0\x08\x06\0\0\0\0\0pingpong").await;
            if client.0.read(&mut answers).await.unwrap_or(0) == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(10), pings).await;
    assert!(ended.is_ok(), "pings kept the connection");
}

#[tokio::test]
async fn callers_behind_a_trusted_proxy_are_told_apart_and_nobody_else_is_believed() {
    let asked = async |rig: &Rig, head: &str| {
        let request = format!("GET /chains/v1 HTTP/1.1\r\nhost: a\r\n{head}\r\n\r\n");
        rig.send(request).await.status
    };
    let setup = |proxies| Setup {
        key: Some("k"),
        keyless: Some(1),
        proxies,
        ..Setup::default()
    };
    let rig = setup(here()).start().await;
    assert_eq!(asked(&rig, "x-forwarded-for: 1.1.1.1").await, 200);
    assert_eq!(asked(&rig, "x-forwarded-for: 2.2.2.2").await, 200);
    // What the caller puts before it, or into the other header, changes nothing.
    for again in [
        "x-forwarded-for: 1.1.1.1",
        "x-forwarded-for: 3.3.3.3, 1.1.1.1",
        "x-forwarded-for: 3.3.3.3\r\nx-forwarded-for: 1.1.1.1",
        "forwarded: for=3.3.3.3\r\nx-forwarded-for: 1.1.1.1",
    ] {
        assert_eq!(asked(&rig, again).await, 429, "{again}");
    }
    let rig = setup(Proxies::default()).start().await;
    assert_eq!(asked(&rig, "x-forwarded-for: 1.1.1.1").await, 200);
    for spoofed in [
        "x-forwarded-for: 2.2.2.2",
        "forwarded: for=2.2.2.2",
        "x-real-ip: 2.2.2.2",
    ] {
        assert_eq!(asked(&rig, spoofed).await, 429, "{spoofed}");
    }
}
