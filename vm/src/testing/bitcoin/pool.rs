//! What nodes take into their memory pools (Bitcoin Core's rules, and its words against what breaks them): BIP 125 without
//! its signalling, BIP 431.

use std::collections::HashSet;

use bitcoin::{OutPoint, Transaction, TxOut, Txid};

use super::{key::is_signed, ledger::Ledger};

/// Satoshis per virtual byte that everybody pays, and that a replacement pays besides.
pub const RELAY: u64 = 1;
/// The version of BIP 431, the most virtual bytes of such a transaction, and of one whose parent waits.
const RESTRICTED: i32 = 3;
const LARGEST: u64 = 10_000;
const LARGEST_CHILD: u64 = 1_000;

const MISSING: &str = "bad-txns-inputs-missingorspent";

/// Transactions that wait, parents before their children.
#[derive(Clone, Default)]
pub struct Pool(pub Vec<Transaction>);

/// What a transaction pays, and how long it is.
#[derive(Clone, Copy)]
struct Cost {
    fee: u64,
    size: u64,
}

impl Pool {
    pub fn find(&self, txid: &Txid) -> Option<&Transaction> {
        self.0.iter().find(|one| one.compute_txid() == *txid)
    }

    /// What waits and spends an output.
    pub fn spender(&self, output: &OutPoint) -> Option<&Transaction> {
        self.0.iter().find(|one| spends(one, output))
    }

    /// An output that no block spends, of a block or of what waits; what waits may spend it.
    fn output<'a>(&'a self, ledger: &'a Ledger, at: &OutPoint) -> Option<&'a TxOut> {
        let waits = || self.find(&at.txid)?.output.get(at.vout as usize);
        ledger.unspent(at).or_else(waits)
    }

    fn cost(&self, ledger: &Ledger, one: &Transaction) -> Option<Cost> {
        let inputs = one.input.iter();
        let spent = inputs.map(|it| self.output(ledger, &it.previous_output));
        let spent: Option<Vec<_>> = spent.map(|it| it.map(|it| it.value.to_sat())).collect();
        let given: u64 = one.output.iter().map(|it| it.value.to_sat()).sum();
        Some(Cost {
            fee: spent?.iter().sum::<u64>().checked_sub(given)?,
            size: one.vsize() as u64,
        })
    }

