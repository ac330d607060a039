//! A deposit that was signed and then taken back by its chain: nothing is signed there until an
//! operator has looked, over restarts, and the other chains go on.

use std::{collections::HashMap, path::Path, sync::Arc, time::Duration};

use clap::Parser;
use intentd::{
    admin::{Admin, Handles, integrators::IntegratorAdmin},
    attest::{
        backing::Tolerance,
        journal::{Journal, JournalError},
        peers::Peers,
        service::{Attestor, DepositClaim, Error, Reachable},
        statement::{Mode, Statement},
        watch::{Look, Watcher},
    },
    cli::Arguments,
    hub::{Hub, Settings},
    sign::raw::RawKey,
    solver::settle::outcome_claim::OutcomeClaims,
    store::{Store, integrators::Integrators, requests::Requests, sled::SledStore},
};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use vm::{
    B256, Chain, ChainEntry, ChainId, Deposit, Transaction, TxRef, U256,
    testing::{Script, receipt},
};

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
const DEPOSITORY: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
const DEPOSITOR: &str = "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc";

fn tx(byte: u8) -> TxRef {
    let text = B256::repeat_byte(byte).to_string();
    vm::SETTLEMENT.tx(&text, None).unwrap()
}

/// A chain with a deposit in transaction `n` of block `number` as the script has it now.
fn deposit(script: &Script, byte: u8, number: u64) {
    let address = |text| vm::SETTLEMENT.address(text).unwrap();
    let mut found = receipt(script.block(number));
    found.deposits = Ok(vec![Deposit {
        index: 0,
        depository: address(DEPOSITORY),
        depositor: address(DEPOSITOR),
        currency: address("0x0000000000000000000000000000000000000000"),
        amount: U256::from(5),
        id: B256::ZERO.to_string().into(),
        named_by_other: false,
        by_depositor: false,
    }]);
    script.put(&tx(byte), Transaction::Succeeded(found));
}

fn chain(name: &str, script: &Arc<Script>) -> Chain {
    let additional = json!({"finalizationBlocks": 2, "finalizationTime": 0, "watchBlocks": 50});
    let entry = ChainEntry {
        id: name.into(),
        depository: Some(DEPOSITORY.into()),
        hub_chain_id: Some("1".into()),
        additional_data: additional.as_object().unwrap().clone(),
        ..ChainEntry::default()
    };
    Chain {
        spec: entry.spec(vm::SETTLEMENT, false).unwrap(),
        reader: script.clone(),
        state: Some(script.clone()),
    }
}

/// One life of the daemon's parts over the store in `place`.
struct Life {
    oracle: Attestor,
    watcher: Watcher,
    journal: Arc<Journal>,
    store: Arc<SledStore>,
    shutdown: CancellationToken,
    admin: JoinHandle<()>,
}

/// What the operator's commands reach of an oracle only.
async fn handles(journal: &Arc<Journal>, store: &Arc<SledStore>) -> Handles {
    Handles {
        journal: journal.clone(),
        integrator_admin: IntegratorAdmin {
            integrators: Integrators::open(store.clone()).await.unwrap(),
            service: None,
            plain: false,
            clock: || 1_700_000_000_000,
        },
        claims: OutcomeClaims {
            requests: Requests::new(store.clone()),
            keys: None,
        },
        webhooks: None,
        accounts: Vec::new(),
        solver: None,
        index: None,
    }
}

impl Life {
    async fn begin(place: &Path, base: &Arc<Script>, zora: &Arc<Script>) -> Self {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let store = Arc::new(SledStore::open(&place.join("store")).unwrap());
        let signer = Arc::new(RawKey::parse(KEY).unwrap());
        let journal = Arc::new(Journal::new(store.clone(), signer));
        let file = json!({
            "id": "relay", "evmChainId": "31337", "oracleVersion": "2",
            "oracleAddress": "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9",
        });
        let reachable = |name: &str, script| {
            let (family, chain) = (Some(vm::SETTLEMENT), Ok(chain(name, script)));
            let reachable = Reachable {
                family,
                hub_chain_id: None,
                spec: None,
                chain,
                keys: None,
            };
            (name.to_owned(), reachable)
        };
        let oracle = Attestor {
            bound_nonces: false,
            shown_recoveries: false,
            chains: HashMap::from([reachable("base", base), reachable("zora", zora)]),
            hub: Hub::new(
                Settings::parse(file.as_object().unwrap()).unwrap(),
                Err("not asked".into()),
            ),
            journal: journal.clone(),
            peers: Peers::new(Vec::new(), Duration::from_secs(1), None).unwrap(),
            requests: Requests::new(store.clone()),
            tolerance: Tolerance::default(),
            clock: || 1_700_000_000,
        };
        let shutdown = CancellationToken::new();
        let admin = Admin::bind(place).unwrap();
        let handles = handles(&journal, &store).await;
        Self {
            oracle,
            watcher: Watcher::new(journal.clone(), chain("base", base)),
            admin: tokio::spawn(admin.serve(handles, shutdown.clone())),
            journal,
            store,
            shutdown,
        }
    }

    async fn end(self) {
        self.shutdown.cancel();
        self.admin.await.unwrap();
        self.store.close().await;
    }

    /// The signature over a deposit attestation.
    async fn attest(&self, chain: &str, byte: u8) -> Result<String, Error> {
        let claim = DepositClaim {
            chain: chain.into(),
            transaction: tx(byte).text.to_string(),
            mode: Mode::Slow,
            keyed: false,
            hints: None,
        };
        let answer = self.oracle.deposit(&claim, None).await?;
        let attested = answer.attested.unwrap();
        Ok(attested.signatures[0].signature.to_string())
    }

