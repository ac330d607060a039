//! Accounts of mints and of tokens, as the token programs write them.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;
use solana_pubkey::Pubkey;
use spl_token_2022_interface::{
    extension::{
        BaseStateWithExtensionsMut, ExtensionType, StateWithExtensionsMut,
        interest_bearing_mint::InterestBearingConfig,
        scaled_ui_amount::ScaledUiAmountConfig,
        transfer_fee::{TransferFee, TransferFeeConfig},
        transfer_hook::TransferHook,
    },
    state::{Account, AccountState, Mint as MintState},
};

use super::{
    super::{
        programs::{TOKEN, TOKEN_2022},
        raw::RawAccount,
    },
    memory::{self, ProviderId},
    mint::Mint,
};

/// A fee of a Token-2022 mint: the epoch from which on it holds, its most, and its hundredths of a per cent.
pub type Fee = (u64, u64, u16);

pub fn key(byte: u8) -> Pubkey {
    Pubkey::new_from_array([byte; 32])
}

pub fn raw(owner: &Pubkey, data: &[u8]) -> RawAccount {
    let account =
        json!({"owner": owner.to_string(), "data": [BASE64_STANDARD.encode(data), "base64"]});
    serde_json::from_value(account).unwrap()
}

/// A mint that all providers of a chain have said.
pub fn remember(key: &Pubkey, account: &RawAccount) -> Mint {
    let mint = Mint::read(key, account).unwrap();
    memory::believe("fixture", 1);
    let provider = ProviderId {
        chain: "fixture".into(),
        position: 1,
        name: "host".into(),
    };
    memory::heard(&provider, &mint);
    mint
}

fn base(decimals: u8) -> MintState {
    MintState {
        supply: 1_000_000_000,
        decimals,
        is_initialized: true,
        ..MintState::default()
    }
}

/// A mint of the older program.
pub fn old(decimals: u8) -> RawAccount {
    raw(&TOKEN, &mint_data(decimals, &[]))
}

/// A mint of Token-2022 whose transfers cost.
pub fn costly(decimals: u8, [older, newer]: [Fee; 2]) -> RawAccount {
    let mut data = mint_data(decimals, &[ExtensionType::TransferFeeConfig]);
    let mut state = StateWithExtensionsMut::<MintState>::unpack(&mut data).unwrap();
    let fees = state.init_extension::<TransferFeeConfig>(true).unwrap();
    fees.older_transfer_fee = fee(older);
    fees.newer_transfer_fee = fee(newer);
    raw(&TOKEN_2022, &data)
}

/// A mint of Token-2022 whose transfers run a program.
pub fn hooked(program: Option<Pubkey>) -> RawAccount {
    let mut data = mint_data(6, &[ExtensionType::TransferHook]);
    let mut state = StateWithExtensionsMut::<MintState>::unpack(&mut data).unwrap();
    let hook = state.init_extension::<TransferHook>(true).unwrap();
    hook.program_id = program.try_into().unwrap();
    raw(&TOKEN_2022, &data)
}

/// Mints of Token-2022 of which wallets show other amounts than accounts have: by a multiplier, and with interest.
pub fn scaled() -> [RawAccount; 2] {
    let mut data = mint_data(6, &[ExtensionType::ScaledUiAmount]);
    let mut state = StateWithExtensionsMut::<MintState>::unpack(&mut data).unwrap();
    state.init_extension::<ScaledUiAmountConfig>(true).unwrap();
    let multiplied = raw(&TOKEN_2022, &data);
    let mut data = mint_data(6, &[ExtensionType::InterestBearingConfig]);
    let mut state = StateWithExtensionsMut::<MintState>::unpack(&mut data).unwrap();
    state.init_extension::<InterestBearingConfig>(true).unwrap();
    [multiplied, raw(&TOKEN_2022, &data)]
}

fn mint_data(decimals: u8, extensions: &[ExtensionType]) -> Vec<u8> {
    let length = ExtensionType::try_calculate_account_len::<MintState>(extensions).unwrap();
    let mut data = vec![0; length];
    let mut state = StateWithExtensionsMut::<MintState>::unpack_uninitialized(&mut data).unwrap();
    state.base = base(decimals);
    state.pack_base();
    if !extensions.is_empty() {
        state.init_account_type().unwrap();
    }
    data
}

fn fee((epoch, most, points): Fee) -> TransferFee {
    TransferFee {
        epoch: epoch.into(),
        maximum_fee: most.into(),
        transfer_fee_basis_points: points.into(),
    }
}

/// An account of `owner` with so many tokens.
pub fn tokens(mint: &Mint, owner: &Pubkey, amount: u64) -> RawAccount {
    tokens_in(mint, owner, (amount, AccountState::Initialized))
}

/// An account of `owner` in a state.
pub fn tokens_in(mint: &Mint, owner: &Pubkey, (amount, state): (u64, AccountState)) -> RawAccount {
    let length = ExtensionType::try_calculate_account_len::<Account>(&[]).unwrap();
    let mut data = vec![0; length];
    let mut unpacked = StateWithExtensionsMut::<Account>::unpack_uninitialized(&mut data).unwrap();
    unpacked.base = Account {
        mint: mint.key,
        owner: *owner,
        amount,
        state,
        ..Account::default()
    };
    unpacked.pack_base();
    raw(&mint.program, &data)
}
