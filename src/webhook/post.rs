//! Sends POST requests to endpoints; no other code of this module opens connections. Names are resolved here, every
//! address is judged, and the connection goes to the judged address: changing the name's records a moment later has
//! no effect. Redirects are not followed and proxies are not used.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::future::BoxFuture;
use reqwest::{
    Client, Response,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};

use super::{
    delivery_request::DeliveryRequest,
    guard::{Barred, Reach},
    schedule::{Reply, retry_after},
};

/// The time limit of a whole try.
const PATIENCE: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(3);
/// How many bytes of an answer are read, and for how long: enough to use the connection again.
const READ: usize = 4 << 10;
const READING: Duration = Duration::from_secs(1);
/// Idle connections that are kept for an endpoint, and for how long.
const IDLE: usize = 4;
const IDLING: Duration = Duration::from_secs(30);

/// Sends deliveries to endpoints.
#[async_trait]
pub trait Post: Send + Sync {
    /// Makes one try at `now` (unix milliseconds); it ends within about ten seconds.
    async fn send(&self, letter: DeliveryRequest, now: u64) -> Reply;
}

/// Sends over HTTP.
pub struct HttpSender {
    client: Client,
    reach: Reach,
}

impl HttpSender {
    pub fn new(reach: Reach) -> reqwest::Result<Self> {
        Self::resolving(reach, Arc::new(System))
    }

    /// The same with another resolver.
    fn resolving(reach: Reach, names: Arc<dyn Names>) -> reqwest::Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .https_only(reach == Reach::Public)
            .connect_timeout(CONNECT)
            .timeout(PATIENCE)
            .pool_max_idle_per_host(IDLE)
            .pool_idle_timeout(IDLING)
            .http1_only()
            .dns_resolver(Arc::new(Guarded { reach, names }));
        Ok(Self {
            client: client.build()?,
            reach,
        })
    }
}

#[async_trait]
impl Post for HttpSender {
    async fn send(&self, letter: DeliveryRequest, now: u64) -> Reply {
        // An IP address is not resolved, so the resolver cannot judge it: it is judged here.
        if let Err(why) = self.reach.endpoint(&letter.url) {
            return Reply::Barred(why.to_string());
        }
        let request = self.client.post(letter.url).headers(letter.headers);
        match request.body(letter.body).send().await {
            Err(error) => Reply::Failed(why(&error)),
            Ok(answer) => {
                let asked = answer.headers().get("retry-after");
                let asked = asked.and_then(|value| value.to_str().ok());
                let reply = Reply::Status(
                    answer.status().as_u16(),
                    asked.and_then(|text| retry_after(text, now)),
                );
                // The status is the receiver's answer, whatever happens to the rest.
                let _late = tokio::time::timeout(READING, drain(answer)).await;
                reply
            }
        }
    }
}

/// Reads a short body; a longer one is cut off with its connection.
async fn drain(mut answer: Response) {
    let mut read = 0;
    while let Ok(Some(part)) = answer.chunk().await {
        read += part.len();
        if read > READ {
            return;
        }
    }
}

/// What went wrong, without the URL: it may hold a secret.
fn why(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
        if cause.is::<Barred>() {
            return cause.to_string();
        }
    }
    if error.is_timeout() {
        return "timed out".into();
    }
    let kind = if error.is_connect() {
        "cannot connect"
    } else {
        "no answer"
    };
    let cause: String = cause.to_string().chars().take(120).collect();
    format!("{kind}: {cause}")
}

type Looked = BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Resolves names.
trait Names: Send + Sync {
    fn lookup(&self, name: String) -> Looked;
}

/// Resolves names by the system's resolver.
struct System;

impl Names for System {
    fn lookup(&self, name: String) -> Looked {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.collect())
        })
    }
}

/// Resolves only names of which every address may be called.
struct Guarded {
    reach: Reach,
    names: Arc<dyn Names>,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, looked) = (self.reach, self.names.lookup(name.as_str().to_owned()));
        Box::pin(async move {
            let found = looked.await?;
            for address in &found {
                reach.address(address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
