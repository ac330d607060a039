//! What nodes and their providers mean by the errors they answer with. Pure.
//!
//! JSON-RPC leaves the wording to each of them: the tables hold what geth, reth (and anvil), erigon,
//! nethermind, besu and the large providers write, in lower case.

use serde_json::Value;

use super::{
    revert::{explain, printable},
    rpc::Refused,
};
use crate::{
    trade::{Broadcast, Revert},
    types::Bytes,
};

/// The node holds it already: our own transaction, sent twice.
const KNOWN: &[&str] = &[
    "already known",
    "alreadyknown",
    "already imported",
    "already exists",
    "already in mempool",
    "existing tx with same hash",
];
const NONCE_USED: &[&str] = &["nonce too low", "nonce is too low", "oldnonce"];
const NO_REPLACEMENT: &[&str] = &[
    "replacement transaction underpriced",
    "could not replace existing tx",
    "another transaction with same nonce",
    "replacementnotallowed",
    "not_replaced",
    "gas price too low to replace",
];
const UNFUNDED: &[&str] = &[
    "insufficient funds",
    "insufficientfunds",
    "insufficient balance",
    "not enough balance",
    "not enough funds",
    "exceeds account balance",
    "exceeds balance of account",
];

/// What no waiting cures: the transaction itself, or whom it carries, is not for this chain.
const NEVER: &[&str] = &[
    "oversized data",
    "transaction too large",
    "tx too large",
    "transaction size exceeds",
    "type not supported",
    "unsupported transaction type",
    "unsupported tx type",
    "unknown transaction type",
    "invalid transaction type",
    "transaction type disabled",
    "intrinsic gas too low",
    "intrinsicgas",
    "floor data gas",
    "exceeds block gas limit",
    "exceeds the block gas limit",
    "gas limit too high",
    "exceeds maximum transaction gas",
    "initcode size exceeded",
    "invalid chain id",
    "invalid sender",
    "authority already reserved",
    "at least one authorization",
    "authorization list is empty",
];

/// The call ran and failed, by the node's word for it.
const REVERTED: &[&str] = &[
    "revert",
    "vm execution error",
    "vm exception",
    "evm error",
    "invalid opcode",
    "opcode not found",
    "bad instruction",
    "invalid jump",
    "stack underflow",
    "stack overflow",
    "out of gas",
    "outofgas",
    "gas required exceeds allowance",
    "always failing transaction",
];
/// The code of an execution error at geth and at OpenEthereum's heirs.
const EXECUTION_ERRORS: &[i64] = &[REVERTED_CODE, -32015];
/// Of a call that ran and reverted, and of nothing else.
const REVERTED_CODE: i64 = 3;
/// How messages begin that go on in the words of who was called.
const QUOTES: &[&str] = &[
    "execution reverted",
    "vm exception while processing",
    "reverted",
];

/// Refusals that speak of a range or a limit, and are cured by patience or another height.
const NOT_A_RANGE: &[&str] = &[
    "rate limit",
    "ratelimit",
    "rate exceeded",
    "too many requests",
    "request count",
    "requests per",
    "request limit",
    "per second",
    "/second",
    "daily",
    "monthly",
    "compute units",
    "credits",
    "quota",
    "beyond current head",
    "out of range",
    "invalid block range",
    "unknown block",
];
const TOO_LARGE: &[&str] = &[
    "query returned more than",
    "log response size exceeded",
    "response size",
    "response too large",
    "response is too big",
    "result too large",
    "block range",
    "blocks range",
    "range too large",
    "range is too",
    "max range",
    "maximum range",
    "range limit",
    "limited to a",
    "max block range",
    "exceed maximum",
    "exceeds max results",
    "exceeds limit",
    "exceed limit",
    "limit exceeded",
    "exceeds the limit",
    "exceeds the range",
    "too many blocks",
    "too many logs",
    "too many results",
    "ranges over",
    "query timeout",
    "query timed out",
    "request timed out",
    "timeout exceeded",
    "execution timeout",
];
/// "Limit exceeded" of EIP-1474; providers use it for rates too, but say so.
const LIMIT_EXCEEDED: i64 = -32005;

