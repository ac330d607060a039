//! Three providers, some of them liars: what is signed is what the honest majority shows, or
//! nothing, and who lied is on record.

use std::time::Duration;

use alloy::{
    primitives::{B256, Bytes, U256},
    sol_types::SolValue,
};
use devnet::{
    claim,
    proxy::{Call, Lie, LyingProxy, Rule, on, rules},
    world::{DevChain, Devnet, Withdrawal},
};
use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    chain::{
        DEPOSITS, Deal, FILLS, INITIATION, RECIPIENT, WITHDRAWALS, done, finalize, finalize_hub,
        fork, native, oracle, token,
    },
    daemon::{Answer, Daemon},
};

/// Proxies in front of one node, and a daemon that knows the chain only through them.
struct Watched {
    chain: String,
    proxies: Vec<LyingProxy>,
    daemon: Daemon,
}

impl Watched {
    /// `variable` (`ORIGIN`, `DESTINATION`, `RELAY`, `AURORA`) names the chain of `node`.
    async fn start(world: &Devnet, variable: &str, providers: usize) -> Self {
        log::keep();
        let node = match variable {
            "ORIGIN" => &world.origin.node,
            "DESTINATION" => &world.destination.node,
            _ => &world.hub.node,
        };
        let mut proxies = Vec::new();
        for _ in 0..providers {
            proxies.push(LyingProxy::start(&node.url).await.unwrap());
        }
        let urls: Vec<&str> = proxies.iter().map(|proxy| proxy.url.as_str()).collect();
        let daemon = oracle(world, 0)
            .with(&format!("{variable}_RPC_URL"), urls.join(","))
            .start()
            .await;
        Self {
            chain: variable.to_lowercase(),
            proxies,
            daemon,
        }
    }

    /// The first provider's lie is on record: counted by its position in the list, and named in one
    /// log line. The metrics are of the daemons of this test, the line is of this one.
    async fn disputed(&self) {
        let host = format!("127.0.0.1:{}", self.proxies[0].url.port().unwrap());
        let recorded = async {
            while !log::has_dispute(&self.chain, &host) {
                tokio::task::yield_now().await;
            }
        };
        let recorded = tokio::time::timeout(Duration::from_secs(5), recorded).await;
        assert!(recorded.is_ok(), "no line about {host} of {}", self.chain);
        let text = self.daemon.metrics().await;
        let of_chain = format!("chain=\"{}\"", self.chain);
        let counted = text.lines().any(|line| {
            line.starts_with("intentd_provider_disputes_total{")
                && line.contains(&of_chain)
                && line.contains("provider=\"1\"")
        });
        assert!(counted, "{text}");
        assert!(text.contains("intentd_provider_requests_total{"), "{text}");
        assert!(!text.contains("127.0.0.1"), "hosts may be private");
    }
}

/// The log lines of this process about disputes.
mod log {
    use std::{
        io,
        sync::{Mutex, Once},
    };

    const DISPUTED: &str = "provider disputed";

