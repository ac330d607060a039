//! The scenarios. Each is written once, for all families.

use std::{future::Future, pin::Pin};

use alloy::primitives::U256;
use hyper::StatusCode;
use intentd::request::reason::{FailReason, RefundFailReason};

use crate::{
    Pair, bitcoin,
    deal::{Asset, Assets, Deal},
    invariants::Ending,
    is_in_ring,
    machine::{ACTED_ON_SOON, Machine},
    side::{Act, Fees, Manner, Party, Side, Weather},
};

/// What a deal is worth, in cents of a dollar.
const CENTS: u64 = 20_000;
/// The same of a deposit that is acted on in its first block.
const FEW_CENTS: u64 = ACTED_ON_SOON / 2;
/// The same of an order of which no two are within the hour's cap.
const MANY_CENTS: u64 = 150_000;
/// The same of dust: less than a settlement costs, and more than the cheapest ones do.
const DUST_CENTS: u64 = 4;
/// Seconds within which a deposit is final and its fill is sent.
const SOON: u64 = 240;
/// Seconds in which a deposit is final, and has waited in vain for somebody to fill it.
const IN_VAIN: u64 = 700;
/// Seconds for which an origin makes no block.
const STILL: u64 = 300;
/// A day in seconds.
const DAY: u64 = 86_400;

/// The scenario of families whose blocks have payments that failed.
const FAILS: &str = "payment fails in its block";
/// The scenario of families that show what waits for a block.
const REPLACED: &str = "deposit is replaced while it waits";
/// The scenarios of families that show blocks before they are final.
const SOON_FINAL: [&str; 2] = [
    "small deposit is acted on at once",
    "large deposit waits for more blocks",
];
/// The scenario of families whose users are asked to pay others themselves.
const PAYS: &str = "user pays without a solver";
/// The scenarios of families whose recipients can give their accounts away.
const GIVEN: [&str; 2] = [
    "recipient gives its account away",
    "recipient gives it away behind the fill",
];
/// The same of those who are given a deposit back.
const GIVEN_BACK: &str = "user gives the account away";
/// Scenarios of families that show what waits for a block, from each of them once.
const OF_SIGHTINGS: [&str; 2] = [
    "deposit is told of too early",
    "large deposit at its second block",
];
/// Scenarios in which each family is once the origin and once the destination.
const OF_RING: [&str; 2] = [
    "order is beyond the hourly cap",
    "dust is parked and released",
];

/// What is wrong at the end of a scenario.
type Wrong = Vec<String>;
type Played<'a> = Pin<Box<dyn Future<Output = Wrong> + 'a>>;

/// One scenario.
pub struct Scenario {
    pub name: &'static str,
    pub play: fn(&mut Machine) -> Played<'_>,
}

impl Scenario {
    /// Whether it can be played between the two.
    pub fn is_played(&self, (origin, destination): Pair) -> bool {
        match self.name {
            FAILS => destination.has_failures(),
            REPLACED => origin.has_sightings(),
            name if SOON_FINAL.contains(&name) => origin.has_confirmations(),
            PAYS => origin.has_own_payments(),
            name if GIVEN.contains(&name) => destination.has_owned_accounts(),
            GIVEN_BACK => origin.has_owned_accounts(),
            name if OF_SIGHTINGS.contains(&name) => {
                origin.has_sightings() && is_in_ring((origin, destination))
            }
            name if OF_RING.contains(&name) => is_in_ring((origin, destination)),
            _ => true,
        }
    }

    /// Blocks, with its own, until a block of Bitcoin's is final.
    pub fn depth(&self) -> u64 {
        match self.name == OF_SIGHTINGS[1] {
            true => 2,
            false => bitcoin::FINAL,
        }
    }
}

macro_rules! scenarios {
    ($($name:expr, $machine:ident => $played:expr,)*) => {
        &[$(Scenario { name: $name, play: |$machine| Box::pin($played) }),*]
    };
}

