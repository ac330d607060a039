//! The purchases of each currency in the last day: filled requests and their dollars, by the hour. Pure. Memory: one
//! sum per listed currency and hour, whatever the number of requests.

use std::collections::{BTreeMap, HashMap};

use vm::spelled_alike;

use crate::{
    market::Market,
    request::{
        Execution, Request,
        fact::{Facts, Purpose},
        quoted::Quoted,
    },
};

const HOUR: u64 = 60 * 60;
/// The seconds that the tally covers, besides the current hour.
pub const DAY: u64 = 24 * HOUR;

/// The least worth of a request that counts, in millionths of a dollar.
pub const LEAST: u64 = 1_000_000;

/// A currency of the market file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListedCurrency {
    /// The chain's number.
    pub chain: u64,
    /// The address as the market file spells it.
    pub currency: String,
}

/// What a filled request bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bought {
    pub listed: ListedCurrency,
    /// Millionths of a dollar.
    pub micro: u64,
}

/// Number and worth of several purchases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub count: u64,
    /// Millionths of a dollar.
    pub micro: u64,
}

/// The purchases of the last day.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By the hour's first unix second.
    hours: BTreeMap<u64, HashMap<ListedCurrency, Sum>>,
    /// The totals over `hours`.
    sums: HashMap<ListedCurrency, Sum>,
}

/// The purchase of the filled `request`: a listed currency that the solver paid, at the lower worth of the two sides
/// of its quote. `None` for a request that the user executes: transfers, wraps and swaps to and fro would cost only
/// gas.
pub fn bought(request: &Request, facts: &Facts, market: &Market) -> Option<Bought> {
    if request.execution != Execution::Solver {
        return None;
    }
    let network = market.by_number(request.destination.chain)?;
    let currency = network.currency(&request.destination.currency)?;
    let fill = facts.alive(Purpose::Fill).next()?;
    let details = Quoted::of(request).details?;
    let output = &details.currency_out;
    let given = match spelled_alike(&fill.currency, &output.currency.address) {
        true => output.worth(fill.amount),
        // The solver paid an exchange for the output.
        false => output.micro(),
    };
    let micro = u64::try_from(given.min(details.currency_in.micro())).ok()?;
    let listed = ListedCurrency {
        chain: network.chain_id,
        currency: currency.address.clone(),
    };
    (micro >= LEAST).then_some(Bought { listed, micro })
}

impl Tally {
    /// Adds a purchase at `at`, unless it is too old at `now` (unix seconds).
    pub fn add(&mut self, at: u64, bought: Bought, now: u64) {
        self.forget(now);
        let at = at.min(now);
        let hour = at - at % HOUR;
        if is_over(hour, now) {
            return;
        }
        let Bought { listed, micro } = bought;
        let hour = self.hours.entry(hour).or_default();
        hour.entry(listed.clone()).or_default().add(1, micro);
        self.sums.entry(listed).or_default().add(1, micro);
    }

    /// The purchases of the last day, to the hour, unordered.
    pub fn sums(&mut self, now: u64) -> impl Iterator<Item = (&ListedCurrency, &Sum)> {
        self.forget(now);
        self.sums.iter()
    }

    fn forget(&mut self, now: u64) {
        while let Some(first) = self.hours.first_entry() {
            if !is_over(*first.key(), now) {
                return;
            }
            for (listed, gone) in first.remove() {
                let left = self.sums.entry(listed.clone()).or_default();
                left.count = left.count.saturating_sub(gone.count);
                left.micro = left.micro.saturating_sub(gone.micro);
                if left.count == 0 {
                    self.sums.remove(&listed);
                }
            }
        }
    }
}

impl Sum {
    fn add(&mut self, count: u64, micro: u64) {
        self.count = self.count.saturating_add(count);
        self.micro = self.micro.saturating_add(micro);
    }
}

fn is_over(hour: u64, now: u64) -> bool {
    hour.saturating_add(HOUR + DAY) <= now
}

#[cfg(test)]
mod tests {
    use alloy::primitives::U256;
    use serde_json::json;

    use super::*;
    use crate::request::{
        fact::State,
        fixtures::{self, USDC, attempt},
    };

    const NOW: u64 = 1_700_000_000;

    /// [`USDC`] on both of the fixture's networks.
    fn market() -> Market {
        let currency = |address: &str, symbol: &str, decimals: u8| {
            json!({
                "address": address, "symbol": symbol, "name": symbol, "decimals": decimals,
                "group": symbol,
            })
        };
        let zero = format!("0x{}", "00".repeat(20));
        let currencies = json!([currency(&zero, "ETH", 18), currency(USDC, "USDC", 6)]);
        let network = |name: &str, chain: u64| {
            json!({
                "name": name, "chainId": chain, "displayName": name, "currencies": currencies,
            })
        };
        let file = json!([network("origin", 31_001), network("destination", 31_002)]);
        Market::parse(&file.to_string(), |_| Some(vm::SETTLEMENT)).unwrap()
    }

