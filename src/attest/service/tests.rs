//! The whole service over scripted chains: what it reads, signs, refuses and records.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use alloy::{signers::SignerSync, sol_types::SolValue};
use async_trait::async_trait;
use serde_json::json;
use vm::{
    B256, Block, Bytes, EvmAddress, Execution as Executed, Head, PaymentKind, Transaction, U256,
    WithdrawalStatus,
    protocol::{hub::alias, id, limits},
    testing::{Answers, Script, said},
};

use super::*;
use crate::{
    attest::{
        backing::Tolerance,
        fixtures::{self, DEPOSITOR, Fixture, NATIVE, RECIPIENT, Read, address},
        peers::Shown,
        refund::Refund,
        statement::Mode,
        watch::Watcher,
    },
    hub::Settings,
    sign::raw::RawKey,
    store::{
        Batch, Key, Outcome, Range, Store, StoreError, memory::MemoryStore, requests::Requests,
    },
};

mod authorization;
mod doubles;
mod exchange;
mod mapping;
mod owned;
mod payload;
mod recover;
mod requested;
mod trigger;
mod unread;

const KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";

/// A chain with answers of the tests' own.
type Chained = Script<State>;

struct State {
    head: Mutex<Head>,
    fresh: Mutex<Head>,
    transactions: Mutex<HashMap<Bytes, Transaction>>,
    canonical: Mutex<bool>,
    status: Mutex<WithdrawalStatus>,
    balance: Mutex<U256>,
    /// The balance at the tip, where it differs.
    spent: Mutex<Option<U256>>,
    /// The allocator's withdrawals by payload id.
    payloads: Mutex<HashMap<B256, Bytes>>,
    /// What other calls than those below answer, by their arguments.
    words: Mutex<HashMap<Vec<u8>, B256>>,
    /// What the allocator's signature service gave.
    signature: Mutex<Bytes>,
    /// The executor's account of an order.
    order_account: Mutex<EvmAddress>,
    /// Whether the generic mapping has an entry.
    mapped: Mutex<bool>,
    /// Whether the allocator of this chain makes withdrawals.
    serves: Mutex<bool>,
    /// The keys that the oracle contract has executed; `None` makes it fail.
    executed: Mutex<Option<HashSet<B256>>>,
    settled: Mutex<Option<Block>>,
    broken: Mutex<Option<ReadError>>,
    reads: AtomicUsize,
    /// The data of every answered call.
    asked: Mutex<Vec<Bytes>>,
}

impl State {
    fn chain() -> Arc<Chained> {
        let head = Read::new("base", 0).head;
        let state = Self {
            head: Mutex::new(head.clone()),
            fresh: Mutex::new(head),
            transactions: Mutex::default(),
            canonical: Mutex::new(true),
            status: Mutex::new(WithdrawalStatus::Pending),
            balance: Mutex::default(),
            spent: Mutex::default(),
            payloads: Mutex::default(),
            words: Mutex::default(),
            signature: Mutex::default(),
            order_account: Mutex::default(),
            mapped: Mutex::default(),
            serves: Mutex::new(true),
            executed: Mutex::new(Some(HashSet::new())),
            settled: Mutex::new(Some(fixtures::block(10))),
            broken: Mutex::default(),
            reads: AtomicUsize::new(0),
            asked: Mutex::default(),
        };
        Script::at(0).answering(state, answers())
    }

    fn add(&self, read: &Read) {
        let mut transactions = self.transactions.lock().unwrap();
        transactions.insert(read.tx.bytes.clone(), read.found.clone());
    }

    fn check(&self) -> Result<(), ReadError> {
        self.broken.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    /// What it says unless it is broken.
    fn answered<T>(&self, of: impl FnOnce(&Self) -> T) -> Result<T, ReadError> {
        self.check().map(|()| of(self))
    }

    fn found(&self, tx: &TxRef) -> Transaction {
        self.reads.fetch_add(1, SeqCst);
        let transactions = self.transactions.lock().unwrap();
        let found = transactions.get(&tx.bytes).cloned();
        found.unwrap_or(Transaction::Missing)
    }

    fn viewed(&self, data: &Bytes, at: &Block) -> Result<Bytes, ReadError> {
        self.check()?;
        self.asked.lock().unwrap().push(data.clone());
        let settled = self.settled.lock().unwrap().as_ref() == Some(at);
        let word = match (data.len(), &data[..4]) {
            (4, _) => U256::from(7),
            (36, [0x58, 0x72, 0x26, 0x72]) if settled => {
                let payloads = self.payloads.lock().unwrap();
                let payload = payloads.get(&data[4..]).cloned().unwrap_or_default();
                return Ok(payload.abi_encode().into());
            }
            // hashToSign(uint256,string,bytes,uint32)
            (_, [0x22, 0xb0, 0xc2, 0xf1]) if settled => U256::from(7),
            // signedPayloads(bytes32,bytes32)
            (68, [0x9b, 0xc1, 0xf5, 0x98]) if settled => {
                return Ok(self.signature.lock().unwrap().abi_encode().into());
            }
            // orderAddressByWithdrawRequestHash(bytes32)
            (36, [0xb7, 0xe4, 0x8d, 0x70]) if settled => {
                self.order_account.lock().unwrap().into_word().into()
            }
            (68, [0xca, 0xd2, 0xab, 0x23]) if settled => {
                let created = U256::from(u8::from(*self.mapped.lock().unwrap()));
                return Ok((Bytes::new(), created).abi_encode_params().into());
            }
            // payloadBuilders(string,bytes), payloadBuilders(uint256,string)
            (_, [0x24, 0xd3, 0x8b, 0x9f] | [0xef, 0x8c, 0x12, 0x1e]) if settled => {
                U256::from(u8::from(*self.serves.lock().unwrap()))
            }
            // isExecuted(bytes32)
            (36, [0xe5, 0x2c, 0xb3, 0x6a]) if settled => {
                let silent = || ReadError::Unavailable("no such function".into());
                let executed = self.executed.lock().unwrap();
                let keys = executed.as_ref().ok_or_else(silent)?;
                U256::from(u8::from(keys.contains(&B256::from_slice(&data[4..]))))
            }
            // triggers(bytes32), hashesToSign(bytes32,uint256)
            (36, [0x35, 0x33, 0x78, 0xf3]) | (68, [0xd5, 0x3a, 0x5d, 0xf6]) if settled => {
                let words = self.words.lock().unwrap();
                words.get(&data[4..]).copied().unwrap_or_default().into()
            }
            (36, _) => return Err(ReadError::Doubtful("not at the settled block".into())),
            _ if settled => *self.balance.lock().unwrap(),
            _ => {
                let spent = *self.spent.lock().unwrap();
                spent.unwrap_or(*self.balance.lock().unwrap())
            }
        };
        Ok(word.to_be_bytes::<32>().to_vec().into())
    }
}

fn answers() -> Answers<State> {
    Answers {
        head: Some(|own| said(own.answered(|own| own.head.lock().unwrap().clone()))),
        fresh_head: Some(|own| said(Ok(own.fresh.lock().unwrap().clone()))),
        contains: Some(|own, _| said(Ok(*own.canonical.lock().unwrap()))),
        transaction: Some(|own, tx, _| said(own.answered(|own| own.found(tx)))),
        settled: Some(|own, _| said(own.answered(|own| own.settled.lock().unwrap().clone()))),
        withdrawal: Some(|own, _, _| said(own.answered(|own| *own.status.lock().unwrap()))),
        view: Some(|own, _, data, at| said(own.viewed(data, at))),
        ..Answers::default()
    }
}

struct World {
    oracle: Attestor,
    ethereum: Arc<Chained>,
    base: Arc<Chained>,
    hub: Arc<Chained>,
    aurora: Arc<Chained>,
}

fn world() -> World {
    world_on(Arc::new(MemoryStore::new()))
}

fn world_on(store: Arc<dyn Store>) -> World {
    let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let [ethereum, base, hub, aurora] = [(); 4].map(|()| State::chain());
    let chain = |name: &str, script: &Arc<Chained>| Chain {
        spec: Arc::new(fixtures::spec(name)),
        reader: script.clone(),
        state: Some(script.clone()),
    };
    let reachable = |name: &str, script| {
        let family = Some(fixtures::family());
        let chain = Ok(chain(name, script));
        let hub_chain_id = Some(U256::from(1));
        let reachable = Reachable {
            family,
            hub_chain_id,
            spec: None,
            chain,
            keys: None,
        };
        (name.to_owned(), reachable)
    };
    let closed = Reachable {
        family: None,
        hub_chain_id: None,
        spec: None,
        chain: Err("no provider".into()),
        keys: None,
    };
    let file = json!({
        "id": "relay", "evmChainId": "31337", "oracleVersion": "2",
        "oracleAddress": "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9",
        "auroraAllocatorAddress": "0x7eda04920f22ba6a2b9f2573fd9a6f6f1946ff9f",
    });
    let settings = Settings::parse(file.as_object().unwrap()).unwrap();
    let signer = Arc::new(RawKey::parse(KEY).unwrap());
    let oracle = Attestor {
        chains: HashMap::from([
            reachable("ethereum", &ethereum),
            reachable("base", &base),
            ("closed".to_owned(), closed),
        ]),
        hub: Hub::new(settings, Ok(chain("relay", &hub)))
            .with_allocator(Ok(chain("aurora", &aurora))),
        journal: Arc::new(Journal::new(store.clone(), signer)),
        requests: Requests::new(store),
        peers: Peers::new(Vec::new(), Duration::from_secs(1), None).unwrap(),
        tolerance: Tolerance::default(),
        bound_nonces: false,
        shown_recoveries: false,
        clock: || 1_700_000_000,
    };
    World {
        oracle,
        ethereum,
        base,
        hub,
        aurora,
    }
}

impl World {
    /// Puts the fixture's transactions on the chains.
    fn playing(self, fixture: &Fixture) -> Self {
        fixture
            .deposits
            .iter()
            .for_each(|read| self.ethereum.add(read));
        fixture
            .refunded
            .iter()
            .for_each(|read| self.ethereum.add(read));
        self.base.add(&fixture.fill);
        self
    }

