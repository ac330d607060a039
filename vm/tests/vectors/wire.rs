//! Addresses, transaction ids, orders, hub identifiers, actions and deterministic ids.

use serde_json::{Value, json};
use vm::{
    Address, B256, Bytes, ChainId, Family, OrderCall, OrderCodec, U256,
    protocol::{
        action::Action,
        hub::{OrderAccount, WithdrawalAccount, alias, token_id},
        id,
        order::Order,
        text,
    },
};

use crate::harness::{Answer, Case, Row};

/// File and answer, one row each.
pub const ROWS: &[Row] = &[
    ("cartesian_product.json", cartesian_product),
    ("decode_action.json", decode_action),
    ("decode_address.json", decode_address),
    ("decode_transaction_id.json", decode_transaction_id),
    ("decode_xrp_destination.json", decode_xrp_destination),
    ("deterministic_id.json", deterministic_id),
    ("encode_action.json", encode_action),
    ("encode_address.json", encode_address),
    ("encode_transaction_id.json", encode_transaction_id),
    ("fill_idempotency_key.json", fill_idempotency_key),
    ("hub_address.json", hub_address),
    ("hub_token_id.json", hub_token_id),
    ("native_currency.json", native_currency),
    ("order_address.json", order_address),
    ("order_call.json", order_call),
    ("order_extra_data.json", order_extra_data),
    ("order_id.json", order_id),
    ("order_id_published.json", order_id),
    ("withdrawal_address.json", withdrawal_address),
];

pub fn said(why: impl ToString) -> String {
    why.to_string()
}

pub fn field<'a>(of: &'a Value, key: &str) -> Result<&'a str, String> {
    of.get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("no text {key}"))
}

pub fn bytes(of: &Value, key: &str) -> Result<Bytes, String> {
    text::bytes(field(of, key)?).map_err(said)
}

pub fn number(of: &Value, key: &str) -> Result<U256, String> {
    text::number(field(of, key)?).map_err(said)
}

pub fn word(of: &Value, key: &str) -> Result<B256, String> {
    B256::try_from(bytes(of, key)?.as_ref()).map_err(said)
}

pub fn evm(of: &Value, key: &str) -> Result<vm::EvmAddress, String> {
    text::evm_address(field(of, key)?).map_err(said)
}

pub fn family(of: &Value, key: &str) -> Result<&'static Family, String> {
    let name = field(of, key)?;
    vm::family(name).ok_or_else(|| format!("no family {name}"))
}

/// The published bytes, of whatever text: what the daemon refuses is tested elsewhere.
fn address(of: &Value, family: &Family, key: &str) -> Result<Address, String> {
    let text = field(of, key)?;
    let bytes = family.codec.encode_address(text).map_err(said)?;
    Ok(Address::from_parts(text, bytes))
}

fn orders(of: &Value) -> Result<&'static dyn OrderCodec, String> {
    family(of, "vmType")?
        .orders
        .ok_or_else(|| "Unsupported vm type".into())
}

pub fn hex(bytes: impl AsRef<[u8]>) -> Value {
    Value::from(Bytes::copy_from_slice(bytes.as_ref()).to_string())
}

fn encode_address(case: &Case) -> Answer {
    let codec = family(&case.input, "vmType")?.codec;
    let bytes = codec.encode_address(field(&case.input, "address")?);
    bytes.map(hex).map_err(said)
}

fn decode_address(case: &Case) -> Answer {
    let codec = family(&case.input, "vmType")?.codec;
    let text = codec.decode_address(&bytes(&case.input, "bytes")?);
    text.map(Value::from).map_err(said)
}

fn encode_transaction_id(case: &Case) -> Answer {
    let codec = family(&case.input, "vmType")?.codec;
    let bytes = codec.encode_transaction_id(field(&case.input, "transactionId")?);
    bytes.map(hex).map_err(said)
}

fn decode_transaction_id(case: &Case) -> Answer {
    let codec = family(&case.input, "vmType")?.codec;
    let text = codec.decode_transaction_id(&bytes(&case.input, "bytes")?);
    text.map(Value::from).map_err(said)
}

