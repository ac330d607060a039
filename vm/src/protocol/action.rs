//! Hub actions: MINT, BURN, TRANSFER, FAST_MINT (guide: protocol 5.1).

use alloy::sol_types::{Error, SolValue};

use crate::{Bytes, CodecError, EvmAddress, U256};

/// One change of the hub's balances in an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Mint {
        to: EvmAddress,
        token: U256,
        amount: U256,
    },
    Burn {
        from: EvmAddress,
        token: U256,
        amount: U256,
    },
    Transfer {
        from: EvmAddress,
        to: EvmAddress,
        token: U256,
        amount: U256,
    },
    FastMint {
        to: EvmAddress,
        token: U256,
        amount: U256,
        fee_calculator: EvmAddress,
        fee_calculator_data: Bytes,
        rate_limiter: EvmAddress,
        rate_limiter_data: Bytes,
    },
}

const MINT: u8 = 0;
const BURN: u8 = 1;
const TRANSFER: u8 = 2;
const FAST_MINT: u8 = 3;

type Change = (U256, EvmAddress, U256, U256);
type Transfer = (U256, EvmAddress, EvmAddress, U256, U256);
type FastMint = (
    U256,
    EvmAddress,
    U256,
    U256,
    EvmAddress,
    Bytes,
    EvmAddress,
    Bytes,
);

impl Action {
    /// `abi.encode(uint8 type, …)`.
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Mint { to, token, amount } => change(MINT, to, token, amount),
            Self::Burn {
                from,
                token,
                amount,
            } => change(BURN, from, token, amount),
            Self::Transfer {
                from,
                to,
                token,
                amount,
            } => (U256::from(TRANSFER), *from, *to, *token, *amount)
                .abi_encode_params()
                .into(),
            Self::FastMint {
                to,
                token,
                amount,
                fee_calculator,
                fee_calculator_data,
                rate_limiter,
                rate_limiter_data,
            } => (
                U256::from(FAST_MINT),
                *to,
                *token,
                *amount,
                *fee_calculator,
                fee_calculator_data.clone(),
                *rate_limiter,
                rate_limiter_data.clone(),
            )
                .abi_encode_params()
                .into(),
        }
    }

    /// Decodes `abi.encode(uint8 type, …)`; ignores bytes after the last field, as the hub does.
    pub fn decode(action: &[u8]) -> Result<Self, CodecError> {
        let kind = action
            .first_chunk::<32>()
            .and_then(|word| u8::try_from(U256::from_be_bytes(*word)).ok());
        let decoded = match kind {
            Some(MINT) => mint(action),
            Some(BURN) => burn(action),
            Some(TRANSFER) => transfer(action),
            Some(FAST_MINT) => fast_mint(action),
            _ => return Err(CodecError("Unsupported action type".into())),
        };
        decoded.map_err(|why| CodecError(format!("Failed to decode action: {why}")))
    }
}

fn change(kind: u8, who: &EvmAddress, token: &U256, amount: &U256) -> Bytes {
    (U256::from(kind), *who, *token, *amount)
        .abi_encode_params()
        .into()
}

fn mint(action: &[u8]) -> Result<Action, Error> {
    let (_, to, token, amount) = Change::abi_decode_params(action)?;
    Ok(Action::Mint { to, token, amount })
}

fn burn(action: &[u8]) -> Result<Action, Error> {
    let (_, from, token, amount) = Change::abi_decode_params(action)?;
    Ok(Action::Burn {
        from,
        token,
        amount,
    })
}

fn transfer(action: &[u8]) -> Result<Action, Error> {
    let (_, from, to, token, amount) = Transfer::abi_decode_params(action)?;
    Ok(Action::Transfer {
        from,
        to,
        token,
        amount,
    })
}

fn fast_mint(action: &[u8]) -> Result<Action, Error> {
    let fields = FastMint::abi_decode_params(action)?;
    let (
        _,
        to,
        token,
        amount,
        fee_calculator,
        fee_calculator_data,
        rate_limiter,
        rate_limiter_data,
    ) = fields;
    Ok(Action::FastMint {
        to,
        token,
        amount,
        fee_calculator,
        fee_calculator_data,
        rate_limiter,
        rate_limiter_data,
    })
}
