//! A worker over a store in memory and a scripted receiver.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use alloy::primitives::B256;
use async_trait::async_trait;
use tokio::{sync::watch, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    integrator::{Integrator, Key, Tier, Webhook},
    request::{
        fact::{Facts, Standing},
        fixtures,
    },
    store::{
        Batch, Kind, Store,
        integrators::{Integrators, IntegratorsError},
        memory::MemoryStore,
        requests::Requests,
        rows::DELIVERY,
        walk::Walk,
    },
    webhook::{
        WebhookContext,
        admin::AdminHandle,
        delivery_request::{DeliveryRequest, GIVEN_UP},
        guard::Reach,
        open,
        post::Post,
        schedule::Reply,
        sign,
    },
};

/// A second in milliseconds.
pub const S: u64 = 1_000;
const GENESIS: u64 = 1_700_000_000_000;

/// A delivery request that was sent.
#[derive(Clone, Debug)]
pub struct Call {
    /// Milliseconds since the rig's start.
    pub at: u64,
    /// Unix milliseconds.
    pub now: u64,
    pub host: String,
    pub id: u64,
    pub timestamp: u64,
    pub signature: String,
    pub given_up: Option<u64>,
    pub body: String,
}

/// How many milliseconds a call takes and its reply; the number is that of earlier calls to the host.
type Script = Box<dyn Fn(&Call, usize) -> (u64, Reply) + Send + Sync>;

pub struct Network {
    script: Script,
    start: Instant,
    calls: watch::Sender<Vec<Call>>,
    before: Mutex<HashMap<String, usize>>,
}

#[async_trait]
impl Post for Network {
    async fn send(&self, delivery_request: DeliveryRequest, now: u64) -> Reply {
        let header = |name: &str| delivery_request.headers[name].to_str().unwrap().to_owned();
        let call = Call {
            at: u64::try_from(self.start.elapsed().as_millis()).unwrap(),
            now,
            host: delivery_request.url.host_str().unwrap().to_owned(),
            id: header("x-event-id").parse().unwrap(),
            timestamp: header(sign::TIMESTAMP).parse().unwrap(),
            signature: header(sign::SIGNATURE),
            given_up: delivery_request
                .headers
                .get(GIVEN_UP)
                .map(|number| number.to_str().unwrap().parse().unwrap()),
            body: String::from_utf8(delivery_request.body.to_vec()).unwrap(),
        };
        let before = {
            let mut before = self.before.lock().unwrap();
            let count = before.entry(call.host.clone()).or_default();
            *count += 1;
            *count - 1
        };
        let (takes, reply) = (self.script)(&call, before);
        self.calls.send_modify(|calls| calls.push(call));
        tokio::time::sleep(Duration::from_millis(takes)).await;
        reply
    }
}

pub struct Rig {
    pub store: Arc<dyn Store>,
    pub handle: AdminHandle,
    requests: Requests,
    integrators: Integrators,
    network: Arc<Network>,
    happened: AtomicU64,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

pub fn hook(label: &str) -> Webhook {
    Webhook {
        url: format!("https://{label}/").parse().unwrap(),
        headers: [("authorization".into(), "Bearer x".into())].into(),
    }
}

pub fn network(
    script: impl Fn(&Call, usize) -> (u64, Reply) + Send + Sync + 'static,
) -> Arc<Network> {
    Arc::new(Network {
        script: Box::new(script),
        start: Instant::now(),
        calls: watch::Sender::default(),
        before: Mutex::default(),
    })
}

pub fn context(
    requests: &Requests,
    integrators: &Integrators,
    network: &Arc<Network>,
) -> WebhookContext {
    let start = network.start;
    WebhookContext {
        requests: requests.clone(),
        integrators: integrators.clone(),
        post: network.clone(),
        reach: Reach::Public,
        clock: Box::new(move || GENESIS + u64::try_from(start.elapsed().as_millis()).unwrap()),
        random: || 200,
    }
}

impl Rig {
    pub async fn start(
        script: impl Fn(&Call, usize) -> (u64, Reply) + Send + Sync + 'static,
    ) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let requests = Requests::open(store.clone()).await.unwrap();
        let integrators = Integrators::open(store.clone()).await.unwrap();
        let network = network(script);
        let (handle, worker) = open(context(&requests, &integrators, &network));
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(worker.run(shutdown.clone()));
        Self {
            store,
            handle,
            requests,
            integrators,
            network,
            happened: AtomicU64::new(0),
            shutdown,
            task,
        }
    }

