//! Summaries of requests and the rows that lead to them.

use alloy::primitives::B256;

use super::Desk;
use crate::{
    request::{fact::Facts, summary::Summary},
    store::{
        Key, StoreError,
        rows::{self, Row, listed, summary},
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
        for key in listed::keys(found) {
            let why = format!(
                "nothing leads to it from 0x{}",
                alloy::hex::encode(&key.name)
            );
            let fits = |row: &Row| matches!(row, Row::Listed(other) if **other == *found);
            self.demand(key, why, fits).await?;
        }
        Ok(())
    }

    /// A row that leads to a summary.
    pub(super) async fn leads(&mut self, key: &Key, found: &Summary) -> Result<(), StoreError> {
        if !listed::keys(found).contains(key) {
            self.complain("it is not where its summary belongs");
            return Ok(());
        }
        let why = "it is not as the summary is";
        let fits = |row: &Row| matches!(row, Row::Summary(_, other) if **other == *found);
        self.demand(summary::key(&found.id), why, fits).await
    }
}
