//! Deposits of a transaction (guide: protocol 4.1 and 4.4). Pure.
//!
//! The depository's instructions say what was deposited, and for whom. They are no proof that anything moved: what they
//! say together must be covered by what the vault gained, besides what it paid out itself in the transaction.

use alloy::hex;
use solana_pubkey::Pubkey;

use super::{
    decode::{Depository, Rules},
    executed::{Change, Executed, Step},
    programs::{COMPUTE_BUDGET, SYSTEM, TOKEN, TOKENS, associated},
    transfer::{Transfer, is_unread},
};
use crate::types::{Amount, Deposit, Refusal};

/// Anchor's discriminators: the first 8 bytes of sha256 of `global:deposit_native` and `global:deposit_token`.
pub const DEPOSIT_NATIVE: [u8; 8] = [0x0d, 0x9e, 0x0d, 0xdf, 0x5f, 0xd5, 0x1c, 0x06];
pub const DEPOSIT_TOKEN: [u8; 8] = [0x0b, 0x9c, 0x60, 0xda, 0x27, 0xa3, 0xb4, 0x13];
/// Positions in the accounts of both instructions; the mint is in those of the second only.
const SENDER: usize = 1;
const DEPOSITOR: usize = 2;
const VAULT: usize = 3;
const MINT: usize = 4;

/// A deposit as the depository's instruction says it.
struct Said {
    /// The position of the instruction in the list.
    index: u32,
    depositor: Pubkey,
    /// Whether the depositor gives it: the sender signs, and may be anybody.
    by_depositor: bool,
    /// `None`: the native currency.
    mint: Option<Pubkey>,
    amount: u64,
    id: [u8; 32],
}

impl Said {
    /// The deposit, worth `amount`.
    fn deposit(&self, rules: &Rules, depository: &Depository, amount: u64) -> Deposit {
        let currency = self.mint.map(|mint| rules.address(&mint));
        Deposit {
            index: self.index,
            depository: depository.address.clone(),
            depositor: rules.address(&self.depositor),
            currency: currency.unwrap_or_else(|| rules.native.clone()),
            amount: Amount::from(amount),
            id: hex::encode_prefixed(self.id).into(),
            named_by_other: false,
            by_depositor: self.by_depositor,
        }
    }
}

/// The deposits, in the order of their instructions. `mint`: see [`unnamed`].
pub fn deposits(
    rules: &Rules,
    executed: &Executed,
    mint: Option<Pubkey>,
) -> Result<Vec<Deposit>, Refusal> {
    let Some(depository) = &rules.depository else {
        return Ok(Vec::new());
    };
    let steps = (0_u32..).zip(&executed.steps);
    let said = steps.filter(|(_, step)| step.program == depository.program);
    let said = said.filter_map(|(index, step)| said_by(depository, index, step).transpose());
    let said: Vec<Said> = said.collect::<Result<_, _>>()?;
    if said.is_empty() {
        return Ok(plain(rules, depository, executed, mint)?
            .into_iter()
            .collect());
    }
    let amounts = credited(depository, executed, &said)?;
    let deposits = said.iter().zip(amounts);
    let deposits = deposits.map(|(said, amount)| said.deposit(rules, depository, amount));
    Ok(deposits.collect())
}

/// The deposits as their instructions say them, for people who look at a transaction in which nothing covers them.
pub fn uncovered(rules: &Rules, executed: &Executed) -> Vec<Deposit> {
    let Some(depository) = &rules.depository else {
        return Vec::new();
    };
    let steps = (0_u32..).zip(&executed.steps);
    let own = steps.filter(|(_, step)| step.program == depository.program);
    let said = own.filter_map(|(index, step)| said_by(depository, index, step).ok().flatten());
    said.map(|said| said.deposit(rules, depository, said.amount))
        .collect()
}

/// The token account whose tokens only its state tells: the target of a transfer into the vault that does not name
/// them, in an answer without balances of tokens.
pub fn unnamed(rules: &Rules, executed: &Executed) -> Option<Pubkey> {
    rules.depository.as_ref()?;
    let transfer = alone(executed)?;
    let named = transfer.mint.is_some() || transfer.program == SYSTEM || executed.shows_tokens();
    (!named).then_some(transfer.to)
}

