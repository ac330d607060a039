//! Texts of a body as values.

use std::{borrow::Cow, num::NonZero};

use alloy::primitives::U256;
use vm::{
    Address, ChainSpec, CodecError, EvmAddress, Family,
    protocol::{BASIS_POINTS, text as wire},
};

use super::super::{
    body::{self, Body},
    code::{Code, Refused},
};

/// Digits of 2^256.
const DIGITS: usize = 78;
/// More gas than any chain's block has.
const MOST_GAS: u64 = 1_000_000_000;
/// Fractions of a basis point that an app fee may name.
const FRACTION: u32 = 6;
const MOST_FEES: usize = 16;
const MOST_TEXT: usize = 256;

/// Seconds from a quote to the deadline of its fill.
pub const LIFE: u64 = 604_800;
const _: () = assert!(
    MOST_GAS == 1_000_000_000 && MOST_FEES == 16 && MOST_TEXT == 256 && LIFE == 604_800,
    "the description says so"
);

/// An integrator's fee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppFee {
    /// As the caller spelled it; an EVM address.
    pub recipient: String,
    /// Basis points as the caller wrote them.
    pub bps: String,
    /// Millionths of a basis point.
    pub parts: u64,
}

impl AppFee {
    /// `parts` of the whole.
    pub const WHOLE: u64 = BASIS_POINTS * 10_u64.pow(FRACTION);
}

/// An account or contract of the chain's family, unless it is misspelled.
pub fn account(spec: &ChainSpec, text: &str) -> Option<Address> {
    spelled(spec.family, spec.family.account(text).ok()?, text)
}

/// A currency of the chain's family, unless it is misspelled.
pub fn currency(spec: &ChainSpec, text: &str) -> Option<Address> {
    spelled(spec.family, spec.family.currency(text).ok()?, text)
}

/// The address, unless its family writes hex and `text` is none or has a wrong checksum.
fn spelled(family: &Family, address: Address, text: &str) -> Option<Address> {
    let usual = family.codec.decode_address(address.bytes());
    let hex = usual.is_ok_and(|usual| usual.starts_with("0x"));
    let sound = !hex || text.starts_with("0x") && misspelled(text).is_none();
    sound.then_some(address)
}

pub fn is_zero(address: &Address) -> bool {
    address.bytes().iter().all(|byte| *byte == 0)
}

/// An account that can own something.
pub fn owner(spec: &ChainSpec, field: &str, text: &str) -> Result<Address, Refused> {
    account(spec, text)
        .filter(|address| !is_zero(address))
        .ok_or_else(|| bad(field, text))
}

pub fn bad(field: &str, text: &str) -> Refused {
    let what = misspelled(text).unwrap_or("expected an address of its chain");
    Refused::new(Code::InvalidAddress, format!("{field}: {what}"))
}

/// What is wrong with `0x` and 40 hex digits in mixed case, which is their checksum (EIP-55).
pub fn misspelled(text: &str) -> Option<&'static str> {
    let lower = text.strip_prefix("0x")?.to_ascii_lowercase();
    let meant = wire::evm_address(&format!("0x{lower}")).is_ok() && evm_address(text).is_err();
    meant.then_some("checksum of the address is wrong")
}

/// Parses an EVM address: with letters of one case, or with a correct checksum.
pub fn evm_address(text: &str) -> Result<EvmAddress, CodecError> {
    wire::evm_address(&without_capitals(text))
}

/// Hex without a lower-case letter, in lower case: it has no checksum (EIP-55). Any other text as it is.
fn without_capitals(text: &str) -> Cow<'_, str> {
    let capitals = |digits: &&str| !digits.bytes().any(|byte| byte.is_ascii_lowercase());
    match text.strip_prefix("0x").filter(capitals) {
        Some(digits) => format!("0x{}", digits.to_ascii_lowercase()).into(),
        None => text.into(),
    }
}

fn invalid(what: impl Into<String>) -> Refused {
    Refused::new(Code::InvalidField, what)
}

