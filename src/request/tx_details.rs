//! A transaction in full, for those who list requests. One provider said so: nothing that moves
//! money, signs or decides may rest on it.

use std::collections::{HashMap, HashSet};

use alloy::primitives::{B256, Bytes, U256};
use serde::{Deserialize, Serialize};
use vm::spelled_alike;

use super::{
    Request,
    fact::{Deposit, Facts, Inclusion},
    mismatch::mismatch,
};
use crate::format;

/// What a transaction in a block did ([`vm::trade::TxDetails`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TxDetails {
    pub from: String,
    /// `None` where it created a contract.
    pub to: Option<String>,
    /// The data of its call; `None` when it was too long to keep.
    pub data: Option<Bytes>,
    /// Of the native currency, smallest units.
    pub value: U256,
    /// What its inclusion cost, in the native currency's smallest units.
    pub fee: U256,
    /// The block that it was seen in.
    pub place: Inclusion,
    pub success: bool,
    /// What it changed for whom, fees apart.
    pub changes: Vec<Change>,
    /// What its currencies were worth when it was seen, soon after its block; empty where nobody said so, and
    /// in older rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<Worth>,
}

/// What a currency was worth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worth {
    /// Its address text.
    pub currency: String,
    /// It is its network's native one.
    pub native: bool,
    pub decimals: u8,
    /// Of one whole coin: USD with 18 decimals.
    pub usd: U256,
}

impl Worth {
    /// What `units` were worth, millionths of a dollar, rounded half up; `None` for what nothing can be worth.
    pub fn micro(&self, units: U256) -> Option<i128> {
        let coin = U256::from(10).checked_pow(U256::from(self.decimals))?;
        let usd = units.checked_mul(self.usd)?.checked_div(coin)?;
        i128::try_from(format::micro(usd)).ok()
    }
}

/// How much more or less of a currency an account holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub address: String,
    /// The currency's address text; the native currency's is its marker.
    pub currency: String,
    /// Whether `amount` was lost.
    pub negative: bool,
    /// Smallest units; never zero.
    pub amount: U256,
}

impl Change {
    /// The change as a decimal number, with a minus where it was a loss.
    pub fn diff(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}", self.amount)
    }
}

impl TxDetails {
    /// Whether it is of the transaction as the block at `place` has it. What facts place elsewhere
    /// has not been seen there yet.
    pub fn is_of(&self, place: &Inclusion) -> bool {
        self.place.hash == place.hash
    }

    /// What its inclusion cost then, millionths of a dollar.
    pub fn fee_micro(&self) -> Option<i128> {
        let native = self.prices.iter().find(|worth| worth.native)?;
        native.micro(self.fee)
    }

    /// What so much of a currency was worth then, millionths of a dollar.
    pub fn worth(&self, currency: &str, units: U256) -> Option<i128> {
        let mut prices = self.prices.iter();
        let known = prices.find(|worth| spelled_alike(&worth.currency, currency))?;
        known.micro(units)
    }
}

impl From<vm::trade::TxDetails> for TxDetails {
    fn from(seen: vm::trade::TxDetails) -> Self {
        let change = |change: vm::trade::Change| Change {
            address: change.address.text().to_owned(),
            currency: change.currency.text().to_owned(),
            negative: change.diff.negative,
            amount: change.diff.amount,
        };
        Self {
            from: seen.from.text().to_owned(),
            to: seen.to.map(|to| to.text().to_owned()),
            data: seen.data,
            value: seen.value,
            fee: seen.fee,
            place: (&seen.block).into(),
            success: seen.success,
            changes: seen.changes.into_iter().map(change).collect(),
            prices: Vec::new(),
        }
    }
}

/// A transaction of a request that is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Included<'a> {
    pub network: &'a str,
    pub transaction: &'a str,
    /// The block's hash.
    pub block: B256,
}

/// The transactions of `facts` that are in blocks, whatever came of them: deposits, the user's own,
/// the solver's. One with several deposits comes several times.
pub fn included(facts: &Facts) -> impl Iterator<Item = Included<'_>> {
    facts.placed().filter_map(|(network, transaction, place)| {
        Some(Included {
            network,
            transaction,
            block: place?.hash,
        })
    })
}

/// Transactions of one request that are told of: anybody can pay dust for an order.
pub const SHOWN: usize = 64;

/// Deposits that pay for the request first, then all others; otherwise in the order of `facts`.
pub fn paying_first<'a>(
    request: &Request,
    facts: &'a Facts,
) -> impl Iterator<Item = &'a Deposit> + use<'a> {
    let (paying, others): (Vec<_>, Vec<_>) = facts
        .deposits
        .iter()
        .partition(|deposit| mismatch(request, deposit).is_none());
    paying.into_iter().chain(others)
}

/// Those of [`included`] that are told of in full, each once: what the user and the solver sent, then
/// deposits as in [`paying_first`].
pub fn shown<'a>(request: &Request, facts: &'a Facts) -> Vec<Included<'a>> {
    let mut rank: HashMap<&str, usize> = HashMap::new();
    for deposit in paying_first(request, facts) {
        let next = rank.len() + 1;
        rank.entry(&deposit.transaction).or_insert(next);
    }
    let mut known = HashSet::new();
    let mut all: Vec<_> = included(facts).filter(|one| known.insert(*one)).collect();
    // What is no deposit has no rank, and comes first.
    all.sort_by_key(|one| rank.get(one.transaction).copied().unwrap_or_default());
    all.truncate(SHOWN);
    all
}

