//! The instructions of an exchange, held against what was asked for. Pure.
//!
//! The user signs them together, and a signature lets every program in the transaction act for its signer. So only the
//! aggregator's program runs, with the amounts and the limit of the order, and beside it only what makes the user's
//! token accounts, wraps no more of the user's lamports than the order takes, and unwraps what is left of them.

use base64::{Engine, prelude::BASE64_STANDARD};
use solana_pubkey::Pubkey;

use super::{
    super::{
        super::programs::{ASSOCIATED, SYSTEM, TOKEN, TOKENS, associated},
        body::{Account, Instruction, Instructions},
    },
    PROGRAM,
    answer::{Answer, RawInstruction},
    unavailable,
};
use crate::trade::SwapError;

/// Anchor's discriminators of the program's exchanges: the first 8 bytes of sha256 of `global:route`,
/// `global:shared_accounts_route`, `global:exact_out_route` and `global:shared_accounts_exact_out_route`.
const EXACT_INPUT: [[u8; 8]; 2] = [
    [0xe5, 0x17, 0xcb, 0x97, 0x7a, 0xe3, 0xad, 0x2a],
    [0xc1, 0x20, 0x9b, 0x33, 0x41, 0xd6, 0x9c, 0x81],
];
const EXACT_OUTPUT: [[u8; 8]; 2] = [
    [0xd0, 0x33, 0xef, 0x97, 0x7b, 0x2b, 0xed, 0x5c],
    [0xb0, 0xd1, 0x69, 0xa8, 0x9a, 0x7d, 0x45, 0x3e],
];
/// The last arguments of each: two amounts, the slippage, and the fee of whoever asked.
const TAIL: usize = 8 + 8 + 2 + 1;
/// The system program's `Transfer`, and the token programs' `SyncNative` and `CloseAccount`.
const TRANSFER: [u8; 4] = 2_u32.to_le_bytes();
const SYNC_NATIVE: [u8; 1] = [17];
const CLOSE: [u8; 1] = [9];

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub user: Pubkey,
    /// Who pays for inclusion and for new accounts, where it is not the user.
    pub payer: Option<Pubkey>,
    /// What stands for lamports.
    pub wrapped: Pubkey,
    /// Who gets what comes out, where it is not the user.
    pub to: Option<Pubkey>,
    pub native_input: bool,
    pub native_output: bool,
    pub exact_input: bool,
    pub input: u64,
    pub output: u64,
    /// What goes in at most.
    pub most: u64,
    /// Basis points.
    pub slippage: u16,
}

/// The instructions in their order, with the lookup tables.
pub fn instructions(answer: Answer, asked: &Asked) -> Result<Instructions, SwapError> {
    if answer.token_ledger_instruction.is_some() || !answer.other_instructions.is_empty() {
        return Err(unavailable("instructions that nobody asked for"));
    }
    let mut list = Vec::new();
    let mut wrapped = 0_u64;
    for raw in &answer.setup_instructions {
        let one = instruction(raw, asked)?;
        wrapped = wrapped.saturating_add(setup(&one, asked)?);
        list.push(one);
    }
    if wrapped > asked.most {
        return Err(unavailable("more is wrapped than the order takes"));
    }
    let exchange = instruction(&answer.swap_instruction, asked)?;
    is_asked(&exchange, asked)?;
    list.push(exchange);
    if let Some(raw) = &answer.cleanup_instruction {
        let one = instruction(raw, asked)?;
        cleanup(&one, asked)?;
        list.push(one);
    }
    let tables = answer.address_lookup_table_addresses.iter();
    Ok(Instructions {
        list,
        tables: tables.map(|table| table.0.to_bytes()).collect(),
        ..Instructions::default()
    })
}

