//! The daemon is killed at random points between quote, deposit and fill, and started again over the
//! same directory. Every deposit is filled once or given back once, every acknowledged quote is
//! known, and the solver's balances add up to the last wei.

mod deal;
mod ledger;
mod moment;

use std::{
    collections::HashSet,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    time::Duration,
};

use alloy::primitives::U256;
use devnet::{
    proxy::LyingProxy,
    world::{Devnet, Options},
};
use futures::future::join_all;
use intentd::{
    request::tx_details::included,
    store::{
        Key, Making, Range, Store, check,
        pair::{Directories, Pair},
        rows::{
            ATTEMPT, CLAIM, FACTS, LANE, OPEN, RESERVATION, RESOURCE, WITNESS,
            claim::{Claim, Stage},
            facts,
            tx_details::{Either, either},
        },
    },
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{task::JoinSet, time::timeout};

use self::{
    deal::{Deal, Kind},
    moment::Moment,
};
use super::{
    Dice, another_round, crashes,
    victim::{Urls, Victim, terminate},
};
use crate::support::{self, chain::oracle, daemon::Setup};

/// New orders in each life.
const ORDERS: usize = 4;
/// Blocks come this often, which makes an order's whole way take some two seconds.
const BLOCK: Duration = Duration::from_millis(200);
/// How long the last life may take to finish what all others began.
const PATIENCE: Duration = Duration::from_secs(120);
/// Callers without a key may ask 300 times a minute: each so often another one asks.
const ASKED: usize = 100;
/// What is not told yet is asked for so often.
const ASKED_AGAIN: Duration = Duration::from_secs(1);

struct Fixture {
    world: Arc<Devnet>,
    proxies: [LyingProxy; 2],
    directory: TempDir,
    setup: Setup,
    deals: Vec<Arc<Deal>>,
    /// Deposits that their users still have to make.
    users: JoinSet<()>,
    /// Where the daemon of now answers; users may find nobody there.
    urls: Arc<Mutex<Option<Urls>>>,
}

impl Fixture {
    async fn start() -> Self {
        let options = Options {
            finality_blocks: 1,
            ..Options::default()
        };
        let world = Arc::new(Devnet::with(options).await.unwrap());
        let origin = LyingProxy::start(&world.origin.node.url).await.unwrap();
        let destination = LyingProxy::start(&world.destination.node.url).await;
        let destination = destination.unwrap();
        let setup = oracle(&world, 0)
            .solver(&world.solver, "destination")
            // Users deposit late here, and chains' clocks run ahead: prices are not what is tested.
            .with("QUOTE_VALIDITY", "3600")
            .with("ORIGIN_RPC_URL", origin.url.as_str())
            .with("DESTINATION_RPC_URL", destination.url.as_str());
        for site in [&world.origin, &world.destination] {
            site.node.automine(false).await.unwrap();
        }
        Self {
            world,
            proxies: [origin, destination],
            directory: TempDir::new().unwrap(),
            setup,
            deals: Vec::new(),
            users: JoinSet::new(),
            urls: Arc::default(),
        }
    }

    /// One life of the daemon, which ends at `moment` with new orders on their way; whether it died
    /// over a call.
    async fn live(&mut self, round: u64, moment: Moment, dice: &Dice) -> bool {
        let mut victim = Victim::spawn(&self.setup, self.directory.path());
        let trap = moment.arm(victim.pid(), &self.proxies);
        let before: Vec<_> = self.deals.iter().rev().take(ORDERS).cloned().collect();
        let round = usize::try_from(round).unwrap();
        let plans: Vec<_> = (0..ORDERS)
            .map(|n| Deal::plan(round * ORDERS + n, dice))
            .collect();
        let urls = self.urls.clone();
        let world = self.world.clone();
        let asked = async {
            let Ok(heard) = victim.listening(true).await else {
                return Vec::new();
            };
            *urls.lock().unwrap() = Some(heard.clone());
            let client = client(round);
            join_all(before.iter().map(|deal| known(&client, &heard, deal))).await;
            let quotes = plans.iter().map(|plan| plan.quote(&world, &client, &heard));
            join_all(quotes).await
        };
        let (quoted, over_a_call) = tokio::join!(asked, trap.strike());
        victim.killed().await;
        for proxy in &self.proxies {
            proxy.honest();
        }
        for deal in quoted.into_iter().flatten().map(Arc::new) {
            self.deals.push(deal.clone());
            let (world, urls) = (self.world.clone(), self.urls.clone());
            self.users
                .spawn(async move { deal.deposit(&world, &urls).await });
        }
        over_a_call
    }

    /// The last life: it is let live until everything is done.
    async fn finish(&mut self) {
        let mut victim = Victim::spawn(&self.setup, self.directory.path());
        let heard = victim.listening(true).await;
        let heard = heard.unwrap_or_else(|log| panic!("it did not start: {log:#?}"));
        *self.urls.lock().unwrap() = Some(heard.clone());
        while let Some(user) = self.users.join_next().await {
            user.unwrap();
        }
        let settled = timeout(PATIENCE, self.settled(&heard)).await;
        for (page, deals) in self.deals.chunks(ASKED).enumerate() {
            let client = client(page);
            for deal in deals {
                let told = known(&client, &heard, deal).await.unwrap();
                let wanted = deal.plan.kind.outcome();
                assert_eq!(told["status"], wanted, "{:?}: {told}", deal.plan);
            }
        }
        assert!(settled.is_ok(), "open work is left after {PATIENCE:?}");
        self.check_liquidity(&heard).await;
        terminate(victim.pid());
        assert!(victim.ended().await.success());
    }

    /// Waits until all are paid and the solver has nothing left to do.
    async fn settled(&self, heard: &Urls) {
        let mut blocks = tokio::time::interval(BLOCK);
        for deal in &self.deals {
            while !deal.is_paid(&self.world).await {
                blocks.tick().await;
            }
        }
        // What is paid is told when it is final, and the metric of open requests is from the last round.
        for (page, deals) in self.deals.chunks(ASKED).enumerate() {
            let client = client(1_000 + page);
            for deal in deals {
                while known(&client, heard, deal).await.unwrap()["status"]
                    != deal.plan.kind.outcome()
                {
                    tokio::time::sleep(ASKED_AGAIN).await;
                }
            }
        }
        loop {
            let metrics = reqwest::get(format!("{}/metrics", heard.ops)).await;
            let metrics = metrics.unwrap().text().await.unwrap();
            if metrics
                .lines()
                .any(|line| line == "intentd_solver_open_requests 0")
            {
                return;
            }
            blocks.tick().await;
        }
    }

    /// What the solver says it can spend is what it has: nothing is reserved for what is over.
    async fn check_liquidity(&self, heard: &Urls) {
        for site in [&self.world.origin, &self.world.destination] {
            let url = format!(
                "{}/chains/liquidity?chainId={}",
                heard.integrator, site.node.chain_id
            );
            let told: Value = client(9_999)
                .get(url)
                .send()
                .await
                .unwrap()
                .json()
                .await
                .unwrap();
            let solver = self.world.solver.address();
            let native = site.node.balance(solver).await.unwrap();
            let token = site.token_balance(site.token, solver).await.unwrap();
            let told = |at: usize| -> U256 {
                let balance = told["liquidity"][at]["balance"].as_str();
                balance.unwrap().parse().unwrap()
            };
            assert!(support::is_gas_of_fifty(native - told(0)), "{}", site.id);
            assert_eq!(told(1), token, "{}", site.id);
        }
    }

    /// What the store holds once everything is over.
    async fn check_rows(&self) {
        let directories = Directories::new(self.directory.path().join("data"), None);
        let store = Pair::open(&directories, Making::Refused).unwrap();
        let report = check::check(&store).await.unwrap();
        assert_eq!(report.defects, 0, "{report}");
        let scan = async |kind| {
            let range = Range {
                kind,
                prefix: Vec::new(),
                after: None,
                limit: usize::MAX,
                reverse: false,
            };
            store.scan(range).await.unwrap()
        };
        assert!(scan(OPEN).await.is_empty());
        assert!(scan(RESERVATION).await.is_empty());
        // A lane's own row; no nonce is held.
        assert_eq!(scan(LANE).await.len(), 2);
        assert!(scan(ATTEMPT).await.is_empty());
        assert!(scan(RESOURCE).await.is_empty());
        let claims = scan(CLAIM).await;
        let paid = self
            .deals
            .iter()
            .filter(|deal| deal.plan.kind != Kind::Unpaid);
        assert_eq!(claims.len(), paid.count());
        for (_, claim) in claims {
            let claim = Claim::decode(&claim).unwrap();
            let done = |leg: &&intentd::store::rows::claim::Leg| leg.stage == Stage::Final;
            assert_eq!(claim.legs.iter().filter(done).count(), 1, "{claim:?}");
        }
        check_witnesses(&scan(FACTS).await, &scan(WITNESS).await);
        store.close().await;
    }
}

/// Demands that every transaction in a block has been seen there, or is looked for still: the last ones
/// came just before the end.
fn check_witnesses(facts: &[(Key, Vec<u8>)], tx_details: &[(Key, Vec<u8>)]) {
    let rows = tx_details.iter().map(|(key, value)| either(key, value));
    let (mut known, mut seen) = (HashSet::new(), 0);
    for row in rows {
        known.insert(match row.unwrap() {
            Either::Wanted(row) => (row.network, row.transaction, row.wanted.block),
            Either::Seen {
                network,
                transaction,
                tx_details,
            } => {
                seen += 1;
                (network, transaction, tx_details.place.hash)
            }
        });
    }
    let mut all = HashSet::new();
    for (_, value) in facts {
        let facts = facts::decode(value).unwrap();
        all.extend(included(&facts).map(|one| {
            let transaction = one.transaction.to_lowercase();
            (one.network.to_owned(), transaction, one.block)
        }));
    }
    assert!(all.is_subset(&known), "{:?}", all.difference(&known));
    assert!(seen > 0, "none of {} was seen", all.len());
}

/// A caller from an address of its own.
fn client(number: usize) -> reqwest::Client {
    let [.., high, low] = number.to_be_bytes();
    let address = Ipv4Addr::new(127, 1, high, low);
    let client = reqwest::Client::builder().local_address(Some(address.into()));
    client.build().unwrap()
}

/// The status of an acknowledged quote; `None` when the daemon died over it.
async fn known(client: &reqwest::Client, heard: &Urls, deal: &Deal) -> Option<Value> {
    let url = format!(
        "{}/intents/status/v3?requestId={}",
        heard.integrator, deal.request
    );
    let answer = client.get(url).send().await.ok()?;
    let status = answer.status();
    let told: Value = answer.json().await.ok()?;
    assert_eq!(status, 200, "{:?} is forgotten: {told}", deal.plan);
    Some(told)
}

/// Blocks on both chains, whatever happens.
async fn mine(world: Arc<Devnet>) {
    let mut blocks = tokio::time::interval(BLOCK);
    loop {
        blocks.tick().await;
        for site in [&world.origin, &world.destination] {
            site.node.mine(1, 1).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_deposit_is_filled_or_given_back_exactly_once_however_often_the_daemon_dies() {
    let dice = Dice::new();
    let mut fixture = Fixture::start().await;
    let ledger = ledger::Ledger::open(&fixture.world).await;
    let mut background = JoinSet::new();
    background.spawn(mine(fixture.world.clone()));
    // Half of the moments are calls, some of which never come; others come before anything is quoted.
    let fewest = crashes() / 10 + 1;
    let quoted = |fixture: &Fixture| u64::try_from(fixture.deals.len() / ORDERS).unwrap();
    let (mut rounds, mut over_calls) = (0, 0);
    while another_round(rounds, quoted(&fixture).min(over_calls), fewest) {
        let moment = Moment::choose(&dice);
        over_calls += u64::from(fixture.live(rounds, moment, &dice).await);
        rounds += 1;
    }
    let quotes = fixture.deals.len();
    assert!(
        quoted(&fixture) >= fewest,
        "only {quotes} quotes in {rounds} lives"
    );
    fixture.finish().await;
    background.shutdown().await;
    fixture.check_rows().await;
    ledger.balance(&fixture.world, &fixture.deals).await;
    let paid = fixture
        .deals
        .iter()
        .filter(|deal| deal.plan.kind != Kind::Unpaid);
    assert!(
        over_calls >= fewest,
        "{over_calls} of {rounds} died over a call"
    );
    println!(
        "{rounds} kills, {over_calls} of them over a call: {} quotes, {} deposits, each paid once",
        fixture.deals.len(),
        paid.count()
    );
}
