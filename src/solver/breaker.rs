//! The breaker: stops orders that cost the solver more than they paid. It adds up losses by depositor, by what is
//! called, and by chain and API key (or none). The last holds only orders that run code of others. Pure.
//!
//! Only failures that nobody paid for count, so that nobody can hold up others with failures that he pays for himself.
//! Payments under way to accounts have a limit of what is at stake besides ([`Stakes`]), since all of them can fail
//! together, and the recipient who makes them fail can refuse the refund that would pay for it.
//!
//! Losses of refunds hold up no fills. Losses of calls count for exactly the same calls, since others call the same
//! contract with other data. Losses of accounts count for depositors only, since a quote can name anybody. The breaker
//! starts anew with the process.

use std::collections::{HashMap, VecDeque};

use alloy::primitives::{B256, Keccak256};
use vm::Family;

use super::stakes::{Id, Pot, Stake, Stakes};
use crate::{
    market::{Market, Network},
    request::{Request, fact::Deposit, name::Name},
};

/// Seconds that a loss counts.
const WINDOW: u64 = 3_600;
/// Losses within the window from which on the breaker is open, in thousandths of a dollar.
const MOST_OF_DEPOSITOR: u64 = 1_000;
const MOST_OF_CODE: u64 = 2_000;
const MOST_OF_CHAIN: u64 = 20_000;
/// Seconds whose losses of one key are one sum, so that the number of sums is bounded.
const SLOT: u64 = 15;
/// Keys whose losses are kept, besides those of chains.
const MOST_KEYS: usize = 16_384;

/// What losses are added up by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Depositor(Name),
    /// The network, and a hash of what is called there.
    Code(String, B256),
    /// A network, for the orders of an API key, or for those without one.
    Chain(String, Option<String>),
}

/// Losses of the last hour, and what is at stake.
#[derive(Debug, Default)]
pub struct Breaker {
    /// Unix seconds of the last loss of a slot, and thousandths of a dollar of all of it; oldest first.
    losses: HashMap<Key, VecDeque<(u64, u64)>>,
    stakes: Stakes,
    /// By the network's name.
    families: HashMap<String, &'static Family>,
}

/// The loss of a fill that failed.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Thousandths of a dollar which nobody pays.
    pub cost: u64,
    /// It paid more than a token to an account, which may have made it fail.
    pub handed_over: bool,
}

impl Key {
    fn most(&self) -> u64 {
        match self {
            Self::Depositor(_) => MOST_OF_DEPOSITOR,
            Self::Code(..) => MOST_OF_CODE,
            Self::Chain(..) => MOST_OF_CHAIN,
        }
    }
}

impl Breaker {
    /// With the limits of the market file on what may be at stake. `families` has the family of each network, by name.
    pub fn of(market: &Market, families: HashMap<String, &'static Family>) -> Self {
        let said = |network: &Network| Some((network.name.clone(), network.caps.at_stake?));
        let said = market.networks().iter().filter_map(said);
        Self {
            stakes: Stakes::of(said.map(|(name, most)| (name, most.0 / 1_000)).collect()),
            families,
            ..Self::default()
        }
    }

    /// The keys of an order that `deposit` pays for.
    fn keys(&self, request: &Request, deposit: &Deposit) -> Vec<Key> {
        let network = &request.destination.network;
        let code = self.code(request);
        let code = code.map(|code| Key::Code(network.clone(), code));
        code.into_iter().chain(self.depositor(deposit)).collect()
    }

    fn depositor(&self, deposit: &Deposit) -> Option<Key> {
        let given = deposit.own.then_some(&deposit.depositor);
        given.map(|given| Key::Depositor(self.name(&deposit.network, given)))
    }

