//! WebSockets and streams: how they begin, what hostile peers get, how they end, and that they take no
//! place from others.

use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use intentd::http::Limits;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message},
};

use super::rig::{Client, Rig, Setup, roomy};

const GET: &str = "GET /free HTTP/1.1\r\nhost: a\r\n\r\n";
const TICKS: &str = "GET /ticks HTTP/1.1\r\nhost: a\r\n\r\n";
const SHAKE: &str = "GET /repeat HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: keep-alive, Upgrade\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

type Peer = WebSocketStream<TcpStream>;

async fn with(limits: Limits) -> Rig {
    Setup {
        limits,
        ..Setup::default()
    }
    .start()
    .await
}

async fn open(rig: &Rig, path: &str) -> Result<Peer, tungstenite::Error> {
    let stream = rig.connect().await.0;
    let opened = client_async(format!("ws://a{path}"), stream).await;
    opened.map(|(peer, _)| peer)
}

/// A socket of which every byte is ours to send.
async fn raw(rig: &Rig) -> Client {
    let mut client = rig.connect().await;
    client.write(SHAKE).await;
    let answer = client.answer(true).await.unwrap();
    assert_eq!(answer.status, 101);
    let accepted = answer.header("sec-websocket-accept");
    assert_eq!(accepted, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(answer.header("content-length"), None);
    client
}

async fn says(peer: &mut Peer, text: &str) {
    peer.send(Message::text(text)).await.unwrap();
    assert_eq!(heard(peer).await, Message::text(text));
}

/// The next message that is not a sign of life.
async fn heard(peer: &mut Peer) -> Message {
    loop {
        match peer.next().await.unwrap().unwrap() {
            Message::Ping(_) | Message::Pong(_) => {}
            other => return other,
        }
    }
}

/// The code that a socket was closed with.
async fn code(peer: &mut Peer) -> u16 {
    let closed = heard(peer).await;
    let Message::Close(Some(frame)) = closed else {
        panic!("{closed:?}");
    };
    frame.code.into()
}

/// The code in the close frame that is all a raw socket gets.
async fn raw_code(mut client: Client) -> u16 {
    let mut rest = Vec::new();
    client.0.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest.first(), Some(&0x88), "{rest:?}");
    u16::from_be_bytes([rest[2], rest[3]])
}

/// A frame as a client sends it, masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ ..=125 => frame.push(0x80 | u8::try_from(length).unwrap()),
        length => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

#[tokio::test]
async fn a_socket_is_heard_and_answered() {
    let rig = Setup::default().start().await;
    let mut peer = open(&rig, "/repeat").await.unwrap();
    says(&mut peer, "one").await;
    says(&mut peer, &"\u{e9}".repeat(8 << 10)).await;
    peer.send(Message::Ping("x".into())).await.unwrap();
    let pong = peer.next().await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong("x".into()));
    peer.close(None).await.unwrap();
    while let Some(Ok(_)) = peer.next().await {}
    // Bytes behind the handshake, in parts, and a message of several frames.
    let mut client = rig.connect().await;
    let early = [SHAKE.as_bytes(), &frame(0x01, b"a"), &frame(0x80, b"b")].concat();
    client.write(&early[..early.len() - 1]).await;
    assert_eq!(client.answer(true).await.unwrap().status, 101);
    client.write(&early[early.len() - 1..]).await;
    let mut said = [0; 4];
    client.0.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"\x81\x02ab");
}

#[tokio::test]
async fn a_key_in_the_query_must_be_known() {
    let rig = Setup {
        key: Some("good"),
        keyless: Some(100),
        ..Setup::default()
    }
    .start()
    .await;
    for path in [
        "/repeat",
        "/repeat?apiKey=good",
        "/repeat?x=%&apiKey=g%6fod",
    ] {
        says(&mut open(&rig, path).await.unwrap(), "one").await;
    }
    for path in [
        "/repeat?apiKey=bad",
        "/repeat?apiKey=",
        "/repeat?apiKey=bad&apiKey=good",
    ] {
        let Err(tungstenite::Error::Http(answer)) = open(&rig, path).await else {
            panic!("{path}");
        };
        assert_eq!(answer.status(), 401, "{path}");
    }
    let shown = SHAKE.replace("host: a", "host: a\r\nx-api-key: bad");
    assert_eq!(rig.send(shown).await.status, 401);
    // Elsewhere the query opens nothing.
    let elsewhere = rig.get("/chains/v1?apiKey=good").await;
    assert!(elsewhere.header("x-ratelimit-limit").is_some());
}

