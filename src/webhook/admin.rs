//! The operator's view of webhooks, and the operator's commands.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::{
    WebhookContext, WebhookError,
    attempt::newest_dead,
    delivery_request::{Content, DeliveryRequest},
    fair_queue::Label,
    schedule::{self, Reply},
};
use crate::{
    integrator::Integrator,
    request::event::Event,
    store::{
        Batch, Expect, Kind, StoreError, by_way_of,
        rows::{
            self, DEAD, DELIVERY, RowError,
            dead::Dead,
            delivery::{Delivery, newest, of, parts},
        },
    },
};

/// The most dead deliveries that one command sends again.
pub const REPLAYED: usize = 1_000;
/// The most rows per read.
const PAGE: usize = 1_024;
/// The number of a test event; no real event has it.
const TEST: u64 = 0;

/// Why a command of the operator fails.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    #[error("there is no integrator called {0}")]
    Unknown(String),
    #[error("{0} has no endpoint")]
    NoEndpoint(String),
    #[error("event {0} does not exist, or is no longer kept")]
    NoEvent(u64),
    #[error("event {0} does not belong to {1}")]
    Foreign(u64, String),
    #[error("event {0} belongs to no key")]
    Keyless(u64),
    #[error("event {0} already waits for its delivery")]
    Waiting(u64),
    #[error("the daemon is shutting down")]
    Ending,
}

by_way_of!(AdminError, WebhookError: StoreError, RowError);

/// An endpoint. Times are unix milliseconds; the last ones are since the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub label: String,
    /// `None`: the endpoint was removed.
    pub url: Option<String>,
    pub waiting: u64,
    pub dead: u64,
    pub last_success: Option<u64>,
    pub last_failure: Option<(u64, String)>,
}

/// An event and its delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub number: u64,
    pub label: Option<String>,
    pub body: String,
    pub waiting: Option<Delivery>,
    pub dead: Option<Dead>,
}

/// The outcome of a test delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    pub said: String,
    /// Milliseconds.
    pub took: u64,
    pub delivered: bool,
}

/// The last outcomes of an endpoint's tries.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub last_success: Option<u64>,
    pub last_failure: Option<(u64, String)>,
}

/// A message from the operator's handle to the worker.
#[derive(Debug)]
pub(super) enum Command {
    /// There are new rows, owed since `at` (unix milliseconds).
    Owed {
        label: Label,
        numbers: Vec<u64>,
        at: u64,
    },
    Standing(oneshot::Sender<HashMap<String, Standing>>),
}

/// Answers the operator's questions about webhooks and runs commands.
#[derive(Clone)]
pub struct AdminHandle {
    context: Arc<WebhookContext>,
    commands: mpsc::Sender<Command>,
}

impl AdminHandle {
    pub(super) fn new(context: Arc<WebhookContext>, commands: mpsc::Sender<Command>) -> Self {
        Self { context, commands }
    }

    /// All endpoints, or the endpoint of `label`.
    pub async fn list(&self, label: Option<&str>) -> Result<Vec<Endpoint>, AdminError> {
        let integrators = self.context.integrators.all();
        if let Some(label) = label {
            self.integrator(label)?;
        }
        let mut standing = self.standing().await?;
        let mut list = Vec::new();
        for (name, integrator) in integrators.iter() {
            if label.is_some_and(|label| label != name) {
                continue;
            }
            let standing = standing.remove(name).unwrap_or_default();
            let endpoint = Endpoint {
                label: name.clone(),
                url: integrator.webhook.as_ref().map(|hook| hook.url.to_string()),
                waiting: self.count(DELIVERY, name).await?,
                dead: self.count(DEAD, name).await?,
                last_success: standing.last_success,
                last_failure: standing.last_failure,
            };
            let rows = endpoint.waiting + endpoint.dead;
            if endpoint.url.is_some() || rows > 0 || label.is_some() {
                list.push(endpoint);
            }
        }
        Ok(list)
    }

    /// Event `number` with its delivery.
    pub async fn find(&self, number: u64) -> Result<Shown, AdminError> {
        let (_, event) = self.event(number).await?;
        let (mut waiting, mut dead) = (None, None);
        if let Some(label) = &event.key {
            let store = self.context.requests.store();
            let found = store.read(&rows::delivery::key(label, number)).await?;
            waiting = found.map(|bytes| Delivery::decode(&bytes)).transpose()?;
            let found = store.read(&rows::dead::key(label, number)).await?;
            dead = found.map(|bytes| Dead::decode(&bytes)).transpose()?;
        }
        Ok(Shown {
            number,
            body: event.body(true),
            label: event.key,
            waiting,
            dead,
        })
    }

    /// Sends event `number` again to its integrator and returns the label. A `label` that is given must be that
    /// integrator's.
    pub async fn replay(&self, number: u64, label: Option<&str>) -> Result<String, AdminError> {
        let (bytes, event) = self.event(number).await?;
        let owner = event.key.ok_or(AdminError::Keyless(number))?;
        if let Some(other) = label.filter(|label| *label != owner) {
            return Err(AdminError::Foreign(number, other.to_owned()));
        }
        if self.integrator(&owner)?.webhook.is_none() {
            return Err(AdminError::NoEndpoint(owner));
        }
        let at = (self.context.clock)();
        let batch = Batch::new().expect(rows::event::key(number), Expect::Equals(bytes));
        let batch = again(batch, &owner, number, at)?;
        let committed = self.context.requests.store().commit(batch).await?;
        if !committed.is_applied() {
            return Err(AdminError::Waiting(number));
        }
        self.owed(&owner, vec![number], at).await?;
        Ok(owner)
    }

