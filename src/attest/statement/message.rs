//! Statements that are messages of their own, not executions (guide: protocol 8.7 and 9).

use vm::types::{B256, ChainId, EvmAddress, U256};

use super::{Consumption, Outcome, Statement, return_of};

impl Statement {
    /// The entry `id` of `account` in the generic mapping. It depends on no chain: its account signed for it.
    pub fn mapping(account: EvmAddress, id: B256, digest: B256) -> Self {
        Self::new(format!("mapping/{account:#x}/{id}"), digest)
    }

    /// The trigger with this hash, as of the state of `hub`.
    pub fn trigger(hub: &ChainId, hash: B256, digest: B256) -> Self {
        let mut statement = Self::new(format!("trigger/{hash}"), digest);
        statement.chains.push(hub.clone());
        statement
    }

    /// The payload params with this payload id, as of the state of `hub`. A withdrawal address has one payload: the
    /// depository would pay each, and the hub has the money once.
    pub fn payload(hub: &ChainId, address: EvmAddress, id: B256, digest: B256) -> Self {
        let mut statement = Self::new(format!("payload/{id}"), digest);
        statement.chains.push(hub.clone());
        statement.consuming(format!("payload/{address:#x}"))
    }

    /// The authorization of the withdraw request with this hash. Its owner signs the same for an initiation, so each pair
    /// of account and nonce serves one of both.
    pub fn authorization(
        hub: &ChainId,
        (account, nonce): (EvmAddress, B256),
        request: B256,
        digest: B256,
    ) -> Self {
        let mut statement = Self::new(format!("authorization/{request}"), digest);
        statement.chains.push(hub.clone());
        statement.asked_by(account, nonce)
    }

    /// The inclusion of the withdraw request with this hash, as of the state of `hub`. An index of a request has one hash
    /// for ever.
    pub fn inclusion(hub: &ChainId, request: B256, hashes: &[(U256, B256)], digest: B256) -> Self {
        let mut statement = Self::new(format!("inclusion/{request}/{digest}"), digest);
        statement.chains.push(hub.clone());
        let consumed = hashes.iter().map(|(index, hash)| Consumption {
            what: format!("inclusion/{request}/{index}"),
            by: format!("hash/{hash}"),
        });
        statement.consumes.extend(consumed);
        statement
    }

    /// The request with this nonce that `hub`'s executor ends an order with a deposit. The hub decides which of several
    /// requests, outcomes and recoveries takes the deposit's money: a request that nobody executes must not keep it from
    /// its solver or depositor. But none is signed once another statement took it.
    pub fn exchange(
        hub: &ChainId,
        (outcome, deposit, nonce): (Outcome, B256, B256),
        digest: B256,
    ) -> Self {
        let key = format!("withdraw-and-{outcome}/{deposit}/{nonce}");
        let mut statement = Self::new(key, digest);
        statement.chains.push(hub.clone());
        let free = [format!("deposit/{deposit}"), return_of(&deposit)];
        statement.free.extend(free);
        statement
    }
}
