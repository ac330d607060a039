//! Struct hashes and mapping messages.

use serde_json::{Value, json};
use vm::{
    Bytes, Family, WithdrawalStatus,
    protocol::{
        mapping,
        message::{
            self, GenericMapping, TypedMessage,
            id::{
                DepositoryDeposit, DepositoryWithdrawal, I256, InputEntry, Outcome, RefundEntry,
                SolverFill, SolverRefund,
            },
        },
        order::Order,
    },
};

use crate::{
    harness::{Answer, Case},
    wire::{bytes, field, number, said, word},
};

pub fn execution(case: &Case) -> Answer {
    hashed(&super::signed::read_execution(&case.input)?)
}

pub fn generic_mapping(case: &Case) -> Answer {
    hashed(&super::signed::read_mapping(&case.input)?)
}

pub fn nonce_mapping(case: &Case) -> Answer {
    let input = &case.input;
    let depositor = input.get("depositor").map(|_| field(input, "depositor"));
    let spelled = depositor.transpose()?;
    let depositor = spelled.map(message::address).transpose();
    let user = field(input, "user")?;
    let entry = mapping::nonce_mapping(
        user,
        field(input, "nonce")?,
        word(input, "depositId")?,
        depositor.map_err(said)?,
    );
    let mut answer = entry_json(user, &entry.map_err(said)?);
    answer["data"] = mapping::nonce_mapping_text(field(input, "depositId")?, spelled).into();
    Ok(answer)
}

pub fn no_fill_or_refund(case: &Case) -> Answer {
    let user = field(&case.input, "solver")?;
    let entry = mapping::no_fill_or_refund(user, field(&case.input, "orderId")?);
    Ok(entry_json(user, &entry.map_err(said)?))
}

fn entry_json(user: &str, entry: &GenericMapping) -> Value {
    json!({ "user": user, "id": entry.id, "data": entry.data, "nonce": entry.nonce })
}

pub fn deposit(case: &Case) -> Answer {
    let message = Message::of(&case.input)?;
    let chain = field(message.data, "chainId")?;
    let result = message.result;
    let codec = message.family(chain)?.codec;
    let encoded = |key| codec.encode_address(field(result, key)?).map_err(said);
    let transaction = codec.encode_transaction_id(field(message.data, "transactionId")?);
    hashed(&DepositoryDeposit {
        chain_id: chain.into(),
        transaction_id: transaction.map_err(said)?.into(),
        onchain_id: word(result, "onchainId")?,
        depository: encoded("depository")?.into(),
        deposit_id: word(result, "depositId")?,
        depositor: encoded("depositor")?.into(),
        currency: encoded("currency")?.into(),
        amount: number(result, "amount")?,
    })
}

pub fn withdrawal(case: &Case) -> Answer {
    let message = Message::of(&case.input)?;
    let chain = field(message.data, "chainId")?;
    let codec = message.family(chain)?.codec;
    let depository = codec.encode_address(field(message.result, "depository")?);
    hashed(&DepositoryWithdrawal {
        chain_id: chain.into(),
        withdrawal: bytes(message.data, "withdrawal")?,
        withdrawal_id: word(message.result, "withdrawalId")?,
        depository: depository.map_err(said)?.into(),
        status: match message.result.get("status").and_then(Value::as_u64) {
            Some(0) => WithdrawalStatus::Pending,
            Some(1) => WithdrawalStatus::Executed,
            Some(2) => WithdrawalStatus::Expired,
            other => return Err(format!("status {other:?}")),
        },
    })
}

pub fn fill(case: &Case) -> Answer {
    let message = Message::of(&case.input)?;
    let order = message.order()?;
    let fill = message.data.get("fill").ok_or("no fill")?;
    hashed(&SolverFill {
        fill_transaction_id: message.transaction(fill, &order.output.chain_id)?,
        inputs: message.inputs(&order)?,
        order_signature: bytes(message.data, "orderSignature")?,
        outcome: message.outcome()?,
        order: order
            .typed(|chain| message.family(chain).ok())
            .map_err(said)?,
    })
}

pub fn refund(case: &Case) -> Answer {
    let message = Message::of(&case.input)?;
    let order = message.order()?;
    let refund = |entry: &Value| {
        let (input, refund) = (index(entry, "inputIndex")?, index(entry, "refundIndex")?);
        let chain = order
            .inputs
            .get(input as usize)
            .and_then(|input| input.refunds.get(refund as usize))
            .ok_or("no such refund")?;
        Ok(RefundEntry {
            transaction_id: message.transaction(entry, &chain.chain_id)?,
            input_index: input,
            refund_index: refund,
        })
    };
    hashed(&SolverRefund {
        inputs: message.inputs(&order)?,
        refunds: message
            .list("refunds")?
            .iter()
            .map(refund)
            .collect::<Result<_, String>>()?,
        order_signature: bytes(message.data, "orderSignature")?,
        outcome: message.outcome()?,
        order: order
            .typed(|chain| message.family(chain).ok())
            .map_err(said)?,
    })
}

/// A v2.1 message and the families of its chains.
struct Message<'a> {
    data: &'a Value,
    result: &'a Value,
    chains: &'a Value,
}

impl<'a> Message<'a> {
    fn of(input: &'a Value) -> Result<Self, String> {
        let message = input.get("message").ok_or("no message")?;
        Ok(Self {
            data: message.get("data").ok_or("no data")?,
            result: message.get("result").ok_or("no result")?,
            chains: input.get("chainsConfig").ok_or("no chains")?,
        })
    }

    fn family(&self, chain: &str) -> Result<&'static Family, String> {
        let name = self.chains.get(chain).and_then(Value::as_str);
        name.and_then(vm::family)
            .ok_or_else(|| format!("no family for {chain}"))
    }

    fn order(&self) -> Result<Order, String> {
        let order = self.data.get("order").ok_or("no order")?;
        serde_json::from_value(order.clone()).map_err(said)
    }

    fn list(&self, key: &str) -> Result<&'a Vec<Value>, String> {
        let list = self.data.get(key).and_then(Value::as_array);
        list.ok_or_else(|| format!("no {key}"))
    }

    fn transaction(&self, entry: &Value, chain: &str) -> Result<Bytes, String> {
        let codec = self.family(chain)?.codec;
        let id = codec.encode_transaction_id(field(entry, "transactionId")?);
        id.map(Bytes::from).map_err(said)
    }

    fn inputs(&self, order: &Order) -> Result<Vec<InputEntry>, String> {
        let entry = |entry: &Value| {
            let at = index(entry, "inputIndex")?;
            let input = order.inputs.get(at as usize).ok_or("no such input")?;
            Ok(InputEntry {
                transaction_id: self.transaction(entry, &input.payment.chain_id)?,
                onchain_id: word(entry, "onchainId")?,
                input_index: at,
            })
        };
        self.list("inputs")?.iter().map(entry).collect()
    }

    fn outcome(&self) -> Result<Outcome, String> {
        let diff = field(self.result, "totalWeightedInputPaymentBpsDiff")?;
        Ok(Outcome {
            order_id: word(self.result, "orderId")?,
            status: u8::try_from(index(self.result, "status")?).map_err(said)?,
            total_weighted_input_payment_bps_diff: diff.parse::<I256>().map_err(said)?,
        })
    }
}

fn index(of: &Value, key: &str) -> Result<u32, String> {
    of.get(key)
        .and_then(Value::as_u64)
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| format!("no index {key}"))
}

fn hashed(message: &impl TypedMessage) -> Answer {
    Ok(message.struct_hash().to_string().into())
}
