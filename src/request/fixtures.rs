//! A request for tests: 100 USDC from `origin` to `destination`.

use vm::protocol::order::{Input, InputPayment, Order, Output, OutputPayment, Refund, VERSION};

use super::*;

/// USDC of either chain.
pub const USDC: &str = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
pub const USER: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// Until when an order can be filled, and until when it can be given back.
pub const FILL_BY: u32 = 1_700_604_800;
pub const REFUND_BY: u32 = 1_701_209_600;

/// Until when the price of a [`large`] one holds.
pub const VALID_UNTIL: u64 = 1_700_000_060;

/// A request that calls with so many bytes that nothing packs.
pub fn large(number: u8, bytes: usize) -> Request {
    let words = (0..bytes.div_ceil(32)).map(|at| alloy::primitives::keccak256(at.to_be_bytes()));
    let data: Vec<u8> = words.flat_map(|word| word.0).take(bytes).collect();
    Request {
        calls: vec![Call {
            to: USER.into(),
            value: U256::ZERO,
            data: data.into(),
        }],
        valid_until: VALID_UNTIL,
        ..request(number)
    }
}

/// A request whose ids are made of `number`.
pub fn request(number: u8) -> Request {
    Request {
        id: B256::repeat_byte(number),
        order_id: B256::repeat_byte(number ^ 0x80),
        order: order(),
        order_signature: Bytes::from(vec![0; 65]),
        operation: Operation::Swap,
        execution: Execution::Solver,
        trade_type: TradeType::ExactInput,
        user: USER.into(),
        recipient: USER.into(),
        refund_to: USER.into(),
        origin: leg(31_001, "origin", 100_000_000),
        destination: leg(31_002, "destination", 99_900_000),
        calls: Vec::new(),
        calls_work: None,
        authorizations: Vec::new(),
        late_slippage_bps: None,
        true_exact_output: false,
        fill_work: 21_000,
        fill_rate: U256::from(1_000_000),
        fill_besides: U256::ZERO,
        own_call: None,
        referrer: None,
        api_key: None,
        created_at: 1_700_000_000_000,
        valid_until: u64::MAX,
        mined_until: None,
        expires_at: None,
        quoted: Value::Null.into(),
    }
}

/// Its quote priced the 100 dollars that its order asks for.
pub fn priced(mut request: Request) -> Request {
    let amount = serde_json::json!({
        "currency": {
            "chainId": 1, "address": USDC, "symbol": "USDC", "name": "USDC", "decimals": 6,
            "metadata": { "logoURI": "", "verified": true, "isNative": false },
        },
        "amount": "100000000", "amountFormatted": "100", "amountUsd": "100.000000",
        "minimumAmount": "100000000",
    });
    let details = serde_json::json!({
        "currencyIn": amount, "currencyOut": amount, "refundCurrency": amount, "rate": "1",
        "timeEstimate": 1,
    });
    request.quoted = serde_json::json!({ "details": details }).into();
    request
}

fn leg(chain: u64, network: &str, amount: u64) -> Leg {
    Leg {
        chain,
        network: network.into(),
        currency: USDC.into(),
        amount: U256::from(amount),
        minimum: U256::from(amount),
    }
}

fn order() -> Order {
    Order {
        version: VERSION.into(),
        solver_chain_id: "destination".into(),
        solver: USER.into(),
        salt: "1".into(),
        inputs: vec![Input {
            payment: InputPayment {
                chain_id: "origin".into(),
                currency: USDC.into(),
                amount: "100000000".into(),
                weight: "1".into(),
            },
            refunds: vec![Refund {
                chain_id: "origin".into(),
                recipient: USER.into(),
                currency: USDC.into(),
                minimum_amount: "0".into(),
                deadline: REFUND_BY,
                extra_data: "0x".into(),
            }],
        }],
        output: Output {
            chain_id: "destination".into(),
            payments: vec![OutputPayment {
                recipient: USER.into(),
                currency: USDC.into(),
                minimum_amount: "99900000".into(),
                expected_amount: "99900000".into(),
            }],
            calls: Vec::new(),
            deadline: FILL_BY,
            extra_data: "0x".into(),
        },
        fees: Vec::new(),
    }
}

/// Block `number` of the only fork.
pub fn place(number: u64) -> fact::Inclusion {
    fact::Inclusion {
        number,
        hash: B256::with_last_byte(u8::try_from(number).unwrap()),
        time: 1_700_000_000 + number,
    }
}

/// What a quorum says of a deposit that its depositor gave at `place`.
pub fn agreed(place: &fact::Inclusion) -> fact::Agreed {
    fact::Agreed {
        place: place.clone(),
        together: 1,
        own: true,
        named_by_other: false,
    }
}

/// A deposit of the whole amount in block `number`; its ids are made of the number.
pub fn deposit(number: u8, standing: fact::Standing) -> fact::Deposit {
    fact::Deposit {
        onchain_id: B256::with_last_byte(number),
        network: "origin".into(),
        transaction: format!("0x{number:064x}"),
        depository: USER.into(),
        depositor: USER.into(),
        currency: USDC.into(),
        amount: U256::from(100_000_000),
        place: place(number.into()),
        standing,
        together: 1,
        own: true,
        named_by_other: false,
    }
}

/// A transaction of the solver's: `0xf111`, `0x4ef0` for a refund, `0xe8ce` for an excess.
pub fn attempt(purpose: fact::Purpose, state: fact::State) -> fact::Attempt {
    let (network, transaction) = match purpose {
        fact::Purpose::Fill => ("destination", "0xf111"),
        fact::Purpose::Refund => ("origin", "0x4ef0"),
        fact::Purpose::Excess => ("origin", "0xe8ce"),
    };
    fact::Attempt {
        purpose,
        deposit: None,
        network: network.into(),
        transaction: transaction.into(),
        currency: USDC.into(),
        amount: U256::from(99_900_000),
        state,
    }
}

/// A transaction of the user's.
pub fn sent(transaction: &str, state: fact::State) -> fact::Sent {
    fact::Sent {
        network: "origin".into(),
        transaction: transaction.into(),
        state,
    }
}
