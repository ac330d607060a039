//! Which unspent outputs of an account a transaction spends, what it pays for inclusion and what comes back. Pure;
//! all amounts are satoshis, and no fee is rounded in a way that nodes do not.
//!
//! The largest outputs go first: the fewest are spent, and the search stays short however many there are.

use std::cmp::Reverse;

use bdk_coin_select::{Candidate, CoinSelector, DrainWeights, TargetOutputs};
use bitcoin::{Script, TxOut};

use super::{coin::Coin, spend_kind::SpendKind};

/// What a transaction is to do. All coins are outputs of one script.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// What it pays, without change.
    pub outputs: &'a [TxOut],
    /// Where the rest goes.
    pub change: &'a Script,
    /// Satoshis for a virtual byte.
    pub rate: u64,
    pub kind: &'a SpendKind,
    /// The first so many coins are spent in any case.
    pub required: usize,
    /// Inputs that it may have.
    pub most: usize,
}

/// What a transaction spends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    pub coins: Vec<Coin>,
    /// `None`: the rest is too little for an output of its own, and goes to the fee.
    pub change: Option<u64>,
    pub fee: u64,
}

/// Why nothing is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unselected {
    Short {
        missing: u64,
    },
    /// There is enough, in more outputs than one transaction may spend.
    Many,
}

/// Chooses among `coins`.
pub fn select(coins: &[Coin], wanted: &Wanted<'_>) -> Result<Selection, Unselected> {
    let worthy = worthy(coins, wanted);
    let chosen = &worthy[..worthy.len().min(wanted.most)];
    let candidates = chosen.iter().map(|coin| Candidate {
        value: coin.value,
        weight: wanted.kind.weight(),
        input_count: 1,
        is_segwit: wanted.kind.is_witness(),
    });
    let candidates: Vec<_> = candidates.collect();
    let mut selector = CoinSelector::new(&candidates);
    for at in 0..wanted.required.min(candidates.len()) {
        selector.select(at);
    }
    let paid = Paid::of(wanted);
    let enough = |selector: &CoinSelector<'_>| paid.is_covered(selector);
    if selector.select_until(enough).is_none() {
        return Err(paid.short(&worthy));
    }
    let change = paid.change(&selector);
    let given = paid.value.saturating_add(change.unwrap_or_default());
    let spent = selector.apply_selection(chosen);
    Ok(Selection {
        coins: spent.copied().cloned().collect(),
        change,
        fee: selector.selected_value().saturating_sub(given),
    })
}

/// Those that must be spent, then what is worth more than its own fee, the largest first.
fn worthy<'a>(coins: &'a [Coin], wanted: &Wanted<'_>) -> Vec<&'a Coin> {
    let (required, rest) = coins.split_at(wanted.required.min(coins.len()));
    let cost = fee(wanted.kind.weight(), wanted.rate);
    let mut rest: Vec<&Coin> = rest.iter().filter(|coin| coin.value > cost).collect();
    rest.sort_by_key(|coin| Reverse(coin.value));
    required.iter().chain(rest).collect()
}

/// What the transaction pays, and what it weighs besides its inputs.
struct Paid {
    value: u64,
    outputs: TargetOutputs,
    drain: DrainWeights,
    dust: u64,
    rate: u64,
    /// Of one more input.
    input: u64,
}

impl Paid {
    fn of(wanted: &Wanted<'_>) -> Self {
        let outputs = wanted.outputs.iter();
        let outputs = outputs.map(|it| (it.weight().to_wu(), it.value.to_sat()));
        let outputs = TargetOutputs::fund_outputs(outputs);
        let dust = wanted.change.minimal_non_dust();
        let change = TxOut {
            value: dust,
            script_pubkey: wanted.change.to_owned(),
        };
        Self {
            value: outputs.value_sum,
            outputs,
            drain: DrainWeights {
                output_weight: change.weight().to_wu(),
                spend_weight: 0,
                n_outputs: 1,
            },
            dust: dust.to_sat(),
            rate: wanted.rate,
            input: wanted.kind.weight(),
        }
    }

    /// What the selection costs, with a rest that weighs `drain`.
    fn cost(&self, selector: &CoinSelector<'_>, drain: &DrainWeights) -> u64 {
        let fee = fee(selector.weight(self.outputs, *drain), self.rate);
        self.value.saturating_add(fee)
    }

    fn is_covered(&self, selector: &CoinSelector<'_>) -> bool {
        selector.selected_value() >= self.cost(selector, &DrainWeights::NONE)
    }

    fn change(&self, selector: &CoinSelector<'_>) -> Option<u64> {
        let cost = self.cost(selector, &self.drain);
        let rest = selector.selected_value().checked_sub(cost);
        rest.filter(|rest| *rest >= self.dust)
    }

