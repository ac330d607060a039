//! An export of a store of format 3, in which every account was one of nonces, row by row.
//!
//! | rows | what becomes of them |
//! |---|---|
//! | a lane, a nonce | what the family of nonces writes of them now; an attempt, and what it holds |
//! | claim, settlement | the same, with the attempt instead of the nonce |
//! | all others | carried over |
//!
//! Reservations stay: an attempt's id is its nonce as it stood in their names.

use alloy::primitives::{B256, Bytes, U256};
use serde::Deserialize;
use serde_json::Value;
use vm::{
    CodecError, Family,
    ethereum::trade::{Carried, CarriedTx, carried_account, carried_id},
    trade::{self, Call, Intent},
};

use crate::store::{
    rows::{
        self, RowError, account,
        attempt::{self, Attempt, Owner, Signed},
    },
    walk::Stored,
};

/// The store's format.
pub(super) const STORE: u8 = 3;
/// The format byte that the rows read here had.
const FORMAT: u8 = 1;

#[derive(Deserialize)]
struct Account {
    next: u64,
    skipped: Vec<u64>,
    account: String,
}

#[derive(Deserialize)]
struct Slot {
    owner: Owner,
    to: String,
    data: Bytes,
    value: U256,
    authorizations: Vec<Authorization>,
    gas: u64,
    data_fee: U256,
    spends: Vec<(String, U256)>,
    versions: Vec<Version>,
    sent_at: u64,
    refused: u32,
}

#[derive(Deserialize)]
struct Version {
    hash: B256,
    raw: Bytes,
    gas: u64,
    max_fee: u128,
    max_priority_fee: u128,
    cancels: bool,
}

#[derive(Deserialize)]
struct Authorization {
    chain_id: u64,
    address: String,
    nonce: u64,
    y_parity: u8,
    r: B256,
    s: B256,
}

/// What the row is now: one row, or an attempt with what it holds.
pub(super) fn row((key, value): Stored) -> Result<Vec<Stored>, RowError> {
    match key.kind {
        rows::LANE => match key.name.iter().position(|byte| *byte == 0) {
            None => Ok(vec![(key, account(&value)?)]),
            Some(zero) => {
                let wrong = |error: &dyn ToString| RowError::new("lane", error.to_string());
                let name = std::str::from_utf8(&key.name[..zero]).map_err(|e| wrong(&e))?;
                let nonce = <[u8; 8]>::try_from(&key.name[zero + 1..]).map_err(|e| wrong(&e))?;
                slot(name, u64::from_be_bytes(nonce), &value)
            }
        },
        rows::CLAIM => {
            let mut claim: Value = rows::decode_json("claim", FORMAT, &value)?;
            let legs = claim.get_mut("legs").and_then(Value::as_array_mut);
            for leg in legs.into_iter().flatten() {
                rename(leg)?;
            }
            Ok(vec![(key, written("claim", &claim)?)])
        }
        rows::SETTLEMENT => {
            let mut settlement: Value = rows::decode_json("settlement", FORMAT, &value)?;
            for part in ["deposited", "outcome"] {
                if let Some(sent) = settlement
                    .get_mut(part)
                    .and_then(|part| part.get_mut("Sent"))
                {
                    rename(sent)?;
                }
            }
            Ok(vec![(key, written("settlement", &settlement)?)])
        }
        _ => Ok(vec![(key, value)]),
    }
}

/// The nonce is an attempt's id now.
fn rename(named: &mut Value) -> Result<(), RowError> {
    let missing = || RowError::new("claim", "it names no nonce");
    let fields = named.as_object_mut().ok_or_else(missing)?;
    let nonce = fields.remove("nonce").and_then(|nonce| nonce.as_u64());
    let id = carried_id(nonce.ok_or_else(missing)?);
    fields.insert("attempt".into(), id.to_string().into());
    Ok(())
}

/// As the row's decoder has it now.
fn written(row: &'static str, value: &Value) -> Result<Vec<u8>, RowError> {
    let wrong = |error: serde_json::Error| RowError::new(row, error);
    match row {
        "claim" => {
            let claim = rows::claim::Claim::deserialize(value).map_err(wrong)?;
            claim.encode()
        }
        _ => {
            let settlement = rows::settlement::Settlement::deserialize(value).map_err(wrong)?;
            settlement.encode()
        }
    }
}

/// All that traded then.
fn family() -> &'static Family {
    vm::SETTLEMENT
}

fn account(value: &[u8]) -> Result<Vec<u8>, RowError> {
    let old: Account = rows::decode("lane", FORMAT, value)?;
    let lane = account::Account {
        account: old.account,
        family: family().name.to_owned(),
        own: carried_account(old.next, old.skipped),
    };
    lane.encode()
}

fn slot(lane: &str, nonce: u64, value: &[u8]) -> Result<Vec<Stored>, RowError> {
    let old: Slot = rows::decode("lane", FORMAT, value)?;
    let (owner, sent_at, refused) = (old.owner.clone(), old.sent_at, old.refused);
    let made = made(nonce, old).map_err(|error| RowError::new("lane", error))?;
    let signed = made.signed.into_iter().map(|one| Signed {
        id: one.id,
        cancels: one.cancels,
    });
    let spends = made.spends.into_iter();
    let attempt = Attempt {
        owner,
        resources: made.resources,
        spends: spends
            .map(|(currency, amount)| (currency.text().to_owned(), amount))
            .collect(),
        signed: signed.collect(),
        own: made.own,
        sent_at,
        refused,
    };
    let held = attempt.resources.iter();
    let mut rows: Vec<_> = held
        .map(|held| (attempt::resource(lane, held), attempt::holder(&made.id)))
        .collect();
    rows.push((attempt::key(lane, &made.id), attempt.encode()?));
    Ok(rows)
}

fn made(nonce: u64, old: Slot) -> Result<trade::Attempt, CodecError> {
    let family = family();
    let authorizations = old.authorizations.into_iter().map(|one| {
        Ok(trade::Authorization {
            chain_id: one.chain_id,
            address: family.address(&one.address)?,
            nonce: one.nonce,
            y_parity: one.y_parity,
            r: one.r,
            s: one.s,
        })
    });
    let spends = old.spends.into_iter();
    let spends = spends.map(|(currency, amount)| Ok((family.address(&currency)?, amount)));
    let to = family.address(&old.to)?;
    let intent = Intent {
        call: Call {
            from: to.clone(),
            to,
            data: old.data,
            value: old.value,
        },
        authorizations: authorizations.collect::<Result<_, CodecError>>()?,
        limit: old.gas,
        spends: spends.collect::<Result<_, CodecError>>()?,
    };
    let signed = old.versions.into_iter().map(|one| CarriedTx {
        hash: one.hash,
        raw: one.raw,
        gas: one.gas,
        max_fee: one.max_fee,
        max_priority_fee: one.max_priority_fee,
        cancels: one.cancels,
    });
    let carried = Carried {
        nonce,
        intent,
        data_fee: old.data_fee,
        signed: signed.collect(),
    };
    carried.attempt(family.native()?)
}
