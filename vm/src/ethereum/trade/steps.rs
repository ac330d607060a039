//! What users and the solver call: allowances, deposits, payments, fills. Pure.
//!
//! The order id stands where `deposit`, `suffix` and `decode` find it again: as the depository's
//! argument, or as the last 32 bytes of the calldata.

use alloy::sol_types::SolCall;
use serde_json::{Value, json};

use super::{parts, versions::Price};
use crate::{
    CodecError, OrderCall,
    ethereum::{
        abi::{ApprovalProxy, Depository, FillRouter, Token},
        address::evm,
    },
    trade::{
        ApprovalSteps, Authorization, Body, Call, DepositTerms, Draft, Fill, FillTerms,
        PaymentTerms, Spend, Step, StepBuilder, StepFee, StepKind,
    },
    types::{Address, Amount, B256, Bytes, EvmAddress},
};

/// How many times the usual work a step may take that cannot be estimated yet: some chains count more work for it.
const UNKNOWN: u64 = 3;

/// The transactions of this family.
pub struct Steps;

impl StepBuilder for Steps {
    fn deposit(&self, terms: &DepositTerms<'_>) -> Result<Vec<Step>, CodecError> {
        check_order(terms.order)?;
        let user = evm(terms.user)?;
        let depository = evm(terms.depository)?;
        let token = evm(terms.currency)?;
        let (to, data, value) = if token.is_zero() {
            let call = Depository::depositNativeCall {
                depositor: user,
                id: terms.order,
            };
            (terms.depository, call.abi_encode(), terms.amount)
        } else if terms.explicit {
            let call = Depository::depositErc20Call {
                depositor: user,
                token,
                amount: terms.amount,
                id: terms.order,
            };
            (terms.depository, call.abi_encode(), Amount::ZERO)
        } else {
            let data = transfer(depository, terms.amount, terms.order);
            (terms.currency, data, Amount::ZERO)
        };
        let mut steps = terms.before.to_vec();
        if terms.explicit && !token.is_zero() && terms.approved < terms.amount {
            let spend = Spend {
                spender: terms.depository,
                currency: terms.currency,
                amount: terms.amount,
            };
            let reset = terms.reset && !terms.approved.is_zero();
            steps.extend(self.approve(terms.user, &spend, reset)?);
        }
        steps.push(Step {
            kind: StepKind::Deposit,
            draft: Draft::call(call(terms.user, to, data, value)),
        });
        Ok(steps)
    }

    fn send(&self, terms: &PaymentTerms<'_>) -> Result<Draft, CodecError> {
        Ok(Draft::call(payment(terms)?))
    }

    fn name(&self, draft: Draft, order: B256) -> Result<Draft, CodecError> {
        check_order(order)?;
        let (named, _) = parts(&draft)?;
        let mut data = named.data.to_vec();
        data.extend(order);
        Ok(Draft::call(Call {
            data: data.into(),
            ..named
        }))
    }

    fn fill(&self, terms: &FillTerms<'_>) -> Result<Fill, CodecError> {
        check_order(terms.order)?;
        if terms.payments.iter().any(|paid| paid.to == *terms.solver) {
            return Err(CodecError("The solver would pay itself".into()));
        }
        let call = match (terms.payments, terms.calls) {
            ([], []) => return Err(CodecError("Nothing to fill".into())),
            ([paid], []) => payment(&PaymentTerms {
                from: terms.solver,
                to: &paid.to,
                currency: &paid.currency,
                amount: paid.amount,
                order: terms.order,
            })?,
            _ => routed(terms)?,
        };
        let spender = terms.proxy.filter(|proxy| **proxy == call.to).cloned();
        Ok(Fill {
            routed: spender.is_some() || terms.router == Some(&call.to),
            spender,
            draft: delegating(call, terms.authorizations.to_vec()),
        })
    }

    fn render(&self, draft: &Draft, shown: StepFee) -> Result<Value, CodecError> {
        let (call, _) = parts(draft)?;
        // Published clients want the number in every step, and what is not taken is not paid for.
        let usual = || shown.work.saturating_mul(UNKNOWN);
        let price = Price::first(shown.rate, u128::MAX);
        Ok(json!({
            "from": call.from.text(),
            "to": call.to.text(),
            "data": call.data,
            "value": call.value.to_string(),
            "chainId": shown.number,
            "gas": shown.limit.unwrap_or_else(usual).to_string(),
            "maxFeePerGas": price.most.to_string(),
            "maxPriorityFeePerGas": price.tip.to_string(),
        }))
    }
}

