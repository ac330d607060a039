//! A daemon whose solver trades between EVM chains and Bitcoin over a real node.

use std::time::Duration;

use alloy::primitives::{Address, Bytes, U256};
use bitcoin::{Psbt, Transaction, Txid};
use devnet::{
    bitcoin::{Key, Kind, LocalChain, PROVIDERS, Spend, with_credentials},
    node::Payload,
    proxy::LyingProxy,
    world::{Abroad, DevChain, Devnet, Files, order::text},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{
    chain::{RECIPIENT, done, finalize, oracle},
    daemon::Daemon,
};

/// Wei, and satoshis, that a user gives.
pub const WEI: u64 = 50_000_000_000_000_000;
pub const SATOSHIS: u64 = 200_000;

const POLL: Duration = Duration::from_millis(500);
/// How often something is looked for. A payment is left alone for half a minute before it is replaced.
const PATIENCE: usize = 240;
/// In which the solver has looked at each of its orders more than once.
pub const ROUNDS: Duration = Duration::from_secs(6);

/// A daemon whose solver trades between EVM chains and Bitcoin. What its provider says of fees can be changed; all else is
/// the node's.
pub struct Trading {
    pub world: Devnet,
    pub abroad: Abroad,
    pub proxy: LyingProxy,
    pub daemon: Daemon,
    client: reqwest::Client,
}

/// One side of a request: its chain's number, the chain's own currency, and somebody's account.
pub type End = (u64, String, String);

impl Trading {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// The same where what the daemon is told is changed.
    pub async fn with(change: impl FnOnce(&mut Files)) -> Self {
        let (world, abroad) = tokio::join!(Devnet::start(), Abroad::bitcoin());
        let (world, abroad) = (world.unwrap(), abroad.unwrap());
        let mut files = world.files();
        abroad.tell(&mut files).unwrap();
        abroad.trade(&mut files).unwrap();
        change(&mut files);
        let solver = abroad.solver_account(&world.solver).unwrap();
        for account in [solver, abroad.account("user").unwrap()] {
            abroad.endow(&account).await.unwrap();
        }
        let proxy = LyingProxy::start(abroad.url()).await.unwrap();
        let daemon = oracle(&world, 0)
            .chains(&files)
            .with(PROVIDERS, with_credentials(&proxy.url))
            .solver(&world.solver, "destination")
            .start()
            .await;
        let trading = Self {
            world,
            abroad,
            proxy,
            daemon,
            client: reqwest::Client::new(),
        };
        // The solver spends what is final.
        trading.mine(2).await;
        trading
    }

    pub fn bitcoin(&self) -> &LocalChain {
        let Abroad::Bitcoin(chain) = &self.abroad else {
            panic!("another chain");
        };
        chain
    }

    pub async fn mine(&self, blocks: u64) {
        self.bitcoin().node.mine(blocks).await.unwrap();
    }

    /// The account of somebody with this name on Bitcoin.
    pub fn end_of(&self, who: &str) -> End {
        let native = self.abroad.identity().unwrap().native;
        let account = self.abroad.account(who).unwrap();
        (self.abroad.number(), native, account)
    }

    /// The answer to a request for a quote, once there is one.
    pub async fn quote(&self, from: End, to: End, amount: u64) -> Value {
        let body = json!({
            "user": from.2, "recipient": to.2, "originChainId": from.0, "destinationChainId": to.0,
            "originCurrency": from.1, "destinationCurrency": to.1, "amount": amount.to_string(),
            "tradeType": "EXACT_INPUT", "includeProtocolData": true,
        });
        let url = format!("{}/quote/v2", self.daemon.integrator_url());
        in_time(async || {
            let answer = self.client.post(&url).json(&body).send().await.unwrap();
            let answer: Value = answer.json().await.unwrap();
            match answer["steps"].is_array() {
                true => Ok(answer),
                false => Err(answer),
            }
        })
        .await
    }

    /// The user deposits at the origin as the quote says; it is final when this returns.
    pub async fn deposit(&self, quote: &Value) {
        let data = &quote["steps"][0]["items"][0]["data"];
        let field = |name: &str| data[name].as_str().unwrap_or_else(|| panic!("{quote}"));
        let payload = Payload {
            to: Some(field("to").parse().unwrap()),
            data: field("data").parse::<Bytes>().unwrap().to_vec(),
            value: field("value").parse().unwrap(),
        };
        let (origin, user) = (&self.world.origin, self.world.user.address());
        done(origin.node.send(user, payload).await);
        finalize(&self.world, origin).await;
    }

    pub async fn status(&self, quote: &Value) -> Value {
        let request = quote["steps"][0]["requestId"].as_str().unwrap();
        let base = self.daemon.integrator_url();
        let url = format!("{base}/intents/status/v3?requestId={request}");
        let answer = self.client.get(url).send().await.unwrap();
        answer.json().await.unwrap()
    }

    /// Where the request stands, once that is `wanted`.
    pub async fn reaches(&self, quote: &Value, wanted: &str) -> Value {
        in_time(async || {
            let answer = self.status(quote).await;
            match answer["status"] == wanted {
                true => Ok(answer),
                false => Err(answer),
            }
        })
        .await
    }

    /// The only transaction that waits for a block, once it is another than `before`.
    pub async fn waiting(&self, before: Option<Txid>) -> Transaction {
        let node = &self.bitcoin().node;
        let id = in_time(async || {
            let ids = node.waiting().await.unwrap();
            match ids[..] {
                [one] if before != Some(one) => Ok(one),
                _ => Err(json!(ids.iter().map(Txid::to_string).collect::<Vec<_>>())),
            }
        });
        node.transaction(id.await).await.unwrap()
    }

    /// What `POST /transactions/index` says to a transaction.
    pub async fn indexed(&self, transaction: Txid) -> u16 {
        let body = json!({"chainId": self.abroad.number(), "txHash": transaction.to_string()});
        let url = format!("{}/transactions/index", self.daemon.integrator_url());
        let answer = self.client.post(url).json(&body).send().await.unwrap();
        answer.status().as_u16()
    }

    /// What the recipient at the destination has.
    pub async fn received(&self) -> U256 {
        let node = &self.world.destination.node;
        node.balance(RECIPIENT).await.unwrap()
    }
}

/// What `look` finds, once it finds what is wanted; what it saw last is told where that takes too long.
pub async fn in_time<T>(look: impl AsyncFn() -> Result<T, Value>) -> T {
    let mut last = Value::Null;
    for _ in 0..PATIENCE {
        match look().await {
            Ok(found) => return found,
            Err(seen) => last = seen,
        }
        sleep(POLL).await;
    }
    panic!("{last}")
}

/// An account on an EVM chain.
pub fn ether(chain: &DevChain, account: Address) -> End {
    (chain.node.chain_id, text(Address::ZERO), text(account))
}

/// The deposit that a quote of Bitcoin asks of the user.
pub fn wanted(quote: &Value) -> Spend {
    let psbt = &quote["steps"][0]["items"][0]["data"]["psbt"];
    let psbt = alloy::hex::decode(psbt.as_str().unwrap()).unwrap();
    let psbt = Psbt::deserialize(&psbt).unwrap();
    let user = Key::named("user").unwrap();
    Spend::wanted(&psbt, (user, Kind::P2wpkh)).unwrap()
}

/// What the quote promises, in the smallest unit.
pub fn promised(quote: &Value) -> U256 {
    let amount = quote["details"]["currencyOut"]["amount"].as_str();
    amount.unwrap().parse().unwrap()
}
