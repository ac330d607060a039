//! Triggers of deposit addresses (guide: protocol 9.2).

use vm::{
    ChainId,
    protocol::{
        message::{self, Trigger},
        trigger,
    },
};

use super::{Attestor, Error};
use crate::attest::{
    Refusal,
    claim::{bounded, malformed},
    peers::{
        Question,
        answer::{Corroborated, Spelled},
    },
    statement::Statement,
    withdrawal,
};

/// A trigger with its signatures, ours first.
#[derive(Clone, Debug)]
pub struct TriggerAnswer {
    pub trigger: Trigger,
    pub signatures: Vec<Corroborated>,
}

impl Attestor {
    /// Attests that a payment to a deposit address is for an order: its manager at the hub maps the trigger to it.
    /// Nothing of the payment's chain is read.
    pub async fn trigger(
        &self,
        claim: &trigger::Trigger,
        question: Option<&Question>,
    ) -> Result<TriggerAnswer, Error> {
        bounded("currencies", claim.currencies.len())?;
        bounded("prices", claim.prices.len())?;
        let hash = claim.hash().map_err(|why| malformed("body", why))?;
        let order = message::word(&claim.order_id);
        let order = order.map_err(|why| malformed("body/orderId", why))?;
        // What the manager does not know it maps to zero.
        if order.is_zero() {
            return Err(malformed("body/orderId", "must not be zero").into());
        }
        let depository = withdrawal::depository(self.spec(&claim.input.chain_id)?)?;
        let settings = &self.hub.settings;
        let manager = settings.deposit_address_manager;
        let manager = manager.ok_or(Refusal::NotConfigured("deposit address manager"))?;
        let asked = self.ask(question);
        let mapped = self.hub.triggered(manager, hash, order).await?;
        let block = mapped.ok_or(Refusal::NotTriggered)?;
        let trigger = Trigger {
            chain_id: settings.domain.chain(),
            deposit_address_manager: manager,
            input_depository: vm::Bytes::copy_from_slice(depository.bytes()),
            trigger_hash: hash,
        };
        let spelled = Spelled::trigger(&trigger);
        let hub = ChainId::new(&settings.id);
        let statement = Statement::trigger(&hub, hash, spelled.digest).as_of(&hub, &block);
        let [signatures] = self.signed([(spelled, &statement)], asked).await?;
        Ok(TriggerAnswer {
            trigger,
            signatures,
        })
    }
}
