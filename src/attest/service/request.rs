//! Withdraw requests of the hub's own allocator, and what became of them (guide: protocol 8.6).

use serde_json::{Map, Value};
use vm::{
    B256, ChainId, ChainSpec, EvmAddress, Family, WithdrawalStatus,
    protocol::{
        hub::{alias, token_id},
        request::{WithdrawCall, WithdrawRequest},
        text,
    },
};

use super::{Attestor, EndedAnswer, Error, standing::Sought, withdrawal::executing};
use crate::{
    attest::{
        Refusal,
        claim::malformed,
        execution,
        peers::Question,
        statement::{Statement, Verdict},
        withdrawal,
    },
    hub::Payload,
};

/// A claim about how a withdraw request ended; every field in the caller's spelling.
#[derive(Clone, Debug)]
pub struct RequestClaim {
    pub chain: String,
    /// The chain's primary depository where none is named.
    pub depository: Option<String>,
    pub currency: String,
    pub amount: String,
    pub spender_chain: String,
    pub spender: String,
    pub receiver: String,
    pub nonce: String,
    /// What the allocator was told besides, by family name.
    pub additional: Option<Map<String, Value>>,
    pub transaction: Option<String>,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

impl Attestor {
    /// Attests that a withdraw request expired, which gives the amount back; signs nothing while it is pending or when
    /// it was executed, since the hub took the amount when it was requested.
    pub async fn requested_withdrawal(
        &self,
        claim: &RequestClaim,
        question: Option<&Question>,
    ) -> Result<EndedAnswer, Error> {
        let (chain, state) = self.withdrawing(&claim.chain)?;
        let spec = &chain.spec;
        let request = self.normal(spec, claim)?;
        let message = request.message();
        let message = message.map_err(|why| malformed("body/nonce", why))?;
        let hash = message.request_hash();
        let depository = withdrawal::depository_of(spec, claim.depository.as_deref())?;
        let transaction = executing(chain, claim.transaction.as_deref(), claim.hints.as_ref())?;
        let allocator = self.hub.own_allocator().map_err(Error::NoAllocator)?;
        let asked = self.ask(question);
        let payload = allocator.payload(hash).await?;
        let payload = payload.ok_or(Refusal::RequestUnavailable)?;
        let (encoded, named) = withdrawal::unsigned(spec, &payload.withdrawal)?;
        let sought = Sought {
            chain,
            state,
            encoded: &encoded,
            transaction: transaction.as_ref(),
            depository,
            named,
        };
        let standing = sought.standing(sought.look().await?, &payload)?;
        if standing.status != WithdrawalStatus::Expired {
            return Ok(EndedAnswer {
                status: standing.status,
                attested: None,
            });
        }
        let to = self.giver(claim, hash, &payload).await?;
        let currency = spec.family.address(&claim.currency);
        let currency = currency.map_err(|why| malformed("body/currency", why))?;
        let token = token_id(&spec.id, &currency);
        let execution = execution::minted_back(hash, to, token, request.amount);
        let digest = self.digest(&execution);
        let statement = Statement::withdrawal(&spec.id, hash, Verdict::Expired, digest);
        let statement = standing.ground(&spec.id, statement);
        Ok(EndedAnswer {
            status: standing.status,
            attested: Some(self.seal(execution, &statement, asked).await?),
        })
    }

    /// The request in the spelling that the allocator hashes.
    pub(super) fn normal(
        &self,
        spec: &ChainSpec,
        claim: &RequestClaim,
    ) -> Result<WithdrawRequest, Refusal> {
        let amount = text::number(&claim.amount);
        let amount = amount.map_err(|why| malformed("body/amount", why))?;
        if amount.is_zero() {
            return Err(Refusal::ZeroWithdrawal);
        }
        let depository = withdrawal::depository_of(spec, claim.depository.as_deref())?;
        let call = WithdrawCall {
            chain_id: claim.chain.clone(),
            depository: depository.text().to_owned(),
            currency: claim.currency.clone(),
            amount,
            spender_chain_id: claim.spender_chain.clone(),
            spender: claim.spender.clone(),
            receiver: claim.receiver.clone(),
            nonce: claim.nonce.clone(),
            additional_data: claim.additional.clone(),
        };
        let spender = self.spender_family(&claim.spender_chain)?;
        // What is hashed takes some texts that are no addresses.
        let own = spec.family;
        for (family, field, text) in [
            (own, "body/currency", &claim.currency),
            (own, "body/receiver", &claim.receiver),
            (spender, "body/spender", &claim.spender),
        ] {
            let address = family.address(text);
            address.map_err(|why| malformed(field, why))?;
        }
        let request = WithdrawRequest::new(&call, own, spender);
        request.map_err(|why| malformed("body", why))
    }

    /// The family of a spender: that of its chain, or the hub's.
    fn spender_family(&self, chain: &str) -> Result<&'static Family, Refusal> {
        if chain == self.hub.settings.id {
            return Ok(vm::SETTLEMENT);
        }
        let family = self.family(chain);
        family.ok_or_else(|| Refusal::ChainNotAvailable(chain.into()))
    }

    /// The hub account that the amount of an expired request returns to: the spender's, or the order's that the
    /// executor spent it for.
    async fn giver(
        &self,
        claim: &RequestClaim,
        hash: B256,
        payload: &Payload,
    ) -> Result<EvmAddress, Error> {
        let family = self.spender_family(&claim.spender_chain)?;
        let spender = family.account(&claim.spender);
        let spender = spender.map_err(|why| malformed("body/spender", why))?;
        let spender = alias(&ChainId::new(&claim.spender_chain), &spender);
        let Some(executor) = self.hub.settings.executor else {
            return Ok(spender);
        };
        let text = format!("{executor:#x}");
        let own = vm::SETTLEMENT
            .account(&text)
            .map_err(|why| malformed("executorAddress", why))?;
        if alias(&ChainId::new(&self.hub.settings.id), &own) != spender {
            return Ok(spender);
        }
        let order = self
            .hub
            .order_account(executor, hash, &payload.block)
            .await?;
        Ok(order.ok_or(Refusal::NoOrderAccount)?)
    }
}
