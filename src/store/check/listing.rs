//! Summaries of requests and the rows that lead to them.

use alloy::primitives::B256;

use super::Desk;
use crate::{
    request::{fact::Facts, summary::Summary},
    store::{
        Key, StoreError,
        rows::{
            self,
            listed::{self, Listed},
            summary,
        },
    },
};

impl Desk<'_> {
    /// A request that the listing must have.
    pub(super) async fn listed(&mut self, id: &B256) -> Result<(), StoreError> {
        if !self.complete {
            return Ok(());
        }
        let why = "it has no summary";
        self.demand(summary::key(id), why, |_| true).await
    }

    pub(super) async fn summary(&mut self, id: &B256, found: &Summary) -> Result<(), StoreError> {
        if found.id != *id {
            self.complain(format!("it is of {}", found.id));
            return Ok(());
        }
        let Some(bytes) = self.store.read(&rows::request::key(id)).await? else {
            self.complain(format!("request {id} is missing"));
            return Ok(());
        };
        let facts = self.store.read(&rows::facts::key(id)).await?;
        let facts = facts.map_or(Ok(Facts::default()), |bytes| rows::facts::decode(&bytes));
        // What cannot be read has a complaint of its own.
        if let (Ok(request), Ok(facts)) = (rows::request::decode(&bytes), facts)
            && Summary::of(&request, &facts) != *found
        {
            self.complain("it says something else than its request and facts");
        }
        let Ok(mut wanted) = listed::rows(found) else {
            return Ok(());
        };
        wanted.extend(listed::sendings(found, &self.told(id).await?));
        for (key, value) in wanted {
            if self.store.read(&key).await?.as_ref() != Some(&value) {
                let name = alloy::hex::encode(&key.name);
                self.complain(format!("nothing leads to it from 0x{name}"));
            }
        }
        Ok(())
    }

    /// The facts of `id`; none where they cannot be read, which has a complaint of its own.
    async fn told(&self, id: &B256) -> Result<Facts, StoreError> {
        let facts = self.store.read(&rows::facts::key(id)).await?;
        let facts = facts.and_then(|bytes| rows::facts::decode(&bytes).ok());
        Ok(facts.unwrap_or_default())
    }

    /// A row that leads to a summary.
    pub(super) async fn leads(&mut self, key: &Key, found: &Listed) -> Result<(), StoreError> {
        let Some(at) = listed::placed(&key.name) else {
            self.complain("it is not where its summary belongs");
            return Ok(());
        };
        let id = B256::from_slice(&at[8..]);
        let Some(bytes) = self.store.read(&summary::key(&id)).await? else {
            self.complain("its summary is missing");
            return Ok(());
        };
        let Ok(summary) = summary::decode(&bytes) else {
            return Ok(());
        };
        let fits = match found {
            Listed::Ordered(other) => **other == summary,
            Listed::Account | Listed::Transaction(_) => true,
        };
        if !fits {
            self.complain("it is not as the summary is");
        }
        let mut all = listed::rows(&summary).unwrap_or_default();
        if matches!(found, Listed::Transaction(_)) {
            all = listed::sendings(&summary, &self.told(&id).await?);
        }
        if !all.contains_key(key) {
            self.complain("it is not where its summary belongs");
        }
        Ok(())
    }
}