    pub fn context(&self) -> WebhookContext {
        context(&self.requests, &self.integrators, &self.network)
    }

    pub fn crash(&mut self) {
        self.task.abort();
    }

    pub async fn stop(&mut self) {
        self.shutdown.cancel();
        (&mut self.task).await.unwrap();
    }

    pub async fn restart(&mut self) {
        let context = context(&self.requests, &self.integrators, &self.network);
        let (handle, worker) = open(context);
        (self.handle, self.shutdown) = (handle, CancellationToken::new());
        self.task = tokio::spawn(worker.run(self.shutdown.clone()));
    }

    /// An integrator with an endpoint at the host of its name.
    pub async fn app(&self, label: &str) {
        let key = Key {
            digest: [7; 32],
            created_at: 1,
            expires_at: None,
        };
        let app = Integrator {
            label: label.into(),
            scopes: [].into(),
            tier: Tier::Default,
            keys: vec![key],
            webhook: Some(hook(label)),
            wallet: None,
            proved_at: 0,
            created_at: 1,
            revoked_at: None,
        };
        let add = |_| Ok::<_, IntegratorsError>(app.clone());
        self.integrators.change(label, add).await.unwrap();
    }

    pub async fn change(&self, label: &str, change: impl Fn(&mut Integrator)) {
        let change = |app: Option<Integrator>| {
            let mut app = app.unwrap();
            change(&mut app);
            Ok::<_, IntegratorsError>(app)
        };
        self.integrators.change(label, change).await.unwrap();
    }

    /// Pays `count` new requests of `label`; an empty label means no key.
    pub async fn happen(&self, label: &str, count: u64) {
        for _ in 0..count {
            let number = self.happened.fetch_add(1, Ordering::Relaxed) + 1;
            let mut request = fixtures::request(1);
            request.id = B256::left_padding_from(&number.to_be_bytes());
            request.order_id = !request.id;
            request.api_key = (!label.is_empty()).then(|| label.to_owned());
            self.requests.insert(&request, Batch::new()).await.unwrap();
            let paid = |facts: &mut Facts| {
                facts.deposits = vec![fixtures::deposit(1, Standing::Final)];
            };
            let recorded = self
                .requests
                .record(&request.id, GENESIS, Batch::new(), paid);
            recorded.await.unwrap();
        }
    }

    /// Milliseconds since the start.
    pub fn elapsed(&self) -> u64 {
        u64::try_from(self.network.start.elapsed().as_millis()).unwrap()
    }

    /// The calls, once there are `count`.
    pub async fn calls(&self, count: usize) -> Vec<Call> {
        let mut calls = self.network.calls.subscribe();
        let enough = calls.wait_for(|calls| calls.len() >= count).await;
        enough.unwrap().clone()
    }

    /// The calls to one host, once there are `count`.
    pub async fn calls_of(&self, host: &str, count: usize) -> Vec<Call> {
        let of = |calls: &Vec<Call>| -> Vec<Call> {
            let to = calls.iter().filter(|call| call.host == host);
            to.cloned().collect()
        };
        let mut calls = self.network.calls.subscribe();
        let enough = calls.wait_for(|calls| of(calls).len() >= count).await;
        of(&enough.unwrap())
    }

    pub async fn rows(&self, kind: Kind) -> usize {
        let (mut walk, mut count) = (Walk::of(&*self.store, kind), 0);
        loop {
            match walk.page().await.unwrap().len() {
                0 => return count,
                page => count += page,
            }
        }
    }

    /// Waits until nothing is owed.
    pub async fn settled(&self) {
        while self.rows(DELIVERY).await > 0 {
            // Time is paused.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
