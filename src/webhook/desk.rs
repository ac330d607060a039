//! What the operator can see of webhooks, and do about them.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::{
    Ground, WebhookError,
    agenda::Label,
    attempt::newest_dead,
    letter::{Content, Letter},
    schedule::{self, Reply},
};
use crate::{
    integrator::Integrator,
    request::event::Event,
    store::{
        Batch, Expect, Kind, Outcome, StoreError,
        rows::{
            self, DEAD, DELIVERY, RowError,
            dead::Dead,
            delivery::{Delivery, newest, of, parts},
        },
    },
};

/// Dead deliveries that one command sends again at most.
pub const REPLAYED: usize = 1_000;
/// Rows read at a time.
const PAGE: usize = 1_024;
/// The number of a test event; no real event has it.
const TEST: u64 = 0;

/// Why a question or command of the operator fails.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    #[error("no integrator is called {0}")]
    Unknown(String),
    #[error("{0} has no endpoint")]
    NoEndpoint(String),
    #[error("there is no event {0}, or it was too long ago")]
    NoEvent(u64),
    #[error("event {0} is none of {1}")]
    Foreign(u64, String),
    #[error("event {0} concerns no key")]
    Keyless(u64),
    #[error("event {0} is on its way already")]
    Waiting(u64),
    #[error("the daemon is about to end")]
    Ending,
}

impl From<StoreError> for DeskError {
    fn from(error: StoreError) -> Self {
        WebhookError::from(error).into()
    }
}

impl From<RowError> for DeskError {
    fn from(error: RowError) -> Self {
        WebhookError::from(error).into()
    }
}

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

/// What became of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tested {
    pub said: String,
    /// Milliseconds.
    pub took: u64,
    pub delivered: bool,
}

/// How the last tries of an endpoint ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub last_success: Option<u64>,
    pub last_failure: Option<(u64, String)>,
}

/// What the operator's handle tells the worker, or asks it.
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

/// Answers the operator's questions about webhooks and carries out commands.
#[derive(Clone)]
pub struct Desk {
    ground: Arc<Ground>,
    commands: mpsc::Sender<Command>,
}

impl Desk {
    pub(super) fn new(ground: Arc<Ground>, commands: mpsc::Sender<Command>) -> Self {
        Self { ground, commands }
    }

