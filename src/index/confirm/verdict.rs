//! What a quorum's reading means for a deposit, judged as the oracle judges the transaction: what the oracle refuses
//! for good is doubtful here, and a doubtful deposit is never final. How many deposits there may be is judged by
//! whoever pays for one.

use vm::{B256, Finality, Payment, PaymentKind, Receipt, Seen, protocol::limits, spelled_alike};

use super::due::block;
use crate::{
    attest::deposit::{Message, listed},
    index::apply,
    request::{
        Request,
        fact::{Agreed, Deposit},
    },
};

/// What is known of a deposit after a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is too early to tell.
    Early,
    /// It exists, with these properties.
    Final(Agreed),
    /// It does not exist, and its block is old enough to be final.
    Gone,
    /// The oracle attests nothing of its transaction, for this reason.
    Doubtful(String),
}

/// A transaction as a quorum shows it, with what the oracle makes of it.
pub struct Reading<'a> {
    seen: &'a Seen<'a>,
    /// `None` where there is no successful transaction; an error where the oracle attests nothing of it.
    listed: Option<(&'a Receipt, Result<Vec<Message>, String>)>,
}

impl<'a> Reading<'a> {
    pub fn of(seen: &'a Seen<'a>) -> Self {
        let messages = |receipt: &Receipt| match limits::readable(receipt) {
            Err(why) => Err(why.to_string()),
            Ok(()) => listed(seen).map_err(|refusal| refusal.to_string()),
        };
        let receipt = seen.receipt().ok();
        let listed = receipt.map(|receipt| (receipt, messages(receipt)));
        Self { seen, listed }
    }

    /// Judges a deposit of `request` that is said to be in the transaction. One that is there must have `finality`; one
    /// that is not is gone once it would be final for the chain.
    pub fn judge(&self, request: &Request, deposit: &Deposit, finality: &Finality) -> Verdict {
        let (seen, own) = (self.seen, &self.seen.spec.finality);
        let absent = match own.met(&block(deposit), seen.head) {
            true => Verdict::Gone,
            false => Verdict::Early,
        };
        let (receipt, messages) = match &self.listed {
            None => return absent,
            Some((_, Err(why))) => return Verdict::Doubtful(why.clone()),
            Some((receipt, Ok(messages))) => (receipt, messages),
        };
        let same = |one: &&Message| is_same(seen, &request.order_id, deposit, one);
        let Some(message) = messages.iter().find(same) else {
            return absent;
        };
        if !finality.met(&receipt.block, seen.head) {
            return Verdict::Early;
        }
        Verdict::Final(Agreed {
            place: (&receipt.block).into(),
            together: u32::try_from(messages.len()).unwrap_or(u32::MAX),
            own: is_own(receipt, request, &message.deposit),
            named_by_other: message.deposit.named_by_other,
        })
    }
}

/// Whether the depositor gave the deposit: the transaction says so, or the currency's own events. A currency that the
/// order does not ask for may be anybody's token, whose events prove nothing.
fn is_own(receipt: &Receipt, request: &Request, deposit: &vm::Deposit) -> bool {
    let asked = request.order.inputs.iter().any(|input| {
        let currency = &input.payment.currency;
        spelled_alike(currency, deposit.currency.text())
    });
    let given = |payment: &Payment| {
        matches!(&payment.kind, PaymentKind::TransferBy(by) if *by == deposit.depositor)
            && payment.recipient == deposit.depository
            && payment.currency == deposit.currency
            && payment.amount == deposit.amount
    };
    deposit.by_depositor || (asked && receipt.payments.iter().any(given))
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