    /// Records the deposits of a transaction as minted by the hub.
    fn mint(&self, read: &Read) {
        let key = id::deterministic(&[read.spec.id.as_str(), &read.tx.text]);
        let mut executed = self.hub.executed.lock().unwrap();
        executed.get_or_insert_default().insert(key);
    }

    /// Records the claim's withdrawal at the allocator, for the claim's request.
    fn allocating(self, claim: &WithdrawalClaim) -> Self {
        self.record(claim, &claim.withdrawal);
        self
    }

    /// Records `withdrawal` at the allocator, for the claim's request.
    fn record(&self, claim: &WithdrawalClaim, withdrawal: &str) {
        let payload: Bytes = withdrawal.parse().unwrap();
        let id = payload_id(claim);
        self.aurora.payloads.lock().unwrap().insert(id, payload);
    }

    /// The same world, whose `ethereum` has no more than five blocks above the fixtures' transactions.
    fn early(self) -> Self {
        for head in [&self.ethereum.head, &self.ethereum.fresh] {
            head.lock().unwrap().block = fixtures::block(15);
        }
        self
    }

    /// The watched blocks of `chain` on which statements of this kind rest, lowest first.
    async fn watched(&self, chain: &str, kind: &str) -> Vec<Block> {
        let chain = vm::ChainId::new(chain);
        let rows = self.oracle.journal.watched(&chain, None, 9).await;
        let rows = rows.unwrap().into_iter();
        let of_kind = rows.filter(|row| row.statement.split('/').next() == Some(kind));
        of_kind.map(|row| row.block).collect()
    }

    async fn fill(&self, fixture: &Fixture) -> Result<OutcomeAnswer, Error> {
        self.oracle.fill(&fill_claim(fixture), None).await
    }

    async fn refund(&self, fixture: &Fixture) -> Result<OutcomeAnswer, Error> {
        self.oracle.refund(&refund_claim(fixture), None).await
    }
}

/// The same world, its disk nearly full.
fn full(world: World) -> World {
    let reserve = Reserve::new(vec![std::env::temp_dir()], u64::MAX);
    reserve.look().unwrap();
    World {
        oracle: world.oracle.with_reserve(Arc::new(reserve)),
        ..world
    }
}

/// Gives the order a fee.
fn with_fee(order: &mut vm::protocol::order::Order) {
    order.fees.push(vm::protocol::order::Fee {
        recipient_chain_id: "base".into(),
        recipient: RECIPIENT.into(),
        currency_chain_id: "ethereum".into(),
        currency: NATIVE.into(),
        amount: "10".into(),
    });
}

fn order_claim(fixture: &Fixture) -> OrderClaim {
    let input = |(input, read): (&crate::attest::order::Input, &Read)| InputClaim {
        input: input.clone(),
        transaction: read.tx.text.to_string(),
        chain: None,
        hints: None,
    };
    OrderClaim {
        order: fixture.order.clone(),
        signature: fixture.signature.clone(),
        inputs: fixture
            .inputs
            .iter()
            .zip(&fixture.deposits)
            .map(input)
            .collect(),
        solver_signature: None,
        force: false,
    }
}

fn fill_claim(fixture: &Fixture) -> FillClaim {
    FillClaim {
        order: order_claim(fixture),
        transaction: fixture.fill.tx.text.to_string(),
        hints: None,
    }
}

fn refund_claim(fixture: &Fixture) -> RefundClaim {
    let payment = |(refund, read): (&Refund, &Read)| RefundPayment {
        refund: refund.clone(),
        transaction: read.tx.text.to_string(),
    };
    let refunds = fixture.refunds.iter().zip(&fixture.refunded);
    RefundClaim {
        order: order_claim(fixture),
        refunds: refunds.map(payment).collect(),
        hints: None,
    }
}

fn deposit_claim(read: &Read) -> DepositClaim {
    DepositClaim {
        chain: "ethereum".into(),
        transaction: read.tx.text.to_string(),
        mode: Mode::Slow,
        keyed: false,
        hints: None,
    }
}

/// The kind of an error in one word.
fn word<T>(result: Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "OK",
        Err(Error::Refused(refusal)) => refusal.code(),
        Err(Error::Read(ReadError::Doubtful(_))) => "doubtful",
        Err(Error::Read(_)) => "read",
        Err(Error::Journal(JournalError::Conflict { .. })) => "conflict",
        Err(Error::Journal(_)) => "journal",
        Err(Error::Closed { .. }) => "closed",
        Err(Error::NoAllocator(_)) => "allocator",
        Err(Error::NoRoom) => "room",
        Err(Error::Setup(_)) => "setup",
    }
}

#[tokio::test]
async fn deposit_is_signed_by_us_and_again_with_the_same_bytes() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    let claim = deposit_claim(&fixture.deposits[0]);
    let first = world.oracle.deposit(&claim, None).await.unwrap();
    let again = world.oracle.deposit(&claim, None).await.unwrap();
    assert_eq!(first.attested, again.attested);
    let attested = first.attested.unwrap();
    let digest = attested.execution.digest(&world.oracle.hub.settings.domain);
    let signature = &attested.signatures[0];
    let signer = signature.signature.recover(&digest).unwrap();
    assert_eq!(format!("{signer:#x}"), signature.signer);
    assert_eq!(attested.signatures.len(), 1);
}

