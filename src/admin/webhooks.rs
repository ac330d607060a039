//! Questions about webhooks.

use serde::{Deserialize, Serialize};

use crate::webhook::desk::{Desk, DeskError, Endpoint, Shown, Tested};

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "webhooks", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Endpoints: all, or that of `label`.
    List { label: Option<String> },
    /// An event and its delivery.
    Show { event: u64 },
    /// An event is to be sent again; to `label`, if that is given and it concerns that.
    Replay { event: u64, label: Option<String> },
    /// Dead deliveries are to be sent again, the oldest first.
    ReplayDead { label: Option<String> },
    /// A signed event that never happened is to be sent now.
    Test { label: String },
}

/// What is answered.
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
    /// What `desk` says to it.
    pub(super) async fn answer(self, desk: &Desk) -> Result<Answer, DeskError> {
        Ok(match self {
            Self::List { label } => Answer::List {
                endpoints: desk.list(label.as_deref()).await?,
            },
            Self::Show { event } => Answer::Shown(Box::new(desk.show(event).await?)),
            Self::Replay { event, label } => Answer::Replayed {
                label: desk.replay(event, label.as_deref()).await?,
            },
            Self::ReplayDead { label } => Answer::ReplayedDead {
                count: desk.replay_dead(label.as_deref()).await?,
            },
            Self::Test { label } => Answer::Tested(desk.test(&label).await?),
        })
    }
}