fn decode_xrp_destination(case: &Case) -> Answer {
    let destination = vm::xrp::address::destination(field(&case.input, "address")?);
    let destination = destination.map_err(said)?;
    let mut answer = json!({ "account": destination.address() });
    if let Some(tag) = destination.tag {
        answer["tag"] = tag.into();
    }
    Ok(answer)
}

/// `gateway-vm` is no family here: nothing can be addressed on it. Its sentinel is the hub's.
fn native_currency(case: &Case) -> Answer {
    if field(&case.input, "vmType")? == "gateway-vm" {
        return Ok(vm::EvmAddress::ZERO.to_string().into());
    }
    Ok(family(&case.input, "vmType")?.codec.native().into())
}

fn place(input: &Value) -> Result<(ChainId, Address), String> {
    let address = address(input, family(input, "family")?, "address")?;
    Ok((ChainId::new(field(input, "chainId")?), address))
}

fn hub_address(case: &Case) -> Answer {
    let (chain, address) = place(&case.input)?;
    Ok(alias(&chain, &address).to_string().into())
}

fn hub_token_id(case: &Case) -> Answer {
    let (chain, currency) = place(&case.input)?;
    Ok(token_id(&chain, &currency).to_string().into())
}

fn safe(input: &Value) -> bool {
    input.get("safe") == Some(&Value::Bool(true))
}

fn order_address(case: &Case) -> Answer {
    let input = &case.input;
    let account = OrderAccount {
        chain: &ChainId::new(field(input, "chainId")?),
        depositor: &address(input, family(input, "vmType")?, "depositor")?,
        timestamp: number(input, "timestamp")?,
        deposit: word(input, "depositId")?,
    };
    let address = if safe(input) {
        account.safe_address()
    } else {
        account.address()
    };
    Ok(hex(address))
}

fn withdrawal_address(case: &Case) -> Answer {
    let input = &case.input;
    let family = family(input, "vmType")?;
    let address = |key| address(input, family, key);
    let account = WithdrawalAccount {
        chain: &ChainId::new(field(input, "chainId")?),
        depository: &address("depository")?,
        currency: &address("currency")?,
        recipient: &address("recipient")?,
        owner: evm(input, "ownerAlias")?,
        nonce: number(input, "nonce")?,
    };
    let address = if safe(input) {
        account.safe_address(&bytes(input, "additionalData")?)
    } else {
        account.address()
    };
    Ok(hex(address))
}

fn order_id(case: &Case) -> Answer {
    let order: Order = serde_json::from_value(case.input["order"].clone()).map_err(said)?;
    let chains = &case.input["chainsConfig"];
    let family_of = |chain: &str| vm::family(chains.get(chain)?.as_str()?);
    Ok(order.id(family_of).map_err(said)?.to_string().into())
}

fn order_call(case: &Case) -> Answer {
    let input = &case.input;
    if field(input, "op")? == "decode" {
        let call = orders(input)?.decode_call(&bytes(input, "data")?);
        let call = call.map_err(said)?;
        let call = json!({
            "to": call.to.text(),
            "data": call.data.to_string(),
            "value": call.value.to_string(),
        });
        return Ok(json!({ "vmType": input["vmType"], "call": call }));
    }
    let call = &input["call"]["call"];
    let to = evm(call, "to")?;
    let call = OrderCall {
        to: Address::from_parts(field(call, "to")?, to.to_vec()),
        data: bytes(call, "data")?,
        value: number(call, "value")?,
    };
    let encoded = orders(&input["call"])?.encode_call(&call);
    encoded.map(hex).map_err(said)
}

fn order_extra_data(case: &Case) -> Answer {
    let input = &case.input;
    if field(input, "op")? == "decode" {
        let contract = orders(input)?.decode_extra_data(&bytes(input, "data")?);
        let extra = json!({ "fillContract": contract.map_err(said)?.text() });
        return Ok(json!({ "vmType": input["vmType"], "extraData": extra }));
    }
    let contract = family(input, "vmType")?.address(field(&input["extraData"], "fillContract")?);
    let encoded = orders(input)?.encode_extra_data(&contract.map_err(said)?);
    encoded.map(hex).map_err(said)
}

