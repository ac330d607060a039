//! JSON that is sound but for a value or two. What decoders make of random JSON says little: it lacks the fields that
//! they look for first.

use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

/// `sound` with one or two of its values replaced by others, of any kind.
pub fn changed(sound: Value) -> impl Strategy<Value = Value> {
    let changes = vec((select(pointers(&sound)), value()), 1..3);
    changes.prop_map(move |changes| {
        let mut changed = sound.clone();
        for (at, odd) in changes {
            // It may be inside of what was replaced before.
            if let Some(value) = changed.pointer_mut(&at) {
                *value = odd;
            }
        }
        changed
    })
}

/// Where all that is inside of `json` is.
fn pointers(json: &Value) -> Vec<String> {
    let inside: Vec<(String, &Value)> = match json {
        Value::Object(fields) => {
            let fields = fields.iter();
            fields.map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, value)| (at.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (name, value) in inside {
        let below = pointers(value).into_iter();
        found.extend(below.map(|below| format!("/{name}{below}")));
        found.push(format!("/{name}"));
    }
    found
}

/// Any kind of value, among them the ends of what is read.
fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        (0..300_u64).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
    ];
    let text = prop_oneof![
        ".{0,20}".prop_map(Value::from),
        any::<u128>().prop_map(|number| json!(number.to_string())),
        "(0x)?[0-9a-f]{0,80}".prop_map(Value::from),
        "[1-9A-HJ-NP-Za-km-z]{0,50}".prop_map(Value::from),
        (0..66_usize).prop_map(|digits| json!(format!("0x{}", "f".repeat(digits)))),
        (0..5_000_usize).prop_map(|bytes| json!("a7".repeat(bytes))),
    ];
    // Deeper than readers go.
    let nested = (0..200_usize).prop_map(|depth| {
        let inside = |value, _| Value::Array(vec![value]);
        (0..depth).fold(Value::Null, inside)
    });
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        3 => number,
        5 => text,
        1 => Just(json!([])),
        1 => Just(json!({})),
        1 => nested,
    ]
}