/// An EVM address, wherever the trade is.
fn evm(field: &str, text: &str) -> Result<(), Refused> {
    let wrong = |_| {
        let what = misspelled(text).unwrap_or("expected 0x and 40 hex digits");
        Refused::new(Code::InvalidAddress, format!("{field}: {what}"))
    };
    evm_address(text).map(drop).map_err(wrong)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits only; zeros in front mean nothing. More than there can be of any currency is more than we
/// have of it.
pub fn amount(text: &str) -> Result<U256, Refused> {
    if !digits(text) {
        let what = "amount: expected digits only, in the currency's smallest unit";
        return Err(Refused::new(Code::InvalidAmount, what));
    }
    let number = (text.len() <= DIGITS).then(|| U256::from_str_radix(text, 10).ok());
    let number = number.flatten().ok_or_else(|| {
        let what = "amount: expected at most 2^256 - 1, in at most 78 digits";
        Refused::new(Code::InsufficientLiquidity, what)
    })?;
    if number.is_zero() {
        let what = "amount: expected more than 0";
        return Err(Refused::new(Code::AmountTooLow, what));
    }
    Ok(number)
}

/// Digits of at most 256 bits, for what is not the amount.
pub fn number(text: &str) -> Option<U256> {
    let clean = digits(text) && text.len() <= DIGITS;
    clean.then(|| U256::from_str_radix(text, 10).ok()).flatten()
}

pub fn slippage(field: &str, text: Option<&str>) -> Result<Option<u16>, Refused> {
    let Some(text) = text else {
        return Ok(None);
    };
    let bps = digits(text).then(|| text.parse::<u16>().ok()).flatten();
    bps.filter(|bps| u64::from(*bps) <= BASIS_POINTS)
        .map(Some)
        .ok_or_else(|| {
            let what = format!("{field}: expected an integer text from 0 to 10000");
            Refused::new(Code::InvalidSlippageTolerance, what)
        })
}

pub fn gas(field: &str, gas: Option<u64>) -> Result<Option<u64>, Refused> {
    if gas.is_some_and(|gas| gas > MOST_GAS) {
        let what = format!("{field}: expected at most {MOST_GAS}");
        return Err(invalid(what));
    }
    Ok(gas)
}

pub fn most_pools(length: Option<u64>) -> Result<Option<NonZero<u64>>, Refused> {
    let most =
        |length| NonZero::new(length).ok_or_else(|| invalid("maxRouteLength: expected at least 1"));
    length.map(most).transpose()
}

pub fn ttl(ttl: Option<u64>) -> Result<Option<u64>, Refused> {
    if ttl.is_some_and(|ttl| ttl == 0 || ttl > LIFE) {
        let what = format!("ttl: expected 1 to {LIFE} seconds");
        return Err(invalid(what));
    }
    Ok(ttl)
}

pub fn referrer(body: &Body) -> Result<Option<String>, Refused> {
    if let Some(address) = &body.referrer_address {
        evm("referrerAddress", address)?;
    }
    let referrer = body.referrer.clone();
    if referrer.as_ref().is_some_and(|text| text.len() > MOST_TEXT) {
        let what = format!("referrer: expected at most {MOST_TEXT} bytes");
        return Err(invalid(what));
    }
    Ok(referrer)
}

/// The fees that take something: one of zero is as if it were not there, once it is valid.
pub fn app_fees(fees: &[body::AppFee]) -> Result<Vec<AppFee>, Refused> {
    if fees.len() > MOST_FEES {
        let what = format!("appFees: expected at most {MOST_FEES}");
        return Err(invalid(what));
    }
    let read = fees.iter().map(|fee| -> Result<AppFee, Refused> {
        evm("appFees.recipient", &fee.recipient)?;
        let what = "appFees.fee: expected basis points as a decimal text, at most six decimals";
        Ok(AppFee {
            recipient: fee.recipient.clone(),
            bps: fee.fee.0.clone(),
            parts: parts(&fee.fee).ok_or_else(|| invalid(what))?,
        })
    });
    let read = read.collect::<Result<Vec<_>, _>>()?;
    let total: u64 = read.iter().map(|fee| fee.parts).sum();
    if total > AppFee::WHOLE {
        return Err(invalid("appFees: expected at most 10000 basis points"));
    }
    Ok(read.into_iter().filter(|fee| fee.parts > 0).collect())
}

/// Millionths of a basis point.
fn parts(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let short = whole.len() <= 5 && fraction.len() <= FRACTION as usize;
    if !short || !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|whole| *whole <= BASIS_POINTS)?;
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    Some(whole * 10_u64.pow(FRACTION) + fraction)
}
