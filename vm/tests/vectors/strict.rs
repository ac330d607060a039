//! The case families that are refused here although the reference answers them: lenient parsing
//! that lets one thing be spelled in several ways, or that guesses what the caller meant.
//!
//! A family is recognised by its nature: the note starts with `QUIRK`, contains `note`, and the
//! input has `nature`. A case of the same nature without such a note is answered as published.

use serde_json::Value;

/// One row of the table.
pub struct Family {
    /// The file, or `*` for any.
    pub file: &'static str,
    pub note: &'static str,
    pub nature: fn(&Value) -> bool,
    #[allow(dead_code)]
    pub reason: &'static str,
}

/// Every family that is refused on purpose. A listed case that is answered is a failure.
pub const REFUSED: &[Family] = &[
    Family {
        file: "order_id.json",
        note: "hex",
        nature: always,
        reason: "half a byte in a commitment is a mistake and not a zero; a prefix is not digits",
    },
    Family {
        file: "*",
        note: "empty",
        nature: number_is_meant,
        reason: "a missing number is not zero",
    },
    Family {
        file: "*",
        note: "whitespace",
        nature: always,
        reason: "a number has one spelling",
    },
    Family {
        file: "*",
        note: "BigInt()",
        nature: always,
        reason: "numbers are decimal digits, or 0x and hex digits",
    },
    Family {
        file: "*",
        note: "Number()",
        nature: always,
        reason: "indexes are decimal digits",
    },
    Family {
        file: "*",
        note: "precision",
        nature: always,
        reason: "a rounded index names another account",
    },
    Family {
        file: "*",
        note: "checksum",
        nature: base58_is_meant,
        reason: "a mistyped address pays a stranger",
    },
    Family {
        file: "*",
        note: "tronweb hex handling",
        nature: no_tron_account,
        reason: "bytes that are no account",
    },
];

/// Whether a case must be refused.
pub fn refused(file: &str, note: &str, input: &Value) -> bool {
    note.starts_with("QUIRK")
        && REFUSED.iter().any(|row| {
            (row.file == "*" || row.file == file) && note.contains(row.note) && (row.nature)(input)
        })
}

fn always(_: &Value) -> bool {
    true
}

fn text<'a>(input: &'a Value, key: &str) -> Option<&'a str> {
    input.get(key).and_then(Value::as_str)
}

/// An address that is a number is one of lighter.
fn number_is_meant(input: &Value) -> bool {
    let family = text(input, "vmType").or_else(|| text(input, "family"));
    text(input, "address").is_none() || family == Some("lighter-vm")
}

fn base58_is_meant(input: &Value) -> bool {
    text(input, "address").is_none_or(|address| !address.starts_with("0x"))
}

/// Hex is an account as `41` and 40 digits, or as `0x` and the 40 digits alone.
fn no_tron_account(input: &Value) -> bool {
    text(input, "address")
        .is_some_and(|text| text.len() != 42 || !(text.starts_with("0x") || text.starts_with("41")))
}
