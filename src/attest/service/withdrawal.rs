//! How withdrawals ended (guide: protocol 8.5).

use serde_json::{Map, Value};
use vm::{
    B256, Bytes, Chain, ChainId, ChainSpec, StateReader, TxRef, WithdrawalStatus,
    protocol::{limits, text},
};

use super::{
    Attested, Attestor, Error, OwnedClaim, named,
    standing::{Sought, Standing},
};
use crate::{
    attest::{
        Refusal,
        claim::{bounded, malformed},
        peers::{Asked, Question},
        statement::{Statement, Verdict},
        withdrawal::{self, AddressRequest, Owned, Withdrawal},
    },
    chains::permits::enter_for,
    hub::{Allocator, Payload, SignedPayload},
};

/// The owner and purpose of a withdrawal address, as the caller wrote them.
#[derive(Clone, Debug)]
pub struct AddressClaim {
    pub chain: String,
    pub currency: String,
    pub withdrawer: String,
    pub withdrawer_chain: String,
    pub recipient: String,
    pub nonce: String,
}

/// A claim about how a withdrawal ended.
#[derive(Clone, Debug)]
pub struct WithdrawalClaim {
    pub chain: String,
    /// The family's encoding in hex.
    pub withdrawal: String,
    pub transaction: Option<String>,
    pub address: AddressClaim,
    /// What the allocator was told besides, by family name.
    pub additional: Option<Map<String, Value>>,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

/// The answer to a [`WithdrawalClaim`].
#[derive(Clone, Debug)]
pub struct WithdrawalAnswer {
    pub id: B256,
    /// The depository in the chains file's spelling.
    pub depository: String,
    pub status: WithdrawalStatus,
    /// `None` while the withdrawal is pending.
    pub attested: Option<Attested>,
}

/// A claim about how the withdrawal of an owner ended.
#[derive(Clone, Debug)]
pub struct OwnedWithdrawalClaim {
    pub owned: OwnedClaim,
    pub transaction: Option<String>,
    /// A map from each family's name to that family's hint.
    pub hints: Option<Value>,
}

/// How a withdrawal ended that the allocator has, not the caller.
#[derive(Clone, Debug)]
pub struct EndedAnswer {
    pub status: WithdrawalStatus,
    /// `None` where nothing is to be signed.
    pub attested: Option<Attested>,
}

impl EndedAnswer {
    const PENDING: Self = Self {
        status: WithdrawalStatus::Pending,
        attested: None,
    };
}

impl Attestor {
    /// Attests how a withdrawal ended; signs nothing while it is pending.
    pub async fn withdrawal(
        &self,
        claim: &WithdrawalClaim,
        question: Option<&Question>,
    ) -> Result<WithdrawalAnswer, Error> {
        if claim.address.chain != claim.chain {
            return Err(Refusal::WithdrawalMismatch { field: "chainId" }.into());
        }
        let (chain, state) = self.withdrawing(&claim.chain)?;
        let path = "body/withdrawalAddressRequest/";
        let owned = self.owned(&chain.spec, &claim.address, path)?;
        let encoded = text::bytes(&claim.withdrawal);
        let encoded = encoded.map_err(|why| malformed("body/withdrawal", why))?;
        let withdrawal = withdrawal::read(&chain.spec, &encoded, &owned)?;
        let transaction = executing(chain, claim.transaction.as_deref(), claim.hints.as_ref())?;
        let asked = self.ask(question);
        let allocator = self.allocator()?;
        let additional = claim.additional.as_ref();
        let id = withdrawal::payload_id(&chain.spec, &owned, withdrawal.amount, additional)?;
        let sought = Sought {
            chain,
            state,
            encoded: &encoded,
            transaction: transaction.as_ref(),
            depository: &owned.depository,
            named: withdrawal.named,
        };
        let (payload, sight) = tokio::try_join!(allocator.payload(id), sought.look())?;
        let standing = match payload {
            None => Standing::pending(),
            Some(payload) => {
                withdrawal::check_recorded(&withdrawal, &payload.withdrawal)?;
                sought.standing(sight, &payload)?
            }
        };
        let ended = self.ended(&owned, &withdrawal, &standing, asked);
        let EndedAnswer { status, attested } = ended.await?;
        Ok(WithdrawalAnswer {
            id: withdrawal.id,
            depository: owned.depository.text().to_owned(),
            status,
            attested,
        })
    }

    /// Attests how the withdrawal of an owner of any family ended, or that of a returned deposit. The allocator has
    /// the withdrawal itself.
    pub async fn owned_withdrawal(
        &self,
        claim: &OwnedWithdrawalClaim,
        question: Option<&Question>,
    ) -> Result<EndedAnswer, Error> {
        let (of, requested) = (&claim.owned, &claim.owned.requested);
        let (chain, state) = self.withdrawing(&requested.chain)?;
        let amount = requested.amount()?;
        let owner = requested.owner(&|chain| self.family(chain))?;
        let owned = self.owned_by(&chain.spec, of)?;
        let transaction = executing(chain, claim.transaction.as_deref(), claim.hints.as_ref())?;
        let additional = requested.additional.as_ref();
        let id = withdrawal::payload_id(&chain.spec, &owned, amount, additional)?;
        let permit = self.permit(requested, &owner, &of.proof).await?;
        let allocator = self.allocator()?;
        let asked = self.ask(question);
        let payload = async { Ok(allocator.payload(id).await?) };
        let returned = self.returned(permit, (requested, &owner));
        let (payload, _) = tokio::try_join!(payload, returned)?;
        let Some(payload) = payload else {
            return Ok(EndedAnswer::PENDING);
        };
        let Some(encoded) = signed(chain, (allocator, id), &owned, &payload).await? else {
            return Ok(EndedAnswer::PENDING);
        };
        let withdrawal = withdrawal::recorded(&chain.spec, &encoded, &owned)?;
        let sought = Sought {
            chain,
            state,
            encoded: &encoded,
            transaction: transaction.as_ref(),
            depository: &owned.depository,
            named: withdrawal.named,
        };
        let standing = sought.standing(sought.look().await?, &payload)?;
        self.ended(&owned, &withdrawal, &standing, asked).await
    }