    fn filled() -> Facts {
        Facts {
            attempts: vec![attempt(Purpose::Fill, State::Confirmed(fixtures::place(1)))],
            ..Facts::default()
        }
    }

    fn usdc() -> ListedCurrency {
        ListedCurrency {
            chain: 31_002,
            currency: USDC.into(),
        }
    }

    #[test]
    fn a_filled_request_counts_what_its_solver_gave() {
        let request = fixtures::priced(fixtures::request(1));
        let counted = bought(&request, &filled(), &market());
        // 99.9 of 100 dollars.
        let micro = 99_900_000;
        let listed = usdc();
        assert_eq!(counted, Some(Bought { listed, micro }));
    }

    #[test]
    fn however_an_address_is_spelled_it_is_one_currency() {
        let mut request = fixtures::priced(fixtures::request(1));
        request.destination.currency = USDC.to_uppercase().replacen("0X", "0x", 1);
        let counted = bought(&request, &filled(), &market()).unwrap();
        assert_eq!(counted.listed, usdc());
    }

    #[test]
    fn what_costs_nothing_or_has_no_price_counts_for_nothing() {
        let priced = || fixtures::priced(fixtures::request(1));
        let mut own = priced();
        own.execution = Execution::User;
        let mut unlisted = priced();
        unlisted.destination.currency = fixtures::USER.into();
        let mut elsewhere = priced();
        elsewhere.destination.chain = 5;
        let bare = fixtures::request(1);
        for request in [own, unlisted, elsewhere, bare] {
            assert_eq!(bought(&request, &filled(), &market()), None);
        }
        assert_eq!(bought(&priced(), &Facts::default(), &market()), None);
    }

    #[test]
    fn dust_counts_for_nothing_whatever_the_quote_says_of_it() {
        let request = fixtures::priced(fixtures::request(1));
        for (units, counted) in [(999_999, None), (1_000_000, Some(1_000_000))] {
            let mut facts = filled();
            facts.attempts[0].amount = U256::from(units);
            let found = bought(&request, &facts, &market());
            assert_eq!(found.map(|found| found.micro), counted, "{units}");
        }
        // The amount given counts at most as much as the amount taken.
        let mut facts = filled();
        facts.attempts[0].amount = U256::from(500_000_000_u64);
        let found = bought(&request, &facts, &market()).unwrap();
        assert_eq!(found.micro, 100_000_000);
    }

    fn listed(number: u64) -> ListedCurrency {
        ListedCurrency {
            chain: number,
            currency: "c".into(),
        }
    }

    fn sums(tally: &mut Tally, now: u64) -> Vec<(u64, u64, u64)> {
        let sums = tally.sums(now);
        let mut sums: Vec<_> = sums
            .map(|(at, sum)| (at.chain, sum.count, sum.micro))
            .collect();
        sums.sort_unstable();
        sums
    }

    #[test]
    fn a_day_is_counted_to_the_hour() {
        let begin = NOW - NOW % HOUR;
        let mut tally = Tally::default();
        let one = |number| Bought {
            listed: listed(number),
            micro: 5,
        };
        tally.add(begin, one(1), begin);
        tally.add(begin + HOUR - 1, one(1), begin + HOUR);
        tally.add(begin + HOUR, one(1), begin + HOUR);
        tally.add(begin + 2 * HOUR, one(2), begin + 2 * HOUR);
        let all = [(1, 3, 15), (2, 1, 5)];
        assert_eq!(sums(&mut tally, begin + 2 * HOUR), all);
        assert_eq!(sums(&mut tally, begin + HOUR + DAY - 1), all);
        let rest = [(1, 1, 5), (2, 1, 5)];
        assert_eq!(sums(&mut tally, begin + HOUR + DAY), rest);
        assert_eq!(sums(&mut tally, begin + 2 * HOUR + DAY), [(2, 1, 5)]);
        assert!(sums(&mut tally, begin + 3 * HOUR + DAY).is_empty());
        assert!(tally.hours.is_empty() && tally.sums.is_empty());
        // Old purchases do not count; those of the future count as of now.
        tally.add(begin, one(1), begin + HOUR + DAY);
        assert!(tally.sums.is_empty());
        tally.add(begin + 100 * DAY, one(3), begin);
        assert!(tally.hours.keys().eq([&begin]));
    }

    #[test]
    fn many_requests_are_one_sum() {
        let mut tally = Tally::default();
        for number in 0..10_000 {
            let at = NOW + number * 30;
            let bought = Bought {
                listed: listed(number % 3),
                micro: u64::MAX / 2,
            };
            tally.add(at, bought, at);
        }
        assert!(tally.hours.len() <= 25, "{}", tally.hours.len());
        assert!(tally.hours.values().all(|hour| hour.len() <= 3));
        assert_eq!(tally.sums.len(), 3);
    }
}
