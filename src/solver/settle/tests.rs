use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use alloy::primitives::U256;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{oracle::Http, task::LONGEST_PAUSE, *};
use crate::{
    request::{Request, fixtures},
    solver::tests::rig::{ROUTER, Rig},
    store::rows,
};

mod hanging;

/// How often one question is put.
const TRIES: usize = 3;

type Answers = Arc<Mutex<VecDeque<(u16, Value)>>>;
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// An oracle that gives scripted answers in turn and remembers what it was asked.
async fn oracle(answers: Vec<(u16, Value)>) -> (OracleClient, Answers, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answers: Answers = Arc::new(Mutex::new(answers.into()));
    let asked = Asked::default();
    let (script, seen) = (answers.clone(), asked.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut text = String::new();
            loop {
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).await.unwrap();
                text += std::str::from_utf8(&bytes[..read]).unwrap();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                if let Ok(body) = serde_json::from_str(body) {
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    seen.lock().unwrap().push((path, body));
                    break;
                }
            }
            let answer = script.lock().unwrap().pop_front();
            let (status, body) = answer.unwrap_or((503, json!({})));
            let body = body.to_string();
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let http = Http::new(url.parse().unwrap(), None, Duration::from_secs(5)).unwrap();
    (OracleClient::over(Arc::new(http)), answers, asked)
}

/// What the oracle answers about a side of a filled order.
async fn attested(rig: &Rig, request: &Request, side: Side) -> (u16, Value) {
    let key = key(rig, request, side).await;
    let execution = json!({
        "idempotencyKey": key,
        "actions": ["0x01"],
        "signatures": [{ "signature": "0xaa" }],
    });
    (200, json!({ "execution": execution }))
}

async fn key(rig: &Rig, request: &Request, side: Side) -> B256 {
    let deposit = &rig.facts(request).await.deposits[0];
    match side {
        Side::Deposit => execution::deposit_key(deposit),
        Side::Outcome => execution::outcome_key(request.order_id, deposit),
    }
}

async fn both(rig: &Rig, request: &Request) -> Vec<(u16, Value)> {
    let deposit = attested(rig, request, Side::Deposit).await;
    vec![deposit, attested(rig, request, Side::Outcome).await]
}

/// A filled order whose settlement was handed over.
async fn filled(rig: &mut Rig) -> Request {
    let request = rig.funded(1).await;
    let solver = rig.solver().await;
    for _ in 0..20 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    request
}

async fn settler(rig: &Rig, oracle: OracleClient) -> Settler {
    settling(rig, oracle, Arc::default()).await
}

async fn settling(rig: &Rig, oracle: OracleClient, exposure: Arc<Exposure>) -> Settler {
    Settler {
        exposure,
        sending: Semaphore::new(SENDING),
        requests: rig.requests.clone(),
        account: rig.solver().await.accounts["origin"].clone(),
        oracle,
        keys: rig.keys(),
        contract: vm::SETTLEMENT.address(ROUTER).unwrap(),
    }
}

async fn row(rig: &Rig, request: &Request) -> Option<Settlement> {
    let key = rows::settlement::key(&request.id, &B256::ZERO);
    let found = rig.store.read(&key).await.unwrap();
    found.map(|bytes| Settlement::decode(&bytes).unwrap())
}

