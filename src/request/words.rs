//! The words of the wire, as descriptions list them.

use strum::VariantArray;
use utoipa::openapi::{RefOr, Schema};

use super::{status::Status, summary::Kind};
use crate::json::schema::one_of;

/// The current words.
pub fn states() -> RefOr<Schema> {
    let all = Status::VARIANTS.iter();
    one_of("Where the request stands.", all.map(|state| state.text()))
}

/// Those of version 2: `submitted` is still `pending`.
pub fn second_states() -> RefOr<Schema> {
    let known = Status::VARIANTS.iter();
    let known = known.filter(|state| **state != Status::Submitted);
    one_of("Where the request stands.", known.map(|state| state.text()))
}

/// Those of version 1: `received` is a deposit that was seen, `fallback` a refund.
pub fn first_states() -> RefOr<Schema> {
    one_of(
        "Where the request stands.",
        ["pending", "received", "success", "failure", "fallback"],
    )
}

/// Those of the listing's version 1.
pub fn first_listed_states() -> RefOr<Schema> {
    one_of(
        "Where the request stands.",
        [
            "pending",
            "received",
            "depositing",
            "success",
            "failure",
            "fallback",
        ],
    )
}

/// What became of a transaction in a block.
pub fn outcomes() -> RefOr<Schema> {
    one_of("Left out until it is in a block.", ["success", "failure"])
}

/// What a request is.
pub fn kinds() -> RefOr<Schema> {
    let all = Kind::VARIANTS.iter();
    one_of("What the request is.", all.map(|kind| kind.text()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::summary::Feature;

    #[test]
    fn words_of_the_wire_never_change() {
        let states = Status::VARIANTS.iter().map(|state| state.text());
        let states: Vec<_> = states.collect();
        assert_eq!(
            states.join(", "),
            "waiting, depositing, pending, submitted, success, failure, refund"
        );
        let kinds = Kind::VARIANTS.iter().map(|kind| kind.text());
        let kinds: Vec<_> = kinds.collect();
        assert_eq!(
            kinds.join(", "),
            "Bridge, Crosschain Swap, Same-chain Swap, Send, Wrap, Unwrap, Call"
        );
        let features = Feature::VARIANTS.iter();
        let features = features.map(|feature| (feature.text(), feature.bit()));
        assert_eq!(
            features.collect::<Vec<_>>(),
            [
                ("gasless_execution", 1),
                ("gasless_swap", 2),
                ("fast_fill", 4),
                ("gas_top_up", 8),
                ("fixed_rate", 16),
                ("app_fees", 32),
                ("deposit_address", 64),
            ]
        );
    }

    #[test]
    fn no_state_is_left_out() {
        // The last one, as a new one would come behind it.
        assert_eq!(Status::VARIANTS.len(), Status::Refund as usize + 1);
        for (at, state) in Status::VARIANTS.iter().enumerate() {
            assert_eq!(*state as usize, at);
        }
    }

    #[test]
    fn each_version_has_its_words() {
        let words = |schema: RefOr<Schema>| {
            let json = serde_json::to_value(schema).unwrap();
            json["enum"].as_array().unwrap().len()
        };
        let counts = [
            states(),
            second_states(),
            first_states(),
            first_listed_states(),
        ]
        .map(words);
        assert_eq!(counts, [7, 6, 5, 6]);
    }
}
