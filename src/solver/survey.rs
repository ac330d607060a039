//! Whether a network is what the market file says. Its tokens' decimals, its contracts and what it charges for decide
//! what money is worth and where it goes. Nothing is quoted or filled on a network until a quorum confirms them, nor
//! while they do not match. Refunds go on: they give back what was deposited.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use vm::{Address, ReadError, trade::ListedContracts};

use super::{SolverError, chain::TradingChain};
use crate::market::{Currency, Network};

/// What is known of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// The first survey is not over.
    #[default]
    Unasked,
    /// The first survey is over, and no quorum has answered.
    Unknown,
    Sound,
    /// What the market file says and the chain does not.
    Wrong(Vec<String>),
}

/// How long after the start callers wait for the first survey.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the surveys of a network have found. Clones share it.
#[derive(Clone)]
pub struct Survey {
    standing: watch::Sender<Standing>,
    /// When callers stop waiting for the first survey.
    until: Instant,
}

impl Default for Survey {
    fn default() -> Self {
        Self {
            standing: watch::Sender::default(),
            until: Instant::now() + PATIENCE,
        }
    }
}

impl Survey {
    /// Of a chain that is what the market file says.
    #[cfg(test)]
    pub fn sound() -> Self {
        let survey = Self::default();
        survey.set(Standing::Sound);
        survey
    }

    #[cfg(test)]
    pub fn forget(&self) {
        self.set(Standing::Unknown);
    }

    fn set(&self, standing: Standing) {
        self.standing.send_replace(standing);
    }

    fn get(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Records that a survey had no answer.
    fn failed(&self) {
        self.standing.send_if_modified(|standing| {
            let first = *standing == Standing::Unasked;
            if first {
                *standing = Standing::Unknown;
            }
            first
        });
    }

    /// Waits for the end of the first survey, until [`PATIENCE`] after the start at most.
    async fn surveyed(&self) {
        let mut standing = self.standing.subscribe();
        let known = async {
            let known = standing.wait_for(|standing| *standing != Standing::Unasked);
            known.await.is_ok()
        };
        if timeout_at(self.until, known).await.is_err() {
            tracing::debug!("nobody has confirmed the market file in time");
        }
    }
}

impl TradingChain {
    /// Whether the network may be traded on.
    pub fn sound(&self) -> Result<(), SolverError> {
        let why = match self.survey.get() {
            Standing::Sound => return Ok(()),
            Standing::Unasked | Standing::Unknown => {
                "its providers have not confirmed the market file yet".to_owned()
            }
            Standing::Wrong(what) => what.join("; "),
        };
        let network = self.name.clone();
        Err(SolverError::Unsound { network, why })
    }

    /// Whether no survey has had an answer yet.
    pub fn is_unsure(&self) -> bool {
        matches!(self.survey.get(), Standing::Unasked | Standing::Unknown)
    }

    /// Waits for the end of the first survey, until a few seconds after the start at most. Otherwise requests right
    /// after the start would be refused.
    pub async fn surveyed(&self) {
        self.survey.surveyed().await;
    }

    /// Compares the market file with the chain, unless they have matched before.
    pub async fn survey(&self) -> Result<(), ReadError> {
        if self.survey.get() == Standing::Sound {
            return Ok(());
        }
        let wrong = self.mismatches().await;
        let wrong = wrong.inspect_err(|_| self.survey.failed())?;
        let network = self.name.clone();
        metrics::gauge!("intentd_market_mismatches", "network" => network.clone())
            .set(u32::try_from(wrong.len()).unwrap_or(u32::MAX));
        self.survey.set(match wrong.is_empty() {
            true => Standing::Sound,
            false => {
                tracing::error!(network, ?wrong, "MARKET_FILE: not what the chain says");
                Standing::Wrong(wrong)
            }
        });
        Ok(())
    }

    /// What the market file says of the network and a quorum of its providers contradicts: texts for the operator.
    pub async fn mismatches(&self) -> Result<Vec<String>, ReadError> {
        let Some(market) = &self.market else {
            return Ok(Vec::new());
        };
        let tokens = market.currencies.iter().skip(1);
        let tokens = futures::future::try_join_all(tokens.map(|token| self.token(token)));
        let (tokens, contracts) = futures::try_join!(tokens, self.contracts(market))?;
        Ok(tokens.into_iter().flatten().chain(contracts).collect())
    }

    async fn token(&self, listed: &Currency) -> Result<Option<String>, ReadError> {
        let symbol = &listed.symbol;
        let Ok(address) = self.family().address(&listed.address) else {
            return Ok(Some(format!("{symbol}: no address of the network")));
        };
        let found = self.providers.failover.decimals(&address).await?;
        Ok(match found {
            None => Some(format!("{symbol}: no token at {address}")),
            Some((_, true)) => Some(format!(
                "{symbol}: amounts of the token are not what is shown"
            )),
            Some((decimals, _)) if decimals != listed.decimals => {
                let said = listed.decimals;
                Some(format!(
                    "{symbol}: {said} decimals, the token has {decimals}"
                ))
            }
            Some(_) => None,
        })
    }

    async fn contracts(&self, market: &Network) -> Result<Vec<String>, ReadError> {
        let Some(checks) = &self.providers.contracts else {
            return Ok(Vec::new());
        };
        let address = |text: &Option<String>| -> Option<Address> {
            text.as_ref()
                .and_then(|text| self.family().address(text).ok())
        };
        let (router, proxy) = (
            address(&market.fill_router),
            address(&market.approval_proxy),
        );
        let listed = ListedContracts {
            router: router.as_ref(),
            proxy: proxy.as_ref(),
        };
        checks.mismatches(listed).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timers are as fine as a millisecond.
    const FINE: Duration = Duration::from_millis(5);

    #[tokio::test(start_paused = true)]
    async fn who_comes_with_the_start_waits_for_the_first_answer() {
        let survey = Survey::default();
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let answer = async {
            tokio::time::sleep(second).await;
            survey.set(Standing::Sound);
        };
        tokio::join!(survey.surveyed(), answer);
        assert!((second..second + FINE).contains(&began.elapsed()));
        // A later survey without an answer changes nothing.
        survey.failed();
        assert_eq!(survey.get(), Standing::Sound);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_those_who_cannot_answer() {
        let began = Instant::now();
        let refused = Survey::default();
        refused.failed();
        refused.surveyed().await;
        assert_eq!(refused.get(), Standing::Unknown);
        assert!(began.elapsed() < FINE);
        // Callers wait for silent providers once.
        let silent = Survey::default();
        for _ in 0..3 {
            silent.surveyed().await;
            assert!((PATIENCE..PATIENCE + FINE).contains(&began.elapsed()));
        }
        assert_eq!(silent.get(), Standing::Unasked);
    }
}