    /// Takes a transaction that no block has; what it replaces waits no more. An error is what nodes say against it.
    pub fn take(&mut self, ledger: &Ledger, one: Transaction) -> Result<(), &'static str> {
        if self.find(&one.compute_txid()).is_some() {
            return Ok(());
        }
        sound(self, ledger, &one)?;
        let cost = self.cost(ledger, &one).ok_or("bad-txns-in-belowout")?;
        if cost.fee < cost.size * RELAY {
            return Err("min relay fee not met");
        }
        let rivals = self.rivals(&one);
        let gone = self.with_children(&rivals);
        let spends_gone = |id: &Txid| one.input.iter().any(|it| it.previous_output.txid == *id);
        if gone.iter().any(spends_gone) {
            return Err("bad-txns-spends-conflicting-tx");
        }
        self.is_dearer(ledger, cost, (&rivals, &gone))?;
        self.is_restricted(&one, (cost.size, &gone))?;
        self.0.retain(|other| !gone.contains(&other.compute_txid()));
        self.0.push(one);
        Ok(())
    }

    /// What waits and spends the same.
    fn rivals(&self, one: &Transaction) -> HashSet<Txid> {
        let spent = one.input.iter().map(|it| it.previous_output);
        let rivals = spent.filter_map(|output| self.spender(&output));
        rivals.map(Transaction::compute_txid).collect()
    }

    /// Those, and what waits for them.
    fn with_children(&self, those: &HashSet<Txid>) -> HashSet<Txid> {
        let mut all = those.clone();
        // Children stand behind their parents.
        for one in &self.0 {
            if one
                .input
                .iter()
                .any(|it| all.contains(&it.previous_output.txid))
            {
                all.insert(one.compute_txid());
            }
        }
        all
    }

    fn is_dearer(
        &self,
        ledger: &Ledger,
        cost: Cost,
        (rivals, gone): (&HashSet<Txid>, &HashSet<Txid>),
    ) -> Result<(), &'static str> {
        let of = |id: &Txid| self.find(id).and_then(|it| self.cost(ledger, it));
        let paid: u64 = gone.iter().filter_map(of).map(|it| it.fee).sum();
        let slower = |it: Cost| cost.fee * it.size <= it.fee * cost.size;
        let cheap = !gone.is_empty() && cost.fee < paid + cost.size * RELAY
            || rivals.iter().filter_map(of).any(slower);
        match cheap {
            true => Err("insufficient fee, rejecting replacement"),
            false => Ok(()),
        }
    }

    /// BIP 431.
    fn is_restricted(
        &self,
        one: &Transaction,
        (size, gone): (u64, &HashSet<Txid>),
    ) -> Result<(), &'static str> {
        let restricted = |it: &Transaction| it.version.0 == RESTRICTED;
        let parents: HashSet<Txid> = one.input.iter().map(|it| it.previous_output.txid).collect();
        let parents: Vec<_> = parents.iter().filter_map(|id| self.find(id)).collect();
        if parents.iter().any(|it| restricted(it) != restricted(one)) {
            return Err("TRUC-violation");
        }
        if !restricted(one) {
            return Ok(());
        }
        let grand = |it: &&Transaction| {
            let mut above = it.input.iter().map(|it| it.previous_output.txid);
            above.any(|id| self.find(&id).is_some())
        };
        let has_child = |it: &&Transaction| {
            let id = it.compute_txid();
            let others = self
                .0
                .iter()
                .filter(|it| !gone.contains(&it.compute_txid()));
            others
                .flat_map(|it| &it.input)
                .any(|it| it.previous_output.txid == id)
        };
        let broken = size > LARGEST
            || parents.len() > 1
            || !parents.is_empty() && size > LARGEST_CHILD
            || parents.iter().any(|it| grand(it) || has_child(it));
        match broken {
            true => Err("TRUC-violation"),
            false => Ok(()),
        }
    }

    /// Takes transactions back that blocks had, before all others. What cannot be in a block any more is dropped.
    pub fn put_back(&mut self, ledger: &Ledger, mut back: Vec<Transaction>) {
        back.append(&mut self.0);
        for one in back {
            let free = self.rivals(&one).is_empty();
            if free && sound(self, ledger, &one).is_ok() {
                self.0.push(one);
            }
        }
    }

    /// Takes what the next block includes: what `is_held` names waits on, and so does what spends of it. What spends
    /// outputs that are spent is dropped.
    pub fn included(
        &mut self,
        ledger: &Ledger,
        is_held: impl Fn(&Transaction, u64) -> bool,
    ) -> Vec<Transaction> {
        let mut held = Self::default();
        let mut block = Self::default();
        for one in std::mem::take(&mut self.0) {
            let rate = |cost: Cost| cost.fee / cost.size.max(1);
            let rate = block.cost(ledger, &one).map(rate);
            let mut parents = one.input.iter().map(|it| it.previous_output.txid);
            let waits = parents.any(|id| held.find(&id).is_some());
            match rate {
                _ if waits => held.0.push(one),
                Some(rate) if is_held(&one, rate) => held.0.push(one),
                Some(_) => block.0.push(one),
                None => {}
            }
        }
        *self = held;
        block.0
    }
}

/// Refuses what no block can have.
fn sound(pool: &Pool, ledger: &Ledger, one: &Transaction) -> Result<(), &'static str> {
    if one.input.is_empty() || one.output.is_empty() || one.is_coinbase() {
        return Err("bad-txns-vin-empty");
    }
    let mut seen = HashSet::new();
    for (at, input) in one.input.iter().enumerate() {
        if !seen.insert(input.previous_output) {
            return Err("bad-txns-inputs-duplicate");
        }
        let spent = pool.output(ledger, &input.previous_output);
        let spent = spent.ok_or(MISSING)?;
        if !is_signed(one, at, spent) {
            return Err("mandatory-script-verify-flag-failed");
        }
    }
    let small = |it: &TxOut| it.value < it.script_pubkey.minimal_non_dust();
    match one.output.iter().any(small) {
        true => Err("dust"),
        false => Ok(()),
    }
}

fn spends(one: &Transaction, output: &OutPoint) -> bool {
    one.input.iter().any(|it| it.previous_output == *output)
}
