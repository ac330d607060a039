//! Instructions of the system and token programs: which of them move value, and on whose word. Pure.

use solana_pubkey::Pubkey;

use super::{
    executed::Step,
    programs::{ASSOCIATED, COMPUTE_BUDGET, MEMO, SYSTEM, TOKEN_2022, TOKENS},
};

/// The system program's `Transfer`.
const SYSTEM_TRANSFER: u32 = 2;
/// The token programs' `Transfer` and `TransferChecked`.
const TRANSFER: u8 = 3;
const TRANSFER_CHECKED: u8 = 12;
/// Token-2022's `TransferCheckedWithFee`, an instruction of its transfer fee extension.
const WITH_FEE: [u8; 2] = [26, 1];
/// The token programs' `CloseAccount`: the lamports of the first account go to the second.
const CLOSE: u8 = 9;
/// The instructions of the token programs that move nothing but on a signer's word, or nothing at all: to initialise an
/// account, transfer, approve, revoke, burn, close, and their checked forms. Not among them are to mint, which takes
/// from nobody, and `SyncNative`, by which anybody turns lamports that an account got earlier into tokens.
const ON_A_WORD: [u8; 13] = [1, 3, 4, 5, 8, 9, 12, 13, 15, 16, 18, 21, 22];

/// A movement of value as its instruction says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The token program; the system program for lamports.
    pub program: Pubkey,
    pub from: Pubkey,
    pub to: Pubkey,
    /// On whose word: the owner of `from`, or its delegate.
    pub authority: Pubkey,
    /// The tokens, where the instruction names them.
    pub mint: Option<Pubkey>,
    pub amount: u64,
    /// Whether the instruction states the fee that the token takes: no deposit by itself.
    pub states_fee: bool,
}

impl Transfer {
    /// `None` for instructions that transfer nothing, or are none.
    pub fn of(step: &Step) -> Option<Self> {
        if step.program == SYSTEM {
            let (kind, rest) = step.data.few().split_first_chunk::<4>()?;
            let amount = amount(rest)?;
            let [from, to] = [step.account(0)?, step.account(1)?];
            let is_transfer = u32::from_le_bytes(*kind) == SYSTEM_TRANSFER;
            return is_transfer.then_some(Self {
                program: SYSTEM,
                from,
                to,
                authority: from,
                mint: None,
                amount,
                states_fee: false,
            });
        }
        if !TOKENS.contains(&step.program) {
            return None;
        }
        let data = step.data.few();
        let (kind, rest) = data.split_first()?;
        let (rest, checked) = match *kind {
            TRANSFER => (rest, false),
            TRANSFER_CHECKED => (rest, true),
            _ if step.program == TOKEN_2022 => (data.strip_prefix(&WITH_FEE)?, true),
            _ => return None,
        };
        let shift = usize::from(checked);
        Some(Self {
            program: step.program,
            from: step.account(0)?,
            to: step.account(1 + shift)?,
            authority: step.account(2 + shift)?,
            mint: step.account(1).filter(|_| checked),
            amount: amount(rest)?,
            states_fee: !matches!(*kind, TRANSFER | TRANSFER_CHECKED),
        })
    }
}

/// Whether whatever the instruction moves, it moves on the word of a signer of the transaction: there is no program of
/// somebody else that could pay from accounts of its own.
pub fn is_on_a_word(step: &Step) -> bool {
    if TOKENS.contains(&step.program) {
        let data = step.data.few();
        let kind = data.first();
        let with_fee = step.program == TOKEN_2022 && data.starts_with(&WITH_FEE);
        return with_fee || kind.is_some_and(|kind| ON_A_WORD.contains(kind));
    }
    [SYSTEM, ASSOCIATED, COMPUTE_BUDGET, MEMO].contains(&step.program)
}

/// Whether an instruction of the system program or of a token program may be a transfer that [`Transfer::of`] cannot
/// tell: its data are too long to be read, or no whole transfer.
pub fn is_unread(step: &Step) -> bool {
    let data = step.data.few();
    let is_transfer = match step.program == SYSTEM {
        true => data.starts_with(&SYSTEM_TRANSFER.to_le_bytes()),
        false => matches!(data, [TRANSFER | TRANSFER_CHECKED, ..]) || data.starts_with(&WITH_FEE),
    };
    (data.is_empty() || is_transfer) && Transfer::of(step).is_none()
}

/// The token account that an instruction takes from, and on whose word.
pub fn taken(step: &Step) -> Option<(Pubkey, Pubkey)> {
    if !TOKENS.contains(&step.program) {
        return None;
    }
    match step.data.few().first() {
        Some(&CLOSE) => Some((step.account(0)?, step.account(2)?)),
        _ => Transfer::of(step).map(|transfer| (transfer.from, transfer.authority)),
    }
}

fn amount(data: &[u8]) -> Option<u64> {
    data.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}
