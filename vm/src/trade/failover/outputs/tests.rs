use std::sync::Arc;

use async_trait::async_trait;

use super::*;
use crate::{testing::Script, trade::Outputs, types::Amount};

/// A provider that shows these outputs, and these spenders of two outputs.
struct Shows(Vec<Unspent>, Vec<SpentBy>);

#[async_trait]
impl Outputs for Shows {
    async fn unspent(&self, _: &Address) -> Result<Vec<Unspent>, ReadError> {
        Ok(self.0.clone())
    }

    async fn spenders(&self, _: &[Bytes]) -> Result<Vec<SpentBy>, ReadError> {
        Ok(self.1.clone())
    }

    async fn transaction(&self, _: &Bytes) -> Result<Option<Bytes>, ReadError> {
        Ok(None)
    }
}

fn failover(required: usize, shown: Vec<Shows>) -> Failover {
    let providers = shown.into_iter().map(|shows| TradingProvider {
        outputs: Some(Arc::new(shows)),
        ..Script::at(1).trading()
    });
    Failover::new("outputs", required, providers.collect()).unwrap()
}

fn owner() -> Address {
    Address::from_parts("owner", vec![1])
}

fn output(byte: u8, amount: u64, height: u64) -> Unspent {
    Unspent {
        output: vec![byte].into(),
        amount: Amount::from(amount),
        height,
    }
}

#[tokio::test]
async fn an_output_is_there_where_a_quorum_shows_it_alike() {
    let (one, two, small) = (output(1, 9, 5), output(2, 30, 6), output(3, 4, 6));
    let shown = [
        vec![one.clone(), small.clone(), two.clone()],
        // It shows one twice, another larger than it is, and one that nobody else has.
        vec![one.clone(), one.clone(), output(2, 31, 6), output(4, 1, 1)],
        // It has not seen the newest block.
        vec![one.clone(), small.clone()],
    ];
    let shows = || shown.clone().map(|all| Shows(all, Vec::new())).into();
    let agreed = failover(2, shows()).unspent(&owner()).await.unwrap();
    assert_eq!(agreed, [one.clone(), small]);
    let agreed = failover(3, shows()).unspent(&owner()).await.unwrap();
    assert_eq!(agreed, [one]);
}

#[tokio::test]
async fn an_output_is_spent_and_its_spender_named_by_a_quorum_only() {
    let by = |byte: u8| SpentBy::Transaction(vec![byte].into());
    let (nobody, somebody) = (SpentBy::Nobody, SpentBy::Somebody);
    let asked = [Bytes::from_static(b"1"), Bytes::from_static(b"2")];
    for (said, agreed) in [
        ([by(1), nobody.clone(), nobody.clone()], nobody.clone()),
        ([by(1), by(2), nobody.clone()], somebody.clone()),
        ([by(1), somebody.clone(), nobody.clone()], somebody.clone()),
        ([by(2), somebody.clone(), by(2)], by(2)),
        ([by(2), nobody.clone(), by(2)], by(2)),
    ] {
        let shown = said.map(|one| Shows(Vec::new(), vec![SpentBy::Nobody, one]));
        let found = failover(2, shown.into()).spenders(&asked).await;
        assert_eq!(found, Ok(vec![SpentBy::Nobody, agreed]));
    }
}

#[tokio::test]
async fn who_forgets_an_answer_says_nothing() {
    let short = || Shows(Vec::new(), vec![SpentBy::Nobody]);
    let asked = [Bytes::from_static(b"1"), Bytes::from_static(b"2")];
    let found = failover(1, vec![short()]).spenders(&asked).await;
    assert!(matches!(found, Err(ReadError::Doubtful(_))), "{found:?}");
}
