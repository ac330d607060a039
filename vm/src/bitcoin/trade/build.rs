//! What users sign on Bitcoin, and what the solver sends. An OP_RETURN names the order. Pure.

use bitcoin::{Amount as Satoshis, TxOut};
use serde_json::Value;

use super::{
    body::{self, Content},
    steps,
};
use crate::{
    Codec, CodecError,
    bitcoin::network::Network,
    trade::{
        DepositTerms, Draft, Fill, FillTerms, PaymentTerms, Payout, Step, StepBuilder, StepFee,
    },
    types::{Address, B256},
};

impl StepBuilder for Network {
    fn deposit(&self, terms: &DepositTerms<'_>) -> Result<Vec<Step>, CodecError> {
        steps::deposit(self, terms)
    }

    fn send(&self, terms: &PaymentTerms<'_>) -> Result<Draft, CodecError> {
        let payout = Payout {
            to: terms.to.clone(),
            currency: terms.currency.clone(),
            amount: terms.amount,
        };
        payment(self, terms.from, &[payout], terms.order)
    }

    fn name(&self, draft: Draft, order: B256) -> Result<Draft, CodecError> {
        let named = match Content::of(&draft)? {
            Content::Outputs(outputs) => Content::Outputs(body::naming(outputs, order)),
            Content::Psbt(psbt) => Content::Psbt(Box::new(steps::name(*psbt, order)?)),
        };
        let named = named.draft(&draft.from, 0);
        Ok(Draft {
            value: draft.value,
            ..named
        })
    }

    fn fill(&self, terms: &FillTerms<'_>) -> Result<Fill, CodecError> {
        let calls = !terms.calls.is_empty() || !terms.authorizations.is_empty();
        if calls || terms.router.is_some() || terms.proxy.is_some() {
            return Err(CodecError("bitcoin-vm makes no calls".into()));
        }
        if terms.payments.is_empty() {
            return Err(CodecError("Nothing to fill".into()));
        }
        Ok(Fill {
            draft: payment(self, terms.solver, terms.payments, terms.order)?,
            routed: false,
            spender: None,
        })
    }

    fn render(&self, draft: &Draft, shown: StepFee) -> Result<Value, CodecError> {
        steps::render(self, draft, shown)
    }
}

/// Payments of `from` that name an order. What is too small for nodes is refused when it is simulated: whether a
/// payment can be made is no matter of its form.
fn payment(
    network: &Network,
    from: &Address,
    payouts: &[Payout],
    order: B256,
) -> Result<Draft, CodecError> {
    let paid = payouts.iter().map(|payout| output(network, from, payout));
    let mut outputs: Vec<TxOut> = paid.collect::<Result<_, _>>()?;
    let value = body::sum(&outputs);
    outputs.push(body::note(order));
    Ok(Content::Outputs(outputs).draft(from, value))
}

fn output(network: &Network, from: &Address, payout: &Payout) -> Result<TxOut, CodecError> {
    let Payout {
        to,
        currency,
        amount,
    } = payout;
    let native = network.encode_address(network.native())?;
    if currency.bytes() != native {
        return Err(CodecError("bitcoin-vm has no other currencies".into()));
    }
    // Such an output would be change, and pay nobody.
    if from == to {
        return Err(CodecError("The payer would pay itself".into()));
    }
    if to.bytes() == native {
        return Err(CodecError("Nobody has the account of zeros".into()));
    }
    let value = u64::try_from(*amount).ok().map(Satoshis::from_sat);
    let value = value.filter(|value| *value <= Satoshis::MAX_MONEY && *value > Satoshis::ZERO);
    let wrong = || CodecError("an amount of no bitcoin, or of more than there is".into());
    let to = network.decode_address(to.bytes())?;
    Ok(TxOut {
        value: value.ok_or_else(wrong)?,
        script_pubkey: network.script(&to)?,
    })
}

#[cfg(test)]
mod tests;
