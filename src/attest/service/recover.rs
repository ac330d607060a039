//! Deposits that return to their depositors through the hub (guide: protocol 7.6).

use serde_json::Value;
use vm::{
    B256, Block, ChainId, Seen, aside,
    protocol::{hub::token_id, mapping, order::Order},
};

use super::{Attested, Attestor, Error, is_long};
use crate::{
    attest::{
        Refusal, basis,
        claim::malformed,
        deposit::{self, Message},
        execution,
        journal::JournalError,
        order::{self, Terms},
        peers::Question,
        read, recover,
        statement::Statement,
    },
    store::rows::{
        claim::{self, Claim},
        parked::{self, Parked, UNPAID},
    },
};

/// A request to return a deposit to its depositor.
#[derive(Clone, Debug)]
pub struct RecoverClaim {
    pub chain: String,
    pub transaction: String,
    pub onchain_id: String,
    /// The order that the deposit names, and its solver's signature.
    pub order: Option<(Order, String)>,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

impl Attestor {
    /// Attests that a deposit moves from its order's account back to its depositor's.
    pub async fn recover(
        &self,
        claim: &RecoverClaim,
        question: Option<&Question>,
    ) -> Result<Attested, Error> {
        let hints = claim.hints.as_ref();
        let path = "body/transactionId";
        let wanted = [self.wanted(&claim.chain, &claim.transaction, hints, path)?];
        let asked = self.ask(question);
        let found = read::transactions(&wanted, self.hub.permits(), read::SETTLED).await?;
        let seen: Vec<_> = found.iter().map(read::Found::seen).collect();
        let seen = seen.first().ok_or(Refusal::NoDeposit)?;
        // Other deposits of the transaction do not affect this one.
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
    /// share an account, which may hold the others' money. Where the hub gives no answer, the check passes for a
    /// deposit that can still be minted.
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
                tracing::warn!(%error, "the hub does not answer whether it minted a deposit");
                Ok(())
            }
        }
    }

    /// Refuses a deposit that may still pay the order's solver: a young deposit needs its order, and a claimable one
    /// needs the solver's statement at the hub.
    async fn check_entitled(
        &self,
        claim: &RecoverClaim,
        message: &Message,
        order: B256,
    ) -> Result<(), Error> {
        basis::not_only_rows();
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

    /// Whether the order's solver has stated at the hub that it neither filled nor refunded the order.
    pub(super) async fn is_given_up(&self, given: &Order, order: B256) -> Result<bool, Error> {
        let user = self.solver(given)?;
        let entry = mapping::no_fill_or_refund(&user.to_checksum(None), &order.to_string());
        let entry = entry.map_err(|why| malformed("body/order/solver", why))?;
        Ok(self.hub.is_mapped(entry.user, entry.id).await?)
    }

    /// Refuses a deposit for which this daemon's own solver has paid, or may still pay: the solver records its claim
    /// before it sends anything. A payment that succeeded and paid nobody counts until the operator releases the deposit:
    /// somebody may have got it. Signs nothing when the claims cannot be read.
    pub(super) async fn check_unpaid(&self, message: &Message, order: B256) -> Result<(), Error> {
        basis::not_only_rows();
        let unsure = |why: String| Error::Journal(JournalError::Unsure(why));
        let known = self.requests.by_order(&order).await;
        let Some(request) = known.map_err(|error| unsure(error.to_string()))? else {
            return Ok(());
        };
        let row = self.requests.store().read(&claim::key(&request.id)).await;
        let row = row.map_err(|error| unsure(error.to_string()))?;
        let claimed = row.map(|row| Claim::decode(&row)).transpose();
        let claimed = claimed.map_err(|error| unsure(error.to_string()))?;
        let claimed = claimed.unwrap_or_default();
        let id = message.onchain_id;
        let paid = claimed.live().any(|leg| leg.deposit == id);
        // Claims of older versions do not say what is unpaid; the operator's list does.
        let key = parked::key(&request.id, &id);
        let listed = self.requests.store().read(&key).await;
        let listed = listed.map_err(|error| unsure(error.to_string()))?;
        let listed = listed.map(|row| Parked::decode(&row)).transpose();
        let listed = listed.map_err(|error| unsure(error.to_string()))?;
        let unpaid = listed.is_some_and(|row| row.note.starts_with(UNPAID));
        if paid || unpaid || claimed.unpaid.contains(&id) {
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
