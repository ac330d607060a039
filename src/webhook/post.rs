//! Sends POST requests to endpoints; no other code of this module opens connections. The sender resolves names
//! itself, checks every address, and connects to a checked address, so a later change of the name's records has no
//! effect. It follows no redirects and uses no proxies.

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
/// The most bytes of an answer that the sender reads, and for how long, so that it can use the connection again.
const READ: usize = 4 << 10;
const READING: Duration = Duration::from_secs(1);
/// The most idle connections per endpoint, and how long the sender keeps them.
const IDLE: usize = 4;
const IDLING: Duration = Duration::from_secs(30);

/// Sends deliveries to endpoints.
#[async_trait]
pub trait Post: Send + Sync {
    /// Makes one try at `now` (unix milliseconds); it ends within about ten seconds.
    async fn send(&self, delivery_request: DeliveryRequest, now: u64) -> Reply;
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

    /// As [`Self::new`], with another resolver.
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
    async fn send(&self, delivery_request: DeliveryRequest, now: u64) -> Reply {
        // The resolver does not see an IP address, so it is checked here.
        if let Err(why) = self.reach.endpoint(&delivery_request.url) {
            return Reply::Barred(why.to_string());
        }
        let request = self
            .client
            .post(delivery_request.url)
            .headers(delivery_request.headers);
        match request.body(delivery_request.body).send().await {
            Err(error) => Reply::Failed(why(&error)),
            Ok(answer) => {
                let asked = answer.headers().get("retry-after");
                let asked = asked.and_then(|value| value.to_str().ok());
                let reply = Reply::Status(
                    answer.status().as_u16(),
                    asked.and_then(|text| retry_after(text, now)),
                );
                // The status is the receiver's answer, even if the rest of the body does not arrive.
                let _late = tokio::time::timeout(READING, drain(answer)).await;
                reply
            }
        }
    }
}

/// Reads a short body; drops the connection of a longer one.
async fn drain(mut answer: Response) {
    let mut read = 0;
    while let Ok(Some(part)) = answer.chunk().await {
        read += part.len();
        if read > READ {
            return;
        }
    }
}

/// The innermost cause of an error, without the URL: the URL may contain a secret.
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

/// A resolver that refuses names with an address that may not be called.
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
