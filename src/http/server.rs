//! Sockets: accepts connections, limits them, and ends them without losing an answer.

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper::{rt::Executor, service::service_fn};
use hyper_util::{rt::TokioIo, server::conn::auto};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    addresses::{AddressLimit, AddressPermit, SocketPermit},
    line::{Line, Signals},
    locked,
    service::App,
    surface::Limits,
};

/// Answers on `listener` until `shutdown`, then gives running requests [`Limits::drain`] to finish and closes idle
/// connections at once. Returns when none of its tasks is left.
pub async fn serve(listener: TcpListener, app: Arc<App>, shutdown: CancellationToken) {
    let limits = *app.limits();
    let permits = Arc::new(Semaphore::new(limits.connections));
    let by_address = AddressLimit::new(limits.each.connections);
    let tasks = Tasks::default();
    while let Some(accepted) = shutdown
        .run_until_cancelled(accept(&listener, &permits))
        .await
    {
        let Some((stream, peer, permit)) = accepted else {
            break;
        };
        let of_address = match app.proxies().trusts(peer.ip()) {
            true => None,
            false => {
                let of_address = by_address.enter(peer.ip());
                if of_address.is_none() {
                    metrics::counter!("intentd_http_crowded_total", "surface" => app.name())
                        .increment(1);
                    continue;
                }
                of_address
            }
        };
        // Boxed once: every wrapper around the future would hold its size twice.
        let link = Link {
            peer,
            signals: Arc::default(),
            tasks: tasks.clone(),
            ending: shutdown.clone(),
            counted: Mutex::new(Counted::Connection(permit, of_address)),
        };
        let connection = Box::pin(connection(stream, app.clone(), Arc::new(link)));
        tasks.spawn(connection);
    }
    drop(listener);
    tasks.end(limits.drain).await;
}

type Accepted = (TcpStream, SocketAddr, OwnedSemaphorePermit);

/// Accepts the next connection once there is a free permit. `None` only if the semaphore was closed.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> Option<Accepted> {
    let permit = permits.clone().acquire_owned().await.ok()?;
    let mut pause = Duration::from_millis(10);
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Some((stream, peer, permit)),
            Err(error) if of_the_peer(&error) => {}
            Err(error) => {
                tracing::warn!(%error, pause_ms = pause.as_millis(), "cannot accept connections");
                metrics::counter!("intentd_http_accept_errors_total").increment(1);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        }
    }
}

/// Whether the error concerns only the connection that was being accepted.
fn of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}

/// A connection as its requests see it.
pub struct Link {
    pub peer: SocketAddr,
    pub signals: Arc<Signals>,
    pub tasks: Tasks,
    /// Cancelled when the listener ends.
    pub ending: CancellationToken,
    counted: Mutex<Counted>,
}

/// What the connection counts as until it ends.
enum Counted {
    #[expect(dead_code, reason = "held")]
    Connection(OwnedSemaphorePermit, Option<AddressPermit>),
    Socket(#[expect(dead_code, reason = "held")] Arc<SocketPermit>),
}

impl Link {
    /// Counts the connection by the socket's permit from now on, unless it already counts as a socket.
    pub fn count_as_socket(&self, permit: &Arc<SocketPermit>) {
        let mut counted = locked(&self.counted);
        if matches!(*counted, Counted::Connection(..)) {
            *counted = Counted::Socket(permit.clone());
        }
    }

    /// Whether the connection carries a long-lived answer.
    fn stays(&self) -> bool {
        matches!(*locked(&self.counted), Counted::Socket(_))
    }
}

async fn connection(stream: TcpStream, app: Arc<App>, link: Arc<Link>) {
    let limits = *app.limits();
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let (peer, ending) = (link.peer, link.ending.clone());
    let line = Line::new(stream, link.signals.clone(), limits.head_time, limits.idle);
    let builder = builder(&limits, link.tasks.clone());
    let of_service = link.clone();
    let service = service_fn(move |request| {
        let (app, link) = (app.clone(), of_service.clone());
        async move { Ok::<_, Infallible>(app.answer(&link, request).await) }
    });
    let served = builder.serve_connection_with_upgrades(TokioIo::new(line), service);
    tokio::pin!(served);
    let outcome = tokio::select! {
        outcome = served.as_mut() => outcome,
        () = ending.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
        () = tokio::time::sleep(limits.age) => {
            served.as_mut().graceful_shutdown();
            match tokio::time::timeout(limits.body_time + limits.deadline, served.as_mut()).await {
                Ok(outcome) => outcome,
                Err(_) if link.stays() => served.await,
                // The peer did not read the goodbye.
                Err(_) => return,
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%peer, error, "connection ended");
    }
}

fn builder(limits: &Limits, tasks: Tasks) -> auto::Builder<Tasks> {
    let mut builder = auto::Builder::new(tasks);
    builder
        .http1()
        .header_read_timeout(None)
        .max_headers(limits.fields)
        .max_buf_size(limits.head);
    builder
        .http2()
        .max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.streams)
        .max_pending_accept_reset_streams(limits.resets)
        .max_local_error_reset_streams(limits.resets);
    builder
}

/// The tasks of the server; its end waits for all of them.
#[derive(Clone, Default)]
pub struct Tasks {
    running: TaskTracker,
    abort: CancellationToken,
}

impl Tasks {
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let abort = self.abort.clone();
        self.running.spawn(async move {
            abort.run_until_cancelled(task).await;
        });
    }

    async fn end(&self, patience: Duration) {
        self.running.close();
        if tokio::time::timeout(patience, self.running.wait())
            .await
            .is_err()
        {
            tracing::warn!(left = self.running.len(), "connections cut at the end");
            self.abort.cancel();
            self.running.wait().await;
        }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}
