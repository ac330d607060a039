//! What a quorum's reading means for a deposit, by the oracle's own reading of its transaction: what
//! that refuses for good is doubt here, and doubt is never final. How many deposits there are is judged
//! by whoever pays for one.

use vm::{B256, Block, Seen, protocol::limits};

use crate::{
    attest::deposit::{Message, listed},
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
    /// The oracle attests nothing of its transaction, for this reason.
    Doubtful(String),
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
    let Ok(receipt) = seen.receipt() else {
        return absent;
    };
    if let Err(why) = limits::readable(receipt) {
        return Verdict::Doubtful(why.to_string());
    }
    let messages = match listed(seen) {
        Ok(messages) => messages,
        Err(refusal) => return Verdict::Doubtful(refusal.to_string()),
    };
    let same = |one: &Message| is_same(seen, order, deposit, one);
    if !messages.iter().any(same) {
        return absent;
    }
    if !finality.met(&receipt.block, seen.head) {
        return Verdict::Early;
    }
    let together = u32::try_from(messages.len()).unwrap_or(u32::MAX);
    Verdict::Final(apply::place(&receipt.block), together)
}

fn is_same(seen: &Seen<'_>, order: &B256, one: &Deposit, message: &Message) -> bool {
    let other = &message.deposit;
    let address = |text: &str, found: &vm::Address| {
        let parsed = seen.spec.family.address(text);
        parsed.is_ok_and(|address| address == *found)
    };
    message.onchain_id == one.onchain_id
        && apply::order(other).as_ref() == Some(order)
        && other.amount == one.amount
        && address(&one.currency, &other.currency)
        && address(&one.depositor, &other.depositor)
        && address(&one.depository, &other.depository)
}
