//! What quotes are refused for over the real families: outputs that are too little, accounts and calls that a destination
//! does not have, a transaction that an exchange makes too long.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use alloy::{hex, primitives::U256};
use bitcoin::Psbt;
use hyper::StatusCode;
use serde_json::{Value, json};
use vm::{
    http::inside,
    testing::solana::{World, aggregator},
};

use crate::{
    Pair, Verdict,
    bitcoin::{Bitcoin, FINAL, LITTLE, poor},
    deal::{Answer, Asset, code},
    evm::Evm,
    invariants::Ending,
    lived,
    machine::{CHAINS, Machine, listed, shared},
    side::{Act, Fees, Kind, Side},
    solana::Solana,
    together,
};

/// What a deposit is worth, in cents of a dollar.
const CENTS: u64 = 20_000;
/// The most outputs of an account that the index lists, as public ones do.
const LISTED: usize = 500;
/// Satoshis within which a deposit's fee is.
const FEE: u64 = 5_000;
/// An account of EVM chains.
const STRANGER: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";
/// The aggregator's recorded answers, and smallest units of what comes out.
const RECORDED: &str = include_str!("../../vm/fixtures/recorded/jupiter.json");
const OUTPUT: u64 = 10_001_081;
/// Dollars by which as much goes in.
const PRICE: &str = "193.87";
/// Accounts that make every transaction too long.
const MANY: usize = 700;
/// The most bytes of a transaction that exchanges (guide: protocol 11.5).
const MOST: usize = 1_172;

/// Lamports below which a payment's fee is its signature's and next to nothing else, and above which it is where others bid
/// a thousand times as much as usual.
const NO_BIDS: u64 = 10_000;
const BIDS: u64 = 20_000;

/// Nothing is wrong.
pub fn passes(Verdict { wrong, log, .. }: Verdict) {
    assert!(wrong.is_empty(), "{wrong:?}\n{}", log.join("\n"));
}

/// What a user with [`LITTLE`] is answered who would deposit so many satoshis.
async fn poor_asks(m: &Machine, satoshis: u64) -> Answer {
    let user = poor().address();
    let changes = json!({"user": user, "refundTo": user});
    m.asked(Asset::Native, U256::from(satoshis), changes).await
}

/// The most that the user with [`LITTLE`] can deposit: a satoshi more is refused.
async fn most_of_poor(m: &Machine) -> u64 {
    let (mut paid, mut short) = (LITTLE - FEE, LITTLE);
    for (satoshis, wanted) in [(paid, StatusCode::OK), (short, StatusCode::BAD_REQUEST)] {
        let (status, answer) = poor_asks(m, satoshis).await;
        assert_eq!(status, wanted, "{satoshis}: {answer}");
    }
    while short - paid > 1 {
        let middle = paid.midpoint(short);
        let answer = poor_asks(m, middle).await;
        if answer.0 == StatusCode::OK {
            paid = middle;
        } else {
            assert_eq!(code(&answer), "INSUFFICIENT_FUNDS", "{middle}");
            short = middle;
        }
    }
    paid
}

async fn satoshis_are_counted(m: &mut Machine) -> Vec<String> {
    let most = most_of_poor(m).await;
    let (_, answer) = poor_asks(m, most).await;
    let shown = answer["steps"][0]["items"][0]["data"]["psbt"].as_str();
    let psbt = Psbt::deserialize(&hex::decode(shown.unwrap()).unwrap()).unwrap();
    // All that the user has goes to the depository and to whoever includes it.
    let (inputs, outputs) = (&psbt.unsigned_tx.input, &psbt.unsigned_tx.output);
    assert_eq!((inputs.len(), outputs.len()), (1, 2), "{psbt:?}");
    let paid: u64 = outputs.iter().map(|output| output.value.to_sat()).sum();
    assert_eq!(paid, most);
    let short = poor_asks(m, most + 1).await;
    assert_eq!(code(&short), "INSUFFICIENT_FUNDS");
    let message = short.1["message"].as_str().unwrap();
    assert!(message.contains(" 1 are missing"), "{message}");
    for few in [0, 1, 293, 294] {
        let refused = poor_asks(m, few).await;
        assert_eq!(code(&refused), "AMOUNT_TOO_LOW", "{few}");
    }
    Vec::new()
}

#[test]
fn user_on_bitcoin_who_is_a_satoshi_short_has_insufficient_funds() {
    let pair = (Kind::Bitcoin, Kind::Evm);
    let made = async || Machine::new(pair, "a satoshi short", FINAL).await;
    passes(lived(1, made, async |m: &mut Machine| {
        satoshis_are_counted(m).await
    }));
}

