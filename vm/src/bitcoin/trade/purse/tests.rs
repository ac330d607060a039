use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bitcoin::{OutPoint, Psbt, TxIn, absolute::LockTime, hashes::Hash, transaction::Version};

use super::*;
use crate::{
    bitcoin::{
        decode::{self, Rules},
        network::MAIN,
        raw::{RawInput, RawOutput, RawScript, RawTransaction},
        trade::{body::Content, coin, steps},
    },
    testing::Script as Provider,
    trade::{Choices, DepositTerms, FeeRate, SpentBy, Unspent},
    types::{Address, Block},
};

const USER: &str = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4";
const LEGACY: &str = "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH";
const NESTED: &str = "3JvL6Ymt8MVWiCNHC7oWU6nLeHNJKLZGLN";
/// The public key of the three accounts above (BIP 173 and BIP 340 use the same).
const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
/// The first account of BIP 86's test vectors, its internal key and its output key.
const TAPROOT: &str = "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr";
const INTERNAL: &str = "cc8a4bc64d897bddc5fbc2f670f7a8ba0b386779106cf1223c6fc5d7cd6fc115";
const TWEAKED: &str = "a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c";
const DEPOSITORY: &str = "bc1q82jn90vgkwvknrhxpla797tu050fj0jaaaznne";
const ORDER: B256 = B256::repeat_byte(0xee);

/// Outputs of an account that are shown.
const LISTED: usize = 10_000;

/// What transactions pay an account.
struct Holdings {
    script: ScriptBuf,
    transactions: Vec<Transaction>,
    /// Transactions that were asked for.
    asked: AtomicUsize,
}

#[async_trait]
impl Outputs for Holdings {
    async fn unspent(&self, _: &Address) -> Result<Vec<Unspent>, ReadError> {
        let mut all = Vec::new();
        for transaction in &self.transactions {
            let txid = transaction.compute_txid();
            let outputs = (0..).zip(&transaction.output);
            let own = outputs.filter(|(_, output)| output.script_pubkey == self.script);
            all.extend(own.map(|(vout, output)| Unspent {
                output: coin::output(&OutPoint::new(txid, vout)),
                amount: Amount::from(output.value.to_sat()),
                height: 1,
            }));
        }
        match all.len() > LISTED {
            true => Err(ReadError::TooLarge),
            false => Ok(all),
        }
    }

    async fn spenders(&self, outputs: &[Bytes]) -> Result<Vec<SpentBy>, ReadError> {
        Ok(vec![SpentBy::Nobody; outputs.len()])
    }

    async fn transaction(&self, id: &Bytes) -> Result<Option<Bytes>, ReadError> {
        self.asked.fetch_add(1, Relaxed);
        let same = |it: &&Transaction| shown_txid(&it.compute_txid())[..] == id[..];
        let found = self.transactions.iter().find(same);
        Ok(found.map(|it| consensus::serialize(it).into()))
    }
}

fn account(text: &str) -> Address {
    crate::family("bitcoin-vm").unwrap().account(text).unwrap()
}

/// A transaction that pays an account so many satoshis each time; its lock time tells it from others.
fn paying(user: &str, number: u32, values: &[u64]) -> Transaction {
    let paid = values.iter().map(|value| TxOut {
        value: bitcoin::Amount::from_sat(*value),
        script_pubkey: MAIN.script(user).unwrap(),
    });
    Transaction {
        version: Version::TWO,
        lock_time: LockTime::from_consensus(number),
        input: vec![TxIn::default()],
        output: paid.collect(),
    }
}

/// Each output is of a transaction of its own.
fn purse(user: &str, values: &[u64]) -> Purse {
    let held = (1..).zip(values);
    let held = held.map(|(number, value)| paying(user, number, &[*value]));
    purse_of(&holdings(user, held.collect()))
}