impl ApprovalSteps for Steps {
    fn approve(
        &self,
        owner: &Address,
        spend: &Spend<'_>,
        reset: bool,
    ) -> Result<Vec<Step>, CodecError> {
        let spender = evm(spend.spender)?;
        evm(owner)?;
        if evm(spend.currency)?.is_zero() {
            return Err(CodecError("A native currency has no allowances".into()));
        }
        let zero = reset.then_some(Amount::ZERO);
        let steps = zero.into_iter().chain([spend.amount]).map(|amount| {
            let data = Token::approveCall { spender, amount }.abi_encode();
            Step {
                kind: StepKind::Approve,
                draft: Draft::call(call(owner, spend.currency, data, Amount::ZERO)),
            }
        });
        Ok(steps.collect())
    }
}

fn delegating(call: Call, authorizations: Vec<Authorization>) -> Draft {
    Draft {
        from: call.from,
        value: call.value,
        body: Body::Call {
            to: call.to,
            data: call.data,
            authorizations,
        },
    }
}

fn call(from: &Address, to: &Address, data: impl Into<Bytes>, value: Amount) -> Call {
    Call {
        from: from.clone(),
        to: to.clone(),
        data: data.into(),
        value,
    }
}

/// Sixteen leading zero bytes would be read as padding: the money would belong to nobody.
fn check_order(order: B256) -> Result<(), CodecError> {
    if order[..16] == [0; 16] {
        return Err(CodecError(format!("Not an order id: {order}")));
    }
    Ok(())
}

fn transfer(to: EvmAddress, amount: Amount, order: B256) -> Vec<u8> {
    let mut data = Token::transferCall { to, amount }.abi_encode();
    data.extend(order);
    data
}

fn payment(terms: &PaymentTerms<'_>) -> Result<Call, CodecError> {
    check_order(terms.order)?;
    let to = evm(terms.to)?;
    // It would succeed, and pay nobody.
    if evm(terms.from)? == to {
        return Err(CodecError("The sender would pay itself".into()));
    }
    if evm(terms.currency)?.is_zero() {
        let data = Bytes::copy_from_slice(terms.order.as_slice());
        return Ok(call(terms.from, terms.to, data, terms.amount));
    }
    let data = transfer(to, terms.amount, terms.order);
    Ok(call(terms.from, terms.currency, data, Amount::ZERO))
}

fn routed(terms: &FillTerms<'_>) -> Result<Call, CodecError> {
    let router = terms
        .router
        .ok_or_else(|| CodecError("The chain has no fill router".into()))?;
    evm(router)?;
    let (mut payments, mut calls) = (Vec::new(), Vec::new());
    for paid in terms.payments {
        let (token, to, amount) = (evm(&paid.currency)?, evm(&paid.to)?, paid.amount);
        if token.is_zero() {
            calls.push(FillRouter::Call {
                to,
                data: Bytes::new(),
                value: amount,
            });
        } else {
            payments.push(ApprovalProxy::Payment { token, to, amount });
        }
    }
    for call in terms.calls {
        calls.push(ordered(call)?);
    }
    let (to, mut data) = if payments.is_empty() {
        (router, FillRouter::fillCall { calls }.abi_encode())
    } else {
        let missing = || CodecError("The chain has no approval proxy".into());
        let proxy = terms.proxy.ok_or_else(missing)?;
        let fill = ApprovalProxy::fillCall { payments, calls };
        (proxy, fill.abi_encode())
    };
    data.extend(terms.order);
    let value = value(router, terms).ok_or_else(|| CodecError("Too much value".into()))?;
    Ok(call(terms.solver, to, data, value))
}

/// The router reports a call without data as a payment: no oracle would find it among the calls.
fn ordered(call: &OrderCall) -> Result<FillRouter::Call, CodecError> {
    if call.data.is_empty() {
        return Err(CodecError("A call without data is a payment".into()));
    }
    Ok(FillRouter::Call {
        to: evm(&call.to)?,
        data: call.data.clone(),
        value: call.value,
    })
}

/// What the router must be sent: what the calls need comes first out of what it is paid itself.
fn value(router: &Address, terms: &FillTerms<'_>) -> Option<Amount> {
    let mut out = Amount::ZERO;
    let mut kept = Amount::ZERO;
    for paid in terms.payments {
        if evm(&paid.currency).ok()?.is_zero() {
            let sum = if paid.to == *router {
                &mut kept
            } else {
                &mut out
            };
            *sum = sum.checked_add(paid.amount)?;
        }
    }
    let mut spent = Amount::ZERO;
    for call in terms.calls {
        spent = spent.checked_add(call.value)?;
    }
    out.checked_add(kept.max(spent))
}

#[cfg(test)]
mod tests;
