//! A server that answers whole requests with whole answers, and ends with its owner.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Request, Response, StatusCode, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A request in memory.
pub struct Asked {
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Ends when dropped.
pub struct Server {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// `None` from `answer` closes the connection without one.
pub async fn serve<F, A>(answer: F) -> Server
where
    F: Fn(Asked) -> A + Send + Sync + 'static,
    A: Future<Output = Option<Response<Full<Bytes>>>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| one(answer.clone(), request));
                let _ended = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    Server { address, task }
}

async fn one<F, A>(
    answer: Arc<F>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, std::io::Error>
where
    F: Fn(Asked) -> A,
    A: Future<Output = Option<Response<Full<Bytes>>>>,
{
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_or_else(|_| Bytes::new(), |b| b.to_bytes());
    let asked = Asked {
        target: parts.uri.to_string(),
        headers: parts.headers,
        body,
    };
    answer(asked)
        .await
        .ok_or_else(|| std::io::Error::other("dropped on purpose"))
}

/// A server that answers anything with the JSON `body`, of which a byte comes each `pause`.
pub async fn dripping(body: Vec<u8>, pause: Duration) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let body = Arc::new(body);
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let body = body.clone();
            tokio::spawn(async move { drip(stream, &body, pause).await });
        }
    });
    Server { address, task }
}

/// Ends when it is done, or when nobody listens any more.
async fn drip(mut stream: TcpStream, body: &[u8], pause: Duration) -> std::io::Result<()> {
    let mut asked = [0; 1 << 10];
    let _length = stream.read(&mut asked).await?;
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    for byte in body {
        tokio::time::sleep(pause).await;
        stream.write_all(&[*byte]).await?;
    }
    Ok(())
}

/// 200 (or another status) with JSON.
pub fn json(status: StatusCode, body: Vec<u8>) -> Response<Full<Bytes>> {
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    response.body(Full::new(Bytes::from(body))).unwrap()
}
