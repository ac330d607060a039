//! The finality that a deposit needs before the oracle attests it: the chain's rule, or the weaker tiers of fast mode
//! (guide: protocol 7.1). Pure: no I/O, no clock.

use serde::Deserialize;
use serde_json::Value;
use vm::{Amount, ChainSpec, Deposit, Finality};

use super::statement::Mode;

/// One row of `additionalData.fastMode.finalityTiers.<currency>`: deposits below `max_amount` need only this
/// finality. A missing measure is the chain's default.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tier {
    #[serde(deserialize_with = "amount")]
    pub max_amount: Amount,
    pub finalization_blocks: Option<u64>,
    pub finalization_time: Option<u64>,
    pub fee_bps: Option<Value>,
}

/// The finality that a set of deposits needs, and the mode that results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Required {
    pub finality: Finality,
    pub mode: Mode,
}

/// An invalid fast mode configuration; the text names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTiers(pub String);

/// The finality for `deposits` on `spec` when the caller asked for mode `asked`. Unreadable tiers count as none;
/// [`check`] reports them at start.
pub fn required(spec: &ChainSpec, asked: Mode, deposits: &[Deposit]) -> Required {
    let tiers = spec
        .additional
        .get("fastMode")
        .filter(|_| asked == Mode::Fast && !deposits.is_empty())
        .and_then(|mode| mode.get("finalityTiers"));
    let Some(tiers) = tiers else {
        return Required {
            finality: spec.finality.clone(),
            mode: Mode::Slow,
        };
    };
    let found: Vec<_> = deposits
        .iter()
        .map(|d| tier(tiers, d.currency.text(), d.amount).unwrap_or_default())
        .collect();
    let finality = strictest(&spec.finality, &found);
    let mode = if reaches(&finality, &spec.finality) {
        Mode::Slow
    } else {
        Mode::Fast
    };
    Required { finality, mode }
}

/// Refuses a fast mode that cannot be read, that takes a fee for nobody, or whose currencies no deposit can have.
/// Returns whether the chain has a fast mode.
pub fn check(spec: &ChainSpec) -> Result<bool, BadTiers> {
    let mode = spec.additional.get("fastMode");
    let Some(mode) = mode.filter(|mode| !mode.is_null()) else {
        return Ok(false);
    };
    let wrong = |field: &str, what: &str| BadTiers(format!("fastMode.{field}: {what}"));
    let tiers = mode.get("finalityTiers").and_then(Value::as_object);
    let tiers = tiers.ok_or_else(|| wrong("finalityTiers", "expected an object"))?;
    let mut fee = 0;
    for (currency, rows) in tiers {
        let field = format!("finalityTiers.{currency}");
        if !is_spelled_as_in_deposits(spec, currency) {
            return Err(wrong(&field, "no currency as deposits spell it"));
        }
        for row in rows_of(currency, rows)? {
            let bps = row.fee_bps.as_ref().map_or(Some(0), basis_points);
            fee = fee.max(bps.ok_or_else(|| wrong(&field, "feeBps: expected 0 to 10000"))?);
        }
    }
    let recipient = mode.get("feeRecipient").and_then(Value::as_str);
    if fee > 0 && recipient.is_none_or(str::is_empty) {
        return Err(wrong("feeRecipient", "needed where a tier has feeBps"));
    }
    Ok(true)
}

fn basis_points(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Null => Some(0),
        Value::String(text) => text.parse().ok(),
        number => number.as_u64(),
    };
    number.filter(|number| *number <= 10_000)
}

fn is_spelled_as_in_deposits(spec: &ChainSpec, currency: &str) -> bool {
    let codec = spec.family.codec;
    let spelled = spec.family.currency(currency).ok().and_then(|address| {
        let text = codec.decode_address(address.bytes());
        text.ok()
    });
    currency == codec.native() || spelled.as_deref() == Some(currency)
}

/// The row for `amount` of `currency`: the first one, by maximum, whose maximum is above `amount`.
pub fn tier(tiers: &Value, currency: &str, amount: Amount) -> Result<Option<Tier>, BadTiers> {
    let Some(rows) = tiers.get(currency) else {
        return Ok(None);
    };
    let mut rows = rows_of(currency, rows)?;
    rows.sort_by_key(|row| row.max_amount);
    Ok(rows.into_iter().find(|row| amount < row.max_amount))
}

fn rows_of(currency: &str, rows: &Value) -> Result<Vec<Tier>, BadTiers> {
    Vec::<Tier>::deserialize(rows)
        .map_err(|e| BadTiers(format!("fastMode.finalityTiers.{currency}: {e}")))
}

/// The maximum of each measure over all deposits; a deposit without a tier, or a tier without that measure, needs the
/// chain's default. The chain's own tag stays required.
pub fn strictest(defaults: &Finality, tiers: &[Option<Tier>]) -> Finality {
    let of = |pick: fn(&Tier) -> Option<u64>, default: u64| {
        tiers
            .iter()
            .map(|t| t.as_ref().and_then(pick).unwrap_or(default))
            .max()
            .unwrap_or(0)
    };
    Finality {
        blocks: of(|t| t.finalization_blocks, defaults.blocks),
        seconds: of(|t| t.finalization_time, defaults.seconds),
        tag: defaults.tag,
    }
}