pub const SCENARIOS: &[Scenario] = scenarios![
    "token is filled", m => filled(m, Asset::Token),
    "native is filled", m => filled(m, Asset::Native),
    "token is filled for native", m => filled(m, Assets::of(Asset::Native, Asset::Token)),
    "native is filled for token", m => filled(m, Assets::of(Asset::Token, Asset::Native)),
    "token is refunded", m => refunded(m, Asset::Token),
    "native is refunded", m => refunded(m, Asset::Native),
    PAYS, m => pays(m),
    "many deposits at once", m => many(m),
    FAILS, m => fails(m),
    GIVEN[0], m => given_away(m),
    GIVEN[1], m => given_away_late(m),
    GIVEN_BACK, m => given_away_refund(m),
    "fill is reorged and lost", m => reorged(m, true),
    "fill is reorged and comes again", m => reorged(m, false),
    "refund is reorged and lost", m => refund_reorged(m),
    "deposit is reorged", m => deposit_reorged(m),
    REPLACED, m => replaced(m),
    "deposit is short by one unit", m => short(m),
    "order is paid for twice", m => twice(m),
    "amounts are too small for a quote", m => too_small(m),
    SOON_FINAL[0], m => acted_on(m, true),
    SOON_FINAL[1], m => acted_on(m, false),
    OF_SIGHTINGS[0], m => too_early(m),
    OF_SIGHTINGS[1], m => second_block(m),
    OF_RING[0], m => capped(m),
    OF_RING[1], m => parked(m),
    "too little to give back", m => kept(m),
    "fill expires", m => expires(m, false),
    "fill expires over restarts", m => expires(m, true),
    "fill is given up", m => given_up(m),
    "order expires before its deposit", m => comes_late(m),
    "crash before the commit", m => crashes(m, false),
    "crash between commit and send", m => crashes(m, true),
    "crash behind a send", m => crashes_sent(m),
    "one provider is down", m => provided(m, Manner::Down),
    "one provider is late", m => provided(m, Manner::Late),
    "one provider is blind", m => provided(m, Manner::Blind),
];

fn wrong(so: bool, what: &str) -> Wrong {
    let what = so.then(|| what.to_owned());
    what.into_iter().collect()
}

/// Does something to a chain, and logs it.
fn act(m: &mut Machine, of: fn(&Machine) -> &dyn Side, act: Act) {
    m.note(format!("{}: {act:?}", of(m).about().name));
    of(m).blocks().act(act);
}

fn origin(m: &Machine) -> &dyn Side {
    &*m.origin
}

fn destination(m: &Machine) -> &dyn Side {
    &*m.destination
}

async fn deposited(m: &mut Machine, asset: Asset) -> Deal {
    let deal = m.quote(asset, CENTS, false).await;
    m.deposit(&deal);
    deal
}

/// Waits until a block has the fill.
async fn is_filled(m: &mut Machine, deal: &Deal) -> Wrong {
    let filled = m.until(SOON, async |m: &Machine| !m.filled(deal).is_empty());
    wrong(!filled.await, "not filled in time")
}

/// Nothing goes wrong. The listing finds the request by its accounts and its transactions.
async fn filled(m: &mut Machine, assets: impl Into<Assets>) -> Wrong {
    let deal = m.quote(assets, CENTS, false).await;
    let sent = m.deposit(&deal);
    m.pass(4).await;
    let mut wrong = m.tell(&deal, &sent).await;
    wrong.extend(m.ends(&deal, Ending::Filled).await);
    // The last one is the deposit; an approval before it names no order.
    let mut terms: Vec<_> = sent.into_iter().next_back().into_iter().collect();
    terms.extend(m.filled(&deal).into_iter().map(|one| one.transaction));
    terms.push(m.origin.about().user.clone());
    terms.push(m.destination.about().recipient.clone());
    wrong.extend(m.found_by(&deal, &terms).await);
    wrong
}

async fn refunded(m: &mut Machine, asset: Asset) -> Wrong {
    let deal = m.quote(asset, CENTS, true).await;
    m.deposit(&deal);
    m.ends(&deal, Ending::Refunded).await
}

/// The user pays the recipient in his own transaction.
async fn pays(m: &mut Machine) -> Wrong {
    let deal = m.quote_own(Asset::Token, CENTS).await;
    let sent = m.deposit(&deal);
    m.pass(4).await;
    let mut wrong = m.tell(&deal, &sent).await;
    wrong.extend(m.ends(&deal, Ending::Own).await);
    wrong
}