    /// Every endpoint, or that of `label`.
    pub async fn list(&self, label: Option<&str>) -> Result<Vec<Endpoint>, DeskError> {
        let book = self.ground.integrators.book();
        if let Some(label) = label {
            self.integrator(label)?;
        }
        let mut standing = self.standing().await?;
        let mut list = Vec::new();
        for (name, integrator) in book.iter() {
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

    /// Event `number`.
    pub async fn show(&self, number: u64) -> Result<Shown, DeskError> {
        let (_, event) = self.event(number).await?;
        let (mut waiting, mut dead) = (None, None);
        if let Some(label) = &event.key {
            let store = self.ground.requests.store();
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

    /// Sends event `number` again to the integrator that it concerns, and returns its label. Where `label` is given,
    /// it must be that one.
    pub async fn replay(&self, number: u64, label: Option<&str>) -> Result<String, DeskError> {
        let (bytes, event) = self.event(number).await?;
        let owner = event.key.ok_or(DeskError::Keyless(number))?;
        if let Some(other) = label.filter(|label| *label != owner) {
            return Err(DeskError::Foreign(number, other.to_owned()));
        }
        if self.integrator(&owner)?.webhook.is_none() {
            return Err(DeskError::NoEndpoint(owner));
        }
        let at = (self.ground.clock)();
        let batch = Batch::new().expect(rows::event::key(number), Expect::Equals(bytes));
        let batch = again(batch, &owner, number, at)?;
        match self.ground.requests.store().commit(batch).await? {
            Outcome::Refused { .. } => Err(DeskError::Waiting(number)),
            Outcome::Applied { .. } => {
                self.owed(&owner, vec![number], at).await?;
                Ok(owner)
            }
        }
    }

    /// Sends the oldest dead deliveries of `label`, or of all endpoints, again: at most [`REPLAYED`]. Returns how
    /// many.
    pub async fn replay_dead(&self, label: Option<&str>) -> Result<u64, DeskError> {
        if let Some(label) = label {
            self.integrator(label)?;
        }
        let book = self.ground.integrators.book();
        let mut count = 0;
        for (name, integrator) in book.iter() {
            let asked = label.is_none_or(|label| label == name);
            if asked && integrator.webhook.is_some() && count < REPLAYED {
                count += self.replay_some(name, REPLAYED - count).await?;
            }
        }
        Ok(count as u64)
    }

    /// Sends `label` one signed event that never happened.
    pub async fn test(&self, label: &str) -> Result<Tested, DeskError> {
        let to = self.integrator(label)?;
        if to.webhook.is_none() {
            return Err(DeskError::NoEndpoint(label.to_owned()));
        }
        let now = (self.ground.clock)();
        let content = Content {
            number: TEST,
            body: sample(now).body(true),
            given_up: newest_dead(&self.ground, label).await?,
        };
        let letter = Letter::write(Some(&to), content, now, self.ground.reach);
        let reply = match letter {
            Ok(letter) => self.ground.post.send(letter, now).await,
            Err(why) => Reply::Barred(why),
        };
        Ok(Tested {
            said: schedule::said(&reply),
            took: (self.ground.clock)().saturating_sub(now),
            delivered: matches!(reply, Reply::Status(200..=299, _)),
        })
    }

    async fn replay_some(&self, label: &str, most: usize) -> Result<usize, DeskError> {
        let store = self.ground.requests.store();
        let page = store.scan(of(DEAD, label, 0, most)).await?;
        let at = (self.ground.clock)();
        let mut numbers = Vec::new();
        for (key, bytes) in page {
            let Some((_, number)) = parts(&key.name) else {
                continue;
            };
            // The event is kept as long as the row is.
            let batch = Batch::new().expect(key, Expect::Equals(bytes));
            let batch = again(batch, label, number, at)?;
            if let Outcome::Applied { .. } = store.commit(batch).await? {
                numbers.push(number);
            }
        }
        let count = numbers.len();
        self.owed(label, numbers, at).await?;
        Ok(count)
    }

    async fn owed(&self, label: &str, numbers: Vec<u64>, at: u64) -> Result<(), DeskError> {
        let label = label.into();
        let told = self.commands.send(Command::Owed { label, numbers, at });
        told.await.map_err(|_| DeskError::Ending)
    }

    async fn standing(&self) -> Result<HashMap<String, Standing>, DeskError> {
        let (reply, answer) = oneshot::channel();
        let asked = self.commands.send(Command::Standing(reply)).await;
        asked.map_err(|_| DeskError::Ending)?;
        answer.await.map_err(|_| DeskError::Ending)
    }

    fn integrator(&self, label: &str) -> Result<Arc<Integrator>, DeskError> {
        let found = self.ground.integrators.book().get(label).cloned();
        found.ok_or_else(|| DeskError::Unknown(label.to_owned()))
    }

    async fn event(&self, number: u64) -> Result<(Vec<u8>, Event), DeskError> {
        let key = rows::event::key(number);
        let found = self.ground.requests.store().read(&key).await?;
        let bytes = found.ok_or(DeskError::NoEvent(number))?;
        let (_, event) = rows::event::row(&key, &bytes)?;
        Ok((bytes, event))
    }

    async fn count(&self, kind: Kind, label: &str) -> Result<u64, DeskError> {
        let store = self.ground.requests.store();
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

/// Starts a delivery anew, unless it is under way.
fn again(batch: Batch, label: &str, number: u64, at: u64) -> Result<Batch, RowError> {
    let key = rows::delivery::key(label, number);
    Ok(batch
        .expect(key.clone(), Expect::Absent)
        .put(key, Delivery::fresh(at).encode()?)
        .delete(rows::dead::key(label, number)))
}

/// An event with every field set, of a request that does not exist.
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
