//! What everybody can do: deposit, pay, quote, tell and claim; no key, and his own money.

use std::{sync::Arc, time::Duration};

use alloy::{
    primitives::{Address, B256, U256},
    rpc::types::TransactionReceipt,
};
use anyhow::{Context, Result, ensure};
use devnet::{
    account::Account,
    claim,
    contracts::{Depository, Token},
    node::Payload,
    world::{Deposit, DevChain},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    arena::Arena,
    life::{ENDS, Life, Wish, keyless},
    said::Said,
};

const POLL: Duration = Duration::from_millis(150);
/// How often a claim is repeated that may be answered otherwise later.
const TRIES: usize = 200;

/// An account without a key of the API, in an arena.
pub struct Stranger {
    pub arena: Arc<Arena>,
    pub account: Account,
}

/// Where an attack happens: a stranger, an honest user's order beside him, and what came of each thing
/// that he did.
pub struct Fixture {
    pub arena: Arc<Arena>,
    pub stranger: Stranger,
    pub victim: Life,
    pub notes: Vec<String>,
    /// Contracts that he prepared, and whoever else takes part.
    pub prop: Option<Address>,
    pub other: Option<Address>,
}

impl Fixture {
    pub fn note(&mut self, what: &str, came: impl std::fmt::Display) {
        self.notes.push(format!("{what}: {came}"));
    }

    /// The contract that was prepared.
    pub fn prop(&self) -> Result<Address> {
        self.prop.context("nothing was prepared")
    }

    /// Waits for the end of an order of the stranger's own, and tells it.
    pub async fn ended(&mut self, what: &str, own: &Life) -> Result<()> {
        own.until(&ENDS).await?;
        self.note(what, own.state());
        Ok(())
    }

    /// The id of the victim's order, which everybody sees on the chain.
    pub async fn order(&mut self) -> Result<B256> {
        Ok(self.victim.quote().await?.order.id)
    }
}

impl Stranger {
    pub fn address(&self) -> Address {
        self.account.address()
    }

    /// A quote without a key.
    pub async fn asks(&self, body: &Value) -> Result<Said> {
        keyless(&self.arena, body).await
    }

    /// An order of his own, quoted without a key, with `change` to what is asked.
    pub async fn order(&self, wish: Wish, change: impl FnOnce(&mut Value)) -> Result<Life> {
        let mut body = wish.body(&self.arena, self.address())?;
        change(&mut body);
        let said = self.asks(&body).await?;
        ensure!(said.is_yes(), "no quote: {said} {}", said.body);
        let mut life = Life::new(&self.arena, self.account.clone(), wish);
        life.promised(&said.body).await?;
        Ok(life)
    }

    /// Any transaction at a site.
    pub async fn sends(&self, site: &DevChain, payload: Payload) -> Result<TransactionReceipt> {
        self.arena.send(&site.node, self.address(), payload).await
    }

    /// Deposits `amount` of a currency (zero is the native one) at `site` under the id `id`.
    pub async fn deposits(
        &self,
        site: &DevChain,
        (currency, amount): (Address, U256),
        id: B256,
    ) -> Result<Deposit> {
        let receipt = match currency {
            Address::ZERO => {
                self.sends(site, site.native_deposit(id).value(amount))
                    .await?
            }
            token => {
                let spender = site.depository;
                let approve = Token::approveCall { spender, amount };
                self.sends(site, Payload::call(token, &approve)).await?;
                let deposit = Depository::depositErc20_0Call {
                    depositor: Address::ZERO,
                    token,
                    amount,
                    id,
                };
                self.sends(site, Payload::call(site.depository, &deposit))
                    .await?
            }
        };
        ensure!(receipt.status(), "the deposit failed");
        site.deposited(&receipt).await
    }

    /// One wei at the origin under the id `id`.
    pub async fn dusts(&self, id: B256) -> Result<Deposit> {
        let dust = (Address::ZERO, U256::from(1));
        self.deposits(&self.arena.world.origin, dust, id).await
    }

    /// Asks the oracle about something, with its peers, perhaps with a key.
    pub async fn claims(&self, route: &str, body: Value, key: Option<&str>) -> Result<Said> {
        let url = self.arena.oracle(&format!("attestations/{route}/v1"))?;
        let mut request = self.arena.client.post(url).json(&claim::with_peers(body));
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        Said::to(request).await
    }

    /// The same until the answer is a final one; what is signed is brought to the hub.
    pub async fn insists(&self, route: &str, body: &Value, key: Option<&str>) -> Result<Said> {
        let mut said = self.claims(route, body.clone(), key).await?;
        for _ in 0..TRIES {
            if !said.may_change() {
                break;
            }
            sleep(POLL).await;
            said = self.claims(route, body.clone(), key).await?;
        }
        if said.is_yes() {
            self.settles(&said.body).await?;
        }
        Ok(said)
    }

    /// Brings what was signed to the hub; whether the hub took it.
    pub async fn settles(&self, answer: &Value) -> Result<bool> {
        let mut execution = claim::execution(answer)?;
        execution
            .signatures
            .truncate(self.arena.world.options.threshold);
        Ok(self.arena.world.hub.submit(execution).await.is_ok())
    }

    /// Tells the API of a transaction as if it were the request's.
    pub async fn submits(&self, request: &str, site: &DevChain, hash: B256) -> Result<[Said; 2]> {
        let url = |path: &str| self.arena.api.url.join(path);
        let chain = site.node.chain_id;
        let index = json!({"chainId": chain, "txHash": hash, "requestId": request});
        let tx = json!({"txHash": hash}).to_string();
        let single = json!({"requestId": request, "chainId": chain, "tx": tx});
        let client = &self.arena.client;
        Ok([
            Said::to(client.post(url("transactions/index")?).json(&index)).await?,
            Said::to(client.post(url("transactions/single")?).json(&single)).await?,
        ])
    }
}

/// The transaction that paid, of a status.
pub fn paid(status: &Value) -> Result<B256> {
    let hash = status["txHashes"][0].as_str();
    Ok(hash
        .with_context(|| format!("no payment in {status}"))?
        .parse()?)
}