/// Deposits at many heights one after the other, some of them next to heights without a block.
async fn many(m: &mut Machine) -> Wrong {
    let mut deals = Vec::new();
    for _ in 0..8 {
        deals.push(deposited(m, Asset::Token).await);
        m.pass(2).await;
    }
    let mut wrong = Vec::new();
    for deal in &deals {
        wrong.extend(m.ends(deal, Ending::Filled).await);
    }
    wrong
}

async fn fails(m: &mut Machine) -> Wrong {
    act(m, destination, Act::Weather(Weather::Failing));
    let deal = deposited(m, Asset::Token).await;
    let mut all = m.ends(&deal, Ending::Refunded).await;
    all.extend(wrong(m.failed(&deal).await == 0, "no payment failed"));
    all
}

/// What is paid into the recipient's account would be somebody else's: the deposit is given back, and nobody is quoted.
async fn given_away(m: &mut Machine) -> Wrong {
    act(m, destination, Act::Own(Party::Recipient, true));
    let deal = m.quote(Asset::Token, CENTS, false).await;
    act(m, destination, Act::Own(Party::Recipient, false));
    m.deposit(&deal);
    let mut all = m.ends(&deal, Ending::Refunded).await;
    let amount = m.units(Asset::Token, CENTS);
    let code = m.refused(Asset::Token, amount).await;
    all.extend(wrong(
        code != "DESTINATION_TX_FAILED",
        &format!("quoted for an account of somebody else's: {code}"),
    ));
    act(m, destination, Act::Own(Party::Recipient, true));
    let deal = deposited(m, Asset::Token).await;
    all.extend(m.ends(&deal, Ending::Filled).await);
    all
}

/// The recipient gives its account away when the fill is signed and in no block yet: it fails there.
async fn given_away_late(m: &mut Machine) -> Wrong {
    act(m, destination, Act::Own(Party::Recipient, true));
    act(m, destination, Act::Weather(Weather::Held));
    let deal = deposited(m, Asset::Token).await;
    let signed = m.until(SOON, async |m: &Machine| m.signed(&deal).await > 0);
    let mut all = wrong(!signed.await, "nothing was signed");
    // It is sent, too.
    m.pass(10).await;
    act(m, destination, Act::Own(Party::Recipient, false));
    act(m, destination, Act::Weather(Weather::Fair));
    all.extend(m.ends(&deal, Ending::Refunded).await);
    all.extend(wrong(m.failed(&deal).await == 0, "no payment failed"));
    all
}

/// The user's account is somebody else's for a while behind the deposit: it is given back once it is the user's again.
async fn given_away_refund(m: &mut Machine) -> Wrong {
    let deal = m.quote(Asset::Token, CENTS, true).await;
    m.deposit(&deal);
    m.pass(16).await;
    act(m, origin, Act::Own(Party::User, false));
    m.pass(SOON).await;
    act(m, origin, Act::Own(Party::User, true));
    m.ends(&deal, Ending::Refunded).await
}

async fn reorged(m: &mut Machine, lost: bool) -> Wrong {
    let deal = deposited(m, Asset::Token).await;
    let mut all = is_filled(m, &deal).await;
    act(m, destination, Act::Reorg { depth: 4, lost });
    let gone = m.filled(&deal).is_empty();
    all.extend(wrong(lost && !gone, "the fill is not lost"));
    all.extend(m.ends(&deal, Ending::Filled).await);
    all
}

async fn refund_reorged(m: &mut Machine) -> Wrong {
    let deal = m.quote(Asset::Token, CENTS, true).await;
    m.deposit(&deal);
    let refunded = m.until(SOON, async |m: &Machine| !m.refunded(&deal).is_empty());
    let mut all = wrong(!refunded.await, "not refunded in time");
    act(
        m,
        origin,
        Act::Reorg {
            depth: 2,
            lost: true,
        },
    );
    all.extend(wrong(
        !m.refunded(&deal).is_empty(),
        "the refund is not lost",
    ));
    all.extend(m.ends(&deal, Ending::Refunded).await);
    all
}

