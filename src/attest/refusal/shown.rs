//! Callers' texts in answers, cut off.

use std::fmt;

/// A caller's text for an answer, cut off after [`SHOWN`] characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(String);

/// Longer than any address, id or chain name.
const SHOWN: usize = 160;

/// The longest list of deposits that a refusal quotes, in bytes.
pub const QUOTED: usize = 8 * 1024;

impl Shown {
    /// A list, cut off after 8 KiB.
    pub fn list(text: &str) -> Self {
        Self(cut(text, QUOTED))
    }
}

impl<T: AsRef<str>> From<T> for Shown {
    fn from(text: T) -> Self {
        Self(cut(text.as_ref(), SHOWN))
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|i| text.is_char_boundary(*i));
    format!("{}…", &text[..end.unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attest::Refusal;

    #[test]
    fn texts_from_callers_are_cut() {
        let long = "é".repeat(1000);
        let text = Refusal::ChainNotAvailable((&long).into()).to_string();
        assert!(text.len() < 250, "{}", text.len());
        assert_eq!(
            Refusal::ChainNotAvailable("nochain".into()).to_string(),
            "Chain nochain is not available"
        );
    }

    #[test]
    fn quoted_deposits_are_cut_later() {
        let list = "x".repeat(QUOTED + 1);
        assert_eq!(Shown::list(&list).to_string().len(), QUOTED + "…".len());
        assert_eq!(Shown::list("short").to_string(), "short");
    }
}
