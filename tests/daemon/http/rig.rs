//! A listener on port 0 with a few routes, and a client that sends exactly the bytes it is given.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, stream};
use hyper::{Method, header::HeaderValue};
use intentd::http::{
    Access, ApiError, ChainReadiness, Docs, Each, Flag, Gate, Handler, Keys, Limits, Number, Query,
    Readiness, Request, Response, Route, Router, Shape, Socket, Surface, System, Text,
    forwarded::Proxies,
    limit::{Quota, Standing},
    serve, system,
};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use tower_http::cors::CorsLayer;
use utoipa::ToSchema;

/// What the slow route waits for and tells.
#[derive(Default)]
pub struct State {
    pub begun: Notify,
    pub go: Notify,
    /// Told when a stream's reader or a socket's peer has gone.
    pub gone: Notify,
}

#[derive(Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Echo {
    chain_id: Text,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flag: Option<Flag>,
}

const fn route(path: &'static str, access: Access, handler: Handler<State>) -> Route<State> {
    Route {
        method: Method::GET,
        path,
        access,
        handler,
        docs: None,
    }
}

fn target(request: &Request) -> Result<Response, ApiError> {
    Response::json(&request.target)
}

static ROUTES: [Route<State>; 8] = [
    route("/chains/v1", Access::Protected, |_, request| {
        async move { target(&request) }.boxed()
    }),
    route("/free", Access::Open, |_, request| {
        async move { target(&request) }.boxed()
    }),
    route("/slow", Access::Protected, |state, _| {
        async move { slow(&state).await }.boxed()
    }),
    route("/repeat", Access::Socket, |_, request| {
        async move { request.upgrade(repeat) }.boxed()
    }),
    route("/ticks", Access::Open, |state, _| {
        async move { Ok(ticks(state)) }.boxed()
    }),
    route("/few", Access::Protected, |_, _| {
        let over = Standing {
            allowed: false,
            limit: 1,
            remaining: 0,
            reset_ms: 7_000,
        };
        async move { Err(ApiError::RateLimited(over)) }.boxed()
    }),
    route("/panic", Access::Protected, |_, _| {
        async { panic!("on purpose") }.boxed()
    }),
    Route {
        method: Method::POST,
        path: "/echo",
        access: Access::Protected,
        handler: |_, request| async move { echo(&request) }.boxed(),
        docs: Some(Docs {
            summary: "Gives back what was understood",
            text: "Reads the body as its type and answers with it.",
            group: "Test",
            query: Query::NONE,
            body: Some(Shape::of::<Echo>()),
            answer: Shape::of::<Echo>(),
            also: &[],
        }),
    },
];

fn echo(request: &Request) -> Result<Response, ApiError> {
    Response::json(&request.json::<Echo>()?)
}

/// Says back what it hears.
async fn repeat(mut socket: Socket) {
    let end = loop {
        let said = match socket.next().await {
            Ok(text) => socket.send(text).await,
            Err(end) => Err(end),
        };
        if let Err(end) = said {
            break end;
        }
    };
    socket.close(end).await;
}

/// One piece at once, and one for every `go`.
fn ticks(state: Arc<State>) -> Response {
    struct Reader(Arc<State>);
    impl Drop for Reader {
        fn drop(&mut self) {
            self.0.gone.notify_one();
        }
    }
    let reader = Reader(state);
    let first = stream::once(async { Bytes::from_static(b"tick\n") });
    let others = stream::unfold(reader, |reader| async {
        reader.0.go.notified().await;
        Some((Bytes::from_static(b"tock\n"), reader))
    });
    Response::stream(HeaderValue::from_static("text/plain"), first.chain(others))
}

async fn slow(state: &State) -> Result<Response, ApiError> {
    state.begun.notify_one();
    state.go.notified().await;
    Response::json(&"done")
}

