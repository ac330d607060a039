//! Deposit attestations.

use serde_json::Value;

use super::{Attested, Error, Oracle};
use crate::attest::{
    claim::Seen,
    deposit::{self, Message},
    execution::{self, FastMint},
    peers::Question,
    read,
    statement::{Mode, Statement},
};

/// A deposit attestation as asked for.
#[derive(Clone, Debug)]
pub struct DepositClaim {
    pub chain: String,
    pub transaction: String,
    pub mode: Mode,
    /// One field per family.
    pub hints: Option<Value>,
}

/// The deposits of a transaction; an execution if there are any.
#[derive(Clone, Debug)]
pub struct DepositAnswer {
    pub messages: Vec<Message>,
    pub attested: Option<Attested>,
}

impl Oracle {
    /// Attests the deposits of one transaction.
    pub async fn deposit(
        &self,
        claim: &DepositClaim,
        question: Option<&Question>,
    ) -> Result<DepositAnswer, Error> {
        let hints = claim.hints.as_ref();
        let path = "body/transactionId";
        let wanted = [self.wanted(&claim.chain, &claim.transaction, hints, path)?];
        let asked = self.ask(question);
        let judge = |seen: &Seen<'_>| deposit::judge(seen, claim.mode);
        let found = read::transactions(&wanted, &|seen| judge(seen).map(|_| ())).await?;
        let [found] = &found[..] else {
            return Err(Error::Setup("one read has one answer".into()));
        };
        let seen = found.seen();
        let judged = judge(&seen)?;
        let Some(execution) = execution::deposit(&judged.messages, judged.mode, self.fast_mint())
            .map_err(|error| Error::Setup(error.to_string()))?
        else {
            return Ok(DepositAnswer {
                messages: judged.messages,
                attested: None,
            });
        };
        let statement = Statement::deposit(
            &found.spec.id,
            &found.transaction,
            judged.mode,
            &seen.receipt()?.block,
            self.digest(&execution),
        );
        let attested = self.seal(execution, &statement, asked).await?;
        Ok(DepositAnswer {
            messages: judged.messages,
            attested: Some(attested),
        })
    }

    fn fast_mint(&self) -> Option<FastMint> {
        let settings = &self.hub.settings;
        settings.rate_limiter.map(|rate_limiter| FastMint {
            rate_limiter,
            fee_calculator: settings.fee_calculator.unwrap_or_default(),
        })
    }
}
