//! Transfers between hub accounts (guide: protocol 8.6).

use vm::{
    ChainId,
    protocol::{hub::token_id, message},
};

use super::{Attested, Attestor, Error};
use crate::attest::{
    Refusal,
    claim::malformed,
    execution::Movement,
    owner::{OwnerSignature, Requested},
    peers::Question,
    statement::Statement,
};

/// A request to move a balance to another hub account.
#[derive(Clone, Debug)]
pub struct TransferClaim {
    /// The recipient is a hub account; the nonce is any text.
    pub requested: Requested,
    /// The owner's, of the request.
    pub signature: OwnerSignature,
}

impl Attestor {
    /// Attests that an owner's balance moves to another hub account.
    pub async fn transfer(
        &self,
        claim: &TransferClaim,
        question: Option<&Question>,
    ) -> Result<Attested, Error> {
        let requested = &claim.requested;
        let amount = requested.amount()?;
        let chain = &requested.chain;
        let family = self.family(chain);
        let family = family.ok_or_else(|| Refusal::ChainNotAvailable(chain.into()))?;
        let currency = family.address(&requested.currency);
        let currency = currency.map_err(|why| malformed("body/currency", why))?;
        let to = message::address(&requested.recipient);
        let to = to.map_err(|why| malformed("body/recipient", why))?;
        let owner = requested.owner(&|chain| self.family(chain))?;
        self.check_owner((requested, &owner), &claim.signature)
            .await?;
        let asked = self.ask(question);
        let token = token_id(&ChainId::new(chain), &currency);
        let held = self.hub.holds(owner.account, token, amount).await?;
        let block = held.ok_or_else(|| requested.insufficient())?;
        let (hub, nonce) = (&self.hub.settings.id, &requested.nonce);
        let movement = Movement {
            from: owner.account,
            to,
            token,
            amount,
        };
        let execution = movement.execution(hub, nonce);
        let digest = self.digest(&execution);
        let hub = ChainId::new(hub);
        let once = (owner.account, nonce.as_str());
        let statement = Statement::transfer(&hub, once, execution.idempotency_key, digest);
        let statement = statement.as_of(&hub, &block);
        self.check_room(&statement).await?;
        self.seal(execution, &statement, asked).await
    }
}
