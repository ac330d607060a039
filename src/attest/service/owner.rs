//! Why an operation on a hub account is allowed: its owner signed it, or a returned deposit of the owner's allows
//! it (guide: protocol 8.6).

use vm::{
    Address, B256, Block, ChainId, TxRef, aside,
    protocol::{id, order::Order},
};

use super::{Attestor, Error, is_long};
use crate::attest::{
    Refusal,
    claim::malformed,
    deposit, execution,
    order::{self, Terms},
    owner::{KnownOwner, Owner, OwnerSignature, Requested},
    read::{self, Wanted},
    recover::{self, Destination},
    statement::Statement,
};

/// Why an operation is allowed, as the caller wrote it.
#[derive(Clone, Debug)]
pub enum Proof {
    /// The owner's signature of it.
    Signature(OwnerSignature),
    /// A returned deposit of the owner's, which goes where its order refunds it.
    Return(Box<ReturnClaim>),
}

/// A returned deposit, and its order, which must have one input.
#[derive(Clone, Debug)]
pub struct ReturnClaim {
    pub chain: String,
    pub transaction: String,
    pub onchain_id: String,
    pub order: Order,
    /// The solver's, of the order.
    pub signature: String,
}

/// A [`Proof`] without its reads.
pub enum Permit<'a> {
    Signed,
    Return(Box<Way<'a>>),
}

/// A returned deposit, as it is claimed, before it is read.
pub struct Way<'a> {
    claim: &'a ReturnClaim,
    terms: Terms,
    wanted: Wanted,
}

/// A returned deposit.
#[derive(Clone, Debug)]
pub struct Returned {
    onchain_id: B256,
    /// The idempotency key of its recovery.
    recovery: B256,
    chain: ChainId,
    transaction: TxRef,
    block: Block,
    /// The hub, and the block at which it shows the recovery; `None` where it does not say.
    shown: Option<(ChainId, Block)>,
}

impl Returned {
    /// The statement, resting on the deposit's block and the one that shows its recovery, that follows one which this
    /// deposit allowed.
    #[must_use]
    pub fn ground(&self, statement: Statement) -> Statement {
        let statement = statement.resting_on(&self.chain, &self.transaction, &self.block);
        match &self.shown {
            Some((hub, block)) => statement.as_of(hub, block),
            None => statement,
        }
    }

    /// The statement that this deposit allows, and no other one.
    #[must_use]
    pub fn allow(&self, statement: Statement) -> Statement {
        self.ground(statement.returning(self.onchain_id, self.recovery))
    }
}

impl Attestor {
    /// Refuses an operation without its owner's signature. Reads the owner's key where only the owner's chain knows it.
    pub(super) async fn check_owner(
        &self,
        (requested, owner): (&Requested, &Owner),
        signature: &OwnerSignature,
    ) -> Result<(), Error> {
        let chain = &requested.owner_chain;
        let keys = self.chains.get(chain).and_then(|known| known.keys.as_ref());
        let known = match keys {
            None => None,
            Some(Err(why)) => {
                return Err(Error::Closed {
                    chain: chain.clone(),
                    why: why.clone(),
                });
            }
            Some(Ok(keys)) => {
                requested.check_form(owner, signature, &keys.spec)?;
                Some(KnownOwner {
                    spec: keys.spec.clone(),
                    key: keys.reader.owner_key(&owner.address).await?,
                })
            }
        };
        Ok(requested.check_signature(owner, signature, known.as_ref())?)
    }