#[tokio::test]
async fn handshakes_that_are_none_are_refused() {
    let rig = Setup::default().start().await;
    let without = |line: &str| SHAKE.replace(line, "x: y");
    let swapped = |from: &str, to: &str| SHAKE.replace(from, to);
    let key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    for (bytes, status, code) in [
        (without("upgrade: websocket"), 426, "UPGRADE_REQUIRED"),
        (swapped("websocket\r", "h2c\r"), 426, "UPGRADE_REQUIRED"),
        (
            without("connection: keep-alive, Upgrade"),
            400,
            "INVALID_HANDSHAKE",
        ),
        (without(key), 400, "INVALID_HANDSHAKE"),
        (
            swapped(key, &format!("{key}\r\n{key}")),
            400,
            "INVALID_HANDSHAKE",
        ),
        (swapped("dGhlIH", ""), 400, "INVALID_HANDSHAKE"),
        (
            swapped("version: 13", "version: 8"),
            400,
            "INVALID_HANDSHAKE",
        ),
        (
            swapped("host: a", "host: a\r\ncontent-length: 1"),
            400,
            "INVALID_HANDSHAKE",
        ),
        (swapped("HTTP/1.1", "HTTP/1.0"), 400, "INVALID_HANDSHAKE"),
        (
            swapped("GET /repeat", "POST /repeat"),
            404,
            "ROUTE_NOT_FOUND",
        ),
        (swapped("/repeat", "/free"), 200, ""),
    ] {
        let answer = rig.send(&bytes).await;
        assert_eq!(answer.status, status, "{bytes} {answer:?}");
        assert!(answer.body.contains(code), "{bytes} {answer:?}");
        if status == 426 {
            assert_eq!(answer.header("upgrade"), Some("websocket"));
        }
    }
    let (mut send, connection) = h2::client::handshake(rig.connect().await.0).await.unwrap();
    tokio::spawn(connection);
    let request = hyper::Request::get("http://a/repeat").body(()).unwrap();
    let (answer, _) = send.send_request(request, true).unwrap();
    let mut answer = answer.await.unwrap();
    assert_eq!(answer.status(), 400);
    let body = answer.body_mut().data().await.unwrap().unwrap();
    assert!(body.windows(14).any(|piece| piece == b"HTTP1_REQUIRED"));
}

/// Each ends its own socket with the code of RFC 6455, and nothing else.
#[tokio::test]
async fn hostile_frames_end_the_socket() {
    let rig = Setup::default().start().await;
    let whole = [b'a'; 9 << 10];
    let bomb = [frame(0x01, &whole), frame(0x00, &whole)].concat();
    let many = [
        frame(0x01, b""),
        frame(0x00, b"").repeat(1000),
        frame(0x80, b"x"),
    ]
    .concat();
    let told = [&[0x81, 0xff][..], &u64::MAX.to_be_bytes(), &[0; 4]].concat();
    for (bytes, code) in [
        (frame(0x81, &[b'a'; (16 << 10) + 1]), 1009),
        (told, 1009),
        (bomb, 1009),
        (frame(0x82, b"bytes"), 1003),
        (b"\x81\x01a".to_vec(), 1002),
        (frame(0x81, b"\xff\xff"), 1002),
        (frame(0xf1, b"reserved"), 1002),
        (frame(0x80, b"nothing to go on with"), 1002),
        (frame(0x89, &[0; 126]), 1002),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), 1002),
    ] {
        let mut client = raw(&rig).await;
        client.write(&bytes).await;
        let shown = &bytes[..bytes.len().min(16)];
        assert_eq!(raw_code(client).await, code, "{shown:?}");
    }
    let mut client = raw(&rig).await;
    client.write(many).await;
    let mut said = [0; 3];
    client.0.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"\x81\x01x");
}

#[tokio::test]
async fn a_peer_without_signs_of_life_is_gone() {
    // Long enough for the lively one on a machine that has much else to do.
    let rig = with(Limits {
        ping: Duration::from_secs(1),
        idle: Duration::from_millis(20),
        ..roomy()
    })
    .await;
    let mut lively = open(&rig, "/repeat").await.unwrap();
    let mut silent = raw(&rig).await;
    let mut rest = Vec::new();
    // A peer that is polled answers pings by itself, and no deadline of HTTP concerns it.
    let ended = async { silent.0.read_to_end(&mut rest).await.unwrap() };
    tokio::select! {
        _ = ended => {}
        other = heard(&mut lively) => panic!("{other:?}"),
    }
    assert!(rest.starts_with(&[0x89, 0]), "{rest:?}");
    assert!(rest.ends_with(b"silent"), "{rest:?}");
    says(&mut lively, "here").await;
}

