//! Requests that are wrong on purpose: each gets a 4xx and leaves the listener as it was.

use std::time::Duration;

use intentd::http::Limits;
use tokio::io::AsyncReadExt;

use super::rig::{Setup, is_nearly, post, roomy};

/// What is sent, and the status and code that it gets; no code where the HTTP library answers by
/// itself.
type Case = (String, u16, &'static str);

fn heads() -> Vec<Case> {
    let head = |lines: &str| format!("GET /free HTTP/1.1\r\nhost: a\r\n{lines}\r\n\r\n");
    let to = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    let fields: Vec<_> = (0..100).map(|n| format!("x-{n}: 1")).collect();
    vec![
        (head(&format!("x: {}", "a".repeat(1 << 20))), 431, ""),
        (head(&fields.join("\r\n")), 431, ""),
        (
            head("x-api-key: a\r\nx-api-key: b"),
            400,
            "DUPLICATE_HEADER",
        ),
        (head("host: b"), 400, "DUPLICATE_HEADER"),
        (head("a b: c"), 400, ""),
        (head("x : c"), 400, ""),
        ("nonsense\r\n\r\n".into(), 400, ""),
        ("GET /free HTTP/9.9\r\n\r\n".into(), 400, ""),
        (to("/nope"), 404, "ROUTE_NOT_FOUND"),
        (to("/echo"), 404, "ROUTE_NOT_FOUND"),
        (to("/free/"), 404, "ROUTE_NOT_FOUND"),
        (head("").replace("GET", "OPTIONS"), 404, "ROUTE_NOT_FOUND"),
    ]
}

fn framings() -> Vec<Case> {
    let typed = |media: &str| {
        format!("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n{media}\r\n{{}}")
    };
    let both = |first: &str, second: &str| {
        let start = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json";
        format!("{start}\r\n{first}\r\n{second}\r\n\r\n0\r\n\r\n")
    };
    let (length, chunked) = ("content-length: 5", "transfer-encoding: chunked");
    let media_type = "FST_ERR_CTP_INVALID_MEDIA_TYPE";
    vec![
        (both(length, chunked), 400, "AMBIGUOUS_LENGTH"),
        (both(chunked, length), 400, "AMBIGUOUS_LENGTH"),
        (both(length, "content-length: 6"), 400, ""),
        (both(length, "transfer-encoding: identity"), 400, ""),
        (both("content-length: +5", "x: y"), 400, ""),
        (typed("content-type: application/xml\r\n"), 415, media_type),
        (typed(""), 415, media_type),
        (typed("content-type: text/plain\r\n"), 400, "INVALID_BODY"),
        (
            "POST /echo HTTP/1.1\r\nhost: a\r\n\r\n".into(),
            400,
            "INVALID_BODY",
        ),
    ]
}

fn bodies() -> Vec<Case> {
    let deep = format!("{{\"chainId\":{}", "[".repeat(10_000));
    let large = format!("{{\"chainId\":\"{}\"}}", "1".repeat(1_100_000));
    let chunk = format!("ffff\r\n{}\r\n", "1".repeat(0xffff)).repeat(20);
    let start = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json";
    let chunked = format!("{start}\r\ntransfer-encoding: chunked\r\n\r\n{chunk}0\r\n\r\n");
    let mut cases: Vec<Case> = [
        ("", 400, "EMPTY_BODY"),
        ("{\"chainId\": ", 400, "INVALID_JSON"),
        (&deep, 400, "INVALID_JSON"),
        ("{\"chainId\":\"a\",\"chainId\":\"b\"}", 400, "INVALID_JSON"),
        ("{\"chainId\":\"a\"} x", 400, "INVALID_JSON"),
        ("{\"chainId\":NaN}", 400, "INVALID_JSON"),
        ("{\"chainId\":1e400}", 400, "INVALID_JSON"),
        ("{\"__proto__\":{}}", 400, "INVALID_JSON"),
        ("{\"chainId\":{}}", 400, "INVALID_FIELD"),
        ("{\"chainId\":\"a\",\"count\":\"0x\"}", 400, "INVALID_FIELD"),
        ("{\"chainId\":\"a\",\"count\":1e77}", 400, "INVALID_FIELD"),
        ("{}", 400, "MISSING_FIELD"),
        (&large, 413, "FST_ERR_CTP_BODY_TOO_LARGE"),
    ]
    .map(|(body, status, code)| (post("/echo", body), status, code))
    .into();
    cases.push((chunked, 413, "FST_ERR_CTP_BODY_TOO_LARGE"));
    cases
}

#[tokio::test]
async fn malformed_requests_get_4xx() {
    let rig = Setup::default().start().await;
    for (bytes, status, code) in [heads(), framings(), bodies()].concat() {
        let shown: String = bytes.chars().take(120).collect();
        let answer = rig.send(&bytes).await;
        assert_eq!(answer.status, status, "{shown:?} {answer:?}");
        let told = code.is_empty() || answer.body.contains(&format!("\"{code}\""));
        assert!(told, "{shown:?} {answer:?}");
    }
    assert_eq!(rig.get("/free").await.status, 200);
}

#[tokio::test]
async fn documentation_gives_no_files() {
    let rig = Setup::default().start().await;
    for path in [
        "/documentation/../../../etc/passwd",
        "/documentation/static/../../Cargo.toml",
        "/documentation/static/%2e%2e/%2e%2e/Cargo.toml",
        "/documentation/static//etc/passwd",
        "/documentation/static/scalar.js/..",
        "/documentation/static/",
        "/documentation/static/index.html",
    ] {
        assert_eq!(rig.get(path).await.status, 404, "{path}");
    }
    assert_eq!(rig.get("/documentation/static/scalar.js").await.status, 200);
}

#[tokio::test]
async fn lenient_scalars_are_understood() {
    let rig = Setup::default().start().await;
    let body = "{\"chainId\":[\"a\"],\"count\":\"7\",\"flag\":\"false\",\"foo\":1,\"__x\":{}}";
    let answer = rig.send(post("/echo", body)).await;
    assert_eq!(
        answer.body,
        "{\"chainId\":\"a\",\"count\":7,\"flag\":false}"
    );
    let expected = answer.body.len().to_string();
    assert_eq!(answer.header("content-length"), Some(expected.as_str()));
    let chunked = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\ne\r\n{\"chainId\":\"a\"\r\n1\r\n}\r\n0\r\n\r\n";
    let answer = rig.send(chunked).await;
    assert_eq!(answer.body, "{\"chainId\":\"a\"}");
    assert_eq!(answer.header("connection"), Some("close"));
}

#[tokio::test]
async fn keys_open_protected_routes_only() {
    let rig = Setup {
        key: Some("good"),
        ..Setup::default()
    }
    .start()
    .await;
    let ask = |path: &str, key: &str| {
        rig.send(format!(
            "GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n"
        ))
    };
    assert_eq!(ask("/chains/v1", "good").await.status, 200);
    for key in ["", "bad", "constructor", "__proto__", "good2", "\u{e9}"] {
        let answer = ask("/chains/v1", key).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (
                401,
                "{\"error\":\"Unauthorized\",\"retryable\":false,\"docs\":\"/documentation/errors/UNAUTHORIZED\"}"
            )
        );
        assert_eq!(ask("/lives/v1", key).await.status, 200);
        assert_eq!(ask("/documentation", key).await.status, 200);
    }
    let unread = post("/echo", "not even JSON");
    assert_eq!(rig.send(unread).await.status, 401);
}

/// `X-Forwarded-For` moves nobody into another window, and free paths cost nothing.
#[tokio::test]
async fn keyless_limit_follows_the_socket() {
    let rig = Setup {
        key: Some("good"),
        keyless: Some(2),
        ..Setup::default()
    }
    .start()
    .await;
    let ask = |method: &str, path: &str, extra: &str| {
        rig.send(format!(
            "{method} {path} HTTP/1.1\r\nhost: a\r\n{extra}\r\n"
        ))
    };
    let free = ask("GET", "/lives/v1", "").await;
    assert_eq!((free.status, free.header("x-ratelimit-limit")), (200, None));
    let first = ask("GET", "/chains/v1", "").await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("x-ratelimit-limit"), Some("2"));
    assert_eq!(first.header("x-ratelimit-remaining"), Some("1"));
    assert!(is_nearly(first.header("x-ratelimit-reset"), 3600));
    assert_eq!(first.header("retry-after"), None);
    let unknown = ask("GET", "/nope", "").await;
    assert_eq!(
        (unknown.status, unknown.header("x-ratelimit-remaining")),
        (404, Some("0"))
    );
    for spoof in [
        "",
        "x-forwarded-for: 9.9.9.9\r\n",
        "forwarded: for=9.9.9.9\r\n",
        "x-real-ip: 9.9.9.9\r\n",
        "x-api-key: bad\r\n",
    ] {
        let over = ask("GET", "/chains/v1", spoof).await;
        assert_eq!(
            (over.status, over.body.as_str()),
            (
                429,
                "{\"error\":\"Rate limit exceeded\",\"retryable\":true,\"docs\":\"/documentation/errors/RATE_LIMITED\"}"
            )
        );
        assert!(is_nearly(over.header("retry-after"), 3600));
    }
    let known = ask("GET", "/chains/v1", "x-api-key: good\r\n").await;
    assert_eq!(
        (known.status, known.header("x-ratelimit-limit")),
        (200, None)
    );
    assert_eq!(
        ask("GET", "/livesxyz", "")
            .await
            .header("x-ratelimit-limit"),
        None
    );
    assert_eq!(ask("OPTIONS", "/chains/v1", "").await.status, 429);
}

