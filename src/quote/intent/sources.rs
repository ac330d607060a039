//! Which exchanges a route may go through.

use serde::Serialize;

use super::super::{
    body::Body,
    code::{Code, Refused},
};

/// Names of one list: more than there are exchanges anywhere.
const MOST: usize = 64;
/// Bytes of a name. Names are kept with the request and shown to everybody: JSON writes their bytes as they are, not
/// in six each.
const LONGEST: usize = 64;
const _: () = assert!(MOST == 64 && LONGEST == 64, "the description says so");

/// Which swap sources may be asked, as the caller said it. A list without names says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sources {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    included: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    excluded: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    origin: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    destination: Vec<String>,
}

impl Sources {
    /// Reads the lists of `body`. A name that no exchange here has is none's: it is kept, as who leaves out an
    /// exchange by it need not know which ones there are.
    pub fn of(body: &Body) -> Result<Self, Refused> {
        Ok(Self {
            included: list("includedSwapSources", body.included_swap_sources.as_deref())?,
            excluded: list("excludedSwapSources", body.excluded_swap_sources.as_deref())?,
            origin: list(
                "includedOriginSwapSources",
                body.included_origin_swap_sources.as_deref(),
            )?,
            destination: list(
                "includedDestinationSwapSources",
                body.included_destination_swap_sources.as_deref(),
            )?,
        })
    }

    /// Whether nothing was said.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the source called `name` may exchange on the origin (or else the destination).
    pub fn allow(&self, name: &str, origin: bool) -> bool {
        let has = |list: &[String]| list.iter().any(|wanted| wanted == name);
        let side = if origin {
            &self.origin
        } else {
            &self.destination
        };
        let among = |list: &[String]| list.is_empty() || has(list);
        among(&self.included) && among(side) && !has(&self.excluded)
    }
}

fn list(field: &str, given: Option<&[String]>) -> Result<Vec<String>, Refused> {
    let names = given.unwrap_or_default();
    if names.len() > MOST || !names.iter().all(|name| is_name(name)) {
        let what = format!(
            "{field}: expected at most {MOST} names of at most {LONGEST} letters, digits, spaces or any of .-_:/+"
        );
        return Err(Refused::new(Code::InvalidField, what));
    }
    Ok(names.to_vec())
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" .-_:/+".contains(&byte);
    text.len() <= LONGEST && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(included: &[&str], excluded: &[&str], sides: [&[&str]; 2]) -> Sources {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let [origin, destination] = sides;
        Sources {
            included: owned(included),
            excluded: owned(excluded),
            origin: owned(origin),
            destination: owned(destination),
        }
    }

    #[test]
    fn all_lists_must_hold_and_an_empty_one_does() {
        let open = sources(&[], &[], [&[], &[]]);
        assert!(open.is_open() && open.allow("a", true) && open.allow("a", false));
        let cases = [
            (
                sources(&["a"], &[], [&[], &[]]),
                [true, true],
                [false, false],
            ),
            (
                sources(&[], &["a"], [&[], &[]]),
                [false, false],
                [true, true],
            ),
            (
                sources(&[], &[], [&["a"], &[]]),
                [true, true],
                [false, true],
            ),
            (
                sources(&[], &[], [&[], &["a"]]),
                [true, true],
                [true, false],
            ),
            (
                sources(&["a"], &["a"], [&[], &[]]),
                [false, false],
                [false, false],
            ),
            (
                sources(&["a", "b"], &[], [&["b"], &["a"]]),
                [false, true],
                [true, false],
            ),
        ];
        for (sources, a, b) in cases {
            assert!(!sources.is_open());
            let of = |name: &str| [sources.allow(name, true), sources.allow(name, false)];
            assert_eq!((of("a"), of("b")), (a, b), "{sources:?}");
        }
    }

    #[test]
    fn what_was_not_said_takes_no_room() {
        let written = |sources: &Sources| serde_json::to_value(sources).unwrap();
        assert_eq!(written(&Sources::default()), serde_json::json!({}));
        let some = sources(&["a"], &[], [&[], &["b"]]);
        let wanted = serde_json::json!({"included": ["a"], "destination": ["b"]});
        assert_eq!(written(&some), wanted);
    }
}