/// The user has as many outputs as the index lists, and then one more.
#[test]
fn user_on_bitcoin_with_more_outputs_than_are_listed_is_told_to_combine_them() {
    let [from, to, _] = CHAINS;
    let origin = Bitcoin::new("many-outputs", from, FINAL);
    let world = origin.world.clone();
    let crowd = |outputs| assert!(world.fund(&poor().script(), 1_000, outputs));
    crowd(LISTED - 1);
    let made = async move || {
        let shared = shared();
        let ends: [Box<dyn Side>; 2] = [Box::new(origin), Box::new(Evm::traded(&shared, to))];
        Machine::between(ends, &shared).await
    };
    passes(lived(1, made, async |m: &mut Machine| {
        let (status, answer) = poor_asks(m, LITTLE / 2).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        crowd(1);
        m.pass(60).await;
        let refused = poor_asks(m, LITTLE / 2).await;
        assert_eq!(code(&refused), "UNSUPPORTED_ROUTE", "{}", refused.1);
        let message = refused.1["message"].as_str().unwrap();
        assert!(message.starts_with("user: ") && message.contains("combine them"));
        Vec::new()
    }));
}

/// Whoever names accounts of another family, or calls where there are none, is refused; nobody else is.
async fn foreigners_are_refused(m: &mut Machine, kind: Kind) -> Vec<String> {
    let amount = m.units(Asset::Native, CENTS);
    let answer = m.asked(Asset::Native, amount, json!({})).await;
    assert_eq!(answer.0, StatusCode::OK, "{}", answer.1);
    let solana = aggregator::USER.to_string();
    let foreign = match kind {
        Kind::Evm => vec![solana],
        Kind::Bitcoin => vec![STRANGER.to_owned(), solana],
        Kind::Solana | Kind::Scripted => vec![STRANGER.to_owned()],
    };
    let foreign = foreign.into_iter();
    let mut cases: Vec<_> = foreign
        .map(|account| (json!({ "recipient": account }), "INVALID_ADDRESS"))
        .collect();
    cases.push((json!({ "recipient": null }), "INVALID_RECIPIENT"));
    if kind != Kind::Evm {
        let own = m.destination.about().recipient.clone();
        for account in [own.as_str(), STRANGER] {
            let calls = json!({ "txs": [{"to": account, "value": "0", "data": "0x12"}] });
            cases.push((calls, "EXTRA_TXS_NOT_SUPPORTED"));
        }
    }
    for (changes, wanted) in cases {
        let refused = m.asked(Asset::Native, amount, changes.clone()).await;
        assert_eq!(code(&refused), wanted, "{changes}: {}", refused.1);
    }
    Vec::new()
}

#[test]
fn accounts_and_calls_that_a_destination_does_not_have_are_refused() {
    let pairs: Vec<Pair> = vec![
        (Kind::Evm, Kind::Solana),
        (Kind::Bitcoin, Kind::Solana),
        (Kind::Evm, Kind::Bitcoin),
        (Kind::Solana, Kind::Evm),
    ];
    let verdicts = together(pairs, |pair: Pair| {
        let made = async || Machine::new(pair, "foreign accounts", FINAL).await;
        lived(1, made, async |m: &mut Machine| {
            foreigners_are_refused(m, pair.1).await
        })
    });
    verdicts.into_iter().for_each(passes);
}

/// What a recipient is promised while others bid so much, and the lamports that the fill then costs.
async fn filled(m: &mut Machine, world: &World, fees: Fees) -> (U256, u64) {
    m.destination.blocks().act(Act::Fees(fees));
    m.pass(20).await;
    let deal = m.quote(Asset::Native, CENTS, false).await;
    m.deposit(&deal);
    let wrong = m.ends(&deal, Ending::Filled).await;
    assert!(wrong.is_empty(), "{wrong:?}");
    let fill = &m.filled(&deal)[0].transaction;
    let all = world.history().into_iter();
    let mut own = all.filter(|(.., done)| done.sent.id() == *fill);
    let (.., done) = own.next().unwrap();
    (deal.promised, done.fee)
}

#[test]
fn fill_on_solana_bids_what_others_bid_and_its_recipient_is_charged_for_it() {
    let [from, to, _] = CHAINS;
    let destination = Solana::new("bids", to);
    let world = destination.world.clone();
    let made = async move || {
        let shared = shared();
        let origin = Evm::traded(&shared, from);
        let ends: [Box<dyn Side>; 2] = [Box::new(origin), Box::new(destination)];
        Machine::between(ends, &shared).await
    };
    passes(lived(1, made, async |m: &mut Machine| {
        let (most, little) = filled(m, &world, Fees::Low).await;
        assert!(little < NO_BIDS, "{little}");
        let (less, much) = filled(m, &world, Fees::High).await;
        assert!(much > BIDS, "{much}");
        assert!(less + U256::from(BIDS) < most, "{less} of {most}");
        Vec::new()
    }));
}

