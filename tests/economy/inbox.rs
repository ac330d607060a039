//! Transactions that somebody tells of, up to the webhooks of the app whose requests they are said to be.

use std::sync::{Arc, Mutex};

use alloy::primitives::{Address, B256};
use async_trait::async_trait;
use hyper::{Method, StatusCode};
use intentd::{
    integrator::{Integrator, Key, Tier, Webhook},
    store::{
        Store,
        integrators::{Integrators, IntegratorsError},
    },
    webhook::{
        self, WebhookContext, delivery_request::DeliveryRequest, guard::Reach, post::Post,
        schedule::Reply,
    },
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    clock,
    customer::{CUSTOMER, FROM, Quoted},
    history::number,
    users::text,
    world::World,
};

const STRANGER: Address = Address::repeat_byte(0xc3);
const APP: &str = "app";

/// What the app's endpoint was sent: request and status of each webhook.
#[derive(Default)]
struct Inbox(Mutex<Vec<(B256, String)>>);

#[async_trait]
impl Post for Inbox {
    async fn send(&self, letter: DeliveryRequest, _: u64) -> Reply {
        let body: Value = serde_json::from_slice(&letter.body).unwrap();
        let data = &body["data"];
        let request = text(&data["requestId"]).parse().unwrap();
        let told = (request, text(&data["status"]).to_owned());
        self.0.lock().unwrap().push(told);
        Reply::Status(200, None)
    }
}

impl Inbox {
    /// The statuses that a request was said to have, in turn.
    fn of(&self, quoted: &Quoted) -> Vec<String> {
        let all = self.0.lock().unwrap();
        let own = all.iter().filter(|(request, _)| *request == quoted.request);
        own.map(|(_, status)| status.clone()).collect()
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// An app that is told of its requests, until the token says so.
async fn app(world: &World) -> (Arc<Inbox>, CancellationToken) {
    let store: Arc<dyn Store> = world.store.clone();
    let integrators = Integrators::open(store).await.unwrap();
    let app = Integrator {
        label: APP.into(),
        scopes: [].into(),
        tier: Tier::Default,
        keys: vec![Key {
            digest: [7; 32],
            created_at: 1,
            expires_at: None,
        }],
        webhook: Some(Webhook {
            url: "https://app.example/".parse().unwrap(),
            headers: Default::default(),
        }),
        wallet: None,
        proved_at: 0,
        created_at: 1,
        revoked_at: None,
    };
    let add = |_| Ok::<_, IntegratorsError>(app.clone());
    integrators.change(APP, add).await.unwrap();
    let inbox = Arc::new(Inbox::default());
    let (_, worker) = webhook::open(WebhookContext {
        requests: world.handle().requests.clone(),
        integrators,
        post: inbox.clone(),
        reach: Reach::Public,
        clock: Box::new(clock::millis),
        random: || 200,
    });
    let shutdown = CancellationToken::new();
    tokio::spawn(worker.run(shutdown.clone()));
    (inbox, shutdown)
}

impl World {
    /// Somebody says, on both routes, that transactions are a request's.
    async fn submit(&self, quoted: &Quoted, sent: &[B256]) {
        let (chain, request) = (number(FROM), quoted.request);
        for hash in sent {
            let spelled = json!({ "txHash": hash }).to_string();
            for (route, body) in [
                (
                    "/transactions/index",
                    json!({ "chainId": chain, "txHash": hash, "requestId": request }),
                ),
                (
                    "/transactions/single",
                    json!({ "chainId": chain, "tx": spelled, "requestId": request }),
                ),
            ] {
                let (status, answer) = self.api(Method::POST, route, &body).await;
                assert_eq!(status, StatusCode::OK, "{route}: {answer}");
            }
        }
    }

    /// How many events there are of a request.
    async fn events(&self, quoted: &Quoted) -> usize {
        let requests = &self.handle().requests;
        let events = requests.events_of(&quoted.request, 0, 100).await;
        events.unwrap().len()
    }
}

/// One request that its user carries out by himself, and one that the solver fills.
#[tokio::test(start_paused = true)]
async fn only_a_requests_own_transaction_has_a_status_an_event_and_a_webhook() {
    clock::begin(0);
    let mut world = World::new(&[CUSTOMER, STRANGER], None);
    world.start().await;
    let (inbox, shutdown) = app(&world).await;
    world.pass(20).await;
    let mine = [
        world.quoted(Some(APP), FROM).await,
        world.quoted(Some(APP), "beta").await,
    ];
    // The same of nobody's app: other orders of the same user.
    let others = [
        world.quoted(None, FROM).await,
        world.quoted(None, "beta").await,
    ];

    // The right call with a foreign sender; the right sender with foreign orders; what no block has.
    let mut foreign = world.sent_by(STRANGER, &mine[0]);
    for other in &others {
        foreign.extend(world.sent_by(CUSTOMER, other));
    }
    foreign.push(B256::repeat_byte(9));
    // Before they are in blocks, when they are, and when those are final.
    for _ in 0..3 {
        for quoted in &mine {
            world.submit(quoted, &foreign).await;
        }
        world.pass(40).await;
    }
    for quoted in &mine {
        assert_eq!(world.status(quoted.request).await, "waiting");
        assert_eq!(world.events(quoted).await, 0);
    }
    assert_eq!(inbox.len(), 0);
    // They belong to the orders that they name.
    for other in &others {
        assert_eq!(world.status(other.request).await, "success");
        assert!(world.events(other).await > 0);
    }

    for quoted in &mine {
        let sent = world.sent_by(CUSTOMER, quoted);
        world.submit(quoted, &sent).await;
    }
    world.pass(160).await;
    let mut webhooks = 0;
    for (at, quoted) in mine.iter().enumerate() {
        assert_eq!(world.status(quoted.request).await, "success", "{at}");
        let told = inbox.of(quoted);
        assert_eq!(told.last().map(String::as_str), Some("success"), "{at}");
        assert_eq!(told.len(), world.events(quoted).await, "{at}");
        webhooks += told.len();
    }
    assert_eq!(inbox.len(), webhooks);
    shutdown.cancel();
    world.stop().await;
}
