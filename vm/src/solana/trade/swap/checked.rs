//! The instructions of an exchange, held against what was asked for. Pure.
//!
//! The user signs them together, and a signature lets every program in the transaction act for its signer. So only the
//! aggregator's program runs, with the amounts and the limit of the order (`exchange`), and beside it only what makes
//! the accounts of the exchange, wraps no more of the user's lamports than the order takes, and unwraps what is left of
//! them. What the aggregator's program does with the pools that the service names is that program's to check.

use base64::{Engine, prelude::BASE64_STANDARD};
use solana_pubkey::Pubkey;

use super::{
    super::{
        super::programs::{ASSOCIATED, SYSTEM, TOKEN, TOKENS, associated},
        body::{Account, Instruction, Instructions},
    },
    answer::{Answer, RawInstruction},
    exchange, unavailable,
};
use crate::trade::SwapError;

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
    /// The mints of what goes in and comes out.
    pub from: Pubkey,
    pub into: Pubkey,
    /// The account that gets what comes out, where it is not the user's.
    pub target: Option<Pubkey>,
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

impl Asked {
    /// Whether an account is the user's associated one for a mint. A mint has only one token program: there is no such
    /// account of the other one.
    pub fn owns(&self, account: Pubkey, mint: &Pubkey) -> bool {
        let mut programs = TOKENS.iter();
        programs.any(|program| associated(&self.user, mint, program) == Some(account))
    }

    /// The payer, where it is another account than the user's.
    pub fn sponsor(&self) -> Option<Pubkey> {
        self.payer.filter(|payer| *payer != self.user)
    }
}

/// The instructions in their order, with the lookup tables.
pub fn instructions(answer: Answer, asked: &Asked) -> Result<Instructions, SwapError> {
    if answer.token_ledger_instruction.is_some() || !answer.other_instructions.is_empty() {
        return Err(unavailable("instructions that nobody asked for"));
    }
    let mut list = Vec::new();
    let (mut wrapped, mut made) = (0_u64, Vec::new());
    for raw in &answer.setup_instructions {
        let one = instruction(raw)?;
        match setup(&one, asked) {
            Some(Setup::Wraps(amount)) => wrapped = wrapped.saturating_add(amount),
            Some(Setup::Makes(account)) if !made.contains(&account) => made.push(account),
            Some(Setup::Syncs) => {}
            Some(Setup::Makes(_)) | None => {
                let why = "an instruction that does not belong before an exchange";
                return Err(unavailable(why));
            }
        }
        list.push(one);
    }
    if wrapped > asked.most {
        return Err(unavailable("more is wrapped than the order takes"));
    }
    let one = instruction(&answer.swap_instruction)?;
    if !exchange::is_asked(&one, asked) {
        return Err(unavailable("another exchange than was asked for"));
    }
    list.push(one);
    let behind = answer.cleanup_instruction.as_ref().map(instruction);
    let behind = behind.transpose()?;
    // Lamports that come out are lamports only once they are unwrapped.
    let sound = match &behind {
        Some(one) => cleanup(one, asked),
        None => !asked.native_output,
    };
    if !sound {
        let why = "an instruction that does not belong behind an exchange, or none";
        return Err(unavailable(why));
    }
    list.extend(behind);
    let tables = answer.address_lookup_table_addresses.iter();
    Ok(Instructions {
        list,
        tables: tables.map(|table| table.0.to_bytes()).collect(),
        ..Instructions::default()
    })
}

fn instruction(raw: &RawInstruction) -> Result<Instruction, SwapError> {
    let data = BASE64_STANDARD.decode(&raw.data);
    let data = data.map_err(|_| unavailable("an instruction that is not base64"))?;
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

/// What may stand before the exchange.
enum Setup {
    /// An account is made.
    Makes(Pubkey),
    /// So many of the user's lamports are wrapped.
    Wraps(u64),
    /// The wrapped lamports are counted.
    Syncs,
}

fn setup(one: &Instruction, asked: &Asked) -> Option<Setup> {
    let program = Pubkey::new_from_array(one.program);
    let keys: Vec<_> = one.accounts.iter().map(Account::key).collect();
    let signs = |key: &Pubkey| one.accounts.iter().all(|it| !it.signs || it.key() == *key);
    let purse = purse(asked)?;
    match (program, &keys[..]) {
        // The account is made where there is none, or in any case.
        (ASSOCIATED, [funder, account, owner, mint, SYSTEM, token_program]) => {
            let known = [asked.from, asked.into, asked.wrapped].contains(mint);
            let own = *owner == asked.user && known || Some(*account) == asked.target;
            let sound = own
                && matches!(one.data.as_slice(), [] | [0 | 1])
                && (*funder == asked.user || Some(*funder) == asked.payer)
                && signs(funder)
                && TOKENS.contains(token_program)
                && associated(owner, mint, token_program) == Some(*account);
            sound.then_some(Setup::Makes(*account))
        }
        (TOKEN, [account]) if one.data == SYNC_NATIVE && *account == purse => Some(Setup::Syncs),
        (SYSTEM, [from, to]) if asked.native_input && signs(&asked.user) => {
            let amount = one.data.strip_prefix(&TRANSFER)?.try_into().ok()?;
            let wraps = (*from, *to) == (asked.user, purse);
            wraps.then_some(Setup::Wraps(u64::from_le_bytes(amount)))
        }
        _ => None,
    }
}

/// Whether it only makes the user's wrapped lamports lamports of the user again.
fn cleanup(one: &Instruction, asked: &Asked) -> bool {
    let keys: Vec<_> = one.accounts.iter().map(Account::key).collect();
    let closes = purse(asked).is_some_and(|purse| keys == [purse, asked.user, asked.user]);
    (asked.native_input || asked.native_output)
        && one.program == TOKEN.to_bytes()
        && one.data == CLOSE
        && closes
}

/// The user's account of wrapped lamports.
fn purse(asked: &Asked) -> Option<Pubkey> {
    associated(&asked.user, &asked.wrapped, &TOKEN)
}
