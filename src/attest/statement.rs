//! A statement to be signed, in the terms in which two statements can contradict each other.
//!
//! Pure. A statement has a key, holds a slot, excludes others and consumes deposits and payments:
//!
//! | statement | key | slot | excludes | consumes |
//! |---|---|---|---|---|
//! | deposit | `deposit/<chain>/<tx>/<mode>/<block hash>` | `deposit/<chain>/<tx>/<mode>` | | |
//! | fill, refund | `outcome/<order>/<ids>` | | | `deposit/<id>` each, `payment/<chain>/<tx>/<index>` each; `return/<id>` each must be free |
//! | withdrawal | `withdrawal/<chain>/<id>/<verdict>` | | the other verdict | |
//! | recover | `recover/<idempotency key>` | | | `deposit/<id>` |
//! | initiation | `initiation/<idempotency key>` | | | `initiation/<account>/<nonce>` |
//! | generic mapping | `mapping/<account>/<id>` | | | |
//! | trigger | `trigger/<hash>` | | | |
//! | payload params | `payload/<payload id>` | | | `payload/<withdrawal address>` |
//! | authorization | `authorization/<request hash>` | | | `initiation/<account>/<nonce>` |
//! | inclusion | `inclusion/<request hash>/<digest>` | | | `inclusion/<request hash>/<index>` each, for its hash |
//! | exchange of a deposit | `withdraw-and-<fill or refund>/<onchain id>/<nonce>` | | | nothing; `deposit/<id>` and `return/<id>` must be free |
//! | transfer | `transfer/<idempotency key>` | | | `transfer/<account>/<nonce>` |
//! | one that a returned deposit allows | | | | `return/<id>`; `deposit/<id>` must be free or serve its recovery |
//!
//! A void statement frees its slot, deposits and payments. What else it consumes still serves it: its signature is out,
//! and the same statement may be signed again.
//!
//! A fill and a refund that move the same are one statement, whichever was claimed first. Where fees make them
//! differ, the digest under the shared key excludes the second.
//!
//! Everything consumed serves the statement's own key, but an index, which serves its hash: statements that name it may
//! name others besides. `<tx>` is `0x` and the hex of the transaction's canonical
//! bytes, so that spellings do not matter; `<ids>` is the sha256 of the sorted onchain ids; a transfer's `<nonce>` is
//! the sha256 of its text in lower case. The store contains these
//! texts: after a change of a text the journal no longer finds what was signed.

mod message;

use std::{collections::HashSet, fmt};

use alloy::{hex::encode_prefixed, primitives::Bytes};
use sha2::{Digest, Sha256};
use vm::{
    evidence::Rule,
    types::{B256, Block, ChainId, EvmAddress, TxRef},
};

/// The prefix of a consumed payment's name.
pub const PAYMENT: &str = "payment/";
/// The prefix of the slot of a transaction's deposits, and of a consumed deposit's name.
pub const DEPOSIT: &str = "deposit/";

/// Whether the consumed `what` is a payment.
pub fn is_payment(what: &str) -> bool {
    what.starts_with(PAYMENT)
}

/// Whether the consumed `what` is free once its statement is void: a deposit or a payment, of which the chain may show
/// something else now. All else says that a signature is out, which no reorg takes back.
pub fn is_freed(what: &str) -> bool {
    what.starts_with(DEPOSIT) || is_payment(what)
}

/// A statement to be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub key: String,
    /// The EIP-712 digest that the signer signs.
    pub digest: B256,
    /// A slot that only one statement holds at a time; the journal checks its holder first.
    pub slot: Option<String>,
    /// Keys of statements that exclude this one.
    pub excludes: Vec<String>,
    pub consumes: Vec<Consumption>,
    /// What must serve no statement when this one is signed first, and may serve another one later.
    pub free: Vec<String>,
    /// What must serve this or no statement when this one is signed first.
    pub only: Vec<Consumption>,
    /// Whether the consumed payments are the solver's own.
    pub own: bool,
    pub facts: Vec<Fact>,
    /// The rule by which its deposits' block counted as final; `None` for the own rule of each chain.
    pub rule: Option<Rule>,
    /// Chains whose state the statement is about, besides those of the facts: the journal does not sign while one of
    /// them is halted.
    pub chains: Vec<ChainId>,
    /// Opaque to the journal; [`Journal::entry`](super::journal::Journal::entry) returns it.
    pub payload: Bytes,
}