/// The transactions that `after` has in a block where `before` had them not, each once.
pub fn news<'a>(before: &Facts, after: &'a Facts) -> Vec<Included<'a>> {
    let mut known: HashSet<Included<'_>> = included(before).collect();
    included(after).filter(|one| known.insert(*one)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{
        fact::{Purpose, Standing, State},
        fixtures::{attempt, deposit, place, sent},
    };

    #[test]
    fn dust_hides_no_transaction_that_pays() {
        let request = crate::request::fixtures::request(1);
        let mut facts = Facts::default();
        for number in 10..210_u8 {
            let mut dust = deposit(number, Standing::Included);
            dust.amount = U256::from(1);
            facts.deposits.push(dust);
        }
        let paid = deposit(1, Standing::Final);
        facts.deposits.push(paid.clone());
        facts.deposits.push(Deposit {
            onchain_id: B256::repeat_byte(9),
            ..paid.clone()
        });
        facts.attempts = vec![attempt(Purpose::Fill, State::Confirmed(place(3)))];
        let listed = shown(&request, &facts);
        assert_eq!(listed.len(), SHOWN);
        assert_eq!(listed[0].transaction, "0xf111");
        assert_eq!(listed[1].transaction, paid.transaction);
        let once = listed
            .iter()
            .filter(|one| one.transaction == paid.transaction);
        assert_eq!(once.count(), 1);
    }

    #[test]
    fn rows_of_before_have_no_prices() {
        let mut tx_details = TxDetails {
            from: String::new(),
            to: None,
            data: None,
            value: U256::ZERO,
            fee: U256::from(1_000),
            place: place(1),
            success: true,
            changes: Vec::new(),
            prices: vec![Worth {
                currency: "0xa".into(),
                native: true,
                decimals: 3,
                usd: U256::from(2_000_000_000_000_000_000_u64),
            }],
        };
        assert_eq!(tx_details.fee_micro(), Some(2_000_000));
        assert_eq!(tx_details.worth("0xA", U256::from(1)), Some(2_000));
        assert_eq!(tx_details.worth("0xb", U256::from(1)), None);
        assert_eq!(tx_details.worth("0xa", U256::MAX), None);
        let mut row = serde_json::to_value(&tx_details).unwrap();
        row.as_object_mut().unwrap().remove("prices");
        tx_details.prices.clear();
        assert_eq!(
            serde_json::from_value::<TxDetails>(row).unwrap(),
            tx_details
        );
        assert_eq!(tx_details.fee_micro(), None);
    }

    fn found(before: &Facts, after: &Facts) -> Vec<(String, String, B256)> {
        let all = news(before, after).into_iter();
        all.map(|one| (one.network.into(), one.transaction.into(), one.block))
            .collect()
    }

    #[test]
    fn whatever_came_into_a_block_is_news_once() {
        let mut facts = Facts::default();
        let first = deposit(1, Standing::Included);
        let mut second = first.clone();
        second.onchain_id = B256::repeat_byte(9);
        facts.deposits = vec![first.clone(), second];
        facts.own = vec![
            sent("0xa", State::Included(place(2))),
            sent("0xb", State::Broadcast),
        ];
        let reverted = State::Reverted {
            place: place(3),
            reason: None,
        };
        facts.attempts = vec![
            attempt(Purpose::Fill, reverted),
            attempt(Purpose::Refund, State::Replaced),
        ];
        let expected = [
            ("origin", first.transaction.as_str(), 1),
            ("origin", "0xa", 2),
            ("destination", "0xf111", 3),
        ];
        let expected = expected.map(|(network, transaction, number)| {
            (network.into(), transaction.into(), place(number).hash)
        });
        assert_eq!(found(&Facts::default(), &facts), expected);
        assert_eq!(found(&facts, &facts), []);
    }

    #[test]
    fn only_another_block_makes_it_news_again() {
        let with = |standing, number| {
            let mut deposit = deposit(1, standing);
            deposit.place = place(number);
            Facts {
                deposits: vec![deposit],
                ..Facts::default()
            }
        };
        let before = with(Standing::Included, 1);
        assert_eq!(found(&before, &with(Standing::Final, 1)), []);
        assert_eq!(found(&before, &with(Standing::Reorged, 1)), []);
        let again = found(&before, &with(Standing::Included, 2));
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].2, place(2).hash);
        let back = found(&with(Standing::Reorged, 1), &before);
        assert_eq!(back.len(), 1);
    }

    #[test]
    fn diffs_are_decimal_numbers() {
        let change = |negative| Change {
            address: String::new(),
            currency: String::new(),
            negative,
            amount: U256::MAX,
        };
        assert_eq!(change(false).diff(), U256::MAX.to_string());
        assert_eq!(change(true).diff(), format!("-{}", U256::MAX));
    }
}