    /// A hash of what runs in the order's fill: its calls, else the recipient, with the authorizations. `None` for
    /// an exchange, since anybody who moves its pool makes it fail.
    fn code(&self, request: &Request) -> Option<B256> {
        if request.calls.is_empty() && !request.order.output.calls.is_empty() {
            return None;
        }
        let name = |account: &str| self.name(&request.destination.network, account).key();
        let mut hasher = Keccak256::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(bytes.len().to_be_bytes());
            hasher.update(bytes);
        };
        for call in &request.calls {
            add(&name(&call.to));
            add(&call.value.to_be_bytes::<32>());
            add(&call.data);
        }
        if request.calls.is_empty() {
            add(&name(&request.recipient));
        }
        for one in &request.authorizations {
            add(one.to_string().as_bytes());
        }
        Some(hasher.finalize())
    }

    /// An account as it is told from others, however it is spelled.
    fn name(&self, network: &str, account: &str) -> Name {
        match self.families.get(network) {
            Some(family) => Name::of(&family.canonical(account)),
            None => Name::of(account),
        }
    }

    /// Counts a failed fill of `request`, for `deposit`. `now` in unix seconds.
    pub fn lost(&mut self, request: &Request, deposit: &Deposit, loss: Loss, now: u64) {
        let mut keys = self.keys(request, deposit);
        if loss.handed_over {
            let network = request.destination.network.clone();
            keys.push(Key::Chain(network, request.api_key.clone()));
            self.stakes.lose(&(request.id, None), loss.cost);
        }
        self.add(keys, loss.cost, now);
    }

    /// Counts a failed payment that should give `deposit` or its excess back, and cost `loss` thousandths of a dollar
    /// which nobody pays. `now` in unix seconds.
    pub fn lost_giving_back(&mut self, deposit: &Deposit, loss: u64, now: u64) {
        let keys = self.depositor(deposit).into_iter().collect();
        self.add(keys, loss, now);
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
            let full = self.losses.len() >= MOST_KEYS && !self.losses.contains_key(&key);
            if full && !matches!(key, Key::Chain(..)) {
                continue;
            }
            let losses = self.losses.entry(key).or_default();
            losses.retain(|(at, _)| young(*at));
            match losses.back_mut() {
                Some((at, sum)) if *at / SLOT == now / SLOT => {
                    (*at, *sum) = (now, sum.saturating_add(loss));
                }
                _ => losses.push_back((now, loss)),
            }
        }
    }

    /// Whether the breaker holds the order that `deposit` would pay for. `now` in unix seconds.
    pub fn is_open(&self, request: &Request, deposit: &Deposit, now: u64) -> bool {
        let keys = self.keys(request, deposit);
        keys.iter().any(|key| self.is_over(key, now))
    }

    /// Whether the breaker holds all deposits of a deposit's depositor.
    pub fn bars(&self, deposit: &Deposit, now: u64) -> bool {
        let key = self.depositor(deposit);
        key.is_some_and(|key| self.is_over(&key, now))
    }

    /// Whether the breaker holds orders that run code of others on a network: those of an API key, or those without
    /// one. Orders that run none go on, so that strangers cannot hold them up. `now` in unix seconds.
    pub fn holds(&self, (network, key): (&str, Option<&str>), now: u64) -> bool {
        let key = Key::Chain(network.to_owned(), key.map(str::to_owned));
        self.is_over(&key, now)
    }

    /// Counts the stake of a payment that is about to be sent; `false`: there is no room for it.
    pub fn begin(&mut self, id: Id, stake: Stake, now: u64) -> bool {
        self.expire(now);
        self.stakes.begin(id, stake)
    }

    /// Whether there is room for a stake.
    pub fn has_room(&mut self, stake: &Stake, now: u64) -> bool {
        self.expire(now);
        self.stakes.has_room(None, stake)
    }

    /// Counts the stake of a payment that is under way or has failed, by its claim.
    pub fn see(&mut self, id: Id, stake: Stake, now: u64) {
        self.stakes.see(id, stake, now);
        self.expire(now);
    }

    pub fn known(&self, id: &Id) -> Option<&Stake> {
        self.stakes.known(id)
    }

    /// Removes a stake: the payment has succeeded, was never sent, or its cost is taken from what is given back.
    pub fn ended(&mut self, id: &Id) {
        self.stakes.end(id);
    }

    /// Counts failures as lost that nobody has paid for in time, whatever their deposit could have paid.
    fn expire(&mut self, now: u64) {
        for (stake, loss) in self.stakes.expire(now) {
            let key = match stake.pot {
                Pot::Key(key) => Some(key),
                _ => None,
            };
            self.add(vec![Key::Chain(stake.network, key)], loss, now);
        }
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
    use crate::{
        quote::fixtures::{self as quoted, other},
        request::{Call, fact::Standing, fixtures},
    };

    /// An order that calls a contract, and a deposit for it that its depositor gave.
    type Case = (Request, Deposit);

    fn order(depositor: &str, contract: &str, chain: &str) -> Case {
        let mut request = fixtures::request(1);
        request.recipient = depositor.into();
        let mut deposit = fixtures::deposit(1, Standing::Final);
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
            let loss = Loss {
                cost: loss,
                handed_over: true,
            };
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
        assert!(!breaker.holds(("base", None), 30));
        breaker.cost(&order("0xg", "0xg", "base"), 18_000, 40);
        assert!(breaker.holds(("base", None), 40) && !breaker.holds(("other", None), 40));
        assert!(!breaker.stops(&order("0xe", "0xf", "base"), 40));
        assert!(!breaker.holds(("base", None), 3_620));
    }

    #[test]
    fn accounts_whose_case_differs_are_others_where_their_family_says_so() {
        let (one, other) = (other::USER, other::USER.to_ascii_lowercase());
        let family = other::family();
        let mut breaker = Breaker {
            families: [("base".to_owned(), family), ("origin".to_owned(), family)].into(),
            ..Breaker::default()
        };
        let paid = |depositor: &str| {
            let mut order = order(depositor, "", "base");
            (order.0.calls, order.1.network) = (Vec::new(), "origin".into());
            order
        };
        breaker.cost(&paid(one), 5_000, 10);
        assert!(breaker.stops(&paid(one), 10) && breaker.bars(&paid(one).1, 10));
        assert!(!breaker.stops(&paid(&other), 10) && !breaker.bars(&paid(&other).1, 10));
    }

    #[test]
    fn an_account_in_hex_is_one_in_any_case_and_on_any_network() {
        let upper = format!("0x{}", quoted::USER[2..].to_uppercase());
        let mut breaker = Breaker {
            families: [("base".to_owned(), quoted::family())].into(),
            ..Breaker::default()
        };
        let paid = |depositor: &str, network: &str| {
            let mut order = order(depositor, "", "base");
            (order.0.calls, order.1.network) = (Vec::new(), network.into());
            order
        };
        breaker.cost(&paid(quoted::USER, "base"), 5_000, 10);
        // The family of one network is known here, that of the other is not.
        for network in ["base", "origin"] {
            let again = paid(&upper, network);
            assert!(breaker.stops(&again, 10) && breaker.bars(&again.1, 10));
        }
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
    fn an_account_is_not_blamed_for_an_authorization_that_came_with_its_payment() {
        let mut breaker = Breaker::default();
        let mut attack = order("0xa", "0xc", "base");
        attack.0.recipient = "0xvictim".into();
        attack.0.calls.clear();
        attack.0.authorizations = vec![serde_json::json!({"nonce": 7})];
        breaker.cost(&attack, 5_000, 10);
        let mut paid = order("0xb", "0xd", "base");
        (paid.0.recipient, paid.0.calls) = ("0xvictim".into(), Vec::new());
        assert!(!breaker.stops(&paid, 10));
        // Both together are.
        attack.1.depositor = "0xother".into();
        assert!(breaker.stops(&attack, 10));
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
        let mut victim = order("0xb", "0xd", "base");
        (victim.0.recipient, victim.0.calls) = ("0xvictim".into(), Vec::new());
        assert!(!breaker.stops(&victim, 10) && !breaker.holds(("base", None), 10));
        assert!(!breaker.bars(&victim.1, 10) && breaker.bars(&attack.1, 10));
        // Nor is it when nobody has paid for it in time.
        let back = Stake {
            pot: Pot::BackToCode,
            ..failed(20, 30_000)
        };
        breaker.see((B256::ZERO, Some(B256::ZERO)), back, 30);
        assert!(breaker.has_room(&failed(0, 1), 5_000));
        assert!(!breaker.holds(("base", None), 5_000));
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
        let loss = Loss {
            cost: 30_000,
            handed_over: false,
        };
        breaker.lost(&attack.0, &attack.1, loss, 10);
        assert!(!breaker.stops(&victim, 10) && !breaker.holds(("base", None), 10));
        // Of who fails in being paid plainly, all others that pay him are.
        attack.0.order.output.calls.clear();
        breaker.cost(&attack, 30_000, 10);
        assert!(breaker.stops(&victim, 10) && breaker.holds(("base", None), 10));
    }

    #[test]
    fn so_much_is_at_stake_at_a_time_until_it_has_succeeded_or_is_paid_for() {
        let mut breaker = Breaker::default();
        let id = |number| (B256::repeat_byte(number), None);
        let stake = |network: &str, cost| Stake {
            network: network.into(),
            pot: Pot::Code,
            cost,
            failed: None,
        };
        let sixty = || stake("base", 60_000);
        // One always may.
        assert!(breaker.begin(id(1), stake("base", 160_000), 10));
        breaker.ended(&id(1));
        assert!(breaker.begin(id(1), sixty(), 10) && !breaker.begin(id(2), sixty(), 10));
        assert!(breaker.begin(id(2), stake("base", 40_000), 10));
        let mut room = |stake| breaker.has_room(&stake, 10);
        assert!(!room(stake("base", 1)) && room(stake("other", 1)));
        for pot in [Pot::Account, Pot::Key("app".into()), Pot::BackToCode] {
            assert!(room(Stake { pot, ..sixty() }));
        }
        // Itself does not count.
        assert!(breaker.begin(id(1), sixty(), 10));
        // A failure counts until it is paid for, or for an hour: then it is lost.
        let failed = Stake {
            failed: Some(20),
            ..stake("base", 50_000)
        };
        breaker.see(id(1), failed.clone(), 30);
        breaker.ended(&id(2));
        assert!(!breaker.begin(id(3), sixty(), 3_619) && !breaker.holds(("base", None), 3_619));
        assert!(breaker.begin(id(3), sixty(), 3_620) && breaker.holds(("base", None), 3_620));
        // Once.
        breaker.see(id(1), failed, 3_621);
        assert_eq!(breaker.known(&id(1)), None);
        assert_eq!(breaker.losses[&Key::Chain("base".into(), None)].len(), 1);
    }

    fn failed(at: u64, cost: u64) -> Stake {
        Stake {
            network: "base".into(),
            pot: Pot::Code,
            cost,
            failed: Some(at),
        }
    }

    /// It is the only order there is: nobody else has the breaker look at the clock.
    #[test]
    fn what_nobody_paid_for_leaves_room_after_the_hour_though_nothing_is_begun() {
        let mut breaker = Breaker::default();
        let id = (B256::ZERO, None);
        breaker.see(id, failed(20, 100_000), 30);
        let one = Stake {
            failed: None,
            ..failed(0, 1_000)
        };
        assert!(!breaker.has_room(&one, 3_619) && breaker.has_room(&one, 3_620));
        assert!(breaker.holds(("base", None), 3_620) && !breaker.holds(("base", None), 7_220));
    }

    /// Until its refund is final it can still fail.
    #[test]
    fn what_a_refund_that_failed_late_does_not_pay_is_lost() {
        let mut breaker = Breaker::default();
        let id = (B256::ZERO, None);
        breaker.see(id, failed(20, 30_000), 30);
        let paying = Stake {
            cost: 0,
            ..failed(20, 0)
        };
        breaker.see(id, paying, 40);
        // Also when its hour is over.
        for now in [50, 4_000] {
            assert!(breaker.has_room(&failed(0, 100_000), now));
        }
        breaker.see(id, failed(20, 30_000), 5_000);
        assert!(breaker.holds(("base", None), 5_000));
    }

    /// A chain may take hours until a failure is final.
    #[test]
    fn what_is_an_hour_old_when_it_is_known_to_have_failed_is_lost_and_does_not_stay() {
        let mut breaker = Breaker::default();
        let id = (B256::ZERO, None);
        let open = Stake {
            failed: None,
            ..failed(0, 30_000)
        };
        assert!(breaker.begin(id, open, 10));
        breaker.see(id, failed(20, 30_000), 9_000);
        assert_eq!(breaker.known(&id), None);
        assert!(breaker.holds(("base", None), 9_000));
    }

    #[test]
    fn what_counts_as_lost_does_not_count_again_when_its_hour_is_over() {
        for (counted, again) in [(30_000, false), (0, true)] {
            let mut breaker = Breaker::default();
            let (mut request, deposit) = order("0xa", "0xd", "base");
            request.id = B256::repeat_byte(1);
            let id = (request.id, None);
            breaker.see(id, failed(20, 30_000), 30);
            let loss = Loss {
                cost: counted,
                handed_over: true,
            };
            breaker.lost(&request, &deposit, loss, 30);
            breaker.see(id, failed(20, 30_000), 40);
            let mut later = |now| breaker.has_room(&failed(now, 1), now);
            assert!(later(3_700));
            assert_eq!(breaker.holds(("base", None), 3_700), again, "{counted}");
        }
    }

    #[test]
    fn the_operator_says_what_may_be_at_stake() {
        let most = [("base".to_owned(), 1_000), ("other".to_owned(), 0)];
        let mut breaker = Breaker {
            stakes: Stakes::of(most.into_iter().collect()),
            ..Breaker::default()
        };
        let id = |number| (B256::repeat_byte(number), None);
        let stake = |network: &str, pot, cost| Stake {
            network: network.into(),
            pot,
            cost,
            failed: None,
        };
        assert!(breaker.begin(id(1), stake("base", Pot::Code, 999), 10));
        assert!(breaker.begin(id(2), stake("base", Pot::Code, 1), 10));
        assert!(!breaker.begin(id(3), stake("base", Pot::Code, 1), 10));
        // Three times of that to accounts without code.
        assert!(breaker.begin(id(3), stake("base", Pot::Account, 2_999), 10));
        assert!(!breaker.begin(id(4), stake("base", Pot::Account, 2), 10));
        // Nothing at all.
        assert!(!breaker.begin(id(5), stake("other", Pot::Code, 1), 10));
        assert!(breaker.begin(id(5), stake("other", Pot::Code, 0), 10));
    }

    #[test]
    fn what_strangers_lose_holds_no_keys_orders() {
        let mut breaker = Breaker::default();
        let of = |key: Option<&str>| {
            let mut order = order("0xa", "0xc", "base");
            order.0.api_key = key.map(str::to_owned);
            order
        };
        let holds = |breaker: &Breaker, key, now| breaker.holds(("base", key), now);
        breaker.cost(&of(None), 30_000, 10);
        assert!(holds(&breaker, None, 10) && !holds(&breaker, Some("app"), 10));
        breaker.cost(&of(Some("app")), 30_000, 10);
        assert!(holds(&breaker, Some("app"), 10) && !holds(&breaker, Some("other"), 10));
        // So does what nobody has paid for in time.
        let keyed = Stake {
            pot: Pot::Key("other".into()),
            ..failed(20, 30_000)
        };
        breaker.see((B256::ZERO, None), keyed, 30);
        assert!(breaker.has_room(&failed(0, 1), 5_000));
        assert!(!holds(&breaker, None, 5_000) && holds(&breaker, Some("other"), 5_000));
    }

    #[test]
    fn many_small_losses_count_for_their_hour_and_no_longer() {
        let mut breaker = Breaker::default();
        let case = order("0xa", "0xc", "base");
        // 0.36 dollars an hour, for four days.
        for at in (0..360_000).step_by(10) {
            breaker.cost(&case, 1, at);
            assert!(
                !breaker.holds(("base", None), at) && !breaker.stops(&case, at),
                "{at}"
            );
        }
        // Twenty dollars within one.
        let last = 500_000 + 1_999;
        for at in 500_000..=last {
            breaker.cost(&case, 10, at);
        }
        assert!(breaker.holds(("base", None), last));
        assert!(!breaker.holds(("base", None), last + WINDOW));
    }

    #[test]
    fn it_stays_small() {
        let mut breaker = Breaker::default();
        let cost = |breaker: &mut Breaker, number: u64, at| {
            let name = format!("0x{number:x}");
            breaker.cost(&order(&name, &name, "base"), 1, at);
        };
        for at in 0..2 * WINDOW {
            cost(&mut breaker, 0, at);
        }
        let kept = breaker.losses[&Key::Chain("base".into(), None)].len();
        assert!(kept as u64 <= WINDOW / SLOT + 1, "{kept}");
        // Each further one looks for room.
        let at = 2 * WINDOW;
        for number in breaker.losses.len()..MOST_KEYS {
            let key = Key::Depositor(Name::of(&format!("full {number}")));
            breaker.losses.insert(key, VecDeque::from([(at, 1)]));
        }
        for number in 1..4 {
            cost(&mut breaker, number, at);
        }
        assert_eq!(breaker.losses.len(), MOST_KEYS);
        // A chain's are counted all the same.
        breaker.cost(&order("0xa", "0xc", "other"), 20_000, at);
        assert!(breaker.holds(("other", None), at));
        assert_eq!(breaker.losses.len(), MOST_KEYS + 1);
    }
}
