//! Deposits that are acted on in their first block.

use super::*;

/// Orders of a network where deposits of at most `most` are acted on in their first block, each with a deposit of
/// `amounts` in block [`HERE`]. A look at the network was long enough ago: the process began then, and nothing was due.
async fn bench(most: u64, amounts: &[u64]) -> (Bench, Vec<Request>) {
    let mut bench = super::bench().await;
    let mut listed = fixtures::market().by_name("origin").unwrap().clone();
    for currency in &mut listed.currencies {
        currency.address = request::fixtures::USDC.into();
        currency.one_block_up_to = Some(market::Units(U256::from(most)));
    }
    let network = bench.confirmer.networks.get_mut("origin").unwrap();
    network.listed = Some(Arc::new(listed));
    bench.put(AT, Ok(vec![bench.deposit()]));
    bench.script.set_head(AT + FINAL);
    assert_eq!(bench.confirmer.look(NOW).await.unwrap().confirmed, 1);
    let networks = bench.confirmer.networks.clone();
    bench.confirmer = Confirmer::new(bench.requests.clone(), networks);
    bench.confirmer.look(NOW).await.unwrap();
    let mut requests = Vec::new();
    for (number, amount) in (2..).zip(amounts) {
        let request = request::fixtures::request(number);
        bench.requests.insert(&request, Batch::new()).await.unwrap();
        let mut deposit = fixtures::deposit(request.order_id, 0);
        deposit.amount = U256::from(*amount);
        let transaction = fixtures::tx(u64::from(number));
        let place = Inclusion::from(&vm::testing::block(HERE, 0));
        let known = apply::deposit("origin", &transaction, &place, &deposit);
        let entry = Entry {
            deposit: &known,
            transaction: &transaction.bytes,
            sure: true,
        };
        let recorder = Recorder {
            requests: bench.requests.clone(),
        };
        recorder.seen(&request, &[entry], NOW).await.unwrap();
        let mut receipt = vm::testing::receipt(bench.script.block(HERE));
        receipt.deposits = Ok(vec![deposit]);
        let found = Transaction::Succeeded(receipt);
        bench.script.put(&transaction, found);
        requests.push(request);
    }
    bench.script.set_head(HERE);
    (bench, requests)
}

/// Blocks on top of a deposit that make it final for the chain.
const FINAL: u64 = 10;
const HERE: u64 = AT + 2 * FINAL;

async fn finals(bench: &Bench, requests: &[Request]) -> usize {
    bench.confirmer.look(NOW).await.unwrap();
    let mut count = 0;
    for request in requests {
        let facts = bench.requests.facts(&request.id).await.unwrap();
        count += usize::from(facts.deposits[0].standing == Standing::Final);
    }
    count
}

/// Anybody can make as many small deposits as he likes, and take all of them back with one block.
#[tokio::test]
async fn what_is_acted_on_in_its_first_block_is_bounded_in_all() {
    let (bench, requests) = bench(100, &[100; 15]).await;
    assert_eq!(finals(&bench, &requests).await, 10);
    assert_eq!(finals(&bench, &requests).await, 10);
    bench.script.set_head(HERE + 1);
    assert_eq!(finals(&bench, &requests).await, 10);
    bench.script.set_head(HERE + FINAL);
    assert_eq!(finals(&bench, &requests).await, 15);
}

#[tokio::test]
async fn a_larger_deposit_waits_for_its_chain() {
    let (bench, requests) = bench(100, &[100, 101]).await;
    assert_eq!(finals(&bench, &requests).await, 1);
    bench.script.set_head(HERE + FINAL);
    assert_eq!(finals(&bench, &requests).await, 2);
}

/// Nobody knows what was acted on before.
#[tokio::test]
async fn after_a_start_nothing_is_acted_on_early_until_what_was_before_is_final() {
    let (mut bench, requests) = bench(100, &[100; 2]).await;
    let networks = bench.confirmer.networks.clone();
    bench.confirmer = Confirmer::new(bench.requests.clone(), networks);
    assert_eq!(finals(&bench, &requests).await, 0);
    bench.script.set_head(HERE + 9);
    assert_eq!(finals(&bench, &requests).await, 0);
    bench.script.set_head(HERE + FINAL);
    assert_eq!(finals(&bench, &requests).await, 2);
}
