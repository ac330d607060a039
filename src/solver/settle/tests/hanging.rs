//! Oracles that do not answer about some payments, and what goes on meanwhile.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use alloy::primitives::B256;
use async_trait::async_trait;
use reqwest::StatusCode;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{attested, filled, row, settler};
use crate::{
    request::{
        Request,
        fact::{Deposit, Purpose},
    },
    solver::{
        settle::{
            oracle::{OracleClient, OracleTransport},
            task::Side,
        },
        tests::rig::Rig,
    },
    store::{
        Batch,
        rows::{
            self,
            settlement::{Part, Settlement},
        },
    },
};

const POLL: Duration = Duration::from_secs(2);

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(0) };
}

fn clock() -> u64 {
    NOW.get()
}

/// It answers about deposits of these transactions, and leaves all other questions open.
#[derive(Default)]
struct Hanging {
    answers: HashMap<String, Value>,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl OracleTransport for Hanging {
    async fn post(&self, _: &str, body: &Value) -> Result<(StatusCode, Vec<u8>), String> {
        let transaction = body["transactionId"].as_str().unwrap_or_default();
        self.asked.lock().unwrap().push(transaction.to_owned());
        match self.answers.get(transaction) {
            Some(answer) => Ok((StatusCode::OK, answer.to_string().into_bytes())),
            None => std::future::pending().await,
        }
    }
}

/// A fill that is to be settled.
async fn owed(rig: &Rig, number: u8, change: impl FnOnce(&mut Request)) {
    let request = rig.quote(number, change).await;
    let id = B256::repeat_byte(number);
    let named = |deposit: &mut Deposit| {
        deposit.onchain_id = id;
        deposit.transaction = id.to_string();
    };
    rig.deposit(&request, named).await;
    let settlement = Settlement {
        purpose: Purpose::Fill,
        deposit: id,
        transaction: "0x1".into(),
        option: 0,
        recorded: true,
        deposited: Part::Pending,
        outcome: Part::Pending,
        since: 0,
        tries: 0,
        not_before: 0,
        why: None,
        refused: false,
    };
    let key = rows::settlement::key(&request.id, &id);
    let put = Batch::new().put(key, settlement.encode().unwrap());
    rig.store.commit(put).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_oracle_that_hangs_about_one_way_delays_no_other() {
    let rig = Rig::new();
    for number in 1..=40 {
        owed(&rig, number, |_| ()).await;
    }
    let other = |request: &mut Request| request.destination.network = "origin".into();
    owed(&rig, 99, other).await;
    let oracle = Arc::new(Hanging::default());
    let settler = settler(&rig, OracleClient::over(oracle.clone())).await;
    NOW.set(rig.now);
    let running = timeout(Duration::from_secs(20), settler.run(POLL, clock));
    assert!(running.await.is_err());
    // So many of the way that hangs, each once.
    let asked = oracle.asked.lock().unwrap();
    let asked = asked.iter().map(|one| one.parse::<B256>().unwrap()[0]);
    let mut found: Vec<u8> = asked.collect();
    found.sort_unstable();
    let expected: Vec<u8> = (1..=16).chain([99]).collect();
    assert_eq!(found, expected);
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_sent_again_and_followed_while_no_oracle_answers() {
    let mut rig = Rig::new();
    let request = filled(&mut rig).await;
    let (_, answer) = attested(&rig, &request, Side::Deposit).await;
    let transaction = rig.facts(&request).await.deposits[0].transaction.clone();
    let oracle = Hanging {
        answers: [(transaction, answer)].into(),
        ..Hanging::default()
    };
    let settler = settler(&rig, OracleClient::over(Arc::new(oracle))).await;
    for number in 50..=90 {
        owed(&rig, number, |_| ()).await;
    }
    NOW.set(rig.now);
    let watching = async {
        sleep(2 * POLL).await;
        let deposited = row(&rig, &request).await.unwrap().deposited;
        assert!(matches!(deposited, Part::Sent { .. }), "{deposited:?}");
        rig.origin.forget();
        sleep(2 * POLL).await;
        assert_eq!(rig.origin.waiting(), 1);
        rig.mine(10);
        sleep(2 * POLL).await;
        let deposited = row(&rig, &request).await.unwrap().deposited;
        assert_eq!(deposited, Part::Applied);
    };
    tokio::select! {
        () = settler.run(POLL, clock) => panic!("it ended"),
        () = watching => {}
    }
}
