//! Node answers about one transaction → [`TxDetails`]. Pure.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use alloy::primitives::U512;
use serde::Deserialize;

use super::trace::Frame;
use crate::{
    ethereum::{
        decode::{self, Doubt, Mined, Rules},
        event::{self, Event},
        raw::Quantity,
    },
    trade::{Change, Diff, TxDetails},
    types::{Amount, Block, Bytes, EvmAddress},
};

/// What a receipt says that its transaction paid.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Paid {
    gas_used: Option<Quantity>,
    effective_gas_price: Option<Quantity>,
    /// Rollups of the OP stack: what the chain below took, on top of the gas.
    l1_fee: Option<Quantity>,
}

/// What a transaction says that it pays, where it names one price.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offered {
    gas_price: Option<Quantity>,
}

/// What the inclusion of a transaction cost. Blobs are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost(Amount);

impl Cost {
    /// Of a transaction in a block. Receipts from before EIP-1559 name no price: then it is the
    /// transaction's.
    pub fn new(paid: Option<Paid>, offered: Option<Offered>) -> Result<Self, Doubt> {
        let paid = paid.ok_or(Doubt("no receipt"))?;
        let gas = paid.gas_used.ok_or(Doubt("a receipt without gas"))?;
        let price = paid
            .effective_gas_price
            .or(offered.and_then(|offered| offered.gas_price))
            .ok_or(Doubt("nobody says what gas cost"))?;
        let fee = gas.0.checked_mul(price.0);
        let below = paid.l1_fee.map_or(Amount::ZERO, |fee| fee.0);
        let fee = fee.and_then(|fee| fee.checked_add(below));
        fee.map(Self).ok_or(Doubt("a fee out of range"))
    }
}

/// Whether code may have run: it creates a contract, calls with data, or something was logged.
pub fn ran(mined: &Mined) -> bool {
    let transaction = &mined.transaction;
    let data = transaction.input.as_ref();
    let data = data.is_none_or(|data| !data.is_empty());
    transaction.to.is_none() || data || !mined.logs.is_empty()
}

/// The transaction in full; `block` is the header at its height, `trace` the calls within it, where the node
/// tells them. A trace of something else counts for none.
pub fn inspect(
    rules: &Rules,
    mined: Mined,
    cost: Cost,
    block: &Block,
    trace: Option<&Frame>,
) -> Result<TxDetails, Doubt> {
    if block.hash != mined.hash || block.number != mined.number {
        return Err(Doubt("the receipt's block is not the header's"));
    }
    let input = decode::input(rules, &mined.transaction)?;
    let value = mined.transaction.value;
    let value = value.ok_or(Doubt("a transaction without value"))?.0;
    let transaction = &mined.transaction;
    Ok(TxDetails {
        from: rules.address(&transaction.from),
        to: transaction.to.map(|to| rules.address(&to)),
        data: (input.len() <= TxDetails::MOST_DATA).then(|| Bytes::copy_from_slice(input)),
        value,
        fee: cost.0,
        block: block.clone(),
        success: mined.succeeded,
        changes: match mined.succeeded {
            true => changes(rules, &mined, value, trace),
            false => Vec::new(),
        },
    })
}

fn changes(rules: &Rules, mined: &Mined, value: Amount, trace: Option<&Frame>) -> Vec<Change> {
    let mut ledger = Ledger::default();
    let (transaction, native) = (&mined.transaction, EvmAddress::ZERO);
    match trace.filter(|trace| trace.is_of(transaction)) {
        Some(trace) => {
            for (from, to, amount) in trace.moves() {
                ledger.take(from, native, amount);
                ledger.give(to, native, amount);
            }
        }
        None => {
            ledger.take(transaction.from, native, value);
            if let Some(to) = transaction.to {
                ledger.give(to, native, value);
            }
        }
    }
    for log in &mined.logs {
        if let Some(Event::Transfer {
            token,
            from,
            to,
            amount,
        }) = event::parse(rules, log)
            && rules.ignored != Some(token)
        {
            // Nobody is the zero address: it stands for what is minted and burnt.
            if !from.is_zero() {
                ledger.take(from, token, amount);
            }
            if !to.is_zero() {
                ledger.give(to, token, amount);
            }
        }
    }
    let changes = ledger.changes(rules);
    changes.take(TxDetails::MOST_CHANGES).collect()
}

/// What accounts got and gave, in the order in which they first did. The sums of a whole block's logs
/// fit 512 bits.
#[derive(Default)]
struct Ledger {
    positions: HashMap<(EvmAddress, EvmAddress), usize>,
    lines: Vec<Line>,
}

struct Line {
    account: EvmAddress,
    currency: EvmAddress,
    got: U512,
    gave: U512,
}

impl Ledger {
    fn give(&mut self, account: EvmAddress, currency: EvmAddress, amount: Amount) {
        let line = self.line(account, currency);
        line.got = line.got.saturating_add(U512::from(amount));
    }

    fn take(&mut self, account: EvmAddress, currency: EvmAddress, amount: Amount) {
        let line = self.line(account, currency);
        line.gave = line.gave.saturating_add(U512::from(amount));
    }

    fn line(&mut self, account: EvmAddress, currency: EvmAddress) -> &mut Line {
        let next = self.lines.len();
        let at = *self.positions.entry((account, currency)).or_insert(next);
        if at == next {
            self.lines.push(Line {
                account,
                currency,
                got: U512::ZERO,
                gave: U512::ZERO,
            });
        }
        &mut self.lines[at]
    }

    fn changes(self, rules: &Rules) -> impl Iterator<Item = Change> {
        self.lines.into_iter().filter_map(|line| {
            Some(Change {
                address: rules.address(&line.account),
                currency: rules.address(&line.currency),
                diff: line.diff()?,
            })
        })
    }
}

impl Line {
    /// `None` for no change, and for one that no token can really mean: it does not fit an amount.
    fn diff(&self) -> Option<Diff> {
        let negative = self.gave > self.got;
        let amount = Amount::checked_from_limbs_slice(self.got.abs_diff(self.gave).as_limbs())?;
        (!amount.is_zero()).then_some(Diff { negative, amount })
    }
}
