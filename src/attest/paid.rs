//! Finds the payments of a transaction that count for an order, each once (guide: protocol 4, 7.3 and 7.4). Pure: no
//! I/O, no clock.
//!
//! The payments of a transaction are sorted into [`Pot`]s once, so the work grows with the size of the transaction
//! plus that of the order, not with their product.

use std::collections::HashMap;

use alloy::primitives::aliases::U1024;
use vm::{
    Address, Amount, B256, Bytes, ChainId, EvmAddress, Family, Payment, PaymentKind, Receipt, Seen,
    TxRef, protocol::limits,
};

use super::{Refusal, claim::malformed};

/// What an order expects of one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub order: B256,
    pub recipient: &'a Address,
    pub currency: &'a Address,
    /// Unix seconds.
    pub deadline: u64,
    /// The account whose own money counts, whoever sends the transaction.
    pub solver: EvmAddress,
    /// The fill router that counts, if the family has routers.
    pub router: Option<&'a Address>,
    pub payer: Payer,
}

/// Whose payments count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payer {
    /// The transaction's sender, the solver, and the router in anybody's transaction.
    Sender,
    /// The solver, and the router in the solver's own transactions, so that nobody else ends the order for the
    /// solver.
    Solver,
}

/// The unparsed fill router of an order.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    pub family: &'static Family,
    pub extra_data: &'a Bytes,
    /// The router's path in the body.
    pub path: &'a str,
}

/// A payment that serves an order and may serve no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub chain: ChainId,
    pub transaction: TxRef,
    /// The payment's index in its transaction.
    pub index: u32,
    /// Whether the solver itself paid it.
    pub own: bool,
}

/// The index that stands for a transaction's calls: together they serve one order.
const CALLS: u32 = u32::MAX - 1;

impl Served {
    /// The calls that `seen` made for an order of `solver`.
    pub fn calls(seen: &Seen<'_>, solver: EvmAddress) -> Self {
        let sender = seen.receipt().ok().and_then(|it| it.sender.as_ref());
        Self {
            own: sender.is_some_and(|by| by.bytes() == solver.as_slice()),
            ..Self::at(seen, CALLS)
        }
    }

    fn at(seen: &Seen<'_>, index: u32) -> Self {
        Self {
            chain: seen.spec.id.clone(),
            transaction: seen.transaction.clone(),
            index,
            own: false,
        }
    }
}

/// A payment ledger over transactions: an amount that served one payment of an order does not count again.
#[derive(Debug, Default)]
pub struct Ledger {
    tables: HashMap<(ChainId, Bytes), PaymentTable>,
    steps: u64,
}

/// The payments of one transaction by recipient and currency.
#[derive(Debug)]
struct PaymentTable {
    /// The template of its payments; two spellings of an id are one transaction.
    transaction: Served,
    pots: HashMap<(Address, Address), Pot>,
}

/// The payments of one transaction to one recipient in one currency, by their evidence.
#[derive(Debug, Default)]
struct Pot {
    direct: HashMap<B256, Group>,
    sent: Group,
    routed: HashMap<Address, Group>,
    given: HashMap<Address, Group>,
    taken: U1024,
}

#[derive(Debug, Default)]
struct Group {
    sum: U1024,
    payments: Vec<(Amount, u32)>,
    /// Whether it counted for the order.
    counted: bool,
    /// Whether the solver itself paid it.
    own: bool,
}

impl Ledger {
    /// What `seen` pays by `expected` and no earlier call took; refuses a transaction that cannot pay for this order
    /// at all.
    pub fn paid(&mut self, seen: &Seen<'_>, expected: &Expected<'_>) -> Result<U1024, Refusal> {
        let receipt = usable(seen, expected.order, expected.deadline)?;
        let sender = receipt.sender.as_ref();
        self.steps += 1;
        let Some(pot) = self.pot(seen, receipt, expected) else {
            return Ok(U1024::ZERO);
        };
        let sum = pot.counted(sender, expected);
        Ok(sum.saturating_sub(pot.taken))
    }

