//! Mistakes of a configuration, all of them gathered before they are reported.

use std::fmt;

/// One mistake, with the variable that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub variable: String,
    pub what: String,
}

/// All mistakes of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration has {} mistake(s):", self.0.len())?;
        for mistake in &self.0 {
            write!(f, "\n  {}: {}", mistake.variable, mistake.what)?;
        }
        Ok(())
    }
}

impl Mistakes {
    pub fn add(&mut self, variable: &str, what: impl Into<String>) {
        self.0.push(Mistake {
            variable: variable.to_owned(),
            what: what.into(),
        });
    }

    /// Whether one of the mistakes is about `variable`.
    pub fn concern(&self, variable: &str) -> bool {
        self.0.iter().any(|mistake| mistake.variable == variable)
    }

    /// `value`, unless there are mistakes.
    pub fn or<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(self),
        }
    }
}