#[tokio::test]
async fn a_limit_of_the_routes_own_is_told_in_place_of_the_listeners() {
    let rig = Setup {
        key: Some("good"),
        keyless: Some(9),
        ..Setup::default()
    }
    .start()
    .await;
    for (path, status, limit, wait) in [
        ("/few", 429, "1", Some("7")),
        ("/chains/v1", 200, "9", None),
    ] {
        let answer = rig.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("x-ratelimit-limit"), Some(limit));
        assert_eq!(answer.header("retry-after"), wait);
    }
}

#[tokio::test]
async fn panic_in_a_handler_is_a_500_without_cause() {
    let rig = Setup::default().start().await;
    let answer = rig.get("/panic").await;
    assert_eq!(answer.status, 500);
    assert_eq!(
        answer.body,
        "{\"statusCode\":500,\"code\":\"INTERNAL\",\"error\":\"Internal Server Error\",\"message\":\"Something went wrong\",\"retryable\":true,\"docs\":\"/documentation/errors/INTERNAL\"}"
    );
    assert_eq!(rig.get("/free").await.status, 200);
}

/// One HTTP/2 frame (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The error code of the last GOAWAY frame among `frames`.
fn goaway_reason(mut frames: &[u8]) -> Option<[u8; 4]> {
    let mut reason = None;
    while let Some((&[a, b, c, kind, _, _, _, _, _], rest)) = frames.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes([0, a, b, c])).ok()?;
        let payload = rest.get(..length)?;
        if kind == 7 {
            reason = payload.get(4..8)?.try_into().ok();
        }
        frames = &rest[length..];
    }
    reason
}

