//! Consistent rows of every kind, for tests: a valid statement and a void one, and a request that was seen, paid and
//! settled.

use alloy::primitives::{B256, U256};
use vm::protocol::signature::Signature;

use super::{
    Batch, Key, Store,
    rows::{
        account, attempt,
        claim::{Claim, Leg, Stage},
        consumption,
        cursor::{Again, Cursor, Mark},
        dead::{self, Dead},
        delivery::{self, Delivery},
        deposit_tx,
        entry::{self, Consumed, Entry, Fact},
        event, facts,
        halt::{self, Halt},
        history, integrator,
        lease::{self, Lease},
        mark, open, order, outlay,
        parked::{self, Parked},
        pause::{self, Paused},
        request, reservation,
        settlement::{self, Part, Settlement},
        signature, slot,
        transaction::{self, Outcome, Tracked},
        tx_details,
        void::{self, Void},
        watch,
    },
};
use crate::{
    integrator::{Integrator, Key as IntegratorKey, Scope, Tier},
    request::{
        fact::{Facts, Purpose, Standing},
        fixtures,
        reason::{FailReason, RefundFailReason},
        tx_details::{Change, TxDetails},
    },
};

mod charted;
mod explained;

pub use explained::evidence;
mod landing;
mod listed;

use self::listed::{listed as listing, quoted};
pub use self::{
    landing::{attempt, attempt_id, lane},
    listed::{leading, summary},
};

/// The valid statement.
pub const STATEMENT: &str = "deposit/base/0x1";
/// The chain and network of all rows.
pub const NETWORK: &str = "origin";
/// The nonce of the payment that may still land.
pub const NONCE: u64 = 7;

fn b(byte: u8) -> B256 {
    B256::repeat_byte(byte)
}

/// The request of the fixture.
pub fn id() -> B256 {
    fixtures::request(1).id
}

pub fn statement() -> Entry {
    Entry {
        digest: b(1),
        at: 300,
        slot: Some("slot".into()),
        consumes: vec![Consumed {
            what: "payment".into(),
            by: "outcome".into(),
        }],
        facts: vec![Fact {
            chain: NETWORK.into(),
            transaction: "0x1".into(),
            number: 7,
            hash: b(2),
            parent: b(3),
            time: 5,
        }],
        own: false,
        shown: Vec::new(),
        payload: vec![9, 8].into(),
    }
}

fn deposit() -> B256 {
    fixtures::deposit(1, Standing::Final).onchain_id
}

fn leg(purpose: Purpose, nonce: u64, stage: Stage) -> Leg {
    Leg {
        purpose,
        deposit: deposit(),
        reason: None,
        network: NETWORK.into(),
        lane: NETWORK.into(),
        attempt: attempt_id(nonce),
        currency: fixtures::USDC.into(),
        amount: U256::from(5),
        payments: Vec::new(),
        transaction: None,
        stage,
        wasted: U256::ZERO,
        begun: 0,
    }
}

pub fn claim() -> Claim {
    Claim {
        failure: None,
        legs: vec![
            leg(Purpose::Excess, NONCE, Stage::Open),
            leg(Purpose::Fill, NONCE - 1, Stage::Final),
        ],
        parked: vec![deposit()],
        unpaid: Vec::new(),
        pauses: Vec::new(),
        waits: Some(5),
        waiting: Vec::new(),
        refused: Vec::new(),
        released: vec![deposit()],
    }
}

/// Every row, unordered.
pub fn rows() -> Vec<(Key, Vec<u8>)> {
    [
        journal(),
        index(),
        solver(),
        events(),
        seen(),
        listing(),
        quoted(),
        charted::charted(),
        explained::explained(),
    ]
    .concat()
}

/// The number of rows.
pub fn count() -> u64 {
    rows().len() as u64
}

fn journal() -> Vec<(Key, Vec<u8>)> {
    let stands = statement();
    let gone = Void {
        entry: Entry {
            slot: None,
            consumes: Vec::new(),
            ..statement()
        },
        why: "reorg".into(),
        at: 9,
    };
    let halt = Halt {
        why: "reorg".into(),
        at: 9,
        also: Vec::new(),
        more: 0,
    };
    let fact = &stands.facts[0];
    let key = k256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
    let signer = alloy::primitives::Address::from_private_key(&key);
    let (made, odd) = key.sign_prehash_recoverable(b(1).as_slice()).unwrap();
    let bytes = [&made.to_bytes()[..], &[27 + odd.to_byte()]].concat();
    let bytes: [u8; 65] = bytes.try_into().unwrap();
    let made = Signature::from_bytes(&bytes).unwrap();
    vec![
        (entry::key(STATEMENT), stands.encode().unwrap()),
        (slot::key("slot"), slot::encode(STATEMENT)),
        (consumption::key("payment"), consumption::encode("outcome")),
        (watch::key(fact, STATEMENT), watch::encode(fact, false)),
        (void::key(STATEMENT, 0), gone.encode().unwrap()),
        (halt::key(NETWORK), halt.encode().unwrap()),
        (
            signature::key(&b(1), &signer),
            signature::encode(made.as_bytes()),
        ),
    ]
}

