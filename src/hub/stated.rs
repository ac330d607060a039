//! What contracts of the settlement chain say for messages that are no executions, each as of one final block.
//!
//! A negative answer comes from a fresh tip, because the tracked one may be older than what the caller knows.

use std::iter;

use alloy::{sol, sol_types::SolCall};
use vm::{B256, Block, Chain, EvmAddress, Head, ReadError, U256};

use super::{Allocator, Hub, at_head, state, view};

sol! {
    function triggers(bytes32 triggerHash) returns (bytes32);
    function hashesToSign(bytes32 requestHash, uint256 index) returns (bytes32);
}

/// The most concurrent calls of one request.
const AT_ONCE: usize = 8;

/// The answers to several calls, and the final block of all of them; none of both while there is no such block. Where an
/// answer is not what was wanted, some calls after it were not made.
type Answers = (Vec<B256>, Option<Block>);

impl Allocator {
    pub fn contract(&self) -> EvmAddress {
        self.contract
    }
}

impl Hub {
    /// The final block at which `manager` maps the trigger to `order`; `None` where it does not.
    pub async fn triggered(
        &self,
        manager: EvmAddress,
        trigger: B256,
        order: B256,
    ) -> Result<Option<Block>, ReadError> {
        let call = triggersCall {
            triggerHash: trigger,
        };
        let (found, block) = self
            .stated(manager, &[call], |found| *found == order)
            .await?;
        Ok(block.filter(|_| found[..] == [order]))
    }

    /// The hashes that the hub's own allocator has for a withdraw request, in the order of `indexes`, and the final block;
    /// `None` while there is no such block. A hash is zero where it has none, and some that follow are left out then.
    pub async fn hashes_to_sign(
        &self,
        allocator: &Allocator,
        request: B256,
        indexes: &[U256],
    ) -> Result<Option<(Vec<B256>, Block)>, ReadError> {
        let call = |index: &U256| hashesToSignCall {
            requestHash: request,
            index: *index,
        };
        let calls: Vec<_> = indexes.iter().map(call).collect();
        let set = |hash: &B256| !hash.is_zero();
        let (found, block) = self.stated(allocator.contract, &calls, set).await?;
        Ok(block.map(|block| (found, block)))
    }

    /// The answers to `calls` at one final block; from a fresh tip where one is not what is `wanted`.
    async fn stated<C: SolCall<Return = B256>>(
        &self,
        contract: EvmAddress,
        calls: &[C],
        wanted: impl Fn(&B256) -> bool,
    ) -> Result<Answers, ReadError> {
        let (chain, wanted) = (self.settlement()?, &wanted);
        let read = |head: Head| async move {
            let asked = (contract, calls);
            answers(chain, asked, &head, wanted).await
        };
        let answered = |(found, block): &Answers| block.is_some() && found.iter().all(wanted);
        at_head(chain, read, answered).await
    }
}

/// The answers to `calls` of `contract`: to the first one alone, since nobody is to have many made about nothing, then to
/// several at once, until one is not what is `wanted`.
async fn answers<C: SolCall<Return = B256>>(
    chain: &Chain,
    (contract, calls): (EvmAddress, &[C]),
    head: &Head,
    wanted: &impl Fn(&B256) -> bool,
) -> Result<Answers, ReadError> {
    let state = state(chain)?;
    let Some(block) = state.settled(head).await? else {
        return Ok((Vec::new(), None));
    };
    let (first, rest) = calls.split_at(calls.len().min(1));
    let mut found = Vec::with_capacity(calls.len());
    for some in iter::once(first).chain(rest.chunks(AT_ONCE)) {
        let asked = some.iter().map(|call| view(state, contract, call, &block));
        found.extend(futures::future::try_join_all(asked).await?);
        if !found.iter().all(wanted) {
            break;
        }
    }
    Ok((found, Some(block)))
}
