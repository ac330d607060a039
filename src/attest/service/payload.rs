//! Payload params: what the allocator is told about a withdrawal for which the hub has set a balance apart (guide:
//! protocol 8.7).

use serde_json::{Map, Value};
use vm::{
    Amount, Bytes, ChainId, ChainSpec,
    protocol::{
        message::{self, TypedMessage},
        request::PayloadParams,
    },
};

use super::{Attestor, Error, OwnedClaim};
use crate::{
    attest::{
        Refusal,
        claim::malformed,
        peers::{
            Question,
            answer::{Corroborated, Spelled},
        },
        statement::Statement,
        withdrawal::{self, Owned},
    },
    hub::Spender,
};

/// Payload params with their signatures, ours first.
#[derive(Clone, Debug)]
pub struct PayloadAnswer {
    pub params: PayloadParams,
    pub signatures: Vec<Corroborated>,
}

/// What the allocator's spender submits of a withdrawal.
pub(super) struct PayloadMessage<'a> {
    spender: &'a Spender,
    params: PayloadParams,
    message: message::PayloadParams,
    /// See [`Family::unproven`](vm::Family::unproven).
    unproven: Option<Bytes>,
}

impl Attestor {
    /// What the allocator is told of the withdrawal of `amount` for `owned`. Refuses one of which it cannot be told.
    pub(super) fn payload_message(
        &self,
        spec: &ChainSpec,
        owned: &Owned,
        amount: Amount,
        additional: Option<&Map<String, Value>>,
    ) -> Result<PayloadMessage<'_>, Refusal> {
        let spender = self.hub.settings.allocator_spender.as_ref();
        let spender = spender.ok_or(Refusal::NotConfigured("allocator spender"))?;
        let request = withdrawal::payload_request(spec, owned, amount, additional);
        let params = withdrawal::payload_params(spec, &request);
        let params = params.map_err(|why| malformed("body", why))?;
        withdrawal::check_payload(spec, &request)?;
        let message = params.message().map_err(|why| malformed("body", why))?;
        Ok(PayloadMessage {
            spender,
            params,
            message,
            unproven: withdrawal::unproven(spec, &request)?,
        })
    }

    /// Refuses a depository of `chain` for which the allocator that takes payload params has no builder.
    pub(super) async fn check_payload_served(
        &self,
        chain: &ChainId,
        told: &PayloadMessage<'_>,
    ) -> Result<(), Error> {
        let (number, depository) = (told.message.chain_id, &told.message.depository);
        let allocator = self.allocator()?;
        match allocator.serves_payload(number, depository).await? {
            true => Ok(()),
            false => Err(Refusal::WithdrawalsUnsupported(chain.as_str().into()).into()),
        }
    }

    /// Attests what the allocator is to record for a withdrawal address that holds the amount. It may hold more:
    /// anybody may send to it, between the signatures of two oracles, too, and each signs one payload of an address.
    /// Of the withdrawal's chain only outputs are read that no signature covers: its balance has been set apart already.
    pub async fn owned_initiated(
        &self,
        claim: &OwnedClaim,
        question: Option<&Question>,
    ) -> Result<PayloadAnswer, Error> {
        let requested = &claim.requested;
        let spec = self.spec(&requested.chain)?;
        let amount = requested.amount()?;
        let owner = requested.owner(&|chain| self.family(chain))?;
        let owned = self.owned_by(spec, claim)?;
        withdrawal::check_withdraws(spec, &owned.depository)?;
        let PayloadMessage {
            spender,
            params,
            message,
            unproven,
        } = self.payload_message(spec, &owned, amount, requested.additional.as_ref())?;
        let permit = self.permit(requested, &owner, &claim.proof).await?;
        let asked = self.ask(question);
        let returned = self.returned(permit, (requested, &owner)).await?;
        if let Some(returned) = &returned {
            self.check_nonce(returned, owned.nonce)?;
            requested.check_bare()?;
        }
        let (address, token) = (owned.address, owned.token);
        let held = self.hub.holds(address, token, amount).await?;
        let block = held.ok_or(Refusal::OtherAddressBalance)?;
        // Last: for whoever has set nothing apart no transaction is read.
        self.check_outputs(&spec.id, unproven.as_ref(), "body/additionalData")
            .await?;
        let digest = message.digest(&spender.domain);
        let spelled = Spelled::payload(&params, digest, spender);
        let hub = ChainId::new(&self.hub.settings.id);
        let statement = Statement::payload(&hub, address, message.payload_id(), digest);
        let mut statement = statement.as_of(&hub, &block);
        if let Some(returned) = returned {
            statement = returned.ground(statement);
        }
        let [signatures] = self.signed([(spelled, &statement)], asked).await?;
        Ok(PayloadAnswer { params, signatures })
    }
}