fn holdings(user: &str, transactions: Vec<Transaction>) -> Arc<Holdings> {
    Arc::new(Holdings {
        script: MAIN.script(user).unwrap(),
        transactions,
        asked: AtomicUsize::new(0),
    })
}

fn purse_of(holdings: &Arc<Holdings>) -> Purse {
    let provider = TradingProvider {
        outputs: Some(holdings.clone()),
        ..Provider::at(1).trading()
    };
    Purse {
        failover: Failover::new("bitcoin", 1, vec![provider]).unwrap(),
        network: &MAIN,
        most: 500,
    }
}

async fn fund(purse: &Purse, user: (&str, Option<&str>), amount: u64) -> Result<Bytes, Unfunded> {
    fund_at(purse, user, amount, FeeRate::new(10, 0)).await
}

async fn fund_at(
    purse: &Purse,
    (user, key): (&str, Option<&str>),
    amount: u64,
    rate: FeeRate,
) -> Result<Bytes, Unfunded> {
    let currency = crate::family("bitcoin-vm").unwrap().native().unwrap();
    let user = account(user);
    let unspent = purse.unspent(&user).await.unwrap()?;
    let need = Need {
        user: &user,
        key,
        depository: &account(DEPOSITORY),
        currency: &currency,
        amount: Amount::from(amount),
        rate,
        unspent: &unspent,
    };
    purse.fund(&need).await.unwrap()
}

fn deposit(user: &str, funds: &[u8], amount: u64) -> Result<Psbt, crate::CodecError> {
    let steps = steps::deposit(
        &MAIN,
        &DepositTerms {
            user: &account(user),
            depository: &account(DEPOSITORY),
            currency: &crate::family("bitcoin-vm").unwrap().native().unwrap(),
            amount: Amount::from(amount),
            order: ORDER,
            explicit: true,
            approved: Amount::MAX,
            reset: false,
            funds,
            before: &[],
            choices: &Choices::default(),
        },
    )?;
    assert_eq!(steps.len(), 1);
    let draft = &steps[0].draft;
    assert_eq!(draft.value, Amount::from(amount));
    match Content::of(draft).unwrap() {
        Content::Psbt(psbt) => Ok(*psbt),
        Content::Outputs(_) => panic!("no PSBT"),
    }
}

/// The deposit as an oracle reads it once it is in a block.
fn read(psbt: &Psbt, user: &str) -> crate::Deposit {
    let entry = serde_json::json!({
        "id": "bitcoin", "vmType": "bitcoin-vm", "hubChainId": "7", "depository": DEPOSITORY,
    });
    let entry: crate::ChainEntry = serde_json::from_value(entry).unwrap();
    let spec = entry.spec(crate::family("bitcoin-vm").unwrap(), false);
    let rules = Rules::new(&spec.unwrap()).unwrap();
    let unsigned = &psbt.unsigned_tx;
    let inputs = unsigned.input.iter().map(|input| RawInput {
        txid: Some(input.previous_output.txid),
        vout: input.previous_output.vout,
        prevout: None,
        script_sig: None,
        witness: Vec::new(),
    });
    let outputs = (0..).zip(&unsigned.output).map(|(n, output)| RawOutput {
        value: output.value,
        n,
        script: RawScript {
            hex: output.script_pubkey.clone(),
        },
    });
    let raw = RawTransaction {
        txid: unsigned.compute_txid(),
        vin: inputs.collect(),
        vout: outputs.collect(),
        blockhash: None,
    };
    let spent = vec![Some(MAIN.script(user).unwrap()); raw.vin.len()];
    let block = Block {
        number: 1,
        hash: B256::ZERO,
        parent: B256::ZERO,
        time: 0,
    };
    let deposits = decode::decode(&rules, &raw, &spent, block).deposits;
    deposits.unwrap().pop().unwrap()
}