/// Of a limit of 150 dollars a fill takes 99.90 until the solver has been paid for it.
#[tokio::test]
async fn what_is_settled_counts_for_no_limit_any_more() {
    let mut rig = Rig::new();
    rig.caps.hourly = Some(crate::market::Dollars(150_000_000));
    let request = filled(&mut rig).await;
    let payment = crate::solver::exposure::Payment {
        network: "destination",
        currency: fixtures::USDC,
        amount: U256::from(99_900_000),
        user: None,
    };
    let solver = rig.solver().await;
    let now = rig.now / 1_000;
    assert_eq!(solver.admits(payment, now).await, Ok(false));
    let (oracle, _, _) = oracle(both(&rig, &request).await).await;
    let settler = settling(&rig, oracle, solver.exposure.clone()).await;
    for _ in 0..20 {
        settler.round(rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(row(&rig, &request).await, None);
    assert_eq!(solver.admits(payment, now).await, Ok(true));
    // Another process, too.
    let solver = rig.solver().await;
    assert_eq!(solver.admits(payment, now).await, Ok(true));
}

#[tokio::test]
async fn deposit_and_fill_are_attested_submitted_and_told() {
    let mut rig = Rig::new();
    let request = filled(&mut rig).await;
    let (oracle, _, asked) = oracle(both(&rig, &request).await).await;
    let settler = settler(&rig, oracle).await;
    for _ in 0..20 {
        settler.round(rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(row(&rig, &request).await, None);
    let recorded = rig.facts(&request).await.settlement.unwrap();
    let applied =
        |applied: &Option<Applied>| applied.as_ref().unwrap().execution["idempotencyKey"].clone();
    let keys = [Side::Deposit, Side::Outcome].map(|side| key(&rig, &request, side));
    let [deposit, outcome] = keys;
    assert_eq!(applied(&recorded.deposit), json!(deposit.await));
    assert_eq!(applied(&recorded.outcome), json!(outcome.await));
    let asked = asked.lock().unwrap().clone();
    let paths: Vec<_> = asked.iter().map(|(path, _)| path.as_str()).collect();
    let (deposits, fills) = (
        "/attestations/depository-deposits/v1",
        "/attestations/solver-fills/v1",
    );
    assert_eq!(paths, [deposits, fills]);
    let facts = rig.facts(&request).await;
    assert_eq!(asked[0].1["transactionId"], facts.deposits[0].transaction);
    assert_eq!(asked[0].1["requestPeerSignatures"], true);
    assert_eq!(
        asked[1].1["fill"]["transactionId"],
        facts.attempts[0].transaction
    );
    assert_eq!(
        asked[1].1["inputs"][0]["onchainId"],
        json!(facts.deposits[0].onchain_id)
    );
    assert_eq!(asked[1].1["orderSignature"], json!(request.order_signature));
    assert_eq!(settler.account.attempts().await.unwrap(), []);
}

/// What was paid stays listed with why it is not settled, and is tried again: the oracle may be mended.
#[tokio::test]
async fn oracle_that_says_no_is_asked_again_later_and_the_payment_stays_listed() {
    for status in [400, 409] {
        let mut rig = Rig::new();
        let request = filled(&mut rig).await;
        let refusal = (
            status,
            json!({ "message": "no", "code": "ORDER_MALFORMED" }),
        );
        let (oracle, answers, asked) = oracle(vec![refusal]).await;
        let settler = settler(&rig, oracle).await;
        for _ in 0..4 {
            settler.round(rig.now).await.unwrap();
            rig.mine(1);
        }
        let listed = row(&rig, &request).await.unwrap();
        assert!(listed.refused && listed.why.unwrap().contains("ORDER_MALFORMED"));
        assert_eq!(rig.facts(&request).await.settlement, None);
        assert_eq!(asked.lock().unwrap().len(), 1);
        let later = both(&rig, &request).await;
        answers.lock().unwrap().extend(later);
        rig.now += REFUSED_PAUSE * 1_000;
        for _ in 0..20 {
            settler.round(rig.now).await.unwrap();
            rig.mine(1);
        }
        assert_eq!(row(&rig, &request).await, None);
    }
}

#[tokio::test]
async fn each_paid_deposit_of_an_order_is_settled() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.deposit(&request, |deposit| {
        deposit.onchain_id = B256::repeat_byte(7);
        deposit.transaction = B256::repeat_byte(8).to_string();
    })
    .await;
    rig.settle(&request).await;
    let deposits = rig.facts(&request).await.deposits;
    let mut answers = Vec::new();
    for key in deposits.iter().flat_map(|deposit| {
        let outcome = execution::outcome_key(request.order_id, deposit);
        [execution::deposit_key(deposit), outcome]
    }) {
        let execution = json!({ "idempotencyKey": key, "actions": ["0x01"],
            "signatures": [{ "signature": "0xaa" }] });
        answers.push(json!({ "execution": execution }));
    }
    let (oracle, script, asked) = oracle(Vec::new()).await;
    let settler = settler(&rig, oracle).await;
    // One after the other, each with its own answers.
    for (deposit, answers) in deposits.iter().zip(answers.chunks(2)) {
        let key = rows::settlement::key(&request.id, &deposit.onchain_id);
        for _ in 0..30 {
            let Some(value) = rig.store.read(&key).await.unwrap() else {
                break;
            };
            let known = Settlement::decode(&value).unwrap();
            let at = usize::from(known.deposited == Part::Applied);
            *script.lock().unwrap() = VecDeque::from([(200, answers[at].clone())]);
            settler.advance(&key, rig.now).await.unwrap();
            rig.mine(1);
        }
        assert_eq!(rig.store.read(&key).await.unwrap(), None);
    }
    let asked = asked.lock().unwrap().clone();
    let paths: Vec<_> = asked.iter().map(|(path, _)| path.as_str()).collect();
    let (deposit, fill, refund) = (
        "/attestations/depository-deposits/v1",
        "/attestations/solver-fills/v1",
        "/attestations/solver-refunds/v1",
    );
    assert_eq!(paths, [deposit, fill, deposit, refund]);
    // The record has the settlement of the fill.
    let recorded = rig.facts(&request).await.settlement.unwrap();
    let key = execution::outcome_key(request.order_id, &deposits[0]);
    let execution = recorded.outcome.unwrap().execution;
    assert_eq!(execution["idempotencyKey"], json!(key));
}

#[tokio::test]
async fn oracle_that_is_busy_is_asked_later() {
    let mut rig = Rig::new();
    let request = filled(&mut rig).await;
    let (oracle, answers, _) = oracle(Vec::new()).await;
    let settler = settler(&rig, oracle).await;
    settler.round(rig.now).await.unwrap();
    let waiting = row(&rig, &request).await.unwrap();
    assert_eq!((waiting.tries, waiting.not_before), (1, rig.now + 1_000));
    assert_eq!(waiting.deposited, Part::Pending);
    let later = both(&rig, &request).await;
    answers.lock().unwrap().extend(later);
    for _ in 0..20 {
        rig.mine(1);
        settler.round(rig.now).await.unwrap();
    }
    assert!(
        rig.facts(&request)
            .await
            .settlement
            .unwrap()
            .outcome
            .is_some()
    );
    assert_eq!(row(&rig, &request).await, None);
}

/// Of two providers one says that everything takes less than it does: with so little it would fail in its block.
#[tokio::test]
async fn one_liar_of_two_about_gas_has_no_execution_sent() {
    for work in [1, 15_000] {
        let mut rig = Rig::new();
        let request = filled(&mut rig).await;
        rig.origin.with(|world| {
            world.pair = true;
            world.lies.work = Some(work);
        });
        let answer = attested(&rig, &request, Side::Deposit).await;
        let (oracle, ..) = oracle(vec![answer; 5]).await;
        let settler = settler(&rig, oracle).await;
        for tries in 1..=5_u32 {
            settler.round(rig.now).await.unwrap();
            let waiting = row(&rig, &request).await.unwrap();
            assert_eq!((waiting.tries, waiting.deposited), (tries, Part::Pending));
            assert_eq!(waiting.not_before, rig.now + (1_000_u64 << (tries - 1)));
            rig.now = waiting.not_before;
        }
        assert_eq!(settler.account.attempts().await.unwrap(), []);
        assert_eq!(rig.origin.with(|world| world.broadcasts.len()), 0, "{work}");
    }
}

#[tokio::test]
async fn an_execution_that_never_lands_is_sent_less_and_less_often() {
    let mut rig = Rig::new();
    let request = filled(&mut rig).await;
    let answer = attested(&rig, &request, Side::Deposit).await;
    let (oracle, answers, _) = oracle(vec![answer; 3]).await;
    let settler = settler(&rig, oracle).await;
    for tries in 1..=3_u32 {
        settler.round(rig.now).await.unwrap();
        let sent = row(&rig, &request).await.unwrap().deposited;
        assert!(matches!(sent, Part::Sent { .. }), "{sent:?}");
        // Its nonce is somebody else's.
        let nonce = u64::from(tries - 1);
        rig.origin.intrude(&rig.solver_text(), nonce);
        rig.mine(10);
        settler.round(rig.now).await.unwrap();
        let waiting = row(&rig, &request).await.unwrap();
        assert_eq!((waiting.tries, waiting.deposited), (tries, Part::Pending));
        assert_eq!(waiting.not_before, rig.now + (1_000_u64 << (tries - 1)));
        rig.now = waiting.not_before;
    }
    // The next part begins anew once this one is applied.
    let later = both(&rig, &request).await;
    answers.lock().unwrap().extend(later);
    for _ in 0..20 {
        settler.round(rig.now).await.unwrap();
        rig.mine(1);
        let waiting = row(&rig, &request).await;
        if let Some(waiting) = waiting.filter(|row| row.deposited == Part::Applied) {
            assert_eq!(waiting.tries, 0);
        }
    }
    assert_eq!(row(&rig, &request).await, None);
}

/// Whatever is on its way when the process dies is found again: one transaction per execution.
#[tokio::test]
async fn settlement_goes_on_where_the_process_died() {
    for point in 1..40 {
        let mut rig = Rig::new();
        let request = filled(&mut rig).await;
        // An answer may be lost with the process: the oracle gives the same one again.
        let (oracle, answers, _) = oracle(Vec::new()).await;
        let fuse = rig.fuse.clone();
        fuse.set(point);
        let mut died = false;
        for _ in 0..40 {
            let applied = match row(&rig, &request).await {
                None => break,
                Some(settlement) => settlement.deposited == Part::Applied,
            };
            let side = match applied {
                true => Side::Outcome,
                false => Side::Deposit,
            };
            let answer = attested(&rig, &request, side).await;
            *answers.lock().unwrap() = VecDeque::from([answer]);
            let alive = fuse
                .survive(async {
                    settler(&rig, oracle.clone())
                        .await
                        .round(rig.now)
                        .await
                        .ok();
                })
                .await;
            if !alive {
                died = true;
                fuse.off();
            }
            rig.mine(1);
            rig.now += 60_000;
        }
        fuse.off();
        assert_eq!(row(&rig, &request).await, None, "{point}");
        assert!(
            rig.facts(&request)
                .await
                .settlement
                .unwrap()
                .outcome
                .is_some()
        );
        let sent = rig.origin.with(|world| world.broadcasts.clone());
        let distinct: std::collections::BTreeSet<_> = sent.iter().collect();
        assert!(distinct.len() <= 4, "{point}: {}", distinct.len());
        let spent = rig.origin.spent_on_gas() / U256::from(21_000 * 110);
        assert_eq!(spent, U256::from(2), "{point}");
        if !died {
            return;
        }
    }
}

/// A nonce of the former account is none of the present one's, whose young nonces are the same numbers.
#[tokio::test]
async fn what_a_former_account_sent_is_not_what_the_present_one_did() {
    let mut rig = Rig::new();
    let request = filled(&mut rig).await;
    let (first, _, _) = oracle(both(&rig, &request).await).await;
    let settler_before = settler(&rig, first).await;
    settler_before.round(rig.now).await.unwrap();
    let sent = row(&rig, &request).await.unwrap().deposited;
    assert!(
        matches!(&sent, Part::Sent { attempt, .. } if attempt[..] == [0; 8]),
        "{sent:?}"
    );
    rig.origin.forget();
    rig.rotate();
    let (silent, _, _) = oracle(Vec::new()).await;
    let settler = settler(&rig, silent).await;
    let (_, answer) = attested(&rig, &request, Side::Outcome).await;
    let key = key(&rig, &request, Side::Outcome).await;
    let plan = Plan {
        owner: Owner::Settlement(B256::repeat_byte(5)),
        intent: Intent {
            draft: Draft::call(Call {
                from: settler.account.owner.clone(),
                to: settler.contract.clone(),
                data: execution::encode(&answer["execution"], key).unwrap(),
                value: Amount::ZERO,
            }),
            work: 200_000,
            besides: None,
            spends: Vec::new(),
        },
        keeps: false,
    };
    let mut taken = settler.account.take(&plan, rig.now / 1_000).await.unwrap();
    assert_eq!(taken.id[..], [0; 8]);
    let batch = std::mem::take(&mut taken.batch);
    rig.store.commit(batch).await.unwrap();
    settler
        .account
        .send(&taken.id, &taken.attempt)
        .await
        .unwrap();
    drop(taken);
    for _ in 0..20 {
        rig.mine(1);
    }
    settler.round(rig.now).await.unwrap();
    let row = row(&rig, &request).await.unwrap();
    assert_eq!(row.deposited, Part::Pending);
    // Its transaction is looked after until it is done with.
    let former = rig.solver().await.former;
    let account = former.iter().find(|account| account.chain.name == "origin");
    let account = account.unwrap();
    assert_eq!(account.attempts().await.unwrap().len(), 1);
    for _ in 0..20 {
        account.sweep(rig.now / 1_000).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(account.attempts().await.unwrap(), []);
}

/// Whether its transaction is in a block or forgotten.
#[tokio::test]
async fn what_a_former_account_was_to_settle_the_present_one_settles() {
    for forgotten in [false, true] {
        let mut rig = Rig::new();
        let request = filled(&mut rig).await;
        let (first, _, _) = oracle(both(&rig, &request).await).await;
        settler(&rig, first).await.round(rig.now).await.unwrap();
        let sent = row(&rig, &request).await.unwrap().deposited;
        assert!(matches!(sent, Part::Sent { .. }), "{sent:?}");
        match forgotten {
            true => rig.origin.forget(),
            false => rig.mine(1),
        }
        rig.rotate();
        let (second, _, asked) = oracle(both(&rig, &request).await).await;
        let settler = settler(&rig, second).await;
        for _ in 0..30 {
            settler.round(rig.now).await.unwrap();
            rig.mine(1);
        }
        assert_eq!(row(&rig, &request).await, None, "{forgotten}");
        let recorded = rig.facts(&request).await.settlement.unwrap();
        assert!(recorded.deposit.is_some() && recorded.outcome.is_some());
        assert_eq!(asked.lock().unwrap().len(), 2);
    }
}

/// An answer that is no execution, or not this order's, is no reason to give up, and none to send.
#[tokio::test]
async fn rubbish_is_neither_sent_nor_the_end() {
    let mut rig = Rig::new();
    let request = filled(&mut rig).await;
    let foreign = attested(&rig, &request, Side::Outcome).await;
    let rubbish = vec![
        (200, json!({})),
        (200, json!({ "execution": {} })),
        (200, json!({ "execution": null })),
        foreign,
        (400, json!("a proxy's page")),
    ];
    for answer in rubbish {
        // The same answer to every try of one question.
        let (oracle, _, asked) = oracle(vec![answer.clone(); TRIES]).await;
        let settler = settler(&rig, oracle).await;
        rig.now += 2 * LONGEST_PAUSE * 1_000;
        settler.round(rig.now).await.unwrap();
        let row = row(&rig, &request).await.unwrap();
        assert_eq!(row.deposited, Part::Pending, "{answer:?}");
        assert!(row.not_before > rig.now, "{answer:?}");
        assert!(!asked.lock().unwrap().is_empty());
    }
    assert_eq!(rig.facts(&request).await.settlement, None);
    assert_eq!(rig.origin.with(|world| world.broadcasts.len()), 0);
    let (oracle, ..) = oracle(both(&rig, &request).await).await;
    let settler = settler(&rig, oracle).await;
    rig.now += 2 * LONGEST_PAUSE * 1_000;
    for _ in 0..20 {
        settler.round(rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(row(&rig, &request).await, None);
}
