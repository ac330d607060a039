//! An export of a store of format 3, in which every account was of one family, row by row.
//!
//! | rows | what becomes of them |
//! |---|---|
//! | a lane, a payment of it | what the family writes of them now; an attempt, and what it holds |
//! | claim, settlement | the same, with the attempt instead of its number |
//! | all others | carried over |
//!
//! Reservations stay: an attempt's id stands in their names as its number did.

use serde::Deserialize;
use serde_json::Value;
use vm::ethereum::trade::{Carried, CarriedAccount, carried_family, carried_id};

use crate::store::{
    rows::{
        self, RowError, account,
        attempt::{self, Attempt, Owner, Signed},
        claim::Claim,
        settlement::Settlement,
    },
    walk::Stored,
};

/// The store's format.
pub(super) const STORE: u8 = 3;
/// The format byte that the rows read here had.
const FORMAT: u8 = 1;

#[derive(Deserialize)]
struct Account {
    known: CarriedAccount,
    account: String,
}

#[derive(Deserialize)]
struct Slot {
    owner: Owner,
    carried: Carried,
    sent_at: u64,
    refused: u32,
}

/// What the row is now: one row, or an attempt with what it holds.
pub(super) fn row((key, value): Stored) -> Result<Vec<Stored>, RowError> {
    match key.kind {
        rows::LANE => match key.name.iter().position(|byte| *byte == 0) {
            None => Ok(vec![(key, account(&value)?)]),
            Some(zero) => {
                let wrong = |error: &dyn ToString| RowError::new("lane", error.to_string());
                let name = std::str::from_utf8(&key.name[..zero]).map_err(|e| wrong(&e))?;
                slot(name, &key.name[zero + 1..], &value)
            }
        },
        rows::CLAIM => {
            let mut claim: Value = rows::decode_json("claim", FORMAT, &value)?;
            let legs = claim.get_mut("legs").and_then(Value::as_array_mut);
            for leg in legs.into_iter().flatten() {
                rename(leg)?;
            }
            let claim = Claim::deserialize(&claim).map_err(|e| RowError::new("claim", e))?;
            Ok(vec![(key, claim.encode()?)])
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
            let settlement = Settlement::deserialize(&settlement);
            let settlement = settlement.map_err(|e| RowError::new("settlement", e))?;
            Ok(vec![(key, settlement.encode()?)])
        }
        _ => Ok(vec![(key, value)]),
    }
}

/// A payment's number is an attempt's id now.
fn rename(named: &mut Value) -> Result<(), RowError> {
    let missing = || RowError::new("claim", "it names no nonce");
    let fields = named.as_object_mut().ok_or_else(missing)?;
    let nonce = fields.remove("nonce").and_then(|nonce| nonce.as_u64());
    let id = carried_id(nonce.ok_or_else(missing)?);
    fields.insert("attempt".into(), id.to_string().into());
    Ok(())
}

fn account(value: &[u8]) -> Result<Vec<u8>, RowError> {
    let old: Account = rows::decode("lane", FORMAT, value)?;
    let lane = account::Account {
        account: old.account,
        family: carried_family().name.to_owned(),
        own: old.known.own(),
    };
    lane.encode()
}

fn slot(lane: &str, id: &[u8], value: &[u8]) -> Result<Vec<Stored>, RowError> {
    let Slot {
        owner,
        carried,
        sent_at,
        refused,
    } = rows::decode("lane", FORMAT, value)?;
    let made = carried.attempt(id);
    let made = made.map_err(|error| RowError::new("lane", error))?;
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
