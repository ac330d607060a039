//! Requests between families: each quoted by the API, deposited as the quote's step says, filled and settled by the
//! daemon. A wallet of the origin's family signs.

use std::time::Instant;

use alloy::primitives::{Address, B256, U256};
use anyhow::{Context, Result, ensure};
use devnet::{
    claim,
    world::{Abroad, DevChain, Devnet, order::text},
};
use serde_json::{Value, json};

use super::{
    abroad::shown,
    life::{PATIENCE, POLL, Quoted, payload},
    page::Unit,
    story::Story,
};

/// Satoshis, and lamports, of a deposit.
const SATOSHIS: u64 = 200_000;
const LAMPORTS: u64 = 2_000_000_000;
/// Thousandths of an ether of a deposit.
const MILLI: u64 = 50;

/// A chain on which a request begins or ends.
#[derive(Clone, Copy)]
enum End<'a> {
    Evm(&'a DevChain),
    Abroad(&'a Abroad),
}

impl End<'_> {
    fn id(&self) -> &str {
        match self {
            Self::Evm(site) => site.id,
            Self::Abroad(site) => site.id(),
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Evm(site) => site.node.chain_id,
            Self::Abroad(site) => site.number(),
        }
    }

    fn currency(&self) -> Result<String> {
        match self {
            Self::Evm(_) => Ok(text(Address::ZERO)),
            Self::Abroad(site) => Ok(site.identity()?.native),
        }
    }

    fn token_id(&self) -> Result<U256> {
        match self {
            Self::Evm(site) => site.token_id(Address::ZERO),
            Self::Abroad(site) => site.token_id(),
        }
    }

    fn symbol(&self) -> &str {
        match self {
            Self::Evm(_) => "ETH",
            Self::Abroad(site) => site.names().1,
        }
    }

    fn user(&self, world: &Devnet) -> Result<String> {
        match self {
            Self::Evm(_) => Ok(text(world.user.address())),
            Self::Abroad(site) => site.account("user"),
        }
    }

    /// What is deposited here.
    fn amount(&self) -> U256 {
        match self {
            Self::Evm(_) => U256::from(MILLI) * U256::from(10).pow(U256::from(15)),
            Self::Abroad(Abroad::Bitcoin(_)) => U256::from(SATOSHIS),
            Self::Abroad(Abroad::Solana(_)) => U256::from(LAMPORTS),
        }
    }

    fn shown(&self, amount: U256) -> String {
        match self {
            Self::Evm(_) => Unit::Eth.show(amount),
            Self::Abroad(site) => shown(site, amount),
        }
    }
}

