//! Deposits that go back to their depositors through the hub (guide: protocol 7.6).

use serde_json::Value;
use vm::{
    B256, Block, ChainId, Seen, aside,
    protocol::{hub::token_id, mapping, order::Order},
};

use super::{Attested, Attestor, Error, is_long};
use crate::{
    attest::{
        Refusal,
        claim::malformed,
        deposit::{self, Message},
        execution,
        journal::JournalError,
        order::{self, Terms},
        peers::Question,
        read, recover,
        statement::Statement,
    },
    store::rows::claim::{self, Claim, Stage},
};

/// A deposit that its depositor wants back.
#[derive(Clone, Debug)]
pub struct RecoverClaim {
    pub chain: String,
    pub transaction: String,
    pub onchain_id: String,
    /// The order that the deposit names, and the solver's signature of it.
    pub order: Option<(Order, String)>,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

impl Attestor {
    /// Attests that a deposit goes back from its order's account to its depositor's.
    pub async fn recover(
        &self,
        claim: &RecoverClaim,
        question: Option<&Question>,
    ) -> Result<Attested, Error> {
        let hints = claim.hints.as_ref();
        let path = "body/transactionId";
        let wanted = [self.wanted(&claim.chain, &claim.transaction, hints, path)?];
        let asked = self.ask(question);
        let found = read::transactions(&wanted, &self.places, read::SETTLED).await?;
        let seen: Vec<_> = found.iter().map(read::Found::seen).collect();
        let seen = seen.first().ok_or(Refusal::NoDeposit)?;
        // Other deposits of the same transaction do not matter to this one.
        let listed = aside(is_long(&found), || deposit::each(seen))?;
        let (message, order) = recover::named(&listed, &claim.onchain_id)?;
        let execution = execution::recovered(message)?;
        let account = execution::order_account(message).ok_or(Refusal::NoOrder)?;
        let token = token_id(&message.chain, &message.deposit.currency);
        let held = self.hub.holds(account, token, message.deposit.amount);
        let block = held.await?.ok_or(Refusal::NothingToRecover)?;
        self.check_minted(message, seen, &block).await?;
        self.check_unpaid(message, order).await?;
        self.check_entitled(claim, message, order).await?;
        let hub = ChainId::new(&self.hub.settings.id);
        let (digest, key) = (self.digest(&execution), execution.idempotency_key);
        let rests = &seen.receipt().map_err(Refusal::from)?.block;
        let statement = Statement::recover(message.onchain_id, key, digest)
            .resting_on(&seen.spec.id, seen.transaction, rests)
            .as_of(&hub, &block);
        self.seal(execution, &statement, asked).await
    }

    /// Refuses a deposit that the hub had not minted at `block`: deposits of one depositor for one order in one block
    /// share their account, which may hold another's money. Where the hub does not say, a deposit passes that can
    /// still be minted.
    async fn check_minted(
        &self,
        message: &Message,
        seen: &Seen<'_>,
        block: &Block,
    ) -> Result<(), Error> {
        match self
            .hub
            .is_executed(execution::mint_key(message), block)
            .await
        {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::NotMinted.into()),
            Err(error) => {
                let receipt = seen.receipt().map_err(Refusal::from)?;
                if !recover::is_mintable(receipt, message) {
                    return Err(error.into());
                }
                tracing::warn!(%error, "the hub does not say what it has minted");
                Ok(())
            }
        }
    }

    /// Refuses a deposit from which the order's solver may still be paid: a young deposit needs its order, and one
    /// that a claim can name needs the solver's statement at the hub.
    async fn check_entitled(
        &self,
        claim: &RecoverClaim,
        message: &Message,
        order: B256,
    ) -> Result<(), Error> {
        let young = recover::is_young(message, (self.clock)());
        let Some((given, signature)) = &claim.order else {
            return match young {
                true => Err(Refusal::OrderRequired.into()),
                false => Ok(()),
            };
        };
        let terms = Terms::new(given, &|chain| self.family(chain))?;
        recover::check_order(&terms, order)?;
        order::check_signature(&given.solver, terms.id, signature)?;
        if !young
            || !recover::is_claimable(&terms, message)
            || self.is_given_up(given, order).await?
        {
            return Ok(());
        }
        Err(Refusal::NotGivenUp.into())
    }

    /// Whether the order's solver has said at the hub that it neither filled nor refunded it.
    async fn is_given_up(&self, given: &Order, order: B256) -> Result<bool, Error> {
        let user = self.solver(given)?;
        let entry = mapping::no_fill_or_refund(&user.to_checksum(None), &order.to_string());
        let entry = entry.map_err(|why| malformed("body/order/solver", why))?;
        Ok(self.hub.is_mapped(entry.user, entry.id).await?)
    }

    /// Refuses a deposit that this daemon's own solver has paid for, or may still pay for: its claims say what it has
    /// begun before anything is sent. Where they cannot be read, nothing is signed.
    async fn check_unpaid(&self, message: &Message, order: B256) -> Result<(), Error> {
        let unsure = |why: String| Error::Journal(JournalError::Unsure(why));
        let known = self.requests.by_order(&order).await;
        let Some(request) = known.map_err(|error| unsure(error.to_string()))? else {
            return Ok(());
        };
        let row = self.requests.store().read(&claim::key(&request.id)).await;
        let row = row.map_err(|error| unsure(error.to_string()))?;
        let claimed = row.map(|row| Claim::decode(&row)).transpose();
        let claimed = claimed.map_err(|error| unsure(error.to_string()))?;
        let mut legs = claimed.iter().flat_map(|claim| &claim.legs);
        if legs.any(|leg| leg.deposit == message.onchain_id && leg.stage != Stage::Failed) {
            return Err(Refusal::PaymentVisible.into());
        }
        let terms = Terms::new(&request.order, &|chain| self.family(chain))?;
        let until = recover::open_until(&terms, message);
        if (self.clock)() <= until
            && recover::is_claimable(&terms, message)
            && !self.is_given_up(&request.order, order).await?
        {
            return Err(Refusal::OrderOpen(until).into());
        }
        Ok(())
    }
}