/// An instruction that nobody else has to sign.
fn instruction(raw: &RawInstruction, asked: &Asked) -> Result<Instruction, SwapError> {
    let data = BASE64_STANDARD.decode(&raw.data);
    let data = data.map_err(|_| unavailable("an instruction that is not base64"))?;
    let own = |key: &Pubkey| *key == asked.user || Some(*key) == asked.payer;
    if raw
        .accounts
        .iter()
        .any(|one| one.is_signer && !own(&one.pubkey.0))
    {
        return Err(unavailable("an instruction that another has to sign"));
    }
    let accounts = raw.accounts.iter().map(|one| Account {
        key: one.pubkey.0.to_bytes(),
        signs: one.is_signer,
        writable: one.is_writable,
    });
    Ok(Instruction {
        program: raw.program_id.0.to_bytes(),
        accounts: accounts.collect(),
        data,
    })
}

/// What may stand before the exchange; the lamports that it takes of the user's.
fn setup(one: &Instruction, asked: &Asked) -> Result<u64, SwapError> {
    let program = Pubkey::new_from_array(one.program);
    let refused = || {
        Err(unavailable(
            "an instruction that does not belong before an exchange",
        ))
    };
    if program == ASSOCIATED {
        // To make an account, where there is none or in any case.
        let makes = matches!(one.data.as_slice(), [] | [0 | 1]);
        let owner = at(one, 2);
        let own = owner == Some(asked.user) || owner.is_some() && owner == asked.to;
        return if makes && own { Ok(0) } else { refused() };
    }
    let purse = purse(asked);
    if program == TOKEN && one.data == SYNC_NATIVE && at(one, 0) == purse {
        return Ok(0);
    }
    let amount = one
        .data
        .strip_prefix(&TRANSFER)
        .and_then(|data| data.try_into().ok());
    let ends = (at(one, 0), at(one, 1)) == (Some(asked.user), purse);
    match amount {
        Some(amount) if program == SYSTEM && ends && asked.native_input => {
            Ok(u64::from_le_bytes(amount))
        }
        _ => refused(),
    }
}

/// What may stand behind it: the user's wrapped lamports become lamports again, of the user or of who gets what comes
/// out.
fn cleanup(one: &Instruction, asked: &Asked) -> Result<(), SwapError> {
    let program = Pubkey::new_from_array(one.program);
    let target = at(one, 1);
    let to = asked.to.filter(|_| asked.native_output);
    let own = target == Some(asked.user) || target.is_some() && target == to;
    let closes = TOKENS.contains(&program)
        && one.data == CLOSE
        && at(one, 0) == purse(asked)
        && own
        && at(one, 2) == Some(asked.user);
    closes
        .then_some(())
        .ok_or_else(|| unavailable("an instruction that does not belong behind an exchange"))
}

/// Whether it is the exchange with its amounts and its limit, and nobody takes a fee.
fn is_asked(one: &Instruction, asked: &Asked) -> Result<(), SwapError> {
    let (kinds, amounts) = match asked.exact_input {
        true => (&EXACT_INPUT, [asked.input, asked.output]),
        false => (&EXACT_OUTPUT, [asked.output, asked.input]),
    };
    let known = one.data.split_first_chunk::<8>();
    let known = known.filter(|(kind, _)| kinds.contains(kind));
    let tail = known.and_then(|(_, rest)| rest.last_chunk::<TAIL>());
    let [first, second] = amounts.map(u64::to_le_bytes);
    let wanted = [&first[..], &second, &asked.slippage.to_le_bytes(), &[0]].concat();
    let same = one.program == PROGRAM.to_bytes() && tail.is_some_and(|tail| tail[..] == wanted);
    same.then_some(())
        .ok_or_else(|| unavailable("another exchange than was asked for"))
}

/// The user's account of wrapped lamports.
fn purse(asked: &Asked) -> Option<Pubkey> {
    associated(&asked.user, &asked.wrapped, &TOKEN)
}

fn at(one: &Instruction, place: usize) -> Option<Pubkey> {
    let account = one.accounts.get(place)?;
    Some(Pubkey::new_from_array(account.key))
}
