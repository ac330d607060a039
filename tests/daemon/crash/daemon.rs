//! The whole daemon, killed with SIGKILL while it answers, over and over in one directory. What it
//! ever said stands, and it never says another thing.

use std::{collections::HashMap, path::Path};

use alloy::primitives::B256;
use devnet::{claim, world::Devnet};
use futures::stream::{self, FuturesUnordered, StreamExt};
use intentd::store::{
    Making, Store, check,
    pair::{Directories, Pair},
};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    Dice, another_round, crashes,
    victim::{Victim, kill},
};
use crate::support::{
    chain::{DEPOSITS, Deal, FILLS, REFUNDS, native, oracle},
    daemon::Setup,
};

/// Orders of a round, each with a deposit, a fill and a refund to ask about.
const ORDERS: u64 = 5;
/// How often each thing is asked at the same time.
const TIMES: usize = 2;

/// Something to ask. The fill and the refund of one order cannot both be true.
struct Claim {
    route: &'static str,
    body: Value,
    order: Option<B256>,
}

/// What was ever answered.
#[derive(Default)]
struct Ledger {
    /// By the claim's body: execution and signatures.
    said: HashMap<String, Value>,
    /// How an order ended.
    ended: HashMap<B256, &'static str>,
}

impl Ledger {
    /// Whether the answer is a signature.
    fn record(&mut self, claim: &Claim, status: u16, answer: &Value) -> bool {
        if (status, claim.order.is_some()) == (409, true) {
            let key = claim.body.to_string();
            assert!(!self.said.contains_key(&key), "taken back: {answer}");
            return false;
        }
        assert_eq!(status, 200, "{answer}");
        let execution = &answer["execution"];
        assert!(execution.is_object(), "{answer}");
        let said = self.said.entry(claim.body.to_string());
        assert_eq!(said.or_insert_with(|| execution.clone()), execution);
        if let Some(order) = claim.order {
            let ended = self.ended.entry(order).or_insert(claim.route);
            assert_eq!(*ended, claim.route, "filled and refunded: {answer}");
        }
        true
    }
}

/// A daemon that is asked.
struct Asked {
    victim: Victim,
    url: String,
    client: reqwest::Client,
}

impl Asked {
    async fn start(setup: &Setup, directory: &Path) -> Self {
        let mut victim = Victim::spawn(setup, directory);
        let urls = victim.listening(false).await;
        let urls = urls.unwrap_or_else(|log| panic!("it did not start: {log:#?}"));
        Self {
            victim,
            url: urls.oracle,
            client: reqwest::Client::new(),
        }
    }

    /// `None` when it died before the answer was whole.
    async fn ask(&self, claim: &Claim) -> Option<(u16, Value)> {
        let request = self.client.post(format!("{}{}", self.url, claim.route));
        let response = request.json(&claim.body).send().await.ok()?;
        let status = response.status().as_u16();
        Some((status, response.json().await.ok()?))
    }

    /// Asks everything at once and kills it after some answers; returns how many came.
    async fn die_over(mut self, claims: &[Claim], ledger: &mut Ledger, dice: &Dice) -> usize {
        let kill_at = dice.below(claims.len() * TIMES);
        let mut killed = kill_at == 0;
        let mut answered = 0;
        let pid = self.victim.pid();
        let this = &self;
        let mut open: FuturesUnordered<_> = (0..TIMES)
            .flat_map(|_| claims)
            .map(|claim| async move { (claim, this.ask(claim).await) })
            .collect();
        if killed {
            // The requests are on their way, nothing has come back.
            let _ = futures::poll!(open.next());
            kill(pid);
        }
        while let Some((claim, answer)) = open.next().await {
            let Some((status, answer)) = answer else {
                assert!(killed, "it died by itself");
                continue;
            };
            ledger.record(claim, status, &answer);
            answered += 1;
            if !killed && answered >= kill_at {
                kill(pid);
                killed = true;
            }
        }
        drop(open);
        self.victim.killed().await;
        answered
    }

    /// Asks everything again: each order has ended one way, as it was said if it was said.
    async fn check(&self, claims: &[Claim], ledger: &mut Ledger) {
        let asked = stream::iter(claims)
            .map(|claim| async move { (claim, self.ask(claim).await.unwrap()) })
            .buffer_unordered(16)
            .collect::<Vec<_>>();
        let mut signed = 0;
        for (claim, (status, answer)) in asked.await {
            signed += usize::from(ledger.record(claim, status, &answer));
        }
        let conflicts = claims.iter().filter(|claim| claim.route == REFUNDS).count();
        assert_eq!(signed, claims.len() - conflicts);
    }
}

/// What a kill left: the journal and the store still belong together, and neither has a defect.
async fn is_intact(directory: &Path) {
    let directories = Directories::new(directory.join("data"), None);
    let both = Pair::open(&directories, Making::Refused).unwrap();
    let report = check::check(&both).await.unwrap();
    assert_eq!(report.defects, 0, "{report}");
    both.close().await;
}

async fn claims(world: &Devnet, round: u64) -> Vec<Claim> {
    let mut claims = Vec::new();
    for number in 0..ORDERS {
        let deal = Deal::new(world, native(1_000), native(900), round * ORDERS + number).await;
        let deposits = [deal.deposit().await];
        let order = Some(deal.order.id);
        let fill = claim::fill(&deal.order, &deposits, deal.fill().await);
        let refund = claim::refund(&deal.order, &deposits, &[deal.refund().await]);
        let deposit = claim::deposit(&world.origin, deposits[0].transaction);
        for (route, body, order) in [
            (DEPOSITS, deposit, None),
            (FILLS, fill, order),
            (REFUNDS, refund, order),
        ] {
            claims.push(Claim { route, body, order });
        }
    }
    claims
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_daemon_said_stands_and_nothing_else_is_ever_said() {
    let world = Devnet::start().await.unwrap();
    let directory = TempDir::new().unwrap();
    let setup = oracle(&world, 0);
    let dice = Dice::new();
    let mut ledger = Ledger::default();
    let (mut all, mut answered, mut cut) = (Vec::new(), 0, 0);
    // Fewer kills amid work would try nothing.
    let fewest = crashes() / 4 + 1;
    let mut rounds = 0;
    let mut daemon = Asked::start(&setup, directory.path()).await;
    while another_round(rounds, cut, fewest) {
        let claims = claims(&world, rounds).await;
        let some = daemon.die_over(&claims, &mut ledger, &dice).await;
        (answered, cut) = (
            answered + some,
            cut + u64::from(some < claims.len() * TIMES),
        );
        is_intact(directory.path()).await;
        daemon = Asked::start(&setup, directory.path()).await;
        daemon.check(&claims, &mut ledger).await;
        all.extend(claims);
        rounds += 1;
    }
    daemon.check(&all, &mut ledger).await;
    assert!(cut >= fewest, "{cut} of {rounds} kills were amid work");
    assert!(answered > 0, "every kill came before the first answer");
    println!(
        "{rounds} kills, {cut} amid work: {answered} answers before them, {} statements in the end",
        ledger.said.len()
    );
}
