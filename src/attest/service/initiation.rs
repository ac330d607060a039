//! The hub's balance for withdrawals (guide: protocol 8.5 and 8.6).

use vm::{
    Amount, Block, ChainId, ChainSpec, EvmAddress,
    protocol::{message::Execution, text},
};

use super::{AddressClaim, Attested, Attestor, Error, Proof};
use crate::attest::{
    Refusal,
    claim::malformed,
    owner::Requested,
    peers::Question,
    statement::Statement,
    withdrawal::{AddressRequest, Owned, check_withdraws},
};

/// A request to set a balance apart for a withdrawal.
#[derive(Clone, Debug)]
pub struct InitiationClaim {
    /// The hub's name.
    pub settlement: String,
    pub amount: String,
    pub address: AddressClaim,
    /// The withdrawer's signature; only [`Attestor::initiation`] reads it.
    pub signature: String,
}

/// The attestation that sets a balance apart.
#[derive(Clone, Debug)]
pub struct InitiationAnswer {
    pub address: EvmAddress,
    pub attested: Attested,
}

/// A balance that has been set apart.
#[derive(Clone, Debug)]
pub struct InitiatedAnswer {
    pub address: EvmAddress,
    /// See [`Owned::proof`].
    pub proof: String,
}

/// A withdrawal that its owner asks for, or that of a returned deposit.
#[derive(Clone, Debug)]
pub struct OwnedClaim {
    pub requested: Requested,
    /// The chain's primary depository where none is named.
    pub depository: Option<String>,
    pub proof: Proof,
}

impl Attestor {
    /// Attests that a balance is set apart for a withdrawal; requires the withdrawer's signature. Only for a chain that
    /// is read: nothing else ends what is set apart.
    pub async fn initiation(
        &self,
        claim: &InitiationClaim,
        question: Option<&Question>,
    ) -> Result<InitiationAnswer, Error> {
        let (owned, amount) = self.initiated_by(claim)?;
        let chain = self.chain(&claim.address.chain)?;
        check_withdraws(&chain.spec, &owned.depository)?;
        // Peers, and everybody who sees the request, see the signature too.
        if self.bound_nonces {
            owned.check_bound()?;
        }
        owned.check_signature(amount, &claim.signature)?;
        let asked = self.ask(question);
        let held = self.hub.holds(owned.owner, owned.token, amount).await?;
        let block = held.ok_or(Refusal::InsufficientBalance)?;
        let (execution, statement) = self.apart(&owned, amount, &block);
        self.check_room(&statement).await?;
        Ok(InitiationAnswer {
            address: owned.address,
            attested: self.seal(execution, &statement, asked).await?,
        })
    }

    /// The same for an owner of any family, or for a returned deposit.
    pub async fn owned_initiation(
        &self,
        claim: &OwnedClaim,
        question: Option<&Question>,
    ) -> Result<InitiationAnswer, Error> {
        let requested = &claim.requested;
        let chain = self.chain(&requested.chain)?;
        let (amount, owner) = (
            requested.amount()?,
            requested.owner(&|chain| self.family(chain))?,
        );
        let owned = self.owned_by(&chain.spec, claim)?;
        check_withdraws(&chain.spec, &owned.depository)?;
        // The owner signed neither the depository nor the hub.
        if self.bound_nonces && chain.spec.depository.as_ref() != Some(&owned.depository) {
            owned.check_bound()?;
        }
        // No owner signs for a returned deposit, and whoever asks uses it up: the allocator must be able to record it.
        let told = match claim.proof {
            Proof::Return(_) => Some(self.payload_message(&chain.spec, &owned, amount, None)?),
            Proof::Signature(_) => None,
        };
        let permit = self.permit(requested, &owner, &claim.proof).await?;
        let asked = self.ask(question);
        let returned = self.returned(permit, (requested, &owner)).await?;
        if let Some(returned) = &returned {
            self.check_nonce(returned, owned.nonce)?;
        }
        if let Some(told) = &told {
            self.check_payload_served(&chain.spec.id, told).await?;
        }
        let held = self.hub.holds(owned.owner, owned.token, amount).await?;
        let block = held.ok_or_else(|| requested.insufficient())?;
        let (execution, mut statement) = self.apart(&owned, amount, &block);
        match returned {
            Some(returned) => statement = returned.allow(statement),
            None => self.check_room(&statement).await?,
        }
        Ok(InitiationAnswer {
            address: owned.address,
            attested: self.seal(execution, &statement, asked).await?,
        })
    }

    /// The owner and purpose of a withdrawal address of the chain of `spec`.
    pub(super) fn owned_by(&self, spec: &ChainSpec, claim: &OwnedClaim) -> Result<Owned, Refusal> {
        let requested = &claim.requested;
        let request = AddressRequest {
            path: ("body/", "nonce"),
            settlement: &self.hub.settings.id,
            depository: claim.depository.as_deref(),
            currency: &requested.currency,
            withdrawer: &requested.owner,
            withdrawer_chain: &requested.owner_chain,
            recipient: &requested.recipient,
            nonce: &requested.nonce,
        };
        Owned::new(spec, &request, &|chain| self.family(chain))
    }

    /// What is signed when the hub shows the balance at `block`.
    fn apart(&self, owned: &Owned, amount: Amount, block: &Block) -> (Execution, Statement) {
        let execution = owned.escrow(amount).initiated(&self.hub.settings.id);
        let digest = self.digest(&execution);
        let hub = ChainId::new(&self.hub.settings.id);
        let once = (owned.owner, owned.nonce);
        let statement = Statement::initiation(&hub, once, execution.idempotency_key, digest);
        (execution, statement.as_of(&hub, block))
    }

    /// Reads the balance of a withdrawal address, nothing of the withdrawal's chain. Signs nothing.
    pub async fn initiated(&self, claim: &InitiationClaim) -> Result<InitiatedAnswer, Error> {
        let (owned, amount) = self.initiated_by(claim)?;
        let held = self.hub.holds(owned.address, owned.token, amount).await?;
        held.ok_or(Refusal::InsufficientAddressBalance)?;
        Ok(InitiatedAnswer {
            address: owned.address,
            proof: owned.proof(amount),
        })
    }

    fn initiated_by(&self, claim: &InitiationClaim) -> Result<(Owned, Amount), Error> {
        // Another name of the hub would give the same withdrawal another idempotency key.
        if claim.settlement != self.hub.settings.id {
            return Err(Refusal::ChainNotAvailable((&claim.settlement).into()).into());
        }
        let amount = text::number(&claim.amount);
        let amount = amount.map_err(|why| malformed("body/expectedAmount", why))?;
        if amount.is_zero() {
            return Err(Refusal::ZeroWithdrawal.into());
        }
        let spec = self.spec(&claim.address.chain)?;
        Ok((self.owned(spec, &claim.address, "body/")?, amount))
    }
}
