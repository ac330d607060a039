//! Lines to paste into another terminal while the devnet is up. Each works as it stands.

use std::{path::Path, sync::Arc};

use alloy::primitives::{U256, hex};
use anyhow::Result;
use devnet::world::{Abroad, Devnet};
use serde_json::{Value, json};

use super::{
    across,
    life::{Wish, quote_body},
    oracles::{API_KEY, Oracles},
    page::Page,
    story::{NO_ORDER, Recap},
};

/// What the lines are about.
pub struct Paste<'a> {
    pub page: &'a Page,
    pub world: &'a Devnet,
    /// Chains of other families.
    pub abroad: &'a [Arc<Abroad>],
    pub oracles: &'a Oracles,
    /// Where bodies go that are too long for a line.
    pub directory: &'a Path,
}

impl Paste<'_> {
    /// Prints the lines.
    pub fn print(&self, told: &Recap) -> Result<()> {
        let Self { page, oracles, .. } = self;
        let oracle = oracles.urls[0].as_str();
        page.heading("Everything stays up. Try, in another terminal:")?;
        self.integrator(told)?;
        for site in self.abroad {
            self.going(site)?;
        }
        page.heading("The oracles")?;
        for path in ["lives/v1", "chains/v1"] {
            page.line(&format!("curl -s -H 'x-api-key: {API_KEY}' {oracle}{path}"))?;
        }
        for path in ["readyz", "metrics"] {
            page.line(&format!("curl -s {}{path}", oracles.ops))?;
        }
        page.line(&format!("# in a browser: {oracle}documentation"))?;
        page.heading("Ask for the same attestations again: the signatures are the same")?;
        let bodies = [
            ("depository-deposits", &told.deposit),
            ("solver-fills", &told.fill),
            ("solver-refunds", &told.refund),
            ("depository-withdrawals", &told.withdrawal),
        ];
        for (route, body) in bodies {
            let file = self.directory.join(format!("{route}.json"));
            std::fs::write(&file, serde_json::to_string_pretty(body)?)?;
            page.line(&post(oracle, route, &format!("@{}", file.display())))?;
        }
        page.heading("Make a deposit of your own, wait three seconds, have it attested")?;
        let hash = format!(
            "DEPOSIT=$(curl -s {} -H 'content-type: application/json' -d '{}' | grep -o '0x[0-9a-f]\\{{64\\}}')",
            self.world.origin.node.url,
            own_deposit(self.world)
        );
        page.line(&hash)?;
        let body =
            r#"'{"chainId":"origin","transactionId":"'$DEPOSIT'","requestPeerSignatures":true}'"#;
        page.line(&post(oracle, "depository-deposits", body))?;
        page.line("\nCtrl-C ends all of it.")
    }

    /// The integrator API: what there is, what became of the requests, and one of the reader's own.
    fn integrator(&self, told: &Recap) -> Result<()> {
        let (page, oracles) = (self.page, self.oracles);
        let api = &oracles.api.url;
        for path in ["chains", "swap-sources", "documentation/json"] {
            page.line(&format!("curl -s {api}{path}"))?;
        }
        for request in &told.requests {
            page.line(&format!(
                "curl -s '{api}intents/status/v3?requestId={request}'"
            ))?;
        }
        let key = format!("-H 'x-api-key: {}'", oracles.api.key);
        page.line(&format!("curl -s '{api}requests/v3?limit=9' {key}"))?;
        page.line("# every change of status so far, then each as it happens")?;
        page.line(&format!("curl -sN {api}events {key} -H 'last-event-id: 0'"))?;
        page.line(&format!("# in a browser: {api}documentation"))?;
        let base = api.as_str().trim_end_matches('/');
        page.line(&format!("# baseApiUrl of a client: {base}"))?;
        page.heading("A request of your own: quote, send what it says, ask how it goes")?;
        let (origin, destination) = (&self.world.origin, &self.world.destination);
        self.request(
            "quote.json",
            &quote_body(self.world, &Wish::ether(10, None)),
        )?;
        page.line(&format!(
            "# it pays at {}, and chain ids are {} and {}",
            destination.node.url, origin.node.chain_id, destination.node.chain_id
        ))
    }

    /// A request that ends on a chain of another family.
    fn going(&self, site: &Abroad) -> Result<()> {
        let (name, symbol, _) = site.names();
        self.page
            .heading(&format!("The same, from ether to {symbol} on {name}"))?;
        let body = across::from_ether(self.world, site, 10)?;
        self.request(&format!("quote-{}.json", site.id()), &body)
    }

    /// Quotes `body` into a file, sends its first step at the origin, and asks how it goes.
    fn request(&self, file: &str, body: &Value) -> Result<()> {
        let (page, api) = (self.page, &self.oracles.api);
        let (url, key) = (&api.url, format!("-H 'x-api-key: {}'", api.key));
        let quote = self.directory.join(file);
        let quote = quote.display();
        page.line(&format!(
            "curl -s {url}quote/v2 {key} -H 'content-type: application/json' -d '{body}' -o {quote}"
        ))?;
        page.line(&format!(
            "node -e '{SEND}' {quote} | curl -s {} -H 'content-type: application/json' -d @-",
            self.world.origin.node.url
        ))?;
        page.line(&format!(
            "curl -s \"{url}intents/status/v3?requestId=$(node -p 'require(process.argv[1]).steps[0].requestId' {quote})\""
        ))
    }
}

/// The transaction of a quote's first step, for a node that signs for everybody.
const SEND: &str = "const {from, to, data, value} = require(process.argv[1]).steps[0].items[0].data; \
console.log(JSON.stringify({jsonrpc: \"2.0\", id: 1, method: \"eth_sendTransaction\", \
params: [{from, to, data, value: \"0x\" + BigInt(value).toString(16)}]}))";

fn post(oracle: &str, route: &str, body: &str) -> String {
    format!(
        "curl -s -H 'x-api-key: {API_KEY}' -H 'content-type: application/json' {oracle}attestations/{route}/v1 -d {body}"
    )
}

/// The node signs for everybody here, so that a deposit is one call.
fn own_deposit(world: &Devnet) -> Value {
    let call = world.origin.native_deposit(NO_ORDER);
    json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "eth_sendTransaction",
        "params": [{
            "from": world.user.address(),
            "to": world.origin.depository,
            "value": U256::from(1_000_000_000_000_000u64),
            "data": hex::encode_prefixed(call.data),
        }],
    })
}