    /// Sends the oldest dead deliveries of `label`, or of all endpoints, again: at most [`REPLAYED`]. Returns their
    /// number.
    pub async fn replay_dead(&self, label: Option<&str>) -> Result<u64, AdminError> {
        if let Some(label) = label {
            self.integrator(label)?;
        }
        let integrators = self.context.integrators.all();
        let mut count = 0;
        for (name, integrator) in integrators.iter() {
            let asked = label.is_none_or(|label| label == name);
            if asked && integrator.webhook.is_some() && count < REPLAYED {
                count += self.replay_some(name, REPLAYED - count).await?;
            }
        }
        Ok(count as u64)
    }

    /// Sends one signed sample event to the endpoint of `label`.
    pub async fn test(&self, label: &str) -> Result<Tested, AdminError> {
        let to = self.integrator(label)?;
        if to.webhook.is_none() {
            return Err(AdminError::NoEndpoint(label.to_owned()));
        }
        let now = (self.context.clock)();
        let content = Content {
            number: TEST,
            body: sample(now).body(true),
            given_up: newest_dead(&self.context, label).await?,
        };
        let delivery_request = DeliveryRequest::write(Some(&to), content, now, self.context.reach);
        let reply = match delivery_request {
            Ok(delivery_request) => self.context.post.send(delivery_request, now).await,
            Err(why) => Reply::Barred(why),
        };
        Ok(Tested {
            said: schedule::said(&reply),
            took: (self.context.clock)().saturating_sub(now),
            delivered: matches!(reply, Reply::Status(200..=299, _)),
        })
    }

    async fn replay_some(&self, label: &str, most: usize) -> Result<usize, AdminError> {
        let store = self.context.requests.store();
        let page = store.scan(of(DEAD, label, 0, most)).await?;
        let at = (self.context.clock)();
        let mut numbers = Vec::new();
        for (key, bytes) in page {
            let Some((_, number)) = parts(&key.name) else {
                continue;
            };
            // The event is kept as long as the delivery row exists.
            let batch = Batch::new().expect(key, Expect::Equals(bytes));
            let batch = again(batch, label, number, at)?;
            if store.commit(batch).await?.is_applied() {
                numbers.push(number);
            }
        }
        let count = numbers.len();
        self.owed(label, numbers, at).await?;
        Ok(count)
    }

    async fn owed(&self, label: &str, numbers: Vec<u64>, at: u64) -> Result<(), AdminError> {
        let label = label.into();
        let sent = self.commands.send(Command::Owed { label, numbers, at });
        sent.await.map_err(|_| AdminError::Ending)
    }

    async fn standing(&self) -> Result<HashMap<String, Standing>, AdminError> {
        let (reply, answer) = oneshot::channel();
        let asked = self.commands.send(Command::Standing(reply)).await;
        asked.map_err(|_| AdminError::Ending)?;
        answer.await.map_err(|_| AdminError::Ending)
    }

    fn integrator(&self, label: &str) -> Result<Arc<Integrator>, AdminError> {
        let found = self.context.integrators.all().get(label).cloned();
        found.ok_or_else(|| AdminError::Unknown(label.to_owned()))
    }

    async fn event(&self, number: u64) -> Result<(Vec<u8>, Event), AdminError> {
        let key = rows::event::key(number);
        let found = self.context.requests.store().read(&key).await?;
        let bytes = found.ok_or(AdminError::NoEvent(number))?;
        let (_, event) = rows::event::row(&key, &bytes)?;
        Ok((bytes, event))
    }

    async fn count(&self, kind: Kind, label: &str) -> Result<u64, AdminError> {
        let store = self.context.requests.store();
        if store.scan(newest(kind, label)).await?.is_empty() {
            return Ok(0);
        }
        let (mut count, mut after) = (0, 0);
        loop {
            let page = store.scan(of(kind, label, after, PAGE)).await?;
            count += page.len() as u64;
            match page.last().and_then(|(key, _)| parts(&key.name)) {
                Some((_, last)) if page.len() == PAGE => after = last,
                _ => return Ok(count),
            }
        }
    }
}

/// Starts a delivery again, unless it already waits.
fn again(batch: Batch, label: &str, number: u64, at: u64) -> Result<Batch, RowError> {
    let key = rows::delivery::key(label, number);
    Ok(batch
        .expect(key.clone(), Expect::Absent)
        .put(key, Delivery::fresh(at).encode()?)
        .delete(rows::dead::key(label, number)))
}

/// A sample event with every field set, of a request that does not exist.
fn sample(now: u64) -> Event {
    let request = alloy::primitives::B256::ZERO;
    let data = format!(
        r#"{{"status":"success","inTxHashes":["{request}"],"txHashes":["{request}"],"updatedAt":{now},"originChainId":1,"destinationChainId":10,"depositAddress":null,"requestId":"{request}","referrer":null,"details":null,"failReason":"N/A","refundFailReason":"N/A"}}"#
    );
    Event {
        request,
        key: None,
        version: 0,
        at: now,
        data,
        referrer: None,
    }
}
