//! Requests that nobody quoted, and a deposit for each: events without chains.

#[path = "deposit.rs"]
mod deposit;

use alloy::primitives::{B256, Bytes, U256};
use intentd::request::{Execution, Leg, Operation, Request, TradeType, fact::Facts};
use serde_json::Value;
use vm::protocol::order::{Order, Output, VERSION};

use self::deposit::{NATIVE, USER, deposit};

/// Request `number` of the key of `label`.
pub fn request(number: u64, label: &str) -> Request {
    let id = B256::left_padding_from(&number.to_be_bytes());
    let leg = |chain, network: &str| Leg {
        chain,
        network: network.into(),
        currency: NATIVE.into(),
        amount: U256::from(5),
        minimum: U256::from(5),
    };
    Request {
        id,
        order_id: !id,
        order: Order {
            version: VERSION.into(),
            solver_chain_id: "destination".into(),
            solver: USER.into(),
            salt: number.to_string(),
            inputs: Vec::new(),
            output: Output {
                chain_id: "destination".into(),
                payments: Vec::new(),
                calls: Vec::new(),
                deadline: 1_700_604_800,
                extra_data: "0x".into(),
            },
            fees: Vec::new(),
        },
        order_signature: Bytes::new(),
        operation: Operation::Swap,
        execution: Execution::Solver,
        trade_type: TradeType::ExactInput,
        user: USER.into(),
        recipient: USER.into(),
        refund_to: USER.into(),
        origin: leg(31_001, "origin"),
        destination: leg(31_002, "destination"),
        calls: Vec::new(),
        calls_work: None,
        authorizations: Vec::new(),
        late_slippage_bps: None,
        true_exact_output: false,
        fill_work: 21_000,
        fill_rate: U256::ZERO,
        fill_besides: U256::ZERO,
        own_call: None,
        referrer: Some("zoë \"✓\"".into()),
        api_key: Some(label.into()),
        created_at: 1_700_000_000_000,
        valid_until: u64::MAX,
        mined_until: None,
        expires_at: None,
        quoted: Value::Null.into(),
    }
}

/// Its deposit is final, which is an event.
pub fn paid(facts: &mut Facts, number: u64) {
    let id = B256::left_padding_from(&number.to_be_bytes());
    facts.deposits = vec![deposit(id)];
}