    /// Takes `amount` of what [`Ledger::paid`] found.
    pub fn take(&mut self, seen: &Seen<'_>, expected: &Expected<'_>, amount: U1024) {
        let table = self.tables.get_mut(&key(seen));
        if let Some(pot) = table.and_then(|table| table.pots.get_mut(&purse(expected))) {
            pot.taken = pot.taken.saturating_add(amount);
        }
    }

    /// The router of `named` if it is listed. Refuses a router that cannot be parsed only where a payment is known only
    /// from a router's event; elsewhere it counts as none.
    pub fn router(
        &mut self,
        seen: &Seen<'_>,
        expected: &Expected<'_>,
        named: &Named<'_>,
    ) -> Result<Option<Address>, Refusal> {
        let receipt = usable(seen, expected.order, expected.deadline)?;
        let pot = self.pot(seen, receipt, expected);
        let router = match pot.is_some_and(|pot| pot.needs_router(expected)) {
            true => named.router()?,
            false => named.router().unwrap_or_default(),
        };
        Ok(router.filter(|router| seen.spec.fill_routers.accepts(router)))
    }

    /// Why payments fall short: names an unlisted router where a payment is known only from its event.
    pub fn short(
        &mut self,
        seen: &Seen<'_>,
        (expected, named): (&Expected<'_>, &Named<'_>),
        otherwise: Refusal,
    ) -> Refusal {
        let Ok(receipt) = seen.receipt() else {
            return otherwise;
        };
        let pot = self.pot(seen, receipt, expected);
        let said = |router: &Address| {
            pot.is_some_and(|pot| pot.routed.contains_key(router) || pot.given.contains_key(router))
        };
        let router = named.router().unwrap_or_default();
        match router.filter(said) {
            Some(router) => named.check_listed(seen, &router).err().unwrap_or(otherwise),
            None => otherwise,
        }
    }

    /// The payments that served, each once: the largest that counted, as many as were needed. The others serve
    /// nothing and need no row.
    pub fn served(self) -> Result<Vec<Served>, Refusal> {
        let mut served = Vec::new();
        for table in self.tables.into_values() {
            for pot in table.pots.into_values() {
                let needed = pot.needed().into_iter();
                served.extend(needed.map(|(index, own)| Served {
                    index,
                    own,
                    ..table.transaction.clone()
                }));
            }
        }
        served.sort_unstable_by(|a: &Served, b| {
            let position = (&b.chain, &b.transaction.bytes, b.index);
            (&a.chain, &a.transaction.bytes, a.index).cmp(&position)
        });
        if served.len() > limits::PAYMENTS {
            return Err(Refusal::TooMany {
                field: "payments",
                most: limits::PAYMENTS,
            });
        }
        Ok(served)
    }

    /// The number of payments looked at so far, with repetitions.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn pot(
        &mut self,
        seen: &Seen<'_>,
        receipt: &Receipt,
        expected: &Expected<'_>,
    ) -> Option<&mut Pot> {
        let steps = &mut self.steps;
        let table = self.tables.entry(key(seen)).or_insert_with(|| {
            *steps += receipt.payments.len() as u64;
            PaymentTable::of(seen, receipt)
        });
        table.pots.get_mut(&purse(expected))
    }
}

impl PaymentTable {
    fn of(seen: &Seen<'_>, receipt: &Receipt) -> Self {
        let mut pots: HashMap<(Address, Address), Pot> = HashMap::new();
        for payment in &receipt.payments {
            let purse = (payment.recipient.clone(), payment.currency.clone());
            pots.entry(purse).or_default().put(payment);
        }
        Self {
            transaction: Served::at(seen, 0),
            pots,
        }
    }
}

impl Pot {
    fn put(&mut self, payment: &Payment) {
        let group = match &payment.kind {
            PaymentKind::Direct { order } => self.direct.entry(*order).or_default(),
            PaymentKind::Transfer => &mut self.sent,
            PaymentKind::Router(router) => self.routed.entry(router.clone()).or_default(),
            PaymentKind::TransferBy(giver) => self.given.entry(giver.clone()).or_default(),
        };
        group.sum += U1024::from(payment.amount);
        group.payments.push((payment.amount, payment.index));
    }

    fn needs_router(&self, expected: &Expected<'_>) -> bool {
        !self.routed.is_empty() && !self.direct.contains_key(&expected.order)
    }

