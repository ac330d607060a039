//! What providers say to a transaction, and of fees, in their own texts. Pure.

use crate::{protocol::text, trade::Broadcast};

/// It waits, or is in a block.
const KNOWN: &[&str] = &[
    "already in block chain",
    "already in utxo set",
    "already-in-mempool",
    "txn-already-known",
];
/// What it spends is spent, or never was.
const USED: &[&str] = &["missingorspent", "missing-inputs", "Missing inputs"];
/// Bitcoin Core's words for a fee that is too low, or lower than what replaces another transaction.
const CHEAP: &[&str] = &[
    "insufficient fee",
    "min relay fee not met",
    "mempool min fee not met",
    "mempool full",
    "txn-mempool-conflict",
];
/// Rules that time mends.
const EARLY: &[&str] = &["premature-spend"];
/// Broken rules of consensus: no node ever takes it.
const NEVER: &[&str] = &["bad-txns-", "script-verify-flag-failed", "TX decode failed"];

/// What a refusal of `sendrawtransaction` means, by the text of Bitcoin Core, which indexes pass on.
pub fn verdict(message: &str) -> Broadcast {
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if has(KNOWN) {
        return Broadcast::Accepted;
    }
    if has(USED) {
        return Broadcast::Used;
    }
    if has(CHEAP) {
        return Broadcast::Underpriced;
    }
    let message = text::short(message);
    match has(NEVER) && !has(EARLY) {
        true => Broadcast::Refused(message),
        false => Broadcast::Rejected(message),
    }
}

/// Satoshis per 1000 virtual bytes as satoshis per virtual byte, rounded up; at least what most nodes take.
pub fn by_byte(kilo: u64) -> u64 {
    kilo.div_ceil(1_000).max(super::RELAY)
}

/// A JSON number of satoshis per virtual byte, rounded up; `None` for what is none or has an exponent.
pub fn rounded_up(number: &str) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let more = fraction.bytes().any(|digit| digit != b'0');
    whole.parse::<u64>().ok()?.checked_add(u64::from(more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_bitcoin_core_mean_what_they_say() {
        let electrs = r#"sendrawtransaction RPC error: {"code":-26,"message":"min relay fee not met, 100 < 141"}"#;
        for (message, wanted) in [
            (
                "Transaction outputs already in utxo set",
                Broadcast::Accepted,
            ),
            ("txn-already-in-mempool", Broadcast::Accepted),
            ("bad-txns-inputs-missingorspent", Broadcast::Used),
            ("Missing inputs", Broadcast::Used),
            (electrs, Broadcast::Underpriced),
            (
                "insufficient fee, rejecting replacement 1234; new feerate 0.00001 BTC/kvB",
                Broadcast::Underpriced,
            ),
            ("mempool min fee not met, 1 < 2", Broadcast::Underpriced),
            ("mempool full", Broadcast::Underpriced),
            (
                "bad-txns-in-belowout, value in (0.1) < value out (0.2)",
                Broadcast::Refused(String::new()),
            ),
            (
                "mempool-script-verify-flag-failed (Signature must be zero)",
                Broadcast::Refused(String::new()),
            ),
            (
                "TX decode failed. Make sure the tx has at least one input.",
                Broadcast::Refused(String::new()),
            ),
            ("dust", Broadcast::Rejected(String::new())),
            (
                "bad-txns-premature-spend-of-coinbase, tried to spend coinbase at depth 3",
                Broadcast::Rejected(String::new()),
            ),
            ("", Broadcast::Rejected(String::new())),
        ] {
            let said = verdict(message);
            let kinds = [&said, &wanted].map(std::mem::discriminant);
            assert_eq!(kinds[0], kinds[1], "{message}: {said:?}");
        }
        let Broadcast::Rejected(said) = verdict(&"x".repeat(100_000)) else {
            panic!("rejected");
        };
        assert!(said.len() < 1_000);
    }

    #[test]
    fn rates_are_rounded_up() {
        for (kilo, rate) in [(0, 1), (100, 1), (1_000, 1), (1_001, 2), (25_000, 25)] {
            assert_eq!(by_byte(kilo), rate);
        }
        for (text, rate) in [
            ("1", Some(1)),
            ("1.0", Some(1)),
            ("87.882", Some(88)),
            ("0.1", Some(1)),
            ("1.0009999999999999", Some(2)),
            ("0", Some(0)),
            ("1e3", None),
            ("-1", None),
            ("", None),
            (".5", None),
            ("\"1\"", None),
            ("18446744073709551615.5", None),
        ] {
            assert_eq!(rounded_up(text), rate, "{text}");
        }
    }
}
