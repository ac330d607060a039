//! Read-only calls at a chain's head, for what is judged again on the chain itself (a swap's limit)
//! or by a second source (a price). Nothing here has a quorum.

use std::{sync::Arc, time::Duration};

use super::{Call, Called, Contracts};
use crate::{Address, Bytes, Family, ReadError, U256};

/// How long one provider may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// The providers of one chain, each asked by itself.
#[derive(Clone)]
pub struct HeadCalls {
    pub family: &'static Family,
    /// In the operator's order; empty when the chain has no provider.
    pub contracts: Vec<Arc<dyn Contracts>>,
}

impl HeadCalls {
    /// Asks one provider after the other until one answers.
    pub async fn any(&self, to: &Address, data: Bytes) -> Called {
        let answer = self.many(&[(to.clone(), data)]).await.pop();
        answer.unwrap_or_else(|| Err(nobody()))
    }

    /// Asks one provider after the other, each what those before it did not answer; as many answers in
    /// the same order.
    pub async fn many(&self, questions: &[(Address, Bytes)]) -> Vec<Called> {
        let mut answers: Vec<Called> = vec![Err(nobody()); questions.len()];
        for contracts in &self.contracts {
            let open = (0..answers.len()).filter(|at| answers[*at].is_err());
            let open: Vec<usize> = open.collect();
            if open.is_empty() {
                break;
            }
            let asked = open.iter().map(|at| &questions[*at]);
            let said = self.round(contracts, asked).await;
            for (at, answer) in open.into_iter().zip(said) {
                answers[at] = answer;
            }
        }
        answers
    }

    /// Asks one provider; as many answers in the same order.
    pub async fn by(
        &self,
        contracts: &Arc<dyn Contracts>,
        questions: &[(Address, Bytes)],
    ) -> Vec<Called> {
        self.round(contracts, questions.iter()).await
    }

    /// Asks one provider, as nobody in particular.
    pub async fn one(&self, contracts: &Arc<dyn Contracts>, to: &Address, data: Bytes) -> Called {
        let question = (to.clone(), data);
        let answer = self
            .round(contracts, std::iter::once(&question))
            .await
            .pop();
        answer.unwrap_or_else(|| Err(nobody()))
    }

    async fn round(
        &self,
        contracts: &Arc<dyn Contracts>,
        questions: impl Iterator<Item = &(Address, Bytes)>,
    ) -> Vec<Called> {
        let unavailable = |why: String| ReadError::Unavailable(why);
        let from = self.family.native();
        let questions: Vec<_> = questions.collect();
        let failed = |error: ReadError| vec![Err(error); questions.len()];
        let from = match from {
            Ok(from) => from,
            Err(error) => return failed(unavailable(error.to_string())),
        };
        let calls = questions.iter().map(|(to, data)| Call {
            from: from.clone(),
            to: to.clone(),
            data: data.clone(),
            value: U256::ZERO,
        });
        let calls: Vec<_> = calls.collect();
        tokio::time::timeout(PATIENCE, contracts.calls(&calls))
            .await
            .unwrap_or_else(|_| failed(unavailable("no answer in time".to_owned())))
    }
}

fn nobody() -> ReadError {
    ReadError::Unavailable("no provider".to_owned())
}
