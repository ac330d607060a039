use std::{os::unix::fs::PermissionsExt, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use vm::{B256, Block, ChainId, TxRef};

use super::{
    integrators::{IntegratorAdmin, Order, Outcome, Proof},
    *,
};
use crate::{
    attest::{
        journal::Journal,
        statement::{Mode, Statement},
    },
    index,
    integrator::{
        Integrator, Scope, Tier, Webhook,
        change::{HookChange, usual_scopes},
        header,
    },
    sign::raw::RawKey,
    solver::settle::outcome_claim::OutcomeClaims,
    store::{
        Batch, Store,
        integrators::Integrators,
        memory::MemoryStore,
        requests::Requests,
        rows::cursor::{self, Cursor, Mark},
    },
};

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

struct Running {
    directory: tempfile::TempDir,
    store: Arc<MemoryStore>,
    journal: Arc<Journal>,
    integrators: Integrators,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

/// Unix milliseconds of every answer.
const NOW: u64 = 1_700_000_000_000;

async fn running() -> Running {
    let directory = tempfile::tempdir().unwrap();
    let signer = Arc::new(RawKey::parse(KEY).unwrap());
    let store = Arc::new(MemoryStore::new());
    let journal = Arc::new(Journal::new(store.clone(), signer));
    let requests = Requests::new(store.clone());
    let bells = [("base".to_owned(), Arc::default())].into();
    let claims = OutcomeClaims {
        requests: requests.clone(),
        keys: None,
    };
    let index = index::admin::AdminHandle::new(requests, bells, Arc::default());
    let integrators = Integrators::open(store.clone()).await.unwrap();
    let integrator_admin = IntegratorAdmin {
        integrators: integrators.clone(),
        service: Some("intentd test".into()),
        plain: false,
        clock: || NOW,
    };
    let handles = Handles {
        journal: journal.clone(),
        integrator_admin,
        claims,
        webhooks: None,
        accounts: Vec::new(),
        solver: None,
        index: Some(index),
    };
    let shutdown = CancellationToken::new();
    let admin = Admin::bind(directory.path()).unwrap();
    let task = tokio::spawn(admin.serve(handles, shutdown.clone()));
    Running {
        directory,
        store,
        journal,
        integrators,
        shutdown,
        task,
    }
}

impl Running {
    async fn ask(&self, question: &Question) -> Result<Answer, AskError> {
        ask(self.directory.path(), question).await
    }

    async fn order(&self, order: Order) -> Result<Outcome, String> {
        let answer = self.ask(&Question::Integrators(order)).await;
        match answer.map_err(|error| error.to_string())? {
            Answer::Integrators(outcome) => Ok(outcome),
            other => panic!("{other:?}"),
        }
    }

    /// The text of a new integrator's key.
    async fn add(&self, label: &str) -> Result<String, String> {
        let order = Order::Add {
            label: label.into(),
            scopes: usual_scopes(),
            tier: Tier::Default,
        };
        match self.order(order).await? {
            Outcome::Key { key } => Ok(key.expose().to_owned()),
            other => panic!("{other:?}"),
        }
    }

    fn app(&self) -> Integrator {
        Integrator::clone(&self.integrators.all()["app"])
    }

    async fn raw(&self, bytes: &[u8]) -> String {
        let socket = path(self.directory.path());
        let mut stream = UnixStream::connect(socket).await.unwrap();
        // The daemon may have stopped reading.
        let _cut = stream.write_all(bytes).await;
        let _cut = stream.shutdown().await;
        let mut answer = Vec::new();
        let _cut = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    }
}

fn base() -> ChainId {
    ChainId::new("base")
}

#[tokio::test]
async fn halts_are_listed_and_cleared_once() {
    let running = running().await;
    let none = running.ask(&Question::Halts {}).await.unwrap();
    assert_eq!(none, Answer::Halts { halts: Vec::new() });
    running.journal.halt(&base(), "reorg", 7).await.unwrap();
    let Answer::Halts { halts } = running.ask(&Question::Halts {}).await.unwrap() else {
        panic!("no halts");
    };
    assert_eq!((halts.len(), halts[0].chain.as_str()), (1, "base"));
    assert_eq!((halts[0].halt.why.as_str(), halts[0].halt.at), ("reorg", 7));
    let clear = |id: &str| Question::ClearHalt {
        chain: "base".into(),
        id: id.into(),
    };
    let other = running.ask(&clear("00000000")).await.unwrap();
    assert_eq!(other, Answer::Cleared { cleared: false });
    let clear = clear(&halts[0].id);
    for cleared in [true, false] {
        let answer = running.ask(&clear).await.unwrap();
        assert_eq!(answer, Answer::Cleared { cleared });
        assert!(running.journal.halted(&base()).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn an_index_is_taken_back_and_never_forward() {
    let running = running().await;
    let rewind = |network: &str, to| Question::Rewind {
        network: network.into(),
        to,
    };
    let nothing = running.ask(&rewind("base", 5)).await.unwrap_err();
    assert!(nothing.to_string().contains("no such network"), "{nothing}");
    let cursor = Cursor {
        next: 1_001,
        marks: vec![Mark {
            number: 900,
            hash: B256::repeat_byte(1),
        }],
        ..Cursor::default()
    };
    let key = cursor::key("base");
    let row = Batch::new().put(key.clone(), cursor.encode().unwrap());
    running.store.commit(row).await.unwrap();
    let Answer::Index { networks } = running.ask(&Question::Index {}).await.unwrap() else {
        panic!("no index");
    };
    assert_eq!(
        (networks[0].height, networks[0].oldest),
        (Some(1_000), Some(900))
    );
    for (network, to) in [("base", 1_000), ("base", u64::MAX), ("zora", 5)] {
        assert!(
            running.ask(&rewind(network, to)).await.is_err(),
            "{network} {to}"
        );
    }
    let answer = running.ask(&rewind("base", 500)).await.unwrap();
    assert_eq!(answer, Answer::Rewound { height: 1_000 });
    let row = running.store.read(&key).await.unwrap().unwrap();
    let back = Cursor::decode(&row).unwrap();
    assert_eq!((back.next, back.marks.len()), (501, 0));
}

#[tokio::test]
async fn statements_are_shown_with_what_was_void() {
    let running = running().await;
    let block = Block {
        number: 7,
        hash: B256::repeat_byte(1),
        parent: B256::ZERO,
        time: 1,
    };
    let tx = TxRef {
        text: "0xab".into(),
        bytes: vec![0xab].into(),
        hint: None,
    };
    let digest = B256::repeat_byte(2);
    let statement = Statement::deposit(&base(), &tx, Mode::Slow, &block, digest);
    running.journal.sign(&statement, 3).await.unwrap();
    let question = Question::Statement {
        key: statement.key.clone(),
    };
    let Answer::Statement { entry, voids } = running.ask(&question).await.unwrap() else {
        panic!("no statement");
    };
    assert_eq!((entry.unwrap().digest, voids.len()), (digest, 0));
    running
        .journal
        .void(&statement.key, "gone", 4)
        .await
        .unwrap();
    let Answer::Statement { entry, voids } = running.ask(&question).await.unwrap() else {
        panic!("no statement");
    };
    assert_eq!((entry, voids[0].why.as_str()), (None, "gone"));
    assert_eq!(voids[0].entry.digest, digest);
}

#[tokio::test]
async fn garbage_is_refused_and_the_daemon_goes_on() {
    let running = running().await;
    let long = vec![b'a'; 100_000];
    let deep = "[".repeat(10_000);
    let cases: [&[u8]; 9] = [
        b"",
        b"\n",
        b"null\n",
        b"{\"ask\":\"nothing\"}\n",
        b"{\"ask\":\"halts\",\"more\":1}\n",
        b"{\"ask\":\"clear-halt\"}\n",
        b"\xff\xfe\x00\n",
        &long,
        deep.as_bytes(),
    ];
    for (at, case) in cases.into_iter().enumerate() {
        let answer = running.raw(case).await;
        // A writer that is cut off may not see its answer.
        let seen = answer.contains("\"answer\":\"refused\"") || case.len() > 512 << 10;
        assert!(seen, "case {at}: {answer}");
    }
    assert!(running.ask(&Question::Halts {}).await.is_ok());
}

#[tokio::test]
async fn only_the_user_may_open_the_socket_and_it_goes_with_the_daemon() {
    let running = running().await;
    let socket = path(running.directory.path());
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    running.shutdown.cancel();
    running.task.await.unwrap();
    assert!(!socket.exists());
    let unanswered = ask(running.directory.path(), &Question::Halts {}).await;
    assert!(
        matches!(unanswered, Err(AskError::NoDaemon(_))),
        "{unanswered:?}"
    );
}

#[tokio::test]
async fn a_socket_left_by_a_killed_daemon_is_replaced_and_nothing_else_is() {
    let directory = tempfile::tempdir().unwrap();
    let socket = path(directory.path());
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(socket.exists());
    let unanswered = ask(directory.path(), &Question::Halts {}).await;
    assert!(
        matches!(unanswered, Err(AskError::NoDaemon(_))),
        "{unanswered:?}"
    );
    drop(Admin::bind(directory.path()).unwrap());
    std::fs::write(&socket, "a file").unwrap();
    assert!(Admin::bind(directory.path()).is_err());
    assert_eq!(std::fs::read(&socket).unwrap(), b"a file");
}

fn order(name: &str) -> Order {
    let label = name.to_owned();
    Order::Revoke { label }
}

#[tokio::test]
async fn a_key_is_told_once_and_only_its_digest_is_kept() {
    let running = running().await;
    let key = running.add("app").await.unwrap();
    assert!(key.starts_with("ik_") && key.len() > 64, "{key}");
    let app = running.app();
    assert_eq!((app.keys.len(), app.created_at), (1, NOW));
    assert_eq!(app.scopes, [Scope::Quote, Scope::RequestsRead].into());
    let other = running.add("other").await.unwrap();
    assert_ne!(key, other);
    let taken = running.add("app").await.unwrap_err();
    assert!(taken.contains("called app already"), "{taken}");
    assert!(running.add("a b").await.unwrap_err().contains("label"));
    assert_eq!(running.app(), app);
    let list = running
        .raw(b"{\"ask\":\"integrators\",\"order\":\"list\"}\n")
        .await;
    let digest = alloy::hex::encode(app.keys[0].digest);
    assert!(list.contains(&digest[..8]), "{list}");
    for secret in [&key, &other, &digest, &digest[..9]] {
        assert!(!list.contains(secret), "{list}");
    }
}

#[tokio::test]
async fn rotation_and_revocation_end_keys() {
    let running = running().await;
    running.add("app").await.unwrap();
    let first = running.app().keys[0].clone();
    let rotate = |grace| Order::Rotate {
        label: "app".into(),
        grace,
    };
    assert!(matches!(
        running.order(rotate(5)).await,
        Ok(Outcome::Key { .. })
    ));
    let keys = running.app().keys;
    assert_eq!(
        (keys[0].digest, keys[0].expires_at),
        (first.digest, Some(NOW + 5))
    );
    assert_eq!(keys[1].expires_at, None);
    assert!(matches!(
        running.order(rotate(0)).await,
        Ok(Outcome::Key { .. })
    ));
    let newest = running.app().keys;
    assert_eq!(newest.len(), 1);
    assert!(!keys.contains(&newest[0]));
    assert_eq!(running.order(order("app")).await, Ok(Outcome::Done {}));
    assert_eq!(running.app().revoked_at, Some(NOW));
    for refused in [order("app"), rotate(0)] {
        let why = running.order(refused).await.unwrap_err();
        assert_eq!(why, "app has been revoked");
    }
    let why = running.add("app").await.unwrap_err();
    assert!(why.contains("called app already"), "{why}");
    let why = running.order(order("nobody")).await.unwrap_err();
    assert_eq!(why, "there is no integrator called nobody");
}

#[tokio::test]
async fn scopes_and_tiers_are_set_one_by_one() {
    let running = running().await;
    running.add("app").await.unwrap();
    let set = |scopes, tier| Order::Set {
        label: "app".into(),
        scopes,
        tier,
    };
    let tier = running.order(set(None, Some(Tier::Unlimited))).await;
    let scopes = running.order(set(Some([Scope::Claims].into()), None)).await;
    assert_eq!((tier, scopes), (Ok(Outcome::Done {}), Ok(Outcome::Done {})));
    let app = running.app();
    assert_eq!(
        (app.tier, app.scopes),
        (Tier::Unlimited, [Scope::Claims].into())
    );
}

#[tokio::test]
async fn webhooks_that_may_not_be_are_refused_and_the_old_one_stays() {
    let running = running().await;
    running.add("app").await.unwrap();
    let hook = |url: &str, headers: &[(&str, &str)]| Webhook {
        url: url.parse().unwrap(),
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    };
    let order = |webhook: Webhook| Order::Webhook {
        label: "app".into(),
        change: set_all(webhook),
    };
    let good = hook(
        "https://example.org:8443/hook",
        &[("authorization", "a \"b\"")],
    );
    assert_eq!(
        running.order(order(good.clone())).await,
        Ok(Outcome::Done {})
    );
    for (bad, named) in [
        (hook("http://example.org/", &[]), "https://"),
        (hook("https://a:b@example.org/", &[]), "password"),
        (
            hook("https://a/", &[("Content-Type", "a")]),
            "header content-type",
        ),
        (
            hook("https://a/", &[("X-Signature-SHA256", "a")]),
            "header x-signature-sha256",
        ),
        (hook("https://a/", &[("x-a", "a\r\nx-b: c")]), "header x-a"),
        (hook("https://a/", &[("x a", "a")]), "header \"x a\""),
    ] {
        let why = running.order(order(bad)).await.unwrap_err();
        assert!(why.contains(named), "{why}");
        assert_eq!(running.app().webhook.as_ref(), Some(&good));
    }
    let Ok(Outcome::Listed { integrators }) = running.order(Order::List {}).await else {
        panic!("no list");
    };
    assert_eq!(integrators[0].webhook.as_deref(), Some("example.org:8443"));
    // A new address leaves the headers as they are.
    let moved = order(hook("https://other.example/", &[]));
    assert_eq!(running.order(moved).await, Ok(Outcome::Done {}));
    assert_eq!(running.app().webhook.unwrap().headers, good.headers);
    let label = "app".to_owned();
    let none = running.order(Order::Unhook { label }).await;
    assert_eq!(none, Ok(Outcome::Done {}));
    assert_eq!(running.app().webhook, None);
}

fn set_all(webhook: Webhook) -> HookChange {
    HookChange {
        url: Some(webhook.url),
        set: webhook.headers,
        removed: [].into(),
    }
}

fn link(label: &str, address: &str, proof: Option<(u64, &str)>) -> Order {
    Order::Link {
        label: label.into(),
        address: address.into(),
        proof: proof.map(|(time, signature)| Proof {
            time,
            signature: signature.into(),
        }),
    }
}

#[tokio::test]
async fn a_wallet_is_linked_by_its_own_signature_over_what_it_was_shown() {
    use alloy::signers::{SignerSync, local::PrivateKeySigner};
    let running = running().await;
    running.add("app").await.unwrap();
    running.add("other").await.unwrap();
    let [wallet, stranger] = [1, 2].map(|n| PrivateKeySigner::from_slice(&[n; 32]).unwrap());
    let (checksummed, stranger) = (wallet.address().to_string(), stranger.address().to_string());
    let asked = running.order(link("app", &checksummed, None)).await;
    let Ok(Outcome::Sign { message, time }) = asked else {
        panic!("{asked:?}");
    };
    let mine = checksummed.to_lowercase();
    for named in ["intentd test", "app", &mine, &time.to_string()] {
        assert!(message.contains(named), "{named} is not in {message}");
    }
    let signature = |text: &str| wallet.sign_message_sync(text.as_bytes()).unwrap();
    let stale = time - 301;
    let early = message.replace(&time.to_string(), &stale.to_string());
    let (good, early) = (
        signature(&message).to_string(),
        signature(&early).to_string(),
    );
    let unsigned = "has not signed";
    for (refused, why) in [
        (link("other", &mine, Some((time, &good))), unsigned),
        (link("app", &stranger, Some((time, &good))), unsigned),
        (link("app", &mine, Some((time - 1, &good))), unsigned),
        (link("app", &mine, Some((time, "0x00"))), unsigned),
        (link("app", &mine, Some((stale, &early))), "last 5 minutes"),
        (link("app", "0x12", Some((time, &good))), "invalid"),
        (link("nobody", &mine, None), "no integrator called nobody"),
    ] {
        let error = running.order(refused).await.unwrap_err();
        assert!(error.contains(why), "{error}");
        assert_eq!(running.app().wallet, None);
    }
    let done = Ok(Outcome::Done {});
    assert_eq!(
        running.order(link("app", &mine, Some((time, &good)))).await,
        done
    );
    assert_eq!(running.app().wallet.unwrap().address, mine);
    // A signature links once, and not again when the wallet is gone.
    let again = link("app", &mine, Some((time, &good)));
    let used = running.order(again.clone()).await.unwrap_err();
    assert!(used.contains("already"), "{used}");
    let label = "app".to_owned();
    assert_eq!(running.order(Order::Unlink { label }).await, done);
    assert!(running.order(again).await.is_err());
    assert_eq!(running.app().wallet, None);
}

#[tokio::test]
async fn the_longest_webhook_fits_into_a_question() {
    let running = running().await;
    running.add("app").await.unwrap();
    let one = |n: usize| (format!("x-{n:03}"), "\"".repeat(header::LONGEST - 5));
    let url = format!("https://example.org/{}", "a".repeat(1000));
    let webhook = Webhook {
        url: url.parse().unwrap(),
        headers: (0..header::MOST).map(one).collect(),
    };
    let label = "app".to_owned();
    let order = Order::Webhook {
        label,
        change: set_all(webhook),
    };
    assert_eq!(running.order(order).await, Ok(Outcome::Done {}));
}

#[tokio::test]
async fn an_oracle_knows_no_webhooks() {
    let running = running().await;
    let question = Question::Webhooks(webhooks::Question::List { label: None });
    let refused = running.ask(&question).await.unwrap_err();
    assert_eq!(refused.to_string(), "this daemon has no integrator API");
    let foreign = running
        .raw(b"{\"ask\":\"webhooks\",\"webhooks\":\"burn\"}\n")
        .await;
    assert!(foreign.contains("refused"), "{foreign}");
}
