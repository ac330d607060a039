//! The Unix socket in `DATA_DIR` through which the command line asks the running daemon, which is
//! the only process that has the store. Whoever may open the socket is the operator; it is not for
//! the network.
//!
//! One question per connection: a line of JSON each way. Questions and answers are internally tagged
//! objects: `{"ask":"halts"}`, `{"answer":"halts","halts":[…]}`.

mod ask;
pub mod integrators;
pub mod lanes;
mod serve;
pub mod solver;
#[cfg(test)]
mod tests;
pub mod webhooks;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::{
    ask::{AskError, ask},
    serve::{Admin, Desk},
};
use crate::{
    attest::journal::{Entry, Halt, Void},
    index::desk::Standing,
};

/// Longest question, in bytes: a webhook with its headers, escaped.
const LONGEST: u64 = 512 << 10;

/// What the daemon can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Every halted chain.
    Halts {},
    /// Signing for `chain` may go on, if it is the listed halt `id` that stops it.
    ClearHalt { chain: String, id: String },
    /// What stands, and what stood, under a statement's key.
    Statement { key: String },
    /// An order about integrators.
    Integrators(integrators::Order),
    /// About webhooks.
    Webhooks(webhooks::Question),
    /// About the solver's nonces.
    Lanes(lanes::Question),
    /// About the solver.
    Solver(solver::Question),
    /// How far each network has been indexed.
    Index {},
    /// Everything after block `to` of a network is read again.
    Rewind { network: String, to: u64 },
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    Halts {
        halts: Vec<Halted>,
    },
    /// Whether that was what halted the chain.
    Cleared {
        cleared: bool,
    },
    Statement {
        entry: Option<Entry>,
        voids: Vec<Void>,
    },
    Integrators(integrators::Outcome),
    Webhooks(webhooks::Answer),
    Lanes(lanes::Answer),
    Solver(solver::Answer),
    Index {
        networks: Vec<Standing>,
    },
    /// The network had been indexed up to `height`.
    Rewound {
        height: u64,
    },
    /// The question could not be answered.
    Refused {
        why: String,
    },
}

/// A halted chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halted {
    pub chain: String,
    /// What [`Question::ClearHalt`] wants to hear.
    pub id: String,
    #[serde(flatten)]
    pub halt: Halt,
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("admin.sock")
}