    /// The sum of what counts. If there is a direct payment, only direct payments count; else the router's events
    /// count, and the currency's own records of transfers by the transaction's sender, the order's solver or its
    /// router.
    ///
    /// Another account's transfer is no payment of the order: anybody who may trigger a stranger's payout to the
    /// recipient could append the order's id to that call and be paid for it.
    fn counted(&mut self, sender: Option<&Address>, expected: &Expected<'_>) -> U1024 {
        let solver = Address::from_parts("", Bytes::copy_from_slice(expected.solver.as_slice()));
        let own = sender == Some(&solver);
        let counts = expected.payer == Payer::Sender || own;
        if counts && let Some(direct) = self.direct.get_mut(&expected.order) {
            return direct.count(own);
        }
        let mut sum = self
            .given
            .get_mut(&solver)
            .map_or(U1024::ZERO, |given| given.count(true));
        if !counts {
            return sum;
        }
        sum += self.sent.count(own);
        if let Some(router) = expected.router {
            let count = |group: &mut Group| group.count(own);
            let routed = self.routed.get_mut(router);
            let given = self.given.get_mut(router).filter(|_| *router != solver);
            sum += routed.map_or(U1024::ZERO, count);
            sum += given.map_or(U1024::ZERO, count);
        }
        sum
    }

    /// The largest payments that counted, until they add up to what was taken: each index, and whether the solver
    /// itself paid it.
    fn needed(self) -> Vec<(u32, bool)> {
        let groups = self.direct.into_values().chain(self.routed.into_values());
        let groups = groups.chain(self.given.into_values()).chain([self.sent]);
        let counted = groups.filter(|group| group.counted);
        let of = |group: Group| {
            let own = group.own;
            let payments = group.payments.into_iter();
            payments.map(move |(amount, index)| (amount, index, own))
        };
        let mut payments: Vec<(Amount, u32, bool)> = counted.flat_map(of).collect();
        payments.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut left = self.taken;
        let mut needed = Vec::new();
        for (amount, index, own) in payments {
            if left.is_zero() {
                break;
            }
            left = left.saturating_sub(U1024::from(amount));
            needed.push((index, own));
        }
        needed
    }
}

impl Group {
    fn count(&mut self, own: bool) -> U1024 {
        (self.counted, self.own) = (true, own);
        self.sum
    }
}

/// The receipt of a transaction that is final, in time, and names only this order.
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

/// Refuses a transaction that funds the order: its transfers into the depository paid nobody. `inputs` are the
/// transactions that the claim names as the order's deposits.
///
/// The solver's own transaction may contain a deposit of the order: the order's calls can make one there, and a
/// refusal would cost the solver the fill.
pub fn check_apart(
    seen: &Seen<'_>,
    inputs: &[Seen<'_>],
    (order, solver): (B256, EvmAddress),
) -> Result<(), Refusal> {
    let funds = || Refusal::FundsOrder(seen.text().into());
    if inputs.iter().any(|input| key(input) == key(seen)) {
        return Err(funds());
    }
    let receipt = seen.receipt()?;
    let by_solver = receipt.sender.as_ref().map(Address::bytes) == Some(solver.as_slice());
    let id = format!("{order:#x}");
    let mut deposits = receipt.deposits.iter().flatten();
    match !by_solver && deposits.any(|deposit| deposit.id.eq_ignore_ascii_case(&id)) {
        true => Err(funds()),
        false => Ok(()),
    }
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

    /// Refuses a router that is not listed for the chain of `seen`.
    pub fn check_listed(&self, seen: &Seen<'_>, router: &Address) -> Result<(), Refusal> {
        match seen.spec.fill_routers.accepts(router) {
            true => Ok(()),
            false => Err(Refusal::RouterNotListed {
                router: router.text().into(),
                chain: seen.spec.id.as_str().into(),
            }),
        }
    }
}

/// The key of a transaction: its chain and bytes.
fn key(seen: &Seen<'_>) -> (ChainId, Bytes) {
    (seen.spec.id.clone(), seen.transaction.bytes.clone())
}

fn purse(expected: &Expected<'_>) -> (Address, Address) {
    (expected.recipient.clone(), expected.currency.clone())
}
