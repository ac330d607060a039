//! Executions of fills and refunds, tiers of fast mode, the domain filter of peers' signatures.

use std::sync::Arc;

use intentd::attest::{deposit::Message, execution, finality, order::Terms, peers::answer::Seal};
use serde::Deserialize;
use serde_json::{Value, json};
use vm::{Address, Amount, ChainId, Deposit, Family, Finality, protocol::hub::alias};

use crate::harness::{Answer, Case, Row};

pub const ROWS: &[Row] = &[
    ("fill_refund_execution.json", fill_refund_execution),
    ("finality.json", finality),
    ("filter_signatures_by_domain.json", filter_signatures),
];

/// The chains of the test configuration are called like their families, except the EVM ones.
fn family(chain: &str) -> Option<&'static Family> {
    vm::family(&match chain {
        "ethereum" | "base" => "ethereum-vm".to_owned(),
        other => format!("{other}-vm"),
    })
}

fn text<'a>(of: &'a Value, field: &str) -> Result<&'a str, String> {
    of[field]
        .as_str()
        .ok_or_else(|| format!("no {field} in {of}"))
}

fn amount(of: &Value, field: &str) -> Result<Amount, String> {
    Amount::from_str_radix(text(of, field)?, 10).map_err(|error| error.to_string())
}

fn fill_refund_execution(case: &Case) -> Answer {
    let say = |error: &dyn std::fmt::Display| error.to_string();
    let order = Deserialize::deserialize(&case.input["order"]).map_err(|e| say(&e))?;
    let order: vm::protocol::order::Order = order;
    let terms = Terms::new(&order, &family).map_err(|e| say(&e))?;
    let solver = family(&order.solver_chain_id).ok_or("no solver chain")?;
    let solver = solver.address(&order.solver).map_err(|e| say(&e))?;
    let solver = alias(&ChainId::new(&order.solver_chain_id), &solver);
    let deposits = case.input["depositoryDeposits"].as_array();
    let deposits = deposits.ok_or("no deposits")?.iter().map(message);
    let deposits = deposits.collect::<Result<Vec<_>, _>>()?;
    let fees = case.input["type"] == "fill";
    let execution = execution::outcome(&terms, solver, &deposits, fees).map_err(|e| say(&e))?;
    Ok(json!({
        "idempotencyKey": execution.idempotency_key.to_string(),
        "actions": execution.actions.iter().map(ToString::to_string).collect::<Vec<_>>(),
    }))
}

fn message(of: &Value) -> Result<Message, String> {
    let (data, result) = (&of["data"], &of["result"]);
    let chain = text(data, "chainId")?;
    let family = family(chain).ok_or("no chain")?;
    let address = |field| {
        let text = text(result, field)?;
        family.address(text).map_err(|error| error.to_string())
    };
    let number = |text: &str| text.parse().map_err(|_| format!("no number: {text}"));
    Ok(Message {
        chain: ChainId::new(chain),
        transaction: text(data, "transactionId")?.into(),
        onchain_id: text(result, "onchainId")?.parse().map_err(|_| "no id")?,
        deposit: Deposit {
            index: 0,
            depository: Address::from_parts(text(result, "depository")?, Vec::new()),
            depositor: address("depositor")?,
            currency: address("currency")?,
            amount: amount(result, "amount")?,
            id: Arc::from(text(result, "depositId")?),
            named_by_other: false,
            by_depositor: false,
        },
        timestamp: number(text(&of["extraData"], "timestamp")?)?,
    })
}

fn finality(case: &Case) -> Answer {
    let (defaults, measured) = (&case.input["defaults"], &case.input["measured"]);
    let number = |of: &Value, field: &str| of[field].as_u64().ok_or(format!("no {field}"));
    let defaults = Finality {
        blocks: number(defaults, "finalizationBlocks")?,
        seconds: number(defaults, "finalizationTime")?,
        tag: None,
    };
    let tiers = &case.input["chain"]["additionalData"]["fastMode"]["finalityTiers"];
    let deposits = case.input["deposits"].as_array().ok_or("no deposits")?;
    let tier = |deposit: &Value| {
        let result = &deposit["result"];
        let currency = text(result, "currency")?;
        finality::tier(tiers, currency, amount(result, "amount")?).map_err(|e| e.to_string())
    };
    let tiers = deposits.iter().map(tier).collect::<Result<Vec<_>, _>>()?;
    let required = finality::strictest(&defaults, &tiers);
    let met = number(measured, "confirmations")? >= required.blocks
        && number(measured, "elapsedSeconds")? >= required.seconds;
    Ok(json!({
        "required": { "finalizationBlocks": required.blocks, "finalizationTime": required.seconds },
        "usedDefaults": finality::reaches(&required, &defaults),
        "tiers": tiers.iter().map(shown).collect::<Vec<_>>(),
        "met": met,
    }))
}

fn shown(tier: &Option<finality::Tier>) -> Value {
    let Some(tier) = tier else { return Value::Null };
    let mut shown = json!({});
    let fields = [
        (
            "finalizationBlocks",
            tier.finalization_blocks.map(Value::from),
        ),
        ("finalizationTime", tier.finalization_time.map(Value::from)),
        ("feeBps", tier.fee_bps.clone()),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            shown[name] = value;
        }
    }
    shown
}

fn filter_signatures(case: &Case) -> Answer {
    let signatures = case.input["signatures"].as_array();
    let domain = |of: &Value| Seal::of(["oracleChainId", "oracleContract"], of);
    let own = domain(&case.input["reference"]);
    let kept = signatures
        .into_iter()
        .flatten()
        .filter(|signature| {
            let named = domain(signature).zip(own.as_ref());
            named.is_some_and(|(named, own)| named.is(own))
        })
        .cloned();
    Ok(kept.collect())
}
