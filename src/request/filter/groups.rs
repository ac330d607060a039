//! `filters`: a JSON array of groups (guide: protocol 11.11). What could be made to cost more
//! than a query is refused before it is looked at.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value as Json;

use super::{
    Caller, Clause, Edition, Field, Value, Wrong,
    form::Form,
    table::{self, Parameter},
};
use crate::request::status::Status;

/// The most of each that are read.
const BYTES: usize = 8 << 10;
const GROUPS: usize = 16;
const KEYS: usize = 32;
const VALUES: usize = 64;
const ALL_VALUES: usize = 256;

/// The groups of `text`; none for an empty array.
pub(super) fn parse(text: &str, caller: &Caller<'_>) -> Result<Vec<Vec<Clause>>, Wrong> {
    if text.len() > BYTES {
        return Err(Wrong::filters("expected at most 8192 bytes"));
    }
    let groups: Groups = serde_json::from_str(text)
        .map_err(|error| Wrong::filters(format!("expected a JSON array of objects: {error}")))?;
    let groups = groups.0.into_iter();
    let groups: Vec<Vec<Clause>> = groups
        .map(|Group(fields)| group(fields, caller))
        .collect::<Result<_, _>>()?;
    let values = groups.iter().flatten().map(|clause| clause.values.len());
    if values.sum::<usize>() > ALL_VALUES {
        let why = format!("expected at most {ALL_VALUES} values in all");
        return Err(Wrong::filters(why));
    }
    Ok(groups)
}

fn group(fields: Vec<(String, Json)>, caller: &Caller<'_>) -> Result<Vec<Clause>, Wrong> {
    if fields.is_empty() {
        return Err(Wrong::filters("a group must have a field"));
    }
    // In one query an exact side overrides either side.
    let has = |name: &str| fields.iter().any(|(key, _)| key == name);
    let exact = has("originChainId") || has("destinationChainId");
    let mut clauses = Vec::with_capacity(fields.len());
    for (key, json) in &fields {
        let one = clause(key, json, caller)?;
        if !(exact && key == "chainId") {
            clauses.push(one);
        }
    }
    Ok(clauses)
}

fn clause(key: &str, json: &Json, caller: &Caller<'_>) -> Result<Clause, Wrong> {
    let (not, name) = match key.strip_prefix("not:") {
        Some(name) => (true, name),
        None => (false, key),
    };
    if name.starts_with("not:") {
        return Err(Wrong::filters("not: stands twice"));
    }
    let shown: String = name.chars().take(40).collect();
    let refused = |why: &str| Err(Wrong::filters(format!("{shown}{why}")));
    let known = table::of(Edition::V3, name).filter(|known| known.form != Form::Flag);
    let Some(known) = known else {
        return refused(" is not a field");
    };
    let Some(field) = known.field() else {
        return refused(" is a parameter of its own, not a field of a group");
    };
    let all: &[Json] = match json {
        // It would tell which of everybody's requests were quoted with a key.
        Json::Null if field == Field::ApiKey => {
            return refused(": expected the caller's own key or its label, not null");
        }
        Json::Null => &[],
        Json::Array(all) if all.is_empty() => return refused(": expected a value"),
        Json::Array(all) if all.len() > VALUES => {
            return refused(&format!(": expected at most {VALUES} values"));
        }
        Json::Array(all) if all.contains(&Json::Null) => {
            return refused(": null stands alone, not among values");
        }
        Json::Array(all) => all.as_slice(),
        one => std::slice::from_ref(one),
    };
    let values = values(&known, all, caller)?;
    Ok(Clause { field, not, values })
}

fn values(known: &Parameter, all: &[Json], caller: &Caller<'_>) -> Result<Vec<Value>, Wrong> {
    let key = known.name;
    let one = |json: &Json| {
        let text = match json {
            Json::String(text) => text.clone(),
            Json::Number(number) if number.is_u64() => number.to_string(),
            _ => return Err(Wrong::filters(format!("{key}: expected texts or numbers"))),
        };
        let inside = |wrong: Wrong| Wrong::filters(wrong.to_string());
        let value = caller.value(known, &text).map_err(inside)?;
        // Quotes stand in no list that a group could choose from.
        if value == Value::Status(Status::Waiting) {
            let why = format!("{key}: waiting is asked for beside groups only, as status=waiting");
            return Err(Wrong::filters(why));
        }
        Ok(value)
    };
    all.iter().map(one).collect()
}

struct Groups(Vec<Group>);
struct Group(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Groups;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of groups")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Groups, A::Error> {
                let mut all = Vec::new();
                while all.len() < GROUPS {
                    match items.next_element()? {
                        Some(group) => all.push(group),
                        None => return Ok(Groups(all)),
                    }
                }
                match items.next_element::<IgnoredAny>()? {
                    None => Ok(Groups(all)),
                    Some(_) => Err(Error::custom("more than 16 groups")),
                }
            }
        }
        deserializer.deserialize_seq(Reader)
    }
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Group;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a group: an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Group, A::Error> {
                let mut all: Vec<(String, Json)> = Vec::new();
                while let Some((key, value)) = fields.next_entry()? {
                    if all.len() == KEYS {
                        return Err(Error::custom("more than 32 fields in a group"));
                    }
                    if all.iter().any(|(known, _)| *known == key) {
                        return Err(Error::custom("a field stands twice in a group"));
                    }
                    all.push((key, value));
                }
                Ok(Group(all))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}
