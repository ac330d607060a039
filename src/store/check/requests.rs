//! Checks the rows of requests, of the index and of listings.

use alloy::primitives::B256;

use super::Check;
use crate::{
    request::{Request, fact::Facts, summary::Summary},
    store::{
        Key, StoreError,
        rows::{
            self, Row,
            cursor::Cursor,
            deposit_tx,
            listed::{self, Listed},
            summary,
            tx_details::Either,
        },
    },
};

impl Check<'_> {
    pub(super) async fn requests(&mut self, key: &Key, row: &Row) -> Result<(), StoreError> {
        match row {
            Row::Request(id, request) => {
                if request.id != *id {
                    self.error(format!("it is request {}", request.id));
                }
                self.listed(id).await?;
                self.led_to(id, request).await
            }
            Row::Order { order, request } => {
                let why = format!("it leads to {request}, which is not its request");
                let quoted = rows::quote::key(request);
                let key = match self.store.read(&quoted).await? {
                    Some(_) => quoted,
                    None => rows::request::key(request),
                };
                let fits = |row: &Row| matches!(row, Row::Request(_, of) | Row::Quote(_, of) if of.order_id == *order);
                self.demand(key, why, fits).await
            }
            Row::Facts(id, facts) => {
                self.facts(facts);
                self.request(id).await
            }
            Row::Cursor(_, cursor) => {
                self.cursor(cursor);
                Ok(())
            }
            Row::DepositTx(network, row) => self.deposit_tx(network, row).await,
            // The submitter may have named a quote that is deleted by now.
            Row::Transaction(_) => Ok(()),
            Row::Open(id) => self.request(id).await,
            Row::Large(id, _) => {
                let key = rows::quote::key(id);
                self.demand(key, "it is about no quote", |_| true).await
            }
            Row::TxDetails(row) => match &**row {
                Either::Wanted(row) => self.request(&row.wanted.request).await,
                Either::Seen { .. } => Ok(()),
            },
            Row::Quote(id, request) => self.quote(id, request).await,
            Row::Summary(id, summary) => self.summary(id, summary).await,
            Row::Listed(found) => self.leads(key, found).await,
            _ => Ok(()),
        }
    }

    async fn quote(&mut self, id: &B256, request: &Request) -> Result<(), StoreError> {
        if request.id != *id {
            self.error(format!("it is request {}", request.id));
        }
        for key in [rows::request::key(id), rows::facts::key(id)] {
            if self.store.read(&key).await?.is_some() {
                self.error("it has been acted on and is still a quote");
            }
        }
        self.led_to(id, request).await
    }

    /// Checks that the order of a request or quote leads to it.
    async fn led_to(&mut self, id: &B256, request: &Request) -> Result<(), StoreError> {
        let key = rows::order::key(&request.order_id);
        let to_it = |row: &Row| matches!(row, Row::Order { request, .. } if request == id);
        self.demand(key, "its order leads elsewhere", to_it).await
    }

    /// Checks that the current row's request exists.
    pub(super) async fn request(&mut self, id: &B256) -> Result<(), StoreError> {
        let why = format!("request {id} is missing");
        self.demand(rows::request::key(id), why, |_| true).await
    }

    fn facts(&mut self, facts: &Facts) {
        for (at, deposit) in facts.deposits.iter().enumerate() {
            let id = deposit.onchain_id;
            if facts.deposits[..at].iter().any(|one| one.onchain_id == id) {
                self.error(format!("deposit {id} stands in it twice"));
            }
        }
    }

    fn cursor(&mut self, cursor: &Cursor) {
        let rising = cursor
            .marks
            .windows(2)
            .all(|pair| pair[0].number < pair[1].number);
        let below = cursor
            .marks
            .last()
            .is_none_or(|last| last.number < cursor.next);
        if !rising || !below {
            self.error("its blocks are out of order");
        }
    }

    async fn deposit_tx(&mut self, network: &str, row: &deposit_tx::Row) -> Result<(), StoreError> {
        let Some(request) = &row.seen.request else {
            return Ok(());
        };
        let why = format!("the facts of {request} do not tell of it");
        self.demand(rows::facts::key(request), why, |facts| {
            let Row::Facts(_, facts) = facts else {
                return false;
            };
            let mut deposits = facts.deposits.iter();
            deposits.any(|one| one.network == network && one.onchain_id == row.onchain_id)
        })
        .await
    }

    /// Checks that the listing has a request.
    async fn listed(&mut self, id: &B256) -> Result<(), StoreError> {
        if !self.complete {
            return Ok(());
        }
        let why = "it has no summary";
        self.demand(summary::key(id), why, |_| true).await
    }

    async fn summary(&mut self, id: &B256, found: &Summary) -> Result<(), StoreError> {
        if found.id != *id {
            self.error(format!("it is of {}", found.id));
            return Ok(());
        }
        let Some(bytes) = self.store.read(&rows::request::key(id)).await? else {
            self.error(format!("request {id} is missing"));
            return Ok(());
        };
        let facts = self.store.read(&rows::facts::key(id)).await?;
        let facts = facts.map_or(Ok(Facts::default()), |bytes| rows::facts::decode(&bytes));
        // An unreadable row has an error of its own.
        if let (Ok(request), Ok(facts)) = (rows::request::decode(&bytes), &facts)
            && Summary::of(&request, facts) != *found
        {
            self.error("it says something else than its request and facts");
        }
        let Ok(mut wanted) = listed::rows(found) else {
            return Ok(());
        };
        wanted.extend(listed::sendings(found, &facts.unwrap_or_default()));
        for (key, value) in wanted {
            if self.store.read(&key).await?.as_ref() != Some(&value) {
                let name = alloy::hex::encode(&key.name);
                self.error(format!("nothing leads to it from 0x{name}"));
            }
        }
        Ok(())
    }

    /// The facts of `id`; empty where they cannot be read, which has an error of its own.
    async fn stored_facts(&self, id: &B256) -> Result<Facts, StoreError> {
        let facts = self.store.read(&rows::facts::key(id)).await?;
        let facts = facts.and_then(|bytes| rows::facts::decode(&bytes).ok());
        Ok(facts.unwrap_or_default())
    }

    /// Checks a row that leads to a summary.
    async fn leads(&mut self, key: &Key, found: &Listed) -> Result<(), StoreError> {
        let Some(at) = listed::placed(&key.name) else {
            self.error("it is not where its summary belongs");
            return Ok(());
        };
        let id = B256::from_slice(&at[8..]);
        let Some(bytes) = self.store.read(&summary::key(&id)).await? else {
            self.error("its summary is missing");
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
            self.error("it is not as the summary is");
        }
        let mut all = listed::rows(&summary).unwrap_or_default();
        if matches!(found, Listed::Transaction(_)) {
            all = listed::sendings(&summary, &self.stored_facts(&id).await?);
        }
        if !all.contains_key(key) {
            self.error("it is not where its summary belongs");
        }
        Ok(())
    }
}
