//! QuoterV2: what a route would give now. Pure.

use alloy::{
    primitives::{Address, Bytes, U160, U256, aliases::U24, uint},
    sol_types::SolCall,
};

use super::route::{Ends, Route};

pub use calls::*;

mod calls {
    use alloy::sol;

    sol! {
        struct Single {
            address input;
            address output;
            uint256 amount;
            uint24 fee;
            uint160 stop;
        }

        function quoteExactInputSingle(Single params)
            returns (uint256 amount, uint160 price, uint32 ticks, uint256 gas);
        function quoteExactOutputSingle(Single params)
            returns (uint256 amount, uint160 price, uint32 ticks, uint256 gas);
        function quoteExactInput(bytes path, uint256 amount)
            returns (uint256 amount, uint160[] prices, uint32[] ticks, uint256 gas);
        function factory() returns (address factory);
        function getPool(address one, address other, uint24 fee) returns (address pool);
        function quoteExactOutput(bytes path, uint256 amount)
            returns (uint256 amount, uint160[] prices, uint32[] ticks, uint256 gas);
    }
}

/// The square roots of price at which a pool has nothing left to give (TickMath's bounds, moved by
/// one: where a swap without a limit of its own stops).
const EMPTY: [U160; 2] = uint!([
    4_295_128_740_U160,
    1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_341_U160
]);

/// The other side of an exchange, and the gas units of its pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    pub amount: U256,
    pub gas: u64,
}

/// What QuoterV2 is asked about `amount` over `route`.
pub fn question(route: &Route, amount: U256, exact_input: bool) -> Bytes {
    let data = match (route.tokens.as_slice(), route.fees.as_slice()) {
        ([input, output], [fee]) => {
            let params = Single {
                input: *input,
                output: *output,
                amount,
                fee: U24::from(*fee),
                stop: U160::ZERO,
            };
            if exact_input {
                quoteExactInputSingleCall { params }.abi_encode()
            } else {
                quoteExactOutputSingleCall { params }.abi_encode()
            }
        }
        _ if exact_input => {
            let path = route.path();
            quoteExactInputCall { path, amount }.abi_encode()
        }
        _ => {
            let path = route.reversed();
            quoteExactOutputCall { path, amount }.abi_encode()
        }
    };
    data.into()
}

/// What a quoter is asked about where pools are registered.
pub fn factory() -> Bytes {
    factoryCall {}.abi_encode().into()
}

/// What a factory is asked about the pool of a pair with `fee`.
pub fn pool(ends: Ends, fee: u32) -> Bytes {
    let (one, other, fee) = (ends.from, ends.to, U24::from(fee));
    getPoolCall { one, other, fee }.abi_encode().into()
}

/// The address that [`factory`] or [`pool`] is answered with; zero for none, `None` for no address.
pub fn address(answer: &[u8]) -> Option<Address> {
    getPoolCall::abi_decode_returns_validate(answer).ok()
}

/// What the answer to [`question`] offers; `None` for nothing, for an answer that is none, and for a
/// pool that would be emptied: it takes less than it is given.
pub fn answer(route: &Route, answer: &[u8]) -> Option<Quote> {
    let (amount, prices, gas) = if route.fees.len() == 1 {
        let returned = quoteExactInputSingleCall::abi_decode_returns_validate(answer).ok()?;
        (returned.amount, vec![returned.price], returned.gas)
    } else {
        let returned = quoteExactInputCall::abi_decode_returns_validate(answer).ok()?;
        (returned.amount, returned.prices, returned.gas)
    };
    let empty = prices.iter().any(|price| EMPTY.contains(price));
    let gas = u64::try_from(gas).ok()?;
    (!empty && !amount.is_zero()).then_some(Quote { amount, gas })
}

/// The most output or the least input, then the least gas.
pub fn best<T>(found: Vec<(T, Quote)>, exact_input: bool) -> Option<(T, Quote)> {
    found.into_iter().reduce(|one, other| {
        let better = match exact_input {
            true => other.1.amount > one.1.amount,
            false => other.1.amount < one.1.amount,
        };
        let cheaper = other.1.amount == one.1.amount && other.1.gas < one.1.gas;
        if better || cheaper { other } else { one }
    })
}
