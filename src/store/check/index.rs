//! Rows of requests and of the index.

use alloy::primitives::B256;

use super::Desk;
use crate::{
    request::{Request, fact::Facts},
    store::{
        StoreError,
        rows::{self, Row, cursor::Cursor, sighting, witness::Either},
    },
};

impl Desk<'_> {
    pub(super) async fn index(&mut self, row: &Row) -> Result<(), StoreError> {
        match row {
            Row::Request(id, request) => {
                if request.id != *id {
                    self.complain(format!("it is request {}", request.id));
                }
                self.listed(id).await?;
                let why = "its order leads elsewhere";
                self.demand(
                    rows::order::key(&request.order_id),
                    why,
                    |row| matches!(row, Row::Order { request, .. } if request == id),
                )
                .await
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
            Row::Sighting(network, row) => self.sighting(network, row).await,
            // Whoever told of it may have named a quote that is forgotten by now.
            Row::Transaction(_) => Ok(()),
            Row::Open(id) => self.request(id).await,
            Row::Large(id, _) => {
                let key = rows::quote::key(id);
                self.demand(key, "it is about no quote", |_| true).await
            }
            Row::Witness(row) => match &**row {
                Either::Wanted(row) => self.request(&row.wanted.request).await,
                Either::Seen { .. } => Ok(()),
            },
            _ => Ok(()),
        }
    }

    pub(super) async fn quote(&mut self, id: &B256, request: &Request) -> Result<(), StoreError> {
        if request.id != *id {
            self.complain(format!("it is request {}", request.id));
        }
        for key in [rows::request::key(id), rows::facts::key(id)] {
            if self.store.read(&key).await?.is_some() {
                self.complain("it has been acted on and is still a quote");
            }
        }
        let why = "its order leads elsewhere";
        self.demand(
            rows::order::key(&request.order_id),
            why,
            |row| matches!(row, Row::Order { request, .. } if request == id),
        )
        .await
    }

    /// The row at hand is about a request that there is.
    pub(super) async fn request(&mut self, id: &B256) -> Result<(), StoreError> {
        let why = format!("request {id} is missing");
        self.demand(rows::request::key(id), why, |_| true).await
    }

    fn facts(&mut self, facts: &Facts) {
        for (at, deposit) in facts.deposits.iter().enumerate() {
            let id = deposit.onchain_id;
            if facts.deposits[..at].iter().any(|one| one.onchain_id == id) {
                self.complain(format!("deposit {id} stands in it twice"));
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
            self.complain("its blocks are out of order");
        }
    }

    async fn sighting(&mut self, network: &str, row: &sighting::Row) -> Result<(), StoreError> {
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
}
