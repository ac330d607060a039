//! Payments of a transaction: what accounts gained of the money of those who signed it (guide: protocol 4.4 and 12.3).
//! Pure.
//!
//! What an account gained may be a stranger's payout, which anybody can set off and put an order's id beside. It counts
//! as the signers' payment where only programs ran that move nothing without a signature, and nobody's word was used
//! for another's account; elsewhere no more counts than what instructions move from the signers' own accounts.

use std::collections::BTreeMap;

use solana_pubkey::Pubkey;

use super::{
    decode::Rules,
    executed::{Change, Executed, Holding, Step},
    programs::{SYSTEM, WRAPPED},
    transfer::{Transfer, is_on_a_word, taken},
};
use crate::types::{Amount, Payment, PaymentKind};

/// The indexes of payments in tokens begin here; below are the positions of accounts that gained lamports.
const TOKENS_FROM: u32 = 1 << 16;

/// Who gained, and of what; `None`: the native currency.
type Purse = (Pubkey, Option<Pubkey>);

/// What an owner held of a token in all accounts of the transaction.
struct Held {
    change: Change,
    /// The position of the first account that holds some afterwards.
    first: u8,
}

/// The payments, each at an index of its own.
pub fn payments(rules: &Rules, executed: &Executed) -> Vec<Payment> {
    let mut steps = executed.steps.iter();
    let of_nobody_else = steps.all(|step| is_on_a_word(step) && is_own(executed, step));
    let given = match of_nobody_else {
        true => BTreeMap::new(),
        false => given(executed),
    };
    let gained = native(executed).chain(tokens(executed));
    let payments = gained.filter_map(|(index, purse, gain)| {
        let amount = match of_nobody_else {
            true => gain,
            false => gain.min(given.get(&purse).copied().unwrap_or_default()),
        };
        let (recipient, mint) = purse;
        let paid = amount > 0 && !executed.is_signer(&recipient);
        paid.then(|| Payment {
            index,
            kind: PaymentKind::Transfer,
            recipient: rules.address(&recipient),
            currency: mint.map_or_else(|| rules.native.clone(), |mint| rules.address(&mint)),
            amount: Amount::from(amount),
        })
    });
    payments.collect()
}

/// What each account gained in lamports.
fn native(executed: &Executed) -> impl Iterator<Item = (u32, Purse, u128)> {
    let accounts = (0..).zip(&executed.lamports);
    accounts.map(|(index, (account, change))| (index, (*account, None), change.gain()))
}

/// What each owner gained of each token, over all accounts of the transaction. Its index is the one of the first
/// account that holds some afterwards.
fn tokens(executed: &Executed) -> impl Iterator<Item = (u32, Purse, u128)> {
    let mut held: BTreeMap<(Pubkey, Pubkey), Held> = BTreeMap::new();
    for holding in &executed.after {
        let of = entry(&mut held, holding);
        of.change.before += unwrapped(executed, holding);
        of.change.after += u128::from(holding.amount);
        of.first = of.first.min(holding.position);
    }
    for holding in &executed.before {
        entry(&mut held, holding).change.before += u128::from(holding.amount);
    }
    // The address of the native currency is no token.
    let held = held.into_iter().filter(|((_, mint), _)| *mint != SYSTEM);
    held.map(|((owner, mint), held)| {
        let index = TOKENS_FROM + u32::from(held.first);
        (index, (owner, Some(mint)), held.change.gain())
    })
}

/// The lamports that stood at the address of a new account of wrapped lamports before, and are tokens now: anybody may
/// make an account there, and they are not its maker's. Those that its rent needs are no tokens.
fn unwrapped(executed: &Executed, holding: &Holding) -> u128 {
    let is_new = !executed
        .before
        .iter()
        .any(|it| it.account == holding.account);
    let change = executed.lamports_of(&holding.account);
    let change = change.filter(|_| is_new && WRAPPED.contains(&holding.mint));
    let change = change.unwrap_or_default();
    let rent = change.after.saturating_sub(u128::from(holding.amount));
    change.before.saturating_sub(rent)
}

fn entry<'a>(held: &'a mut BTreeMap<(Pubkey, Pubkey), Held>, holding: &Holding) -> &'a mut Held {
    let of = held.entry((holding.owner, holding.mint));
    of.or_insert(Held {
        change: Change::default(),
        first: u8::MAX,
    })
}

/// What instructions move from the signers' own accounts to others.
fn given(executed: &Executed) -> BTreeMap<Purse, u128> {
    let mut given = BTreeMap::new();
    for transfer in executed.steps.iter().filter_map(Transfer::of) {
        if !executed.is_signer(&transfer.authority) {
            continue;
        }
        let purse = match transfer.program {
            SYSTEM => Some((transfer.to, None)),
            _ => moved(executed, &transfer),
        };
        if let Some(purse) = purse {
            *given.entry(purse).or_default() += u128::from(transfer.amount);
        }
    }
    given
}

/// Whether what an instruction takes from a token account is its owner's who says so, not a delegate's.
fn is_own(executed: &Executed, step: &Step) -> bool {
    let Some((account, by)) = taken(step) else {
        return true;
    };
    let held = executed.holding(&account);
    // Where it holds nothing before and after, the transaction filled and emptied it.
    held.is_none_or(|holding| holding.owner == by)
}

/// Who owns the target of a transfer of tokens; `None` where its authority does not own the source.
fn moved(executed: &Executed, transfer: &Transfer) -> Option<Purse> {
    let from = executed.holding(&transfer.from)?;
    let to = executed.holding(&transfer.to)?;
    let own = from.owner == transfer.authority && from.mint == to.mint;
    own.then_some((to.owner, Some(to.mint)))
}