/// What peers answer is not in the journal.
#[tokio::test]
async fn an_answer_for_which_peers_are_asked_has_no_basis() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    let claim = deposit_claim(&fixture.deposits[0]);
    let question = Question {
        target: "/".into(),
        body: "{}".into(),
        key: None,
        shown: Shown::Any,
    };
    for (question, has) in [(None, true), (Some(&question), false)] {
        world.oracle.deposit(&claim, question).await.unwrap();
        let again = basis::of(world.oracle.deposit(&claim, question)).await;
        assert!(again.0.is_ok() && again.1.is_some() == has, "{question:?}");
    }
}

#[tokio::test]
async fn transaction_without_deposits_is_answered_unsigned() {
    let mut fixture = Fixture::new();
    fixture.deposits[0].deposits().clear();
    let world = world().playing(&fixture);
    let claim = deposit_claim(&fixture.deposits[0]);
    let answer = world.oracle.deposit(&claim, None).await.unwrap();
    assert!(answer.messages.is_empty() && answer.attested.is_none());
}

#[tokio::test]
async fn unfinal_transaction_is_looked_at_once_more_from_a_fresh_head() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    let claim = deposit_claim(&fixture.deposits[0]);
    world.ethereum.head.lock().unwrap().block.number = 15;
    assert_eq!(word(world.oracle.deposit(&claim, None).await), "OK");
    assert_eq!(world.ethereum.reads.load(SeqCst), 2);
    world.ethereum.fresh.lock().unwrap().block.number = 16;
    let refused = world.oracle.deposit(&claim, None).await;
    assert_eq!(word(refused), "TRANSACTION_NOT_FINALIZED");
    assert_eq!(world.ethereum.reads.load(SeqCst), 4);
}

#[tokio::test]
async fn chains_that_are_unknown_closed_or_broken_are_told_apart() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    let mut claim = deposit_claim(&fixture.deposits[0]);
    for (chain, wanted) in [("nochain", "CHAIN_NOT_AVAILABLE"), ("closed", "closed")] {
        claim.chain = chain.into();
        assert_eq!(word(world.oracle.deposit(&claim, None).await), wanted);
    }
    claim.chain = "ethereum".into();
    *world.ethereum.broken.lock().unwrap() = Some(ReadError::Quorum("1 of 2".into()));
    assert_eq!(word(world.oracle.deposit(&claim, None).await), "read");
    claim.transaction = "garbage".into();
    assert_eq!(
        word(world.oracle.deposit(&claim, None).await),
        "INVALID_REQUEST"
    );
}

#[tokio::test]
async fn deposit_in_another_block_halts_and_is_signed_anew_only_after_that_is_cleared() {
    let mut fixture = Fixture::new();
    let world = world().playing(&fixture);
    let claim = deposit_claim(&fixture.deposits[0]);
    let first = world.oracle.deposit(&claim, None).await.unwrap();
    fixture.deposits[0].receipt().block.hash = B256::repeat_byte(9);
    fixture.deposits[0].receipt().block.time -= 1;
    world.ethereum.add(&fixture.deposits[0]);
    assert_eq!(word(world.oracle.deposit(&claim, None).await), "doubtful");
    *world.ethereum.canonical.lock().unwrap() = false;
    for _ in 0..2 {
        assert_eq!(word(world.oracle.deposit(&claim, None).await), "journal");
    }
    let ethereum = vm::ChainId::new("ethereum");
    let journal = &world.oracle.journal;
    let id = journal.halted(&ethereum).await.unwrap().unwrap().id();
    assert!(journal.clear(&ethereum, &id).await.unwrap());
    let second = world.oracle.deposit(&claim, None).await.unwrap();
    assert_ne!(first.attested, second.attested);
}

/// The world of `fixture`, whose `ethereum` attests small native deposits after 2 blocks; the head is 5 blocks above
/// the deposit.
fn fast_world(fixture: &Fixture) -> World {
    let mut world = world().playing(fixture);
    let mut spec = fixtures::spec("ethereum");
    let tiers = json!({ NATIVE: [{"maxAmount": "5000", "finalizationBlocks": 2}] });
    spec.additional
        .insert("fastMode".into(), json!({ "finalityTiers": tiers }));
    let known = world.oracle.chains.get_mut("ethereum").unwrap();
    known.chain.as_mut().unwrap().spec = Arc::new(spec);
    world.oracle.hub.settings.rate_limiter = Some(EvmAddress::repeat_byte(1));
    *world.hub.balance.lock().unwrap() = U256::ONE;
    for head in [&world.ethereum.head, &world.ethereum.fresh] {
        head.lock().unwrap().block.number = 15;
    }
    world
}

/// A fast claim of a caller with a key.
fn fast_claim(read: &Read) -> DepositClaim {
    DepositClaim {
        mode: Mode::Fast,
        keyed: true,
        ..deposit_claim(read)
    }
}

#[tokio::test]
async fn fast_deposit_that_is_reorged_is_signed_anew_and_halts_only_what_was_final() {
    // The head of the first signature, and the result for another block.
    for (head, wanted) in [(15, "OK"), (20, "journal")] {
        let mut fixture = Fixture::new();
        let world = fast_world(&fixture);
        world.ethereum.head.lock().unwrap().block.number = head;
        let claim = fast_claim(&fixture.deposits[0]);
        let first = world.oracle.deposit(&claim, None).await.unwrap();
        let again = world.oracle.deposit(&claim, None).await.unwrap();
        assert_eq!(first.attested, again.attested);
        fixture.deposits[0].receipt().block.hash = B256::repeat_byte(9);
        fixture.deposits[0].receipt().block.time -= 1;
        world.ethereum.add(&fixture.deposits[0]);
        assert_eq!(word(world.oracle.deposit(&claim, None).await), "doubtful");
        *world.ethereum.canonical.lock().unwrap() = false;
        assert_eq!(word(world.oracle.deposit(&claim, None).await), wanted);
        let halts = world.oracle.journal.halts().await.unwrap();
        assert_eq!(halts.is_empty(), wanted == "OK", "{head}");
    }
}

#[tokio::test]
async fn fee_of_fast_mode_is_chosen_with_a_key_only() {
    let mut fixture = Fixture::new();
    fixture.deposits[0].deposits()[0].id = B256::ZERO.to_string().into();
    let mut world = fast_world(&fixture);
    let mut claim = fast_claim(&fixture.deposits[0]);
    claim.keyed = false;
    // Without a fee and without an order, fast mode costs nobody anything.
    assert_eq!(word(world.oracle.deposit(&claim, None).await), "OK");
    world.oracle.hub.settings.fee_calculator = Some(EvmAddress::repeat_byte(2));
    let refused = word(world.oracle.deposit(&claim, None).await);
    assert_eq!(refused, "FAST_MODE_NOT_ALLOWED");
    claim.mode = Mode::Slow;
    let early = word(world.oracle.deposit(&claim, None).await);
    assert_eq!(early, "TRANSACTION_NOT_FINALIZED");
    (claim.mode, claim.keyed) = (Mode::Fast, true);
    let mut keyed = fast_world(&fixture);
    keyed.oracle.hub.settings.fee_calculator = Some(EvmAddress::repeat_byte(2));
    assert_eq!(word(keyed.oracle.deposit(&claim, None).await), "OK");
}

