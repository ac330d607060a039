//! Where a provider is, and how it is asked.

use std::time::Duration;

use crate::{SpecError, http};

/// One provider's address and manners.
#[derive(Clone)]
pub struct Endpoint {
    /// The place in the operator's list, from 1: metrics name it, because hosts may be private.
    pub position: usize,
    /// May hold credentials: never printed. [`Endpoint::name`] is.
    pub url: url::Url,
    pub timeout: Duration,
    /// Bytes of an answer that are read at most.
    pub longest: usize,
    /// Whether so many more calls may be sent now; `None`: any number.
    pub allows: Option<http::Allows>,
    /// What the provider is asked through; all share one, see [`Endpoint::client`].
    pub client: reqwest::Client,
}

impl Endpoint {
    /// A client that trusts no node: no redirects, no compression, no proxy of the environment.
    pub fn client() -> Result<reqwest::Client, SpecError> {
        http::client()
    }

    /// Host and port: enough to tell providers apart, no secrets.
    pub fn name(&self) -> String {
        let host = self.url.host_str().unwrap_or("?");
        let port = self.url.port();
        port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}