/// `what` (an onchain id or a payment) may serve only `by` (a statement's key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumption {
    pub what: String,
    pub by: String,
}

/// A block that the statement depends on, for the watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub chain: ChainId,
    /// Empty where the statement depends on the block's state.
    pub transaction: String,
    pub block: Block,
    /// The block is not final by the chain's own rule: if it leaves the chain, only the statements that depend on it
    /// are void.
    pub early: bool,
}

/// How fast a deposit is credited; the two modes are two statements about one deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Fast,
    Slow,
}

/// How an order ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Fill,
    Refund,
}

/// How a withdrawal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Executed,
    Expired,
}

impl Statement {
    /// The statement about all deposits of `tx` in `block`, credited in `mode`.
    pub fn deposit(chain: &ChainId, tx: &TxRef, mode: Mode, block: &Block, digest: B256) -> Self {
        let slot = format!("{DEPOSIT}{chain}/{}/{mode}", canonical(tx));
        let statement = Self::new(format!("{slot}/{}", block.hash), digest);
        Self {
            slot: Some(slot),
            ..statement
        }
        .resting_on(chain, tx, block)
    }

    /// The statement that `order` ended for the deposits with these onchain ids, in any order.
    pub fn outcome(order: B256, deposits: &[B256], digest: B256) -> Self {
        let mut ids = deposits.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let mut statement = Self::new(outcome_key(order, &ids), digest);
        statement.free.extend(ids.iter().map(return_of));
        ids.iter().fold(statement, |statement, id| {
            statement.consuming(format!("deposit/{id}"))
        })
    }

    /// The statement that the withdrawal with this id (or request hash) on `chain` ended.
    pub fn withdrawal(chain: &ChainId, id: B256, verdict: Verdict, digest: B256) -> Self {
        let key = |verdict| format!("withdrawal/{chain}/{id}/{verdict}");
        let mut statement = Self::new(key(verdict), digest);
        statement.excludes.push(key(verdict.opposite()));
        statement.chains.push(chain.clone());
        statement
    }

    /// The initiation of the withdrawal with this idempotency key, as of the state of `hub`. The withdrawer's
    /// signature covers only account, amount and withdrawal nonce, so each such pair of account and nonce serves one
    /// initiation.
    pub fn initiation(
        hub: &ChainId,
        (account, nonce): (EvmAddress, B256),
        idempotency: B256,
        digest: B256,
    ) -> Self {
        let mut statement = Self::new(format!("initiation/{idempotency}"), digest);
        statement.chains.push(hub.clone());
        statement.asked_by(account, nonce)
    }

    /// Adds that the owner of `account` asked for this withdrawal under `nonce`. One signature of an owner is good at
    /// several routes; it serves one statement.
    #[must_use]
    pub fn asked_by(self, account: EvmAddress, nonce: B256) -> Self {
        self.consuming(format!("initiation/{account:#x}/{nonce}"))
    }

    /// The transfer between hub accounts with this idempotency key, as of the state of `hub`. Each pair of account and
    /// nonce serves one transfer.
    pub fn transfer(
        hub: &ChainId,
        (account, nonce): (EvmAddress, &str),
        idempotency: B256,
        digest: B256,
    ) -> Self {
        let mut statement = Self::new(format!("transfer/{idempotency}"), digest);
        statement.chains.push(hub.clone());
        let nonce = B256::from_slice(&Sha256::digest(nonce.to_lowercase()));
        statement.consuming(format!("transfer/{account:#x}/{nonce}"))
    }

    /// Adds that a deposit which returned to its depositor by the recovery with this idempotency key allows the
    /// statement. A deposit allows one, and none where it serves an outcome; it serves none afterwards.
    #[must_use]
    pub fn returning(mut self, deposit: B256, recovery: B256) -> Self {
        self.only.push(Consumption {
            what: format!("deposit/{deposit}"),
            by: recover_key(recovery),
        });
        self.consuming(return_of(&deposit))
    }