    pub(super) fn owned(
        &self,
        spec: &ChainSpec,
        claim: &AddressClaim,
        path: &'static str,
    ) -> Result<Owned, Error> {
        let request = AddressRequest {
            path: (path, "withdrawalNonce"),
            settlement: &self.hub.settings.id,
            depository: None,
            currency: &claim.currency,
            withdrawer: &claim.withdrawer,
            withdrawer_chain: &claim.withdrawer_chain,
            recipient: &claim.recipient,
            nonce: &claim.nonce,
        };
        Ok(Owned::new(spec, &request, &|chain| self.family(chain))?)
    }

    /// A chain whose withdrawals are read.
    pub(super) fn withdrawing(&self, name: &str) -> Result<(&Chain, &dyn StateReader), Error> {
        let chain = self.chain(name)?;
        let unsupported = || Refusal::WithdrawalsUnsupported(name.into());
        Ok((chain, chain.state.as_deref().ok_or_else(unsupported)?))
    }

    /// Refuses a withdrawal if the chain shows an output otherwise than the withdrawal says. `path` is the part of the
    /// request that says it.
    pub(super) async fn check_outputs(
        &self,
        chain: &ChainId,
        unproven: Option<&Bytes>,
        path: &str,
    ) -> Result<(), Error> {
        let Some(said) = unproven else {
            return Ok(());
        };
        let (_, state) = self.withdrawing(chain.as_str())?;
        let permits = self.hub.permits().of(chain);
        let _permits = enter_for(&permits, limits::OUTPUTS_AT_ONCE).await?;
        match state.bears_out(said).await? {
            true => Ok(()),
            false => Err(Refusal::OtherOutputs(path.into()).into()),
        }
    }

    pub(super) fn allocator(&self) -> Result<&Allocator, Error> {
        let allocator = self.hub.allocator();
        allocator.map_err(|why| Error::NoAllocator(why.to_owned()))
    }

    /// Signs how a withdrawal ended; nothing while it is pending. What is signed does not depend on whether the caller
    /// names a transaction.
    async fn ended(
        &self,
        owned: &Owned,
        withdrawal: &Withdrawal,
        standing: &Standing,
        asked: Option<Asked>,
    ) -> Result<EndedAnswer, Error> {
        let (escrow, status) = (owned.escrow(withdrawal.amount), standing.status);
        let (verdict, execution) = match status {
            WithdrawalStatus::Pending => return Ok(EndedAnswer::PENDING),
            WithdrawalStatus::Executed => (Verdict::Executed, escrow.burned(withdrawal.id)),
            WithdrawalStatus::Expired => (Verdict::Expired, escrow.returned(withdrawal.id)),
        };
        // What never left the depository goes back, whatever is said of outputs.
        if status == WithdrawalStatus::Executed {
            let unproven = withdrawal.unproven.as_ref();
            self.check_outputs(&owned.chain, unproven, withdrawal::RECORDED)
                .await?;
        }
        let digest = self.digest(&execution);
        let statement = Statement::withdrawal(&owned.chain, withdrawal.id, verdict, digest);
        let statement = standing.ground(&owned.chain, statement);
        Ok(EndedAnswer {
            status,
            attested: Some(self.seal(execution, &statement, asked).await?),
        })
    }
}

/// The transaction that the caller says executed a withdrawal.
pub(super) fn executing(
    chain: &Chain,
    transaction: Option<&str>,
    hints: Option<&Value>,
) -> Result<Option<TxRef>, Refusal> {
    let named = transaction.map(|text| named(chain, text, hints, "body/transactionId"));
    named.transpose()
}

/// The withdrawal that the allocator recorded under `id`, with its signatures where it has some; `None` while one is
/// missing.
async fn signed(
    chain: &Chain,
    (allocator, id): (&Allocator, B256),
    owned: &Owned,
    payload: &Payload,
) -> Result<Option<Bytes>, Error> {
    let recorded = &payload.withdrawal;
    let Some(codec) = chain.spec.family.payloads else {
        return Ok(Some(recorded.clone()));
    };
    let unreadable = |why| malformed("the allocator's withdrawal", why);
    let count = codec.signatures(recorded).map_err(unreadable)?;
    bounded("the inputs of the withdrawal", count)?;
    let of = SignedPayload {
        id,
        payload,
        chain: chain.spec.hub_chain_id,
        depository: owned.depository.text(),
    };
    let each = (0..count).map(|at| allocator.signature(&of, at));
    let signatures = futures::future::try_join_all(each).await?;
    let Some(signatures) = signatures.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let encoded = codec.signed(recorded, &signatures).map_err(unreadable)?;
    Ok(Some(encoded.into()))
}