    /// Why not even all of `worthy` are enough.
    fn short(&self, worthy: &[&Coin]) -> Unselected {
        let have = worthy.iter().map(|coin| coin.value);
        let have = have.fold(0, u64::saturating_add);
        let count = u64::try_from(worthy.len().max(1)).unwrap_or(u64::MAX);
        let inputs = self.input.saturating_mul(count);
        let weight = (self.outputs.output_weight() + EMPTY).saturating_add(inputs);
        let cost = self.value.saturating_add(fee(weight, self.rate));
        match cost.checked_sub(have) {
            Some(missing) if missing > 0 => Unselected::Short { missing },
            _ => Unselected::Many,
        }
    }
}

/// Weight of version, lock time and the marks of witnesses, and of the count of few inputs.
const EMPTY: u64 = 8 * 4 + 2 + 4;

/// The fee of so many weight units: virtual bytes are rounded up.
fn fee(weight: u64, rate: u64) -> u64 {
    weight.div_ceil(4).saturating_mul(rate)
}

#[cfg(test)]
mod tests {
    use bitcoin::{Amount, OutPoint, ScriptBuf, Txid, hashes::Hash};

    use super::*;

    fn coin(number: u8, value: u64) -> Coin {
        Coin {
            outpoint: OutPoint::new(Txid::from_byte_array([number; 32]), 0),
            value,
            height: 1,
        }
    }

    fn script(byte: u8) -> ScriptBuf {
        let mut script = vec![0, 20];
        script.extend([byte; 20]);
        script.into()
    }

    fn chosen(coins: &[Coin], paid: u64, most: usize) -> Result<Selection, Unselected> {
        let outputs = [TxOut {
            value: Amount::from_sat(paid),
            script_pubkey: script(7),
        }];
        select(
            coins,
            &Wanted {
                outputs: &outputs,
                change: &script(8),
                rate: 10,
                kind: &SpendKind::WitnessKeyHash,
                required: 0,
                most,
            },
        )
    }

    /// One P2WPKH input and output have 110 virtual bytes (10.5 + 68 + 31 by BIP 141, rounded up); change adds 31.
    #[test]
    fn what_is_enough_to_the_satoshi_is_enough_and_one_less_is_not() {
        let exact = chosen(&[coin(1, 50_000)], 48_900, 10).unwrap();
        assert_eq!((exact.change, exact.fee), (None, 1_100));
        let short = chosen(&[coin(1, 49_999)], 48_900, 10);
        assert_eq!(short, Err(Unselected::Short { missing: 1 }));
        assert_eq!(
            chosen(&[], 48_900, 10),
            Err(Unselected::Short { missing: 50_000 })
        );
    }

    #[test]
    fn change_is_given_from_the_dust_limit_on() {
        // 110 virtual bytes and 31 for the change.
        let spent = |rest: u64| chosen(&[coin(1, 48_900 + 1_410 + rest)], 48_900, 10).unwrap();
        assert_eq!((spent(294).change, spent(294).fee), (Some(294), 1_410));
        assert_eq!((spent(293).change, spent(293).fee), (None, 1_703));
    }

    #[test]
    fn the_largest_go_first_and_what_costs_more_than_it_brings_never() {
        let coins = [coin(1, 680), coin(2, 9_000), coin(3, 30_000), coin(4, 600)];
        let one = chosen(&coins, 20_000, 10).unwrap();
        assert_eq!(one.coins, [coin(3, 30_000)]);
        let two = chosen(&coins, 32_000, 10).unwrap();
        assert_eq!(two.coins, [coin(3, 30_000), coin(2, 9_000)]);
        assert!(matches!(
            chosen(&coins, 38_500, 10),
            Err(Unselected::Short { .. })
        ));
        assert_eq!(chosen(&coins, 32_000, 1), Err(Unselected::Many));
    }

    #[test]
    fn what_must_be_spent_is_spent_and_all_outputs_take_no_time() {
        let mut coins: Vec<_> = (0..10_000).map(|value| coin(1, 10_000 + value)).collect();
        let script = script(8);
        let outputs = [TxOut {
            value: Amount::from_sat(1_000_000),
            script_pubkey: script.clone(),
        }];
        let wanted = Wanted {
            outputs: &outputs,
            change: &script,
            rate: 1,
            kind: &SpendKind::Taproot { internal: None },
            required: 1,
            most: 256,
        };
        coins.insert(0, coin(2, 1));
        let selection = select(&coins, &wanted).unwrap();
        assert_eq!(selection.coins[0], coin(2, 1));
        let values = selection.coins.iter().map(|coin| coin.value);
        assert_eq!(
            values.sum::<u64>(),
            1_000_000 + selection.fee + selection.change.unwrap_or_default()
        );
    }
}
