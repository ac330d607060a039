//! How much is acted on in its first block. A reorg may take all of it at once, so it is bounded for each network and
//! currency, however many deposits it comes in.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use vm::{B256, Block, Head, U256};

use super::{Network, due::block};
use crate::request::fact::Deposit;

/// How many times `oneBlockUpTo` of a currency may be acted on before any of it is final for the chain.
pub const TOGETHER: u64 = 10;

/// Milliseconds between two questions for a network's first head.
const PAUSE: u64 = 1_000;

/// What was acted on and is not final for its chain yet. It is not stored: after a start nothing is acted on early
/// until what was acted on before is final.
#[derive(Default)]
pub struct Soon {
    all: Mutex<HashMap<String, Ledger>>,
    /// When networks were asked for their first head, in unix milliseconds.
    asked: Mutex<HashMap<String, u64>>,
}

struct Ledger {
    /// The first head that was seen.
    began: Block,
    /// By onchain id.
    taken: HashMap<B256, Taken>,
}

struct Taken {
    currency: String,
    amount: U256,
    block: Block,
}

impl Soon {
    /// Notes the first head of a network.
    pub fn begin(&self, network: &str, head: &Head) {
        self.all()
            .entry(network.to_owned())
            .or_insert_with(|| Ledger {
                began: head.block.clone(),
                taken: HashMap::new(),
            });
    }

    /// Whether a network's first head is asked for at `now` (unix milliseconds): where it is not known, once within
    /// [`PAUSE`].
    pub fn asks(&self, network: &str, now: u64) -> bool {
        if self.all().contains_key(network) {
            return false;
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = asked.entry(network.to_owned()).or_default();
        let due = now >= before.saturating_add(PAUSE);
        if due {
            *before = now;
        }
        due
    }

    /// Whether a deposit may be acted on in its first block; it counts from then on.
    pub fn take(&self, network: &Network, deposit: &Deposit, head: &Head) -> bool {
        let listed = network.listed.as_ref();
        let currency = listed.and_then(|it| it.currency(&deposit.currency));
        let Some((currency, most)) = currency.and_then(|it| Some((it, it.one_block_up_to?.0)))
        else {
            return false;
        };
        let finality = &network.chain.spec.finality;
        let mut all = self.all();
        let Some(ledger) = all.get_mut(&deposit.network) else {
            return false;
        };
        ledger
            .taken
            .retain(|_, one| !finality.met(&one.block, head));
        if ledger.taken.contains_key(&deposit.onchain_id) {
            return true;
        }
        let same = ledger.taken.values();
        let same = same.filter(|one| one.currency == currency.address);
        let taken = same.fold(U256::ZERO, |sum, one| sum.saturating_add(one.amount));
        let after = taken.saturating_add(deposit.amount);
        let within = deposit.amount <= most && after <= most.saturating_mul(U256::from(TOGETHER));
        if !within || !finality.met(&ledger.began, head) {
            return false;
        }
        let taken = Taken {
            currency: currency.address.clone(),
            amount: deposit.amount,
            block: block(deposit),
        };
        ledger.taken.insert(deposit.onchain_id, taken);
        true
    }

    /// It was not acted on after all.
    pub fn leave(&self, deposit: &Deposit) {
        if let Some(ledger) = self.all().get_mut(&deposit.network) {
            ledger.taken.remove(&deposit.onchain_id);
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Ledger>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