fn has(message: &str, words: &[&str]) -> bool {
    words.iter().any(|word| message.contains(word))
}

/// What a node's refusal of a transaction means.
pub fn broadcast(refused: &Refused) -> Broadcast {
    let message = refused.message.to_lowercase();
    if has(&message, NO_REPLACEMENT) {
        return Broadcast::Underpriced;
    }
    if has(&message, NONCE_USED) {
        return Broadcast::Used;
    }
    if has(&message, UNFUNDED) {
        return Broadcast::Unfunded;
    }
    // Only in front: elsewhere it may be an unknown one.
    if has(&message, KNOWN) || message.starts_with("known transaction") {
        return Broadcast::Accepted;
    }
    let said = printable(&refused.message);
    if has(&message, NEVER) {
        return Broadcast::Refused(said);
    }
    Broadcast::Rejected(said)
}

/// Whether an estimate ran out of less gas than it was given: of what the sender can pay for. Nodes
/// name the gas that they tried.
pub fn is_short_of_gas(refused: &Refused, given: Option<u64>) -> bool {
    const TRIED: &str = "gas required exceeds allowance";
    if ran(refused) {
        return false;
    }
    let message = refused.message.to_lowercase();
    let Some((given, (_, tried))) = given.zip(message.split_once(TRIED)) else {
        return false;
    };
    let digits = tried.trim_matches(|char: char| !char.is_ascii_digit());
    digits.parse::<u64>().is_ok_and(|tried| tried < given)
}

/// Why the call that a node refused failed; `None` when the refusal is about something else, such as
/// the caller's funds or the node's own state.
pub fn reverted(refused: &Refused) -> Option<Revert> {
    let message = refused.message.to_lowercase();
    let failed = EXECUTION_ERRORS.contains(&refused.code) || has(&message, REVERTED);
    if !ran(refused) && (!failed || has(&message, UNFUNDED)) {
        return None;
    }
    let data = refused.data.as_deref().and_then(revert_data);
    let mut revert = explain(&data.unwrap_or_default());
    if revert.data.is_empty() {
        revert.reason = spoken(&refused.message);
    }
    Some(revert)
}

/// Whether the call ran, whatever else the message says: from there on it may be the words of whoever
/// was called, who would pass for a node that speaks of the sender's funds.
fn ran(refused: &Refused) -> bool {
    let message = refused.message.to_lowercase();
    let data = || refused.data.as_deref().and_then(revert_data);
    refused.code == REVERTED_CODE
        || QUOTES.iter().any(|begins| message.starts_with(begins))
        || data().is_some_and(|data| !data.is_empty())
}

/// The reason that stands in the message alone.
fn spoken(message: &str) -> String {
    const PLAIN: &str = "execution reverted";
    match message.strip_prefix(PLAIN) {
        Some(rest) => printable(rest.trim_start_matches(':').trim()),
        None => printable(message),
    }
}

/// The first hex string in an error's data; some nodes write `Reverted 0x…` or wrap it in objects.
fn revert_data(json: &str) -> Option<Bytes> {
    fn find(value: &Value) -> Option<Bytes> {
        match value {
            Value::String(text) => {
                let text = text.strip_prefix("Reverted ").unwrap_or(text);
                text.strip_prefix("0x")
                    .and_then(|digits| alloy::hex::decode(digits).ok())
                    .map(Bytes::from)
            }
            Value::Object(fields) => fields
                .iter()
                .filter(|(name, _)| {
                    matches!(name.as_str(), "data" | "return" | "result" | "output")
                })
                .find_map(|(_, value)| find(value)),
            _ => None,
        }
    }
    find(&serde_json::from_str(json).ok()?)
}