fn encode_action(case: &Case) -> Answer {
    let data = &case.input["data"];
    let token = || number(data, "hubTokenId");
    let amount = || number(data, "amount");
    let (from, to) = (|| evm(data, "hubFromAddress"), || evm(data, "hubToAddress"));
    let action = match case.input["type"].as_u64() {
        Some(0) => Action::Mint {
            to: to()?,
            token: token()?,
            amount: amount()?,
        },
        Some(1) => Action::Burn {
            from: from()?,
            token: token()?,
            amount: amount()?,
        },
        Some(2) => Action::Transfer {
            from: from()?,
            to: to()?,
            token: token()?,
            amount: amount()?,
        },
        Some(3) => Action::FastMint {
            to: to()?,
            token: token()?,
            amount: amount()?,
            fee_calculator: evm(data, "feeCalculator")?,
            fee_calculator_data: bytes(data, "feeCalculatorData")?,
            rate_limiter: evm(data, "rateLimiter")?,
            rate_limiter_data: bytes(data, "rateLimiterData")?,
        },
        _ => return Err("Unsupported action type".into()),
    };
    Ok(hex(action.encode()))
}

fn decode_action(case: &Case) -> Answer {
    let action = Action::decode(&bytes(&case.input, "action")?).map_err(said)?;
    let (kind, token, amount, mut data) = match action {
        Action::Mint { to, token, amount } => {
            (0, token, amount, json!({ "hubToAddress": to.to_string() }))
        }
        Action::Burn {
            from,
            token,
            amount,
        } => {
            let data = json!({ "hubFromAddress": from.to_string() });
            (1, token, amount, data)
        }
        Action::Transfer {
            from,
            to,
            token,
            amount,
        } => {
            let (from, to) = (from.to_string(), to.to_string());
            let data = json!({ "hubFromAddress": from, "hubToAddress": to });
            (2, token, amount, data)
        }
        Action::FastMint {
            to,
            token,
            amount,
            fee_calculator,
            fee_calculator_data,
            rate_limiter,
            rate_limiter_data,
        } => {
            let data = json!({
                "hubToAddress": to.to_string(),
                "feeCalculator": fee_calculator.to_string(),
                "feeCalculatorData": fee_calculator_data.to_string(),
                "rateLimiter": rate_limiter.to_string(),
                "rateLimiterData": rate_limiter_data.to_string(),
            });
            (3, token, amount, data)
        }
    };
    data["hubTokenId"] = token.to_string().into();
    data["amount"] = amount.to_string().into();
    Ok(json!({ "type": kind, "data": data }))
}

fn texts<'a>(of: &'a Value, key: &str) -> Result<Vec<&'a str>, String> {
    let values = of[key].as_array().ok_or("no list")?;
    values
        .iter()
        .map(|value| value.as_str().ok_or_else(|| "no text".to_owned()))
        .collect()
}

fn deterministic_id(case: &Case) -> Answer {
    let values = texts(&case.input, "values")?;
    Ok(id::deterministic(&values).to_string().into())
}

fn fill_idempotency_key(case: &Case) -> Answer {
    let onchain: Result<Vec<B256>, String> = texts(&case.input, "onchainIds")?
        .into_iter()
        .map(|text| text.parse().map_err(said))
        .collect();
    let key = id::outcome(&onchain?, word(&case.input, "orderId")?);
    Ok(key.to_string().into())
}

fn cartesian_product(case: &Case) -> Answer {
    let lists: Vec<Vec<String>> =
        serde_json::from_value(case.input["lists"].clone()).map_err(said)?;
    let rows: Vec<Vec<&String>> = vm::bitcoin::combinations(&lists).collect();
    serde_json::to_value(rows).map_err(said)
}
