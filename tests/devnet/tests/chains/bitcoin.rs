//! Bitcoin on a real node: what a daemon with three providers attests of it, and what it never does.

mod refunds;
mod reorgs;
mod replacements;
mod trading;
mod wallets;
mod withdrawals;

use std::time::Duration;

use bitcoin::{Amount, Transaction, Txid};
use devnet::{
    bitcoin::{
        Coin, FEE, Key, Kind, LocalChain, PROVIDERS, Spend, address, note, with_credentials,
    },
    claim,
    proxy::LyingProxy,
    world::Devnet,
};
use serde_json::Value;

use crate::support::{
    chain::{DEPOSITS, done, finalize, native, oracle},
    daemon::{Answer, Daemon},
};

/// What a user has, and what he deposits.
const COIN: Amount = Amount::from_sat(5_000_000);
const DEPOSIT: Amount = Amount::from_sat(1_234_567);
const ORDER: &str = "0x7777777777777777777777777777777777777777777777777777777777777777";

const POLL: Duration = Duration::from_millis(200);
/// How often an oracle is asked again that has yet to see a block.
const PATIENCE: usize = 100;

struct Fixture {
    world: Devnet,
    site: LocalChain,
    proxies: Vec<LyingProxy>,
    daemon: Daemon,
    user: Key,
}

impl Fixture {
    /// A daemon that signs what has `confirmations`, as three providers show it.
    async fn start(confirmations: u64) -> Self {
        Self::with(confirmations, Kind::P2wpkh).await
    }

    /// The same with a depository whose outputs are locked so.
    async fn with(confirmations: u64, kind: Kind) -> Self {
        let (world, site) = tokio::join!(Devnet::start(), LocalChain::start());
        let (world, mut site) = (world.unwrap(), site.unwrap());
        site.kind = kind;
        let mut proxies = Vec::new();
        for _ in 0..3 {
            proxies.push(LyingProxy::start(&site.node.url).await.unwrap());
        }
        let mut files = world.files();
        site.tell(&mut files, confirmations).unwrap();
        let urls: Vec<_> = proxies
            .iter()
            .map(|one| with_credentials(&one.url))
            .collect();
        let setup = oracle(&world, 0).chains(&files);
        Self {
            daemon: setup.with(PROVIDERS, urls.join(",")).start().await,
            user: Key::named("user").unwrap(),
            world,
            site,
            proxies,
        }
    }

    async fn coin(&self, kind: Kind) -> Coin {
        self.site.node.fund(self.user, kind, COIN).await.unwrap()
    }

    /// A deposit for [`ORDER`] that spends `coins`.
    fn spend(&self, coins: Vec<Coin>) -> Spend {
        let outputs = self.site.deposit(DEPOSIT, ORDER).unwrap();
        Spend::of(coins, outputs)
    }

    async fn send(&self, transaction: &Transaction) -> Txid {
        self.site.node.send(transaction).await.unwrap()
    }

    async fn mine(&self, blocks: u64) {
        self.site.node.mine(blocks).await.unwrap();
    }

    async fn ask(&self, transaction: Txid) -> Answer {
        self.daemon
            .attest(DEPOSITS, &LocalChain::claim(transaction))
            .await
    }

    /// What the oracle signs of a deposit, once it has seen the newest block.
    async fn signed(&self, transaction: Txid) -> Value {
        let mut answer = self.ask(transaction).await;
        for _ in 0..PATIENCE {
            if answer.status == 200 {
                break;
            }
            tokio::time::sleep(POLL).await;
            answer = self.ask(transaction).await;
        }
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.signed_by().len(), 1, "{}", answer.body);
        answer.json()
    }

    /// No signature is given for it; the refusal's code.
    async fn unsigned(&self, transaction: Txid) -> String {
        let answer = self.ask(transaction).await;
        assert_ne!(answer.status, 200, "{}", answer.body);
        assert!(answer.json()["execution"].is_null(), "{}", answer.body);
        answer.code()
    }

    async fn stop(self) {
        self.daemon.stop().await;
    }
}