/// A peer that says much and reads nothing is not waited for at the end.
#[tokio::test]
async fn the_end_tells_sockets_and_streams_and_is_quick() {
    let rig = Setup::default().start().await;
    let mut peers = Vec::new();
    for _ in 0..100 {
        peers.push(open(&rig, "/repeat").await.unwrap());
    }
    let mut stuck = raw(&rig).await;
    let large = frame(0x81, &[b'a'; 8 << 10]);
    let full = async { while stuck.0.write_all(&large).await.is_ok() {} };
    let full = tokio::time::timeout(Duration::from_millis(200), full).await;
    assert!(full.is_err(), "everything was taken");
    let mut reader = rig.connect().await;
    reader.write(TICKS).await;
    assert_eq!(reader.answer(true).await.unwrap().status, 200);
    let begun = Instant::now();
    rig.shutdown.cancel();
    let told = peers.iter_mut().map(|peer| async {
        assert_eq!(code(peer).await, 1001);
        while let Some(Ok(_)) = peer.next().await {}
    });
    futures::future::join_all(told).await;
    let mut rest = String::new();
    reader.0.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "5\r\ntick\n\r\n0\r\n\r\n");
    rig.ended.await.unwrap();
    // Where somebody is waited for, it takes 30 seconds.
    assert!(begun.elapsed() < Duration::from_secs(20), "{begun:?}");
}

#[tokio::test]
async fn sockets_and_requests_have_places_of_their_own() {
    let rig = with(Limits {
        connections: 1,
        sockets: 2,
        ..roomy()
    })
    .await;
    let mut first = open(&rig, "/repeat").await.unwrap();
    let mut reader = rig.connect().await;
    reader.write(TICKS).await;
    assert_eq!(reader.answer(true).await.unwrap().status, 200);
    // Neither has the one place of a connection; both places of sockets are taken.
    for bytes in [SHAKE, TICKS] {
        let answer = rig.send(bytes).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.body.contains("TOO_MANY_SOCKETS"), "{answer:?}");
    }
    assert_eq!(rig.get("/free").await.status, 200);
    says(&mut first, "one").await;
    drop(reader);
    rig.state.gone.notified().await;
    let mut second = open(&rig, "/repeat").await.unwrap();
    says(&mut second, "two").await;
    first.close(None).await.unwrap();
    while let Some(Ok(_)) = first.next().await {}
    let mut reader = rig.connect().await;
    // The server's end of the first may be a moment behind ours.
    loop {
        reader.write(TICKS).await;
        match reader.answer(true).await.unwrap() {
            answer if answer.status == 200 => break,
            refused => assert_eq!(refused.status, 503),
        }
        reader = rig.connect().await;
    }
}

#[tokio::test]
async fn a_stream_comes_as_it_happens_over_both_versions() {
    let rig = Setup::default().start().await;
    let mut reader = rig.connect().await;
    reader.write(TICKS).await;
    let head = reader.answer(true).await.unwrap();
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    assert_eq!(head.header("content-length"), None);
    for piece in ["tick\n", "tock\n"] {
        let mut chunk = [0; 10];
        reader.0.read_exact(&mut chunk).await.unwrap();
        assert_eq!(chunk, format!("5\r\n{piece}\r\n").as_bytes());
        rig.state.go.notify_one();
    }
    drop(reader);
    rig.state.gone.notified().await;
    let head = rig.send(
        TICKS
            .replace("GET", "HEAD")
            .replace("a\r\n", "a\r\nconnection: close\r\n"),
    );
    assert_eq!(head.await.status, 200);
    rig.state.gone.notified().await;

    let (mut send, connection) = h2::client::handshake(rig.connect().await.0).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = hyper::Request::get("http://a/ticks").body(()).unwrap();
    let (answer, _) = send.send_request(request, true).unwrap();
    let mut answer = answer.await.unwrap();
    for piece in ["tick\n", "tock\n"] {
        let came = answer.body_mut().data().await.unwrap().unwrap();
        assert_eq!(came, piece);
        rig.state.go.notify_one();
    }
    rig.shutdown.cancel();
    while let Some(Ok(_)) = answer.body_mut().data().await {}
    assert!(answer.body_mut().trailers().await.unwrap().is_none());
    drop((send, answer));
    connection.await.unwrap().unwrap();
    rig.ended.await.unwrap();
}

/// Requests on the same connection are answered as ever when a stream is over, and before.
#[tokio::test]
async fn a_connection_without_a_socket_is_as_it_was() {
    let rig = Setup::default().start().await;
    let mut client = rig.connect().await;
    client.write(GET).await;
    assert_eq!(client.answer(false).await.unwrap().status, 200);
    client.write(SHAKE).await;
    assert_eq!(client.answer(true).await.unwrap().status, 101);
    client.write(frame(0x81, b"x")).await;
    let mut said = [0; 3];
    client.0.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"\x81\x01x");
}
