//! What is said of a parameter that there is not.

use super::{Wrong, field::Field, groups::TOP, params::V3_ONLY};

/// Parameters of older editions, and what to ask instead.
const REMOVED: [(&str, &str); 3] = [
    (
        "hash",
        "ask with term, or with depositTxHash, fillTxHash or refundTxHash",
    ),
    (
        "referrer",
        "ask with apiKey for your own requests; includeAuthenticatedData=true shows their referrers",
    ),
    (
        "includeOrderData",
        "data.protocol has what an order came to",
    ),
];
/// Parameters that are neither fields nor beside groups.
const OTHERS: [&str; 3] = [
    "includeTotal",
    "includeAuthenticatedData",
    "includeChildRequests",
];

/// The refusal of `name`.
pub(super) fn unknown(name: &str) -> Wrong {
    let shown: String = name.chars().take(40).collect();
    let removed = REMOVED.iter().find(|(old, _)| *old == name);
    let (code, why) = match removed {
        Some((_, instead)) => (
            "REMOVED_PARAMETER",
            format!("is no parameter any more: {instead}"),
        ),
        None => ("UNKNOWN_PARAMETER", meant(&shown)),
    };
    Wrong {
        code,
        parameter: shown,
        why,
    }
}

fn meant(name: &str) -> String {
    let fields = Field::NAMES.iter();
    let all = fields.chain(&TOP).chain(&V3_ONLY).chain(&OTHERS);
    let lower = name.to_lowercase();
    let likeness = |known: &&&str| strsim::damerau_levenshtein(&lower, &known.to_lowercase());
    let nearest = all.min_by_key(likeness);
    match nearest {
        Some(known) if is_alike(likeness(&known), known) => {
            format!("is no parameter; did you mean {known}?")
        }
        _ => "is no parameter of this route".to_owned(),
    }
}

/// Whether so many changes may be slips in a name like `known`.
fn is_alike(changes: usize, known: &str) -> bool {
    changes.saturating_mul(3) <= known.len()
}
