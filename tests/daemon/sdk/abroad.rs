//! The published wallet adapters of Bitcoin and Solana: every way between chains of different families, to success and
//! to a refund.

use std::sync::Arc;

use alloy::primitives::{Address, U256};
use bitcoin::Amount;
use devnet::{
    account::Account,
    bitcoin::{Key, Kind, LocalChain, address},
    world::{Abroad, Pace},
};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep, timeout};

use super::app::{App, ETH, MILLI, held, hex, promised};

/// How long a request may take until its end: four blocks of Bitcoin, and all the others at the same time.
const PATIENCE: Duration = Duration::from_secs(180);
/// What a Bitcoin user has in one output.
const OUTPUT: Amount = Amount::from_sat(1_000_000);
const PAUSE: Duration = Duration::from_millis(250);

/// Where a request begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Evm,
    Bitcoin,
    Solana,
}

use End::{Bitcoin, Evm, Solana};

const WAYS: [(End, End); 6] = [
    (Evm, Bitcoin),
    (Evm, Solana),
    (Bitcoin, Evm),
    (Bitcoin, Solana),
    (Solana, Evm),
    (Solana, Bitcoin),
];

/// The app and the chains abroad, which make blocks by themselves.
struct Crossing {
    app: App,
    bitcoin: Arc<Abroad>,
    solana: Arc<Abroad>,
    _blocks: [Pace; 2],
}

/// Somebody with an account on every chain, of its own.
struct Person {
    name: String,
    account: Account,
}

impl Crossing {
    async fn open() -> Self {
        let (bitcoin, solana) = tokio::join!(Abroad::bitcoin(), Abroad::solana());
        let sites = [Arc::new(bitcoin.unwrap()), Arc::new(solana.unwrap())];
        let app = App::among(&sites, false, |_| ()).await;
        let blocks = [sites[0].run(), sites[1].run()];
        let [bitcoin, solana] = sites;
        Self {
            app,
            bitcoin,
            solana,
            _blocks: blocks,
        }
    }

    fn abroad(&self, end: End) -> Option<&Abroad> {
        match end {
            Evm => None,
            Bitcoin => Some(&self.bitcoin),
            Solana => Some(&self.solana),
        }
    }

    /// Somebody with money where a way begins.
    async fn somebody(&self, name: String, from: End) -> Person {
        let account = Account::named(&name).unwrap();
        match self.abroad(from) {
            None => {
                let origin = &self.app.world.origin;
                origin.endow(account.address()).await.unwrap();
            }
            Some(site) => site.endow(&site.account(&name).unwrap()).await.unwrap(),
        }
        Person { name, account }
    }

    fn address(&self, who: &Person, end: End) -> String {
        match self.abroad(end) {
            None => hex(who.account.address()),
            Some(site) => site.account(&who.name).unwrap(),
        }
    }

    /// The chain's number, and its native currency.
    fn native(&self, (end, is_origin): (End, bool)) -> (u64, String) {
        let world = &self.app.world;
        match self.abroad(end) {
            None if is_origin => (world.origin.node.chain_id, ETH.to_owned()),
            None => (world.destination.node.chain_id, ETH.to_owned()),
            Some(site) => (site.number(), site.identity().unwrap().native),
        }
    }

    /// What the client did with a quote from one end to the other, and what the request came to.
    async fn cross(&self, who: &Person, (from, to): (End, End), source: &str) -> (Value, Value) {
        let (chain, currency) = self.native((from, true));
        let (to_chain, to_currency) = self.native((to, false));
        let quote = json!({
            "chainId": chain, "toChainId": to_chain, "currency": currency, "toCurrency": to_currency,
            "amount": amount(from).to_string(), "tradeType": "EXACT_INPUT",
            "user": self.address(who, from), "recipient": self.address(who, to),
        });
        let abroad = [&self.bitcoin, &self.solana].map(|site| site.wallet(&who.name).unwrap());
        let job = json!({
            "what": "execute", "key": who.account.key(), "source": source, "abroad": abroad, "quote": quote,
        });
        let done = self.app.drive(job).await;
        let last = match done["request"].as_str() {
            Some(id) => self.ended(id).await,
            None => Value::Null,
        };
        (done, last)
    }

