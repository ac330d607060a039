//! Withdrawals: what waits for them at the hub, and how they ended (oracle.md 7.6, 10).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use vm::{
    B256, Bytes, Chain, ChainId, EvmAddress, StateReader, Transaction, TxRef, WithdrawalStatus,
    protocol::{message::Execution, text},
};

use super::{Attested, Error, Oracle, named};
use crate::attest::{
    Refusal,
    claim::{Seen, malformed},
    execution::Escrow,
    peers::Question,
    statement::{Statement, Verdict},
    withdrawal::{self, AddressRequest, Owned},
};

/// For whom and for what a withdrawal address is made, as a caller writes it.
#[derive(Clone, Debug)]
pub struct AddressClaim {
    pub chain: String,
    pub currency: String,
    pub withdrawer: String,
    pub withdrawer_chain: String,
    pub recipient: String,
    pub nonce: String,
}

/// How a withdrawal ended.
#[derive(Clone, Debug)]
pub struct WithdrawalClaim {
    pub chain: String,
    /// The family's encoding, hex.
    pub withdrawal: String,
    pub transaction: Option<String>,
    pub address: AddressClaim,
    /// One field per family.
    pub hints: Option<Value>,
}

/// See [`WithdrawalClaim`].
#[derive(Clone, Debug)]
pub struct WithdrawalAnswer {
    pub id: B256,
    /// As the chains file spells it.
    pub depository: String,
    pub status: WithdrawalStatus,
    /// `None` while the withdrawal is pending.
    pub attested: Option<Attested>,
}

/// The wish to set money apart for a withdrawal.
#[derive(Clone, Debug)]
pub struct InitiationClaim {
    /// The hub's name.
    pub settlement: String,
    pub amount: String,
    pub address: AddressClaim,
    /// The withdrawer's; only [`Oracle::initiation`] looks at it.
    pub signature: String,
}

/// Money is to be set apart.
#[derive(Clone, Debug)]
pub struct InitiationAnswer {
    pub address: EvmAddress,
    pub attested: Attested,
}

/// Money has been set apart.
#[derive(Clone, Debug)]
pub struct InitiatedAnswer {
    pub address: EvmAddress,
    /// See [`Owned::proof`].
    pub proof: String,
}

/// An execution as the journal keeps it for those who ask again.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: B256,
    actions: Vec<Bytes>,
}

/// A withdrawal and what the chain says about it.
struct Standing {
    id: B256,
    status: WithdrawalStatus,
    shown: Option<(TxRef, vm::Block)>,
}

impl Oracle {
    /// Attests how a withdrawal ended, if it did.
    pub async fn withdrawal(
        &self,
        claim: &WithdrawalClaim,
        question: Option<&Question>,
    ) -> Result<WithdrawalAnswer, Error> {
        if claim.address.chain != claim.chain {
            return Err(Refusal::WithdrawalMismatch { field: "chainId" }.into());
        }
        let chain = self.chain(&claim.chain)?;
        let owned = self.owned(chain, &claim.address, "body/withdrawalAddressRequest/")?;
        let encoded = text::bytes(&claim.withdrawal);
        let encoded = encoded.map_err(|why| malformed("body/withdrawal", why))?;
        let withdrawal = withdrawal::read(&chain.spec, &encoded, &owned)?;
        let path = "body/transactionId";
        let transaction = claim.transaction.as_deref();
        let transaction = transaction
            .map(|text| named(chain, text, claim.hints.as_ref(), path))
            .transpose()?;
        let asked = self.ask(question);
        let status = status(chain, &encoded, transaction.as_ref(), &owned, withdrawal.id).await?;
        let escrow = owned.escrow(withdrawal.amount);
        let mut answer = WithdrawalAnswer {
            id: withdrawal.id,
            depository: owned.depository.text().to_owned(),
            status: status.status,
            attested: None,
        };
        if let Some((execution, statement)) = self.verdict(chain, &status, &escrow).await? {
            answer.attested = Some(self.seal(execution, &statement, asked).await?);
        }
        Ok(answer)
    }

    /// Attests that money is to be set apart for a withdrawal, on the withdrawer's word.
    pub async fn initiation(
        &self,
        claim: &InitiationClaim,
        question: Option<&Question>,
    ) -> Result<InitiationAnswer, Error> {
        let (owned, amount) = self.initiated_by(claim)?;
        owned.check_signature(amount, &claim.signature)?;
        let asked = self.ask(question);
        if !self.hub.holds(owned.owner, owned.token, amount).await? {
            return Err(Refusal::InsufficientBalance.into());
        }
        let execution = owned.escrow(amount).initiated(&self.hub.settings.id);
        let digest = self.digest(&execution);
        let hub = ChainId::new(&self.hub.settings.id);
        let once = (owned.owner, owned.nonce);
        let statement = Statement::initiation(&hub, once, execution.idempotency_key, digest);
        Ok(InitiationAnswer {
            address: owned.address,
            attested: self.seal(execution, &statement, asked).await?,
        })
    }

    /// Tells what stands at a withdrawal address. Signs nothing.
    pub async fn initiated(&self, claim: &InitiationClaim) -> Result<InitiatedAnswer, Error> {
        let (owned, amount) = self.initiated_by(claim)?;
        if !self.hub.holds(owned.address, owned.token, amount).await? {
            return Err(Refusal::InsufficientAddressBalance.into());
        }
        Ok(InitiatedAnswer {
            address: owned.address,
            proof: owned.proof(amount),
        })
    }