/// Reads an instruction of the depository; `Ok(None)` where it is no deposit.
fn said_by(depository: &Depository, index: u32, step: &Step) -> Result<Option<Said>, Refusal> {
    let Some((kind, arguments)) = step.data.bytes().split_first_chunk::<8>() else {
        return Ok(None);
    };
    let of_token = match *kind {
        DEPOSIT_NATIVE => false,
        DEPOSIT_TOKEN => true,
        _ => return Ok(None),
    };
    let refuse = |what: &str| Err(Refusal(format!("Instruction {index} {what}")));
    let amount = arguments.split_first_chunk::<8>();
    let id = amount.and_then(|(_, rest)| rest.first_chunk::<32>());
    let (Some((amount, _)), Some(id)) = (amount, id) else {
        return refuse("is no whole deposit");
    };
    let mint = step.account(MINT).filter(|_| of_token);
    let (Some(depositor), Some(vault)) = (step.account(DEPOSITOR), step.account(VAULT)) else {
        return refuse("is no whole deposit");
    };
    if vault != depository.vault {
        return refuse("deposits into another vault");
    }
    // The address of the native currency is no token.
    if of_token && mint.is_none_or(|mint| mint == SYSTEM) {
        return refuse("deposits no token");
    }
    Ok(Some(Said {
        index,
        depositor,
        by_depositor: step.account(SENDER) == Some(depositor),
        mint,
        amount: u64::from_le_bytes(*amount),
        id: *id,
    }))
}

/// What each deposit is worth: what its instruction says, if the vault gained the sum of what all say of its currency.
/// Where a token takes a fee of a transfer, a sole deposit is worth what arrived.
fn credited(
    depository: &Depository,
    executed: &Executed,
    said: &[Said],
) -> Result<Vec<u64>, Refusal> {
    let mut amounts = Vec::with_capacity(said.len());
    for one in said {
        let together = said.iter().filter(|other| other.mint == one.mint);
        let sum: u128 = together.clone().map(|other| u128::from(other.amount)).sum();
        let Some((gain, may_be_less)) = gained(depository, executed, one.mint)? else {
            amounts.push(one.amount);
            continue;
        };
        if gain >= sum {
            amounts.push(one.amount);
        } else if may_be_less && gain > 0 && together.count() == 1 {
            // No more than the instruction says, which has 64 bits.
            amounts.push(u64::try_from(gain).unwrap_or(one.amount));
        } else {
            return Err(short(gain, sum));
        }
    }
    Ok(amounts)
}

/// What the vault gained of a currency, and whether a transfer of it may arrive with less than was sent; `None` where
/// the answer has no balances.
fn gained(
    depository: &Depository,
    executed: &Executed,
    mint: Option<Pubkey>,
) -> Result<Option<(u128, bool)>, Refusal> {
    let vault = &depository.vault;
    let Some(mint) = mint else {
        if !executed.shows_lamports() {
            return Ok(None);
        }
        let change = executed.lamports_of(vault);
        let gain = received(vault, executed, (vault, &SYSTEM), change)?;
        return Ok(Some((gain, false)));
    };
    if !executed.shows_tokens() {
        return Ok(None);
    }
    let [old, new] = TOKENS.map(|program| {
        let Some(account) = associated(vault, &mint, &program) else {
            return Ok(0);
        };
        let change = executed.tokens_of(&account, vault, &mint);
        received(vault, executed, (&account, &program), change)
    });
    // A mint belongs to one program.
    let (old, new) = (old?, new?);
    Ok(Some((old.max(new), old == 0)))
}