/// Whether a provider refuses to answer for so many blocks or logs at once.
pub fn is_too_large(refused: &Refused) -> bool {
    let message = refused.message.to_lowercase();
    if has(&message, NOT_A_RANGE) {
        return false;
    }
    refused.code == LIMIT_EXCEEDED || has(&message, TOO_LARGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i64, message: &str) -> Refused {
        Refused {
            code,
            message: message.into(),
            data: None,
        }
    }

    #[test]
    fn refusals_of_transactions_in_the_words_of_each_node() {
        use Broadcast::{Accepted, Underpriced, Unfunded, Used};
        for (message, meaning) in [
            ("already known", Accepted),
            ("transaction already imported", Accepted),
            ("AlreadyKnown", Accepted),
            ("ALREADY_EXISTS: already known", Accepted),
            ("known transaction: 0x1234", Accepted),
            ("Known transaction", Accepted),
            ("nonce too low: next nonce 7, tx nonce 5", Used),
            ("nonce too low", Used),
            ("Nonce too low", Used),
            ("OldNonce, Current nonce: 7, nonce of rejected tx: 5", Used),
            (
                "Transaction nonce is too low. Try incrementing the nonce.",
                Used,
            ),
            ("replacement transaction underpriced", Underpriced),
            (
                "replacement transaction underpriced: new tx gas fee cap 1 <= 2",
                Underpriced,
            ),
            ("INTERNAL_ERROR: could not replace existing tx", Underpriced),
            ("ReplacementNotAllowed", Underpriced),
            (
                "There is another transaction with same nonce in the queue: gas price too low",
                Underpriced,
            ),
            (
                "insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1",
                Unfunded,
            ),
            ("Insufficient funds for gas * price + value", Unfunded),
            (
                "InsufficientFunds, Account balance: 0, cumulative cost: 1",
                Unfunded,
            ),
            ("Upfront cost exceeds account balance", Unfunded),
        ] {
            assert_eq!(broadcast(&refused(-32000, message)), meaning, "{message}");
        }
    }

    #[test]
    fn refusals_that_are_for_ever_and_those_that_may_pass() {
        for message in [
            "oversized data: transaction size 139296, limit 131072",
            "intrinsic gas too low: gas 21000, minimum needed 60000",
            "insufficient gas for floor data gas cost: gas 1, minimum needed 2",
            "exceeds block gas limit",
            "transaction gas limit too high (cap: 16777216, tx: 30000000)",
            "invalid sender",
            "transaction type not supported",
            "unknown transaction type",
            "authority already reserved",
        ] {
            let meaning = broadcast(&refused(-32000, message));
            assert_eq!(meaning, Broadcast::Refused(message.into()));
        }
        for message in [
            "transaction underpriced",
            "nonce too high",
            "max fee per gas less than block base fee",
            "txpool is full",
            "",
        ] {
            let meaning = broadcast(&refused(-32000, message));
            assert_eq!(meaning, Broadcast::Rejected(message.into()));
        }
    }

    #[test]
    fn estimates_of_the_poor_are_no_reverts() {
        for (message, given, poor) in [
            ("gas required exceeds allowance (4000)", Some(5_000), true),
            ("gas required exceeds allowance (5000)", Some(5_000), false),
            (
                "Out of gas: gas required exceeds allowance: 4000",
                Some(5_000),
                true,
            ),
            ("gas required exceeds allowance (4000)", None, false),
            ("gas required exceeds allowance", Some(5_000), false),
            ("execution reverted", Some(5_000), false),
        ] {
            let found = is_short_of_gas(&refused(-32000, message), given);
            assert_eq!(found, poor, "{message}");
        }
    }

    #[test]
    fn ranges_that_providers_refuse() {
        for (code, message) in [
            (-32005, "query returned more than 10000 results"),
            (-32005, "limit exceeded"),
            (-32005, "something new"),
            (
                -32602,
                "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range",
            ),
            (
                -32602,
                "query exceeds max results 20000, retry with the range 1-2",
            ),
            (-32602, "query exceeds max block range 100000"),
            (-32614, "eth_getLogs is limited to a 10,000 range"),
            (-32000, "exceed maximum block range: 5000"),
            (-32701, "exceed maximum block range: 50000"),
            (-32600, "block range is too wide"),
            (-32000, "block range greater than 10000 max"),
            (35, "ranges over 10000 blocks are not supported on freetier"),
            (
                -32000,
                "requested too many blocks from 1 to 9, maximum is set to 2048",
            ),
            (-32000, "logs matched by query exceeds limit of 10000"),
            (-32020, "backend response too large"),
            (-32008, "Response is too big"),
            (
                -32047,
                "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800",
            ),
            (-32000, "query timeout exceeded"),
            (-32002, "request timed out"),
        ] {
            assert!(is_too_large(&refused(code, message)), "{message}");
        }
    }

    #[test]
    fn other_refusals_are_not_cured_by_a_smaller_range() {
        for (code, message) in [
            (-32005, "daily request count exceeded, request rate limited"),
            (-32005, "Too Many Requests"),
            (-32005, "rate limit exceeded"),
            (
                -32007,
                "50/second request limit reached - reduce calls per second",
            ),
            (-32003, "daily request limit exceeded"),
            (
                429,
                "Your app has exceeded its compute units per second capacity",
            ),
            (-32602, "block range extends beyond current head block"),
            (-32019, "block is out of range"),
            (-32000, "invalid block range params"),
            (-32602, "invalid argument 0: hex string without 0x prefix"),
            (-32601, "the method eth_getLogs does not exist"),
            (-32000, "header not found"),
            (-32603, "internal error"),
        ] {
            assert!(!is_too_large(&refused(code, message)), "{message}");
        }
    }

    #[test]
    fn reverts_in_the_words_of_each_node() {
        let said = "0x08c379a0\
            0000000000000000000000000000000000000000000000000000000000000020\
            0000000000000000000000000000000000000000000000000000000000000002\
            6e6f000000000000000000000000000000000000000000000000000000000000";
        let text = format!("\"{said}\"");
        let older = format!("\"Reverted {said}\"");
        let nested = format!(r#"{{"hash":"0x11","data":{{"return":"{said}"}}}}"#);
        for (code, message, data, reason) in [
            (3, "execution reverted: no", Some(text.as_str()), "no"),
            (3, "execution reverted", Some("\"0x\""), ""),
            (3, "execution reverted", None, ""),
            (-32000, "execution reverted: no", None, "no"),
            (-32015, "VM execution error.", Some(older.as_str()), "no"),
            (
                -32000,
                "VM Exception while processing transaction: revert",
                Some(nested.as_str()),
                "no",
            ),
            (
                3,
                "execution reverted",
                Some("\"0x8baa579f\""),
                "0x8baa579f",
            ),
            (
                -32000,
                "invalid opcode: INVALID",
                None,
                "invalid opcode: INVALID",
            ),
            (
                -32000,
                "gas required exceeds allowance (50000000)",
                None,
                "gas required exceeds allowance (50000000)",
            ),
            (3, "execution reverted", Some("[\"0x12\", 5]"), ""),
        ] {
            let refused = Refused {
                code,
                message: message.into(),
                data: data.map(Into::into),
            };
            let found = reverted(&refused).map(|revert| revert.reason);
            assert_eq!(found.as_deref(), Some(reason), "{message}");
        }
    }

    #[test]
    fn other_refusals_are_no_reverts() {
        for message in [
            "insufficient funds for gas * price + value: address 0x1 have 0 want 1",
            "header not found",
            "missing trie node",
            "the method eth_estimateGas does not exist",
            "rate limit exceeded",
            "pending block is not available",
        ] {
            assert_eq!(reverted(&refused(-32000, message)), None, "{message}");
        }
    }

    /// Who is called writes what follows "execution reverted".
    #[test]
    fn what_was_called_does_not_pass_for_a_node_that_speaks_of_funds() {
        let said = Some("\"0x08c379a0\"".to_owned());
        let allowance = "gas required exceeds allowance (5)";
        for (code, message, data) in [
            (3, "execution reverted: insufficient funds", said.clone()),
            (3, "insufficient funds", None),
            (-32000, "execution reverted: Insufficient balance", None),
            (-32000, "Execution reverted: insufficient funds", None),
            (-32015, "insufficient funds", said.clone()),
            (
                -32603,
                "VM Exception while processing transaction: reverted with reason string 'not enough funds'",
                None,
            ),
            (3, allowance, None),
            (
                -32000,
                "execution reverted: gas required exceeds allowance (5)",
                None,
            ),
            (-32000, allowance, said),
        ] {
            let refused = Refused {
                code,
                message: message.into(),
                data: data.map(Into::into),
            };
            assert!(reverted(&refused).is_some(), "{code} {message}");
            assert!(!is_short_of_gas(&refused, Some(5_000)), "{code} {message}");
        }
    }
}