fn index() -> Vec<(Key, Vec<u8>)> {
    let (request, deposit) = (fixtures::request(1), fixtures::deposit(1, Standing::Final));
    let facts = Facts {
        version: 1,
        deposits: vec![deposit.clone()],
        ..Facts::default()
    };
    let cursor = Cursor {
        next: 8,
        marks: vec![Mark {
            number: 7,
            hash: b(7),
        }],
        again: Again::default(),
    };
    let seen = deposit_tx::Seen {
        hash: deposit.place.hash,
        request: Some(request.id),
    };
    let tracked = Tracked {
        text: deposit.transaction.clone(),
        requests: vec![request.id],
        claimed: Some(b(7)),
        outcome: Outcome::Included,
        tries: 0,
        first: 1,
        next: 1,
    };
    let position = (NETWORK, deposit.place.number);
    vec![
        (
            request::key(&request.id),
            request::encode(&request).unwrap(),
        ),
        (order::key(&request.order_id), order::encode(&request.id)),
        (facts::key(&request.id), facts::encode(&facts).unwrap()),
        (super::rows::cursor::key(NETWORK), cursor.encode().unwrap()),
        (
            deposit_tx::key(position.0, position.1, &deposit.onchain_id),
            deposit_tx::encode(&seen).unwrap(),
        ),
        (
            transaction::settled(NETWORK, &[1]),
            tracked.encode().unwrap(),
        ),
        (open::key(&request.id), open::encode(5, &deposit.onchain_id)),
    ]
}

fn solver() -> Vec<(Key, Vec<u8>)> {
    let settled = Settlement {
        purpose: Purpose::Fill,
        deposit: deposit(),
        transaction: "0x1".into(),
        option: 0,
        recorded: true,
        deposited: Part::Pending,
        outcome: Part::Pending,
        since: 1,
        tries: 0,
        not_before: 0,
        why: None,
        refused: false,
    };
    let given = fixtures::deposit(1, Standing::Final);
    let parked = Parked {
        network: given.network,
        transaction: given.transaction,
        depositor: given.depositor,
        currency: given.currency,
        amount: given.amount,
        reason: FailReason::DepositChainMismatch,
        why: RefundFailReason::ManualRefundRequired,
        note: "no option".into(),
        minor: false,
        since: 1,
    };
    let paused = Paused {
        why: "a drill".into(),
        since: 1,
    };
    let lease = Lease { fence: 1, since: 1 };
    vec![
        (super::rows::claim::key(&id()), claim().encode().unwrap()),
        (account::key(NETWORK), lane(NONCE + 1).encode().unwrap()),
        (outlay::key(&id()), outlay::sample().encode().unwrap()),
        (
            attempt::key(NETWORK, &attempt_id(NONCE)),
            attempt().encode().unwrap(),
        ),
        (
            attempt::resource(NETWORK, &attempt_id(NONCE)),
            attempt::holder(&attempt_id(NONCE)),
        ),
        (
            reservation::key(NETWORK, &[0xab], &attempt_id(NONCE)),
            reservation::encode(U256::from(5)),
        ),
        (lease::key("lane/origin"), lease.encode().unwrap()),
        (
            settlement::key(&id(), &deposit()),
            settled.encode().unwrap(),
        ),
        (parked::key(&id(), &deposit()), parked.encode().unwrap()),
        (pause::key(), paused.encode().unwrap()),
    ]
}

fn events() -> Vec<(Key, Vec<u8>)> {
    let (request, seen) = (fixtures::request(1), Facts::default());
    let mut status_event = crate::request::event::now(&request, &seen);
    status_event.key = Some("app".into());
    let app = Integrator {
        label: "app".into(),
        scopes: [Scope::Quote].into(),
        tier: Tier::Default,
        keys: vec![integrator_key()],
        webhook: None,
        wallet: None,
        proved_at: 0,
        created_at: 5,
        revoked_at: None,
    };
    let delivery = Delivery::fresh(5);
    let dead = Dead {
        why: "it was refused".into(),
        at: 9,
        delivery: delivery.clone(),
    };
    vec![
        (delivery::key("app", 1), delivery.encode().unwrap()),
        (dead::key("app", 1), dead.encode().unwrap()),
        (event::key(1), event::encode(&status_event).unwrap()),
        (integrator::key("app"), integrator::encode(&app).unwrap()),
        (history::key(&id(), 1), history::lead(&id()).1),
        (mark::key(mark::WEBHOOKS), mark::encode(1)),
    ]
}

/// A transaction in full.
pub fn tx_details() -> TxDetails {
    TxDetails {
        from: fixtures::USER.into(),
        to: None,
        data: Some(vec![9].into()),
        value: U256::from(5),
        fee: U256::from(255),
        place: fixtures::place(7),
        success: true,
        changes: vec![Change {
            address: fixtures::USER.into(),
            currency: fixtures::USDC.into(),
            negative: true,
            amount: U256::from(6),
        }],
        prices: Vec::new(),
    }
}

/// A wanted transaction.
pub fn wanted() -> tx_details::Row {
    tx_details::Row {
        network: NETWORK.into(),
        next: 300,
        transaction: "0xa".into(),
        wanted: tx_details::Wanted {
            request: id(),
            block: b(2),
            tries: 3,
        },
    }
}

fn seen() -> Vec<(Key, Vec<u8>)> {
    vec![
        (wanted().key(), wanted().value().unwrap()),
        (
            tx_details::seen(NETWORK, "0xA"),
            tx_details::encode_seen(&tx_details()).unwrap(),
        ),
    ]
}

/// The fixture's only integrator key.
pub fn integrator_key() -> IntegratorKey {
    IntegratorKey {
        digest: [9; 32],
        created_at: 5,
        expires_at: None,
    }
}

/// Writes `rows` into `store`.
pub async fn fill(store: &dyn Store, rows: Vec<(Key, Vec<u8>)>) {
    let put = |batch: Batch, (key, value)| batch.put(key, value);
    let batch = rows.into_iter().fold(Batch::new(), put);
    store.commit(batch).await.unwrap();
}
