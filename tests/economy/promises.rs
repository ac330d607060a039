//! What honest users get for what they gave.

use alloy::primitives::{Address, U256};

use crate::{
    history::{Deal, History},
    invariants::{Account, Gas},
    market::{self, NATIVE},
    plan::Extra,
};

/// What a refund may cost besides its gas, in 10^-8 dollars.
const FIXED: u128 = 300_000_000;

/// Whether an order ended well for its user: in a fill of no less than was promised, or in a refund;
/// what was too much came back either way, less what that cost.
pub fn kept(history: &History, deal: &Deal, account: &Account, ending: &str) -> Result<(), String> {
    let (chain, currency) = deal.trade.from;
    let own = account
        .deposits
        .iter()
        .filter(|placed| placed.depositor == deal.account);
    let given: U256 = own.map(|placed| placed.amount).sum();
    let back = {
        let world = history.world.chain(chain).lock();
        let (now, first) = (world.state(), world.state_at(0).unwrap());
        let before = first.balance(deal.account, currency);
        let own = (now.balance(deal.account, currency) + given).saturating_sub(before);
        own + now.balance(deal.recipient, currency)
    };
    let due = match ending {
        "success" => {
            let world = history.world.chain(deal.trade.to.0).lock();
            let got = world.state().balance(deal.recipient, deal.trade.to.1);
            if got < deal.minimum && deal.trade.extra == Extra::Nothing {
                return Err(format!("{got} arrive, {} were promised", deal.minimum));
            }
            given.saturating_sub(history.asked(deal))
        }
        "refund" => given,
        _ => return Err("neither filled nor given back".into()),
    };
    let missing = due.saturating_sub(back);
    // What is missing counts at the least price there was, a refund's cost at the greatest.
    let (lost, _) = worth(history, (chain, currency), missing);
    let (_, due_worth) = worth(history, (chain, currency), due);
    let bound = FIXED + gas(history, account) + due_worth / 100;
    match lost > bound {
        true => Err(format!(
            "{missing} of {due} do not come back ({lost} > {bound})"
        )),
        false => Ok(()),
    }
}

/// At the least and at the greatest price there was, in 10^-8 dollars.
fn worth(history: &History, (chain, currency): (&str, Address), amount: U256) -> (u128, u128) {
    let Some((symbol, decimals)) = market::currency(chain, currency) else {
        return (0, 0);
    };
    let (least, most) = history.world.prices.between(symbol, 0, u64::MAX);
    let unit = U256::from(10).pow(U256::from(decimals));
    let at = |price| u128::try_from(amount * U256::from(price) / unit).unwrap_or(u128::MAX);
    (at(least), at(most))
}

/// Twice what the solver's transactions for the order should have cost.
fn gas(history: &History, account: &Account) -> u128 {
    let gas = account.gas.iter().map(Gas::due).sum::<U256>();
    worth(history, ("alpha", NATIVE), gas * U256::from(2)).1
}
