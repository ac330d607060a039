//! A transaction in a block → chain-neutral facts (guide: protocol 4.4). Pure: no I/O, no clock.

use std::{collections::BTreeSet, sync::Arc};

use borsh::BorshDeserialize;
use sha2::{Digest, Sha256};
use solana_pubkey::Pubkey;

use super::{
    deposit::{self, deposits},
    executed::Executed,
    payment::payments,
    programs::vault,
    trade::own,
    withdrawal::Transfer,
};
use crate::{
    ChainSpec, SpecError,
    types::{Address, B256, Block, Execution, Failure, Receipt, Transaction},
};

/// Anchor's discriminator: the first 8 bytes of sha256 of `global:execute_transfer`.
const EXECUTE_TRANSFER: [u8; 8] = [0xe9, 0x7e, 0xa0, 0xb8, 0xeb, 0xce, 0x1f, 0x77];
/// `0x` and 64 hex digits.
const ID_LENGTH: usize = 66;

/// What of a chain's configuration decides how its transactions are read.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Where deposits are made.
    pub depository: Option<Depository>,
    /// Where withdrawals may be executed: the primary depository and the additional ones.
    depositories: Vec<Depository>,
    pub native: Address,
}

/// A depository's program.
#[derive(Clone, Debug)]
pub struct Depository {
    pub address: Address,
    pub program: Pubkey,
    /// What has its money.
    pub vault: Pubkey,
}

impl Depository {
    fn new(address: &Address) -> Result<Self, SpecError> {
        let program = Pubkey::try_from(address.bytes()).ok();
        let known = program.and_then(|program| Some((program, vault(&program)?)));
        let (program, vault) = known
            .ok_or_else(|| SpecError(format!("depository: {address} is no program's address")))?;
        Ok(Self {
            address: address.clone(),
            program,
            vault,
        })
    }
}

impl Rules {
    /// Refuses depositories that are not 32 bytes.
    pub fn new(spec: &ChainSpec) -> Result<Self, SpecError> {
        let native = spec.family.native();
        Ok(Self {
            depository: spec.depository.as_ref().map(Depository::new).transpose()?,
            depositories: spec
                .depositories()
                .map(Depository::new)
                .collect::<Result<_, _>>()?,
            native: native.map_err(|error| SpecError(error.to_string()))?,
        })
    }

    /// The chain-neutral spelling.
    pub fn address(&self, key: &Pubkey) -> Address {
        Address::from_parts(&key.to_string(), key.to_bytes())
    }
}

/// The transaction's effects; `block` is its block. `mint` is what the account of [`unnamed`] holds.
pub fn decode(
    rules: &Rules,
    executed: &Executed,
    block: Block,
    mint: Option<Pubkey>,
) -> Transaction {
    let references = references(executed);
    if executed.failed {
        return Transaction::Failed(Failure {
            block,
            references,
            outer_call: own::digest(executed),
        });
    }
    Transaction::Succeeded(Receipt {
        block,
        sender: executed.payer().map(|payer| rules.address(&payer)),
        deposits: deposits(rules, executed, mint),
        payments: payments(rules, executed),
        calls: Vec::new(),
        executions: executions(rules, executed),
        references,
        outer_call: own::digest(executed),
    })
}

/// See [`deposit::unnamed`]. A failed transaction needs nothing more.
pub fn unnamed(rules: &Rules, executed: &Executed) -> Option<Pubkey> {
    let succeeded = Some(executed).filter(|executed| !executed.failed)?;
    deposit::unnamed(rules, succeeded)
}

/// Withdrawals that a depository executed, by their ids: the hashes of the requests in their instructions.
fn executions(rules: &Rules, executed: &Executed) -> Vec<Execution> {
    let executions = executed.steps.iter().filter_map(|step| {
        let mut depositories = rules.depositories.iter();
        let by = depositories.find(|depository| depository.program == step.program)?;
        let request = step.data.bytes().strip_prefix(&EXECUTE_TRANSFER)?;
        let mut rest = request;
        // Behind the request nothing counts, as for the program.
        Transfer::deserialize(&mut rest).ok()?;
        let request = &request[..request.len() - rest.len()];
        Some(Execution {
            depository: by.address.clone(),
            id: B256::from_slice(&Sha256::digest(request)),
        })
    });
    executions.collect()
}

/// The order ids that the transaction's memos contain.
fn references(executed: &Executed) -> Vec<Arc<str>> {
    let texts: BTreeSet<&str> = executed.memos().flat_map(ids).collect();
    texts.into_iter().map(Arc::from).collect()
}

/// The ids in a text: `0x` and 64 lower-case hex digits, not followed by a further one.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("0x").filter_map(|(at, _)| {
        let id = text.get(at..at + ID_LENGTH)?;
        let mut digits = id.bytes().skip(2);
        let is_id = digits.all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let next = text.as_bytes().get(at + ID_LENGTH);
        let longer = next.is_some_and(u8::is_ascii_hexdigit);
        (is_id && !longer).then_some(id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_where_they_are_whole() {
        let id = format!("0x{}", "0a".repeat(32));
        let found = |text: &str| ids(text).map(str::to_owned).collect::<Vec<_>>();
        for text in [
            id.clone(),
            format!("relay {id} ok"),
            format!("é{id}é"),
            format!("0x{id}"),
        ] {
            assert_eq!(found(&text), std::slice::from_ref(&id), "{text}");
        }
        assert_eq!(found(&format!("{id} {id}")).len(), 2);
        for text in [
            id.to_uppercase(),
            format!("{id}0"),
            format!("{id}A"),
            id[..65].to_owned(),
            id[2..].to_owned(),
            "0x".to_owned(),
            String::new(),
        ] {
            assert!(found(&text).is_empty(), "{text}");
        }
    }
}
