//! Orders that cost the solver more than they paid are not tried for long: a breaker per depositor and per
//! what is called, and one per chain that only what runs somebody's code waits for. Pure.
//!
//! Of what fails only what nobody paid for counts, so that nobody can hold up others with failures that he
//! pays for himself; what runs somebody's code may besides have so much at stake at a time, until it has
//! succeeded or been paid for, since all of it can fail together, and who lets it can refuse his refund. What
//! giving back costs counts for nothing that is to be filled; of what is called only the same calls again, since others call the same contract with
//! something else, and whoever calls it can have it call anything; and of accounts only one that gave the
//! deposit, since whoever asks for a quote, or deposits, can name anybody. It starts anew with the process.

use std::collections::{HashMap, VecDeque};

use alloy::primitives::{B256, Keccak256};

use crate::{
    market::{Market, Network},
    request::{Request, fact::Deposit},
};

/// Seconds that a loss counts.
const WINDOW: u64 = 3_600;
/// Losses within the window from which on nothing more is tried, in thousandths of a dollar.
const MOST_OF_DEPOSITOR: u64 = 1_000;
const MOST_OF_CODE: u64 = 2_000;
const MOST_OF_CHAIN: u64 = 20_000;
const MOST_OF_REFUNDS: u64 = 20_000;
/// What may be at stake on a chain at a time, in thousandths of a dollar, before one more is begun, where the
/// operator says nothing.
const MOST_AT_STAKE: u64 = 100_000;
/// Losses that are remembered of one key, and keys.
const MOST_LOSSES: usize = 256;
const MOST_KEYS: usize = 16_384;

/// Whose losses are added up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Depositor(String),
    /// On a network.
    Code(String, B256),
    Chain(String),
    /// Given back to somebody's code.
    Refunds(String),
}

/// A fill that runs somebody's code, from before it is sent until it has succeeded or its failure is paid for.
#[derive(Debug)]
struct Stake {
    network: String,
    /// Thousandths of a dollar.
    cost: u64,
    /// Unix seconds.
    failed: Option<u64>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Breaker {
    /// Unix seconds and thousandths of a dollar, oldest first.
    losses: HashMap<Key, VecDeque<(u64, u64)>>,
    /// By request.
    stakes: HashMap<B256, Stake>,
    /// What may be at stake on a network, where the operator says so; in thousandths of a dollar.
    most_at_stake: HashMap<String, u64>,
}

impl Key {
    /// What an order may be held up for that `deposit` pays for.
    fn all(request: &Request, deposit: &Deposit) -> Vec<Self> {
        let network = &request.destination.network;
        let code = code(request).map(|code| Self::Code(network.clone(), code));
        code.into_iter().chain(Self::depositor(deposit)).collect()
    }

    fn depositor(deposit: &Deposit) -> Option<Self> {
        let given = deposit.own.then(|| deposit.depositor.to_lowercase());
        given.map(Self::Depositor)
    }

    fn most(&self) -> u64 {
        match self {
            Self::Depositor(_) => MOST_OF_DEPOSITOR,
            Self::Code(..) => MOST_OF_CODE,
            Self::Chain(_) => MOST_OF_CHAIN,
            Self::Refunds(_) => MOST_OF_REFUNDS,
        }
    }
}

/// What runs in the order's fill: its calls as they are, else the code of who is paid. Of an exchange nothing:
/// whoever moves its pool lets it fail, whoever is paid.
fn code(request: &Request) -> Option<B256> {
    if request.calls.is_empty() && !request.order.output.calls.is_empty() {
        return None;
    }
    let mut hasher = Keccak256::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(bytes.len().to_be_bytes());
        hasher.update(bytes);
    };
    for call in &request.calls {
        add(call.to.to_lowercase().as_bytes());
        add(&call.value.to_be_bytes::<32>());
        add(&call.data);
    }
    if request.calls.is_empty() {
        add(request.recipient.to_lowercase().as_bytes());
    }
    Some(hasher.finalize())
}

