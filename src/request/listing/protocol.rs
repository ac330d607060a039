//! The protocol's side of a request: deposit, fills and refunds, and what the hub took of them.

use alloy::{
    hex,
    primitives::{B256, U256},
};
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use vm::protocol::action::Action;

use super::CaseView;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_id: Option<u64>,
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordDepositSide)]
struct DepositSide {
    /// Left out until a deposit is seen.
    origin: Option<Origin>,
    /// Left out until the hub has taken it.
    relay: Option<Hub>,
    attestation: Option<Attestation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordDeposit)]
struct Origin {
    amount: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_id: Option<u64>,
    currency: String,
    depositor: String,
    depository: String,
    #[schema(value_type = String)]
    onchain_id: B256,
    transaction_id: String,
}

#[skip_serializing_none]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_id: Option<u64>,
    transaction_id: String,
}

/// A transaction at the hub, and what it moved there of the token that stands for the deposited currency.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RecordHubTransaction)]
struct Hub {
    /// Smallest units; left out, as `currency` is, where its actions move several tokens.
    amount: Option<String>,
    /// The settlement chain's number.
    chain_id: Option<u64>,
    /// The token's id at the hub, a decimal number.
    currency: Option<String>,
    hash: String,
    /// `mint`, `transfer`, `burn` or `mixed`.
    operation: &'static str,
    /// Who was paid for the order; only where it was settled.
    solver: Option<String>,
    token_metadata: Option<TokenMetadata>,
}

/// What a token of the hub stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = RecordTokenMetadata)]
struct TokenMetadata {
    decimals: u8,
    name: String,
    symbol: String,
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

impl CaseView<'_> {
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
                relay: deposit.map(|applied| self.hub(applied)),
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
                relay: outcome.map(|applied| Hub {
                    solver: Some(order.solver.clone()),
                    ..self.hub(applied)
                }),
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

    fn hub(&self, applied: &Applied) -> Hub {
        let own = self.deposit().map(|deposit| deposit.amount);
        let moved = moved(applied, own);
        Hub {
            amount: moved.map(|(_, amount)| amount.to_string()),
            chain_id: applied.chain,
            currency: moved.map(|(token, _)| token.to_string()),
            hash: applied.transaction.clone(),
            operation: operation(applied),
            solver: None,
            token_metadata: moved.and_then(|_| self.deposited()),
        }
    }

    /// The currency of the deposit, as the quote knew it.
    fn deposited(&self) -> Option<TokenMetadata> {
        let (deposit, details) = (self.deposit()?, self.details()?);
        let deposited = (&*deposit.network, &*deposit.currency);
        let known = [&details.refund_currency, &details.currency_in];
        let mut known = known.into_iter().map(|amount| &amount.currency);
        let same = known.find(|known| self.is_quoted(known, deposited))?;
        Some(TokenMetadata {
            decimals: same.decimals,
            name: same.name.clone(),
            symbol: same.symbol.clone(),
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

/// `mint`, `burn`, `transfer` or `mixed`, by the first word of each action: it is its kind (guide: protocol 5.1).
fn operation(applied: &Applied) -> &'static str {
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
    match () {
        () if all(&[0, 3]) => "mint",
        () if all(&[1]) => "burn",
        () if all(&[2]) => "transfer",
        () => "mixed",
    }
}

/// The hub's token and how much of it was moved: the action that moves as much as the deposit, since deposits
/// of one transaction are taken together; else what all of them move of one token.
fn moved(applied: &Applied, own: Option<U256>) -> Option<(U256, U256)> {
    let read = |action: &Value| {
        let action = hex::decode(action.as_str()?).ok()?;
        match Action::decode(&action).ok()? {
            Action::Mint { token, amount, .. }
            | Action::Burn { token, amount, .. }
            | Action::Transfer { token, amount, .. }
            | Action::FastMint { token, amount, .. } => Some((token, amount)),
        }
    };
    let all = list(&applied.execution, "actions").map(read);
    let all = all.collect::<Option<Vec<(U256, U256)>>>()?;
    if let Some(alone) = all.iter().find(|(_, amount)| Some(*amount) == own) {
        return Some(*alone);
    }
    let (token, _) = *all.first()?;
    let sum = all.iter().try_fold(U256::ZERO, |sum, (other, amount)| {
        sum.checked_add(*amount).filter(|_| *other == token)
    });
    Some((token, sum?))
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
