//! Read-only calls at a chain's head, for what is judged again on the chain itself (a swap's limit)
//! or by a second source (a price). Nothing here has a quorum.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    Call, Called, Contracts,
    failover::{Patience, first},
};
use crate::{Address, Bytes, Family, ReadError, U256};

/// How long one provider may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Nobody is asked before those ahead have answered, or had their time.
const IN_TURN: Patience = Patience {
    answer: PATIENCE.saturating_mul(2),
    silence: PATIENCE.saturating_mul(2),
};

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
        let answers = Mutex::new(vec![Err(nobody()); questions.len()]);
        let ask = |contracts| self.complete(contracts, questions, &answers);
        let asked = first(self.contracts.iter().cloned(), IN_TURN, nobody(), ask);
        // Each question that nobody answers has the failure of its own.
        let _: Result<(), ReadError> = asked.await;
        answers.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks one provider what nobody has answered yet. An error while there is such a question.
    async fn complete(
        &self,
        contracts: Arc<dyn Contracts>,
        questions: &[(Address, Bytes)],
        answers: &Mutex<Vec<Called>>,
    ) -> Result<(), ReadError> {
        let open: Vec<usize> = {
            let answers = locked(answers);
            let open = (0..answers.len()).filter(|at| answers[*at].is_err());
            open.collect()
        };
        if open.is_empty() {
            return Ok(());
        }
        let asked = open.iter().map(|at| &questions[*at]);
        let said = self.round(&contracts, asked).await;
        let mut answers = locked(answers);
        for (at, answer) in open.into_iter().zip(said) {
            answers[at] = answer;
        }
        let failure = answers.iter().find_map(|answer| answer.as_ref().err());
        failure.cloned().map_or(Ok(()), Err)
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

fn locked(answers: &Mutex<Vec<Called>>) -> MutexGuard<'_, Vec<Called>> {
    answers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nobody() -> ReadError {
    ReadError::Unavailable("no provider".to_owned())
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{Answers, Script};

    /// Answers calls of accounts whose only byte is below `knows`, and records what it is asked.
    type Node = Script<Known>;

    struct Known {
        knows: u8,
        hangs: bool,
        bytes: Mutex<Vec<u8>>,
    }

    fn node(knows: u8, hangs: bool) -> Arc<Node> {
        let known = Known {
            knows,
            hangs,
            bytes: Mutex::default(),
        };
        let answers = Answers {
            calls: Some(|own, calls| Box::pin(answer(own, calls))),
            ..Answers::default()
        };
        Script::at(1).answering(known, answers)
    }

    async fn answer(node: &Node, calls: &[Call]) -> Vec<Called> {
        let asked = calls.iter().map(|call| call.to.bytes()[0]);
        node.bytes.lock().unwrap().extend(asked);
        if node.hangs {
            std::future::pending::<()>().await;
        }
        let answer = |call: &Call| match call.to.bytes()[0] < node.knows {
            true => Ok(Ok(call.data.clone())),
            false => Err(failed(node.knows)),
        };
        calls.iter().map(answer).collect()
    }

    fn asked(node: &Node) -> Vec<u8> {
        node.bytes.lock().unwrap().clone()
    }

    fn failed(knows: u8) -> ReadError {
        ReadError::Unavailable(format!("it knows {knows}"))
    }

    fn among(nodes: &[Arc<Node>]) -> HeadCalls {
        let contracts = nodes.iter().cloned();
        HeadCalls {
            family: &crate::ethereum::FAMILY,
            contracts: contracts.map(|node| node as Arc<dyn Contracts>).collect(),
        }
    }

    fn questions() -> Vec<(Address, Bytes)> {
        let question = |byte: u8| {
            let to = Address::from_parts(&byte.to_string(), vec![byte]);
            (to, Bytes::from(vec![byte]))
        };
        (1..=3).map(question).collect()
    }

    #[tokio::test]
    async fn each_provider_is_asked_what_those_before_it_did_not_answer() {
        let nodes = [node(2, false), node(3, false), node(1, false)];
        let answers = among(&nodes).many(&questions()).await;
        let known = |byte: u8| Ok(Ok(Bytes::from(vec![byte])));
        assert_eq!(answers, [known(1), known(2), Err(failed(1))]);
        let each = nodes.each_ref().map(|node| asked(node));
        assert_eq!(each, [vec![1, 2, 3], vec![2, 3], vec![3]]);
        // Nobody is asked once all is answered.
        let nodes = [node(4, false), node(4, false)];
        assert!(
            among(&nodes)
                .many(&questions())
                .await
                .iter()
                .all(Result::is_ok)
        );
        assert!(asked(&nodes[1]).is_empty());
        assert_eq!(among(&[]).many(&questions()[..1]).await, [Err(nobody())]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_provider_has_its_time_before_the_next_one_is_asked() {
        let nodes = [node(4, true), node(4, false)];
        let started = Instant::now();
        let answers = among(&nodes).many(&questions()).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        let took = started.elapsed();
        assert!((PATIENCE..PATIENCE * 2).contains(&took), "{took:?}");
        // The last one that failed says why.
        let nodes = [node(1, false), node(4, true)];
        let answers = among(&nodes).many(&questions()).await;
        let late = ReadError::Unavailable("no answer in time".into());
        assert!(
            answers.iter().all(|one| *one == Err(late.clone())),
            "{answers:?}"
        );
    }
}