/// The index has seen the deposit in a block that is replaced; another block includes it.
async fn deposit_reorged(m: &mut Machine) -> Wrong {
    let deal = deposited(m, Asset::Token).await;
    m.pass(6).await;
    act(
        m,
        origin,
        Act::Reorg {
            depth: 3,
            lost: false,
        },
    );
    m.ends(&deal, Ending::Filled).await
}

/// The user pays himself what the deposit would have spent, and deposits again later.
async fn replaced(m: &mut Machine) -> Wrong {
    act(m, origin, Act::Stand(120));
    let deal = deposited(m, Asset::Native).await;
    m.pass(30).await;
    let mut all = wrong(
        m.status(&deal).await != "pending",
        "a deposit that waits is not seen",
    );
    act(m, origin, Act::Replace(Party::User));
    m.pass(60).await;
    let status = m.status(&deal).await;
    all.extend(wrong(
        status != "waiting",
        &format!("{status} when it is replaced"),
    ));
    m.pass(SOON).await;
    let moved = m.filled(&deal).len() + m.refunded(&deal).len();
    all.extend(wrong(moved > 0, "money for a deposit that is in no block"));
    let again = deposited(m, Asset::Native).await;
    all.extend(m.ends(&again, Ending::Filled).await);
    all
}

/// The deposit is given back: it does not pay for what the order asks for.
async fn short(m: &mut Machine) -> Wrong {
    let deal = m.quote(Asset::Native, CENTS, false).await;
    m.deposit_less(&deal, U256::ONE);
    let mut all = m.ends(&deal, Ending::Refunded).await;
    let reasons = m.reasons(&deal).await;
    let so = reasons != [FailReason::DepositedAmountTooLowToFill];
    all.extend(wrong(so, &format!("given back because of {reasons:?}")));
    all
}

/// The second deposit is given back.
async fn twice(m: &mut Machine) -> Wrong {
    let deal = deposited(m, Asset::Native).await;
    m.pass(6).await;
    m.deposit_again(&deal).await;
    m.ends(&deal, Ending::Twice).await
}

/// Nothing, the smallest unit, and a cent.
async fn too_small(m: &mut Machine) -> Wrong {
    let mut all = Vec::new();
    for amount in [U256::ZERO, U256::ONE, m.units(Asset::Native, 1)] {
        let code = m.refused(Asset::Native, amount).await;
        let so = code != "AMOUNT_TOO_LOW";
        all.extend(wrong(so, &format!("{amount}: {code}")));
    }
    all
}

/// The origin makes no block behind the one with the deposit for a while.
async fn acted_on(m: &mut Machine, soon: bool) -> Wrong {
    let cents = if soon { FEW_CENTS } else { CENTS };
    let deal = m.quote(Asset::Native, cents, false).await;
    m.deposit(&deal);
    m.pass(m.origin.about().pace).await;
    act(m, origin, Act::Stand(120));
    let filled = m.until(100, async |m: &Machine| !m.filled(&deal).is_empty());
    let mut all = wrong(filled.await != soon, "it is filled too soon, or too late");
    all.extend(m.ends(&deal, Ending::Filled).await);
    all
}

/// The origin makes one block, and then none for a while.
async fn one_block(m: &mut Machine) -> Wrong {
    let height = m.origin.blocks().height();
    let made = m.until(2 * STILL, async |m: &Machine| {
        m.origin.blocks().height() > height
    });
    let all = wrong(!made.await, "no block is made");
    act(m, origin, Act::Stand(STILL));
    all
}

/// Nobody can tell the API of a deposit before a block has it.
async fn too_early(m: &mut Machine) -> Wrong {
    act(m, origin, Act::Stand(30));
    let deal = m.quote(Asset::Native, CENTS, false).await;
    let sent = m.deposit(&deal);
    m.pass(10).await;
    let mut all = Vec::new();
    for transaction in &sent {
        let (status, answer) = m.index(&deal, transaction).await.unwrap();
        let is_missing =
            status == StatusCode::NOT_FOUND && answer["code"] == "TRANSACTION_NOT_FOUND";
        all.extend(wrong(
            !is_missing,
            &format!("{status} in no block: {answer}"),
        ));
    }
    all.extend(one_block(m).await);
    all.extend(m.tell(&deal, &sent).await);
    all.extend(m.ends(&deal, Ending::Filled).await);
    all
}