/// The deposit of an answer, as the oracle describes it.
fn described(answer: &Value) -> &Value {
    let messages = answer["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1, "{answer}");
    &messages[0]["result"]
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_from_every_kind_of_script_is_attested_once_it_is_confirmed() {
    let fixture = Fixture::start(2).await;
    let depository = address(&fixture.site.script()).unwrap();
    for kind in Kind::ALL {
        let transaction = fixture
            .spend(vec![fixture.coin(kind).await])
            .sign()
            .unwrap();
        let id = fixture.send(&transaction).await;
        assert_eq!(
            fixture.unsigned(id).await,
            "TRANSACTION_MISSING",
            "{kind:?}"
        );
        fixture.mine(1).await;
        let early = fixture.unsigned(id).await;
        assert_eq!(early, "TRANSACTION_NOT_FINALIZED", "{kind:?}");
        fixture.mine(1).await;
        let answer = fixture.signed(id).await;
        let deposit = described(&answer);
        let depositor = address(&fixture.user.script(kind)).unwrap();
        assert_eq!(deposit["depositor"], depositor, "{kind:?}");
        assert_eq!(deposit["depository"], depository);
        assert_eq!(deposit["amount"], DEPOSIT.to_sat().to_string());
        assert_eq!(deposit["depositId"], ORDER);
        assert_eq!(
            deposit["onchainId"],
            LocalChain::onchain_id(id, 1).to_string()
        );
    }
    let asked = |proxy: &&LyingProxy| proxy.count("getrawtransaction") >= Kind::ALL.len();
    assert!(fixture.proxies.iter().filter(asked).count() >= 2);
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_of_all_kinds_make_one_deposit_of_whom_it_names() {
    let fixture = Fixture::start(1).await;
    let mut coins = Vec::new();
    for kind in Kind::ALL {
        coins.push(fixture.coin(kind).await);
    }
    let other = address(&Key::named("other").unwrap().script(Kind::P2tr)).unwrap();
    let mut spend = fixture.spend(coins);
    spend.outputs[1] = note(&format!("{ORDER}|depositor={other}|")).unwrap();
    let id = fixture.send(&spend.sign().unwrap()).await;
    fixture.mine(1).await;
    let answer = fixture.signed(id).await;
    let deposit = described(&answer);
    assert_eq!(deposit["depositor"], other);
    assert_eq!(deposit["depositId"], ORDER);
    fixture.stop().await;
}

/// Signed at a depth of one, gone with a reorg of two: what was given away cannot be taken back, so that an operator
/// has to look before this chain is signed for again. All others go on.
#[tokio::test(flavor = "multi_thread")]
async fn two_block_reorg_after_signing_halts_bitcoin_and_nothing_else() {
    let fixture = Fixture::start(1).await;
    let origin = &fixture.world.origin;
    let coins = [
        fixture.coin(Kind::P2wpkh).await,
        fixture.coin(Kind::P2tr).await,
    ];
    let [kept, lost] = coins.map(|coin| fixture.spend(vec![coin]).sign().unwrap());
    let kept = fixture.send(&kept).await;
    fixture.mine(3).await;
    fixture.signed(kept).await;
    let lost = fixture.send(&lost).await;
    fixture.mine(1).await;
    let before = fixture.signed(lost).await;
    fixture.mine(1).await;
    fixture.site.node.reorg(2).await.unwrap();
    assert_eq!(fixture.site.node.included(lost).await.unwrap(), None);
    let halted = async {
        while fixture.ask(kept).await.code() != "CHAIN_HALTED" {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let halted = tokio::time::timeout(Duration::from_secs(90), halted).await;
    assert!(halted.is_ok(), "the watcher did not look back");
    let sent = origin.deposit_native(&fixture.world.user, native(7).amount, Default::default());
    let elsewhere = claim::deposit(origin, done(sent.await).transaction_hash);
    finalize(&fixture.world, origin).await;
    let answer = fixture.daemon.attest(DEPOSITS, &elsewhere).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    // It waits, comes into another block, and is signed anew when an operator has looked.
    fixture.mine(1).await;
    assert_eq!(fixture.unsigned(lost).await, "CHAIN_HALTED");
    assert!(fixture.daemon.clear_halt(devnet::bitcoin::ID).await);
    let after = fixture.signed(lost).await;
    assert_eq!(described(&after)["amount"], described(&before)["amount"]);
    fixture.signed(kept).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_that_is_replaced_while_it_waits_is_never_attested() {
    let fixture = Fixture::start(1).await;
    let coin = fixture.coin(Kind::P2wpkh).await;
    let first = fixture.spend(vec![coin.clone()]);
    let waiting = fixture.send(&first.sign().unwrap()).await;
    assert_eq!(fixture.unsigned(waiting).await, "TRANSACTION_MISSING");
    // The same deposit for a higher fee, then the money back to the user for a still higher one.
    let bumped = Spend {
        fee: FEE * 3,
        ..first.clone()
    };
    let bumped = fixture.send(&bumped.sign().unwrap()).await;
    let back = Spend {
        fee: FEE * 9,
        ..Spend::of(vec![coin], vec![fixture.user.output(Kind::P2tr, DEPOSIT)])
    };
    let back = fixture.send(&back.sign().unwrap()).await;
    assert_eq!(fixture.site.node.waiting().await.unwrap(), [back]);
    for _ in 0..3 {
        fixture.mine(1).await;
        for gone in [waiting, bumped] {
            assert_eq!(fixture.unsigned(gone).await, "TRANSACTION_MISSING");
        }
        let answer = fixture.ask(back).await;
        assert!(answer.json()["execution"].is_null(), "{}", answer.body);
    }
    fixture.stop().await;
}

/// A miner takes the other of two transactions that spend one coin, and a reorg takes the first again.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_spends_of_one_coin_only_the_one_on_the_chain_is_attested() {
    let fixture = Fixture::start(2).await;
    let coin = fixture.coin(Kind::P2pkh).await;
    let deposit = fixture.spend(vec![coin.clone()]).sign().unwrap();
    let elsewhere = vec![fixture.user.output(Kind::P2wpkh, DEPOSIT)];
    let elsewhere = Spend::of(vec![coin], elsewhere).sign().unwrap();
    let id = fixture.send(&deposit).await;
    let node = &fixture.site.node;
    node.mine_only(&[&elsewhere]).await.unwrap();
    fixture.mine(1).await;
    assert_eq!(fixture.unsigned(id).await, "TRANSACTION_MISSING");
    node.reorg(2).await.unwrap();
    node.mine_only(&[&deposit]).await.unwrap();
    fixture.mine(1).await;
    let signed = fixture.signed(id).await;
    assert_eq!(described(&signed)["depositId"], ORDER);
    fixture.stop().await;
}

#[tokio::test]
async fn chain_ends_with_its_handle_and_leaves_no_files() {
    let node = LocalChain::start().await.unwrap().node;
    let (home, address) = (
        node.home.clone(),
        node.url.socket_addrs(|| None).unwrap()[0],
    );
    assert!(home.exists());
    drop(node);
    let gone = async {
        while home.exists() || tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(30), gone).await;
    assert!(gone.is_ok(), "the chain outlived its handle");
}
