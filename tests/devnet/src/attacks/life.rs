//! One request from quote to settlement, asked and paid for by anybody, and what its status was on the
//! way.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use alloy::{
    primitives::{Address, B256, U256},
    rpc::types::TransactionReceipt,
};
use anyhow::{Context, Result, bail, ensure};
use devnet::{
    account::Account,
    world::{Deposit, order::text},
};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use vm::protocol::id::{deterministic, outcome};

use super::{
    arena::Arena,
    said::Said,
    wealth::{Coin, held},
};
use crate::demo::life::{Quoted, payload, read};

const POLL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);
/// States that no request leaves.
pub const ENDS: [&str; 3] = ["success", "failure", "refund"];

/// What somebody wants for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub pays: Coin,
    pub gets: Coin,
    /// Smallest units of what is paid.
    pub amount: u64,
}

/// A thousandth of an ether.
pub const MILLI: u64 = 1_000_000_000_000_000;

impl Wish {
    pub const ETHER: Self = Self {
        pays: Coin::Ether,
        gets: Coin::Ether,
        amount: 100 * MILLI,
    };
    pub const DOLLARS: Self = Self {
        pays: Coin::Dollar,
        gets: Coin::Dollar,
        amount: 250_000_000,
    };

    /// The body of the quote that `who` asks for.
    pub fn body(&self, arena: &Arena, who: Address) -> Result<Value> {
        let (origin, destination) = (&arena.world.origin, &arena.world.destination);
        let pays = self.pays.address(arena, origin).context("not there")?;
        let gets = self.gets.address(arena, destination).context("not there")?;
        let user = text(who);
        Ok(json!({
            "user": user, "recipient": user,
            "originChainId": origin.node.chain_id, "destinationChainId": destination.node.chain_id,
            "originCurrency": text(pays), "destinationCurrency": text(gets),
            "amount": self.amount.to_string(), "tradeType": "EXACT_INPUT", "includeProtocolData": true,
        }))
    }
}

/// A request from its quote to its settlement, with the statuses that it had.
pub struct Life {
    pub who: Account,
    pub wish: Wish,
    arena: Arc<Arena>,
    quoted: Option<Quoted>,
    /// The first deposit.
    pub deposit: Option<Deposit>,
    had: U256,
    begun: Instant,
    seen: watch::Receiver<Seen>,
    tell: watch::Sender<Seen>,
    watching: JoinSet<()>,
}

/// The states that a request was seen in, the last answer, and when it became that.
#[derive(Clone, Debug)]
pub struct Seen {
    pub states: Vec<String>,
    pub last: Value,
    pub since: Instant,
}

/// How a request ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub states: Vec<String>,
    pub last: Value,
    pub promised: U256,
    pub received: U256,
    pub deposit: B256,
    /// From the deposit's block to the last state.
    pub took: Duration,
}

impl Life {
    pub fn new(arena: &Arc<Arena>, who: Account, wish: Wish) -> Self {
        let (tell, seen) = watch::channel(Seen {
            states: Vec::new(),
            last: Value::Null,
            since: Instant::now(),
        });
        Self {
            who,
            wish,
            arena: arena.clone(),
            quoted: None,
            deposit: None,
            had: U256::ZERO,
            begun: Instant::now(),
            seen,
            tell,
            watching: JoinSet::new(),
        }
    }

    /// Asks for the quote with an app's key, once.
    pub async fn quote(&mut self) -> Result<&Quoted> {
        if self.quoted.is_none() {
            let body = self.wish.body(&self.arena, self.who.address())?;
            let answer = self.arena.api.quote(&body).await?;
            self.promised(&answer).await?;
        }
        self.quoted.as_ref().context("not quoted")
    }

    /// Takes a quote that was answered to somebody without a key.
    pub async fn promised(&mut self, answer: &Value) -> Result<()> {
        let quoted = read(answer)?;
        let (api, request) = (self.arena.api.clone(), quoted.request.clone());
        let tell = self.tell.clone();
        self.watching.spawn(async move {
            loop {
                if let Ok(last) = api.status(&request).await {
                    tell.send_modify(|seen| seen.hear(last));
                }
                sleep(POLL).await;
            }
        });
        self.had = self.held().await?;
        self.quoted = Some(quoted);
        Ok(())
    }

    /// Sends what the quote says; the last transaction's receipt.
    pub async fn pay(&mut self) -> Result<TransactionReceipt> {
        self.quote().await?;
        let quoted = self.quoted.as_ref().context("not quoted")?;
        let (mut last, node) = (None, &self.arena.world.origin.node);
        for item in quoted
            .steps
            .iter()
            .filter_map(|step| step["items"].as_array())
            .flatten()
        {
            let payload = payload(&item["data"])?;
            last = Some(self.arena.send(node, self.who.address(), payload).await?);
        }
        let receipt = last.context("no steps")?;
        ensure!(
            receipt.status(),
            "the deposit failed: {}",
            receipt.transaction_hash
        );
        Ok(receipt)
    }

