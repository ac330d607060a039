//! Keys with scopes and buckets, over real sockets.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use hyper::Method;
use intentd::http::{
    Access, ApiError, Gate, Handler, KeyLabel, Keys, Known, Request, Response, Route, Router,
    Surface, Terms,
    auth::{Plan, RATE_LIMIT, Share, Table},
    limit::Quota,
    serve,
};
use sha2::{Digest, Sha256};
use tokio::{net::TcpListener, net::TcpStream};
use tokio_util::sync::CancellationToken;

use super::rig::{Answer, Client, is_nearly};

const HOUR: Quota = Quota {
    max: 2,
    window_ms: 3_600_000,
};

fn plan() -> Plan {
    let share = |bucket| Share {
        bucket,
        counter: bucket,
        quota: HOUR,
    };
    Plan::from([share("list"), share("")])
}

const fn route(path: &'static str, access: Access, handler: Handler<()>) -> Route<()> {
    Route {
        method: Method::GET,
        path,
        access,
        handler,
        docs: None,
    }
}

const fn listing(required: bool) -> Access {
    Access::Keyed(Terms {
        scope: Some("requests:read"),
        bucket: "list",
        required,
    })
}

fn who(request: &Request) -> Result<Response, ApiError> {
    Response::json(&request.key.as_ref().map(KeyLabel::as_str))
}

static ROUTES: [Route<()>; 6] = [
    route("/v3", listing(true), |_, request| {
        async move { who(&request) }.boxed()
    }),
    route("/v2", listing(false), |_, request| {
        async move { who(&request) }.boxed()
    }),
    route("/other", Access::Counted, |_, request| {
        async move { who(&request) }.boxed()
    }),
    route("/heavy", Access::Counted, |_, request| {
        async move {
            request.weigh(4);
            who(&request)
        }
        .boxed()
    }),
    route("/dear", Access::Counted, |_, request| {
        async move {
            request.afford(2)?;
            who(&request)
        }
        .boxed()
    }),
    route("/mine", Access::Counted, |_, request| {
        async move { Response::json(&request.entitled("requests:read")?.as_str()) }.boxed()
    }),
];

struct Rig {
    address: std::net::SocketAddr,
    known: Arc<Mutex<Table>>,
    shutdown: CancellationToken,
    ended: tokio::task::JoinHandle<()>,
}

