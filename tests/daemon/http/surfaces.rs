//! Two APIs in one process, and browsers that may or may not read their answers.

use std::sync::Arc;

use futures::FutureExt;
use hyper::{
    Method,
    header::{HeaderName, HeaderValue},
};
use intentd::http::{
    Access, ApiError, Errors, Gate, Keys, Request, Response, Route, Router, Surface, Text,
    any_origin, plain, serve,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::rig::{Client, Setup, post};

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    chain_id: Text,
    limit: Option<u8>,
}

static LIST: [Route<()>; 1] = [Route {
    method: Method::GET,
    path: "/requests/{id}",
    access: Access::Protected,
    handler: |_, request| async move { list(&request) }.boxed(),
    docs: None,
}];

fn list(request: &Request) -> Result<Response, ApiError> {
    Response::json(&(request.param("id"), request.query::<Listing>()?))
}

/// Marks the answers of one route.
fn finish(route: &'static str, response: Response) -> Response {
    match route {
        "/requests/{id}" => response.with("sunset", HeaderValue::from_static("soon")),
        _ => response,
    }
}

/// Says no in a way of its own.
const CURT: Errors = Errors {
    answer: |error| Response::raw(error.status(), r#"{"curt":true}"#.into()),
    described: &[],
    codes: &[],
};

fn exposed() -> [HeaderName; 2] {
    ["deprecation", "link"].map(HeaderName::from_static)
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one story")]
async fn two_surfaces_share_nothing_but_the_process() {
    let first = Setup {
        key: Some("first"),
        ..Setup::default()
    }
    .start()
    .await;
    let router = Router::default().with(&Arc::new(()), &LIST).unwrap();
    let second = Surface {
        gate: Gate::new(Some(Keys::new([("second", "app")])), None).or_bearer(),
        errors: CURT,
        finish: Some(Arc::new(finish)),
        cors: Some(any_origin(exposed())),
        ..Surface::new("second", "Second API", router)
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let app = Arc::new(second.open().unwrap());
    let ended = tokio::spawn(serve(listener, app, shutdown.clone()));
    let ask = async |path: &str, head: &str| {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut client = Client(stream);
        client
            .write(format!("GET {path} HTTP/1.1\r\nhost: a\r\n{head}\r\n"))
            .await;
        client.answer(false).await.unwrap()
    };

    let (own, foreign) = ("x-api-key: second\r\n", "x-api-key: first\r\n");
    let answer = ask("/requests/7?chainId=1&limit=2&x=y", own).await;
    let expected = r#"["7",{"chainId":"1","limit":2}]"#;
    assert_eq!((answer.status, answer.body.as_str()), (200, expected));
    let bearer = ask("/requests/7?chainId=1", "authorization: Bearer second\r\n").await;
    assert_eq!(bearer.status, 200);
    for (path, head, status) in [
        ("/requests/7?chainId=1", foreign, 401),
        ("/requests/7?limit=2", own, 400),
        ("/requests/7", own, 400),
        ("/chains/v1", own, 404),
    ] {
        let answer = ask(path, head).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (status, r#"{"curt":true}"#)
        );
        let marked = answer.head.contains("sunset: soon");
        assert_eq!(marked, path.starts_with("/requests"), "{}", answer.head);
    }
    let bearer = "GET /chains/v1 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer first\r\n\r\n";
    assert_eq!(first.send(bearer).await.status, 401);
    let title = |text: &str| serde_json::from_str::<Value>(text).unwrap()["info"]["title"].clone();
    assert_eq!(
        title(&ask("/documentation/json", "").await.body),
        "Second API"
    );
    assert_eq!(
        title(&first.get("/documentation/json").await.body),
        "Test API"
    );

    shutdown.cancel();
    ended.await.unwrap();
    assert_eq!(first.get("/free").await.status, 200);
}

const PREFLIGHT: &str = "OPTIONS /echo HTTP/1.1\r\nhost: a\r\norigin: https://app.example\r\naccess-control-request-method: POST\r\naccess-control-request-headers: authorization,x-api-key\r\n\r\n";

fn browser(request: &str) -> String {
    request.replacen("host: a", "host: a\r\norigin: https://app.example", 1)
}

#[tokio::test]
async fn no_page_may_read_answers_unless_the_surface_says_so() {
    let rig = Setup::default().start().await;
    let preflight = rig.send(PREFLIGHT).await;
    assert_eq!(preflight.status, 404);
    let answer = rig
        .send(browser(&post("/echo", "{\"chainId\":\"a\"}")))
        .await;
    assert_eq!(answer.status, 200);
    for answer in [preflight, answer] {
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
    }
}

#[tokio::test]
async fn pages_read_answers_and_errors_of_a_surface_that_lets_them() {
    let rig = Setup {
        key: Some("good"),
        keyless: Some(1),
        cors: Some(any_origin(exposed())),
        ..Setup::default()
    }
    .start()
    .await;
    // Preflights come without a key, and count for nobody.
    for _ in 0..3 {
        let preflight = rig.send(PREFLIGHT).await;
        assert_eq!((preflight.status, preflight.body.as_str()), (200, ""));
        assert_eq!(preflight.header("access-control-allow-origin"), Some("*"));
        let headers = preflight.header("access-control-allow-headers");
        assert_eq!(headers, Some("authorization,x-api-key"));
        let methods = preflight.header("access-control-allow-methods").unwrap();
        assert!(methods.contains("POST"), "{methods}");
        assert_eq!(preflight.header("access-control-allow-credentials"), None);
    }
    for status in [200, 429] {
        let answer = rig
            .send(browser(&post("/echo", "{\"chainId\":\"a\"}")))
            .await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let exposed = answer.header("access-control-expose-headers");
        assert_eq!(exposed, Some("deprecation,link"));
        assert_eq!(answer.header("x-ratelimit-limit"), Some("1"));
    }
    let twice = "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    let smuggled = rig
        .send(PREFLIGHT.replacen("\r\n\r\n", &format!("\r\n{twice}"), 1))
        .await;
    assert_eq!(
        (smuggled.status, smuggled.header("connection")),
        (400, Some("close"))
    );
}

#[tokio::test]
async fn plain_errors_are_what_a_surface_has_by_itself() {
    let surface = Surface::new("plain", "Plain", Router::default());
    assert!(surface.cors.is_none());
    assert_eq!(surface.errors.described.len(), plain::PLAIN.described.len());
    assert!(surface.open().is_ok());
}

#[tokio::test]
async fn a_lenient_surface_knows_paths_behind_slashes_and_names_the_methods_it_takes() {
    let rig = Setup {
        lenient: true,
        ..Setup::default()
    };
    let rig = rig.start().await;
    for path in ["/free", "//free", "///free?a=1"] {
        let answer = rig.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    for path in ["/free/", "/free//", "//nope"] {
        assert_eq!(rig.get(path).await.status, 404, "{path}");
    }
    let put = |path: &str| format!("PUT {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    for (request, allowed) in [
        (put("/free"), "GET, HEAD"),
        (put("//free"), "GET, HEAD"),
        (put("/free").replace("PUT", "OPTIONS"), "GET, HEAD"),
        (put("/echo").replace("PUT", "GET"), "POST"),
    ] {
        let answer = rig.send(&request).await;
        assert_eq!(answer.status, 405, "{request}");
        assert_eq!(answer.header("allow"), Some(allowed), "{request}");
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body["code"], "METHOD_NOT_ALLOWED");
        assert_eq!(body["retryable"], false);
    }
    for unknown in ["/nope", "*"] {
        let request = put(unknown).replace("PUT", "OPTIONS");
        assert_eq!(rig.send(request).await.status, 404, "{unknown}");
    }
}

#[tokio::test]
async fn paths_are_exact_elsewhere() {
    let rig = Setup::default().start().await;
    for request in ["GET //free", "PUT /free", "GET /echo"] {
        let answer = rig
            .send(format!("{request} HTTP/1.1\r\nhost: a\r\n\r\n"))
            .await;
        assert_eq!(answer.status, 404, "{request}");
        assert_eq!(answer.header("allow"), None);
    }
}
