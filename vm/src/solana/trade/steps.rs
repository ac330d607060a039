//! What users sign: deposits through the depository's program, alone or behind an exchange; and how a step is shown
//! (guide: protocol 11.5). What a mint is was read before (`memory`).

use alloy::hex;
use serde_json::{Value, json};
use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;

use super::{
    super::{
        deposit::{DEPOSIT_NATIVE, DEPOSIT_TOKEN},
        programs::{ASSOCIATED, SYSTEM, TOKENS, state, vault},
    },
    UNIT,
    body::{self, Content, Instructions, key, small},
    memory,
    mint::Mint,
    node::Made,
    pay::{self, Facts},
};
use crate::{
    CodecError,
    trade::{
        DepositTerms, Draft, Fill, FillTerms, PaymentTerms, Step, StepBuilder, StepFee, StepKind,
    },
    types::{Amount, B256},
};

/// Compute units that no transaction can exceed.
const MOST_UNITS: u64 = 1_400_000;
/// Bytes of an account of the older token program.
const TOKEN_ACCOUNT: usize = 165;
/// The token programs' `CloseAccount`.
const CLOSE: u8 = 9;
/// The places of the mint and of the vault's account in a deposit of tokens.
const MINT: usize = 4;
const VAULT_TOKENS: usize = 6;
/// The places of the account and of the mint in the instruction of the associated token account program.
const NEW_ACCOUNT: usize = 1;
const NEW_MINT: usize = 3;

/// The transactions of this family.
pub struct Steps;

impl StepBuilder for Steps {
    /// One transaction: what comes before is in it.
    fn deposit(&self, terms: &DepositTerms<'_>) -> Result<Vec<Step>, CodecError> {
        let (mut own, value) = before(terms)?;
        own.list.push((&deposit(terms)?).into());
        let payer = terms.choices.fee_payer.as_ref().map(key).transpose()?;
        own.fee_payer = payer.map(|payer| payer.to_bytes());
        own.work_limit = terms.choices.work_limit;
        Ok(vec![Step {
            kind: StepKind::Deposit,
            draft: Content::Instructions(own).draft(terms.user, value)?,
        }])
    }

    fn send(&self, terms: &PaymentTerms<'_>) -> Result<Draft, CodecError> {
        pay::send(terms)
    }

    fn name(&self, draft: Draft, order: B256) -> Result<Draft, CodecError> {
        pay::name(&draft, order)
    }

    fn fill(&self, terms: &FillTerms<'_>) -> Result<Fill, CodecError> {
        pay::fill(terms)
    }

    /// Data is hex without a prefix.
    fn render(&self, draft: &Draft, shown: StepFee) -> Result<Value, CodecError> {
        let (list, tables) = match Content::of(draft)? {
            Content::Instructions(own) => (listed(&own, shown.limit), own.tables),
            Content::Payments(payments) => {
                let list = payments.instructions(&key(&draft.from)?, &Facts::known(&payments))?;
                (list, Vec::new())
            }
        };
        let list: Vec<Value> = list.iter().map(rendered).collect();
        let tables = tables.into_iter().map(Pubkey::new_from_array);
        let tables: Vec<_> = tables.map(|table| table.to_string()).collect();
        Ok(json!({"instructions": list, "addressLookupTableAddresses": tables}))
    }
}

/// What the user does first, and the lamports that the whole takes besides its fee: an exchange into lamports pays for
/// the deposit of them.
fn before(terms: &DepositTerms<'_>) -> Result<(Instructions, Amount), CodecError> {
    let native = terms.currency.bytes() == SYSTEM.to_bytes();
    if terms.before.is_empty() {
        let value = if native { terms.amount } else { Amount::ZERO };
        return Ok((Instructions::default(), value));
    }
    let (mut own, mut value) = (Instructions::default(), Amount::ZERO);
    for step in terms.before {
        let Content::Instructions(one) = Content::of(&step.draft)? else {
            return Err(CodecError("Only an exchange comes before a deposit".into()));
        };
        own.list.extend(one.list);
        own.tables.extend(one.tables);
        value = value.saturating_add(step.draft.value);
    }
    Ok((own, value))
}