    async fn refuses(&self, chain: &str, byte: u8) -> bool {
        let refused = self.attest(chain, byte).await;
        matches!(refused, Err(Error::Journal(JournalError::Halted(halted))) if halted.as_str() == chain)
    }

    async fn look(&mut self, now: u64) -> Look {
        self.watcher.look(now).await.unwrap()
    }
}

/// The command line in a process of its own, as far as it can tell.
async fn intentd(place: &Path, words: &[&str]) -> anyhow::Result<()> {
    let words = [&["intentd"], words].concat();
    let arguments = Arguments::try_parse_from(words).unwrap();
    let variables = [("DATA_DIR".to_owned(), place.display().to_string())];
    tokio::task::spawn_blocking(move || arguments.run(variables))
        .await
        .unwrap()
}

fn key(byte: u8, block: &vm::Block) -> String {
    Statement::deposit(
        &ChainId::new("base"),
        &tx(byte),
        Mode::Slow,
        block,
        B256::ZERO,
    )
    .key
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_deposit_halts_its_chain_until_the_operator_clears_it() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let (base, zora) = (Script::at(100), Script::at(100));
    let signed = base.block(90);
    deposit(&base, 1, 90);
    deposit(&base, 2, 80);
    deposit(&zora, 3, 90);
    let mut life = Life::begin(place, &base, &zora).await;
    life.attest("base", 1).await.unwrap();
    assert_eq!(life.look(1000).await.missing, 0);

    base.fork(85, 7);
    base.put(&tx(1), Transaction::Missing);
    assert_eq!(life.look(2000).await.missing, 1);
    assert_eq!(life.look(2006).await.void, 1);
    assert!(life.refuses("base", 2).await);
    assert!(life.attest("zora", 3).await.is_ok());
    assert!(
        life.journal
            .entry(&key(1, &signed))
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(life.journal.voids(&key(1, &signed)).await.unwrap().len(), 1);
    life.end().await;

    let offline = intentd(place, &["halts", "list"]).await.unwrap_err();
    assert!(offline.to_string().contains("no daemon runs"), "{offline}");

    let life = Life::begin(place, &base, &zora).await;
    deposit(&base, 1, 95);
    assert!(life.refuses("base", 1).await, "a restart forgets the halt");
    intentd(place, &["halts", "list"]).await.unwrap();
    intentd(place, &["journal", "show", &key(1, &signed)])
        .await
        .unwrap();
    let unknown = intentd(place, &["journal", "show", "deposit/none"]).await;
    assert!(
        unknown
            .unwrap_err()
            .to_string()
            .contains("nothing was signed")
    );
    let halted = life.journal.halted(&ChainId::new("base")).await.unwrap();
    let id = halted.unwrap().id();
    for (chain, named) in [("zora", id.as_str()), ("base", "00000000")] {
        let other = intentd(place, &["halts", "clear", chain, named]).await;
        let why = other.unwrap_err().to_string();
        assert!(why.contains("is not what halts"), "{why}");
    }
    assert!(life.refuses("base", 1).await);

    intentd(place, &["halts", "clear", "base", &id])
        .await
        .unwrap();
    life.attest("base", 1).await.unwrap();
    let anew = life.journal.entry(&key(1, &base.block(95))).await.unwrap();
    assert_eq!(anew.unwrap().facts[0].number, 95);
    assert!(life.attest("base", 2).await.is_ok());
    life.end().await;
}

#[tokio::test]
async fn a_caller_who_shows_the_deposit_in_another_block_halts_the_chain_too() {
    let place = tempfile::tempdir().unwrap();
    let (base, zora) = (Script::at(100), Script::at(100));
    deposit(&base, 1, 90);
    deposit(&zora, 3, 90);
    let life = Life::begin(place.path(), &base, &zora).await;
    life.attest("base", 1).await.unwrap();
    base.fork(85, 7);
    deposit(&base, 1, 95);
    assert!(life.refuses("base", 1).await);
    assert!(life.refuses("base", 1).await);
    assert!(life.attest("zora", 3).await.is_ok());
    let halted = life.journal.halted(&ChainId::new("base")).await.unwrap();
    let id = halted.unwrap().id();
    let cleared = life.journal.clear(&ChainId::new("base"), &id).await;
    assert!(cleared.unwrap());
    assert!(life.attest("base", 1).await.is_ok());
    life.end().await;
}

#[tokio::test]
async fn a_store_in_doubt_is_opened_when_the_operator_trusts_it() {
    let place = tempfile::tempdir().unwrap();
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(place.path(), own).unwrap();
    let trust = || intentd(place.path(), &["journal", "trust"]);
    let nothing = trust().await.unwrap_err().to_string();
    assert!(nothing.contains("there is no store"), "{nothing}");
    let store = place.path().join("store");
    SledStore::open(&store).unwrap().close().await;
    let whole = trust().await.unwrap_err().to_string();
    assert!(whole.contains("nobody doubts"), "{whole}");
    std::fs::write(store.join("in-doubt"), "a sync failed: EIO").unwrap();
    let doubted = SledStore::open(&store).err().unwrap().to_string();
    assert!(doubted.contains("EIO"), "{doubted}");
    trust().await.unwrap();
    let open = SledStore::open(&store).unwrap();
    let held = trust().await.unwrap_err().to_string();
    assert!(held.contains("in use"), "{held}");
    open.close().await;
}
