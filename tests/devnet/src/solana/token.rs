//! Instructions of the token programs, and the accounts that they work on.

use anyhow::Result;
use solana_instruction::{AccountMeta, Instruction, error::InstructionError};
use solana_pubkey::{Pubkey, pubkey};
use spl_token_2022_interface::instruction as of_tokens;

use super::program::SYSTEM;

/// SPL Token.
pub const TOKEN: Pubkey = pubkey!("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA");
/// Token-2022.
pub const TOKEN_2022: Pubkey = pubkey!("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb");
pub const ASSOCIATED: Pubkey = pubkey!("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL");
pub const MEMO: Pubkey = pubkey!("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");

/// `CreateIdempotent` of the program of associated accounts.
const OPEN: u8 = 1;

/// A mint and the token program that it belongs to.
pub type Token = (Pubkey, Pubkey);

/// The associated account of `owner` for the tokens of `mint`.
pub fn associated(owner: &Pubkey, mint: &Pubkey, program: &Pubkey) -> Pubkey {
    let seeds = [owner.as_ref(), program.as_ref(), mint.as_ref()];
    Pubkey::find_program_address(&seeds, &ASSOCIATED).0
}

/// Makes the associated account of `owner`, where there is none yet, for `payer`'s money.
pub fn open(payer: &Pubkey, owner: &Pubkey, (mint, program): Token) -> Instruction {
    Instruction {
        program_id: ASSOCIATED,
        accounts: vec![
            AccountMeta::new(*payer, true),
            AccountMeta::new(associated(owner, &mint, &program), false),
            AccountMeta::new_readonly(*owner, false),
            AccountMeta::new_readonly(mint, false),
            AccountMeta::new_readonly(SYSTEM, false),
            AccountMeta::new_readonly(program, false),
        ],
        data: vec![OPEN],
    }
}

/// Opens the associated account of `to` where there is none yet, and mints `amount` into it: `issuer` pays and signs.
pub fn gift(
    issuer: &Pubkey,
    (mint, program): Token,
    to: &Pubkey,
    amount: u64,
) -> Result<[Instruction; 2]> {
    let account = associated(to, &mint, &program);
    let minted = of_tokens::mint_to(&program, &mint, &account, issuer, &[], amount)?;
    Ok([open(issuer, to, (mint, program)), minted])
}

/// `TransferChecked` between two token accounts, of which the first is `owner`'s.
pub fn transfer(
    owner: &Pubkey,
    [from, to]: [Pubkey; 2],
    (mint, program): Token,
    amount: u64,
    decimals: u8,
) -> Result<Instruction, InstructionError> {
    of_tokens::transfer_checked(&program, &from, &mint, &to, owner, &[], amount, decimals)
        .map_err(|_| InstructionError::InvalidArgument)
}

/// A memo of `text`, which `signer` signs.
pub fn memo(signer: &Pubkey, text: &str) -> Instruction {
    Instruction {
        program_id: MEMO,
        accounts: vec![AccountMeta::new_readonly(*signer, true)],
        data: text.as_bytes().to_vec(),
    }
}