/// How a listener is set up.
pub struct Setup {
    pub limits: Limits,
    pub key: Option<&'static str>,
    pub keyless: Option<u32>,
    pub version: Option<String>,
    pub dead_chain: bool,
    pub cors: Option<CorsLayer>,
    pub proxies: Proxies,
    pub lenient: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            limits: roomy(),
            key: None,
            keyless: None,
            version: None,
            dead_chain: false,
            cors: None,
            proxies: Proxies::default(),
            lenient: false,
        }
    }
}

/// Everybody comes from one address here.
pub fn roomy() -> Limits {
    let many = 100_000;
    Limits {
        each: Each {
            connections: many,
            requests: many,
            sockets: many,
            messages: Quota {
                max: u32::MAX,
                window_ms: 60_000,
            },
        },
        ..Limits::default()
    }
}

/// A running listener.
pub struct Rig {
    pub state: Arc<State>,
    pub address: SocketAddr,
    pub shutdown: CancellationToken,
    pub ended: JoinHandle<()>,
}

impl Setup {
    pub async fn start(self) -> Rig {
        let state = Arc::new(State::default());
        let keys = self.key.map(|key| Keys::new([(key, "test")]));
        let keyless = self.keyless.map(|max| Quota {
            max,
            window_ms: 3_600_000,
        });
        let router = Router::default()
            .with(&state, &ROUTES)
            .and_then(|router| router.with(&Arc::new(self.system()), &system::OPERATIONS))
            .unwrap();
        let surface = Surface {
            gate: Gate::new(keys, keyless),
            limits: self.limits,
            cors: self.cors,
            proxies: self.proxies,
            lenient: self.lenient,
            ..Surface::new("test", "Test API", router)
        };
        let app = surface.open().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let ended = tokio::spawn(serve(listener, Arc::new(app), shutdown.clone()));
        Rig {
            state,
            address,
            shutdown,
            ended,
        }
    }

    fn system(&self) -> System {
        let dead = self.dead_chain;
        let chain = move |id: &str, ready| ChainReadiness {
            id: id.into(),
            ready,
            reason: (!ready).then(|| "no quorum".into()),
            warnings: Vec::new(),
        };
        System {
            version: self.version.clone(),
            readiness: Arc::new(move || {
                let chains = vec![chain("one", true), chain("two", !dead)];
                async move { Readiness::of(chains) }.boxed()
            }),
            metrics: Arc::new(|| intentd::telemetry::Metrics::install().unwrap().render()),
        }
    }
}

/// An answer as it came over the wire.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

impl Rig {
    pub async fn connect(&self) -> Client {
        Client(TcpStream::connect(self.address).await.unwrap())
    }

    /// One request on a connection of its own.
    pub async fn send(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut client = self.connect().await;
        client.write(bytes).await;
        client.answer(false).await.expect("an answer")
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n"))
            .await
    }
}

/// A connection that sends exactly the bytes it is given.
pub struct Client(pub TcpStream);

impl Client {
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        // The server may have hung up already, which the answer then shows.
        self.0.write_all(bytes.as_ref()).await.ok();
    }

    /// The next answer; `None` when the connection ended without one.
    pub async fn answer(&mut self, headless: bool) -> Option<Answer> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let mut answer = Answer {
            status,
            head,
            body: String::new(),
        };
        let length: usize = answer
            .header("content-length")
            .unwrap_or("0")
            .parse()
            .ok()?;
        let mut body = vec![0; if headless { 0 } else { length }];
        self.0.read_exact(&mut body).await.ok()?;
        answer.body = String::from_utf8_lossy(&body).into_owned();
        Some(answer)
    }

    /// Waits until the server has hung up; whether it sent nothing more before.
    pub async fn ends_silently(&mut self) -> bool {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).await.ok();
        rest.is_empty()
    }
}

/// A POST of JSON.
pub fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

/// Whether nearly all of a window of so many seconds is left.
pub fn is_nearly(seconds: Option<&str>, window: u64) -> bool {
    let left: u64 = seconds.unwrap().parse().unwrap();
    (window - 600..=window).contains(&left)
}