/// CVE-2023-44487: streams opened and reset at once end the connection, not the listener.
#[tokio::test]
async fn rapid_resets_end_the_connection() {
    const GET_ROOT: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b'a'];
    const CANCEL: [u8; 4] = [0, 0, 0, 8];
    const ENHANCE_YOUR_CALM: [u8; 4] = [0, 0, 0, 11];
    let rig = Setup::default().start().await;
    let mut attack = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    attack.extend(frame(4, 0, 0, &[]));
    for stream in (1..2000).step_by(2) {
        attack.extend(frame(1, 5, stream, GET_ROOT));
        attack.extend(frame(3, 0, stream, &CANCEL));
    }
    let mut client = rig.connect().await;
    client.write(attack).await;
    let mut answered = Vec::new();
    // A reset after the server hung up is an end as well.
    client.0.read_to_end(&mut answered).await.ok();
    assert_eq!(goaway_reason(&answered), Some(ENHANCE_YOUR_CALM));
    assert_eq!(rig.get("/free").await.status, 200);
}

#[tokio::test]
async fn http2_is_answered_without_upgrade() {
    let rig = Setup::default().start().await;
    let stream = tokio::net::TcpStream::connect(rig.address).await.unwrap();
    let (mut send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    for (method, length) in [("GET", 15), ("HEAD", 0)] {
        let request = hyper::Request::builder()
            .method(method)
            .uri("http://a/lives/v1")
            .body(())
            .unwrap();
        let (answer, _) = send.send_request(request, true).unwrap();
        let mut answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-length"], "15");
        let body = answer
            .body_mut()
            .data()
            .await
            .map_or(0, |data| data.unwrap().len());
        assert_eq!(body, length, "{method}");
    }
}

#[tokio::test]
async fn slow_parts_of_a_request_run_into_their_limits() {
    let limits = Limits {
        head_time: Duration::from_millis(50),
        body_time: Duration::from_millis(50),
        deadline: Duration::from_millis(50),
        ..roomy()
    };
    let rig = Setup {
        limits,
        ..Setup::default()
    }
    .start()
    .await;
    let mut silent = rig.connect().await;
    assert!(silent.ends_silently().await);
    let mut head = rig.connect().await;
    head.write("GET /free HTTP/1.1\r\nhost:").await;
    assert!(head.ends_silently().await);
    let body = post("/echo", "{\"chainId\":\"a\"}");
    let answer = rig.send(&body[..body.len() - 1]).await;
    assert_eq!(answer.status, 408, "{answer:?}");
    let answer = rig.get("/slow").await;
    assert_eq!(answer.status, 504, "{answer:?}");
    assert!(answer.body.contains("DEADLINE_EXCEEDED"));
}
