//! Whether a network is what the market file says. Decimals, the fill router, who the approval proxy
//! hands calls to, and who charges for bytes decide what money is worth and where it goes: until a quorum
//! confirms them nothing is quoted or filled there, nor while they do not match. Refunds go on: they give
//! back what came.

use std::sync::{Arc, Mutex, PoisonError};

use vm::{Address, ReadError};

use super::{SolverError, site::Site};
use crate::market::Currency;

/// What is known of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// Nobody has answered yet.
    #[default]
    Unknown,
    Sound,
    /// What the market file says and the chain does not.
    Wrong(Vec<String>),
}

/// See the module. Clones share it.
#[derive(Clone, Default)]
pub struct Survey(Arc<Mutex<Standing>>);

impl Survey {
    /// Of a chain about which the market file says nothing.
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
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    fn get(&self) -> Standing {
        let standing = self.0.lock();
        standing.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Site {
    /// Whether the network may be traded on.
    pub fn sound(&self) -> Result<(), SolverError> {
        let why = match self.survey.get() {
            Standing::Sound => return Ok(()),
            Standing::Unknown => "its providers have not confirmed the market file yet".to_owned(),
            Standing::Wrong(what) => what.join("; "),
        };
        let network = self.name.clone();
        Err(SolverError::Unsound { network, why })
    }

    /// Whether nobody has answered yet.
    pub fn is_unsure(&self) -> bool {
        self.survey.get() == Standing::Unknown
    }

    /// Compares the market file with the chain, unless that is done.
    pub async fn survey(&self) -> Result<(), ReadError> {
        if self.survey.get() == Standing::Sound {
            return Ok(());
        }
        let wrong = self.mismatches().await?;
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

    /// What the market file says of the network and a quorum of its providers does not.
    pub async fn mismatches(&self) -> Result<Vec<String>, ReadError> {
        let Some(market) = &self.market else {
            return Ok(Vec::new());
        };
        let tokens = market.currencies.iter().skip(1);
        let tokens = futures::future::try_join_all(tokens.map(|token| self.token(token)));
        let (tokens, contracts, bytes) =
            futures::try_join!(tokens, self.contracts(), self.bytes())?;
        let wrong = tokens.into_iter().flatten().chain(contracts);
        Ok(wrong.chain(bytes).collect())
    }

    /// A chain that charges for bytes would be traded on at a loss where the market file does not say so.
    async fn bytes(&self) -> Result<Option<String>, ReadError> {
        if self.providers.limits().data_fees.is_some() {
            return Ok(None);
        }
        let found = self.providers.data_fees(&self.native).await?;
        let unsaid = |contract| format!("limits.dataFees: {contract} charges for bytes here");
        Ok(found.map(unsaid))
    }

    async fn token(&self, listed: &Currency) -> Result<Option<String>, ReadError> {
        let symbol = &listed.symbol;
        let Ok(address) = self.family().address(&listed.address) else {
            return Ok(Some(format!("{symbol}: no address of the network")));
        };
        let found = self.providers.decimals(&address).await?;
        Ok(match found {
            None => Some(format!("{symbol}: no token at {address}")),
            Some(decimals) if decimals != listed.decimals => {
                let said = listed.decimals;
                Some(format!(
                    "{symbol}: {said} decimals, the token has {decimals}"
                ))
            }
            Some(_) => None,
        })
    }

    async fn contracts(&self) -> Result<Vec<String>, ReadError> {
        let Some(market) = &self.market else {
            return Ok(Vec::new());
        };
        let address = |text: &Option<String>| -> Option<Address> {
            text.as_ref()
                .and_then(|text| self.family().address(text).ok())
        };
        let router = address(&market.fill_router);
        let proxy = address(&market.approval_proxy);
        let mut wrong = Vec::new();
        if let Some(router) = &router
            && !self.providers.is_contract(router).await?
        {
            wrong.push(format!("fillRouter: no contract at {router}"));
        }
        match (&proxy, &router) {
            (Some(proxy), Some(router)) => {
                if !self.providers.is_router(proxy, router).await? {
                    wrong.push(format!(
                        "approvalProxy: {proxy} does not hand calls to {router}"
                    ));
                }
            }
            (Some(_), None) => wrong.push("approvalProxy: without a fillRouter".to_owned()),
            (None, _) => {}
        }
        Ok(wrong)
    }
}