/// The depository's instruction. Of a token whose transfers cost, as much is deposited as makes the amount arrive.
fn deposit(terms: &DepositTerms<'_>) -> Result<Instruction, CodecError> {
    let (program, user) = (key(terms.depository)?, key(terms.user)?);
    let none = || CodecError(format!("{} is no depository", terms.depository));
    let state = state(&program).ok_or_else(none)?;
    let vault = vault(&program).ok_or_else(none)?;
    let currency = key(terms.currency)?;
    let mut accounts = vec![
        AccountMeta::new_readonly(state, false),
        AccountMeta::new(user, true),
        AccountMeta::new_readonly(user, false),
    ];
    let amount = small(terms.amount)?;
    let (kind, amount) = if currency == SYSTEM {
        accounts.push(AccountMeta::new(vault, false));
        (DEPOSIT_NATIVE, amount)
    } else {
        let mint = mint(&currency)?;
        let gross = mint.gross(amount);
        let gross =
            gross.ok_or_else(|| CodecError("More than there can be with its fee".into()))?;
        accounts.extend(token_accounts(&mint, &user, &vault)?);
        (DEPOSIT_TOKEN, gross)
    };
    accounts.push(AccountMeta::new_readonly(SYSTEM, false));
    Ok(Instruction {
        program_id: program,
        accounts,
        data: [&kind[..], &amount.to_le_bytes(), terms.order.as_slice()].concat(),
    })
}

/// The accounts of a deposit of tokens, from the vault on.
fn token_accounts(
    mint: &Mint,
    user: &Pubkey,
    vault: &Pubkey,
) -> Result<[AccountMeta; 6], CodecError> {
    Ok([
        AccountMeta::new_readonly(*vault, false),
        AccountMeta::new_readonly(mint.key, false),
        AccountMeta::new(mint.account_of(user)?, false),
        AccountMeta::new(mint.account_of(vault)?, false),
        AccountMeta::new_readonly(mint.program, false),
        AccountMeta::new_readonly(ASSOCIATED, false),
    ])
}

/// A mint that was read before, and whose tokens can be sent.
pub fn mint(key: &Pubkey) -> Result<Mint, CodecError> {
    let known = memory::known(key);
    let known = known.ok_or_else(|| CodecError(format!("no mint is known at {key}")))?;
    match known.bar {
        Some(bar) => Err(CodecError(format!("tokens of {key} cannot be sent: {bar}"))),
        None => Ok(known),
    }
}

/// All instructions, with the limit of work where the caller wants one: `limit` in units of the family, and what no
/// transaction can exceed where nobody knows it.
pub fn listed(own: &Instructions, limit: Option<u64>) -> Vec<Instruction> {
    let units = limit.map_or(MOST_UNITS, |work| work.saturating_mul(UNIT));
    let units = units.clamp(1, MOST_UNITS);
    let units = u32::try_from(units).unwrap_or(u32::MAX);
    let limit = own
        .work_limit
        .then(|| ComputeBudgetInstruction::set_compute_unit_limit(units));
    let list = own.list.iter().map(Instruction::from);
    limit.into_iter().chain(list).collect()
}

/// The token accounts that the instructions make where there are none, each once; not those that are closed again.
pub fn made(own: &Instructions) -> Vec<Made> {
    let mut made: Vec<Made> = Vec::new();
    let closed: Vec<_> = own.list.iter().filter_map(closes).collect();
    for (account, mint) in own.list.iter().filter_map(makes) {
        let known = made.iter().any(|made| made.key == account);
        if !known && !closed.contains(&account) {
            let mint = memory::known(&mint);
            made.push(Made {
                key: account,
                bytes: mint.map_or(TOKEN_ACCOUNT, |mint| mint.account_bytes),
            });
        }
    }
    made
}

/// The mints of the tokens that the instructions deposit.
pub fn deposited(own: &Instructions) -> Vec<Pubkey> {
    let deposits = own.list.iter();
    let deposits = deposits.filter(|one| one.data.starts_with(&DEPOSIT_TOKEN));
    deposits.filter_map(|one| at(one, MINT)).collect()
}

/// The token account that an instruction makes, and its mint. The depository makes the vault's account of new tokens.
fn makes(one: &body::Instruction) -> Option<(Pubkey, Pubkey)> {
    let (account, mint) = if one.program == ASSOCIATED.to_bytes() {
        (NEW_ACCOUNT, NEW_MINT)
    } else if one.data.starts_with(&DEPOSIT_TOKEN) {
        (VAULT_TOKENS, MINT)
    } else {
        return None;
    };
    Some((at(one, account)?, at(one, mint)?))
}

fn closes(one: &body::Instruction) -> Option<Pubkey> {
    let is_close = TOKENS
        .iter()
        .any(|program| one.program == program.to_bytes())
        && one.data.first() == Some(&CLOSE);
    at(one, 0).filter(|_| is_close)
}

fn at(one: &body::Instruction, place: usize) -> Option<Pubkey> {
    let account = one.accounts.get(place)?;
    Some(Pubkey::new_from_array(account.key))
}

fn rendered(one: &Instruction) -> Value {
    let keys = one.accounts.iter().map(|account| {
        json!({
            "pubkey": account.pubkey.to_string(), "isSigner": account.is_signer, "isWritable": account.is_writable,
        })
    });
    json!({
        "keys": keys.collect::<Vec<_>>(), "programId": one.program_id.to_string(), "data": hex::encode(&one.data),
    })
}

#[cfg(test)]
mod tests;