    static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    /// Gets a line at a time.
    struct Sink;

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Other tests of this process warn of much else.
            if String::from_utf8_lossy(bytes).contains(DISPUTED) {
                LINES.lock().unwrap().extend_from_slice(bytes);
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Keeps warnings from now on.
    pub fn keep() {
        static KEPT: Once = Once::new();
        KEPT.call_once(|| {
            let lines = tracing_subscriber::fmt().json().flatten_event(true);
            let lines = lines.with_max_level(tracing::Level::WARN);
            lines.with_writer(|| Sink).init();
        });
    }

    /// Whether one line names the chain and the provider of a dispute.
    pub fn has_dispute(chain: &str, provider: &str) -> bool {
        let lines = LINES.lock().unwrap();
        let mut lines = lines.split(|byte| *byte == b'\n');
        lines.any(|line| {
            let line: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            line["message"] == DISPUTED && line["chain"] == chain && line["provider"] == provider
        })
    }
}

/// A deposit on the origin, and the same transaction on another fork of that chain.
struct Fixture {
    world: Devnet,
    fork: DevChain,
    deposit: Value,
    honest: Answer,
}

impl Fixture {
    async fn start() -> Self {
        let world = Devnet::start().await.unwrap();
        let fork = fork(&world).await;
        let origin = &world.origin;
        let payload = origin.native_deposit(B256::ZERO).value(native(7).amount);
        let wire = origin.node.signed(&world.user, payload).await.unwrap();
        let transaction = done(origin.node.broadcast(&wire).await).transaction_hash;
        finalize(&world, origin).await;
        elsewhere(&world, &fork, &wire, transaction).await;
        let deposit = claim::deposit(origin, transaction);
        let daemon = oracle(&world, 0).start().await;
        let honest = daemon.attest(DEPOSITS, &deposit).await;
        assert_eq!(honest.status, 200, "{}", honest.body);
        daemon.stop().await;
        Self {
            world,
            fork,
            deposit,
            honest,
        }
    }
}

async fn elsewhere(world: &Devnet, fork: &DevChain, wire: &Bytes, transaction: B256) {
    let there = done(fork.node.broadcast(wire).await);
    assert_eq!(there.transaction_hash, transaction);
    let here = world.origin.node.receipt(transaction).await.unwrap();
    assert_ne!(here.unwrap().block_hash, there.block_hash);
    finalize(world, fork).await;
}

/// A lie, and whether those who hear it can know it from an accident.
struct NamedLie {
    name: &'static str,
    rule: Rule,
    disputed: bool,
}

fn named_lie(name: &'static str, rule: Rule, disputed: bool) -> NamedLie {
    NamedLie {
        name,
        rule,
        disputed,
    }
}

fn truncated() -> Lie {
    Lie::Answer(
        StatusCode::OK,
        HeaderMap::new(),
        r#"[{"jsonrpc":"2.0","#.into(),
    )
}

async fn lies(fixture: &Fixture) -> Vec<NamedLie> {
    // Final from one block less, too: the agreed head may be the slowest provider's.
    fixture.world.origin.node.mine(1, 1).await.unwrap();
    let tip = fixture.world.origin.node.tip().await.unwrap().number;
    let more = format!("{:064x}", 8);
    let amount = rules::receipts(move |receipt| {
        let data = receipt["logs"][0]["data"].as_str().unwrap();
        receipt["logs"][0]["data"] = json!(format!("{}{more}{}", &data[..66], &data[130..]));
    });
    let other = &fixture.fork.node.url;
    vec![
        named_lie("forged log", rules::forge_log(json!({})), true),
        named_lie("forged amount", amount, true),
        named_lie("dropped log", rules::drop_log(0), true),
        named_lie(
            "wrong status",
            rules::receipt_field("/status", json!("0x0")),
            true,
        ),
        named_lie(
            "wrong emitter",
            rules::receipt_field("/logs/0/address", json!(RECIPIENT)),
            true,
        ),
        named_lie("another fork", rules::other_fork(other), true),
        named_lie("another chain", rules::chain_id(1), true),
        named_lie("one block behind", rules::stale_tip(tip - 1), false),
        named_lie("far behind", rules::stale_tip(2), false),
        named_lie("truncated", rules::always(truncated()), false),
        named_lie("hanging", rules::always(Lie::Hang), false),
        named_lie("gone", rules::always(Lie::Drop), false),
        named_lie("busy", rules::too_many_requests("30"), false),
    ]
}

/// Strangers use up what strangers may ask: neither keys nor whoever looks at the chains' health has less.
#[tokio::test(flavor = "multi_thread")]
async fn what_strangers_ask_says_nothing_of_a_chains_health_and_takes_nothing_from_keys() {
    let world = Devnet::start().await.unwrap();
    let daemon = oracle(&world, 0)
        .solver(&world.solver, "destination")
        .with("QUOTE_CALLS_PER_SECOND", "2");
    let daemon = daemon.start().await;
    let key = daemon.integrator("app").await;
    let client = reqwest::Client::new();
    let base = daemon.integrator_url();
    let get = async |target: String, key: &str| {
        let request = client.get(format!("{base}{target}"));
        let request = match key {
            "" => request,
            key => request.header("x-api-key", key),
        };
        let answer = request.send().await.unwrap();
        (
            answer.status().as_u16(),
            answer.json::<Value>().await.unwrap(),
        )
    };
    let healthy = async || get("/chains/health".into(), "").await.1["healthy"] == true;
    for _ in 0..100 {
        if healthy().await {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let balance = |user: usize| {
        format!("/config/v2?originChainId=31001&destinationChainId=31002&user=0x{user:040x}")
    };
    let mut refused = 0;
    for user in 1..=30 {
        refused += usize::from(get(balance(user), "").await.0 == 503);
        assert!(healthy().await, "after {user}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(refused > 0, "no stranger was refused");
    // What has come back meanwhile is used up first.
    let mut user = 31;
    while get(balance(user), "").await.0 != 503 {
        user += 1;
        assert!(user < 100, "strangers always have some left");
    }
    // Whatever strangers were told of the same account.
    let (status, body) = get(balance(user), &key).await;
    assert_eq!(
        (status, &body["user"]["balance"]),
        (200, &json!("0")),
        "{body}"
    );
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_liar_among_three_changes_nothing_and_is_on_record() {
    let fixture = Fixture::start().await;
    for lie in lies(&fixture).await {
        let watched = Watched::start(&fixture.world, "ORIGIN", 3).await;
        watched.proxies[0].lie(lie.rule);
        for _ in 0..2 {
            let answer = watched.daemon.attest(DEPOSITS, &fixture.deposit).await;
            assert_eq!(answer.status, 200, "{}: {}", lie.name, answer.body);
            assert_eq!(answer.body, fixture.honest.body, "{}", lie.name);
        }
        if lie.disputed {
            watched.disputed().await;
        }
        drop(watched.proxies);
        watched.daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn liar_who_is_half_of_two_stops_everything() {
    let fixture = Fixture::start().await;
    for lie in lies(&fixture).await.into_iter().filter(|lie| lie.disputed) {
        let watched = Watched::start(&fixture.world, "ORIGIN", 2).await;
        watched.proxies[0].lie(lie.rule);
        let answer = watched.daemon.attest(DEPOSITS, &fixture.deposit).await;
        assert_eq!(answer.status, 503, "{}: {}", lie.name, answer.body);
        assert_eq!(answer.code(), "QUORUM_UNAVAILABLE", "{}", lie.name);
        // Nobody is ruined by it: with the truth comes the signature.
        watched.proxies[0].honest();
        let answer = watched.daemon.attest(DEPOSITS, &fixture.deposit).await;
        assert_eq!(answer.body, fixture.honest.body, "{}", lie.name);
        watched.daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lie_that_begins_later_is_found_as_well() {
    let fixture = Fixture::start().await;
    let watched = Watched::start(&fixture.world, "ORIGIN", 3).await;
    watched.proxies[0].lie(rules::after(1, rules::drop_log(0)));
    for _ in 0..3 {
        let answer = watched.daemon.attest(DEPOSITS, &fixture.deposit).await;
        assert_eq!(answer.body, fixture.honest.body);
    }
    watched.disputed().await;
    // Set aside for the lie, the provider has no vote: one more that is lost, and nobody signs.
    watched.proxies[0].honest();
    watched.proxies[1].lie(rules::always(Lie::Drop));
    let fresh =
        fixture
            .world
            .origin
            .deposit_native(&fixture.world.user, native(3).amount, B256::ZERO);
    let transaction = done(fresh.await).transaction_hash;
    finalize(&fixture.world, &fixture.world.origin).await;
    let body = claim::deposit(&fixture.world.origin, transaction);
    let answer = watched.daemon.attest(DEPOSITS, &body).await;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(answer.code(), "QUORUM_UNAVAILABLE");
    watched.proxies[1].honest();
    let answer = watched.daemon.attest(DEPOSITS, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    watched.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_of_three_lost_is_no_quorum() {
    let fixture = Fixture::start().await;
    for fate in [Lie::Drop, truncated()] {
        let watched = Watched::start(&fixture.world, "ORIGIN", 3).await;
        for proxy in &watched.proxies[..2] {
            proxy.lie(rules::always(fate.clone()));
        }
        let answer = watched.daemon.attest(DEPOSITS, &fixture.deposit).await;
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert_eq!(answer.code(), "QUORUM_UNAVAILABLE");
        let text = watched.daemon.metrics().await;
        assert!(text.contains("intentd_quorum_failures_total{chain=\"origin\"}"));
        let ready = watched.daemon.ops("/readyz").await;
        assert_eq!(ready.status, 503, "{}", ready.body);
        watched.proxies[0].honest();
        let answer = watched.daemon.attest(DEPOSITS, &fixture.deposit).await;
        assert_eq!(answer.body, fixture.honest.body);
        watched.daemon.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_payment_fills_nothing() {
    let world = Devnet::start().await.unwrap();
    let usd = world.destination.token;
    let deal = Deal::new(&world, native(1_000), token(usd, 900), 1).await;
    let deposits = [deal.deposit().await];
    // The solver pays one, and has a provider that says it were all of it.
    let (solver, id) = (&world.solver, deal.order.id);
    let site = &world.destination;
    let short = site.pay_erc20(solver, token(usd, 1), RECIPIENT, id);
    let paid = done(short.await).transaction_hash;
    finalize(&world, site).await;
    let body = claim::fill(&deal.order, &deposits, paid);
    let forged = || {
        let amount = json!(format!("0x{:064x}", 900));
        rules::receipt_field("/logs/0/data", amount)
    };
    for (providers, status, code) in [
        (3, 400, "FILL_INSUFFICIENT"),
        (2, 503, "QUORUM_UNAVAILABLE"),
    ] {
        let watched = Watched::start(&world, "DESTINATION", providers).await;
        watched.proxies[0].lie(forged());
        let answer = watched.daemon.attest(FILLS, &body).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_eq!(answer.code(), code);
        watched.disputed().await;
        watched.daemon.stop().await;
    }
}

/// Contract calls answer this word.
fn answers(word: u64) -> Rule {
    let word = json!(format!("0x{word:064x}"));
    devnet::proxy::on("eth_call", move |_| Lie::Result(word.clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_record_of_the_allocator_ends_no_withdrawal() {
    let world = Devnet::start().await.unwrap();
    finalize(&world, &world.origin).await;
    finalize_hub(&world).await;
    // It has been expired for ever, and the allocator knows nothing of it.
    let withdrawal = Withdrawal {
        site: &world.origin,
        money: native(600),
        owner: &world.solver,
        owner_chain: world.destination.id,
        recipient: RECIPIENT,
        nonce: U256::from(1),
        expiration: U256::from(1),
    };
    let body = withdrawal.status(None);
    let payload: Bytes = body["withdrawal"].as_str().unwrap().parse().unwrap();
    let forged = json!(Bytes::from(payload.abi_encode()));
    for (providers, status) in [(3, 200), (2, 503)] {
        let watched = Watched::start(&world, "AURORA", providers).await;
        let forged = forged.clone();
        let lie = devnet::proxy::on("eth_call", move |_| Lie::Result(forged.clone()));
        watched.proxies[0].lie(lie);
        let answer = watched.daemon.attest(WITHDRAWALS, &body).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.json()["execution"].is_null(), "{}", answer.body);
        watched.disputed().await;
        watched.daemon.stop().await;
    }
    // Where one decides, it is believed: that is what the others are for.
    let watched = Watched::start(&world, "AURORA", 1).await;
    let lie = devnet::proxy::on("eth_call", move |_| Lie::Result(forged.clone()));
    watched.proxies[0].lie(lie);
    let answer = watched.daemon.attest(WITHDRAWALS, &body).await;
    assert_eq!(answer.json()["message"]["result"]["status"], 2);
    watched.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_state_ends_no_withdrawal_and_finds_no_balance() {
    let world = Devnet::start().await.unwrap();
    let hour = world.origin.node.tip().await.unwrap().time + 3_600;
    let withdrawal = Withdrawal {
        site: &world.origin,
        money: native(600),
        owner: &world.solver,
        owner_chain: world.destination.id,
        recipient: RECIPIENT,
        nonce: U256::from(1),
        expiration: U256::from(hour),
    };
    world.allocate(&withdrawal).await.unwrap();
    finalize_hub(&world).await;
    let watched = Watched::start(&world, "ORIGIN", 3).await;
    watched.proxies[0].lie(answers(1));
    let body = withdrawal.status(None);
    let answer = watched.daemon.attest(WITHDRAWALS, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["message"]["result"]["status"], 0);
    assert!(answer.json()["execution"].is_null());
    watched.disputed().await;
    watched.daemon.stop().await;

    let body = withdrawal.initiation().unwrap();
    for (providers, status, code) in [
        (3, 400, "BALANCE_INSUFFICIENT"),
        (2, 503, "QUORUM_UNAVAILABLE"),
    ] {
        let watched = Watched::start(&world, "RELAY", providers).await;
        // Of the balance only: the oracle contract's word for its hub is asked for first.
        watched.proxies[0].lie(rules::after(1, answers(1_000_000)));
        let answer = watched.daemon.attest(INITIATION, &body).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_eq!(answer.code(), code);
        watched.disputed().await;
        watched.daemon.stop().await;
    }
}

/// Equal claims that are under way at the same time cost what one costs.
#[tokio::test]
async fn equal_claims_in_flight_share_one_reading() {
    const RECEIPT: &str = "eth_getTransactionReceipt";
    let fixture = Fixture::start().await;
    let watched = Watched::start(&fixture.world, "ORIGIN", 2).await;
    for proxy in &watched.proxies {
        let late = |_: &Call<'_>| Lie::Delay(Duration::from_millis(2_500));
        proxy.lie(on(RECEIPT, late));
    }
    let attest = |_| watched.daemon.attest(DEPOSITS, &fixture.deposit);
    let answers = futures::future::join_all((0..32).map(attest)).await;
    for answer in answers {
        assert_eq!(
            (answer.status, &answer.body),
            (StatusCode::OK, &fixture.honest.body)
        );
    }
    for proxy in &watched.proxies {
        assert_eq!(proxy.count(RECEIPT), 1);
    }
    let again = watched.daemon.attest(DEPOSITS, &fixture.deposit).await;
    assert_eq!(again.status, 200, "{}", again.body);
    for proxy in &watched.proxies {
        assert_eq!(proxy.count(RECEIPT), 2, "what was answered is read again");
    }
}