/// Of two deposits in one block the small one is acted on at once, and the large one with the block behind it.
async fn second_block(m: &mut Machine) -> Wrong {
    act(m, origin, Act::Stand(30));
    let few = m.quote(Asset::Native, FEW_CENTS, false).await;
    m.deposit(&few);
    let many = deposited(m, Asset::Native).await;
    let mut all = one_block(m).await;
    let filled = m.until(100, async |m: &Machine| !m.filled(&few).is_empty());
    all.extend(wrong(
        !filled.await,
        "one block is too few for the small one",
    ));
    m.pass(60).await;
    let soon = !m.filled(&many).is_empty();
    all.extend(wrong(soon, "one block is enough for the large one"));
    all.extend(one_block(m).await);
    let filled = m.until(100, async |m: &Machine| !m.filled(&many).is_empty());
    all.extend(wrong(
        !filled.await,
        "two blocks are too few for the large one",
    ));
    all.extend(m.ends(&few, Ending::Filled).await);
    all.extend(m.ends(&many, Ending::Filled).await);
    all
}

/// The hour's cap of the destination has room for one of two orders until that one is settled. The other one is given
/// back, and nobody else is quoted.
async fn capped(m: &mut Machine) -> Wrong {
    m.settlement(Act::Weather(Weather::Held));
    let first = m.quote(Asset::Token, MANY_CENTS, false).await;
    m.deposit(&first);
    let second = m.quote(Asset::Token, MANY_CENTS, false).await;
    let mut all = is_filled(m, &first).await;
    m.deposit(&second);
    let amount = m.units(Asset::Token, MANY_CENTS);
    let code = m.refused(Asset::Token, amount).await;
    let so = code != "ROUTE_TEMPORARILY_RESTRICTED";
    all.extend(wrong(so, &format!("quoted beyond the cap: {code}")));
    m.until(IN_VAIN, async |m: &Machine| {
        m.failure(&second).await.is_some()
    })
    .await;
    let failure = m.failure(&second).await;
    let so = failure != Some(FailReason::SolverCapacityExceeded);
    all.extend(wrong(so, &format!("given back because of {failure:?}")));
    m.settlement(Act::Weather(Weather::Fair));
    all.extend(m.ends(&first, Ending::Filled).await);
    all.extend(m.ends(&second, Ending::Refunded).await);
    // What is settled counts no more.
    m.quote(Asset::Token, MANY_CENTS, false).await;
    all
}

/// What is worth less than its settlement waits for the operator, who has it given back when settlements are cheap.
async fn parked(m: &mut Machine) -> Wrong {
    let mut deal = m.quote(Asset::Native, CENTS, false).await;
    let dust = m.units(Asset::Native, DUST_CENTS);
    m.deposit_less(&deal, deal.amount - dust);
    deal.amount = dust;
    let parked = m.until(SOON, async |m: &Machine| !m.parked(&deal).await.is_empty());
    let mut all = wrong(!parked.await, "it is not parked");
    m.settlement(Act::Fees(Fees::Low));
    act(m, origin, Act::Fees(Fees::Low));
    m.pass(60).await;
    let why = m.parked(&deal).await;
    let so = why != [RefundFailReason::AmountTooLowToRefund] || !m.refunded(&deal).is_empty();
    all.extend(wrong(
        so,
        &format!("parked because of {why:?}, and not left"),
    ));
    m.release(&deal).await;
    all.extend(m.ends(&deal, Ending::Remainder).await);
    let reasons = m.reasons(&deal).await;
    let so = reasons != [FailReason::DepositedAmountTooLowToFill];
    all.extend(wrong(so, &format!("given back because of {reasons:?}")));
    all.extend(wrong(
        !m.parked(&deal).await.is_empty(),
        "it is still parked",
    ));
    all
}