/// Whether `required` is at least as strong as `defaults` in blocks and seconds.
pub fn reaches(required: &Finality, defaults: &Finality) -> bool {
    required.blocks >= defaults.blocks && required.seconds >= defaults.seconds
}

fn amount<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Amount, D::Error> {
    use serde::de::Error;
    let text = match Value::deserialize(from)? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => return Err(D::Error::custom("maxAmount must be a decimal number")),
    };
    Amount::from_str_radix(&text, 10)
        .ok()
        .filter(|_| !text.is_empty())
        .ok_or_else(|| D::Error::custom("maxAmount must be a decimal number"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::attest::fixtures::{self, Fixture, spec};

    fn fast(tiers: Value) -> ChainSpec {
        let mut spec = spec("ethereum");
        spec.additional
            .insert("fastMode".into(), json!({ "finalityTiers": tiers }));
        spec
    }

    fn judged(spec: &ChainSpec, asked: Mode) -> (Mode, u64, u64) {
        let deposits = Fixture::new().deposits.remove(0).deposits().clone();
        let required = required(spec, asked, &deposits);
        (
            required.mode,
            required.finality.blocks,
            required.finality.seconds,
        )
    }

    #[test]
    fn tiers_weaken_finality_only_for_those_who_ask_and_only_below_their_maximum() {
        let native = "0x0000000000000000000000000000000000000000";
        let tiers = |max: &str| json!({ native: [{ "maxAmount": max, "finalizationBlocks": 2 }] });
        let spec = fast(tiers("1001"));
        assert_eq!(judged(&spec, Mode::Fast), (Mode::Fast, 2, 60));
        assert_eq!(judged(&spec, Mode::Slow), (Mode::Slow, 10, 60));
        assert_eq!(
            judged(&fast(tiers("1000")), Mode::Fast),
            (Mode::Slow, 10, 60)
        );
        let strict = json!({ native: [{ "maxAmount": "1001", "finalizationBlocks": 11 }] });
        assert_eq!(judged(&fast(strict), Mode::Fast), (Mode::Slow, 11, 60));
        assert_eq!(
            judged(&self::spec("base"), Mode::Fast),
            (Mode::Slow, 10, 60)
        );
    }

    #[test]
    fn tag_of_the_chain_stays_required_in_fast_mode() {
        let native = "0x0000000000000000000000000000000000000000";
        let mut spec = fast(json!({ native: [{ "maxAmount": "1001", "finalizationBlocks": 0 }] }));
        spec.finality.tag = Some(vm::FinalityTag::Finalized);
        let deposits = Fixture::new().deposits.remove(0).deposits().clone();
        let required = required(&spec, Mode::Fast, &deposits);
        assert_eq!(required.finality.tag, Some(vm::FinalityTag::Finalized));
    }

    #[test]
    fn unreadable_tiers_are_reported_and_count_as_none() {
        let native = "0x0000000000000000000000000000000000000000";
        for bad in [
            json!({ native: "all" }),
            json!({ native: [{}] }),
            json!({ native: [{ "maxAmount": "1e3" }] }),
            json!({ native: [{ "maxAmount": -1 }] }),
            json!({ native: [{ "maxAmount": "" }] }),
            json!({ native: [{ "maxAmount": "1", "finalizationBlocks": -1 }] }),
            json!({ native: [{ "maxAmount": "1", "finalizationBlocks": "2" }] }),
            json!({ native: [{ "maxAmount": "1", "finalizationTime": 1.5 }] }),
            json!([]),
            json!(null),
        ] {
            let spec = fast(bad.clone());
            assert!(check(&spec).is_err(), "{bad}");
            assert_eq!(judged(&spec, Mode::Fast).0, Mode::Slow, "{bad}");
        }
        assert_eq!(check(&spec("base")), Ok(false));
    }

    #[test]
    fn tiers_that_could_not_be_followed_are_reported() {
        let token = fixtures::TOKEN;
        let row = |fee: Value| json!([{ "maxAmount": "1", "feeBps": fee }]);
        let paid = |fee: Value, recipient: Value| {
            let mut spec = fast(json!({ token: row(fee) }));
            spec.additional["fastMode"]["feeRecipient"] = recipient;
            check(&spec)
        };
        for fee in [json!(5), json!("5")] {
            for nobody in [json!(null), json!(""), json!(7)] {
                assert!(paid(fee.clone(), nobody).is_err(), "{fee}");
            }
            assert_eq!(paid(fee, json!(fixtures::DEPOSITOR)), Ok(true));
        }
        for none in [json!(0), json!("0"), json!(null)] {
            assert_eq!(paid(none, json!(null)), Ok(true));
        }
        for bad in [
            json!(-1),
            json!(10_001),
            json!("many"),
            json!(1.5),
            json!([]),
        ] {
            let known = json!(fixtures::DEPOSITOR);
            assert!(paid(bad.clone(), known).is_err(), "{bad}");
        }
        for currency in [&token.to_uppercase().replace("0X", "0x"), "0x12", "usdc"] {
            let spec = fast(json!({ currency: row(json!(0)) }));
            assert!(check(&spec).is_err(), "{currency}");
        }
    }
}
