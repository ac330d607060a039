//! Orders that cost the solver more than they paid are not tried for long: a breaker per depositor and per
//! what is called, and one per chain that only what runs somebody's code waits for. Pure.
//!
//! Only what nobody paid for counts, so that nobody can hold up others with failures that he pays for
//! himself; of what is called only the same calls again, since others call the same contract with
//! something else, and whoever calls it can have it call anything; and of accounts only one that gave the
//! deposit, since whoever asks for a quote, or deposits, can name anybody. It starts anew with the process.

use std::collections::{HashMap, VecDeque};

use alloy::primitives::{B256, Keccak256};

use crate::request::{Request, fact::Deposit};

/// Seconds that a loss counts.
const WINDOW: u64 = 3_600;
/// Losses within the window from which on nothing more is tried, in thousandths of a dollar.
const MOST_OF_DEPOSITOR: u64 = 1_000;
const MOST_OF_CODE: u64 = 2_000;
const MOST_OF_CHAIN: u64 = 20_000;
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
}

/// See the module.
#[derive(Debug, Default)]
pub struct Breaker {
    /// Unix seconds and thousandths of a dollar, oldest first.
    losses: HashMap<Key, VecDeque<(u64, u64)>>,
}

impl Key {
    /// What an order may be held up for that `deposit` pays for.
    fn all(request: &Request, deposit: &Deposit) -> Vec<Self> {
        let network = &request.destination.network;
        let given = deposit.own.then(|| deposit.depositor.to_lowercase());
        let mut keys = vec![Self::Code(network.clone(), code(request))];
        keys.extend(given.map(Self::Depositor));
        keys
    }

    /// What a loss of the order counts against.
    fn blamed(request: &Request, deposit: &Deposit) -> Vec<Self> {
        let mut keys = Self::all(request, deposit);
        keys.push(Self::Chain(request.destination.network.clone()));
        keys
    }

    fn most(&self) -> u64 {
        match self {
            Self::Depositor(_) => MOST_OF_DEPOSITOR,
            Self::Code(..) => MOST_OF_CODE,
            Self::Chain(_) => MOST_OF_CHAIN,
        }
    }
}

/// What runs in the order's fill: its calls as they are, else the code of who is paid.
fn code(request: &Request) -> B256 {
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
    hasher.finalize()
}

impl Breaker {
    /// A fill of the order, for `deposit`, cost `loss` thousandths of a dollar that nobody pays. `now` in
    /// unix seconds.
    pub fn lost(&mut self, request: &Request, deposit: &Deposit, loss: u64, now: u64) {
        if loss == 0 {
            return;
        }
        let young = |at: u64| now.saturating_sub(at) < WINDOW;
        if self.losses.len() >= MOST_KEYS {
            self.losses
                .retain(|_, losses| losses.back().is_some_and(|(at, _)| young(*at)));
        }
        for key in Key::blamed(request, deposit) {
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

    /// Whether what runs somebody's code waits on a chain at `now` (unix seconds). What runs none cannot
    /// fail for its recipient's sake: strangers hold it up with nothing.
    pub fn holds(&self, network: &str, now: u64) -> bool {
        self.is_over(&Key::Chain(network.to_owned()), now)
    }

    fn is_over(&self, key: &Key, now: u64) -> bool {
        let losses = self.losses.get(key).into_iter().flatten();
        let young = losses.filter(|(at, _)| now.saturating_sub(*at) < WINDOW);
        young.fold(0_u64, |sum, (_, loss)| sum.saturating_add(*loss)) >= key.most()
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
            self.lost(request, deposit, loss, now);
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
    fn it_stays_small() {
        let mut breaker = Breaker::default();
        for number in 0..30_000 {
            let name = format!("0x{number:x}");
            breaker.cost(&order(&name, &name, "base"), 1, 10);
        }
        assert!(breaker.losses.len() <= MOST_KEYS);
        let (one, deposit) = order("0x1", "0x1", "base");
        assert!(breaker.losses[&Key::blamed(&one, &deposit)[2]].len() <= MOST_LOSSES);
    }
}