/// What came into an account of the vault: by how much it grew, and what the vault paid out of it meanwhile. Nothing,
/// where the answer has no balance of it.
fn received(
    vault: &Pubkey,
    executed: &Executed,
    (account, program): (&Pubkey, &Pubkey),
    change: Option<Change>,
) -> Result<u128, Refusal> {
    let Some(change) = change else {
        return Ok(0);
    };
    // The vault signs no message: only the depository's program has it sign, for what that calls.
    let called = executed.steps.iter().filter(|step| !step.signed);
    let own = called.filter(|step| step.program == *program && step.account(0) == Some(*account));
    let mut after = change.after;
    for step in own {
        let paid = u128::from(paid_out(vault, executed, step)?);
        after = after.checked_add(paid).ok_or_else(unread)?;
    }
    Ok(Change { after, ..change }.gain())
}

/// What an instruction that takes from an account of the vault pays out on the vault's own word: nothing where a
/// delegate says so, or where it goes to an account of the vault.
fn paid_out(vault: &Pubkey, executed: &Executed, step: &Step) -> Result<u64, Refusal> {
    let Some(transfer) = Transfer::of(step) else {
        return match is_unread(step) && step.accounts.contains(vault) {
            true => Err(unread()),
            false => Ok(0),
        };
    };
    let mut held = executed.before.iter().chain(&executed.after);
    let stays = transfer.to == transfer.from
        || held.any(|holding| holding.account == transfer.to && holding.owner == *vault);
    Ok(match transfer.authority == *vault && !stays {
        true => transfer.amount,
        false => 0,
    })
}

fn unread() -> Refusal {
    Refusal("What the vault paid out cannot be read".into())
}

fn short(gain: u128, sum: u128) -> Refusal {
    Refusal(format!("The vault gained {gain} of the {sum} deposited"))
}

/// The deposit of a transaction that does nothing but transfer to the vault. It names no order.
fn plain(
    rules: &Rules,
    depository: &Depository,
    executed: &Executed,
    mint: Option<Pubkey>,
) -> Result<Option<Deposit>, Refusal> {
    let Some(transfer) = alone(executed) else {
        return Ok(None);
    };
    let deposit = |currency, amount: u64| Deposit {
        index: 0,
        depository: depository.address.clone(),
        depositor: rules.address(&transfer.authority),
        currency,
        amount: Amount::from(amount),
        id: hex::encode_prefixed([0; 32]).into(),
        named_by_other: false,
        by_depositor: true,
    };
    if transfer.program == SYSTEM {
        if transfer.to != depository.vault {
            return Ok(None);
        }
        let change = executed.lamports_of(&transfer.to).unwrap_or_default();
        let covered = change.gain() >= u128::from(transfer.amount);
        return match covered || !executed.shows_lamports() {
            true => Ok(Some(deposit(rules.native.clone(), transfer.amount))),
            false => Err(short(change.gain(), transfer.amount.into())),
        };
    }
    let shown = executed.after.iter();
    let mut shown = shown.filter(|holding| holding.account == transfer.to);
    let shown = shown.next().map(|holding| holding.mint);
    let Some(mint) = transfer.mint.or(shown).or(mint) else {
        return Ok(None);
    };
    if associated(&depository.vault, &mint, &transfer.program) != Some(transfer.to) {
        return Ok(None);
    }
    let sum = u128::from(transfer.amount);
    let change = executed.tokens_of(&transfer.to, &depository.vault, &mint);
    let change = change.unwrap_or_default();
    let gain = match executed.shows_tokens() {
        true => change.gain().min(sum),
        false => sum,
    };
    if gain < sum && (transfer.program == TOKEN || gain == 0) {
        return Err(short(gain, sum));
    }
    let gain = u64::try_from(gain).unwrap_or(transfer.amount);
    Ok(Some(deposit(rules.address(&mint), gain)))
}

/// The transfer that is all that a transaction does, but for the price of its work.
fn alone(executed: &Executed) -> Option<Transfer> {
    let steps = executed.steps.iter();
    let mut steps = steps.filter(|step| step.program != COMPUTE_BUDGET);
    let (Some(step), None) = (steps.next(), steps.next()) else {
        return None;
    };
    Transfer::of(step).filter(|transfer| !transfer.states_fee)
}