/// A stranger has a deposit minted fast, and a reorg gives it another block time: its order's account changes, but
/// the idempotency key, under which the hub acts once, does not.
#[tokio::test]
async fn fast_mode_for_an_order_is_chosen_with_a_key_only() {
    let mut fixture = Fixture::new();
    let world = fast_world(&fixture);
    let keyed = fast_claim(&fixture.deposits[0]);
    let stranger = DepositClaim {
        keyed: false,
        ..keyed.clone()
    };
    let refused = async |world: &World| word(world.oracle.deposit(&stranger, None).await);
    assert_eq!(refused(&world).await, "FAST_MODE_NOT_ALLOWED");
    let early = world.oracle.deposit(&keyed, None).await.unwrap();
    // One deposit with an order is enough.
    let mixed = fixture.clone().with(|fixture| {
        let deposits = fixture.deposits[0].deposits();
        let mut plain = deposits[0].clone();
        (plain.index, plain.id) = (1, B256::ZERO.to_string().into());
        deposits.insert(0, plain);
    });
    let mixed = fast_world(&mixed);
    assert_eq!(refused(&mixed).await, "FAST_MODE_NOT_ALLOWED");
    // A caller with a key may choose fast mode; then a reorg.
    fixture.deposits[0].receipt().block.hash = B256::repeat_byte(9);
    fixture.deposits[0].receipt().block.time -= 1;
    let elsewhere = fast_world(&fixture);
    let late = elsewhere.oracle.deposit(&keyed, None).await.unwrap();
    let [early, late] = [early, late].map(|answer| answer.attested.unwrap().execution);
    assert_eq!(early.idempotency_key, late.idempotency_key);
    assert_ne!(early.actions, late.actions);
    // Without a key the account is that of a final block.
    for head in [&elsewhere.ethereum.head, &elsewhere.ethereum.fresh] {
        head.lock().unwrap().block.number = 20;
    }
    let slow = deposit_claim(&fixture.deposits[0]);
    assert_eq!(word(elsewhere.oracle.deposit(&slow, None).await), "OK");
}

#[tokio::test]
async fn fast_deposit_asks_the_rate_limiter_and_slow_does_not() {
    let mut fixture = Fixture::new();
    let mut again = fixture.deposits[0].deposits()[0].clone();
    again.index = 1;
    fixture.deposits[0].deposits().push(again);
    let world = fast_world(&fixture);
    let claim = fast_claim(&fixture.deposits[0]);
    let mut answers = Vec::new();
    // False, true, and a word that is no boolean.
    for word_ in [0, 1, 2] {
        *world.hub.balance.lock().unwrap() = U256::from(word_);
        answers.push(word(world.oracle.deposit(&claim, None).await));
    }
    assert_eq!(answers, ["FAST_MODE_LIMIT_EXCEEDED", "OK", "OK"]);
    *world.hub.balance.lock().unwrap() = U256::ZERO;
    *world.hub.broken.lock().unwrap() = Some(ReadError::Unavailable("down".into()));
    assert_eq!(word(world.oracle.deposit(&claim, None).await), "OK");
    *world.hub.broken.lock().unwrap() = None;
    let slow = deposit_claim(&fixture.deposits[0]);
    let early = world.oracle.deposit(&slow, None).await;
    assert_eq!(word(early), "TRANSACTION_NOT_FINALIZED");
    world.ethereum.fresh.lock().unwrap().block.number = 20;
    assert_eq!(word(world.oracle.deposit(&slow, None).await), "OK");
    // One question covers both deposits of one currency.
    let asked = world.hub.asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    let amount = U256::from(2000).to_be_bytes::<32>();
    assert!(asked.iter().all(|data| data[4 + 64..4 + 96] == amount));
}

#[tokio::test]
async fn order_ends_once_as_fill_or_as_refund() {
    // With a fee, fill and refund move different amounts.
    let fixture = Fixture::ordering(with_fee);
    let one = world().playing(&fixture);
    assert_eq!(word(one.fill(&fixture).await), "OK");
    assert_eq!(word(one.fill(&fixture).await), "OK");
    let late = one.refund(&fixture).await;
    assert!(matches!(
        late,
        Err(Error::Journal(JournalError::Conflict {
            payment: false,
            ..
        }))
    ));
    let other = world().playing(&fixture);
    assert_eq!(word(other.refund(&fixture).await), "OK");
    assert_eq!(word(other.fill(&fixture).await), "conflict");
}

#[tokio::test]
async fn fill_and_refund_that_move_the_same_are_one_statement() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    let filled = world.fill(&fixture).await.unwrap();
    let refunded = world.refund(&fixture).await.unwrap();
    assert_eq!(filled.attested, refunded.attested);
}

/// The same order deposited again, in a transaction of its own.
async fn deposited_again(world: &World, fixture: &Fixture, amount: u64) -> Fixture {
    deposited_as(world, fixture, (0x77, amount)).await
}

async fn deposited_as(world: &World, fixture: &Fixture, (tx, amount): (u8, u64)) -> Fixture {
    let mut again = fixture.clone();
    again.deposits[0].tx = fixtures::tx(tx);
    again.deposits[0].deposits()[0].amount = U256::from(amount);
    world.ethereum.add(&again.deposits[0]);
    let claim = deposit_claim(&again.deposits[0]);
    let second = world.oracle.deposit(&claim, None).await.unwrap();
    again.inputs[0].onchain_id = second.messages[0].onchain_id.to_string();
    again
}

#[tokio::test]
async fn dust_claimed_first_bars_no_true_claim() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    let dust = deposited_again(&world, &fixture, 1).await;
    assert_eq!(word(world.fill(&dust).await), "SOLVER_SIGNATURE_REQUIRED");
    assert_eq!(word(world.refund(&dust).await), "SOLVER_SIGNATURE_REQUIRED");
    assert_eq!(word(world.fill(&fixture).await), "OK");
    assert_eq!(word(world.fill(&dust).await), "SOLVER_SIGNATURE_REQUIRED");
}

/// The solver fills one deposit and refunds the other; a stranger claims them crosswise.
#[tokio::test]
async fn deposits_claimed_crosswise_bar_no_true_claim() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    let again = deposited_again(&world, &fixture, 1_000).await;
    assert_eq!(word(world.refund(&fixture).await), "OK");
    // The refund serves the first deposit for now.
    let early = world.refund(&again).await;
    assert!(matches!(
        early,
        Err(Error::Journal(JournalError::Conflict { payment: true, .. }))
    ));
    assert_eq!(word(world.fill(&fixture).await), "OK");
    assert_eq!(word(world.refund(&again).await), "OK");
    assert_eq!(word(world.fill(&fixture).await), "OK");
}

#[tokio::test]
async fn one_order_of_two_deposits_is_paid_once() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    assert_eq!(word(world.fill(&fixture).await), "OK");
    // The user deposited twice for one order; the solver shows its one payment for both.
    let mut again = fixture.clone();
    again.deposits[0].tx = fixtures::tx(0x77);
    world.ethereum.add(&again.deposits[0]);
    let claim = deposit_claim(&again.deposits[0]);
    let second = world.oracle.deposit(&claim, None).await.unwrap();
    again.inputs[0].onchain_id = second.messages[0].onchain_id.to_string();
    assert_eq!(word(world.fill(&again).await), "conflict");
}

