//! The variables of the integrator API and its solver.

use secrecy::SecretString;

use super::{Integrator, SolverOracle, read::Reader};

/// Their texts.
pub(super) struct Texts {
    pub http_port: Option<String>,
    pub api_keys: Option<SecretString>,
    pub market_file: Option<String>,
    pub solver_key: Option<SecretString>,
    pub solver_chain: Option<String>,
    pub oracle_url: Option<String>,
    pub oracle_key: Option<SecretString>,
    pub webhook_allow_private: Option<String>,
    pub production: bool,
}

impl Reader<'_> {
    /// On when `INTEGRATOR_HTTP_PORT` is set; it then needs a market and a solver.
    pub fn integrator(&mut self, texts: Texts) -> Option<Integrator> {
        let port = texts.http_port?;
        let http_port = self.parse("INTEGRATOR_HTTP_PORT", Some(port), 3001);
        let api_keys = self.api_keys("INTEGRATOR_API_KEYS", texts.api_keys);
        let market_file = self.needed("MARKET_FILE", texts.market_file);
        let solver_key = self.needed("SOLVER_PRIVATE_KEY", texts.solver_key);
        let oracle = texts.oracle_url.and_then(|url| {
            let url = self.oracle_url(&url)?;
            Some(SolverOracle {
                url,
                key: texts.oracle_key,
            })
        });
        let open = self.parse("WEBHOOK_ALLOW_PRIVATE", texts.webhook_allow_private, false);
        if open && texts.production {
            self.mistake(
                "WEBHOOK_ALLOW_PRIVATE",
                "is for development, not for production",
            );
        }
        Some(Integrator {
            webhook_allow_private: open,
            http_port,
            api_keys,
            market_file: market_file?.into(),
            solver_key: solver_key?,
            solver_chain: texts.solver_chain,
            oracle,
        })
    }

    fn needed<T>(&mut self, variable: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.mistake(variable, "must be set with INTEGRATOR_HTTP_PORT");
        }
        value
    }

    fn oracle_url(&mut self, text: &str) -> Option<url::Url> {
        let url = text.trim().trim_end_matches('/').parse::<url::Url>().ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if url.is_none() {
            self.mistake("SOLVER_ORACLE_URL", "expected an http(s) URL");
        }
        url
    }
}
