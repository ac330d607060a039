//! Which outputs an attempt of the solver's spends. Pure.

use bitcoin::{Amount, Transaction, TxOut};

use super::{
    body,
    coin::{self, Coin},
    select::{self, Unselected, Wanted},
    spend_kind::SpendKind,
    version::{self, Plan, Rates},
};
use crate::{CodecError, ReadError, trade::SubmitError, types};

/// How many times the present rate an attempt can pay out of its change, so that it can be replaced, also where as much
/// hangs on it as may.
const ROOM: u64 = 8;
/// Of so many outputs one stays free for payments that matter more.
const SHARE: usize = 4;
/// A payment of at least one part in so many of what it holds is made all the same.
const PART: u64 = 4;
/// The most inputs of a transaction: with more it would be larger than [`version::LARGEST`].
const MOST_INPUTS: usize = 145;

/// What an attempt spends, and its first transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub coins: Vec<Coin>,
    pub made: Transaction,
}

/// Chooses among `coins` for the outputs of `plan`. The transaction has at most `work` virtual bytes, and no more
/// than its version allows.
pub fn choose(
    coins: &[Coin],
    plan: &Plan<'_>,
    (rates, work): (Rates, u64),
) -> Result<Choice, SubmitError> {
    if let Some(refused) = refusal(plan.outputs) {
        return Err(CodecError(refused).into());
    }
    let work = work.min(version::LARGEST);
    let fits = |choice: &Choice| version::size(&choice.made) <= work;
    let roomy = choice(coins, plan, (&with_room(plan, rates), rates.now));
    let choice = match roomy.ok().filter(fits) {
        Some(choice) => choice,
        None => choice(coins, plan, (plan.outputs, rates.now)).map_err(|why| failed(coins, why))?,
    };
    if !fits(&choice) {
        // Larger outputs are held by attempts under way: they come back.
        let why = "the payment would spend more outputs than its fee was told for";
        return Err(ReadError::Unavailable(why.into()).into());
    }
    Ok(choice)
}

/// Whether a payment of `paid` satoshis leaves too few outputs of `free` that are as large as those of the choice, beside
/// as large ones that open attempts hold, and takes little of what it holds. Small payments would else hold all of them
/// until their change is final; to do that with large ones takes money.
pub fn crowds_out(choice: &Choice, paid: u64, (free, held): (&[Coin], &[Coin])) -> bool {
    let values = choice.coins.iter().map(|coin| coin.value);
    let least = values.min().unwrap_or_default();
    let large = |coins: &[Coin]| coins.iter().filter(|coin| coin.value >= least).count();
    let (free, held) = (large(free), large(held));
    let left = free.saturating_sub(choice.coins.len());
    let kept = free.saturating_add(held) / SHARE;
    left < kept && coin::sum(&choice.coins) / PART > paid
}

/// Virtual bytes of a payment of the plan's outputs out of `coins`.
pub fn work(coins: &[Coin], plan: &Plan<'_>, rates: Rates) -> Result<u64, Unselected> {
    let roomy = choice(coins, plan, (&with_room(plan, rates), rates.now));
    let choice = roomy.or_else(|_| choice(coins, plan, (plan.outputs, rates.now)))?;
    Ok(version::size(&choice.made))
}

/// Why no node would take a transaction with these outputs.
pub fn refusal(outputs: &[TxOut]) -> Option<String> {
    let (small, least) = body::dust(outputs)?;
    let (paid, least) = (small.value.to_sat(), least.to_sat());
    Some(format!(
        "a payment of {paid} satoshis: nodes pass on none below {least}"
    ))
}

/// The outputs, and change from which a replacement is paid.
fn with_room(plan: &Plan<'_>, rates: Rates) -> Vec<TxOut> {
    let dearer = rates.now.saturating_mul(ROOM).min(rates.most);
    let more = dearer.saturating_sub(rates.now);
    // The work of a payment with one input: what more inputs take besides is left to chance.
    let usual = plan.outputs.iter().map(|output| output.weight().to_wu());
    let usual = usual.fold(0, u64::saturating_add).div_ceil(4) + 110;
    let room = Amount::from_sat(usual.saturating_mul(more));
    let change = TxOut {
        value: plan.change.minimal_non_dust() + room.min(Amount::MAX_MONEY),
        script_pubkey: plan.change.to_owned(),
    };
    plan.outputs.iter().cloned().chain([change]).collect()
}

/// What pays for `outputs` at a rate, as the first transaction of the plan: the smallest coin that is enough alone,
/// else the largest ones. What an attempt spends is held until its change is final, so small payments must not hold what
/// only large ones need.
fn choice(
    coins: &[Coin],
    plan: &Plan<'_>,
    (outputs, rate): (&[TxOut], u64),
) -> Result<Choice, Unselected> {
    let wanted = Wanted {
        outputs,
        change: plan.change,
        rate,
        kind: &SpendKind::WitnessKeyHash,
        required: 0,
        most: MOST_INPUTS,
    };
    let alone = |coin: &&Coin| select::select(std::slice::from_ref(*coin), &wanted).is_ok();
    let enough = coins.iter().filter(alone);
    let coins = match enough.min_by_key(|coin| coin.value) {
        Some(coin) => vec![coin.clone()],
        None => select::select(coins, &wanted)?.coins,
    };
    let chosen = Plan {
        coins: &coins,
        ..*plan
    };
    let made = chosen.first(rate);
    let made = made.ok_or(Unselected::Short { missing: 1 })?;
    Ok(Choice { coins, made })
}

fn failed(coins: &[Coin], why: Unselected) -> SubmitError {
    match why {
        Unselected::Short { missing } => {
            let available = coin::sum(coins);
            SubmitError::Short {
                available: types::Amount::from(available),
                needed: types::Amount::from(available.saturating_add(missing)),
            }
        }
        Unselected::Many => {
            let why = "the payment would spend more outputs than a transaction can";
            ReadError::Unavailable(why.into()).into()
        }
    }
}

#[cfg(test)]
mod tests;