#[tokio::test]
async fn one_order_of_two_deposits_is_called_once() {
    let call = fixtures::call(b"\x01\x02", 0);
    let fixture = Fixture::ordering(|order| {
        order.output.payments.clear();
        Fixture::want_call(order, &call);
    });
    let fixture = fixture.with(|s| s.fill.receipt().calls = vec![fixtures::made(&call)]);
    let world = world().playing(&fixture);
    assert_eq!(word(world.fill(&fixture).await), "OK");
    let mut again = fixture.clone();
    again.deposits[0].tx = fixtures::tx(0x77);
    world.ethereum.add(&again.deposits[0]);
    let claim = deposit_claim(&again.deposits[0]);
    let second = world.oracle.deposit(&claim, None).await.unwrap();
    again.inputs[0].onchain_id = second.messages[0].onchain_id.to_string();
    assert_eq!(word(world.fill(&again).await), "conflict");
    assert_eq!(word(world.fill(&fixture).await), "OK");
}

#[tokio::test]
async fn one_payment_of_two_orders_serves_one() {
    let fixture = Fixture::new();
    let world = world().playing(&fixture);
    assert_eq!(word(world.fill(&fixture).await), "OK");
    let mut other = Fixture::ordering(|order| order.salt = "2".into());
    other.deposits[0].tx = fixtures::tx(0x78);
    world.ethereum.add(&other.deposits[0]);
    let claim = deposit_claim(&other.deposits[0]);
    let deposit = world.oracle.deposit(&claim, None).await.unwrap();
    other.inputs[0].onchain_id = deposit.messages[0].onchain_id.to_string();
    // The transaction names only the first order, then both, then only the second.
    assert_eq!(word(world.fill(&other).await), "ORDER_NOT_REFERENCED");
    let (first, second) = (fixture.id().to_string(), other.id().to_string());
    other.fill.receipt().references = vec![first.into(), second.clone().into()];
    world.base.add(&other.fill);
    assert_eq!(word(world.fill(&other).await), "SEVERAL_ORDERS_REFERENCED");
    other.fill.receipt().references = vec![second.into()];
    world.base.add(&other.fill);
    assert_eq!(word(world.fill(&other).await), "conflict");
}

#[tokio::test]
async fn forced_fill_needs_no_payment_and_still_uses_the_deposit_up() {
    let mut fixture = Fixture::ordering(with_fee);
    fixture.fill.found = Transaction::Missing;
    let world = world().playing(&fixture);
    let mut claim = fill_claim(&fixture);
    claim.order.force = true;
    // The same transaction twice is one deposit.
    claim.order.inputs.push(claim.order.inputs[0].clone());
    let answer = world.oracle.fill(&claim, None).await.unwrap();
    assert_eq!(answer.attested.execution.actions.len(), 2);
    assert_eq!(answer.difference.to_string(), "0");
    assert_eq!(word(world.refund(&fixture).await), "conflict");
}

#[tokio::test]
async fn forced_claim_moves_nothing_but_what_was_deposited_for_it() {
    let forcing = async |fixture: &Fixture, change: fn(&mut OrderClaim)| {
        let world = world().playing(fixture);
        let mut claim = fill_claim(fixture);
        claim.order.force = true;
        change(&mut claim.order);
        word(world.oracle.fill(&claim, None).await)
    };
    let fixture = Fixture::ordering(with_fee);
    assert_eq!(forcing(&fixture, |_| {}).await, "OK");
    let unsigned = forcing(&fixture, |claim| claim.signature = "0x".into());
    assert_eq!(unsigned.await, "ORDER_SIGNATURE_INVALID");
    let nothing = forcing(&fixture, |claim| claim.inputs.clear());
    assert_eq!(nothing.await, "DEPOSIT_MISSING");
    let foreign = fixture
        .clone()
        .with(|s| s.deposits[0].deposits()[0].id = "0x12".into());
    assert_eq!(forcing(&foreign, |_| {}).await, "DEPOSIT_MISSING");
    let reverted = fixture
        .clone()
        .with(|s| s.deposits[0].found = fixtures::failed());
    assert_eq!(forcing(&reverted, |_| {}).await, "TRANSACTION_REVERTED");
    let covered = fixture
        .clone()
        .with(|s| s.deposits[0].deposits()[0].amount = U256::from(10));
    assert_eq!(forcing(&covered, |_| {}).await, "OK");
    let uncovered = fixture
        .clone()
        .with(|s| s.deposits[0].deposits()[0].amount = U256::from(9));
    assert_eq!(forcing(&uncovered, |_| {}).await, "FEES_NOT_COVERED");
    // Two deposits that cover the fees only together do not count.
    let parts = fixture.clone().with(|s| {
        let deposits = s.deposits[0].deposits();
        deposits[0].amount = U256::from(9);
        let second = vm::Deposit {
            index: 1,
            ..deposits[0].clone()
        };
        deposits.push(second);
    });
    assert_eq!(forcing(&parts, |_| {}).await, "FEES_NOT_COVERED");
    let other = fixture.with(|s| s.deposits[0].deposits()[0].currency = address(fixtures::TOKEN));
    assert_eq!(forcing(&other, |_| {}).await, "FEES_NOT_COVERED");
}

#[tokio::test]
async fn forced_refund_gives_back_nothing_but_what_was_deposited_for_it() {
    let forcing = async |fixture: &Fixture, change: fn(&mut OrderClaim)| {
        let world = world().playing(fixture);
        let mut claim = refund_claim(fixture);
        claim.order.force = true;
        claim.refunds.clear();
        change(&mut claim.order);
        word(world.oracle.refund(&claim, None).await)
    };
    let fixture = Fixture::new();
    assert_eq!(forcing(&fixture, |_| {}).await, "OK");
    let unsigned = forcing(&fixture, |claim| claim.signature = "0x".into());
    assert_eq!(unsigned.await, "ORDER_SIGNATURE_INVALID");
    let nothing = forcing(&fixture, |claim| claim.inputs.clear());
    assert_eq!(nothing.await, "DEPOSIT_MISSING");
    let foreign = fixture
        .clone()
        .with(|s| s.deposits[0].deposits()[0].id = "0x12".into());
    assert_eq!(forcing(&foreign, |_| {}).await, "DEPOSIT_MISSING");
    let reverted = fixture.with(|s| s.deposits[0].found = fixtures::failed());
    assert_eq!(forcing(&reverted, |_| {}).await, "TRANSACTION_REVERTED");
}

#[tokio::test]
async fn forced_claim_waits_for_finality_is_watched_and_halts_with_its_chain() {
    let fixture = Fixture::ordering(with_fee);
    let mut claim = fill_claim(&fixture);
    claim.order.force = true;
    let early = self::world().playing(&fixture);
    for head in [&early.ethereum.head, &early.ethereum.fresh] {
        head.lock().unwrap().block.number = 19;
    }
    let refused = early.oracle.fill(&claim, None).await;
    assert_eq!(word(refused), "TRANSACTION_NOT_FINALIZED");

    let world = self::world().playing(&fixture);
    assert_eq!(word(world.oracle.fill(&claim, None).await), "OK");
    let ethereum = vm::ChainId::new("ethereum");
    *world.ethereum.canonical.lock().unwrap() = false;
    let chain = Chain {
        spec: Arc::new(fixtures::spec("ethereum")),
        reader: world.ethereum.clone(),
        state: None,
    };
    let mut watcher = Watcher::new(world.oracle.journal.clone(), chain);
    assert_eq!(watcher.look(1000).await.unwrap().missing, 1);
    assert_eq!(watcher.look(1005).await.unwrap().void, 1);
    let journal = &world.oracle.journal;
    assert!(journal.halted(&ethereum).await.unwrap().is_some());
    *world.ethereum.canonical.lock().unwrap() = true;
    let halted = world.oracle.fill(&claim, None).await;
    assert!(
        matches!(halted, Err(Error::Journal(JournalError::Halted(chain))) if chain == ethereum)
    );
}

