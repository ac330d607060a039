//! The amounts that running transactions will take from the solver's balances.
//!
//! Key: the lane's name, a zero byte, the currency's bytes in hex, a zero byte, the attempt's id. Value,
//! format 1: the amount, 32 bytes big endian.
//!
//! The row lives until its payment is final; some 100 bytes.

use alloy::primitives::U256;

use super::{RESERVATION, RowError};
use crate::store::Key;

const FORMAT: u8 = 1;

pub fn key(lane: &str, currency: &[u8], attempt: &[u8]) -> Key {
    let name = [prefix(lane, currency).as_slice(), attempt].concat();
    Key::new(RESERVATION, name)
}

pub fn encode(amount: U256) -> Vec<u8> {
    [&[FORMAT], &amount.to_be_bytes::<32>()[..]].concat()
}

pub fn decode(bytes: &[u8]) -> Result<U256, RowError> {
    let wrong = || RowError::new("reservation", "not of format 1");
    let bytes: &[u8; 33] = bytes.try_into().map_err(|_| wrong())?;
    match bytes.split_first() {
        Some((&FORMAT, amount)) => Ok(U256::from_be_slice(amount)),
        _ => Err(wrong()),
    }
}

/// What the names of one currency's reservations begin with.
pub fn prefix(lane: &str, currency: &[u8]) -> Vec<u8> {
    let currency = alloy::hex::encode(currency);
    [lane.as_bytes(), &[0], currency.as_bytes(), &[0]].concat()
}
