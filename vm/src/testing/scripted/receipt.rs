//! Transactions in blocks as chain-neutral facts. Pure.

use crate::{
    ChainSpec,
    trade::{Change, DepositTx, Diff, TxDetails},
    types::{
        Address, Amount, B256, Deposit, Failure, Payment, PaymentKind, Receipt, Transaction, TxRef,
    },
};

use super::{
    codec::spelled,
    state::Included,
    transaction::{self, Transfer, written},
};

/// A transaction as readers answer it.
pub fn transaction(spec: &ChainSpec, found: &Included) -> Transaction {
    let Included { block, done } = found;
    let named = done.transaction.unsigned.payments.memo;
    let references = named.map(|order| format!("{order:#x}").into());
    let references: Vec<_> = references.into_iter().collect();
    let outer_call = done.transaction.digest();
    if !done.success {
        return Transaction::Failed(Failure {
            block: block.clone(),
            references,
            outer_call,
        });
    }
    let payments = transfers(found).map(|(index, one)| Payment {
        index,
        kind: PaymentKind::Transfer,
        recipient: spelled(one.to),
        currency: spelled(one.currency),
        amount: one.amount,
    });
    Transaction::Succeeded(Receipt {
        block: block.clone(),
        sender: Some(payer(found)),
        deposits: Ok(deposited(spec, found)),
        payments: payments.collect(),
        calls: Vec::new(),
        executions: Vec::new(),
        references,
        outer_call,
    })
}

/// The successful transactions that pay a depository, as scanners answer them.
pub fn deposits(spec: &ChainSpec, all: &[Included]) -> Vec<DepositTx> {
    let succeeded = all.iter().filter(|found| found.done.success);
    let found = succeeded.map(|found| DepositTx {
        transaction: TxRef {
            text: found.done.transaction.id().into(),
            bytes: found.done.transaction.signature.clone(),
            hint: None,
        },
        number: found.block.number,
        hash: found.block.hash,
        deposits: deposited(spec, found),
        doubt: None,
    });
    found.filter(|one| !one.deposits.is_empty()).collect()
}

/// A transaction as inspectors answer it.
pub fn details(found: &Included) -> TxDetails {
    let Included { block, done } = found;
    let payments = &done.transaction.unsigned.payments;
    let first = payments.transfers.first();
    TxDetails {
        from: payer(found),
        to: first.map(|one| spelled(one.to)),
        data: written(payments).ok().map(Into::into),
        value: payments.native().unwrap_or_default(),
        fee: done.fee.saturating_add(done.rent),
        block: block.clone(),
        success: done.success,
        changes: match done.success {
            true => changes(found),
            false => Vec::new(),
        },
    }
}

fn payer(found: &Included) -> Address {
    spelled(found.done.transaction.unsigned.payer)
}

fn transfers(found: &Included) -> impl Iterator<Item = (u32, &Transfer)> {
    let transaction::Payments { transfers, .. } = &found.done.transaction.unsigned.payments;
    (0..).zip(transfers)
}

fn deposited(spec: &ChainSpec, found: &Included) -> Vec<Deposit> {
    let order = found.done.transaction.unsigned.payments.memo;
    let id = format!("{:#x}", order.unwrap_or(B256::ZERO));
    let deposits = transfers(found).filter_map(|(index, one)| {
        let to = spelled(one.to);
        let depository = spec.depositories().find(|known| **known == to)?;
        (!one.amount.is_zero()).then(|| Deposit {
            index,
            depository: depository.clone(),
            depositor: payer(found),
            currency: spelled(one.currency),
            amount: one.amount,
            id: id.as_str().into(),
            named_by_other: false,
            by_depositor: true,
        })
    });
    deposits.collect()
}

fn changes(found: &Included) -> Vec<Change> {
    let moved = transfers(found).flat_map(|(_, one)| {
        let change = |address: Address, negative: bool, amount: Amount| Change {
            address,
            currency: spelled(one.currency),
            diff: Diff { negative, amount },
        };
        [
            change(payer(found), true, one.amount),
            change(spelled(one.to), false, one.amount),
        ]
    });
    moved.take(TxDetails::MOST_CHANGES).collect()
}
