//! Evidence in place of a chain.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::{Answer, Question, Read};
use crate::{
    ChainReader, ReadError, StateReader,
    types::{Address, Block, Bytes, ChainId, Head, Transaction, TxRef, WithdrawalStatus},
};

/// Answers from the recorded reads of one chain. A question that was not recorded has no answer.
#[derive(Debug)]
pub struct Replay {
    chain: ChainId,
    /// A question that was asked more than once has its answers in their order; the last one stays.
    reads: Mutex<Vec<(Question, Answer)>>,
    /// Why questions had no answer.
    lacking: Mutex<Vec<String>>,
}

impl Replay {
    /// Answers from the reads of `chain` among `reads`.
    pub fn new(chain: &ChainId, reads: &[Read]) -> Self {
        let own = reads.iter().filter(|read| read.chain == *chain);
        let own = own.map(|read| (read.question.clone(), read.answer.clone()));
        Self {
            chain: chain.clone(),
            reads: Mutex::new(own.collect()),
            lacking: Mutex::default(),
        }
    }

    /// Why questions had no answer so far.
    pub fn lacking(&self) -> Vec<String> {
        let lacking = self.lacking.lock();
        lacking.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lacks(&self, why: String) -> ReadError {
        let mut lacking = self.lacking.lock().unwrap_or_else(PoisonError::into_inner);
        lacking.push(why.clone());
        ReadError::Unavailable(why)
    }

    /// The recorded answer, as `of` takes it.
    fn answer<T>(
        &self,
        question: &Question,
        of: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, ReadError> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |(asked, _): &(Question, Answer)| asked == question;
        let Some(at) = reads.iter().position(same) else {
            let (chain, what) = (&self.chain, question.subject());
            let why = format!("the evidence of {chain} has no answer about {what}");
            return Err(self.lacks(why));
        };
        let answer = match reads[at + 1..].iter().any(same) {
            true => reads.remove(at).1,
            false => reads[at].1.clone(),
        };
        if matches!(answer, Answer::Large(_)) {
            let why = format!(
                "the evidence of {} keeps of a large answer only its digest",
                self.chain
            );
            return Err(self.lacks(why));
        }
        let other = || {
            format!(
                "the evidence of {} has an answer of another kind",
                self.chain
            )
        };
        of(answer).ok_or_else(|| self.lacks(other()))
    }

    fn tip(&self, fresh: bool) -> Result<Head, ReadError> {
        self.answer(&Question::Head { fresh }, |answer| match answer {
            Answer::Head(head) => Some(head),
            _ => None,
        })
    }
}

#[async_trait]
impl ChainReader for Replay {
    async fn head(&self) -> Result<Head, ReadError> {
        self.tip(false)
    }

    async fn fresh_head(&self) -> Result<Head, ReadError> {
        self.tip(true)
    }

    async fn contains(&self, block: &Block) -> Result<bool, ReadError> {
        self.answer(&Question::Contains(block.clone()), |answer| match answer {
            Answer::Contains(holds) => Some(holds),
            _ => None,
        })
    }

    async fn transaction(&self, tx: &TxRef, head: &Head) -> Result<Transaction, ReadError> {
        let question = Question::transaction(tx, head);
        self.answer(&question, |answer| match answer {
            Answer::Transaction(transaction) => Some(*transaction),
            _ => None,
        })
    }
}

#[async_trait]
impl StateReader for Replay {
    async fn settled(&self, head: &Head) -> Result<Option<Block>, ReadError> {
        self.answer(&Question::settled(head), |answer| match answer {
            Answer::Settled(block) => Some(block),
            _ => None,
        })
    }

    async fn withdrawal(
        &self,
        encoded: &Bytes,
        tx: Option<&TxRef>,
        block: &Block,
    ) -> Result<WithdrawalStatus, ReadError> {
        let question = Question::withdrawal(encoded, tx, block);
        self.answer(&question, |answer| match answer {
            Answer::Withdrawal(status) => Some(status),
            _ => None,
        })
    }

    async fn sequence(&self, owner: &Address, block: &Block) -> Result<u64, ReadError> {
        let question = Question::sequence(owner, block);
        self.answer(&question, |answer| match answer {
            Answer::Sequence(number) => Some(number),
            _ => None,
        })
    }

    async fn view(&self, to: &Address, data: &Bytes, block: &Block) -> Result<Bytes, ReadError> {
        let question = Question::view(to, data, block);
        self.answer(&question, |answer| match answer {
            Answer::View(bytes) => Some(bytes),
            _ => None,
        })
    }
}