    fn initiated_by(&self, claim: &InitiationClaim) -> Result<(Owned, vm::Amount), Error> {
        // Another name for the hub would give the same withdrawal another idempotency key.
        if claim.settlement != self.hub.settings.id {
            return Err(Refusal::ChainNotAvailable((&claim.settlement).into()).into());
        }
        let amount = text::number(&claim.amount);
        let amount = amount.map_err(|why| malformed("body/expectedAmount", why))?;
        if amount.is_zero() {
            return Err(Refusal::ZeroWithdrawal.into());
        }
        let chain = self.chain(&claim.address.chain)?;
        Ok((self.owned(chain, &claim.address, "body/")?, amount))
    }

    fn owned(
        &self,
        chain: &Chain,
        claim: &AddressClaim,
        path: &'static str,
    ) -> Result<Owned, Error> {
        let request = AddressRequest {
            path,
            currency: &claim.currency,
            withdrawer: &claim.withdrawer,
            withdrawer_chain: &claim.withdrawer_chain,
            recipient: &claim.recipient,
            nonce: &claim.nonce,
        };
        Ok(Owned::new(&chain.spec, &request, &|chain| {
            self.family(chain)
        })?)
    }

    /// What is to be signed about a withdrawal: the first execution if one stands already for this
    /// escrow, whatever transaction was named then. `None` while it is pending.
    async fn verdict(
        &self,
        chain: &Chain,
        standing: &Standing,
        escrow: &Escrow,
    ) -> Result<Option<(Execution, Statement)>, Error> {
        let transaction = standing.shown.as_ref().map(|(tx, _)| tx.text.as_ref());
        let transaction = transaction.unwrap_or_default();
        let (verdict, mut execution) = match standing.status {
            WithdrawalStatus::Pending => return Ok(None),
            WithdrawalStatus::Executed => {
                (Verdict::Executed, escrow.burned(standing.id, transaction))
            }
            WithdrawalStatus::Expired => {
                (Verdict::Expired, escrow.returned(standing.id, transaction))
            }
        };
        let id = &chain.spec.id;
        let statement = |execution: &Execution| {
            let digest = self.digest(execution);
            Statement::withdrawal(id, standing.id, verdict, digest)
        };
        let entry = self.journal.entry(&statement(&execution).key).await?;
        let first = entry.and_then(|entry| kept(&entry.payload));
        if let Some(first) = first.filter(|first| first.actions == execution.actions) {
            execution = first;
        }
        let mut statement = statement(&execution).keeping(keep(&execution)?);
        if let Some((tx, block)) = &standing.shown {
            statement = statement.resting_on(id, tx, block);
        }
        Ok(Some((execution, statement)))
    }
}

/// Where a withdrawal stands; a transaction that is named for one that ended must itself show its
/// execution.
async fn status(
    chain: &Chain,
    encoded: &Bytes,
    transaction: Option<&TxRef>,
    owned: &Owned,
    id: B256,
) -> Result<Standing, Error> {
    let unsupported = || Refusal::WithdrawalsUnsupported(chain.spec.id.as_str().into());
    let state = chain.state.as_deref().ok_or_else(unsupported)?;
    let mut head = chain.reader.head().await?;
    let mut read = both(chain, state, encoded, transaction, &head).await?;
    if read.0 == WithdrawalStatus::Pending {
        let fresh = chain.reader.fresh_head().await?;
        if fresh != head {
            read = both(chain, state, encoded, transaction, &fresh).await?;
            head = fresh;
        }
    }
    let (status, found) = read;
    let mut shown = None;
    if let (Some(transaction), Some(found), true) =
        (transaction, &found, status != WithdrawalStatus::Pending)
    {
        let spec = &chain.spec;
        let seen = Seen {
            spec,
            transaction,
            head: &head,
            found,
        };
        let receipt = seen.settled()?;
        withdrawal::check_shown(receipt, transaction, &owned.depository, id)?;
        shown = Some((transaction.clone(), receipt.block.clone()));
    }
    Ok(Standing { id, status, shown })
}

async fn both(
    chain: &Chain,
    state: &dyn StateReader,
    encoded: &Bytes,
    transaction: Option<&TxRef>,
    head: &vm::Head,
) -> Result<(WithdrawalStatus, Option<Transaction>), vm::ReadError> {
    let named = async {
        match transaction {
            Some(transaction) => chain.reader.transaction(transaction, head).await.map(Some),
            None => Ok(None),
        }
    };
    tokio::try_join!(state.withdrawal(encoded, transaction, head), named)
}

fn keep(execution: &Execution) -> Result<Vec<u8>, Error> {
    let kept = Kept {
        key: execution.idempotency_key,
        actions: execution.actions.clone(),
    };
    serde_json::to_vec(&kept).map_err(|error| Error::Setup(error.to_string()))
}

fn kept(payload: &[u8]) -> Option<Execution> {
    let kept: Kept = serde_json::from_slice(payload).ok()?;
    Some(Execution {
        idempotency_key: kept.key,
        actions: kept.actions,
    })
}