    /// Judges a signature, and as much of a return as needs no read.
    pub(super) async fn permit<'a>(
        &self,
        requested: &Requested,
        owner: &Owner,
        proof: &'a Proof,
    ) -> Result<Permit<'a>, Error> {
        let claim = match proof {
            Proof::Signature(signature) => {
                self.check_owner((requested, owner), signature).await?;
                return Ok(Permit::Signed);
            }
            Proof::Return(claim) => claim,
        };
        let terms = Terms::new(&claim.order, &|chain| self.family(chain))?;
        if terms.inputs.len() != 1 {
            return Err(Refusal::ReturnOfSeveral.into());
        }
        order::check_signature(&claim.order.solver, terms.id, &claim.signature)?;
        let (chain, transaction) = (&claim.chain, &claim.transaction);
        let wanted = self.wanted(chain, transaction, None, "body/depositTransactionId")?;
        Ok(Permit::Return(Box::new(Way {
            claim,
            terms,
            wanted,
        })))
    }

    /// Reads the deposit that `permit` rests on, and refuses one that does not go back by what is `requested`: the
    /// solver has given its order up at the hub, and the hub has moved it to its depositor's account. `None` for a
    /// signature, which rests on nothing.
    pub(super) async fn returned(
        &self,
        permit: Permit<'_>,
        (requested, owner): (&Requested, &Owner),
    ) -> Result<Option<Returned>, Error> {
        let Permit::Return(way) = permit else {
            return Ok(None);
        };
        let Way {
            claim,
            terms,
            wanted,
        } = *way;
        let wanted = [wanted];
        let found = read::transactions(&wanted, self.hub.permits(), read::SETTLED).await?;
        let seen: Vec<_> = found.iter().map(read::Found::seen).collect();
        let seen = seen.first().ok_or(Refusal::NoDeposit)?;
        let listed = aside(is_long(&found), || deposit::each(seen))?;
        let (message, order) = recover::named(&listed, &claim.onchain_id)?;
        recover::check_order(&terms, order)?;
        let [currency, recipient] = self.destination(requested)?;
        let destination = Destination {
            chain: &requested.chain,
            currency: &currency,
            amount: requested.amount()?,
            owner_chain: &requested.owner_chain,
            owner: &owner.address,
            recipient: &recipient,
        };
        if !self.is_given_up(&claim.order, order).await? {
            return Err(Refusal::NotGivenUp.into());
        }
        destination.check(&terms, message)?;
        self.check_unpaid(message, order).await?;
        let recovery = execution::recovered(message)?.idempotency_key;
        let shown = self.check_recovered(recovery).await?;
        let hub = ChainId::new(&self.hub.settings.id);
        let receipt = seen.receipt().map_err(Refusal::from)?;
        Ok(Some(Returned {
            onchain_id: message.onchain_id,
            recovery,
            chain: seen.spec.id.clone(),
            transaction: seen.transaction.clone(),
            block: receipt.block.clone(),
            shown: shown.map(|block| (hub, block)),
        }))
    }

    /// The currency and the recipient of a withdrawal.
    fn destination(&self, requested: &Requested) -> Result<[Address; 2], Refusal> {
        let chain = &requested.chain;
        let family = self.family(chain);
        let family = family.ok_or_else(|| Refusal::ChainNotAvailable(chain.into()))?;
        let parse = |field, text| {
            let address = family.address(text);
            address.map_err(|why| malformed(field, why))
        };
        Ok([
            parse("body/currency", &requested.currency)?,
            parse("body/recipient", &requested.recipient)?,
        ])
    }

    /// Refuses a deposit whose recovery, the execution with this idempotency key, the hub has not applied: the
    /// depositor's account then holds other money only. Whoever pays may name anybody as the depositor, and writes the
    /// order, so the hub has to say so; a hub that gives no answer is believed only where no real money is at stake. The
    /// block at which it says so; `None` without an answer.
    async fn check_recovered(&self, recovery: B256) -> Result<Option<Block>, Error> {
        let Some(block) = self.hub.settled().await? else {
            return Err(Refusal::NotRecovered.into());
        };
        match self.hub.is_executed(recovery, &block).await {
            Ok(true) => Ok(Some(block)),
            Ok(false) => Err(Refusal::NotRecovered.into()),
            Err(error) if self.shown_recoveries => Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "the hub does not answer whether it gave a deposit back");
                Ok(None)
            }
        }
    }

    /// Refuses another nonce than the one that a returned deposit has: whoever claims first would choose the
    /// withdrawal's address, and keep it to himself.
    pub(super) fn check_nonce(&self, returned: &Returned, nonce: B256) -> Result<(), Refusal> {
        let id = returned.onchain_id.to_string();
        let own = id::deterministic(&[&id, "recover"]);
        match self.bound_nonces && nonce != own {
            true => Err(Refusal::UnboundReturn),
            false => Ok(()),
        }
    }
}
