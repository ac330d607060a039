//! Allocators: what they recorded, and its signatures.

use alloy::{primitives::Bytes, sol, sol_types::SolCall};
use vm::{B256, Block, Chain, ChainId, EvmAddress, Head, ReadError, U256};

use super::{at_head, state, view};

sol! {
    function payloads(bytes32 id) returns (bytes);
    function payloadBuilders(string chainId, bytes depository) returns (address);
    function payloadBuilders(uint256 chainId, string depository) returns (address);
    function hashToSign(uint256 chainId, string depository, bytes payload, uint32 index) returns (bytes32);
    function signedPayloads(bytes32 id, bytes32 hash) returns (bytes);
}

/// The contract that decides which withdrawals depositories make (guide: protocol 8.2).
pub struct Allocator {
    pub(super) chain: Chain,
    pub(super) contract: EvmAddress,
}

/// A withdrawal as the allocator recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The family's encoding of the withdrawal.
    pub withdrawal: Bytes,
    /// The final block of the read, and that block's chain.
    pub block: Block,
    pub chain: ChainId,
}

/// Whose signatures are read: the withdrawal recorded under `id`.
#[derive(Clone, Copy, Debug)]
pub struct SignedPayload<'a> {
    pub id: B256,
    pub payload: &'a Payload,
    /// The number of the withdrawal's chain at the hub.
    pub chain: U256,
    pub depository: &'a str,
}

impl Allocator {
    /// The withdrawal recorded under `id`; `None` while there is none, or it is not final.
    pub async fn payload(&self, id: B256) -> Result<Option<Payload>, ReadError> {
        let read = |head: Head| async move { self.recorded(id, &head).await };
        at_head(&self.chain, read, Option::is_some).await
    }

    /// The signature number `index` of a withdrawal, as the signature service gave it; `None` while there is none.
    pub async fn signature(
        &self,
        of: &SignedPayload<'_>,
        index: usize,
    ) -> Result<Option<Bytes>, ReadError> {
        let (id, block) = (of.id, &of.payload.block);
        let state = state(&self.chain)?;
        let call = hashToSignCall {
            chainId: of.chain,
            depository: of.depository.to_owned(),
            payload: of.payload.withdrawal.clone(),
            index: u32::try_from(index).map_err(|_| ReadError::TooLarge)?,
        };
        let hash = view(state, self.contract, &call, block).await?;
        let call = signedPayloadsCall { id, hash };
        let signature = view(state, self.contract, &call, block).await?;
        Ok(Some(signature).filter(|signature| !signature.is_empty()))
    }

    /// Whether the hub's own allocator makes withdrawals from `depository` of `chain`, as of a final block.
    pub async fn serves(&self, chain: &str, depository: &Bytes) -> Result<bool, ReadError> {
        let call = payloadBuilders_0Call {
            chainId: chain.to_owned(),
            depository: depository.clone(),
        };
        self.is_built(&call).await
    }

    /// The same of the allocator that takes payload params; `chain` is the chain's number at the hub.
    pub async fn serves_payload(&self, chain: U256, depository: &str) -> Result<bool, ReadError> {
        let call = payloadBuilders_1Call {
            chainId: chain,
            depository: depository.to_owned(),
        };
        self.is_built(&call).await
    }

    /// Whether `call` names a builder, as of a final block.
    async fn is_built<C>(&self, call: &C) -> Result<bool, ReadError>
    where
        C: SolCall<Return = EvmAddress>,
    {
        let read = |head: Head| async move { self.has_builder(call, &head).await };
        at_head(&self.chain, read, |serves: &bool| *serves).await
    }

    async fn has_builder<C>(&self, call: &C, head: &Head) -> Result<bool, ReadError>
    where
        C: SolCall<Return = EvmAddress>,
    {
        let state = state(&self.chain)?;
        let Some(block) = state.settled(head).await? else {
            return Ok(false);
        };
        let builder = view(state, self.contract, call, &block).await?;
        Ok(!builder.is_zero())
    }

    async fn recorded(&self, id: B256, head: &Head) -> Result<Option<Payload>, ReadError> {
        let state = state(&self.chain)?;
        let Some(block) = state.settled(head).await? else {
            return Ok(None);
        };
        let call = payloadsCall { id };
        let withdrawal = view(state, self.contract, &call, &block).await?;
        Ok((!withdrawal.is_empty()).then(|| Payload {
            withdrawal,
            block,
            chain: self.chain.spec.id.clone(),
        }))
    }
}