#[tokio::test]
async fn transactions_have_a_budget_each_and_all_of_a_request_together() {
    let full = |read: &mut Read, events: usize| {
        let known = limits::events(read.receipt());
        let of = read.receipt().payments.len();
        let mut more = Read::new("base", 0);
        more.pay(
            PaymentKind::Transfer,
            fixtures::DEPOSITOR,
            fixtures::TOKEN,
            1,
        );
        let payment = more.receipt().payments.remove(0);
        let payments = (of..of + events - known).map(|index| vm::Payment {
            index: u32::try_from(index).unwrap(),
            ..payment.clone()
        });
        read.receipt().payments.extend(payments);
    };
    let most = limits::TRANSACTION_EVENTS;
    for (deposit, fill, wanted) in [
        (most, most, ("OK", "OK")),
        (most, most + 1, ("OK", "TOO_MANY_ITEMS")),
        (
            most + 1,
            most - 1,
            ("EXECUTION_TOO_LARGE", "EXECUTION_TOO_LARGE"),
        ),
    ] {
        let mut fixture = Fixture::new();
        full(&mut fixture.deposits[0], deposit);
        full(&mut fixture.fill, fill);
        let world = world().playing(&fixture);
        let claim = deposit_claim(&fixture.deposits[0]);
        let deposited = word(world.oracle.deposit(&claim, None).await);
        let filled = word(world.fill(&fixture).await);
        assert_eq!((deposited, filled), wanted, "{deposit} {fill}");
    }
}

#[tokio::test]
async fn transactions_named_twice_are_read_once() {
    let mut fixture = Fixture::ordering(|order| {
        let mut again = order.inputs[0].clone();
        again.payment.currency = fixtures::TOKEN.into();
        order.inputs.push(again);
    });
    let mut second = fixture.deposits[1].deposits()[0].clone();
    second.index = 1;
    fixture.deposits[0].deposits().push(second);
    fixture.deposits[1] = fixture.deposits[0].clone();
    let world = world().playing(&fixture);
    let claim = deposit_claim(&fixture.deposits[0]);
    let messages = world.oracle.deposit(&claim, None).await.unwrap().messages;
    for (input, message) in fixture.inputs.iter_mut().zip(messages) {
        input.onchain_id = message.onchain_id.to_string();
    }
    let before = world.ethereum.reads.load(SeqCst);
    assert_eq!(word(world.fill(&fixture).await), "OK");
    assert_eq!(world.ethereum.reads.load(SeqCst) - before, 1);
}

/// The encoding of a payment of 500 before `expiration`.
fn encoded(change: impl FnOnce(&mut serde_json::Value)) -> String {
    let call = json!({"to": RECIPIENT, "data": "0x", "value": "500", "allowFailure": false});
    let mut withdrawal = json!({"calls": [call], "nonce": "3", "expiration": 1_800_000_000});
    change(&mut withdrawal);
    let codec = fixtures::family().withdrawals.unwrap();
    alloy::hex::encode_prefixed(codec.encode(&withdrawal).unwrap())
}

/// The id of the claim's request for a payment of 500.
fn payload_id(claim: &WithdrawalClaim) -> B256 {
    let address = &claim.address;
    let request = crate::attest::withdrawal::AddressRequest {
        settlement: "relay",
        path: ("", ""),
        depository: None,
        currency: &address.currency,
        withdrawer: &address.withdrawer,
        withdrawer_chain: &address.withdrawer_chain,
        recipient: &address.recipient,
        nonce: &address.nonce,
    };
    let spec = fixtures::spec("ethereum");
    let owned =
        crate::attest::withdrawal::Owned::new(&spec, &request, &fixtures::families).unwrap();
    crate::attest::withdrawal::payload_id(&spec, &owned, U256::from(500), None).unwrap()
}

fn withdrawal_claim() -> WithdrawalClaim {
    WithdrawalClaim {
        chain: "ethereum".into(),
        withdrawal: encoded(|_| {}),
        transaction: None,
        address: AddressClaim {
            chain: "ethereum".into(),
            currency: NATIVE.into(),
            withdrawer: format!("{:#x}", fixtures::key().address()),
            withdrawer_chain: "base".into(),
            recipient: RECIPIENT.into(),
            nonce: "9".into(),
        },
        additional: None,
        hints: None,
    }
}

#[tokio::test]
async fn withdrawal_is_burned_once_whatever_transaction_is_named() {
    let mut claim = withdrawal_claim();
    let world = world().allocating(&claim);
    let pending = world.oracle.withdrawal(&claim, None).await.unwrap();
    assert!(pending.attested.is_none());
    *world.ethereum.status.lock().unwrap() = WithdrawalStatus::Executed;
    let mut read = Read::new("ethereum", 0xaa);
    claim.transaction = Some(read.tx.text.to_string());
    let missing = world.oracle.withdrawal(&claim, None).await;
    assert_eq!(word(missing), "TRANSACTION_MISSING");
    world.ethereum.add(&read);
    let silent = world.oracle.withdrawal(&claim, None).await;
    assert_eq!(word(silent), "WITHDRAWAL_NOT_IN_TRANSACTION");
    read.receipt().executions.push(Executed {
        depository: fixtures::spec("ethereum").depository.unwrap(),
        id: pending.id,
    });
    world.ethereum.add(&read);
    let first = world.oracle.withdrawal(&claim, None).await.unwrap();
    claim.transaction = None;
    let second = world.oracle.withdrawal(&claim, None).await.unwrap();
    assert!(first.attested.is_some());
    assert_eq!(first.attested, second.attested);
    // An oracle that was asked in the reverse order gets the same key.
    let elsewhere = self::world().allocating(&claim);
    *elsewhere.ethereum.status.lock().unwrap() = WithdrawalStatus::Executed;
    let unnamed = elsewhere.oracle.withdrawal(&claim, None).await.unwrap();
    assert_eq!(unnamed.attested, first.attested);
    *world.ethereum.status.lock().unwrap() = WithdrawalStatus::Expired;
    assert_eq!(
        word(world.oracle.withdrawal(&claim, None).await),
        "conflict"
    );
    // Another owner does not get the burned money, even if the allocator recorded the withdrawal.
    *world.ethereum.status.lock().unwrap() = WithdrawalStatus::Executed;
    claim.address.nonce = "10".into();
    let other = world.oracle.withdrawal(&claim, None).await.unwrap();
    assert!(other.attested.is_none());
    world.record(&claim, &claim.withdrawal);
    assert_eq!(
        word(world.oracle.withdrawal(&claim, None).await),
        "conflict"
    );
}

#[tokio::test]
async fn withdrawal_that_the_allocator_did_not_record_ends_nothing() {
    let claim = withdrawal_claim();
    for status in [WithdrawalStatus::Expired, WithdrawalStatus::Executed] {
        let world = world();
        *world.ethereum.status.lock().unwrap() = status;
        let answer = world.oracle.withdrawal(&claim, None).await.unwrap();
        assert_eq!(answer.status, WithdrawalStatus::Pending);
        assert!(answer.attested.is_none());
        // The recorded withdrawal differs from the claimed one, which is invented so that it has expired.
        world.record(&claim, &encoded(|w| w["expiration"] = json!(1_800_000_001)));
        let other = world.oracle.withdrawal(&claim, None).await;
        assert_eq!(word(other), "WITHDRAWAL_MISMATCH");
        world.record(&claim, &claim.withdrawal);
        let answer = world.oracle.withdrawal(&claim, None).await.unwrap();
        assert_eq!(answer.status, status);
        assert!(answer.attested.is_some());
    }
}

