//! Evidence in place of the chains.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Answer, Question, Read};
use crate::{ReadError, types::ChainId};

tokio::task_local! {
    static REPLAY: Arc<Replay>;
}

/// Answers from recorded reads. A question that was not recorded has no answer.
#[derive(Debug)]
pub struct Replay {
    /// A question that was asked more than once has its answers in their order; the last one stays.
    reads: Mutex<Vec<Read>>,
    /// Why questions had no answer.
    lacking: Mutex<Vec<String>>,
}

impl Replay {
    pub fn new(reads: Vec<Read>) -> Arc<Self> {
        Arc::new(Self {
            reads: Mutex::new(reads),
            lacking: Mutex::default(),
        })
    }

    /// Does `work`, whose quorums answer from these reads and ask no provider.
    pub async fn answering<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        REPLAY.scope(self.clone(), work).await
    }

    /// The reads that answer what is asked now; `None` where providers do.
    pub fn current() -> Option<Arc<Self>> {
        REPLAY.try_with(Arc::clone).ok()
    }

    /// Why questions had no answer so far.
    pub fn lacking(&self) -> Vec<String> {
        let lacking = self.lacking.lock();
        lacking.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The recorded read of a question to `chain`.
    pub fn read(&self, chain: &ChainId, question: &Question) -> Result<Read, ReadError> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |read: &Read| read.chain == *chain && read.question == *question;
        let Some(at) = reads.iter().position(same) else {
            let what = question.subject();
            return Err(self.lacks(format!(
                "the evidence of {chain} has no answer about {what}"
            )));
        };
        let read = match reads[at + 1..].iter().any(same) {
            true => reads.remove(at),
            false => reads[at].clone(),
        };
        match read.answer {
            Answer::Large(_) => {
                let why =
                    format!("the evidence of {chain} keeps of a large answer only its digest");
                Err(self.lacks(why))
            }
            _ => Ok(read),
        }
    }

    /// The error about a read of another kind than its question's.
    pub fn other(&self, chain: &ChainId) -> ReadError {
        self.lacks(format!(
            "the evidence of {chain} has an answer of another kind"
        ))
    }

    fn lacks(&self, why: String) -> ReadError {
        let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.push(why.clone());
        ReadError::Unavailable(why)
    }
}
