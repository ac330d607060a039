//! A transaction as the draft that it was made of: whether it is what a quote had its user send. Pure.
//!
//! Wallets add the price of work, assertions, and somebody who pays the fee: all that is left out. What was quoted as
//! payments has nothing else beside it. An amount is what the transaction says: of tokens whose transfers cost, it is
//! more than the quote has, and the draft is another one. Of instructions, those up to the memo that names the order
//! count: it is the last one quoted, and what the user does behind it takes nothing back.

use solana_pubkey::Pubkey;

use super::{
    super::{
        executed::{Executed, Step},
        programs::{ASSOCIATED, COMPUTE_BUDGET, LIGHTHOUSE, MEMO, SYSTEM},
        transfer,
    },
    body::{Account, Content, Instruction, Instructions, Payments, Transfer, address},
    pay::CREATE_IDEMPOTENT,
};
use crate::{
    trade::Draft,
    types::{Address, Amount, B256},
};

/// A token account and its owner, as the instruction says it that makes the account where there is none.
type Owned = (Pubkey, Pubkey);

/// The digest of the draft that a transaction was made of, as [`own_call`] has it. `None` of a transaction that neither
/// consists of payments alone nor names an order in a memo behind other instructions.
pub fn digest(executed: &Executed) -> Option<B256> {
    // Whoever pays the fee for the user signs first.
    let ([user] | [_, user]) = executed.signers[..] else {
        return None;
    };
    if let Some(payments) = payments(executed, &user) {
        let draft = payments.draft(&address(&user)).ok()?;
        return Some(draft.digest());
    }
    let steps = executed.steps.iter().filter(|step| step.signed);
    list_digest(&address(&user), steps.map(Instruction::from))
}

/// What tells a draft from others by its transaction: see [`crate::Family::own_call`].
pub fn own_call(draft: &Draft) -> B256 {
    let digest = match Content::of(draft) {
        Ok(Content::Instructions(own)) => list_digest(&draft.from, own.list.into_iter()),
        _ => None,
    };
    digest.unwrap_or_else(|| draft.digest())
}

/// The digest of a list of instructions up to the memo that names an order. Which accounts sign, who pays, and the
/// lookup tables are not in it: no transaction shows them for each instruction.
fn list_digest(user: &Address, list: impl Iterator<Item = Instruction>) -> Option<B256> {
    let (mut kept, mut is_named) = (Vec::new(), false);
    for mut one in list.filter(|one| !is_beside(&one.program())) {
        for account in &mut one.accounts {
            (account.signs, account.writable) = (false, false);
        }
        is_named = one.program() == MEMO && order(&one.data).is_some();
        kept.push(one);
        if is_named {
            break;
        }
    }
    // Before a memo alone nothing is done.
    if !is_named || kept.len() < 2 {
        return None;
    }
    let own = Instructions {
        list: kept,
        ..Instructions::default()
    };
    let draft = Content::Instructions(own).draft(user, Amount::ZERO).ok()?;
    Some(draft.digest())
}

/// Whether instructions of a program change nothing of what others do, unless they let all fail.
fn is_beside(program: &Pubkey) -> bool {
    [COMPUTE_BUDGET, LIGHTHOUSE].contains(program)
}

/// The payments that a transaction consists of; `None` of any other.
fn payments(executed: &Executed, user: &Pubkey) -> Option<Payments> {
    let (mut payments, mut owned) = (Payments::default(), Vec::new());
    for step in executed.steps.iter().filter(|step| step.signed) {
        match step.program {
            program if is_beside(&program) => {}
            MEMO => {
                let order = order(step.data.bytes()).filter(|_| payments.order.is_none())?;
                payments.order = Some(order.0);
            }
            ASSOCIATED => owned.push(made(step)?),
            _ => payments.transfers.push(paid(step, (user, &owned))?),
        }
    }
    (!payments.transfers.is_empty()).then_some(payments)
}

/// The order that is all of a memo.
fn order(memo: &[u8]) -> Option<B256> {
    let text = std::str::from_utf8(memo).ok()?;
    let order: B256 = text.parse().ok()?;
    (order.to_string() == text).then_some(order)
}

fn made(step: &Step) -> Option<Owned> {
    let idempotent = step.data.bytes() == [CREATE_IDEMPOTENT];
    let made = (step.account(1)?, step.account(2)?);
    idempotent.then_some(made)
}

/// What the user pays by an instruction.
fn paid(step: &Step, (user, owned): (&Pubkey, &[Owned])) -> Option<Transfer> {
    let transfer = transfer::Transfer::of(step)?;
    let (to, currency) = match transfer.program {
        SYSTEM => (transfer.to, SYSTEM),
        _ => {
            let mut owners = owned.iter();
            let (_, owner) = owners.find(|(account, _)| *account == transfer.to)?;
            (*owner, transfer.mint.filter(|_| !transfer.states_fee)?)
        }
    };
    let own = transfer.authority == *user;
    own.then(|| Transfer {
        to: to.to_bytes(),
        currency: currency.to_bytes(),
        amount: transfer.amount,
    })
}

impl From<&Step> for Instruction {
    fn from(step: &Step) -> Self {
        let accounts = step.accounts.iter().map(|key| Account {
            key: key.to_bytes(),
            signs: false,
            writable: false,
        });
        Self {
            program: step.program.to_bytes(),
            accounts: accounts.collect(),
            data: step.data.bytes().to_vec(),
        }
    }
}

impl Instruction {
    const fn program(&self) -> Pubkey {
        Pubkey::new_from_array(self.program)
    }
}
