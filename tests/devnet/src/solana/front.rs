//! One provider of the chain: JSON-RPC over HTTP on a port of its own.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use url::Url;

use super::{Shared, rpc};

/// A running provider. Dropping it closes the port and every connection.
#[derive(Debug)]
pub struct Front {
    pub url: Url,
    behind: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Front {
    pub(super) async fn start(ledger: Shared) -> Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let url = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        let behind = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(serve(listener, ledger, behind.clone()));
        Ok(Self { url, behind, task })
    }

    /// From now on it shows the chain without its newest `blocks` blocks.
    pub fn fall_behind(&self, blocks: usize) {
        self.behind.store(blocks, SeqCst);
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, ledger: Shared, behind: Arc<AtomicUsize>) {
    // Ends with the task: connections must not outlive the provider.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (ledger, behind) = (ledger.clone(), behind.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (ledger, behind) = (ledger.clone(), behind.load(SeqCst));
            async move { Ok::<_, Infallible>(respond(ledger, behind, request).await) }
        });
        connections.spawn(async move {
            let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            // An error here is a connection that the client closed.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn respond(
    ledger: Shared,
    behind: usize,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes());
    let call = body
        .ok()
        .and_then(|body| serde_json::from_slice::<Value>(&body).ok());
    let Some(call) = call else {
        return plain(StatusCode::BAD_REQUEST, &json!("not JSON"));
    };
    // A transaction may run for a while.
    let done = tokio::task::spawn_blocking(move || match &call {
        Value::Array(batch) => batch
            .iter()
            .map(|call| answer(&ledger, behind, call))
            .collect(),
        call => answer(&ledger, behind, call),
    });
    match done.await {
        Ok(answer) => plain(StatusCode::OK, &answer),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, &Value::Null),
    }
}

fn answer(ledger: &Shared, behind: usize, call: &Value) -> Value {
    let method = call["method"].as_str().unwrap_or_default();
    let done = rpc::answer(&mut ledger.lock(), behind, (method, &call["params"]));
    match done {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": call["id"], "result": result }),
        Err(refused) => {
            let mut error = json!({ "code": refused.code, "message": refused.message });
            if !refused.data.is_null() {
                error["data"] = refused.data;
            }
            json!({ "jsonrpc": "2.0", "id": call["id"], "error": error })
        }
    }
}

fn plain(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body.to_string().into()));
    *answer.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}