    /// Where a request stands when it has ended.
    async fn ended(&self, id: &str) -> Value {
        let ended = async {
            loop {
                let status = self.app.status_of(id).await;
                let said = status["status"].as_str().unwrap_or_default();
                if ["success", "refund", "failure"].contains(&said) {
                    return status;
                }
                sleep(PAUSE).await;
            }
        };
        match timeout(PATIENCE, ended).await {
            Ok(status) => status,
            Err(_) => self.app.status_of(id).await,
        }
    }

    fn regtest(&self) -> &LocalChain {
        match &*self.bitcoin {
            Abroad::Bitcoin(site) => site,
            Abroad::Solana(_) => panic!("not Bitcoin"),
        }
    }

    /// What the API says to a request for a quote from an address on Bitcoin to the EVM chain.
    async fn quote_from(&self, user: &str, recipient: Address, more: Value) -> (u16, Value) {
        let (chain, currency) = self.native((Bitcoin, true));
        let (to_chain, to_currency) = self.native((Evm, false));
        let mut body = json!({
            "originChainId": chain, "destinationChainId": to_chain, "originCurrency": currency,
            "destinationCurrency": to_currency, "amount": amount(Bitcoin).to_string(),
            "tradeType": "EXACT_INPUT", "user": user, "recipient": hex(recipient), "refundTo": user,
        });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        let url = format!("{}/quote/v2", self.app.daemon.integrator_url());
        let asked = reqwest::Client::new().post(url).json(&body).send().await;
        let answer = asked.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// A user whose outputs are locked as `kind` deposits with the wallet of its key; what the request comes to. `more` is
    /// in the request for a quote.
    async fn deposits_as(&self, (key, kind): (Key, Kind), more: Value) -> Value {
        let site = self.regtest();
        let user = address(&key.script(kind)).unwrap();
        let recipient = Account::named(&user).unwrap().address();
        let (status, quote) = self.quote_from(&user, recipient, more).await;
        assert_eq!(status, 200, "{kind:?} {quote}");
        let step = &quote["steps"][0];
        let data = &step["items"][0]["data"];
        site.follow((key, kind), data).await.unwrap();
        let last = self.ended(step["requestId"].as_str().unwrap()).await;
        if last["status"] == "success" {
            let destination = &self.app.world.destination;
            let got = held(destination, Address::ZERO, recipient).await;
            let amount = quote["details"]["currencyOut"]["amount"].as_str();
            assert_eq!(got.to_string(), amount.unwrap(), "{kind:?}");
        } else {
            let transaction = last["txHashes"][0].as_str().unwrap();
            let back = self.bitcoin.paid(transaction, &user).await.unwrap();
            let whole = amount(Bitcoin);
            assert!(back > whole - whole / 10, "{kind:?}: {back} of {whole}");
        }
        last
    }

    async fn has(&self, who: &Person) -> U256 {
        let site = &self.app.world.destination;
        held(site, Address::ZERO, who.account.address()).await
    }

    /// What a transaction paid to somebody on a chain.
    async fn paid(&self, who: &Person, end: End, status: &Value) -> U256 {
        let site = self.abroad(end).unwrap();
        let transaction = status["txHashes"][0].as_str().unwrap();
        let account = self.address(who, end);
        U256::from(site.paid(transaction, &account).await.unwrap())
    }

    async fn succeeds(&self, way: (End, End)) {
        let (from, to) = way;
        let name = format!("{from:?} to {to:?}");
        let who = self.somebody(name, from).await;
        let before = self.has(&who).await;
        let (done, last) = self.cross(&who, way, "acceptance.test").await;
        assert_eq!(done["ok"], true, "{way:?} {done} {last}");
        assert_eq!(last["status"], "success", "{way:?} {done} {last}");
        let got = match to {
            Evm => self.has(&who).await - before,
            to => self.paid(&who, to, &last).await,
        };
        assert_eq!(got, promised(&done), "{way:?} {last}");
    }

    async fn is_refunded(&self, way: (End, End)) {
        let (from, to) = way;
        let name = format!("{from:?} not to {to:?}");
        let who = self.somebody(name, from).await;
        let (done, last) = self.cross(&who, way, "debug-force-refund").await;
        assert_eq!(last["status"], "refund", "{way:?} {done} {last}");
        // The client asks nothing more of a request that begins on Bitcoin.
        match from {
            Bitcoin => assert_eq!(done["ok"], true, "{way:?} {done}"),
            _ => assert_eq!(
                done["error"], "Transaction failed: Refunded",
                "{way:?} {done}"
            ),
        }
        let back = match from {
            Evm => {
                let origin = &self.app.world.origin;
                let asked = (last["txHashes"][0].clone(),);
                let paid = origin.node.rpc("eth_getTransactionByHash", asked).await;
                let paid: Value = paid.unwrap();
                assert_eq!(paid["to"], hex(who.account.address()), "{way:?} {last}");
                paid["value"].as_str().unwrap().parse().unwrap()
            }
            from => self.paid(&who, from, &last).await,
        };
        let whole = U256::from(amount(from));
        let least = whole - whole / U256::from(10);
        assert!(back > least && back <= whole, "{way:?}: {back} of {whole}");
    }
}

/// What is deposited, in the smallest unit.
fn amount(from: End) -> u64 {
    match from {
        Evm => 50 * MILLI,
        Bitcoin => 200_000,
        Solana => 2_000_000_000,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adapters_bridge_between_families_or_get_the_money_back() {
    let crossing = Crossing::open().await;
    let all = WAYS.map(|way| {
        let crossing = &crossing;
        async move { tokio::join!(crossing.succeeds(way), crossing.is_refunded(way)) }
    });
    join_all(all).await;
    crossing.app.daemon.stop().await;
}

/// The addresses for which the wallet of one key signs.
const KINDS: [Kind; 5] = [
    Kind::P2pkh,
    Kind::P2shP2wpkh,
    Kind::P2wpkh,
    Kind::P2wsh,
    Kind::P2tr,
];

/// What no wallet of one key signs for is refused; so is a script's hash without the key behind it.
#[tokio::test(flavor = "multi_thread")]
async fn bitcoin_users_deposit_from_every_kind_of_address_and_are_refunded_there() {
    let crossing = Crossing::open().await;
    let key = |kind: Kind, to: &str| Key::named(&format!("{kind:?} {to}")).unwrap();
    let public = |key: &Key| json!({"userPublicKey": key.public().to_string()});
    let users = KINDS.map(|kind| ["fill", "refund"].map(|to| (key(kind, to), kind)));
    let outputs = users.iter().flatten();
    let outputs = outputs.map(|(key, kind)| key.output(*kind, OUTPUT));
    let node = &crossing.regtest().node;
    node.pay(outputs.collect()).await.unwrap();
    let all = users.map(|[fill, refund]| {
        let crossing = &crossing;
        let filled = json!({"additionalData": public(&fill.0)});
        let refunded =
            json!({"additionalData": public(&refund.0), "referrer": "debug-force-refund"});
        async move {
            let (filled, refunded) = tokio::join!(
                crossing.deposits_as(fill, filled),
                crossing.deposits_as(refund, refunded),
            );
            assert_eq!(filled["status"], "success", "{:?} {filled}", fill.1);
            assert_eq!(refunded["status"], "refund", "{:?} {refunded}", refund.1);
        }
    });
    join_all(all).await;
    let recipient = crossing.app.world.user.address();
    for (kind, is_named) in [
        (Kind::P2sh, true),
        (Kind::P2shP2wpkh, false),
        (Kind::P2wsh, false),
    ] {
        let key = key(kind, "nowhere");
        let user = address(&key.script(kind)).unwrap();
        let more = is_named.then(|| json!({"additionalData": public(&key)}));
        let more = more.unwrap_or_else(|| json!({}));
        let (status, answer) = crossing.quote_from(&user, recipient, more).await;
        let said = (status, answer["errorCode"].as_str().unwrap_or_default());
        assert_eq!(said, (400, "INVALID_FIELD"), "{kind:?} {answer}");
    }
    crossing.app.daemon.stop().await;
}