/// Keys with these scopes.
fn table(keys: &[(&str, &[&'static str])]) -> Table {
    let known = keys.iter().map(|(key, scopes)| {
        let known = Known {
            label: KeyLabel::new(&key.to_uppercase()),
            scopes: (*scopes).into(),
            plan: plan(),
            expires_at: None,
        };
        (Sha256::digest(key).into(), known)
    });
    Table::new(known)
}

impl Rig {
    async fn start() -> Self {
        let known = table(&[("reads", &["requests:read"]), ("other", &["quote"])]);
        let known = Arc::new(Mutex::new(known));
        let current = known.clone();
        let keys = Keys::looked_up(move |digest| current.lock().unwrap().find(digest, 0));
        let keyless = Quota { max: 3, ..HOUR };
        let router = Router::default().with(&Arc::new(()), &ROUTES).unwrap();
        let surface = Surface {
            gate: Gate::new(Some(keys), Some(keyless))
                .or_bearer()
                .with_names(RATE_LIMIT),
            ..Surface::new("keys", "Keys", router)
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let app = Arc::new(surface.open().unwrap());
        Self {
            address,
            known,
            ended: tokio::spawn(serve(listener, app, shutdown.clone())),
            shutdown,
        }
    }

    async fn get(&self, path: &str, key: &str) -> Answer {
        let mut client = Client(TcpStream::connect(self.address).await.unwrap());
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
        client.write(request).await;
        client.answer(false).await.unwrap()
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.ended.await.unwrap();
    }
}

#[tokio::test]
async fn routes_ask_for_keys_and_scopes() {
    let rig = Rig::start().await;
    for (path, key, status, body) in [
        (
            "/v3",
            "",
            401,
            r#"{"error":"Unauthorized","retryable":false,"docs":"/documentation/errors/UNAUTHORIZED"}"#,
        ),
        ("/v3", "reads", 200, "\"READS\""),
        (
            "/v3",
            "other",
            403,
            r#"{"error":"Forbidden","retryable":false,"docs":"/documentation/errors/FORBIDDEN"}"#,
        ),
        (
            "/mine",
            "other",
            403,
            r#"{"error":"Forbidden","retryable":false,"docs":"/documentation/errors/FORBIDDEN"}"#,
        ),
        ("/mine", "reads", 200, "\"READS\""),
        (
            "/mine",
            "",
            401,
            r#"{"error":"Unauthorized","retryable":false,"docs":"/documentation/errors/UNAUTHORIZED"}"#,
        ),
        ("/other", "__proto__", 200, "null"),
    ] {
        let answer = rig.get(path, key).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (status, body),
            "{path} {key}"
        );
    }
    rig.end().await;
}

#[tokio::test]
async fn each_answer_of_a_counted_route_says_where_its_caller_stands() {
    let rig = Rig::start().await;
    let stands = |answer: &Answer| {
        let number = |name| answer.header(name).map(str::to_owned);
        assert_eq!(number("x-ratelimit-limit"), None);
        let [limit, remaining, reset] = RATE_LIMIT.map(number);
        assert!(is_nearly(reset.as_deref(), 3600), "{}", answer.head);
        (answer.status, limit.unwrap(), remaining.unwrap())
    };
    let expect =
        |status, limit: &str, remaining: &str| (status, limit.to_owned(), remaining.to_owned());
    // Unknown keys count for their address.
    assert_eq!(stands(&rig.get("/other", "").await), expect(200, "3", "2"));
    assert_eq!(
        stands(&rig.get("/v3", "guess").await),
        expect(401, "3", "1")
    );
    assert_eq!(
        stands(&rig.get("/v2", "guess").await),
        expect(401, "3", "0")
    );
    assert_eq!(
        stands(&rig.get("/v2", "guess").await),
        expect(429, "3", "0")
    );
    // A key has its own share; that of its address is used up.
    assert_eq!(
        stands(&rig.get("/v3", "reads").await),
        expect(200, "2", "1")
    );
    assert_eq!(
        stands(&rig.get("/v2", "reads").await),
        expect(200, "2", "0")
    );
    let over = rig.get("/v3", "reads").await;
    assert_eq!(stands(&over), expect(429, "2", "0"));
    assert!(is_nearly(over.header("retry-after"), 3600));
    assert_eq!(
        over.body,
        r#"{"error":"Rate limit exceeded","retryable":true,"docs":"/documentation/errors/RATE_LIMITED"}"#
    );
    // Routes of one bucket share it.
    let over = rig.get("/v2", "reads").await;
    assert_eq!(stands(&over), expect(429, "2", "0"));
    // Other buckets and other keys are not touched.
    assert_eq!(
        stands(&rig.get("/other", "reads").await),
        expect(200, "2", "1")
    );
    assert_eq!(
        stands(&rig.get("/v3", "other").await),
        expect(403, "2", "1")
    );
    rig.end().await;
}

#[tokio::test]
async fn keys_come_and_go_while_connections_stay() {
    let rig = Rig::start().await;
    let stream = TcpStream::connect(rig.address).await.unwrap();
    let mut client = Client(stream);
    let mut ask = async || {
        let request = "GET /v3 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer reads\r\n\r\n";
        client.write(request).await;
        client.answer(false).await.unwrap().status
    };
    assert_eq!(ask().await, 200);
    *rig.known.lock().unwrap() = table(&[]);
    assert_eq!(ask().await, 401);
    *rig.known.lock().unwrap() = table(&[("reads", &["requests:read"])]);
    assert_eq!(ask().await, 200);
    rig.end().await;
}

#[tokio::test]
async fn a_key_never_has_less_than_no_key() {
    let rig = Rig::start().await;
    let limit = |answer: &Answer| answer.header("ratelimit-limit").unwrap().to_owned();
    // Two of its own, then the three that its address has without it.
    for own in ["2", "2", "3", "3", "3"] {
        let answer = rig.get("/v2", "reads").await;
        assert_eq!((answer.status, limit(&answer).as_str()), (200, own));
    }
    let over = rig.get("/v2", "reads").await;
    assert_eq!((over.status, limit(&over).as_str()), (429, "2"));
    assert_eq!(rig.get("/v2", "").await.status, 429);
    rig.end().await;
}

/// A request that makes many others counts as many.
#[tokio::test]
async fn what_is_heavy_counts_as_often_as_it_weighs() {
    let rig = Rig::start().await;
    let [_, remaining, reset] = RATE_LIMIT;
    assert_eq!(rig.get("/other", "").await.header(remaining), Some("2"));
    let heavy = rig.get("/heavy", "").await;
    assert_eq!((heavy.status, heavy.header(remaining)), (200, Some("0")));
    // Five of three: it takes two windows.
    assert!(is_nearly(heavy.header(reset), 7200));
    assert_eq!(rig.get("/other", "").await.status, 429);
    // A key's own share by its own weight.
    assert_eq!(rig.get("/heavy", "reads").await.status, 200);
    assert_eq!(rig.get("/other", "reads").await.status, 429);
    rig.end().await;
}

/// One that needs more than is left is refused, and takes nothing of what is left or comes next.
#[tokio::test]
async fn what_is_dear_is_let_in_only_where_all_of_it_fits() {
    let rig = Rig::start().await;
    let [_, remaining, reset] = RATE_LIMIT;
    let dear = rig.get("/dear", "").await;
    assert_eq!((dear.status, dear.header(remaining)), (200, Some("1")));
    let over = rig.get("/dear", "").await;
    assert_eq!((over.status, over.header(remaining)), (429, Some("0")));
    assert!(is_nearly(over.header(reset), 3600));
    assert_eq!(over.header("retry-after"), over.header(reset));
    // A key's own share.
    let dear = rig.get("/dear", "reads").await;
    assert_eq!((dear.status, dear.header(remaining)), (200, Some("0")));
    rig.end().await;
}