#[tokio::test]
async fn withdrawal_needs_final_state_and_an_allocator_that_answers() {
    let claim = withdrawal_claim();
    let mut world = world().allocating(&claim);
    *world.ethereum.status.lock().unwrap() = WithdrawalStatus::Expired;
    let pending = async |world: &World| {
        let answer = world.oracle.withdrawal(&claim, None).await.unwrap();
        answer.status == WithdrawalStatus::Pending && answer.attested.is_none()
    };
    for chain in [&world.ethereum, &world.aurora] {
        *chain.settled.lock().unwrap() = None;
        assert!(pending(&world).await);
        *chain.settled.lock().unwrap() = Some(fixtures::block(10));
    }
    *world.aurora.broken.lock().unwrap() = Some(ReadError::Quorum("1 of 2".into()));
    assert_eq!(word(world.oracle.withdrawal(&claim, None).await), "read");
    *world.aurora.broken.lock().unwrap() = None;
    assert!(!pending(&world).await);
    world.oracle.hub = Hub::new(world.oracle.hub.settings.clone(), Err("not asked".into()));
    let closed = world.oracle.withdrawal(&claim, None).await;
    assert_eq!(word(closed), "allocator");
}

#[tokio::test]
async fn withdrawal_is_void_when_a_block_that_it_was_judged_at_is_gone() {
    for gone in ["ethereum", "aurora"] {
        let claim = withdrawal_claim();
        let world = world().allocating(&claim);
        *world.ethereum.status.lock().unwrap() = WithdrawalStatus::Executed;
        let answer = world.oracle.withdrawal(&claim, None).await.unwrap();
        assert!(answer.attested.is_some());
        let script = match gone {
            "aurora" => &world.aurora,
            _ => &world.ethereum,
        };
        *script.canonical.lock().unwrap() = false;
        let chain = Chain {
            spec: Arc::new(fixtures::spec(gone)),
            reader: script.clone(),
            state: None,
        };
        let mut watcher = Watcher::new(world.oracle.journal.clone(), chain);
        assert_eq!(watcher.look(1000).await.unwrap().missing, 1, "{gone}");
        assert_eq!(watcher.look(1005).await.unwrap().void, 1, "{gone}");
        let again = world.oracle.withdrawal(&claim, None).await;
        assert_eq!(word(again), "journal", "{gone}");
        let halted = world.oracle.journal.halted(&vm::ChainId::new(gone)).await;
        assert!(halted.unwrap().is_some(), "{gone}");
    }
}

/// A store in which others act between a read and the commit that depends on it.
struct Slow(MemoryStore);

