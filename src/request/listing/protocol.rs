//! The protocol's side of a request: deposit, fills and refunds, and what the hub took of them.

use alloy::{hex, primitives::B256};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Sheet;
use crate::request::fact::{Applied, Purpose};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordProtocol)]
pub struct Protocol {
    #[schema(value_type = String)]
    order_id: B256,
    /// `onchain`.
    hub_type: &'static str,
    /// The solver has been paid at the hub.
    is_withdrawable: bool,
    solver: Solver,
    deposit: DepositSide,
    settlement: SettlementSide,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordSolver)]
struct Solver {
    address: String,
    /// The network's name.
    protocol_chain_id: String,
    chain_id: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordDepositSide)]
struct DepositSide {
    /// Null until a deposit is seen.
    origin: Option<Origin>,
    /// Null until the hub has taken it.
    relay: Option<Hub>,
    attestation: Option<Attestation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordDeposit)]
struct Origin {
    amount: String,
    chain_id: Option<u64>,
    currency: String,
    depositor: String,
    depository: String,
    #[schema(value_type = String)]
    onchain_id: B256,
    transaction_id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordSettlementSide)]
struct SettlementSide {
    destination: Destination,
    relay: Option<Hub>,
    attestation: Option<Attestation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordDestination)]
struct Destination {
    fills: Vec<Transaction>,
    refunds: Vec<Transaction>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordTransactionId)]
struct Transaction {
    chain_id: Option<u64>,
    transaction_id: String,
}

/// A transaction at the hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordHubTransaction)]
struct Hub {
    hash: String,
    /// `mint`, `transfer`, `burn` or `mixed`.
    operation: &'static str,
}

/// What an oracle said, and the hub took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordAttestation)]
struct Attestation {
    execution: Execution,
    attestations: Vec<Signed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordExecution)]
struct Execution {
    actions: Vec<String>,
    idempotency_key: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordSignature)]
struct Signed {
    oracle_chain_id: String,
    oracle_contract: String,
    signer_address: String,
    signature: String,
}

impl Sheet<'_> {
    pub(super) fn protocol(&self) -> Protocol {
        let (request, facts) = (self.case.request, self.case.facts);
        let order = &request.order;
        let settled = facts.settlement.as_ref();
        let deposit = settled.and_then(|settled| settled.deposit.as_ref());
        let outcome = settled.and_then(|settled| settled.outcome.as_ref());
        Protocol {
            order_id: request.order_id,
            hub_type: "onchain",
            is_withdrawable: outcome.is_some(),
            solver: Solver {
                address: order.solver.clone(),
                protocol_chain_id: order.solver_chain_id.clone(),
                chain_id: self.chain(&order.solver_chain_id),
            },
            deposit: DepositSide {
                origin: self.origin(),
                relay: deposit.map(Hub::of),
                attestation: deposit.map(Attestation::of),
            },
            settlement: SettlementSide {
                destination: Destination {
                    fills: self.sent(Purpose::Fill),
                    refunds: [Purpose::Refund, Purpose::Excess]
                        .into_iter()
                        .flat_map(|purpose| self.sent(purpose))
                        .collect(),
                },
                relay: outcome.map(Hub::of),
                attestation: outcome.map(Attestation::of),
            },
        }
    }

    fn origin(&self) -> Option<Origin> {
        let deposit = self.deposit()?;
        Some(Origin {
            amount: deposit.amount.to_string(),
            chain_id: self.chain(&deposit.network),
            currency: deposit.currency.clone(),
            depositor: deposit.depositor.clone(),
            depository: deposit.depository.clone(),
            onchain_id: deposit.onchain_id,
            transaction_id: deposit.transaction.clone(),
        })
    }

    fn sent(&self, purpose: Purpose) -> Vec<Transaction> {
        let sent = self.case.facts.alive(purpose);
        let sent = sent.map(|attempt| Transaction {
            chain_id: self.chain(&attempt.network),
            transaction_id: attempt.transaction.clone(),
        });
        sent.collect()
    }
}

fn text(value: &Value, field: &str) -> String {
    let text = value.get(field).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    let list = value.get(field).and_then(Value::as_array);
    list.into_iter().flatten()
}

impl Hub {
    fn of(applied: &Applied) -> Self {
        // The first word of an action is its kind (settlement.md, actions).
        let kind = |action: &Value| {
            let action = hex::decode(action.as_str()?).ok()?;
            action.get(31).copied()
        };
        let kinds: Vec<_> = list(&applied.execution, "actions").map(kind).collect();
        let all = |wanted: &[u8]| {
            !kinds.is_empty()
                && kinds
                    .iter()
                    .all(|kind| kind.is_some_and(|it| wanted.contains(&it)))
        };
        Self {
            hash: applied.transaction.clone(),
            operation: match () {
                () if all(&[0, 3]) => "mint",
                () if all(&[1]) => "burn",
                () if all(&[2]) => "transfer",
                () => "mixed",
            },
        }
    }
}

impl Attestation {
    fn of(applied: &Applied) -> Self {
        let said = &applied.execution;
        let actions = list(said, "actions").filter_map(Value::as_str);
        let signed = list(said, "signatures").map(|one| Signed {
            oracle_chain_id: text(one, "oracleChainId"),
            oracle_contract: text(one, "oracleContract"),
            signer_address: text(one, "oracleSigner"),
            signature: text(one, "signature"),
        });
        Self {
            execution: Execution {
                actions: actions.map(str::to_owned).collect(),
                idempotency_key: text(said, "idempotencyKey"),
            },
            attestations: signed.collect(),
        }
    }
}
