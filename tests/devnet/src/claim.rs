//! Bodies of the oracle's routes for deposits, fills and refunds (guide: protocol 10.2), and what comes back.

use alloy::primitives::{B256, Bytes};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use vm::protocol::id;

use crate::{
    account::Account,
    world::{Deposit, DevChain, Execution, SignedOrder},
};

/// Body of `depository-deposits/v1`.
pub fn deposit(site: &DevChain, transaction: B256) -> Value {
    json!({ "chainId": site.id, "transactionId": transaction })
}

/// The same for any chain; its transactions are called as that chain calls them.
pub fn deposit_of(chain: &str, transaction: &str) -> Value {
    json!({ "chainId": chain, "transactionId": transaction })
}

/// Body of `solver-fills/v1`: `deposits` in the order of the order's inputs.
pub fn fill(order: &SignedOrder, deposits: &[Deposit], transaction: B256) -> Value {
    let mut body = outcome(order, deposits);
    body["fill"] = json!({ "transactionId": transaction });
    body
}

/// Body of `solver-fills/v1` for an order with one input; `deposit` is its transaction and how claims call it.
pub fn fill_of(order: &SignedOrder, (deposit, id): (&str, B256), transaction: &str) -> Value {
    let mut body = paid_for(order, (deposit, id));
    body["fill"] = json!({ "transactionId": transaction });
    body
}

/// Body of `solver-refunds/v1` for an order with one input and one refund option, in the words of [`fill_of`].
pub fn refund_of(order: &SignedOrder, (deposit, id): (&str, B256), transaction: &str) -> Value {
    let refund = json!({ "transactionId": transaction, "inputIndex": 0, "refundIndex": 0 });
    let mut body = paid_for(order, (deposit, id));
    body["refunds"] = json!([refund]);
    body
}

fn paid_for(order: &SignedOrder, (deposit, id): (&str, B256)) -> Value {
    let mut body = order.fields();
    body["inputs"] = json!([{ "transactionId": deposit, "onchainId": id, "inputIndex": 0 }]);
    body
}

/// Body of `solver-refunds/v1`: one transaction per input, each by the input's first refund.
pub fn refund(order: &SignedOrder, deposits: &[Deposit], transactions: &[B256]) -> Value {
    let refunds = transactions.iter().enumerate().map(|(input, transaction)| {
        json!({ "transactionId": transaction, "inputIndex": input, "refundIndex": 0 })
    });
    let mut body = outcome(order, deposits);
    body["refunds"] = refunds.collect();
    body
}

fn outcome(order: &SignedOrder, deposits: &[Deposit]) -> Value {
    let inputs = deposits.iter().enumerate().map(|(input, deposit)| {
        json!({
            "transactionId": deposit.transaction,
            "onchainId": deposit.onchain_id,
            "inputIndex": input,
        })
    });
    let mut body = order.fields();
    body["inputs"] = inputs.collect();
    body
}

/// A claim of `outcome` (`fill` or `refund`) with its solver's word, which a daemon's own orders ask for.
pub fn vouched(
    (outcome, mut body): (&str, Value),
    (order, deposits): (B256, &[B256]),
    solver: &Account,
) -> Result<Value> {
    let claim = id::claim(outcome, deposits, order);
    body["solverSignature"] = json!(solver.sign_message(claim.as_slice())?);
    Ok(body)
}

/// Asks the oracle that answers to have its peers sign as well.
#[must_use]
pub fn with_peers(mut body: Value) -> Value {
    body["requestPeerSignatures"] = json!(true);
    body
}

/// The `execution` of an oracle's answer, with every signature in it.
pub fn execution(answer: &Value) -> Result<Execution> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        idempotency_key: B256,
        actions: Vec<Bytes>,
        signatures: Vec<WireSignature>,
    }
    #[derive(Deserialize)]
    struct WireSignature {
        signature: Bytes,
    }
    let wire = answer
        .get("execution")
        .with_context(|| format!("no execution in {answer}"))?;
    let wire = Wire::deserialize(wire)?;
    Ok(Execution {
        idempotency_key: wire.idempotency_key,
        actions: wire.actions,
        signatures: wire.signatures.into_iter().map(|s| s.signature).collect(),
    })
}