#[async_trait]
impl Store for Slow {
    async fn commit(&self, batch: Batch) -> Result<Outcome, StoreError> {
        self.0.commit(batch).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Vec<u8>>, StoreError> {
        let row = self.0.read(key).await;
        tokio::task::yield_now().await;
        row
    }

    async fn scan(&self, range: Range) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        self.0.scan(range).await
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

#[tokio::test]
async fn requests_that_race_get_the_first_execution() {
    let mut claim = withdrawal_claim();
    let world = world_on(Arc::new(Slow(MemoryStore::new()))).allocating(&claim);
    let id = world.oracle.withdrawal(&claim, None).await.unwrap().id;
    *world.ethereum.status.lock().unwrap() = WithdrawalStatus::Executed;
    let mut claims = vec![claim.clone()];
    for byte in [0xaa, 0xbb] {
        let mut read = Read::new("ethereum", byte);
        let depository = fixtures::spec("ethereum").depository.unwrap();
        read.receipt().executions.push(Executed { depository, id });
        world.ethereum.add(&read);
        claim.transaction = Some(read.tx.text.to_string());
        claims.push(claim.clone());
    }
    let asked = claims
        .iter()
        .map(|claim| world.oracle.withdrawal(claim, None));
    let answers = futures::future::join_all(asked).await;
    let attested: Vec<_> = answers.into_iter().map(|a| a.unwrap().attested).collect();
    assert!(attested[0].is_some());
    assert!(attested.iter().all(|other| *other == attested[0]));
}

#[tokio::test]
async fn withdrawal_must_be_what_its_address_request_says() {
    let world = world();
    let refused = async |change: fn(&mut WithdrawalClaim)| {
        let mut claim = withdrawal_claim();
        change(&mut claim);
        word(world.oracle.withdrawal(&claim, None).await)
    };
    assert_eq!(refused(|_| {}).await, "OK");
    let mismatch = "WITHDRAWAL_MISMATCH";
    assert_eq!(refused(|c| c.address.chain = "base".into()).await, mismatch);
    assert_eq!(
        refused(|c| c.address.currency = fixtures::TOKEN.into()).await,
        mismatch
    );
    assert_eq!(
        refused(|c| c.address.recipient = DEPOSITOR.into()).await,
        mismatch
    );
    for change in [
        (|w| w["calls"][0]["allowFailure"] = json!(true)) as fn(&mut serde_json::Value),
        |w| {
            let again = w["calls"][0].clone();
            w["calls"].as_array_mut().unwrap().push(again);
        },
    ] {
        let mut claim = withdrawal_claim();
        claim.withdrawal = encoded(change);
        let answer = world.oracle.withdrawal(&claim, None).await;
        assert_eq!(word(answer), "INVALID_REQUEST");
    }
    assert_eq!(
        refused(|c| c.withdrawal = "0x1234".into()).await,
        "INVALID_REQUEST"
    );
    assert_eq!(
        refused(|c| c.withdrawal = "garbage".into()).await,
        "INVALID_REQUEST"
    );
    assert_eq!(
        refused(|c| c.address.nonce = "x".into()).await,
        "INVALID_REQUEST"
    );
    let unknown = refused(|c| c.address.withdrawer_chain = "nochain".into()).await;
    assert_eq!(unknown, "CHAIN_NOT_AVAILABLE");
}

/// An initiation with the withdrawer's signature over `amount`.
fn initiation_claim(amount: u64) -> InitiationClaim {
    initiation_of(amount, U256::from(9))
}

fn initiation_of(amount: u64, nonce: U256) -> InitiationClaim {
    let mut address = withdrawal_claim().address;
    address.nonce = nonce.to_string();
    let owner = alias(
        &vm::ChainId::new("base"),
        &fixtures::address(&address.withdrawer),
    );
    let amount_word = U256::from(amount).to_be_bytes::<32>();
    let packed = [owner.as_slice(), &amount_word, &nonce.to_be_bytes::<32>()].concat();
    let text = alloy::primitives::keccak256(packed).to_string();
    let message = <sha2::Sha256 as sha2::Digest>::digest(text);
    let signature = fixtures::key().sign_message_sync(&message).unwrap();
    InitiationClaim {
        settlement: "relay".into(),
        amount: amount.to_string(),
        address,
        signature: alloy::hex::encode_prefixed(signature.as_bytes()),
    }
}

#[tokio::test]
async fn initiation_needs_the_withdrawers_word_and_balance() {
    let mut world = world();
    let closed = world.oracle.chains.get_mut("closed").unwrap();
    closed.family = Some(&vm::bitcoin::FAMILY);
    *world.hub.balance.lock().unwrap() = U256::from(500);
    let refused = async |change: fn(&mut InitiationClaim)| {
        let mut claim = initiation_claim(500);
        change(&mut claim);
        word(world.oracle.initiation(&claim, None).await)
    };
    assert_eq!(refused(|_| {}).await, "OK");
    let invalid = "OWNER_SIGNATURE_INVALID";
    assert_eq!(refused(|c| c.signature = "0x".into()).await, invalid);
    assert_eq!(refused(|c| c.amount = "499".into()).await, invalid);
    assert_eq!(refused(|c| c.address.nonce = "8".into()).await, invalid);
    assert_eq!(
        refused(|c| c.address.withdrawer = DEPOSITOR.into()).await,
        invalid
    );
    // This text is signed by withdrawers of one family.
    let other = |c: &mut InitiationClaim| {
        c.address.withdrawer_chain = "closed".into();
        c.address.withdrawer = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4".into();
    };
    assert_eq!(refused(other).await, "OWNER_UNSUPPORTED");
    assert_eq!(refused(|c| c.amount = "0".into()).await, "WITHDRAWAL_ZERO");
    assert_eq!(refused(|c| c.amount = "-1".into()).await, "INVALID_REQUEST");
    assert_eq!(
        refused(|c| c.settlement = "other".into()).await,
        "CHAIN_NOT_AVAILABLE"
    );
    let more = world.oracle.initiation(&initiation_claim(501), None).await;
    assert_eq!(word(more), "BALANCE_INSUFFICIENT");
    // A balance that is not final yet, or was spent since, does not count.
    let again = async || word(world.oracle.initiation(&initiation_claim(500), None).await);
    *world.hub.settled.lock().unwrap() = None;
    assert_eq!(again().await, "BALANCE_INSUFFICIENT");
    *world.hub.settled.lock().unwrap() = Some(fixtures::block(10));
    *world.hub.spent.lock().unwrap() = Some(U256::from(499));
    assert_eq!(again().await, "BALANCE_INSUFFICIENT");
    *world.hub.spent.lock().unwrap() = None;
    assert_eq!(again().await, "OK");
    let relay = vm::ChainId::new("relay");
    let watched = world.oracle.journal.watched(&relay, None, 9).await.unwrap();
    assert_eq!(watched[0].block, fixtures::block(10));
    // One withdrawal nonce moves one amount.
    let less = world.oracle.initiation(&initiation_claim(400), None).await;
    assert_eq!(word(less), "conflict");
    let answer = world
        .oracle
        .initiated(&initiation_claim(500))
        .await
        .unwrap();
    assert!(answer.proof.starts_with(&format!("{:#x}", answer.address)));
    assert_eq!(answer.proof.len(), 2 + 2 * (20 + 32 + 32));
    let more = world.oracle.initiated(&initiation_claim(501)).await;
    assert_eq!(word(more), "WITHDRAWAL_ADDRESS_BALANCE_INSUFFICIENT");
}

#[tokio::test]
async fn additional_addresses_compare_by_bytes() {
    let mut claim = withdrawal_claim();
    claim.address.recipient = address(RECIPIENT)
        .to_string()
        .to_uppercase()
        .replace("0X", "0x");
    assert_eq!(word(world().oracle.withdrawal(&claim, None).await), "OK");
}

/// An attacker reuses a withdrawer's signature for a withdrawal of the same amount to itself, in another currency, or
/// on another chain.
#[tokio::test]
async fn a_withdrawers_signature_serves_the_withdrawal_that_its_nonce_commits_to() {
    let bound = |settlement: &str| {
        let address = withdrawal_claim().address;
        let owner = fixtures::address(&address.withdrawer);
        let spec = fixtures::spec("ethereum");
        let account = vm::protocol::hub::WithdrawalAccount {
            chain: &vm::ChainId::new("ethereum"),
            depository: spec.depository.as_ref().unwrap(),
            currency: &fixtures::address(NATIVE),
            recipient: &fixtures::address(RECIPIENT),
            owner: alias(&vm::ChainId::new("base"), &owner),
            nonce: U256::from(7) << 128,
        };
        account.bound_nonce(settlement)
    };
    let nonce = bound("relay");
    assert_eq!(nonce >> 128, U256::from(7));
    let uses: [fn(&mut InitiationClaim); 3] = [
        |claim| claim.address.recipient = DEPOSITOR.into(),
        |claim| claim.address.currency = fixtures::TOKEN.into(),
        |claim| claim.address.chain = "base".into(),
    ];
    let other = |change: fn(&mut InitiationClaim)| {
        let mut claim = initiation_of(500, nonce);
        change(&mut claim);
        claim
    };
    let world_of = |bound_nonces| {
        let mut world = world();
        world.oracle.bound_nonces = bound_nonces;
        *world.hub.balance.lock().unwrap() = U256::from(500);
        world
    };
    // In environments without real money any withdrawal nonce is accepted.
    for change in uses {
        let free = world_of(false);
        assert_eq!(
            word(free.oracle.initiation(&other(change), None).await),
            "OK"
        );
    }
    let world = world_of(true);
    let ask = async |claim: InitiationClaim| word(world.oracle.initiation(&claim, None).await);
    let unbound = "WITHDRAWAL_NONCE_UNBOUND";
    for change in uses {
        assert_eq!(ask(other(change)).await, unbound);
    }
    assert_eq!(ask(initiation_claim(500)).await, unbound);
    assert_eq!(ask(initiation_of(500, bound("other"))).await, unbound);
    assert_eq!(
        ask(initiation_of(500, nonce ^ U256::from(1))).await,
        unbound
    );
    // The first half of the nonce is committed to as well.
    assert_eq!(
        ask(initiation_of(500, nonce ^ (U256::from(1) << 128))).await,
        unbound
    );
    assert_eq!(ask(initiation_of(500, nonce)).await, "OK");
}

/// The service does not read the 64 transactions of a claim that the solver did not sign.
#[tokio::test]
async fn what_lacks_its_solvers_word_is_refused_before_anything_is_read() {
    let ours = "0xb7064203155a802ad4966746909a304700000000000000000000000000000001";
    let fixture = Fixture::ordering(|order| order.salt = ours.into());
    let world = world().playing(&fixture);
    let reads = || world.ethereum.reads.load(SeqCst) + world.base.reads.load(SeqCst);
    let ask = async |signature: Option<String>| {
        let mut fill = fill_claim(&fixture);
        fill.order.solver_signature.clone_from(&signature);
        let mut refund = refund_claim(&fixture);
        refund.order.solver_signature = signature;
        let fill = word(world.oracle.fill(&fill, None).await);
        (fill, word(world.oracle.refund(&refund, None).await))
    };
    let missing = "SOLVER_SIGNATURE_REQUIRED";
    assert_eq!(ask(None).await, (missing, missing));
    let wrong = "SOLVER_SIGNATURE_INVALID";
    assert_eq!(ask(Some(fixtures::sign(B256::ZERO))).await, (wrong, wrong));
    assert_eq!(reads(), 0);
    let (terms, funded) = fixture.funded().unwrap();
    let fill = fixtures::vouch(crate::attest::statement::Outcome::Fill, &terms, &funded);
    assert_eq!(ask(Some(fill)).await, ("OK", wrong));
    assert_eq!(reads(), 2);
}

#[tokio::test]
async fn calls_that_are_none_are_refused_before_anything_is_read() {
    for (calls, expected) in [(&["0x12"][..], "INVALID_REQUEST"), (&[], "OK")] {
        let calls = calls.iter().map(|call| (*call).to_owned()).collect();
        let fixture = Fixture::ordering(|order| order.output.calls = calls);
        let world = world().playing(&fixture);
        assert_eq!(word(world.fill(&fixture).await), expected);
        let reads = world.ethereum.reads.load(SeqCst) + world.base.reads.load(SeqCst);
        assert_eq!(reads, if expected == "OK" { 2 } else { 0 });
    }
}