    /// The statement that a deposit returns to its depositor, so it serves no outcome of its order.
    pub fn recover(deposit: B256, idempotency: B256, digest: B256) -> Self {
        let statement = Self::new(recover_key(idempotency), digest);
        statement.consuming(format!("deposit/{deposit}"))
    }

    /// Adds a block on which the statement depends because of a transaction in it.
    #[must_use]
    pub fn resting_on(self, chain: &ChainId, tx: &TxRef, block: &Block) -> Self {
        self.resting(Fact {
            chain: chain.clone(),
            transaction: tx.text.to_string(),
            block: block.clone(),
            early: false,
        })
    }

    /// Adds a block on which the statement depends because of its state.
    #[must_use]
    pub fn as_of(self, chain: &ChainId, block: &Block) -> Self {
        self.resting(Fact {
            chain: chain.clone(),
            transaction: String::new(),
            block: block.clone(),
            early: false,
        })
    }

    /// Marks the blocks as not yet final by the chain's own rule.
    #[must_use]
    pub fn early(mut self) -> Self {
        self.facts.iter_mut().for_each(|fact| fact.early = true);
        self
    }

    /// Sets the rule by which its deposits' block counted as final.
    #[must_use]
    pub fn judged_by(self, rule: Rule) -> Self {
        let rule = Some(rule);
        Self { rule, ..self }
    }

    /// Consumes a payment; `index` is its index in the transaction.
    #[must_use]
    pub fn paid_by(self, chain: &ChainId, tx: &TxRef, index: u32) -> Self {
        self.paid_by_all([(chain, tx, index)])
    }

    /// Consumes payments, each once.
    #[must_use]
    pub fn paid_by_all<'a>(
        mut self,
        payments: impl IntoIterator<Item = (&'a ChainId, &'a TxRef, u32)>,
    ) -> Self {
        let known = self.consumes.iter().map(|known| known.what.clone());
        let mut known: HashSet<String> = known.collect();
        for (chain, tx, index) in payments {
            let what = format!("{PAYMENT}{chain}/{}/{index}", canonical(tx));
            let by = self.key.clone();
            if known.insert(what.clone()) {
                self.consumes.push(Consumption { what, by });
            }
        }
        self
    }

    /// Sets whether the payments are the solver's own.
    #[must_use]
    pub fn by_solver(self, own: bool) -> Self {
        Self { own, ..self }
    }

    /// Keeps a payload for callers that read the entry later.
    #[must_use]
    pub fn keeping(self, payload: impl Into<Bytes>) -> Self {
        Self {
            payload: payload.into(),
            ..self
        }
    }

    /// The first part of the key, for metrics.
    pub fn kind(&self) -> &str {
        self.key.split('/').next().unwrap_or_default()
    }

    fn new(key: String, digest: B256) -> Self {
        let (slot, payload) = (None, Bytes::new());
        let (excludes, consumes) = (Vec::new(), Vec::new());
        Self {
            key,
            digest,
            slot,
            excludes,
            consumes,
            free: Vec::new(),
            only: Vec::new(),
            own: false,
            facts: Vec::new(),
            rule: None,
            chains: Vec::new(),
            payload,
        }
    }

    fn resting(mut self, fact: Fact) -> Self {
        if !self.facts.contains(&fact) {
            self.facts.push(fact);
        }
        self
    }

    fn consuming(mut self, what: String) -> Self {
        let consumption = Consumption {
            what,
            by: self.key.clone(),
        };
        if !self.consumes.contains(&consumption) {
            self.consumes.push(consumption);
        }
        self
    }
}

impl Verdict {
    fn opposite(self) -> Self {
        match self {
            Self::Executed => Self::Expired,
            Self::Expired => Self::Executed,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fill => "fill",
            Self::Refund => "refund",
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Executed => "executed",
            Self::Expired => "expired",
        })
    }
}

/// `ids` are sorted.
fn outcome_key(order: B256, ids: &[B256]) -> String {
    let subject = B256::from_slice(&Sha256::digest(ids.concat()));
    format!("outcome/{order}/{subject}")
}

fn recover_key(idempotency: B256) -> String {
    format!("recover/{idempotency}")
}

/// What a statement consumes that a returned deposit allows.
fn return_of(deposit: &B256) -> String {
    format!("return/{deposit}")
}

