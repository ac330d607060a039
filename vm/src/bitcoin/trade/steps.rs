//! What users sign: the deposit's PSBT (guide: protocol 11.5). Pure.

use bitcoin::Psbt;
use serde_json::{Value, json};

use super::{
    body::{self, Content},
    psbt_step,
};
use crate::{
    CodecError,
    bitcoin::network::Network,
    trade::{DepositTerms, Draft, Step, StepFee, StepKind},
    types::{Amount, B256},
};

/// The deposit that [`DepositTerms::funds`] has without its order. An error where that does not pay the depository the
/// amount in one output.
pub fn deposit(network: &Network, terms: &DepositTerms<'_>) -> Result<Vec<Step>, CodecError> {
    if !terms.before.is_empty() {
        return Err(CodecError("nothing is exchanged on the chain".into()));
    }
    let psbt = Psbt::deserialize(terms.funds).map_err(|error| CodecError(error.to_string()))?;
    let psbt = name(psbt, terms.order)?;
    let depository = network.script(terms.depository.text())?;
    let outputs = psbt.unsigned_tx.output.iter();
    let mut paid = outputs.filter(|output| output.script_pubkey == depository);
    let (Some(paid), None) = (paid.next(), paid.next()) else {
        return Err(CodecError(
            "not exactly one output to the depository".into(),
        ));
    };
    if Amount::from(paid.value.to_sat()) != terms.amount {
        return Err(CodecError("another amount than the deposit's".into()));
    }
    let value = paid.value.to_sat();
    let draft = Content::Psbt(Box::new(psbt)).draft(terms.user, value);
    let kind = StepKind::Deposit;
    Ok(vec![Step { kind, draft }])
}

/// The PSBT with the order's id in its OP_RETURN.
pub fn name(psbt: Psbt, order: B256) -> Result<Psbt, CodecError> {
    psbt_step::with_note(psbt, &body::note(order))
}

/// The step's data: the PSBT as hex, which has its fee. An error for what no user signs.
pub fn render(_: &Network, draft: &Draft, _: StepFee) -> Result<Value, CodecError> {
    match Content::of(draft)? {
        Content::Psbt(psbt) => Ok(json!({ "psbt": psbt.serialize_hex() })),
        Content::Outputs(_) => Err(CodecError("its coins are not chosen".into())),
    }
}
