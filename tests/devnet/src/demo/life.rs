//! The lives of requests: quoted, deposited, filled or refunded and settled by the daemon. This side
//! only asks the API and sends what it is told to send; what came of it is read from the chains.

use std::time::{Duration, Instant};

use alloy::primitives::{Address, B256, Bytes, U256};
use anyhow::{Context, Result, bail, ensure};
use devnet::{
    claim,
    node::Payload,
    world::{Deposit, Devnet, SignedOrder, order::text},
};
use serde_json::{Value, json};
use vm::protocol::order::Order;

use super::story::Story;

/// Between two looks.
pub const POLL: Duration = Duration::from_millis(250);
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What somebody wants.
pub struct Wish {
    /// Whether the destination's token is wanted for the origin's; else it is ether for ether.
    token: bool,
    amount: U256,
    referrer: Option<&'static str>,
}

impl Wish {
    /// Thousandths of an ether.
    pub fn ether(milli: u64, referrer: Option<&'static str>) -> Self {
        Self {
            token: false,
            amount: U256::from(milli) * U256::from(10).pow(U256::from(15)),
            referrer,
        }
    }

    /// Whole dollars.
    fn dollars(whole: u64) -> Self {
        Self {
            token: true,
            amount: U256::from(whole * 1_000_000),
            referrer: None,
        }
    }
}

/// A quote as far as it is acted on.
pub struct Quoted {
    pub request: String,
    pub order: SignedOrder,
    /// What the user is promised.
    pub output: U256,
    pub steps: Vec<Value>,
}

