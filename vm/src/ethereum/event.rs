//! The events of depositories, fill routers and ERC-20 tokens (guide: protocol 4.1), one log at a time.
//!
//! A log becomes an event only when its emitter, its topics and the length of its data are exactly
//! those of the event. Nothing is judged across logs here.

use alloy::{
    primitives::b256,
    sol_types::{SolType, sol_data},
};

use super::{decode::Rules, raw::RawLog};
use crate::types::{B256, Bytes, EvmAddress, U256};

/// `RelayNativeDeposit(address,uint256,bytes32)`
pub const NATIVE_DEPOSIT: B256 =
    b256!("0x8032066556caf3967d8fec4ad22a2d9e1e9576556b2903a0fcd5b1fd201e3477");
/// `RelayErc20Deposit(address,address,uint256,bytes32)`
pub const ERC20_DEPOSIT: B256 =
    b256!("0x49fed1d0b752ce30eee63c7a81133f3363b532fec5d4d7dd1ccfd005de4555e1");
/// `RelayCallExecuted(bytes32 id,(address to,bytes data,uint256 value,bool allowFailure) call)`:
/// one for each call of a withdrawal that succeeded; `id` is the struct hash of the call request.
pub const CALL_EXECUTED: B256 =
    b256!("0x4be109453ef7e895dc7215c929fff9b76b51483d56a4d04548b4866e9aa7c5ea");
/// `SolverNativeTransfer(address,uint256)`
pub const SOLVER_NATIVE: B256 =
    b256!("0xd35467972d1fda5b63c735f59d3974fa51785a41a92aa3ed1b70832836f8dba6");
/// `SolverCallExecuted(address,bytes,uint256)`
pub const SOLVER_CALL: B256 =
    b256!("0x93485dcd31a905e3ffd7b012abe3438fa8fa77f98ddc9f50e879d3fa7ccdc324");
/// `Transfer(address indexed,address indexed,uint256)`
pub const TRANSFER: B256 =
    b256!("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");

type SolverCall = (sol_data::Address, sol_data::Bytes, sol_data::Uint<256>);
type ExecutedCall = (
    sol_data::FixedBytes<32>,
    (
        sol_data::Address,
        sol_data::Bytes,
        sol_data::Uint<256>,
        sol_data::Bool,
    ),
);

/// What a log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    NativeDeposit {
        depositor: EvmAddress,
        amount: U256,
        id: B256,
    },
    Erc20Deposit {
        depositor: EvmAddress,
        token: EvmAddress,
        amount: U256,
        id: B256,
    },
    CallExecuted {
        depository: EvmAddress,
        id: B256,
        to: EvmAddress,
    },
    /// A depository emitted one of its topics in another shape.
    Malformed,
    Transfer {
        token: EvmAddress,
        from: EvmAddress,
        to: EvmAddress,
        amount: U256,
    },
    SolverNative {
        router: EvmAddress,
        to: EvmAddress,
        amount: U256,
    },
    SolverCall {
        router: EvmAddress,
        to: EvmAddress,
        data: Bytes,
        value: U256,
    },
}

/// The event in `log`, or `None` when it is none of ours.
pub fn parse(rules: &Rules, log: &RawLog) -> Option<Event> {
    let topic = *log.topics.first()?;
    match topic {
        TRANSFER => transfer(log),
        SOLVER_NATIVE => solver_native(log),
        SOLVER_CALL => solver_call(log),
        NATIVE_DEPOSIT if rules.is_depository(&log.address) => {
            Some(native_deposit(log).unwrap_or(Event::Malformed))
        }
        ERC20_DEPOSIT if rules.is_depository(&log.address) => {
            Some(erc20_deposit(log).unwrap_or(Event::Malformed))
        }
        CALL_EXECUTED if rules.executes(&log.address) => {
            Some(call_executed(log).unwrap_or(Event::Malformed))
        }
        _ => None,
    }
}

fn native_deposit(log: &RawLog) -> Option<Event> {
    let [depositor, amount, id] = plain::<3>(log)?;
    Some(Event::NativeDeposit {
        depositor: address(&depositor)?,
        amount: number(&amount),
        id,
    })
}

fn erc20_deposit(log: &RawLog) -> Option<Event> {
    let [depositor, token, amount, id] = plain::<4>(log)?;
    Some(Event::Erc20Deposit {
        depositor: address(&depositor)?,
        token: address(&token)?,
        amount: number(&amount),
        id,
    })
}

fn call_executed(log: &RawLog) -> Option<Event> {
    if log.topics.len() != 1 {
        return None;
    }
    let (id, (to, ..)) = ExecutedCall::abi_decode_params_validate(&log.data).ok()?;
    Some(Event::CallExecuted {
        depository: log.address,
        id,
        to,
    })
}

fn solver_native(log: &RawLog) -> Option<Event> {
    let [to, amount] = plain::<2>(log)?;
    Some(Event::SolverNative {
        router: log.address,
        to: address(&to)?,
        amount: number(&amount),
    })
}

fn solver_call(log: &RawLog) -> Option<Event> {
    if log.topics.len() != 1 {
        return None;
    }
    let (to, data, value) = SolverCall::abi_decode_params_validate(&log.data).ok()?;
    Some(Event::SolverCall {
        router: log.address,
        to,
        data,
        value,
    })
}

/// The zero address is no token, whatever a node says about its logs.
fn transfer(log: &RawLog) -> Option<Event> {
    let [_, from, to] = log.topics.as_slice() else {
        return None;
    };
    let [amount] = words::<1>(&log.data)?;
    (!log.address.is_zero()).then_some(Event::Transfer {
        token: log.address,
        from: address(from)?,
        to: address(to)?,
        amount: number(&amount),
    })
}

/// The data words of an event without indexed parameters.
fn plain<const N: usize>(log: &RawLog) -> Option<[B256; N]> {
    if log.topics.len() == 1 {
        words(&log.data)
    } else {
        None
    }
}

fn words<const N: usize>(data: &[u8]) -> Option<[B256; N]> {
    let (words, rest) = data.as_chunks::<32>();
    let words: &[[u8; 32]; N] = words.try_into().ok()?;
    rest.is_empty().then(|| words.map(B256::new))
}

/// An address word; its upper twelve bytes must be zero.
pub fn address(word: &B256) -> Option<EvmAddress> {
    let (pad, tail) = word.split_at(12);
    pad.iter()
        .all(|byte| *byte == 0)
        .then(|| EvmAddress::from_slice(tail))
}

fn number(word: &B256) -> U256 {
    U256::from_be_bytes(word.0)
}

#[cfg(test)]
mod tests {
    use alloy::primitives::keccak256;

    use super::*;

    #[test]
    fn topics_are_the_hashes_of_their_signatures() {
        for (topic, text) in [
            (
                NATIVE_DEPOSIT,
                "RelayNativeDeposit(address,uint256,bytes32)",
            ),
            (
                ERC20_DEPOSIT,
                "RelayErc20Deposit(address,address,uint256,bytes32)",
            ),
            (
                CALL_EXECUTED,
                "RelayCallExecuted(bytes32,(address,bytes,uint256,bool))",
            ),
            (SOLVER_NATIVE, "SolverNativeTransfer(address,uint256)"),
            (SOLVER_CALL, "SolverCallExecuted(address,bytes,uint256)"),
            (TRANSFER, "Transfer(address,address,uint256)"),
        ] {
            assert_eq!(topic, keccak256(text), "{text}");
        }
    }
}
