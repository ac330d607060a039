//! The family of the chain: transactions and steps as JSON.

use alloy::primitives::{B256, Bytes, U256, keccak256};
use serde_json::{Value, json};
use vm::{
    Address, CodecError,
    ethereum::trade::{Limits, TransactionCodec, Transactions, Unsealed},
    trade::{
        ApprovalSteps, Body, Call, DepositTerms, Draft, Fill, FillTerms, PaymentTerms, Payout,
        Spend, Step, StepBuilder, StepFee, StepKind, Unfit,
    },
};

use super::{USUAL, world::native};

/// Drafts as JSON; what nodes take is what the family says.
pub struct Codec;

impl TransactionCodec for Codec {
    fn admit(&self, chain: u64, draft: &Unsealed, limits: &Limits) -> Result<Vec<Address>, Unfit> {
        let (bytes, most) = (shown(chain, draft).to_string().len(), limits.bytes);
        if bytes > most {
            return Err(Unfit::Large { bytes, most });
        }
        let limits = Limits {
            bytes: usize::MAX,
            ..limits.clone()
        };
        Transactions.admit(chain, draft, &limits)
    }

    fn data_fee(
        &self,
        _: u64,
        draft: &Unsealed,
        oracle: Option<&Address>,
    ) -> Result<Call, CodecError> {
        let call = draft.call.clone();
        let usual = || vm::SETTLEMENT.address(USUAL).unwrap();
        let to = oracle.cloned().unwrap_or_else(usual);
        Ok(Call { to, ..call })
    }

    fn routing(&self, proxy: &Address, router: &Address) -> Result<(Call, Bytes), CodecError> {
        let question = Call {
            from: proxy.clone(),
            to: proxy.clone(),
            data: Bytes::new(),
            value: U256::ZERO,
        };
        Ok((question, router.text().to_lowercase().into_bytes().into()))
    }

    fn digest(&self, chain: u64, draft: &Unsealed) -> Result<B256, CodecError> {
        Ok(keccak256(shown(chain, draft).to_string()))
    }

    fn seal(
        &self,
        chain: u64,
        draft: &Unsealed,
        signature: &[u8; 65],
    ) -> Result<(Bytes, B256), CodecError> {
        let mut shown = shown(chain, draft);
        shown["signature"] = alloy::hex::encode(signature).into();
        let raw = Bytes::from(shown.to_string().into_bytes());
        let hash = keccak256(&raw);
        Ok((raw, hash))
    }
}

fn shown(chain: u64, draft: &Unsealed) -> Value {
    json!({
        "chain": chain,
        "from": draft.call.from.text().to_lowercase(),
        "to": draft.call.to.text().to_lowercase(),
        "data": draft.call.data,
        "value": draft.call.value.to_string(),
        "nonce": draft.nonce,
        "gas": draft.gas,
        "max": draft.max_fee.to_string(),
        "tip": draft.max_priority_fee.to_string(),
    })
}

/// Steps as JSON.
pub struct Steps;

impl Steps {
    fn pay(from: &Address, router: Option<&Address>, payments: &[Payout], order: B256) -> Call {
        let low = |address: &Address| address.text().to_lowercase();
        let pay: Vec<_> = payments
            .iter()
            .map(|p| json!([low(&p.to), low(&p.currency), p.amount.to_string()]))
            .collect();
        let data = json!({ "order": order, "pay": pay, "router": router.map(low) });
        let value = payments
            .iter()
            .filter(|payment| low(&payment.currency) == native());
        Call {
            from: from.clone(),
            to: router.unwrap_or(&payments[0].to).clone(),
            data: Bytes::from(data.to_string().into_bytes()),
            value: value.fold(U256::ZERO, |sum, payment| sum + payment.amount),
        }
    }
}

impl StepBuilder for Steps {
    fn deposit(&self, _: &DepositTerms<'_>) -> Result<Vec<Step>, CodecError> {
        Err(CodecError("not here".into()))
    }

    fn send(&self, terms: &PaymentTerms<'_>) -> Result<Draft, CodecError> {
        let payment = Payout {
            to: terms.to.clone(),
            currency: terms.currency.clone(),
            amount: terms.amount,
        };
        let call = Self::pay(terms.from, None, &[payment], terms.order);
        Ok(Draft::call(call))
    }

    fn name(&self, draft: Draft, _: B256) -> Result<Draft, CodecError> {
        Ok(draft)
    }

    fn fill(&self, terms: &FillTerms<'_>) -> Result<Fill, CodecError> {
        let routed = terms.payments.len() > 1 || !terms.calls.is_empty();
        let token = |paid: &Payout| paid.currency.text().to_lowercase() != native();
        let proxied = terms.payments.iter().any(token);
        let router = if proxied { terms.proxy } else { terms.router };
        if routed && router.is_none() {
            return Err(CodecError("nobody takes it".into()));
        }
        let router = router.filter(|_| routed);
        let call = Self::pay(terms.solver, router, terms.payments, terms.order);
        let spender = terms.proxy.filter(|proxy| **proxy == call.to).cloned();
        Ok(Fill {
            routed: spender.is_some() || terms.router == Some(&call.to),
            spender,
            draft: Draft {
                from: call.from,
                value: call.value,
                body: Body::Call {
                    to: call.to,
                    data: call.data,
                    authorizations: terms.authorizations.to_vec(),
                },
            },
        })
    }

    fn render(&self, _: &Draft, _: StepFee) -> Result<Value, CodecError> {
        Err(CodecError("not here".into()))
    }
}

impl ApprovalSteps for Steps {
    fn approve(
        &self,
        owner: &Address,
        spend: &Spend<'_>,
        _: bool,
    ) -> Result<Vec<Step>, CodecError> {
        let low = |address: &Address| address.text().to_lowercase();
        let data = json!({ "approve": low(spend.spender), "currency": low(spend.currency),
            "amount": spend.amount.to_string() });
        Ok(vec![Step {
            kind: StepKind::Approve,
            draft: Draft::call(Call {
                from: owner.clone(),
                to: spend.currency.clone(),
                data: Bytes::from(data.to_string().into_bytes()),
                value: U256::ZERO,
            }),
        }])
    }
}
