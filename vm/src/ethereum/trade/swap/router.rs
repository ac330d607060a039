//! SwapRouter02: the transaction of an exchange. Pure.

use alloy::{
    primitives::{Address, Bytes, U160, U256, address, aliases::U24},
    sol,
    sol_types::SolCall,
};

use super::route::Route;

sol! {
    struct Single {
        address input;
        address output;
        uint24 fee;
        address recipient;
        uint256 amount;
        uint256 limit;
        uint160 stop;
    }

    struct Several {
        bytes path;
        address recipient;
        uint256 amount;
        uint256 limit;
    }

    function exactInputSingle(Single params);
    function exactOutputSingle(Single params);
    function exactInput(Several params);
    function exactOutput(Several params);
    function unwrapWETH9(uint256 least, address recipient);
    function refundETH();
    function multicall(uint256 deadline, bytes[] data);
}

/// What the router takes for its caller and for itself, where it is given them as a recipient.
const CALLER: Address = address!("0000000000000000000000000000000000000001");
const ITSELF: Address = address!("0000000000000000000000000000000000000002");

/// An exchange over `route`.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    pub route: &'a Route,
    pub recipient: Address,
    pub exact_input: bool,
    /// What goes in exactly, or comes out exactly.
    pub amount: U256,
    /// The least that comes out, or the most that goes in.
    pub limit: U256,
    /// The input is sent along as the native currency.
    pub native_input: bool,
    /// The output is unwrapped.
    pub native_output: bool,
    /// Unix seconds.
    pub deadline: u64,
}

impl Exchange<'_> {
    /// Whether the router would pay this recipient, and not somebody whom it has another name for.
    pub fn is_recipient(address: Address) -> bool {
        ![Address::ZERO, CALLER, ITSELF].contains(&address)
    }

    /// The calldata. What is sent along and not needed goes back to the sender.
    pub fn data(&self) -> Bytes {
        let mut data: Vec<Bytes> = vec![self.swap().into()];
        if self.native_output {
            let unwrap = unwrapWETH9Call {
                least: self.least(),
                recipient: self.recipient,
            };
            data.push(unwrap.abi_encode().into());
        }
        if self.native_input {
            data.push(refundETHCall {}.abi_encode().into());
        }
        let deadline = U256::from(self.deadline);
        multicallCall { deadline, data }.abi_encode().into()
    }

    /// The native currency to send along.
    pub fn value(&self) -> U256 {
        match (self.native_input, self.exact_input) {
            (false, _) => U256::ZERO,
            (true, true) => self.amount,
            (true, false) => self.limit,
        }
    }

    fn least(&self) -> U256 {
        if self.exact_input {
            self.limit
        } else {
            self.amount
        }
    }

    fn swap(&self) -> Vec<u8> {
        let recipient = if self.native_output {
            ITSELF
        } else {
            self.recipient
        };
        match (self.route.tokens.as_slice(), self.route.fees.as_slice()) {
            ([input, output], [fee]) => {
                let params = Single {
                    input: *input,
                    output: *output,
                    fee: U24::from(*fee),
                    recipient,
                    amount: self.amount,
                    limit: self.limit,
                    stop: U160::ZERO,
                };
                if self.exact_input {
                    exactInputSingleCall { params }.abi_encode()
                } else {
                    exactOutputSingleCall { params }.abi_encode()
                }
            }
            _ => self.several(recipient),
        }
    }

    fn several(&self, recipient: Address) -> Vec<u8> {
        let params = |path| Several {
            path,
            recipient,
            amount: self.amount,
            limit: self.limit,
        };
        if self.exact_input {
            let params = params(self.route.path());
            exactInputCall { params }.abi_encode()
        } else {
            let params = params(self.route.reversed());
            exactOutputCall { params }.abi_encode()
        }
    }
}
