//! How withdrawals ended (guide: protocol 8.5).

use serde_json::{Map, Value};
use vm::{
    B256, Block, Bytes, Chain, ChainId, Head, ReadError, Seen, StateReader,
    Transaction, TxRef, WithdrawalStatus,
    protocol::{message::Execution, text},
};

use super::{Attested, Attestor, Error, named};
use crate::attest::{
    Refusal,
    claim::malformed,
    peers::Question,
    statement::{Statement, Verdict},
    withdrawal::{self, AddressRequest, Owned, Withdrawal},
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

/// The withdrawal that a caller asks about.
struct Sought<'a> {
    chain: &'a Chain,
    state: &'a dyn StateReader,
    encoded: &'a Bytes,
    transaction: Option<&'a TxRef>,
    owned: &'a Owned,
    withdrawal: &'a Withdrawal,
    additional: Option<&'a Map<String, Value>>,
}

/// What the chain shows of a withdrawal, from one head.
struct Sight {
    head: Head,
    status: WithdrawalStatus,
    /// The final block of the status; without one the withdrawal is pending.
    block: Option<Block>,
    found: Option<Transaction>,
}

/// The status of a withdrawal, with the blocks that show it.
struct Standing {
    status: WithdrawalStatus,
    grounds: Vec<(ChainId, Block)>,
    shown: Option<(TxRef, Block)>,
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
        let chain = self.chain(&claim.chain)?;
        let unsupported = || Refusal::WithdrawalsUnsupported(chain.spec.id.as_str().into());
        let state = chain.state.as_deref().ok_or_else(unsupported)?;
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
        let sought = Sought {
            chain,
            state,
            encoded: &encoded,
            transaction: transaction.as_ref(),
            owned: &owned,
            withdrawal: &withdrawal,
            additional: claim.additional.as_ref(),
        };
        let standing = self.standing(&sought).await?;
        let mut answer = WithdrawalAnswer {
            id: withdrawal.id,
            depository: owned.depository.text().to_owned(),
            status: standing.status,
            attested: None,
        };
        if let Some((execution, statement)) = self.verdict(&sought, &standing) {
            answer.attested = Some(self.seal(execution, &statement, asked).await?);
        }
        Ok(answer)
    }

    pub(super) fn owned(
        &self,
        chain: &Chain,
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
        Ok(Owned::new(&chain.spec, &request, &|chain| {
            self.family(chain)
        })?)
    }

    /// The status of a withdrawal that the allocator has recorded; every other one is pending.
    async fn standing(&self, sought: &Sought<'_>) -> Result<Standing, Error> {
        let allocator = self.hub.allocator();
        let allocator = allocator.map_err(|why| Error::NoAllocator(why.to_owned()))?;
        let (spec, amount) = (&sought.chain.spec, sought.withdrawal.amount);
        let id = withdrawal::payload_id(spec, sought.owned, amount, sought.additional)?;
        let (payload, sight) = tokio::try_join!(allocator.payload(id), sought.look())?;
        let mut standing = Standing {
            status: WithdrawalStatus::Pending,
            grounds: Vec::new(),
            shown: None,
        };
        let Some(payload) = payload else {
            return Ok(standing);
        };
        withdrawal::check_recorded(sought.withdrawal, &payload.withdrawal)?;
        let Some(block) = sight.block.clone() else {
            return Ok(standing);
        };
        standing.shown = sought.shown(&sight)?;
        standing.status = sight.status;
        standing.grounds = vec![(spec.id.clone(), block), (payload.chain, payload.block)];
        Ok(standing)
    }

    /// What to sign about a withdrawal; `None` while it is pending. The result does not depend on whether the caller
    /// names a transaction.
    fn verdict(&self, sought: &Sought<'_>, standing: &Standing) -> Option<(Execution, Statement)> {
        let (id, withdrawal) = (&sought.chain.spec.id, sought.withdrawal);
        let escrow = sought.owned.escrow(withdrawal.amount);
        let (verdict, execution) = match standing.status {
            WithdrawalStatus::Pending => return None,
            WithdrawalStatus::Executed => (Verdict::Executed, escrow.burned(withdrawal.id)),
            WithdrawalStatus::Expired => (Verdict::Expired, escrow.returned(withdrawal.id)),
        };
        let digest = self.digest(&execution);
        let mut statement = Statement::withdrawal(id, withdrawal.id, verdict, digest);
        if let Some((tx, block)) = &standing.shown {
            statement = statement.resting_on(id, tx, block);
        }
        for (chain, block) in &standing.grounds {
            statement = statement.as_of(chain, block);
        }
        Some((execution, statement))
    }
}

impl Sought<'_> {
    /// Reads the withdrawal's status; reads a pending one once more, from a newer head.
    async fn look(&self) -> Result<Sight, ReadError> {
        let reader = &self.chain.reader;
        let sight = self.seen_from(reader.head().await?).await?;
        if sight.status != WithdrawalStatus::Pending {
            return Ok(sight);
        }
        let fresh = reader.fresh_head().await?;
        match fresh == sight.head {
            true => Ok(sight),
            false => self.seen_from(fresh).await,
        }
    }

    async fn seen_from(&self, head: Head) -> Result<Sight, ReadError> {
        let named = async {
            let Some(transaction) = self.transaction else {
                return Ok(None);
            };
            let found = self.chain.reader.transaction(transaction, &head).await;
            found.map(Some)
        };
        let stands = async {
            let Some(block) = self.state.settled(&head).await? else {
                return Ok((WithdrawalStatus::Pending, None));
            };
            let read = self
                .state
                .withdrawal(self.encoded, self.transaction, &block);
            Ok((read.await?, Some(block)))
        };
        let ((status, block), found) = tokio::try_join!(stands, named)?;
        Ok(Sight {
            head,
            status,
            block,
            found,
        })
    }

    /// The transaction that the caller names for an ended withdrawal; it must show the execution.
    fn shown(&self, sight: &Sight) -> Result<Option<(TxRef, Block)>, Refusal> {
        let ended = sight.status != WithdrawalStatus::Pending;
        let (Some(transaction), Some(found), true) = (self.transaction, &sight.found, ended) else {
            return Ok(None);
        };
        let seen = Seen {
            spec: &self.chain.spec,
            transaction,
            head: &sight.head,
            found,
        };
        let receipt = seen.settled()?;
        let (depository, named) = (&self.owned.depository, self.withdrawal.named);
        withdrawal::check_shown(receipt, transaction, depository, named)?;
        Ok(Some((transaction.clone(), receipt.block.clone())))
    }
}