    /// The same, as its first deposit.
    pub async fn deposit(&mut self) -> Result<Deposit> {
        let receipt = self.pay().await?;
        self.begun = Instant::now();
        let deposit = self.arena.world.origin.deposited(&receipt).await?;
        self.deposit = Some(deposit.clone());
        Ok(deposit)
    }

    /// The answer in the first of `states` that it is in.
    pub async fn until(&self, states: &[&str]) -> Result<Value> {
        let mut seen = self.seen.clone();
        let there = seen.wait_for(|seen| states.iter().any(|state| seen.last["status"] == *state));
        match timeout(PATIENCE, there).await {
            Ok(seen) => Ok(seen?.last.clone()),
            Err(_) => bail!("never {states:?}: {}", self.seen.borrow().last),
        }
    }

    /// The last state, with its reason.
    pub fn state(&self) -> String {
        let last = self.seen.borrow().last.clone();
        let text = |name: &str| last[name].as_str().unwrap_or_default().to_owned();
        match text("failReason").as_str() {
            "N/A" | "" => text("status"),
            reason => format!("{} {reason}", text("status")),
        }
    }

    /// The end of a request that is to be filled, once the hub has taken deposit and fill.
    pub async fn filled(&mut self) -> Result<Outcome> {
        if self.deposit.is_none() {
            self.deposit().await?;
        }
        self.until(&ENDS).await?;
        let received = self.held().await? - self.had;
        let deposit = self.deposit.clone().context("no deposit")?;
        let quoted = self.quoted.as_ref().context("not quoted")?;
        let keys = [
            deterministic(&[self.arena.world.origin.id, &deposit.transaction.to_string()]),
            outcome(&[deposit.onchain_id], quoted.order.id),
        ];
        for key in keys {
            self.executed(key).await?;
        }
        let seen = self.seen.borrow().clone();
        Ok(Outcome {
            states: seen.states,
            last: seen.last,
            promised: quoted.output,
            received,
            deposit: deposit.transaction,
            took: seen.since.saturating_duration_since(self.begun),
        })
    }

    async fn executed(&self, key: B256) -> Result<()> {
        let asked = async {
            loop {
                match self.arena.world.hub.executions(key).await?.len() {
                    0 => sleep(POLL).await,
                    1 => return Ok(()),
                    more => bail!("the hub acted on {key} {more} times"),
                }
            }
        };
        let settled = timeout(PATIENCE, asked).await;
        settled.with_context(|| format!("not settled: {}", self.seen.borrow().last))?
    }

    async fn held(&self) -> Result<U256> {
        let site = &self.arena.world.destination;
        let currency = self.wish.gets.address(&self.arena, site);
        held(site, currency.context("not there")?, self.who.address()).await
    }
}

impl Seen {
    fn hear(&mut self, last: Value) {
        let state = last["status"].as_str().unwrap_or_default();
        if self.states.last().is_none_or(|known| known != state) {
            self.states.push(state.to_owned());
            self.since = Instant::now();
        }
        self.last = last;
    }
}

impl Outcome {
    /// What is otherwise than it was `alone`.
    pub fn differs(&self, alone: &Self) -> Option<String> {
        let mut usual = alone.states.iter();
        let known = self
            .states
            .iter()
            .all(|state| usual.any(|one| one == state));
        let less = alone.promised - alone.promised / U256::from(100);
        let slow = (alone.took * 4).max(Duration::from_secs(20));
        let field = |name: &str| self.last[name] == alone.last[name];
        let reasons = ["status", "failReason", "refundFailReason"];
        if !known || !reasons.into_iter().all(field) {
            return Some(format!("went {:?}: {}", self.states, self.last));
        }
        if self.last["inTxHashes"] != json!([self.deposit]) {
            return Some(format!(
                "has transactions that are not the user's: {}",
                self.last
            ));
        }
        if self.promised < less {
            return Some(format!(
                "was promised {} instead of {}",
                self.promised, alone.promised
            ));
        }
        if self.received != self.promised {
            return Some(format!("got {} of {}", self.received, self.promised));
        }
        (self.took > slow).then(|| format!("took {} s", self.took.as_secs()))
    }
}

/// What the API says to the quote of somebody without a key.
pub async fn keyless(arena: &Arena, body: &Value) -> Result<Said> {
    let url = arena.api.url.join("quote/v2")?;
    Said::to(arena.client.post(url).json(body)).await
}
