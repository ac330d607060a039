//! Builds the transfers of users and of the solver. The memo names the order. Pure.

use serde_json::{Value, json};

use crate::{
    CodecError,
    trade::{
        DepositTerms, Draft, Fill, FillTerms, PaymentTerms, Step, StepBuilder, StepFee, StepKind,
    },
    types::{Address, Amount, B256},
};

use super::{
    codec::{address, spelled},
    transaction::{Payments, Transfer},
};

/// The steps of the family.
pub struct Steps;

impl StepBuilder for Steps {
    fn deposit(&self, terms: &DepositTerms<'_>) -> Result<Vec<Step>, CodecError> {
        let draft = self.send(&PaymentTerms {
            from: terms.user,
            to: terms.depository,
            currency: terms.currency,
            amount: terms.amount,
            order: terms.order,
        })?;
        let mut steps = terms.before.to_vec();
        steps.push(Step {
            kind: StepKind::Deposit,
            draft,
        });
        Ok(steps)
    }

    fn send(&self, terms: &PaymentTerms<'_>) -> Result<Draft, CodecError> {
        let payments = Payments {
            memo: Some(terms.order),
            transfers: vec![transfer(
                terms.from,
                terms.to,
                (terms.currency, terms.amount),
            )?],
        };
        payments.draft(terms.from)
    }

    fn name(&self, draft: Draft, order: B256) -> Result<Draft, CodecError> {
        let payments = Payments {
            memo: Some(order),
            ..Payments::of(&draft)?
        };
        payments.draft(&draft.from)
    }

    fn fill(&self, terms: &FillTerms<'_>) -> Result<Fill, CodecError> {
        let calls = !terms.calls.is_empty() || !terms.authorizations.is_empty();
        if calls || terms.router.is_some() || terms.proxy.is_some() {
            return Err(CodecError("scripted-vm makes no calls".into()));
        }
        if terms.payments.is_empty() {
            return Err(CodecError("Nothing to fill".into()));
        }
        let transfers = terms.payments.iter();
        let transfers =
            transfers.map(|paid| transfer(terms.solver, &paid.to, (&paid.currency, paid.amount)));
        let payments = Payments {
            memo: Some(terms.order),
            transfers: transfers.collect::<Result<_, _>>()?,
        };
        Ok(Fill {
            draft: payments.draft(terms.solver)?,
            routed: false,
            spender: None,
        })
    }

    fn render(&self, draft: &Draft, shown: StepFee) -> Result<Value, CodecError> {
        let payments = Payments::of(draft)?;
        let transfers = payments.transfers.iter().map(|one| {
            json!({
                "to": spelled(one.to).text(), "currency": spelled(one.currency).text(),
                "amount": one.amount.to_string(),
            })
        });
        let transfers: Vec<_> = transfers.collect();
        Ok(json!({
            "chain": shown.number,
            "instructions": {
                "payer": draft.from.text(), "memo": payments.memo, "transfers": transfers,
            },
            "fee": shown.rate.of(shown.work).to_string(),
        }))
    }
}

fn transfer(
    from: &Address,
    to: &Address,
    (currency, amount): (&Address, Amount),
) -> Result<Transfer, CodecError> {
    // Such a transfer would succeed and pay nobody.
    if from == to {
        return Err(CodecError("The payer would pay itself".into()));
    }
    let (to, currency) = (address(to)?, address(currency)?);
    if to.is_zero() {
        return Err(CodecError("Nobody has the account of zeros".into()));
    }
    Ok(Transfer {
        to,
        currency,
        amount,
    })
}