impl Breaker {
    /// With what may be at stake as the market file says.
    pub fn of(market: &Market) -> Self {
        let said = |network: &Network| Some((network.name.clone(), network.caps.at_stake?));
        let said = market.networks().iter().filter_map(said);
        Self {
            most_at_stake: said.map(|(name, most)| (name, most.0 / 1_000)).collect(),
            ..Self::default()
        }
    }

    /// A fill of the order, for the deposit, cost `loss` thousandths of a dollar that nobody pays; it may have
    /// run somebody's code. `now` in unix seconds.
    pub fn lost(
        &mut self,
        (request, deposit): (&Request, &Deposit),
        ran_code: bool,
        loss: u64,
        now: u64,
    ) {
        let mut keys = Key::all(request, deposit);
        if ran_code {
            keys.push(Key::Chain(request.destination.network.clone()));
        }
        self.add(keys, loss, now);
    }

    /// Giving something of `deposit` back cost `loss` thousandths of a dollar that nobody pays.
    pub fn lost_giving_back(&mut self, deposit: &Deposit, loss: u64, now: u64) {
        self.add(Key::depositor(deposit).into_iter().collect(), loss, now);
    }

    /// Giving back to somebody's code failed on a network, and cost so much, whoever pays.
    pub fn refused(&mut self, network: &str, cost: u64, now: u64) {
        self.add(vec![Key::Refunds(network.to_owned())], cost, now);
    }

    fn add(&mut self, keys: Vec<Key>, loss: u64, now: u64) {
        if loss == 0 {
            return;
        }
        let young = |at: u64| now.saturating_sub(at) < WINDOW;
        if self.losses.len() >= MOST_KEYS {
            self.losses
                .retain(|_, losses| losses.back().is_some_and(|(at, _)| young(*at)));
        }
        for key in keys {
            if self.losses.len() >= MOST_KEYS && !self.losses.contains_key(&key) {
                continue;
            }
            let losses = self.losses.entry(key).or_default();
            losses.retain(|(at, _)| young(*at));
            if losses.len() >= MOST_LOSSES {
                losses.pop_front();
            }
            losses.push_back((now, loss));
        }
    }

    /// Whether the order is not to be tried for `deposit` at `now` (unix seconds).
    pub fn is_open(&self, request: &Request, deposit: &Deposit, now: u64) -> bool {
        let keys = Key::all(request, deposit);
        keys.iter().any(|key| self.is_over(key, now))
    }

    /// Whether nothing is to be tried for what this depositor gives.
    pub fn bars(&self, deposit: &Deposit, now: u64) -> bool {
        Key::depositor(deposit).is_some_and(|key| self.is_over(&key, now))
    }

    /// Whether what runs somebody's code waits on a chain at `now` (unix seconds). What runs none cannot
    /// fail for its recipient's sake: strangers hold it up with nothing.
    pub fn holds(&self, network: &str, now: u64) -> bool {
        self.is_over(&Key::Chain(network.to_owned()), now) || self.is_full(network, None, now)
    }

    /// Whether nothing is given back to somebody's code on a network.
    pub fn holds_refunds(&self, network: &str, now: u64) -> bool {
        self.is_over(&Key::Refunds(network.to_owned()), now)
    }

    /// A fill that may cost so much for nothing is about to be sent; `false`: not now.
    pub fn begin(&mut self, request: &B256, (network, cost): (&str, u64), now: u64) -> bool {
        if cost > 0 && self.is_full(network, Some(request), now) {
            return false;
        }
        self.stakes.retain(|_, stake| !stake.is_old(now));
        let network = network.to_owned();
        let failed = None;
        let stake = Stake {
            network,
            cost,
            failed,
        };
        self.stakes.insert(*request, stake);
        true
    }

    /// Whether a fill has been begun, as far as this process knows.
    pub fn knows(&self, request: &B256) -> bool {
        self.stakes.contains_key(request)
    }

    /// A fill that was begun, before this process maybe, and has not ended.
    pub fn resume(&mut self, request: &B256, (network, cost): (&str, u64)) {
        let network = network.to_owned();
        self.stakes.entry(*request).or_insert(Stake {
            network,
            cost,
            failed: None,
        });
    }