impl Story<'_> {
    /// Ether, a token, and one that is given back; the ids of the requests.
    pub async fn lives(&mut self) -> Result<Vec<String>> {
        let acts = [
            (
                "A request: ether for ether",
                Wish::ether(100, None),
                "success",
            ),
            (
                "A request: a token for a token",
                Wish::dollars(25),
                "success",
            ),
            (
                "A request that is given back (referrer debug-force-refund)",
                Wish::ether(50, Some("debug-force-refund")),
                "refund",
            ),
        ];
        let mut told = Vec::new();
        for (title, wish, end) in acts {
            self.act(title)?;
            told.push(self.live(&wish, end).await?);
        }
        Ok(told)
    }

    async fn live(&mut self, wish: &Wish, end: &str) -> Result<String> {
        let quoted = self.quote(wish).await?;
        let had = self.received(wish).await?;
        let deposit = self.take_steps(&quoted).await?;
        let last = self.follow(&quoted, end).await?;
        let promised = match end {
            "success" => quoted.output,
            _ => U256::ZERO,
        };
        let gained = self.received(wish).await? - had;
        ensure!(
            gained == promised,
            "the user got {gained}, {promised} were promised"
        );
        self.ledger.changes(self.page).await?;
        self.settled(wish, &quoted, (&deposit, &last)).await?;
        Ok(quoted.request)
    }

    async fn quote(&self, wish: &Wish) -> Result<Quoted> {
        self.quoted(&quote_body(self.world, wish)).await
    }

    /// The answer to a quote's body, which is shown.
    pub async fn quoted(&self, body: &Value) -> Result<Quoted> {
        let asked = Instant::now();
        let answer = self.oracles.api.quote(body).await?;
        let took = asked.elapsed().as_millis();
        let quoted = read(&answer)?;
        let side = |name: &str| {
            let side = &answer["details"][name];
            let (amount, symbol) = (&side["amountFormatted"], &side["currency"]["symbol"]);
            format!(
                "{} {}",
                amount.as_str().unwrap_or_default(),
                symbol.as_str().unwrap_or_default()
            )
        };
        let (give, get) = (side("currencyIn"), side("currencyOut"));
        self.page
            .fact("POST /quote/v2", format!("{give} -> {get} ({took} ms)"))?;
        self.page.fact("request", &quoted.request)?;
        self.page.fact("order", quoted.order.id)?;
        let status = self.oracles.api.status(&quoted.request).await?;
        ensure!(status["status"] == "waiting", "{status}");
        self.page.fact("status", "+0.0 s  waiting")?;
        Ok(quoted)
    }

    /// The user sends every step's transactions; the deposit that came of them.
    async fn take_steps(&self, quoted: &Quoted) -> Result<Deposit> {
        let Devnet { origin, user, .. } = self.world;
        let mut last = None;
        for step in &quoted.steps {
            let name = step["id"].as_str().context("a step without id")?;
            for item in step["items"].as_array().context("no items")? {
                let payload = payload(&item["data"])?;
                let receipt = origin.node.send(user.address(), payload).await?;
                self.sent(&format!("user sends {name}"), &receipt)?;
                last = Some(receipt);
            }
        }
        origin.deposited(&last.context("no steps")?).await
    }

    /// Shows every status until `end`; the last answer.
    pub async fn follow(&self, quoted: &Quoted, end: &str) -> Result<Value> {
        let begun = Instant::now();
        let mut seen = vec!["waiting".to_owned()];
        loop {
            let answer = self.oracles.api.status(&quoted.request).await?;
            let status = answer["status"].as_str().context("no status")?.to_owned();
            if seen.last() != Some(&status) {
                let since = begun.elapsed().as_secs_f32();
                let hashes = |name: &str| -> String {
                    let all = answer[name].as_array().into_iter().flatten();
                    all.filter_map(Value::as_str)
                        .map(|hash| format!("  {hash}"))
                        .collect()
                };
                let out = hashes("txHashes");
                let shown = format!("+{since:.1} s  {status}{out}");
                self.page.fact("status", shown)?;
                seen.push(status.clone());
            }
            if status == end {
                return Ok(answer);
            }
            ensure!(
                !matches!(status.as_str(), "success" | "failure" | "refund"),
                "{answer}"
            );
            if begun.elapsed() > PATIENCE {
                bail!("still {status}: {answer}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the hub has paid the solver, and shows by which transactions: each execution once.
    async fn settled(
        &mut self,
        wish: &Wish,
        quoted: &Quoted,
        (deposit, last): (&Deposit, &Value),
    ) -> Result<()> {
        let Devnet {
            origin,
            destination,
            hub,
            solver,
            ..
        } = self.world;
        let paid: B256 = last["txHashes"][0]
            .as_str()
            .context("no payment")?
            .parse()?;
        let deposits = std::slice::from_ref(deposit);
        let refunded = last["status"] == "refund";
        let (site, outcome, body) = match refunded {
            true => (
                origin,
                "refund",
                claim::refund(&quoted.order, deposits, &[paid]),
            ),
            false => (
                destination,
                "fill",
                claim::fill(&quoted.order, deposits, paid),
            ),
        };
        let ended = (quoted.order.id, &[deposit.onchain_id][..]);
        let body = claim::vouched((outcome, body), ended, solver)?;
        let receipt = site.node.receipt(paid).await?.context("no receipt")?;
        self.wait(&site.node, &receipt).await?;
        let executions = [
            (
                "deposit",
                "depository-deposits",
                claim::deposit(origin, deposit.transaction),
            ),
            (outcome, &format!("solver-{outcome}s"), body),
        ];
        for (what, route, body) in executions {
            let key = self.key(route, &body).await?;
            let transaction = self.executed(key).await?;
            self.page
                .fact(&format!("hub takes the {what}"), transaction)?;
        }
        let currency = if wish.token {
            origin.token
        } else {
            Address::ZERO
        };
        let left = hub
            .balance(deposit.account, origin.token_id(currency)?)
            .await?;
        ensure!(left.is_zero(), "the order's account still holds {left}");
        self.ledger.changes(self.page).await
    }

    /// The idempotency key of what the oracles say to `body`: the same whoever asks.
    async fn key(&self, route: &str, body: &Value) -> Result<B256> {
        let route = format!("attestations/{route}/v1");
        let answer = self.oracles.ask(&route, body).await?;
        Ok(claim::execution(&answer)?.idempotency_key)
    }

    pub async fn executed(&self, key: B256) -> Result<B256> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match self.world.hub.executions(key).await?[..] {
                [] => tokio::time::sleep(POLL).await,
                [one] => return Ok(one),
                _ => bail!("the hub has acted on {key} more than once"),
            }
        }
        bail!("the solver has not submitted {key}")
    }

    /// What the user has at the destination of what is wanted.
    async fn received(&self, wish: &Wish) -> Result<U256> {
        let (site, user) = (&self.world.destination, self.world.user.address());
        match wish.token {
            true => site.token_balance(site.token, user).await,
            false => site.node.balance(user).await,
        }
    }
}

/// The body of `POST /quote/v2`.
pub fn quote_body(world: &Devnet, wish: &Wish) -> Value {
    let (origin, destination) = (&world.origin, &world.destination);
    let pick = |token| text(if wish.token { token } else { Address::ZERO });
    let user = text(world.user.address());
    let mut body = json!({
        "user": user,
        "recipient": user,
        "originChainId": origin.node.chain_id,
        "destinationChainId": destination.node.chain_id,
        "originCurrency": pick(origin.token),
        "destinationCurrency": pick(destination.token),
        "amount": wish.amount.to_string(),
        "tradeType": "EXACT_INPUT",
        "includeProtocolData": true,
    });
    if let Some(referrer) = wish.referrer {
        body["referrer"] = referrer.into();
    }
    body
}

/// A quote's answer, asked with `includeProtocolData`.
pub fn read(answer: &Value) -> Result<Quoted> {
    let steps = answer["steps"].as_array().context("no steps")?.clone();
    let protocol = &answer["protocol"]["v2"];
    let field = |value: &Value| {
        let text = value.as_str().map(str::to_owned);
        text.with_context(|| format!("a field is missing in {answer}"))
    };
    let order: Order = serde_json::from_value(protocol["orderData"].clone())?;
    let signature: Bytes = field(&protocol["orderSignature"])?.parse()?;
    Ok(Quoted {
        request: field(&steps.first().context("no steps")?["requestId"])?,
        order: SignedOrder {
            order,
            id: field(&protocol["orderId"])?.parse()?,
            signature,
        },
        output: field(&answer["details"]["currencyOut"]["amount"])?.parse()?,
        steps,
    })
}

/// A step's transaction as the user signs it.
pub fn payload(data: &Value) -> Result<Payload> {
    let field = |name: &str| data[name].as_str().with_context(|| format!("no {name}"));
    Ok(Payload {
        to: Some(field("to")?.parse()?),
        data: field("data")?.parse::<Bytes>()?.to_vec(),
        value: field("value")?.parse()?,
    })
}
