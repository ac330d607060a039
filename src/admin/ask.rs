//! The asking side.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use super::{Answer, Question};

const PATIENCE: Duration = Duration::from_secs(25);

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
    let path = super::path(data_dir);
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