    /// A fill failed and cost so much, which nobody has paid yet.
    pub fn failed(&mut self, request: &B256, cost: u64, now: u64) {
        if let Some(stake) = self.stakes.get_mut(request) {
            stake.cost = stake.cost.min(cost);
            stake.failed = Some(now);
        }
    }

    /// A fill has succeeded, or its deposit was given back less what it cost.
    pub fn ended(&mut self, request: &B256) {
        self.stakes.remove(request);
    }

    /// A fill was not sent after all.
    pub fn forget(&mut self, request: &B256) {
        if self
            .stakes
            .get(request)
            .is_some_and(|one| one.failed.is_none())
        {
            self.stakes.remove(request);
        }
    }

    /// Whether enough is at stake on a network, besides one request's.
    fn is_full(&self, network: &str, besides: Option<&B256>, now: u64) -> bool {
        let most = self.most_at_stake.get(network).copied();
        let stakes = self.stakes.iter().filter(|(id, stake)| {
            Some(*id) != besides && stake.network == network && !stake.is_old(now)
        });
        let at_stake = stakes.fold(0_u64, |sum, (_, stake)| sum.saturating_add(stake.cost));
        at_stake >= most.unwrap_or(MOST_AT_STAKE)
    }

    fn is_over(&self, key: &Key, now: u64) -> bool {
        let losses = self.losses.get(key).into_iter().flatten();
        let young = losses.filter(|(at, _)| now.saturating_sub(*at) < WINDOW);
        young.fold(0_u64, |sum, (_, loss)| sum.saturating_add(*loss)) >= key.most()
    }
}

impl Stake {
    fn is_old(&self, now: u64) -> bool {
        self.failed
            .is_some_and(|at| now.saturating_sub(at) >= WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Call, fact::Standing, scene};

    /// An order that calls a contract, and a deposit for it that its depositor gave.
    type Case = (Request, Deposit);

    fn order(depositor: &str, contract: &str, chain: &str) -> Case {
        let mut request = scene::request(1);
        request.recipient = depositor.into();
        let mut deposit = scene::deposit(1, Standing::Final);
        deposit.depositor = depositor.into();
        request.destination.network = chain.into();
        request.calls = vec![Call {
            to: contract.into(),
            value: Default::default(),
            data: Default::default(),
        }];
        (request, deposit)
    }

    impl Breaker {
        fn cost(&mut self, (request, deposit): &Case, loss: u64, now: u64) {
            self.lost((request, deposit), true, loss, now);
        }

        fn stops(&self, (request, deposit): &Case, now: u64) -> bool {
            self.is_open(request, deposit, now)
        }
    }

    #[test]
    fn losses_open_it_for_the_depositor_the_contract_and_the_chain_for_an_hour() {
        let mut breaker = Breaker::default();
        breaker.cost(&order("0xA", "0xc", "base"), 999, 10);
        assert!(!breaker.stops(&order("0xa", "0xd", "base"), 10));
        breaker.cost(&order("0xa", "0xC", "base"), 1, 20);
        assert!(breaker.stops(&order("0xA", "0xd", "other"), 20));
        assert!(!breaker.stops(&order("0xb", "0xc", "base"), 20));
        breaker.cost(&order("0xb", "0xc", "base"), 1_000, 30);
        assert!(breaker.stops(&order("0xe", "0xC", "base"), 30));
        assert!(!breaker.stops(&order("0xe", "0xc", "other"), 30));
        assert!(!breaker.stops(&order("0xe", "0xf", "base"), 30));
        assert!(!breaker.holds("base", 30));
        breaker.cost(&order("0xg", "0xg", "base"), 18_000, 40);
        assert!(breaker.holds("base", 40) && !breaker.holds("other", 40));
        assert!(!breaker.stops(&order("0xe", "0xf", "base"), 40));
        assert!(!breaker.holds("base", 3_620));
    }

    #[test]
    fn what_was_paid_for_opens_nothing() {
        let mut breaker = Breaker::default();
        for _ in 0..1_000 {
            breaker.cost(&order("0xa", "0xc", "base"), 0, 10);
        }
        assert!(!breaker.stops(&order("0xa", "0xc", "base"), 10));
        assert!(breaker.losses.is_empty());
    }

    #[test]
    fn nobody_has_anothers_contract_or_account_blamed_beside_his_own() {
        let mut breaker = Breaker::default();
        let mut attack = order("0xa", "0xburner", "base");
        attack.0.recipient = "0xvictim".into();
        attack.0.calls.insert(
            0,
            Call {
                to: "0xexchange".into(),
                ..attack.0.calls[0].clone()
            },
        );
        breaker.cost(&attack, 5_000, 10);
        assert!(!breaker.stops(&order("0xb", "0xexchange", "base"), 10));
        let mut paid = order("0xvictim", "0xd", "base");
        paid.0.calls.clear();
        assert!(!breaker.stops(&paid, 10));
        // Both together are, whoever deposits.
        attack.1.depositor = "0xother".into();
        assert!(breaker.stops(&attack, 10));
        // Its own, called alone, is.
        attack.0.calls.remove(0);
        breaker.cost(&attack, 5_000, 10);
        assert!(breaker.stops(&order("0xb", "0xburner", "base"), 10));
        assert!(!breaker.stops(&paid, 10));
    }

    #[test]
    fn an_exchange_is_not_blamed_for_the_token_that_it_is_told_to_sell() {
        let mut breaker = Breaker::default();
        let selling = |depositor, token: &'static [u8]| {
            let mut order = order(depositor, "0xexchange", "base");
            order.0.calls[0].data = token.into();
            order
        };
        breaker.cost(&selling("0xa", b"hostile"), 5_000, 10);
        assert!(!breaker.stops(&selling("0xb", b"honest"), 10));
        assert!(breaker.stops(&selling("0xb", b"hostile"), 10));
        let mut dearer = selling("0xb", b"hostile");
        dearer.0.calls[0].value = alloy::primitives::U256::from(1);
        assert!(!breaker.stops(&dearer, 10));
    }

