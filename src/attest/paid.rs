//! Which payments of a transaction count for an order, each once (oracle.md 7.3, 7.4, 8).
//! Pure: no I/O, no clock.

use std::collections::HashMap;

use alloy::primitives::aliases::U1024;
use vm::{
    Address, B256, Bytes, ChainId, EvmAddress, Family, Payment, PaymentKind, Receipt, Seen, TxRef,
};

use super::{Refusal, claim::malformed};

/// What an order expects from one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub order: B256,
    pub recipient: &'a Address,
    pub currency: &'a Address,
    /// Unix seconds.
    pub deadline: u64,
    /// Whose own money counts, whoever sends the transaction.
    pub solver: EvmAddress,
    /// The fill router that counts, if this family has them.
    pub router: Option<&'a Address>,
}

/// The fill router that an order names, still to be read.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    pub family: &'static Family,
    pub extra_data: &'a Bytes,
    /// Where it stands in the body.
    pub path: &'a str,
}

/// A transaction as payment ledger: what is taken for one payment of an order does not count again.
#[derive(Debug, Default)]
pub struct Ledger {
    /// What is already taken, per transaction, recipient and currency.
    taken: HashMap<(ChainId, Bytes, Address, Address), U1024>,
    served: Vec<Served>,
}

/// A payment that serves an order and may serve no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub chain: ChainId,
    pub transaction: TxRef,
    /// The payment's index in its transaction.
    pub index: u32,
}

/// Where a transaction's calls stand among its payments: they serve one order together.
const CALLS: u32 = u32::MAX - 1;

impl Served {
    /// The calls that `seen` made for an order.
    pub fn calls(seen: &Seen<'_>) -> Self {
        Self {
            chain: seen.spec.id.clone(),
            transaction: seen.transaction.clone(),
            index: CALLS,
        }
    }
}

impl Ledger {
    /// What `seen` pays by `expected` and no earlier call took; a refusal if the transaction cannot
    /// pay for this order at all.
    pub fn paid(&mut self, seen: &Seen<'_>, expected: &Expected<'_>) -> Result<U1024, Refusal> {
        let receipt = usable(seen, expected.order, expected.deadline)?;
        let matching = matching(receipt, expected);
        let sum = matching
            .iter()
            .fold(U1024::ZERO, |sum, p| sum + U1024::from(p.amount));
        for payment in &matching {
            let served = Served {
                chain: seen.spec.id.clone(),
                transaction: seen.transaction.clone(),
                index: payment.index,
            };
            if !self.served.contains(&served) {
                self.served.push(served);
            }
        }
        let taken = self.taken.get(&key(seen, expected)).copied();
        Ok(sum.saturating_sub(taken.unwrap_or_default()))
    }

    /// Takes `amount` of what [`Ledger::paid`] found.
    pub fn take(&mut self, seen: &Seen<'_>, expected: &Expected<'_>, amount: U1024) {
        let taken = self.taken.entry(key(seen, expected)).or_default();
        *taken = taken.saturating_add(amount);
    }

    /// Every payment that served, each once.
    pub fn served(self) -> Vec<Served> {
        self.served
    }
}

/// The final receipt of a transaction that is in time and names this order and no other.
pub fn usable<'a>(seen: &Seen<'a>, order: B256, deadline: u64) -> Result<&'a Receipt, Refusal> {
    let receipt = seen.settled()?;
    if receipt.block.time > deadline {
        return Err(Refusal::AfterDeadline(seen.text().into()));
    }
    let id = format!("{order:#x}");
    if !receipt.references.iter().any(|named| **named == *id) {
        return Err(Refusal::NoReference(seen.text().into()));
    }
    if receipt.references.iter().any(|named| **named != *id) {
        return Err(Refusal::SeveralReferences(seen.text().into()));
    }
    Ok(receipt)
}

impl Named<'_> {
    /// The router; `None` for families without routers.
    pub fn router(&self) -> Result<Option<Address>, Refusal> {
        self.family
            .orders
            .map(|codec| codec.decode_extra_data(self.extra_data))
            .transpose()
            .map_err(|error| malformed(self.path, error))
    }

    /// The router as far as it matters to these payments: where none of them is a router's word,
    /// a router that cannot be read is none.
    pub fn needed(
        &self,
        receipt: &Receipt,
        expected: &Expected<'_>,
    ) -> Result<Option<Address>, Refusal> {
        match needs_router(receipt, expected) {
            true => self.router(),
            false => Ok(self.router().unwrap_or_default()),
        }
    }
}

fn needs_router(receipt: &Receipt, expected: &Expected<'_>) -> bool {
    let routed = |p: &Payment| matches!(p.kind, PaymentKind::Router(_));
    to_recipient(receipt, expected).any(routed)
        && !to_recipient(receipt, expected).any(|p| is_direct(p, expected))
}

fn to_recipient<'a>(
    receipt: &'a Receipt,
    expected: &Expected<'_>,
) -> impl Iterator<Item = &'a Payment> {
    let payments = receipt.payments.iter();
    payments.filter(|p| p.recipient == *expected.recipient && p.currency == *expected.currency)
}

fn is_direct(payment: &Payment, expected: &Expected<'_>) -> bool {
    matches!(payment.kind, PaymentKind::Direct { order } if order == expected.order)
}

/// A direct payment counts alone; without one, the router's word and the currency's own records of
/// what the transaction's sender, the order's solver or its router gave.
///
/// What somebody else gave is no payment of the order: whoever may claim a stranger's payout on the
/// recipient's behalf could put the order's id behind that call, and be paid for it.
fn matching<'a>(receipt: &'a Receipt, expected: &Expected<'_>) -> Vec<&'a Payment> {
    let direct: Vec<&Payment> = to_recipient(receipt, expected)
        .filter(|payment| is_direct(payment, expected))
        .collect();
    if !direct.is_empty() {
        return direct;
    }
    to_recipient(receipt, expected)
        .filter(|payment| match &payment.kind {
            PaymentKind::Direct { .. } => false,
            PaymentKind::Router(router) => Some(router) == expected.router,
            PaymentKind::Transfer => true,
            PaymentKind::TransferBy(giver) => {
                Some(giver) == expected.router || giver.bytes() == expected.solver.as_slice()
            }
        })
        .collect()
}

/// The transaction by its bytes: two spellings are one transaction.
fn key(seen: &Seen<'_>, expected: &Expected<'_>) -> (ChainId, Bytes, Address, Address) {
    (
        seen.spec.id.clone(),
        seen.transaction.bytes.clone(),
        expected.recipient.clone(),
        expected.currency.clone(),
    )
}
