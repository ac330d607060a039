//! What a quorum's reading means for a deposit. Doubt is never final.

use std::collections::HashSet;

use vm::{B256, Block, Receipt, Seen, Transaction, protocol::limits};

use crate::{
    index::apply,
    request::fact::{Deposit, Place},
};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not yet.
    Early,
    /// It is there, at this place, one of so many that its transaction holds.
    Final(Place, u32),
    /// It is not there, and its block is old enough to be.
    Gone,
    /// It is there, among deposits that the oracle does not attest.
    Doubtful,
}

/// Judges `deposit`, which names `order`, by its transaction as a quorum shows it.
pub fn judge(seen: &Seen<'_>, order: &B256, deposit: &Deposit) -> Verdict {
    let finality = &seen.spec.finality;
    let old = Block {
        number: deposit.place.number,
        hash: deposit.place.hash,
        parent: B256::ZERO,
        time: deposit.place.time,
    };
    let absent = match finality.met(&old, seen.head) {
        true => Verdict::Gone,
        false => Verdict::Early,
    };
    let Transaction::Succeeded(receipt) = seen.found else {
        return absent;
    };
    let Ok(deposits) = &receipt.deposits else {
        return Verdict::Doubtful;
    };
    let same = |one: &&vm::Deposit| is_same(seen, order, deposit, one);
    match deposits.iter().filter(same).count() {
        0 => absent,
        1 if !distinct(receipt) => Verdict::Doubtful,
        1 if finality.met(&receipt.block, seen.head) => {
            let together = u32::try_from(limits::actions(receipt)).unwrap_or(u32::MAX);
            Verdict::Final(apply::place(&receipt.block), together)
        }
        1 => Verdict::Early,
        _ => Verdict::Doubtful,
    }
}

fn is_same(seen: &Seen<'_>, order: &B256, one: &Deposit, other: &vm::Deposit) -> bool {
    let (network, transaction) = (seen.spec.id.as_str(), &seen.transaction.text);
    let address = |text: &str, found: &vm::Address| {
        let parsed = seen.spec.family.address(text);
        parsed.is_ok_and(|address| address == *found)
    };
    apply::onchain_id(network, transaction, other.index) == one.onchain_id
        && apply::order(other).as_ref() == Some(order)
        && other.amount == one.amount
        && address(&one.currency, &other.currency)
        && address(&one.depositor, &other.depositor)
        && address(&one.depository, &other.depository)
}

/// The oracle refuses a whole transaction for two deposits of one index; those of nothing it leaves out.
fn distinct(receipt: &Receipt) -> bool {
    let deposits = || {
        let deposits = receipt.deposits.iter().flatten();
        deposits.filter(|deposit| !deposit.amount.is_zero())
    };
    let indexes: HashSet<u32> = deposits().map(|deposit| deposit.index).collect();
    indexes.len() == deposits().count()
}
