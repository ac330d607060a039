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
        note: "odd-length hex",
        nature: always,
        reason: "half a byte in a commitment is a mistake, not a zero",
    },
    Family {
        file: "*",
        note: "without 0x",
        nature: always,
        reason: "the reference drops two characters of what the caller wrote",
    },
    Family {
        file: "*",
        note: "empty",
        nature: always,
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
        note: "",
        nature: hex_address_without_prefix,
        reason: "the reference drops two characters of what the caller wrote",
    },
    Family {
        file: "*",
        note: "checksum is not verified",
        nature: always,
        reason: "a mistyped address pays a stranger",
    },
    Family {
        file: "*",
        note: "",
        nature: tron_hex_of_odd_shape,
        reason: "bytes that are no account",
    },
    Family {
        file: "*",
        note: "",
        nature: lighter_index_not_exact,
        reason: "indexes that lose precision name another account",
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

/// The texts of an input that are addresses of `family`.
fn addresses<'a>(input: &'a Value, families: &[&str]) -> impl Iterator<Item = &'a str> {
    let named = |key| input.get(key).and_then(Value::as_str);
    let family = named("vmType").or_else(|| named("family"));
    let ours = family.is_some_and(|family| families.contains(&family));
    [
        "address",
        "depositor",
        "depository",
        "currency",
        "recipient",
    ]
    .into_iter()
    .filter(move |_| ours)
    .filter_map(|key| input.get(key)?.as_str())
}

fn hex_address_without_prefix(input: &Value) -> bool {
    addresses(input, &["ethereum-vm", "hyperliquid-vm"]).any(|text| !text.starts_with("0x"))
}

fn tron_hex_of_odd_shape(input: &Value) -> bool {
    addresses(input, &["tron-vm"]).any(|text| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let account = text.len() == 42 && (text.starts_with("0x") || text.starts_with("41"));
        digits.bytes().all(|b| b.is_ascii_hexdigit()) && !account
    })
}

fn lighter_index_not_exact(input: &Value) -> bool {
    addresses(input, &["lighter-vm"]).any(|text| {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        !digits || text.parse::<u64>().map_or(true, |index| index >= 1 << 53)
    })
}
