//! An HTTP server in this process, for nodes that a test scripts. The conformance tests have this file, too.

use std::error::Error;

use hyper::{
    Request, Response,
    body::{Body, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};

/// Ends with all its connections when dropped.
pub struct Server {
    pub port: u16,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves on a free port. An error of `answer` closes the connection.
pub async fn serve<A, F, B, E>(answer: A) -> Server
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    E: Into<Box<dyn Error + Send + Sync>> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            connections.spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new();
                let _ended = connection
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await;
            });
        }
    });
    Server { port, task }
}