/// Giving the deposit back costs more than it until it is too late for that.
async fn kept(m: &mut Machine) -> Wrong {
    let deal = m.quote(Asset::Token, CENTS, true).await;
    m.settlement(Act::Fees(Fees::High));
    m.pass(20).await;
    m.deposit(&deal);
    m.pass(SOON).await;
    let status = m.status(&deal).await;
    let so = status != "pending";
    let mut all = wrong(so, &format!("{status} while it may become cheaper"));
    m.skip(7 * DAY);
    all.extend(m.ends(&deal, Ending::Kept).await);
    let standing = m.standing(&deal).await;
    let so = standing["failReason"] != "MANUAL_ADMIN_REFUND"
        || standing["refundFailReason"] != "AMOUNT_TOO_LOW_TO_REFUND";
    all.extend(wrong(so, &format!("told as {standing}")));
    let why = m.parked(&deal).await;
    let so = why != [RefundFailReason::AmountTooLowToRefund];
    all.extend(wrong(so, &format!("parked because of {why:?}")));
    all
}

/// No block includes the fill until the solver has signed another transaction for it.
async fn expires(m: &mut Machine, restarts: bool) -> Wrong {
    act(m, destination, Act::Weather(Weather::Held));
    let deal = deposited(m, Asset::Token).await;
    let about = m.destination.about();
    let life = (about.life * about.pace).max(60);
    m.pass(SOON).await;
    for _ in 0..3 {
        m.pass(life / 3).await;
        if restarts {
            m.restart().await;
        }
    }
    let mut all = wrong(!m.filled(&deal).is_empty(), "it was not held");
    act(m, destination, Act::Weather(Weather::Fair));
    all.extend(m.ends(&deal, Ending::Filled).await);
    all.extend(wrong(m.signed(&deal).await < 2, "nothing else was signed"));
    all
}

/// No block includes the fill until the time for fills of the deposit is over: it is given back.
async fn given_up(m: &mut Machine) -> Wrong {
    act(m, destination, Act::Weather(Weather::Held));
    let deal = deposited(m, Asset::Token).await;
    m.pass(SOON).await;
    let mut all = wrong(m.signed(&deal).await == 0, "nothing was sent");
    m.skip(6 * DAY);
    m.pass(SOON).await;
    act(m, destination, Act::Weather(Weather::Fair));
    all.extend(m.ends(&deal, Ending::Refunded).await);
    // What ends the attempt is the family's (it is replaced, or expires); the reason is the order's.
    let failure = m.failure(&deal).await;
    let so = failure != Some(FailReason::OrderExpired);
    all.extend(wrong(so, &format!("given up because of {failure:?}")));
    all
}

/// The deposit is made after the deadline of its order.
async fn comes_late(m: &mut Machine) -> Wrong {
    let deal = m.quote(Asset::Token, CENTS, false).await;
    m.skip(7 * DAY + 60);
    m.pass(10).await;
    m.deposit(&deal);
    m.ends(&deal, Ending::Refunded).await
}

async fn crashes(m: &mut Machine, behind: bool) -> Wrong {
    m.dies_paying(behind);
    let deal = deposited(m, Asset::Token).await;
    let mut all = m.ends(&deal, Ending::Filled).await;
    all.extend(wrong(m.deaths != 1, "it did not die once"));
    all
}

async fn crashes_sent(m: &mut Machine) -> Wrong {
    let deal = deposited(m, Asset::Token).await;
    let mut all = is_filled(m, &deal).await;
    m.restart().await;
    m.pass(6).await;
    m.restart().await;
    all.extend(m.ends(&deal, Ending::Filled).await);
    all
}

/// One provider of three is of no use, on both chains.
async fn provided(m: &mut Machine, manner: Manner) -> Wrong {
    act(m, origin, Act::Provider(manner));
    act(m, destination, Act::Provider(manner));
    let deal = deposited(m, Asset::Token).await;
    let mut wrong = m.ends(&deal, Ending::Filled).await;
    let deal = m.quote(Asset::Token, CENTS, true).await;
    m.deposit(&deal);
    wrong.extend(m.ends(&deal, Ending::Refunded).await);
    wrong
}
