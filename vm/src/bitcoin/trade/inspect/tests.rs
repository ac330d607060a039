use super::*;
use crate::{
    bitcoin::{
        source::shown_txid,
        trade::scan::{
            tests::{Chain, DEPOSITORY, USER, deposit, note, paid, script, spec, spending},
            tx_ref,
        },
    },
    trade::TxInspector,
};

async fn seen(chain: &Arc<Chain>, transaction: &Transaction) -> Option<TxDetails> {
    let inspector = Inspector::new(&spec(), chain.clone()).unwrap();
    let id = shown_txid(&transaction.compute_txid());
    inspector.inspect(&tx_ref(&id)).await.unwrap()
}

fn change(address: &str, amount: u64, negative: bool) -> (String, Diff) {
    let amount = Amount::from(amount);
    (address.to_owned(), Diff { negative, amount })
}

fn changes(details: &TxDetails) -> Vec<(String, Diff)> {
    let changes = details.changes.iter();
    changes
        .map(|it| (it.address.text().to_owned(), it.diff))
        .collect()
}

#[tokio::test]
async fn a_deposit_shows_who_paid_what_to_whom() {
    let chain = Chain::new();
    let transaction = deposit(&chain, 0, 7_000);
    assert_eq!(seen(&chain, &transaction).await, None);
    chain.wait(vec![transaction.clone()]);
    assert_eq!(seen(&chain, &transaction).await, None, "in no block");
    chain.mine(vec![transaction.clone()]);
    let details = seen(&chain, &transaction).await.unwrap();
    assert_eq!(details.from.text(), USER);
    assert_eq!(details.to.as_ref().unwrap().text(), DEPOSITORY);
    assert_eq!(details.value, Amount::from(7_000));
    // The coinbase had 50 bitcoins, and 1,000 satoshis came back.
    assert_eq!(details.fee, Amount::from(5_000_000_000_u64 - 8_000));
    assert_eq!((details.block.number, details.success), (1, true));
    assert_eq!(
        changes(&details),
        [change(USER, 7_000, true), change(DEPOSITORY, 7_000, false)]
    );
    let data = details.data.unwrap();
    assert_eq!(&data[..2], &[0x6a, 66]);
}

#[tokio::test]
async fn a_coinbase_has_no_payer() {
    let chain = Chain::new();
    let head = chain.raw_coinbase(0);
    let details = seen(&chain, &head).await.unwrap();
    assert_eq!((details.from.text(), details.fee), (USER, Amount::ZERO));
    assert_eq!(changes(&details), [change(USER, 5_000_000_000, false)]);
}

#[tokio::test]
async fn outputs_without_an_address_are_nobodys() {
    let chain = Chain::new();
    let outputs = vec![note("hello"), paid(&script(USER), 1_000)];
    let transaction = spending(&chain, 0, outputs);
    chain.mine(vec![transaction.clone()]);
    let details = seen(&chain, &transaction).await.unwrap();
    assert_eq!((details.to, details.value), (None, Amount::ZERO));
    assert!(details.changes.is_empty());
}
