//! The answering side: the daemon's.

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixSocket, UnixStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use vm::ChainId;

use super::{
    Answer, Halted, LONGEST, Question, Reason,
    integrators::{IntegratorAdmin, IntegratorAdminError},
    lanes::LanesError,
    path,
};
use crate::{
    attest::journal::{Halt, Journal, JournalError},
    index, solver,
    solver::{
        account::SolverAccount,
        settle::outcome_claim::{OutcomeClaimError, OutcomeClaims},
    },
    webhook,
};

/// Connections that are served at the same time; more wait in the kernel's queue.
const CONNECTIONS: usize = 8;
const BACKLOG: u32 = 16;
/// How long a question and its answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause after the kernel refused to accept a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The parts of the daemon that answers come from.
#[derive(Clone)]
pub struct Handles {
    pub journal: Arc<Journal>,
    pub integrator_admin: IntegratorAdmin,
    pub claims: OutcomeClaims,
    /// `None`: this daemon is an oracle only.
    pub webhooks: Option<webhook::admin::AdminHandle>,
    /// The solver's accounts; none in an oracle only.
    pub accounts: Vec<Arc<SolverAccount>>,
    pub solver: Option<solver::admin::AdminHandle>,
    /// As for `webhooks`.
    pub index: Option<index::admin::AdminHandle>,
}

#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    IntegratorAdmin(#[from] IntegratorAdminError),
    #[error(transparent)]
    Index(#[from] index::admin::AdminError),
    #[error(transparent)]
    Webhooks(#[from] webhook::admin::AdminError),
    #[error(transparent)]
    Lanes(#[from] LanesError),
    #[error(transparent)]
    Solver(#[from] solver::admin::AdminError),
    #[error(transparent)]
    OutcomeClaim(#[from] OutcomeClaimError),
    #[error("this daemon has no integrator API")]
    OracleOnly,
    #[error("this daemon has no solver")]
    NoSolver,
}

/// The socket; dropping it removes its file.
pub struct Admin {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Admin {
    fn drop(&mut self) {
        let _gone_already = fs::remove_file(&self.path);
    }
}

impl Admin {
    /// Opens the socket in `data_dir` for this user alone, in place of one that a killed process left. Only the
    /// process that has the store of `data_dir` open may call this.
    pub fn bind(data_dir: &Path) -> io::Result<Self> {
        let path = path(data_dir);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(&path)?,
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => {}
        }
        let socket = UnixSocket::new_stream()?;
        socket.bind(&path)?;
        // No process can connect before `listen`.
        let listener = fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .and_then(|()| socket.listen(BACKLOG));
        match listener {
            Ok(listener) => Ok(Self { listener, path }),
            Err(error) => {
                let _gone_already = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Answers until `shutdown`; a question that has arrived is still answered.
    pub async fn serve(self, handles: Handles, shutdown: CancellationToken) {
        let mut answering = JoinSet::new();
        let accept = async {
            loop {
                while answering.len() >= CONNECTIONS {
                    answering.join_next().await;
                }
                match self.listener.accept().await {
                    Ok((stream, _)) => {
                        answering.spawn(connection(stream, handles.clone()));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "admin socket cannot accept");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                while answering.try_join_next().is_some() {}
            }
        };
        let _never = shutdown.run_until_cancelled(accept).await;
        drop(self);
        while answering.join_next().await.is_some() {}
    }
}

async fn connection(mut stream: UnixStream, handles: Handles) {
    let answered = tokio::time::timeout(PATIENCE, exchange(&mut stream, &handles)).await;
    match answered {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "admin connection ended"),
        Err(_) => tracing::debug!("admin connection was too slow"),
    }
}

async fn exchange(stream: &mut UnixStream, handles: &Handles) -> io::Result<()> {
    let (reading, mut writing) = stream.split();
    let mut line = Vec::new();
    let mut reading = BufReader::new(reading).take(LONGEST);
    reading.read_until(b'\n', &mut line).await?;
    let answer = match serde_json::from_slice(&line) {
        Ok(question) => answer(handles, question)
            .await
            .unwrap_or_else(|error| refused(&error)),
        Err(error) => refused(&error),
    };
    let mut answer = serde_json::to_vec(&answer)?;
    answer.push(b'\n');
    writing.write_all(&answer).await?;
    writing.shutdown().await
}

fn refused(why: &dyn std::fmt::Display) -> Answer {
    let why = why.to_string();
    Answer::Refused { why }
}

async fn answer(handles: &Handles, question: Question) -> Result<Answer, ServeError> {
    let journal = &handles.journal;
    Ok(match question {
        Question::Webhooks(question) => {
            let webhooks = handles.webhooks.as_ref().ok_or(ServeError::OracleOnly)?;
            Answer::Webhooks(question.answer(webhooks).await?)
        }
        Question::Lanes(question) => {
            let now = (handles.integrator_admin.clock)() / 1_000;
            Answer::Lanes(question.answer(&handles.accounts, now).await?)
        }
        Question::Solver(question) => {
            let solver = handles.solver.as_ref().ok_or(ServeError::NoSolver)?;
            Answer::Solver(question.answer(solver).await?)
        }
        Question::Halts {} => {
            let halts = journal.halts().await?;
            let halted = |(chain, halt): (ChainId, Halt)| Halted {
                chain: chain.to_string(),
                id: halt.id(),
                halt,
            };
            Answer::Halts {
                halts: halts.into_iter().map(halted).collect(),
            }
        }
        Question::ClearHalt { chain, id } => Answer::Cleared {
            cleared: journal.clear(&ChainId::new(&chain), &id).await?,
        },
        Question::Index {} => Answer::Index {
            networks: index(handles)?.standings().await?,
        },
        Question::Rewind { network, to } => Answer::Rewound {
            height: index(handles)?.rewind(&network, to).await?,
        },
        Question::Statement { key } => Answer::Statement {
            entry: journal.entry(&key).await?,
            voids: journal.voids(&key).await?,
        },
        Question::Why { key } => Answer::Why {
            reasons: reasons(journal, &key).await?,
        },
        Question::About { chain, transaction } => Answer::About {
            keys: journal.about(&chain, &transaction).await?,
        },
        Question::Outcome {
            order,
            chain,
            transaction,
        } => Answer::Outcome {
            claim: handles.claims.of(&order, (&chain, &transaction)).await?,
        },
        Question::Integrators(order) => {
            Answer::Integrators(handles.integrator_admin.carry_out(order).await?)
        }
    })
}

async fn reasons(journal: &Journal, key: &str) -> Result<Vec<Reason>, JournalError> {
    let mut found = Vec::new();
    if let Some(entry) = journal.entry(key).await? {
        found.push((entry, None));
    }
    let voids = journal.voids(key).await?.into_iter().rev();
    found.extend(voids.map(|void| (void.entry, Some(void.why))));
    let mut reasons = Vec::new();
    for (entry, void) in found {
        let signature = match void {
            None => journal.signature_of(key).await?,
            Some(_) => None,
        };
        reasons.push(Reason {
            evidence: journal.why(key, &entry).await?,
            signer: journal.signer(),
            signature: signature.map(|made| made.to_string()),
            entry,
            void,
        });
    }
    Ok(reasons)
}

fn index(handles: &Handles) -> Result<&index::admin::AdminHandle, ServeError> {
    handles.index.as_ref().ok_or(ServeError::OracleOnly)
}