impl Story<'_> {
    /// Every way between two chains of different families; the ids of the requests.
    pub async fn across(&mut self) -> Result<Vec<String>> {
        let (world, abroad) = (self.world, self.abroad);
        let sites = || abroad.iter().map(|site| End::Abroad(site));
        let mut ways = Vec::new();
        for site in sites() {
            ways.push((End::Evm(&world.origin), site));
            ways.push((site, End::Evm(&world.destination)));
        }
        for from in sites() {
            let others = sites().filter(|to| to.id() != from.id());
            ways.extend(others.map(|to| (from, to)));
        }
        let mut told = Vec::new();
        for (from, to) in ways {
            told.push(self.way(from, to).await?);
        }
        Ok(told)
    }

    async fn way(&mut self, from: End<'_>, to: End<'_>) -> Result<String> {
        self.act(&format!("A request: {} for {}", from.symbol(), to.symbol()))?;
        let earned = self.earned(from).await?;
        let body = body(self.world, (from, to), from.amount())?;
        let quoted = self.quoted(&body).await?;
        let before = self.native(to).await?;
        let deposit = self.deposited(&quoted, from).await?;
        let last = self.follow(&quoted, "success").await?;
        let paid = last["txHashes"][0].as_str().context("no payment")?;
        let gained = match to {
            End::Evm(_) => self.native(to).await? - before,
            End::Abroad(site) => U256::from(site.paid(paid, &to.user(self.world)?).await?),
        };
        let promised = quoted.output;
        ensure!(
            gained == promised,
            "the user got {gained}, {promised} were promised"
        );
        self.page.fact("user gets", to.shown(gained))?;
        self.taken(&quoted, from, (&deposit, paid)).await?;
        let now = self.earned(from).await?;
        ensure!(
            now == earned + from.amount(),
            "the solver has {now} at the hub, it had {earned}"
        );
        if let End::Abroad(_) = from {
            let change = format!("{} -> {}", from.shown(earned), from.shown(now));
            self.page.fact("hub, solver", change)?;
        }
        self.ledger.changes(self.page).await?;
        Ok(quoted.request)
    }

    /// The user's wallet sends every step; the deposit's transaction.
    async fn deposited(&self, quoted: &Quoted, from: End<'_>) -> Result<String> {
        let mut last = None;
        for step in &quoted.steps {
            let name = step["id"].as_str().context("a step without id")?;
            for item in step["items"].as_array().context("no items")? {
                let sent = match from {
                    End::Evm(site) => {
                        let payload = payload(&item["data"])?;
                        let user = self.world.user.address();
                        let receipt = site.node.transact(user, payload).await?;
                        receipt.transaction_hash.to_string()
                    }
                    End::Abroad(site) => site.follow("user", &item["data"]).await?,
                };
                self.page.fact(&format!("user sends {name}"), &sent)?;
                last = Some(sent);
            }
        }
        last.context("no steps")
    }

    /// Waits until the hub has paid the solver, and shows by which transactions.
    async fn taken(
        &self,
        quoted: &Quoted,
        from: End<'_>,
        (deposit, paid): (&str, &str),
    ) -> Result<()> {
        let body = claim::deposit_of(from.id(), deposit);
        let answer = self.signed("depository-deposits", &body).await?;
        let key = claim::execution(&answer)?.idempotency_key;
        self.page
            .fact("hub takes the deposit", self.executed(key).await?)?;
        let id = answer["messages"][0]["result"]["onchainId"].as_str();
        let id: B256 = id.context("no deposit")?.parse()?;
        let body = claim::fill_of(&quoted.order, (deposit, id), paid);
        let ended = (quoted.order.id, &[id][..]);
        let body = claim::vouched(("fill", body), ended, &self.world.solver)?;
        let answer = self.signed("solver-fills", &body).await?;
        let key = claim::execution(&answer)?.idempotency_key;
        self.page
            .fact("hub takes the fill", self.executed(key).await?)
    }

    /// What the first oracle says, once it signs.
    async fn signed(&self, route: &str, body: &Value) -> Result<Value> {
        let route = format!("attestations/{route}/v1");
        let begun = Instant::now();
        loop {
            let answer = self.oracles.ask(&route, body).await;
            match answer {
                Ok(answer) if answer["execution"].is_object() => return Ok(answer),
                answer if begun.elapsed() > PATIENCE => {
                    return answer.context("the oracle does not sign");
                }
                _ => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// What the solver has at the hub of a chain's native currency.
    async fn earned(&self, from: End<'_>) -> Result<U256> {
        let Devnet {
            destination,
            solver,
            hub,
            ..
        } = self.world;
        let account = destination.alias(solver.address())?;
        hub.balance(account, from.token_id()?).await
    }

    /// What the user has of an EVM chain's native currency.
    async fn native(&self, end: End<'_>) -> Result<U256> {
        match end {
            End::Evm(site) => site.node.balance(self.world.user.address()).await,
            End::Abroad(_) => Ok(U256::ZERO),
        }
    }
}

/// The body of `POST /quote/v2` for so many thousandths of an ether.
pub fn from_ether(world: &Devnet, to: &Abroad, milli: u64) -> Result<Value> {
    let amount = U256::from(milli) * U256::from(10).pow(U256::from(15));
    body(world, (End::Evm(&world.origin), End::Abroad(to)), amount)
}

fn body(world: &Devnet, (from, to): (End<'_>, End<'_>), amount: U256) -> Result<Value> {
    Ok(json!({
        "user": from.user(world)?,
        "recipient": to.user(world)?,
        "originChainId": from.number(),
        "destinationChainId": to.number(),
        "originCurrency": from.currency()?,
        "destinationCurrency": to.currency()?,
        "amount": amount.to_string(),
        "tradeType": "EXACT_INPUT",
        "includeProtocolData": true,
    }))
}
