//! Deposit attestations.

use serde_json::Value;
use vm::{Amount, LARGE_EVENTS, Seen, aside, evidence::Rule, protocol::message::Execution};

use super::{Attested, Attestor, Error};
use crate::attest::{
    Refusal,
    deposit::{self, Judged, Message},
    execution::{self, FastMint},
    peers::Question,
    read,
    statement::{Mode, Statement},
};

/// A request for a deposit attestation.
#[derive(Clone, Debug)]
pub struct DepositClaim {
    pub chain: String,
    pub transaction: String,
    pub mode: Mode,
    /// Whether the caller showed a valid key.
    pub keyed: bool,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

/// The deposits of a transaction, with an execution if there are any.
#[derive(Clone, Debug)]
pub struct DepositAnswer {
    pub messages: Vec<Message>,
    pub attested: Option<Attested>,
}

impl Attestor {
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
        let judged = |seen: &Seen<'_>| judge(seen).map(drop);
        // In slow mode the deposits do not decide what is final: they are judged once.
        let rule: read::Judge<'_> = match claim.mode {
            Mode::Fast => &judged,
            Mode::Slow => read::SETTLED,
        };
        let found = read::transactions(&wanted, self.hub.permits(), rule).await?;
        let [found] = &found[..] else {
            return Err(Error::Setup("one read has one answer".into()));
        };
        if found.spec.family.unknown_is_empty && found.is_missing() {
            return Ok(DepositAnswer {
                messages: Vec::new(),
                attested: None,
            });
        }
        let seen = found.seen();
        let judged = aside(found.events() > LARGE_EVENTS, || judge(&seen))?;
        let Some((execution, statement)) = self.minted(&seen, &judged)? else {
            return Ok(DepositAnswer {
                messages: judged.messages,
                attested: None,
            });
        };
        if judged.mode == Mode::Fast {
            self.check_fast(claim, &judged.messages)?;
            self.within_budget(&judged.messages).await?;
        }
        let attested = self.seal(execution, &statement, asked).await?;
        Ok(DepositAnswer {
            messages: judged.messages,
            attested: Some(attested),
        })
    }

    /// What mints the deposits of a transaction, and the statement about it; `None` without deposits.
    pub(super) fn minted(
        &self,
        seen: &Seen<'_>,
        judged: &Judged,
    ) -> Result<Option<(Execution, Statement)>, Error> {
        let execution = execution::deposit(&judged.messages, judged.mode, self.fast_mint());
        let execution = execution.map_err(|error| Error::Setup(error.to_string()))?;
        let Some(execution) = execution else {
            return Ok(None);
        };
        let rule = Rule {
            chain: seen.spec.id.clone(),
            finality: judged.finality.clone(),
            fast: judged.mode == Mode::Fast,
        };
        let statement = Statement::deposit(
            &seen.spec.id,
            seen.transaction,
            judged.mode,
            &seen.receipt().map_err(Refusal::from)?.block,
            self.digest(&execution),
        )
        .judged_by(rule);
        Ok(Some(match seen.settled() {
            Ok(_) => (execution, statement),
            Err(_) => (execution, statement.early()),
        }))
    }

    /// Refuses fast mode to callers without a key where it costs others something. Where the hub takes a fee, the
    /// deposit's recipient pays it. And money that was minted for an order is out of reach once a reorg changes the
    /// deposit's block time: the account depends on that time, and the idempotency key does not.
    fn check_fast(&self, claim: &DepositClaim, messages: &[Message]) -> Result<(), Refusal> {
        let costs = self.hub.settings.fee_calculator.is_some();
        let mut accounts = messages.iter().map(execution::order_account);
        match !claim.keyed && (costs || accounts.any(|account| account.is_some())) {
            true => Err(Refusal::FastNotAllowed),
            false => Ok(()),
        }
    }

    /// Refuses deposits above the hub's rate limit. The limiter decides again when the hub mints, so an unreachable
    /// limiter stops nothing here.
    async fn within_budget(&self, messages: &[Message]) -> Result<(), Error> {
        let mut totals: Vec<(&Message, Amount)> = Vec::new();
        for message in messages {
            let (currency, amount) = (&message.deposit.currency, message.deposit.amount);
            let known = totals
                .iter_mut()
                .find(|(first, _)| first.deposit.currency == *currency);
            match known {
                Some((_, total)) => *total = total.saturating_add(amount),
                None => totals.push((message, amount)),
            }
        }
        for (message, total) in totals {
            let (chain, currency) = (&message.chain, &message.deposit.currency);
            match self.hub.can_consume(chain, currency, total).await {
                Ok(true) => {}
                Ok(false) => return Err(Refusal::FastLimit.into()),
                Err(error) => tracing::warn!(%chain, %error, "the rate limiter does not answer"),
            }
        }
        Ok(())
    }

    fn fast_mint(&self) -> Option<FastMint> {
        let settings = &self.hub.settings;
        settings.rate_limiter.map(|rate_limiter| FastMint {
            rate_limiter,
            fee_calculator: settings.fee_calculator.unwrap_or_default(),
        })
    }
}
