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

    /// What the client asks for a quote from one end to the other.
    fn asked(&self, (from, to): (End, End), (user, recipient): (&str, &str)) -> Value {
        let (chain, currency) = self.native((from, true));
        let (to_chain, to_currency) = self.native((to, false));
        json!({
            "chainId": chain, "toChainId": to_chain, "currency": currency, "toCurrency": to_currency,
            "amount": amount(from).to_string(), "tradeType": "EXACT_INPUT",
            "user": user, "recipient": recipient,
        })
    }

    /// What the client did with a quote from one end to the other, and what the request came to.
    async fn cross(&self, who: &Person, way: (End, End), source: &str) -> (Value, Value) {
        let [user, recipient] = [way.0, way.1].map(|end| self.address(who, end));
        let quote = self.asked(way, (&user, &recipient));
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

    /// What the client did with the wallet of a key whose outputs are locked as `kind`, from there to an account of the EVM
    /// chain. `options` are in the request for a quote.
    async fn adapted(&self, (key, kind): (Key, Kind), recipient: Address, options: Value) -> Value {
        let user = address(&key.script(kind)).unwrap();
        let mut quote = self.asked((Bitcoin, Evm), (&user, &hex(recipient)));
        quote["options"] = options;
        let mut wallet = self.bitcoin.wallet(&user).unwrap();
        wallet["address"] = user.into();
        wallet["secret"] = json!(key.secret());
        let job = json!({"what": "execute", "abroad": [wallet], "quote": quote});
        self.app.drive(job).await
    }

    /// A user whose outputs are locked as `kind` deposits through the adapter, and its recipient has what was promised.
    async fn is_filled_from(&self, (key, kind): (Key, Kind), options: Value) {
        let user = address(&key.script(kind)).unwrap();
        let recipient = Account::named(&user).unwrap().address();
        let done = self.adapted((key, kind), recipient, options).await;
        assert_eq!(done["ok"], true, "{kind:?} {done}");
        let last = self.ended(done["request"].as_str().unwrap()).await;
        assert_eq!(last["status"], "success", "{kind:?} {done} {last}");
        let got = held(&self.app.world.destination, Address::ZERO, recipient).await;
        assert_eq!(got, promised(&done), "{kind:?} {last}");
    }

    /// The same with another wallet of the key, and the user gets the deposit back. `more` is in the request for a quote.
    async fn is_given_back(&self, (key, kind): (Key, Kind), more: Value) {
        let site = self.regtest();
        let user = address(&key.script(kind)).unwrap();
        let recipient = Account::named(&user).unwrap().address();
        let (status, quote) = self.quote_from(&user, recipient, more).await;
        assert_eq!(status, 200, "{kind:?} {quote}");
        let step = &quote["steps"][0];
        let data = &step["items"][0]["data"];
        site.follow((key, kind), data).await.unwrap();
        let last = self.ended(step["requestId"].as_str().unwrap()).await;
        assert_eq!(last["status"], "refund", "{kind:?} {last}");
        let transaction = last["txHashes"][0].as_str().unwrap();
        let back = self.bitcoin.paid(transaction, &user).await.unwrap();
        let whole = amount(Bitcoin);
        assert!(back > whole - whole / 10, "{kind:?}: {back} of {whole}");
    }

    /// What no wallet of one key signs for is refused; so is a script's hash without the key behind it, and a Taproot
    /// account with a key that is not its own.
    async fn refuses_keys_that_spend_nothing(&self, recipient: Address) {
        let [own, other] = ["nowhere", "elsewhere"].map(|name| Key::named(name).unwrap());
        for (kind, more) in [
            (Kind::P2sh, named(&own)),
            (Kind::P2shP2wpkh, json!({})),
            (Kind::P2shP2wpkh, named(&other)),
            (Kind::P2wsh, json!({})),
        ] {
            let user = address(&own.script(kind)).unwrap();
            let (status, answer) = self.quote_from(&user, recipient, more).await;
            let said = (status, answer["errorCode"].as_str().unwrap_or_default());
            assert_eq!(said, (400, "INVALID_FIELD"), "{kind:?} {answer}");
        }
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

fn named(key: &Key) -> Value {
    json!({"additionalData": {"userPublicKey": key.public().to_string()}})
}

/// Each deposit that is filled is signed by bitcoinjs in the published adapter, each that is given back by another wallet.
#[tokio::test(flavor = "multi_thread")]
async fn bitcoin_users_deposit_from_every_kind_of_address_and_are_refunded_there() {
    let crossing = Crossing::open().await;
    let key = |kind: Kind, to: &str| Key::named(&format!("{kind:?} {to}")).unwrap();
    let users = KINDS.map(|kind| ["fill", "refund"].map(|to| (key(kind, to), kind)));
    let unnamed = (key(Kind::P2tr, "unnamed"), Kind::P2tr);
    let outputs = users.iter().flatten().chain([&unnamed]);
    let outputs = outputs.map(|(key, kind)| key.output(*kind, OUTPUT));
    let node = &crossing.regtest().node;
    node.pay(outputs.collect()).await.unwrap();
    let all = users.map(|[fill, refund]| {
        let crossing = &crossing;
        let mut refunded = named(&refund.0);
        refunded["referrer"] = "debug-force-refund".into();
        async move {
            tokio::join!(
                crossing.is_filled_from(fill, named(&fill.0)),
                crossing.is_given_back(refund, refunded),
            )
        }
    });
    let recipient = crossing.app.world.user.address();
    let unsigned = crossing.adapted(unnamed, recipient, json!({}));
    let (unsigned, _) = tokio::join!(unsigned, join_all(all));
    // bitcoinjs signs for Taproot where the PSBT shows the internal key, which is not known of this user.
    assert_eq!(unsigned["error"], "No inputs were signed", "{unsigned}");
    crossing.refuses_keys_that_spend_nothing(recipient).await;
    crossing.app.daemon.stop().await;
}
