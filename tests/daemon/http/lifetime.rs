//! How connections live and end.

use std::time::Duration;

use intentd::http::Limits;

use super::rig::{Client, Rig, Setup, post, roomy};

const GET: &str = "GET /free HTTP/1.1\r\nhost: a\r\n\r\n";
const SLOW: &str = "GET /slow HTTP/1.1\r\nhost: a\r\n\r\n";

async fn with(limits: Limits) -> Rig {
    Setup {
        limits,
        ..Setup::default()
    }
    .start()
    .await
}

#[tokio::test]
async fn connection_is_kept_for_more_requests() {
    let rig = Setup::default().start().await;
    let mut client = rig.connect().await;
    for _ in 0..3 {
        client.write(GET).await;
        let answer = client.answer(false).await.unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "\"/free\""));
        client.write(post("/echo", "{}")).await;
        assert_eq!(client.answer(false).await.unwrap().status, 400);
    }
    client.write(GET.repeat(5)).await;
    for _ in 0..5 {
        assert_eq!(client.answer(false).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let rig = Setup::default().start().await;
    let mut client = rig.connect().await;
    for _ in 0..2 {
        client
            .write("HEAD /lives/v1 HTTP/1.1\r\nhost: a\r\n\r\n")
            .await;
        let answer = client.answer(true).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-length"), Some("15"));
        assert_eq!(
            answer.header("content-type"),
            Some("application/json; charset=utf-8")
        );
    }
}

#[tokio::test]
async fn silent_connection_ends_and_a_busy_one_does_not() {
    let rig = with(Limits {
        idle: Duration::from_millis(50),
        ..roomy()
    })
    .await;
    let mut busy = rig.connect().await;
    busy.write(SLOW).await;
    rig.state.begun.notified().await;
    let mut idle = rig.connect().await;
    idle.write(GET).await;
    assert_eq!(idle.answer(false).await.unwrap().status, 200);
    assert!(idle.ends_silently().await);
    rig.state.go.notify_one();
    assert_eq!(busy.answer(false).await.unwrap().body, "\"done\"");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_room() {
    let rig = with(Limits {
        connections: 1,
        ..roomy()
    })
    .await;
    let mut first = rig.connect().await;
    first.write(SLOW).await;
    rig.state.begun.notified().await;
    let mut second = rig.connect().await;
    second.write(GET).await;
    let refused = tokio::time::timeout(Duration::from_millis(50), second.answer(false)).await;
    assert!(refused.is_err(), "answered beyond the limit");
    drop(first);
    assert_eq!(second.answer(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn requests_beyond_the_limit_are_told_so() {
    let rig = with(Limits {
        requests: 1,
        ..roomy()
    })
    .await;
    let mut first = rig.connect().await;
    first.write(SLOW).await;
    rig.state.begun.notified().await;
    let answer = rig.get("/chains/v1").await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("\"OVERLOADED\""), "{answer:?}");
    assert_eq!(rig.get("/lives/v1").await.status, 200);
    rig.state.go.notify_one();
    assert_eq!(first.answer(false).await.unwrap().status, 200);
    assert_eq!(rig.get("/chains/v1").await.status, 200);
}

/// A GET with a key, known or not.
fn keyed(path: &str, key: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n")
}

/// Sends `count` requests that wait until they are told to go on.
async fn waiting(rig: &Rig, request: &str, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = rig.connect().await;
        client.write(request).await;
        rig.state.begun.notified().await;
        clients.push(client);
    }
    clients
}

/// Lets them go on; each is answered.
async fn done(rig: &Rig, clients: Vec<Client>) {
    for mut client in clients {
        rig.state.go.notify_one();
        assert_eq!(client.answer(false).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn strangers_who_wait_leave_keys_half_of_the_permits() {
    let limits = Limits {
        requests: 2,
        ..roomy()
    };
    let setup = Setup {
        limits,
        key: Some("k"),
        keyless: Some(100),
        ..Setup::default()
    };
    let rig = setup.start().await;
    let stranger = waiting(&rig, SLOW, 1).await;
    for key in ["", "guess"] {
        let answer = rig.send(keyed("/chains/v1", key)).await;
        assert_eq!(answer.status, 503, "{key}");
        assert!(answer.body.contains("\"OVERLOADED\""), "{answer:?}");
    }
    assert_eq!(rig.send(keyed("/chains/v1", "k")).await.status, 200);
    done(&rig, stranger).await;
    assert_eq!(rig.get("/chains/v1").await.status, 200);
    // Keys may have them all.
    let known = waiting(&rig, &keyed("/slow", "k"), 2).await;
    assert_eq!(rig.send(keyed("/chains/v1", "k")).await.status, 503);
    assert_eq!(rig.get("/chains/v1").await.status, 503);
    done(&rig, known).await;
}

#[tokio::test]
async fn where_nobody_has_a_key_everybody_has_all_permits() {
    let rig = with(Limits {
        requests: 2,
        ..roomy()
    })
    .await;
    let all = waiting(&rig, SLOW, 2).await;
    assert_eq!(rig.get("/chains/v1").await.status, 503);
    done(&rig, all).await;
    assert_eq!(rig.get("/chains/v1").await.status, 200);
}

/// Somebody who sends slowly holds nobody up, and is answered when it is done.
#[tokio::test]
async fn a_body_that_drips_in_holds_no_permit() {
    let rig = with(Limits {
        requests: 1,
        ..roomy()
    })
    .await;
    let whole = post("/echo", "{\"chainId\":\"a\"}");
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut client = rig.connect().await;
        client
            .write(format!("{head}\r\nexpect: 100-continue\r\n\r\n"))
            .await;
        // The server says so when it begins to wait for the body.
        assert_eq!(client.answer(true).await.unwrap().status, 100);
        client.write(&body[..1]).await;
        slow.push(client);
    }
    assert_eq!(rig.send(&whole).await.status, 200);
    for client in &mut slow {
        for byte in body.as_bytes()[1..].chunks(1) {
            client.write(byte).await;
        }
        assert_eq!(client.answer(false).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn bodies_take_no_more_memory_than_there_is_room_for() {
    let body = "{\"chainId\":\"a\"}";
    let rig = with(Limits {
        bodies: body.len(),
        ..roomy()
    })
    .await;
    for _ in 0..3 {
        assert_eq!(rig.send(post("/echo", body)).await.status, 200);
        let answer = rig.send(post("/echo", &format!("{body} "))).await;
        assert_eq!(answer.status, 503);
        assert!(answer.body.contains("\"OVERLOADED\""), "{answer:?}");
    }
}

#[tokio::test]
async fn end_finishes_what_is_under_way_and_nothing_else() {
    let rig = Setup::default().start().await;
    let mut busy = rig.connect().await;
    busy.write(SLOW).await;
    rig.state.begun.notified().await;
    let mut used = rig.connect().await;
    used.write(GET).await;
    assert_eq!(used.answer(false).await.unwrap().status, 200);
    let mut fresh = rig.connect().await;
    rig.shutdown.cancel();
    assert!(used.ends_silently().await);
    assert!(fresh.ends_silently().await);
    assert!(tokio::net::TcpStream::connect(rig.address).await.is_err());
    rig.state.go.notify_one();
    let answer = busy.answer(false).await.unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, "\"done\""));
    assert!(busy.ends_silently().await);
    rig.ended.await.unwrap();
}

#[tokio::test]
async fn end_does_not_wait_for_ever() {
    let rig = with(Limits {
        drain: Duration::from_millis(50),
        ..roomy()
    })
    .await;
    let mut stuck = rig.connect().await;
    stuck.write(SLOW).await;
    rig.state.begun.notified().await;
    let (mut send, h2) = h2::client::handshake(rig.connect().await.0).await.unwrap();
    let h2 = tokio::spawn(h2);
    let request = hyper::Request::get("http://a/slow").body(()).unwrap();
    let (_answer, _) = send.send_request(request, true).unwrap();
    rig.state.begun.notified().await;
    rig.shutdown.cancel();
    rig.ended.await.unwrap();
    assert!(stuck.ends_silently().await);
    drop(send);
    h2.await.unwrap().ok();
}

/// As many as a test process with the usual 1,024 descriptors can hold on both ends.
#[tokio::test]
async fn idle_connections_leave_room_for_others() {
    let rig = Setup::default().start().await;
    let mut idle: Vec<Client> = Vec::new();
    for number in 0..400 {
        let mut client = rig.connect().await;
        if number % 2 == 0 {
            client.write(GET).await;
            assert_eq!(client.answer(false).await.unwrap().status, 200);
        }
        idle.push(client);
    }
    assert_eq!(rig.get("/free").await.status, 200);
    rig.shutdown.cancel();
    rig.ended.await.unwrap();
}
