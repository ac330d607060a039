//! Messages and transactions as bytes (Solana's versioned transactions, version 0). Pure.

use solana_compute_budget_interface::ComputeBudgetInstruction;
use solana_hash::Hash;
use solana_instruction::Instruction;
use solana_message::{AddressLookupTableAccount, VersionedMessage, v0};
use solana_pubkey::Pubkey;

use crate::{CodecError, types::Bytes};

/// The most bytes of a transaction that nodes take: what fits into one packet.
pub const MOST_BYTES: usize = 1_232;
/// Bytes of a signature.
pub const SIGNATURE: usize = 64;
/// Bytes of the number of signatures, of which no transaction has more than 127.
const COUNT: usize = 1;

/// The message of version 0 that `payer` pays for and that can land while `blockhash` is recent.
pub fn compile(
    payer: &Pubkey,
    instructions: &[Instruction],
    tables: &[AddressLookupTableAccount],
    blockhash: [u8; 32],
) -> Result<VersionedMessage, CodecError> {
    let message = v0::Message::try_compile(payer, instructions, tables, Hash::from(blockhash));
    let message = message.map_err(|error| CodecError(format!("no message: {error}")))?;
    Ok(VersionedMessage::V0(message))
}

/// What a transaction may take: a limit of compute units, and micro-lamports for each of them.
pub fn budget(units: u32, price: u64) -> [Instruction; 2] {
    [
        ComputeBudgetInstruction::set_compute_unit_limit(units),
        ComputeBudgetInstruction::set_compute_unit_price(price),
    ]
}

/// The bytes of the transaction once it is signed.
pub fn bytes(message: &VersionedMessage) -> usize {
    let signatures = usize::from(message.header().num_required_signatures);
    COUNT + SIGNATURE * signatures + message.serialize().len()
}

/// The transaction with one signature over its message.
pub fn signed(message: &[u8], signature: &[u8; SIGNATURE]) -> Bytes {
    [&[1], &signature[..], message].concat().into()
}

/// The transaction with zeros for its signatures: to try it.
pub fn unsigned(message: &VersionedMessage) -> Bytes {
    let signatures = message.header().num_required_signatures;
    let zeros = vec![0; SIGNATURE * usize::from(signatures)];
    [&[signatures], &zeros[..], &message.serialize()[..]]
        .concat()
        .into()
}