/// The aggregator of a chain, whose exchange names its last account `more` times more: each takes a byte.
fn service(world: &World, more: &Arc<AtomicUsize>) -> String {
    let url = aggregator::aggregator(world);
    let all: Value = serde_json::from_str(RECORDED).unwrap();
    let (mut quote, instructions) = (all["quote"].clone(), all["instructions"].clone());
    quote["inAmount"] = aggregator::INPUT.to_string().into();
    quote["outAmount"] = OUTPUT.to_string().into();
    let more = more.clone();
    let answer = move |asked: &inside::Asked<'_>| {
        let answer = match asked.path.starts_with("/quote") {
            true => quote.clone(),
            false => padded(&instructions, more.load(Relaxed)),
        };
        Some((200, answer.to_string().into_bytes()))
    };
    // It takes the place of the aggregator without such accounts.
    inside::register(url.trim_start_matches("http://"), Arc::new(answer));
    url
}

fn padded(instructions: &Value, more: usize) -> Value {
    let mut padded = instructions.clone();
    let accounts = &mut padded["swapInstruction"]["accounts"];
    let accounts = accounts.as_array_mut().unwrap();
    let last = accounts.last().unwrap().clone();
    accounts.extend(vec![last; more]);
    padded
}

/// A machine whose user has to exchange before the deposit; `name` is unique.
async fn exchanging(name: &str, more: &Arc<AtomicUsize>) -> Machine {
    let shared = shared();
    let [from, to, _] = CHAINS;
    let mut origin = Solana::of(name, from, (aggregator::USER, aggregator::OUTPUT_MINT));
    let about = origin.about();
    let mut coin = listed((&about.native, 9), "SOL", ("sol", "major", PRICE));
    coin["solver"] = false.into();
    let dollar = listed((&about.token, 6), "USDC", ("usdc", "stable", "1"));
    let url = service(&origin.world, more);
    origin.listed = json!({ "currencies": [coin, dollar], "aggregators": [{ "url": url }] });
    let ends: [Box<dyn Side>; 2] = [Box::new(origin), Box::new(Evm::traded(&shared, to))];
    Machine::between(ends, &shared).await
}

/// The answer to a request for a quote of what the aggregator exchanges.
async fn exchange(m: &Machine) -> Answer {
    exchange_with(m, json!({})).await
}

/// The same, whose body has these fields besides.
async fn exchange_with(m: &Machine, mut changes: Value) -> Answer {
    changes["destinationCurrency"] = json!(m.destination.about().token);
    changes["slippageTolerance"] = json!("0");
    let amount = U256::from(aggregator::INPUT);
    m.asked(Asset::Native, amount, changes).await
}

/// The bytes of the transaction, how many are too many, and how many it may have, as a refusal tells them.
fn told(refused: &Answer) -> [usize; 3] {
    assert_eq!(code(refused), "SOLANA_TX_TOO_LARGE");
    let message = refused.1["message"].as_str().unwrap();
    let words = message.split(|letter: char| !letter.is_ascii_digit());
    let numbers: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn exchange_of_1172_bytes_is_quoted_and_one_of_1173_is_refused_with_its_size() {
    let more = Arc::<AtomicUsize>::default();
    let made = async || exchanging("exchange", &more).await;
    passes(lived(1, made, async |m: &mut Machine| {
        m.settlement(Act::Fees(Fees::Low));
        m.pass(20).await;
        more.store(MANY, Relaxed);
        let [bytes, excess, most] = told(&exchange(m).await);
        assert_eq!((bytes, most), (MOST + excess, MOST));
        let fitting = MANY - excess;
        for excess in [1, 2] {
            more.store(fitting + excess, Relaxed);
            let told = told(&exchange(m).await);
            assert_eq!(told, [MOST + excess, excess, MOST]);
        }
        more.store(fitting, Relaxed);
        let (status, answer) = exchange(m).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let data = &answer["steps"][0]["items"][0]["data"];
        assert_eq!(
            data["addressLookupTableAddresses"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        Vec::new()
    }));
}

#[test]
fn exchange_on_solana_goes_through_the_sources_that_its_user_allows() {
    let more = Arc::<AtomicUsize>::default();
    let made = async || exchanging("sources", &more).await;
    passes(lived(1, made, async |m: &mut Machine| {
        m.settlement(Act::Fees(Fees::Low));
        m.pass(20).await;
        for (list, source, allowed) in [
            ("excludedSwapSources", "jupiter", false),
            ("excludedSwapSources", "another", true),
            ("includedOriginSwapSources", "jupiter", true),
            ("includedOriginSwapSources", "another", false),
            ("includedDestinationSwapSources", "another", true),
        ] {
            let answer = exchange_with(m, json!({ list: [source] })).await;
            if !allowed {
                assert_eq!(code(&answer), "NO_SWAP_ROUTES_FOUND", "{list} {source}");
                continue;
            }
            let (status, answer) = answer;
            assert_eq!(status, StatusCode::OK, "{list} {source}: {answer}");
            let router = &answer["details"]["route"]["origin"]["router"];
            assert_eq!(router, "jupiter", "{list} {source}");
        }
        Vec::new()
    }));
}
