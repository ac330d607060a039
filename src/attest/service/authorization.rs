//! Withdraw requests of the hub's own allocator: that an owner asks for one, and which hashes the allocator has for it
//! (guide: protocol 8.3 and 8.7).

use vm::{
    B256, ChainId, U256,
    protocol::{
        message::{Authorization, Domain, Inclusion, TypedMessage},
        request::WithdrawRequest,
    },
};

use super::{Attestor, Error, OwnedClaim, Proof, RequestClaim};
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

/// A withdraw request that the allocator may take, with its signatures, ours first.
#[derive(Clone, Debug)]
pub struct AuthorizationAnswer {
    pub request: WithdrawRequest,
    /// The allocator's.
    pub domain: Domain,
    pub signatures: Vec<Corroborated>,
}

/// The hashes that the allocator has for a withdraw request, with their signatures, ours first.
#[derive(Clone, Debug)]
pub struct InclusionAnswer {
    pub inclusion: Inclusion,
    pub signatures: Vec<Corroborated>,
}

impl Attestor {
    /// Attests that an owner asks the hub's own allocator for a withdrawal. The spender is the owner, the receiver the
    /// recipient. By the owner's signature also to a chain that is not read: how that withdrawal ends is then for other
    /// oracles to say. A returned deposit needs a chain that is read, since the authorization uses it up.
    pub async fn authorization(
        &self,
        claim: &OwnedClaim,
        question: Option<&Question>,
    ) -> Result<AuthorizationAnswer, Error> {
        let requested = &claim.requested;
        self.check_authorizable(&requested.chain)?;
        let spec = match claim.proof {
            Proof::Signature(_) => self.spec(&requested.chain)?,
            Proof::Return(_) => &self.chain(&requested.chain)?.spec,
        };
        let owner = requested.owner(&|chain| self.family(chain))?;
        let owned = self.owned_by(spec, claim)?;
        // The owner did not sign the depository.
        if self.bound_nonces && spec.depository.as_ref() != Some(&owned.depository) {
            owned.check_bound()?;
        }
        let request = self.normal(spec, &asked_by(claim))?;
        withdrawal::check_request(spec, &request)?;
        let message = request.message();
        let message = message.map_err(|why| malformed("body/nonce", why))?;
        let settings = &self.hub.settings;
        let allocator = settings.hub_allocator;
        let allocator = allocator.ok_or(Refusal::NotConfigured("allocator"))?;
        let domain = Domain::allocator(settings.domain.chain(), allocator);
        let permit = self.permit(requested, &owner, &claim.proof).await?;
        let asked = self.ask(question);
        let returned = self.returned(permit, (requested, &owner)).await?;
        let digest = message.digest(&domain);
        let spelled = Spelled::authorization(&request, digest, &domain);
        let hub = ChainId::new(&settings.id);
        let once = (owned.owner, message.nonce);
        let mut statement = Statement::authorization(&hub, once, message.request_hash(), digest);
        if returned.is_none() {
            self.check_room(&statement).await?;
        }
        if let Some(returned) = returned {
            self.check_nonce(&returned, message.nonce)?;
            requested.check_bare()?;
            self.check_served(&message).await?;
            statement = returned.allow(statement);
        }
        let [signatures] = self.signed([(spelled, &statement)], asked).await?;
        Ok(AuthorizationAnswer {
            request,
            domain,
            signatures,
        })
    }

    /// Refuses a chain to which nothing is authorized, whoever signs for it.
    pub fn check_authorizable(&self, chain: &str) -> Result<(), Refusal> {
        match self.family(chain) {
            None => Err(Refusal::ChainNotAvailable(chain.into())),
            Some(family) if !family.authorizable => Err(Refusal::NotAuthorizable(family.name)),
            Some(_) => Ok(()),
        }
    }

    /// Refuses a request for whose depository the hub's own allocator has no builder: it would use up the returned deposit
    /// for nothing.
    async fn check_served(&self, request: &Authorization) -> Result<(), Error> {
        let allocator = self.hub.own_allocator().map_err(Error::NoAllocator)?;
        let (chain, depository) = (&request.chain_id, &request.depository);
        match allocator.serves(chain, depository).await? {
            true => Ok(()),
            false => Err(Refusal::WithdrawalsUnsupported(chain.into()).into()),
        }
    }

    /// Attests which hashes the hub's own allocator has for a withdraw request, in the order of `indexes`, each once.
    /// Nothing of its chain is read: the hub has taken the amount already.
    pub async fn inclusion(
        &self,
        claim: &RequestClaim,
        indexes: &[u64],
        question: Option<&Question>,
    ) -> Result<InclusionAnswer, Error> {
        check_indexes(indexes)?;
        let message = self.normal(self.spec(&claim.chain)?, claim)?.message();
        let message = message.map_err(|why| malformed("body/nonce", why))?;
        let request = message.request_hash();
        let settings = &self.hub.settings;
        let allocator = self.hub.own_allocator().map_err(Error::NoAllocator)?;
        let asked = self.ask(question);
        let numbers: Vec<U256> = indexes.iter().map(|index| U256::from(*index)).collect();
        let found = self
            .hub
            .hashes_to_sign(&allocator, request, &numbers)
            .await?;
        let unset = |at: usize| Refusal::NoHashToSign(indexes.get(at).copied().unwrap_or_default());
        let (hashes, block) = found.ok_or_else(|| unset(0))?;
        if let Some(at) = hashes.iter().position(B256::is_zero) {
            return Err(unset(at).into());
        }
        let inclusion = Inclusion {
            chain_id: settings.domain.chain(),
            allocator: allocator.contract(),
            withdraw_request_hash: request,
            hashes_to_sign: hashes.clone(),
        };
        let spelled = Spelled::inclusion(&inclusion);
        let hub = ChainId::new(&settings.id);
        let each: Vec<(U256, B256)> = numbers.into_iter().zip(hashes).collect();
        let statement = Statement::inclusion(&hub, request, &each, spelled.digest);
        let statement = statement.as_of(&hub, &block);
        self.check_room(&statement).await?;
        let [signatures] = self.signed([(spelled, &statement)], asked).await?;
        Ok(InclusionAnswer {
            inclusion,
            signatures,
        })
    }
}

/// The withdraw request of an owner.
fn asked_by(claim: &OwnedClaim) -> RequestClaim {
    let requested = &claim.requested;
    RequestClaim {
        chain: requested.chain.clone(),
        depository: claim.depository.clone(),
        currency: requested.currency.clone(),
        amount: requested.amount.clone(),
        spender_chain: requested.owner_chain.clone(),
        spender: requested.owner.clone(),
        receiver: requested.recipient.clone(),
        nonce: requested.nonce.clone(),
        additional: requested.additional.clone(),
        transaction: None,
        hints: None,
    }
}

/// Refuses no index, too many, and one that stands twice: each list is a statement of its own for ever.
fn check_indexes(indexes: &[u64]) -> Result<(), Refusal> {
    bounded("hashIndexes", indexes.len())?;
    let wrong = |what: &str| Err(malformed("body/hashIndexes", what));
    let mut sorted = indexes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    match (indexes.is_empty(), sorted.len() == indexes.len()) {
        (true, _) => wrong("must not be empty"),
        (_, false) => wrong("names an index more than once"),
        _ => Ok(()),
    }
}