/// A transaction's id as it stands in keys.
pub fn canonical(tx: &TxRef) -> String {
    encode_prefixed(&tx.bytes)
}

#[cfg(test)]
mod tests {
    use vm::U256;

    use super::*;

    fn b(byte: u8) -> B256 {
        B256::repeat_byte(byte)
    }

    fn tx(text: &str, bytes: &[u8]) -> TxRef {
        TxRef {
            text: text.into(),
            bytes: bytes.to_vec().into(),
            hint: None,
        }
    }

    fn block(byte: u8) -> Block {
        Block {
            number: 7,
            hash: b(byte),
            parent: b(0),
            time: 1000,
        }
    }

    const ID: &str = "0x0101010101010101010101010101010101010101010101010101010101010101";
    const ORDER: &str = "0x0909090909090909090909090909090909090909090909090909090909090909";

    fn base() -> ChainId {
        ChainId::new("base")
    }

    /// The texts are stored: after a change the journal would not find what was signed.
    #[test]
    fn keys_never_change() {
        let deposit =
            Statement::deposit(&base(), &tx("0xAB", &[0xab]), Mode::Fast, &block(1), b(2));
        assert_eq!(deposit.key, format!("deposit/base/0xab/fast/{ID}"));
        assert_eq!(deposit.slot.as_deref(), Some("deposit/base/0xab/fast"));
        assert_eq!((deposit.excludes.len(), deposit.consumes.len()), (0, 0));
        assert_eq!(deposit.facts[0].transaction, "0xAB");

        let fill = Statement::outcome(b(9), &[b(2), b(1)], b(3));
        // sha256 of 32 bytes of 1 and 32 bytes of 2.
        let hash = "0xf818afd37a6dc3bc92fb44731011277006db4efa6e9023cd7468c02335d22a4d";
        assert_eq!(fill.key, format!("outcome/{ORDER}/{hash}"));
        assert!(fill.excludes.is_empty());
        let returns = [format!("return/{ID}"), format!("return/{}", b(2))];
        assert_eq!(fill.free, returns);
        let fill = fill.paid_by(&base(), &tx("AB", &[0xab]), 4);
        let what: Vec<_> = fill.consumes.iter().map(|c| c.what.as_str()).collect();
        let second = format!("deposit/{}", b(2));
        assert_eq!(
            what,
            [&format!("deposit/{ID}"), &second, "payment/base/0xab/4"]
        );
        assert!(fill.consumes.iter().all(|c| c.by == fill.key));

        let executed = Statement::withdrawal(&base(), b(1), Verdict::Executed, b(3));
        assert_eq!(executed.key, format!("withdrawal/base/{ID}/executed"));
        assert_eq!(executed.excludes, [format!("withdrawal/base/{ID}/expired")]);

        let once = (EvmAddress::repeat_byte(7), b(2));
        let initiation = Statement::initiation(&base(), once, b(1), b(3));
        assert_eq!(initiation.key, format!("initiation/{ID}"));

        let transfer = |nonce| Statement::transfer(&base(), (once.0, nonce), b(1), b(3));
        assert_eq!(transfer("").key, format!("transfer/{ID}"));
        // sha256 of nothing.
        let hash = "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let what = format!("transfer/{:#x}/{hash}", once.0);
        assert_eq!(transfer("").consumes[0].what, what);
        assert_eq!(transfer("aBc"), transfer("AbC"));
        assert_ne!(transfer("abc"), transfer("abd"));

        let returning = initiation.returning(b(1), b(9));
        let recover = Statement::recover(b(1), b(9), b(3));
        assert_eq!(returning.only, recover.consumes);
        assert_eq!(recover.key, format!("recover/{ORDER}"));
        let what = &returning.consumes.last().unwrap().what;
        assert_eq!(*what, format!("return/{ID}"));
    }

    /// The same of messages that are no executions.
    #[test]
    fn keys_of_messages_never_change() {
        let once = (EvmAddress::repeat_byte(7), b(2));
        let mapping = Statement::mapping(EvmAddress::repeat_byte(7), b(1), b(3));
        let account = "0x0707070707070707070707070707070707070707";
        assert_eq!(mapping.key, format!("mapping/{account}/{ID}"));

        let trigger = Statement::trigger(&base(), b(1), b(3));
        assert_eq!(trigger.key, format!("trigger/{ID}"));
        assert_eq!(trigger.chains, [base()]);

        let address = EvmAddress::repeat_byte(7);
        let payload = Statement::payload(&base(), address, b(1), b(3));
        assert_eq!(payload.key, format!("payload/{ID}"));
        assert_eq!(payload.consumes[0].what, format!("payload/{account}"));
        let authorization = Statement::authorization(&base(), once, b(1), b(3));
        assert_eq!(authorization.key, format!("authorization/{ID}"));
        let initiation = Statement::initiation(&base(), once, b(9), b(3));
        let (one, other) = (&authorization.consumes[0], &initiation.consumes[0]);
        assert_eq!(one.what, other.what);
        assert_ne!(one.by, other.by);
        let hashes = [(U256::from(2), b(9))];
        let inclusion = Statement::inclusion(&base(), b(1), &hashes, b(1));
        assert_eq!(inclusion.key, format!("inclusion/{ID}/{ID}"));
        let index = Consumption {
            what: format!("inclusion/{ID}/2"),
            by: format!("hash/{ORDER}"),
        };
        assert_eq!(inclusion.consumes, [index]);

        let exchange = Statement::exchange(&base(), (Outcome::Fill, b(1), b(9)), b(3));
        assert_eq!(exchange.key, format!("withdraw-and-fill/{ID}/{ORDER}"));
        let free = ["deposit", "return"].map(|kind| format!("{kind}/{ID}"));
        assert_eq!(exchange.free, free);
        assert!(exchange.consumes.is_empty());
    }

    #[test]
    fn spelling_and_order_make_no_second_statement() {
        let lower = Statement::deposit(&base(), &tx("0xab", &[0xab]), Mode::Slow, &block(1), b(2));
        let upper = Statement::deposit(&base(), &tx("AB", &[0xab]), Mode::Slow, &block(1), b(2));
        assert_eq!(lower.key, upper.key);
        let one = Statement::outcome(b(9), &[b(1), b(2), b(1)], b(3));
        let two = Statement::outcome(b(9), &[b(2), b(1)], b(3));
        assert_eq!(one, two);
    }

    #[test]
    fn what_differs_has_keys_of_its_own() {
        let deposit = |chain: &str, byte, mode, hash| {
            let chain = ChainId::new(chain);
            Statement::deposit(&chain, &tx("t", &[byte]), mode, &block(hash), b(2)).key
        };
        let first = deposit("base", 1, Mode::Slow, 1);
        for other in [
            deposit("zora", 1, Mode::Slow, 1),
            deposit("base", 2, Mode::Slow, 1),
            deposit("base", 1, Mode::Fast, 1),
            deposit("base", 1, Mode::Slow, 2),
        ] {
            assert_ne!(first, other);
        }
        let outcome = |order, ids: &[B256]| Statement::outcome(order, ids, b(3)).key;
        assert_ne!(outcome(b(9), &[b(1)]), outcome(b(8), &[b(1)]));
        assert_ne!(outcome(b(9), &[b(1)]), outcome(b(9), &[b(1), b(2)]));
    }

    #[test]
    fn opposites_exclude_each_other() {
        let executed = Statement::withdrawal(&base(), b(1), Verdict::Executed, b(3));
        let expired = Statement::withdrawal(&base(), b(1), Verdict::Expired, b(4));
        assert_eq!(
            (&executed.excludes[0], &expired.excludes[0]),
            (&expired.key, &executed.key)
        );
    }

    #[test]
    fn facts_and_consumption_are_listed_once() {
        let paid = Statement::outcome(b(9), &[b(1)], b(3))
            .paid_by(&base(), &tx("t", &[1]), 0)
            .paid_by(&base(), &tx("t", &[1]), 0)
            .resting_on(&base(), &tx("t", &[1]), &block(1))
            .resting_on(&base(), &tx("t", &[1]), &block(1))
            .as_of(&base(), &block(2))
            .as_of(&base(), &block(2));
        assert_eq!((paid.consumes.len(), paid.facts.len()), (2, 2));
        assert_eq!(paid.kind(), "outcome");
    }
}
