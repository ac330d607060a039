//! The price of one side's coin moves against what the other side trades in, between Solana and EVM chains. A deposit that
//! comes in time is filled as promised. One that comes late is filled with what it is worth then, never with more than was
//! promised; where that is too little, it goes back. So is one whose fill expired meanwhile.

use alloy::primitives::U256;
use intentd::request::reason::FailReason;

use crate::{
    Pair,
    bitcoin::FINAL,
    deal::{Asset, Assets, Deal},
    invariants::Ending,
    lived,
    machine::{COINS, Machine},
    quotes::passes,
    side::{Act, Kind, Weather},
    together,
};

/// What a deposit is worth, in cents of a dollar.
const CENTS: u64 = 20_000;
/// Seconds from a quote to its deposit. The price holds for sixty, and neither deposit is final before they are over.
const IN_TIME: u64 = 44;
const LATE: u64 = 90;
/// Seconds within which a deposit is final and its fill is signed, and within which that has expired on Solana.
const SIGNED: u64 = 240;
const EXPIRED: u64 = 900;
/// Parts of ten thousand: all that was promised, and the most that a deposit brings that lost a hundredth of its worth.
const WHOLE: u64 = 10_000;
const LESS: u64 = 9_950;

const PAIRS: [Pair; 2] = [(Kind::Solana, Kind::Evm), (Kind::Evm, Kind::Solana)];

/// What is exchanged, and which of [`COINS`] moves.
type Trade = (Assets, usize);
const TRADES: [Trade; 4] = [
    (Assets::of(Asset::Native, Asset::Native), 0),
    (Assets::of(Asset::Native, Asset::Native), 1),
    (Assets::of(Asset::Native, Asset::Token), 0),
    (Assets::of(Asset::Token, Asset::Native), 1),
];

/// When a deposit comes, and how far the price has moved then: the deposited coin is worth so many parts of ten thousand of
/// what it was, or the delivered one is worth as much more or less the other way round.
#[derive(Clone, Copy)]
struct Move {
    parts: u64,
    seconds: u64,
}

/// How the deposit ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The recipient gets what was promised, to the smallest unit.
    Promised,
    /// He gets less, and the minimum at least.
    Less,
    /// The user gets the deposit back because of the price.
    Refunded,
}

impl Outcome {
    /// Whether the recipient may have got so much.
    fn allows(self, deal: &Deal, amount: U256) -> bool {
        match self {
            Self::Promised => amount == deal.promised,
            Self::Less => amount * U256::from(WHOLE) <= deal.promised * U256::from(LESS),
            Self::Refunded => false,
        }
    }
}

/// What is wrong with how a deposit ends that is made behind a move.
async fn traded(
    m: &mut Machine,
    ((assets, coin), moved): (Trade, Move),
    wanted: Outcome,
) -> Vec<String> {
    let deal = m.quote(assets, CENTS, false).await;
    let parts = match coin {
        0 => moved.parts,
        _ => 2 * WHOLE - moved.parts,
    };
    m.move_price(COINS[coin], parts);
    m.pass(moved.seconds).await;
    m.deposit(&deal);
    ended(m, &deal, wanted).await
}

async fn ended(m: &mut Machine, deal: &Deal, wanted: Outcome) -> Vec<String> {
    let (ending, failure) = match wanted {
        Outcome::Refunded => (Ending::Refunded, Some(FailReason::Slippage)),
        Outcome::Promised | Outcome::Less => (Ending::Filled, None),
    };
    let mut wrong = m.ends(deal, ending).await;
    let found = m.failure(deal).await;
    if found != failure {
        wrong.push(format!("failed because of {found:?}"));
    }
    let filled = m.filled(deal);
    if !filled.iter().all(|one| wanted.allows(deal, one.amount)) {
        wrong.push(format!("{filled:?} of {}", deal.promised));
    }
    wrong
}

/// Makes every trade between all pairs, each on a machine of its own.
fn all_trades(name: &str, moved: Move, wanted: Outcome) {
    let trades = PAIRS.into_iter().flat_map(|pair| {
        let numbered = (1_u64..).zip(TRADES);
        numbered.map(move |(number, trade)| (pair, number, trade))
    });
    let verdicts = together(
        trades.collect(),
        |(pair, number, trade): (Pair, u64, Trade)| {
            let called = format!("{name} {number}");
            let made = async || Machine::new(pair, &called, FINAL).await;
            lived(1, made, async |m: &mut Machine| {
                traded(m, (trade, moved), wanted).await
            })
        },
    );
    verdicts.into_iter().for_each(passes);
}

#[test]
fn deposit_in_time_is_filled_as_promised_however_far_the_price_moves() {
    for (name, parts) in [("in time fallen", 9_000), ("in time risen", 11_000)] {
        let seconds = IN_TIME;
        all_trades(name, Move { parts, seconds }, Outcome::Promised);
    }
}

#[test]
fn late_deposit_is_filled_with_less_where_the_price_has_moved_a_little() {
    let (parts, seconds) = (9_900, LATE);
    all_trades("late less", Move { parts, seconds }, Outcome::Less);
}

#[test]
fn late_deposit_goes_back_where_the_price_has_moved_far() {
    let (parts, seconds) = (9_000, LATE);
    all_trades("late far", Move { parts, seconds }, Outcome::Refunded);
}

#[test]
fn late_deposit_brings_no_more_than_was_promised_where_the_price_has_moved_in_its_favour() {
    let (parts, seconds) = (11_000, LATE);
    all_trades("late risen", Move { parts, seconds }, Outcome::Promised);
}

/// The deposit comes in time. No block includes its fill, as if the recipient had closed the account, until the price has
/// moved and what was signed has expired.
async fn kept_out(m: &mut Machine, parts: u64, wanted: Outcome) -> Vec<String> {
    m.destination.blocks().act(Act::Weather(Weather::Held));
    let (assets, coin) = TRADES[2];
    let deal = m.quote(assets, CENTS, false).await;
    m.deposit(&deal);
    let signed = m.until(SIGNED, async |m: &Machine| m.signed(&deal).await > 0);
    let signed = signed.await;
    m.move_price(COINS[coin], parts);
    let judged = m.until(EXPIRED, async |m: &Machine| {
        m.signed(&deal).await > 1 || m.failure(&deal).await.is_some()
    });
    let judged = judged.await;
    m.destination.blocks().act(Act::Weather(Weather::Fair));
    let mut wrong = ended(m, &deal, wanted).await;
    if !signed || !judged {
        wrong.push(format!("signed: {signed}, judged anew: {judged}"));
    }
    wrong
}

#[test]
fn fill_that_expires_while_the_price_moves_is_paid_at_the_price_of_then_or_not_at_all() {
    for (name, parts, wanted) in [
        ("kept out less", 9_900, Outcome::Less),
        ("kept out far", 9_000, Outcome::Refunded),
        ("kept out risen", 11_000, Outcome::Promised),
    ] {
        let made = async || Machine::new((Kind::Evm, Kind::Solana), name, FINAL).await;
        passes(lived(1, made, async |m: &mut Machine| {
            kept_out(m, parts, wanted).await
        }));
    }
}
