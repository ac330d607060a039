//! Tries transactions at one node. Nothing is sent.

use async_trait::async_trait;
use serde_json::Value;
use solana_pubkey::Pubkey;

use super::{
    super::raw::RawTrial,
    UNIT,
    body::{Content, Instructions, Payments, key},
    lookup, message,
    node::Node,
    pay::Facts,
};
use crate::{
    CodecError, ReadError,
    protocol::text,
    trade::{Call, Revert, Simulator, Trial},
    types::Bytes,
};

/// The most compute units of a transaction.
pub const MOST_UNITS: u32 = 1_400_000;
/// What nodes say of a transaction that they could not try.
const NOT_TRIED: [&str; 3] = ["BlockhashNotFound", "AccountInUse", "ClusterMaintenance"];

#[async_trait]
impl Simulator for Node {
    async fn estimate(&self, trial: &Trial<'_>) -> Result<Result<u64, Revert>, ReadError> {
        let raw = match Content::of(trial.draft).map_err(doubtful)? {
            Content::Payments(payments) => self.paying(trial, &payments).await?,
            Content::Instructions(own) => self.doing(trial, &own).await?,
        };
        let asked = self.link.questions.simulate(&raw);
        judged(self.link.read(Box::pin(asked)).await?)
    }

    async fn simulate(&self, _: &[Call]) -> Result<Result<u64, Revert>, ReadError> {
        Err(ReadError::Unavailable("solana-vm makes no calls".into()))
    }
}

impl Node {
    /// The transaction of payments, without a signature.
    async fn paying(&self, trial: &Trial<'_>, payments: &Payments) -> Result<Bytes, ReadError> {
        let payer = key(&trial.draft.from).map_err(doubtful)?;
        let mut facts = self.facts(payments).await?;
        let made = payments.made(&facts).map_err(doubtful)?;
        facts.there = self.there(&made).await?;
        let list = payments.instructions(&payer, &facts).map_err(doubtful)?;
        let list = [&message::budget(units(trial), 0)[..], &list].concat();
        let message = message::compile(&payer, &list, &[], [0; 32]).map_err(doubtful)?;
        Ok(message::unsigned(&message))
    }

    /// The transaction of a list of instructions, without a signature.
    async fn doing(&self, trial: &Trial<'_>, own: &Instructions) -> Result<Bytes, ReadError> {
        let sender = key(&trial.draft.from).map_err(doubtful)?;
        let payer = own.fee_payer.map_or(sender, Pubkey::new_from_array);
        let tables = lookup::read(self, &own.keys()).await?;
        let list = own.list.iter().map(Into::into);
        let mut list: Vec<solana_instruction::Instruction> = list.collect();
        if own.work_limit {
            let [limit, _] = message::budget(units(trial), 0);
            list.insert(0, limit);
        }
        let message = message::compile(&payer, &list, &tables, [0; 32]).map_err(doubtful)?;
        Ok(message::unsigned(&message))
    }

    /// What this node says of the payments' currencies.
    async fn facts(&self, payments: &Payments) -> Result<Facts, ReadError> {
        let mut facts = Facts::default();
        for key in payments.mints() {
            let mint = self.mint(&key).await?;
            let none = || ReadError::Doubtful(format!("no mint at {key}"));
            facts.mints.push(mint.ok_or_else(none)?);
        }
        Ok(facts)
    }
}

/// Compute units that a trial may take.
fn units(trial: &Trial<'_>) -> u32 {
    let most = trial.most.map(|work| work.saturating_mul(UNIT));
    let most = most.and_then(|units| u32::try_from(units).ok());
    most.unwrap_or(MOST_UNITS).min(MOST_UNITS)
}

/// The work that a node found, or why the transaction would fail.
fn judged(trial: RawTrial) -> Result<Result<u64, Revert>, ReadError> {
    let Some(error) = trial.err else {
        let units = trial.units_consumed;
        let units = units.ok_or_else(|| ReadError::Unavailable("no units are told".into()))?;
        return Ok(Ok(units.div_ceil(UNIT).max(1)));
    };
    let reason = match &error {
        Value::String(name) => name.clone(),
        other => other.to_string(),
    };
    if NOT_TRIED.contains(&reason.as_str()) {
        return Err(ReadError::Unavailable(reason));
    }
    let said = trial.logs.unwrap_or_default().pop();
    let reason = match said {
        Some(said) => format!("{}: {}", text::short(&reason), text::short(&said)),
        None => text::short(&reason),
    };
    Ok(Err(Revert {
        reason,
        data: Bytes::new(),
    }))
}

fn doubtful(error: CodecError) -> ReadError {
    ReadError::Doubtful(error.to_string())
}

#[cfg(test)]
mod tests;
