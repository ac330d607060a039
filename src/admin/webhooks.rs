//! Questions and commands about webhooks.

use serde::{Deserialize, Serialize};

use crate::webhook::admin::{AdminError, AdminHandle, Endpoint, Shown, Tested};

/// A question or command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "webhooks", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Endpoints: all, or that of `label`.
    List { label: Option<String> },
    /// An event and its delivery.
    Show { event: u64 },
    /// Sends an event again: to `label`, if that is given and the event concerns it.
    Replay { event: u64, label: Option<String> },
    /// Sends dead deliveries again, the oldest first.
    ReplayDead { label: Option<String> },
    /// Sends a signed event that never happened.
    Test { label: String },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "webhooks", rename_all = "kebab-case")]
pub enum Answer {
    List { endpoints: Vec<Endpoint> },
    Shown(Box<Shown>),
    Replayed { label: String },
    ReplayedDead { count: u64 },
    Tested(Tested),
}

impl Question {
    /// Answers through `handle`.
    pub(super) async fn answer(self, handle: &AdminHandle) -> Result<Answer, AdminError> {
        Ok(match self {
            Self::List { label } => Answer::List {
                endpoints: handle.list(label.as_deref()).await?,
            },
            Self::Show { event } => Answer::Shown(Box::new(handle.find(event).await?)),
            Self::Replay { event, label } => Answer::Replayed {
                label: handle.replay(event, label.as_deref()).await?,
            },
            Self::ReplayDead { label } => Answer::ReplayedDead {
                count: handle.replay_dead(label.as_deref()).await?,
            },
            Self::Test { label } => Answer::Tested(handle.test(&label).await?),
        })
    }
}
