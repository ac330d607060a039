//! A transaction of payments as the draft that it was made of: whether it is what a quote had its user send. Pure.
//!
//! Wallets add the price of work, and nothing else may stand beside the payments. An amount is what the transaction
//! says: of tokens whose transfers cost, it is more than the quote has, and the draft is another one.

use solana_pubkey::Pubkey;

use super::{
    super::{
        executed::{Executed, Step},
        programs::{ASSOCIATED, COMPUTE_BUDGET, MEMO, SYSTEM},
        transfer,
    },
    body::{Payments, Transfer, address},
    pay::CREATE_IDEMPOTENT,
};
use crate::types::B256;

/// A token account and its owner, as the instruction says it that makes the account where there is none.
type Owned = (Pubkey, Pubkey);

/// The digest of the draft ([`crate::trade::Draft::digest`]) of the payments that a transaction consists of; `None` of
/// any other.
pub fn digest(executed: &Executed) -> Option<B256> {
    let [payer] = executed.signers[..] else {
        return None;
    };
    let (mut payments, mut owned) = (Payments::default(), Vec::new());
    for step in executed.steps.iter().filter(|step| step.signed) {
        match step.program {
            COMPUTE_BUDGET => {}
            MEMO => {
                let order = named(step).filter(|_| payments.order.is_none())?;
                payments.order = Some(order.0);
            }
            ASSOCIATED => owned.push(made(step)?),
            _ => payments.transfers.push(paid(step, (&payer, &owned))?),
        }
    }
    if payments.transfers.is_empty() {
        return None;
    }
    let draft = payments.draft(&address(&payer)).ok()?;
    Some(draft.digest())
}

/// The order that is all of a memo.
fn named(step: &Step) -> Option<B256> {
    let text = std::str::from_utf8(step.data.bytes()).ok()?;
    let order: B256 = text.parse().ok()?;
    (order.to_string() == text).then_some(order)
}

fn made(step: &Step) -> Option<Owned> {
    let idempotent = step.data.bytes() == [CREATE_IDEMPOTENT];
    let made = (step.account(1)?, step.account(2)?);
    idempotent.then_some(made)
}

/// What the payer pays by an instruction.
fn paid(step: &Step, (payer, owned): (&Pubkey, &[Owned])) -> Option<Transfer> {
    let transfer = transfer::Transfer::of(step)?;
    let (to, currency) = match transfer.program {
        SYSTEM => (transfer.to, SYSTEM),
        _ => {
            let mut owners = owned.iter();
            let (_, owner) = owners.find(|(account, _)| *account == transfer.to)?;
            (*owner, transfer.mint.filter(|_| !transfer.states_fee)?)
        }
    };
    let own = transfer.authority == *payer;
    own.then(|| Transfer {
        to: to.to_bytes(),
        currency: currency.to_bytes(),
        amount: transfer.amount,
    })
}