    #[test]
    fn nobody_is_blamed_for_what_a_stranger_asked_for_or_deposited_in_his_name() {
        let mut breaker = Breaker::default();
        // Named in the quote, as its recipient too; then as the depositor of what a stranger gives.
        let mut asked = order("0xstranger", "0xburner", "base");
        (asked.0.user, asked.0.recipient) = ("0xvictim".into(), "0xvictim".into());
        let mut named = order("0xvictim", "0xburner", "base");
        named.1.own = false;
        for attack in [&asked, &named] {
            breaker.cost(attack, 1_500, 10);
        }
        let mut victim = order("0xvictim", "0xd", "base");
        victim.0.user = "0xvictim".into();
        assert!(!breaker.stops(&victim, 10));
        victim.0.calls.clear();
        assert!(!breaker.stops(&victim, 10));
        // Who gave the deposit of the one is, whomever he names.
        let mut again = order("0xstranger", "0xd", "base");
        again.0.user = "0xother".into();
        assert!(breaker.stops(&again, 10));
    }

    #[test]
    fn what_giving_back_costs_is_blamed_on_nothing_that_is_to_be_filled() {
        let mut breaker = Breaker::default();
        let mut attack = order("0xa", "0xc", "base");
        attack.0.recipient = "0xvictim".into();
        attack.0.calls.clear();
        breaker.lost_giving_back(&attack.1, 30_000, 10);
        breaker.refused("ethereum", 30_000, 10);
        let mut victim = order("0xb", "0xd", "base");
        (victim.0.recipient, victim.0.calls) = ("0xvictim".into(), Vec::new());
        assert!(!breaker.stops(&victim, 10) && !breaker.holds("base", 10));
        assert!(!breaker.bars(&victim.1, 10) && breaker.bars(&attack.1, 10));
        assert!(breaker.holds_refunds("ethereum", 10) && !breaker.holds_refunds("base", 10));
        assert!(!breaker.holds("ethereum", 10));
        assert!(!breaker.holds_refunds("ethereum", 3_610));
    }

