//! Transactions that tests can read.

use alloy::primitives::{Bytes, U256};
use vm::{
    Address, CodecError,
    trade::{
        Call, DepositTerms, FillTerms, PaymentTerms, Revert, Spend, Step, StepBuilder, StepCall,
    },
};

use super::{NATIVE, address};

/// Calls that are easy to read: a word, and the order.
pub struct Steps;

fn call(from: &Address, to: &Address, data: impl Into<Bytes>, value: U256) -> Call {
    Call {
        from: from.clone(),
        to: to.clone(),
        data: data.into(),
        value,
    }
}

impl StepBuilder for Steps {
    fn deposit(&self, terms: &DepositTerms<'_>) -> Result<Vec<StepCall>, CodecError> {
        let native = *terms.currency == address(NATIVE);
        let mut steps = Vec::new();
        if !native && terms.explicit && terms.allowance < terms.amount {
            let spend = Spend {
                spender: terms.depository,
                currency: terms.currency,
                amount: terms.amount,
            };
            steps.extend(self.approve(terms.user, &spend, terms.reset)?);
        }
        let to = if native || terms.explicit {
            terms.depository
        } else {
            terms.currency
        };
        let value = if native { terms.amount } else { U256::ZERO };
        let data = terms.order.to_vec();
        steps.push(StepCall {
            step: Step::Deposit,
            call: call(terms.user, to, data, value),
        });
        Ok(steps)
    }

    fn send(&self, terms: &PaymentTerms<'_>) -> Result<StepCall, CodecError> {
        Ok(StepCall {
            step: Step::Send,
            call: call(terms.from, terms.to, terms.order.to_vec(), terms.amount),
        })
    }

    fn approve(
        &self,
        owner: &Address,
        spend: &Spend<'_>,
        _: bool,
    ) -> Result<Vec<StepCall>, CodecError> {
        let data = [spend.spender.bytes(), &spend.amount.to_be_bytes::<32>()].concat();
        Ok(vec![StepCall {
            step: Step::Approve,
            call: call(owner, spend.currency, data, U256::ZERO),
        }])
    }

    fn fill(&self, terms: &FillTerms<'_>) -> Result<Call, CodecError> {
        let mut payments = terms.payments.iter();
        let token = payments.any(|paid| paid.currency != address(NATIVE));
        let routed = terms
            .router
            .filter(|_| terms.payments.len() > 1 || !terms.calls.is_empty());
        let to = match (routed, token) {
            (None, _) => terms.solver,
            (Some(router), false) => router,
            (Some(_), true) => terms.proxy.unwrap_or(terms.solver),
        };
        let sum = terms.payments.iter().map(|paid| paid.amount);
        let sum = sum.fold(U256::ZERO, U256::saturating_add);
        Ok(call(terms.solver, to, terms.order.to_vec(), sum))
    }

    fn explain(&self, data: &[u8]) -> Revert {
        Revert {
            reason: "explained".into(),
            data: Bytes::copy_from_slice(data),
        }
    }
}
