//! Orders that end at the hub, beside the executions of their deposits (guide: protocol 8.7).

use serde_json::Value;
use vm::{
    B256, ChainId, aside,
    protocol::{
        message::{self, ExecuteAndWithdraw},
        order::Order,
    },
};

use super::{Attested, Attestor, Error, is_long};
use crate::attest::{
    Refusal, backing,
    claim::malformed,
    deposit::{self, Message},
    exchange::Sole,
    order::{self, Terms},
    peers::{
        Question,
        answer::{Corroborated, Spelled},
    },
    read,
    statement::{Mode, Outcome, Statement},
};

/// A request to end an order at the hub.
#[derive(Clone, Debug)]
pub struct ExchangeClaim {
    pub outcome: Outcome,
    pub chain: String,
    pub transaction: String,
    pub onchain_id: String,
    pub order: Order,
    /// The solver's, of the order.
    pub signature: String,
    /// The solver's, for this claim: see [`backing::check_exchange`].
    pub solver_signature: Option<String>,
    pub nonce: String,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

/// What the executor is asked, with its signatures, beside the execution of the deposits.
#[derive(Clone, Debug)]
pub struct ExchangeAnswer {
    pub request: ExecuteAndWithdraw,
    pub signatures: Vec<Corroborated>,
    pub messages: Vec<Message>,
    pub attested: Attested,
}

impl Attestor {
    /// Attests a deposit, and that the executor may end its order with it. Nothing of the chain to which the executor
    /// withdraws is read: the order says where.
    pub async fn exchange(
        &self,
        claim: &ExchangeClaim,
        question: Option<&Question>,
    ) -> Result<ExchangeAnswer, Error> {
        let terms = Terms::new(&claim.order, &|chain| self.family(chain))?;
        order::check_signature(&claim.order.solver, terms.id, &claim.signature)?;
        let sole = Sole::of(&terms)?;
        let outcome = claim.outcome;
        let word = claim.solver_signature.as_deref();
        backing::check_exchange(outcome, &terms, &claim.onchain_id, word)?;
        let nonce = message::word(&claim.nonce).map_err(|why| malformed("body/nonce", why))?;
        let settings = &self.hub.settings;
        let executor = settings
            .executor
            .ok_or(Refusal::NotConfigured("executor"))?;
        let destination = self.spec(sole.destination(outcome))?;
        let (hints, path) = (claim.hints.as_ref(), "body/transactionId");
        let wanted = [self.wanted(&claim.chain, &claim.transaction, hints, path)?];
        let asked = self.ask(question);
        let found = read::transactions(&wanted, self.hub.permits(), read::SETTLED).await?;
        let seen: Vec<_> = found.iter().map(read::Found::seen).collect();
        let seen = seen.first().ok_or(Refusal::NothingAttested)?;
        let judged = aside(is_long(&found), || deposit::judge(seen, Mode::Slow))?;
        let message = sole.deposit(&judged.messages, &claim.onchain_id)?;
        // The solver of this daemon may have paid, or may be about to.
        self.check_unpaid(message, terms.id).await?;
        let request = sole.request(outcome, message, destination, nonce)?;
        let minted = self.minted(seen, &judged)?;
        let (execution, deposit) = minted.ok_or(Refusal::NothingAttested)?;
        let spelled = Spelled::exchange(&request, executor, settings);
        let statement = self.exchanged(outcome, message, (nonce, spelled.digest));
        let block = &seen.receipt().map_err(Refusal::from)?.block;
        let statement = statement.resting_on(&seen.spec.id, seen.transaction, block);
        self.check_room(&statement).await?;
        let credit = Spelled::execution(&execution, deposit.digest, settings);
        let messages = [(credit, &deposit), (spelled, &statement)];
        let [of_execution, signatures] = self.signed(messages, asked).await?;
        Ok(ExchangeAnswer {
            request,
            signatures,
            messages: judged.messages,
            attested: Attested {
                execution,
                signatures: of_execution,
            },
        })
    }

    fn exchanged(
        &self,
        outcome: Outcome,
        message: &Message,
        (nonce, digest): (B256, B256),
    ) -> Statement {
        let hub = ChainId::new(&self.hub.settings.id);
        Statement::exchange(&hub, (outcome, message.onchain_id, nonce), digest)
    }
}
