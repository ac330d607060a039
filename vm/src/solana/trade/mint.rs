//! What a mint is: its token program, its decimals, the fees of its transfers. Pure.

use solana_pubkey::Pubkey;
use spl_token_2022_interface::{
    extension::{
        BaseStateWithExtensions, ExtensionType, StateWithExtensions, account_len,
        transfer_fee::{TransferFee, TransferFeeConfig},
        transfer_hook::TransferHook,
    },
    state::{Account, AccountState, Mint as MintState},
};

use super::super::{
    programs::{TOKEN, TOKENS, associated},
    raw::RawAccount,
};
use crate::CodecError;

/// Bytes of an account of the older token program, and of a mint of it.
const ACCOUNT: usize = 165;
const MINT: usize = 82;
/// What wallets multiply amounts by before they show them.
const SCALES: [ExtensionType; 2] = [
    ExtensionType::ScaledUiAmount,
    ExtensionType::InterestBearingConfig,
];

/// A mint, as its account has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mint {
    pub key: Pubkey,
    /// The token program that it belongs to.
    pub program: Pubkey,
    pub decimals: u8,
    /// Wallets show other amounts than accounts have.
    pub scaled: bool,
    /// Bytes of an associated account of its tokens.
    pub account_bytes: usize,
    /// What its transfers cost: until the newer one's epoch, and from then on.
    pub fees: Option<[TransferFee; 2]>,
    /// Why its tokens can be sent by no transfer alone.
    pub bar: Option<&'static str>,
}

impl Mint {
    /// The mint of an account; `None` where it is none.
    pub fn read(key: &Pubkey, account: &RawAccount) -> Option<Self> {
        let program = account.owner.0;
        if !TOKENS.contains(&program) {
            return None;
        }
        let data = account.bytes()?;
        if program == TOKEN && data.len() != MINT {
            return None;
        }
        let state = StateWithExtensions::<MintState>::unpack(&data).ok()?;
        let (account_bytes, unknown) = match program == TOKEN {
            true => (ACCOUNT, false),
            false => match account_bytes(&data) {
                Some(bytes) => (bytes, false),
                None => (ACCOUNT, true),
            },
        };
        let fees = state.get_extension::<TransferFeeConfig>().ok();
        let extensions = state.get_extension_types().unwrap_or_default();
        Some(Self {
            key: *key,
            program,
            decimals: state.base.decimals,
            scaled: SCALES.iter().any(|scale| extensions.contains(scale)),
            account_bytes,
            fees: fees.map(|fees| [fees.older_transfer_fee, fees.newer_transfer_fee]),
            bar: match unknown {
                true => Some("it has extensions that are not known"),
                false => bar(&state, &extensions),
            },
        })
    }

    /// The associated account of `owner` for its tokens.
    pub fn account_of(&self, owner: &Pubkey) -> Result<Pubkey, CodecError> {
        let account = associated(owner, &self.key, &self.program);
        account.ok_or_else(|| CodecError(format!("{owner} can have no tokens")))
    }

    /// What has to be sent so that at least `amount` arrives, in any epoch. `None` where it has more than 64 bits.
    pub fn gross(&self, amount: u64) -> Option<u64> {
        let Some(fees) = &self.fees else {
            return Some(amount);
        };
        let [older, newer] = fees.map(|fee| fee.calculate_pre_fee_amount(amount));
        Some(older?.max(newer?))
    }

    /// Why nobody is paid in its tokens. What a transfer costs is not in the price of an order, and an issuer may take
    /// nearly all of a transfer: so none is made whose fee, now or later, is not nothing.
    pub fn unpaid(&self) -> Option<&'static str> {
        let mut fees = self.fees.iter().flatten();
        let costs = fees.any(|fee| u16::from(fee.transfer_fee_basis_points) > 0);
        self.bar.or(costs.then_some("its transfers cost a fee"))
    }
}

/// What the associated account of `owner` for a mint's tokens can spend; nothing of an account of anybody else, or of a
/// frozen one.
pub fn held(mint: &Mint, owner: &Pubkey, account: &RawAccount) -> u64 {
    let spendable = || {
        let data = account.bytes()?;
        let state = StateWithExtensions::<Account>::unpack(&data).ok()?.base;
        let own = account.owner.0 == mint.program
            && state.mint == mint.key
            && state.owner == *owner
            && state.state == AccountState::Initialized;
        own.then_some(state.amount)
    };
    spendable().unwrap_or_default()
}

fn account_bytes(mint: &[u8]) -> Option<usize> {
    account_len::try_calculate_account_len_from_mint_data(mint, &[ExtensionType::ImmutableOwner])
        .ok()
}

fn bar(
    state: &StateWithExtensions<'_, MintState>,
    extensions: &[ExtensionType],
) -> Option<&'static str> {
    if extensions.contains(&ExtensionType::NonTransferable) {
        return Some("it cannot be transferred");
    }
    let hook = state.get_extension::<TransferHook>().ok();
    let hook = hook.and_then(|hook| hook.program_id.get());
    hook.map(|_| "its transfers run a program of somebody's")
}

#[cfg(test)]
mod tests;