#[tokio::test]
async fn the_deposit_is_what_the_decoder_attributes_to_its_user_and_order() {
    for (user, key) in [(USER, None), (LEGACY, None), (NESTED, Some(KEY))] {
        let purse = purse(user, &[30_000, 90_000]);
        let funds = fund(&purse, (user, key), 100_000).await.unwrap();
        let psbt = deposit(user, &funds, 100_000).unwrap();
        let read = read(&psbt, user);
        assert_eq!(read.depositor.text(), user);
        assert_eq!(read.amount, Amount::from(100_000));
        assert_eq!(*read.id, *format!("{ORDER:#x}"));
        let draft = Content::Psbt(Box::new(psbt.clone())).draft(&account(user), 100_000);
        let fee = crate::trade::StepFee {
            number: 1,
            work: 1,
            limit: None,
            rate: FeeRate::default(),
        };
        let shown = steps::render(&MAIN, &draft, fee).unwrap();
        let hex = shown["psbt"].as_str().unwrap();
        assert!(hex.starts_with("70736274ff"), "{hex}");
        assert_eq!(shown.as_object().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_satoshi_too_little_is_too_little() {
    // One input, the depository, the order's OP_RETURN: 187 virtual bytes at 10 satoshis.
    let exact = purse(USER, &[101_870]);
    let funded = fund(&exact, (USER, None), 100_000).await;
    let psbt = deposit(USER, &funded.unwrap(), 100_000).unwrap();
    assert_eq!(psbt.unsigned_tx.output.len(), 2);
    assert_eq!(psbt_step::work(&psbt), 187);
    let short = purse(USER, &[101_869]);
    let missing = Amount::from(1);
    assert_eq!(
        fund(&short, (USER, None), 100_000).await,
        Err(Unfunded::Short { missing })
    );
    let nothing = purse(USER, &[]);
    let funded = fund(&nothing, (USER, None), 100_000).await;
    assert!(matches!(funded, Err(Unfunded::Short { .. })));
    let all = fund(&exact, (USER, None), u64::MAX).await;
    assert!(matches!(all, Err(Unfunded::Short { .. })));
}

#[tokio::test]
async fn nothing_and_dust_are_too_small() {
    let purse = purse(USER, &[100_000]);
    let least = Amount::from(294);
    for amount in [0, 1, 293] {
        let funded = fund(&purse, (USER, None), amount).await;
        assert_eq!(funded, Err(Unfunded::Small { least }), "{amount}");
    }
    assert!(fund(&purse, (USER, None), 294).await.is_ok());
}

#[tokio::test]
async fn a_script_hash_needs_the_key_that_spends_it() {
    let purse = purse(NESTED, &[200_000]);
    let other = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";
    for key in [None, Some("02"), Some(other), Some("")] {
        let funded = fund(&purse, (NESTED, key), 100_000).await;
        assert!(matches!(funded, Err(Unfunded::Key(_))), "{key:?}");
    }
    assert!(fund(&purse, (NESTED, Some(KEY)), 100_000).await.is_ok());
    let own = fund(&purse, (DEPOSITORY, None), 100_000).await;
    assert!(matches!(own, Err(Unfunded::Unable(_))));
}

#[tokio::test]
async fn a_taproot_users_internal_key_is_shown_to_the_wallet_where_it_is_known() {
    let purse = purse(TAPROOT, &[60_000, 70_000]);
    let [even, odd] = ["02", "03"].map(|parity| format!("{parity}{INTERNAL}"));
    let keys = [INTERNAL, &even, &odd].map(Some);
    let mut unnamed = None;
    for key in [None].into_iter().chain(keys) {
        let funds = fund(&purse, (TAPROOT, key), 100_000).await.unwrap();
        let mut psbt = deposit(TAPROOT, &funds, 100_000).unwrap();
        assert_eq!(psbt.inputs.len(), 2);
        for input in &mut psbt.inputs {
            let shown = input.tap_internal_key.take().map(|key| key.to_string());
            assert_eq!(shown.as_deref(), key.map(|_| INTERNAL), "{key:?}");
        }
        // Nothing else depends on it.
        assert_eq!(*unnamed.get_or_insert_with(|| psbt.clone()), psbt);
    }
}

#[tokio::test]
async fn a_taproot_users_other_key_is_shown_to_nobody_and_what_is_no_key_is_refused() {
    let (taproot, plain) = (purse(TAPROOT, &[200_000]), purse(USER, &[200_000]));
    for key in [TWEAKED, &KEY[2..], KEY] {
        let funds = fund(&taproot, (TAPROOT, Some(key)), 100_000).await.unwrap();
        let psbt = deposit(TAPROOT, &funds, 100_000).unwrap();
        assert_eq!(psbt.inputs[0].tap_internal_key, None, "{key}");
    }
    for key in ["", "02", &INTERNAL[2..]] {
        let funded = fund(&taproot, (TAPROOT, Some(key)), 100_000).await;
        assert!(matches!(funded, Err(Unfunded::Key(_))), "{key}: {funded:?}");
    }
    // 32 bytes are a key of Taproot alone.
    let funded = fund(&plain, (USER, Some(&KEY[2..])), 100_000).await;
    assert!(matches!(funded, Err(Unfunded::Key(_))), "{funded:?}");
}

#[tokio::test]
async fn ten_thousand_outputs_take_no_time_and_too_small_ones_are_told_of() {
    let values: Vec<u64> = (0..10_000).map(|at| 2_000 + at).collect();
    let purse = purse(USER, &values);
    let funds = fund(&purse, (USER, None), 1_000_000).await.unwrap();
    assert!(deposit(USER, &funds, 1_000_000).is_ok());
    let many = fund(&purse, (USER, None), 30_000_000).await;
    assert!(matches!(many, Err(Unfunded::Unable(why)) if why.ends_with(COMBINE)));
}

#[tokio::test]
async fn funds_of_another_deposit_are_refused() {
    let purse = purse(USER, &[200_000]);
    let funds = fund(&purse, (USER, None), 100_000).await.unwrap();
    assert!(deposit(USER, &funds, 100_001).is_err());
    assert!(deposit(USER, &funds[1..], 100_000).is_err());
    assert!(deposit(USER, &[], 100_000).is_err());
}

#[test]
fn shown_ids_are_those_of_the_transactions() {
    let txid = Txid::from_byte_array([1; 32]);
    assert_eq!(shown_txid(&txid), B256::repeat_byte(1));
}

/// Where one provider's word is enough it may say any rate, and a user's signature would pay it.
#[tokio::test]
async fn nothing_is_made_above_the_rate_that_the_operator_allows() {
    let mut purse = purse(USER, &[900_000]);
    purse.most = 10;
    assert!(fund(&purse, (USER, None), 50_000).await.is_ok());
    purse.most = 9;
    let refused = fund(&purse, (USER, None), 50_000).await;
    assert!(matches!(refused, Err(Unfunded::Unable(why)) if why.contains("10 satoshis")));
}

/// What is signed is paid, and one of two providers may say that next to nothing is asked.
#[tokio::test]
async fn of_two_rates_that_are_near_a_user_pays_the_middle_up_to_what_the_operator_allows() {
    let rate = |base, above| FeeRate {
        above,
        ..FeeRate::new(base, 0)
    };
    for (rate, most, paid) in [
        (rate(3, 9), 500, 7),
        (rate(3, 0), 500, 3),
        (rate(3, 9), 5, 5),
    ] {
        // One input, the depository, the order's OP_RETURN: 187 virtual bytes.
        let exact = |missing: u64| {
            let mut purse = purse(USER, &[100_000 + 187 * paid - missing]);
            purse.most = most;
            purse
        };
        let funded = fund_at(&exact(0), (USER, None), 100_000, rate).await;
        let psbt = deposit(USER, &funded.unwrap(), 100_000).unwrap();
        assert_eq!(psbt.unsigned_tx.output.len(), 2, "{rate:?}");
        let missing = Amount::from(1);
        assert_eq!(
            fund_at(&exact(1), (USER, None), 100_000, rate).await,
            Err(Unfunded::Short { missing }),
            "{rate:?}"
        );
    }
    let mut purse = purse(USER, &[900_000]);
    purse.most = 2;
    let refused = fund_at(&purse, (USER, None), 50_000, rate(3, 9)).await;
    assert!(matches!(refused, Err(Unfunded::Unable(why)) if why.contains("3 satoshis")));
}

#[tokio::test]
async fn an_account_with_more_outputs_than_are_listed_is_told_so() {
    let fits = purse(USER, &[10_000; 10_000]);
    assert!(fund(&fits, (USER, None), 50_000).await.is_ok());
    let crowded = purse(USER, &[10_000; 10_001]);
    let refused = fund(&crowded, (USER, None), 50_000).await;
    assert!(matches!(refused, Err(Unfunded::Unable(why)) if why.ends_with(COMBINE)));
}

/// Signatures of a P2PKH account commit to no amounts, so its wallet is shown what it spends.
#[tokio::test]
async fn previous_transactions_are_shown_without_their_witnesses() {
    let mut large = paying(LEGACY, 1, &[60_000, 70_000]);
    large.input[0].witness = Witness::from_slice(&[vec![7_u8; 390_000]]);
    let purse = purse_of(&holdings(LEGACY, vec![large.clone()]));
    let funds = fund(&purse, (LEGACY, None), 100_000).await.unwrap();
    assert!(funds.len() < 2_000, "{}", funds.len());
    let psbt = deposit(LEGACY, &funds, 100_000).unwrap();
    assert_eq!(psbt.inputs.len(), 2);
    for input in &psbt.inputs {
        let shown = input.non_witness_utxo.as_ref().unwrap();
        assert_eq!(shown.compute_txid(), large.compute_txid());
        assert!(shown.input[0].witness.is_empty());
    }
}

/// Each input shows the whole transaction: 256 of them made gigabytes of one that somebody paid the account with.
#[tokio::test]
async fn what_a_psbt_shows_is_bounded() {
    let mut large = paying(LEGACY, 1, &[20_000; 12]);
    large.input[0].script_sig = ScriptBuf::from_bytes(vec![0; 100_000]);
    let purse = purse_of(&holdings(LEGACY, vec![large]));
    let nine = fund(&purse, (LEGACY, None), 150_000).await.unwrap();
    let psbt = deposit(LEGACY, &nine, 150_000).unwrap();
    assert_eq!(psbt.inputs.len(), 9);
    let ten = fund(&purse, (LEGACY, None), 180_000).await;
    assert!(matches!(ten, Err(Unfunded::Unable(why)) if why.ends_with(COMBINE)));
}

#[tokio::test]
async fn a_quote_reads_so_many_previous_transactions_and_no_more() {
    let transactions = (1..=65).map(|number| paying(LEGACY, number, &[20_000]));
    let holdings = holdings(LEGACY, transactions.collect());
    let legacy = purse_of(&holdings);
    assert!(fund(&legacy, (LEGACY, None), 1_180_000).await.is_ok());
    assert_eq!(holdings.asked.load(Relaxed), 64);
    let more = fund(&legacy, (LEGACY, None), 1_190_000).await;
    assert!(matches!(more, Err(Unfunded::Unable(why)) if why.ends_with(COMBINE)));
    assert_eq!(holdings.asked.load(Relaxed), 64);
    // What a signature commits to is shown without.
    let plain = purse(USER, &[20_000; 65]);
    let funds = fund(&plain, (USER, None), 1_240_000).await.unwrap();
    let psbt = deposit(USER, &funds, 1_240_000).unwrap();
    assert_eq!(psbt.inputs.len(), 65);
}
