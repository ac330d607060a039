//! The words of the wire, as descriptions list them.

use utoipa::openapi::{RefOr, Schema};

use super::{status::Status, summary::Kind};
use crate::json::schema::one_of;

/// Where a request stands, in the current words.
const STATES: [Status; 7] = [
    Status::Waiting,
    Status::Depositing,
    Status::Pending,
    Status::Submitted,
    Status::Success,
    Status::Failure,
    Status::Refund,
];

/// The current words.
pub fn states() -> RefOr<Schema> {
    one_of("Where the request stands.", STATES.map(Status::text))
}

/// Those of version 2: `submitted` is still `pending`.
pub fn second_states() -> RefOr<Schema> {
    let known = STATES
        .into_iter()
        .filter(|state| *state != Status::Submitted);
    one_of("Where the request stands.", known.map(Status::text))
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
    one_of("What the request is.", Kind::ALL.map(Kind::text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_state_is_left_out() {
        // The last one, as a new one would come behind it.
        assert_eq!(STATES.len(), Status::Refund as usize + 1);
        for (at, state) in STATES.into_iter().enumerate() {
            assert_eq!(state as usize, at);
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
