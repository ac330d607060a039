//! A program that does nothing itself: it has other programs do what its instruction contains. Wallets and routers of
//! others make deposits that way.

use solana_instruction::{AccountMeta, Instruction, error::InstructionError};
use solana_program_runtime::{declare_process_instruction, invoke_context::InvokeContext};
use solana_pubkey::Pubkey;

/// Where the program is.
pub const INTERMEDIARY: Pubkey = Pubkey::new_from_array([0xca; 32]);

const COMPUTE_UNITS: u64 = 1_000;

declare_process_instruction!(Entrypoint, COMPUTE_UNITS, |context| { run(context) });

/// The instruction that has `inner` done: the called program stands before its accounts.
pub fn through(inner: Instruction) -> Instruction {
    let called = AccountMeta::new_readonly(inner.program_id, false);
    Instruction {
        program_id: INTERMEDIARY,
        accounts: std::iter::once(called).chain(inner.accounts).collect(),
        data: inner.data,
    }
}

fn run(context: &mut InvokeContext<'_, '_>) -> Result<(), InstructionError> {
    let inner = inner(context)?;
    context.native_invoke_signed(inner, &[])
}

fn inner(context: &InvokeContext<'_, '_>) -> Result<Instruction, InstructionError> {
    let now = context
        .transaction_context
        .get_current_instruction_context()?;
    let accounts = (1..now.get_number_of_instruction_accounts()).map(|at| {
        Ok(AccountMeta {
            pubkey: *now.get_key_of_instruction_account(at)?,
            is_signer: now.is_instruction_account_signer(at)?,
            is_writable: now.is_instruction_account_writable(at)?,
        })
    });
    Ok(Instruction {
        program_id: *now.get_key_of_instruction_account(0)?,
        accounts: accounts.collect::<Result<_, InstructionError>>()?,
        data: now.get_instruction_data().to_vec(),
    })
}
