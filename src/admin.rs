//! The Unix socket in `DATA_DIR` through which the command line asks the running daemon, the only process that has
//! the store open. Whoever may open the socket is the operator; it is not for the network.
//!
//! One question per connection: a line of JSON each way. Questions and answers are internally tagged
//! objects: `{"ask":"halts"}`, `{"answer":"halts","halts":[…]}`.

pub mod integrators;
pub mod lanes;
mod serve;
pub mod solver;
#[cfg(test)]
mod tests;
pub mod webhooks;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};
use vm::{B256, EvmAddress};

pub use self::serve::{Admin, Handles};
use crate::{
    attest::{
        evidence::Evidence,
        journal::{Entry, Halt, Void},
    },
    index::admin::Standing,
    solver::settle::outcome_claim::OutcomeClaim,
};

/// Longest question, in bytes: a webhook with its headers, escaped.
const LONGEST: u64 = 512 << 10;
/// For the daemon to answer.
const PATIENCE: Duration = Duration::from_secs(25);

/// A question or command to the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Question {
    /// Every halted chain.
    Halts {},
    /// Lets signing for `chain` go on, if the listed halt `id` is the one that stops it.
    ClearHalt { chain: String, id: String },
    /// Shows what is signed, and what was, under a statement's key.
    Statement { key: String },
    /// Why the statement under `key` was signed.
    Why { key: String },
    /// The keys of the signed statements about a transaction, by its canonical `0x` hex.
    About { chain: String, transaction: String },
    /// The claim that a transaction ended an order.
    Outcome {
        order: B256,
        chain: String,
        transaction: String,
    },
    /// A command about integrators.
    Integrators(integrators::Order),
    /// About webhooks.
    Webhooks(webhooks::Question),
    /// About the solver's accounts.
    Lanes(lanes::Question),
    /// About the solver.
    Solver(solver::Question),
    /// How far each network has been indexed.
    Index {},
    /// Reads everything after block `to` of a network again.
    Rewind { network: String, to: u64 },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    Halts {
        halts: Vec<Halted>,
    },
    /// Whether `id` was what halted the chain.
    Cleared {
        cleared: bool,
    },
    Statement {
        entry: Option<Entry>,
        voids: Vec<Void>,
    },
    /// What stands under the key, and then what was void, newest first.
    Why {
        reasons: Vec<Reason>,
    },
    About {
        keys: Vec<String>,
    },
    /// `None` where no request has the order, and for a user's own transactions and an excess that is given back.
    Outcome {
        claim: Option<OutcomeClaim>,
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
    /// The question could not be answered, or the command not carried out.
    Refused {
        why: String,
    },
}

/// A signed statement, with why it was signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub entry: Entry,
    /// Why it is void.
    pub void: Option<String>,
    pub signer: EvmAddress,
    /// `0x` hex; `None` for one that is void, and while signing is halted.
    pub signature: Option<String>,
    /// `None` for a statement that was signed by a version without evidence.
    pub evidence: Option<Evidence>,
}

/// A halted chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halted {
    pub chain: String,
    /// The id that [`Question::ClearHalt`] takes.
    pub id: String,
    #[serde(flatten)]
    pub halt: Halt,
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("admin.sock")
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("no daemon runs with this DATA_DIR ({path})", path = .0.display())]
    NoDaemon(PathBuf),
    #[error("{path}: {cause}", path = .0.display(), cause = .1)]
    Socket(PathBuf, io::Error),
    #[error("the daemon's answer cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
    #[error("the daemon did not answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error("{0}")]
    Refused(String),
}

/// Asks the daemon that runs with `data_dir`.
pub async fn ask(data_dir: &Path, question: &Question) -> Result<Answer, AskError> {
    let path = path(data_dir);
    let question = serde_json::to_vec(question)?;
    let answered = tokio::time::timeout(PATIENCE, exchange(&path, &question)).await;
    let answer = match answered {
        Err(_) => return Err(AskError::Late),
        Ok(Ok(answer)) => answer,
        Ok(Err(cause)) => return Err(failure(path, cause)),
    };
    match serde_json::from_slice(&answer)? {
        Answer::Refused { why } => Err(AskError::Refused(why)),
        answer => Ok(answer),
    }
}

async fn exchange(path: &Path, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(path).await?;
    stream.write_all(question).await?;
    stream.write_all(b"\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer)
}

fn failure(path: PathBuf, cause: io::Error) -> AskError {
    match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NoDaemon(path),
        _ => AskError::Socket(path, cause),
    }
}