    #[test]
    fn an_exchange_that_fails_is_blamed_on_nobody_whom_it_pays() {
        let mut breaker = Breaker::default();
        let mut attack = order("0xa", "0xc", "base");
        attack.0.recipient = "0xvictim".into();
        attack.0.calls.clear();
        let mut victim = order("0xb", "0xd", "base");
        (victim.0.recipient, victim.0.calls) = ("0xvictim".into(), Vec::new());
        attack.0.order.output.calls = vec!["0x01".into()];
        breaker.lost((&attack.0, &attack.1), false, 30_000, 10);
        assert!(!breaker.stops(&victim, 10) && !breaker.holds("base", 10));
        // Of who fails in being paid plainly, all others that pay him are.
        attack.0.order.output.calls.clear();
        breaker.cost(&attack, 30_000, 10);
        assert!(breaker.stops(&victim, 10) && breaker.holds("base", 10));
    }

    #[test]
    fn so_much_is_at_stake_at_a_time_until_it_has_succeeded_or_is_paid_for() {
        let mut breaker = Breaker::default();
        let id = B256::repeat_byte;
        let stake = ("base", 60_000);
        assert!(breaker.begin(&id(1), stake, 10) && breaker.begin(&id(2), stake, 10));
        assert!(breaker.holds("base", 10) && !breaker.holds("other", 10));
        assert!(!breaker.begin(&id(3), stake, 10));
        assert!(breaker.begin(&id(3), ("other", 60_000), 10));
        // Itself does not count, nor does what costs nothing.
        assert!(breaker.begin(&id(2), stake, 10) && breaker.begin(&id(4), ("base", 0), 10));
        breaker.failed(&id(1), 50_000, 20);
        assert!(breaker.holds("base", 20));
        // What was sent is not forgotten; a failure counts until it is paid for, or for an hour.
        breaker.forget(&id(1));
        assert!(breaker.holds("base", 20));
        breaker.ended(&id(2));
        assert!(!breaker.holds("base", 20) && breaker.begin(&id(2), stake, 20));
        assert!(breaker.holds("base", 20) && !breaker.holds("base", 3_620));
        breaker.ended(&id(1));
        assert!(breaker.begin(&id(5), stake, 20));
        breaker.forget(&id(5));
        assert!(!breaker.holds("base", 20));
        breaker.resume(&id(6), stake);
        assert!(breaker.holds("base", 20) && breaker.knows(&id(6)));
    }

    #[test]
    fn the_operator_says_what_may_be_at_stake() {
        let most = [("base".to_owned(), 1_000), ("other".to_owned(), 0)];
        let mut breaker = Breaker {
            most_at_stake: most.into_iter().collect(),
            ..Breaker::default()
        };
        let id = B256::repeat_byte;
        assert!(breaker.begin(&id(1), ("base", 999), 10) && breaker.begin(&id(2), ("base", 1), 10));
        assert!(!breaker.begin(&id(3), ("base", 1), 10) && breaker.holds("base", 10));
        // Nothing at all.
        assert!(
            !breaker.begin(&id(4), ("other", 1), 10) && breaker.begin(&id(4), ("other", 0), 10)
        );
    }

    #[test]
    fn it_stays_small() {
        let mut breaker = Breaker::default();
        let cost = |breaker: &mut Breaker, number: usize| {
            let name = format!("0x{number:x}");
            breaker.cost(&order(&name, &name, "base"), 1, 10);
        };
        for number in 0..=MOST_LOSSES {
            cost(&mut breaker, number);
        }
        // Each further one looks for room.
        for number in breaker.losses.len()..MOST_KEYS - 3 {
            let key = Key::Depositor(format!("full {number}"));
            breaker.losses.insert(key, VecDeque::from([(10, 1)]));
        }
        for number in 0..4 {
            cost(&mut breaker, 1_000 + number);
        }
        assert_eq!(breaker.losses.len(), MOST_KEYS);
        assert!(breaker.losses[&Key::Chain("base".into())].len() <= MOST_LOSSES);
    }
}
