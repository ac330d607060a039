//! A transaction in full, as one node shows it.

use async_trait::async_trait;
use solana_pubkey::Pubkey;

use super::{
    super::{
        decode::Rules,
        executed::{Executed, Holding, Step},
        programs::{ASSOCIATED, COMPUTE_BUDGET, MEMO},
        transfer::Transfer,
    },
    node::Node,
};
use crate::{
    ReadError,
    trade::{Change, Diff, TxDetails, TxInspector},
    types::{Amount, Block, TxRef},
};

/// Programs whose instructions only stand beside what a transaction is for.
const BESIDE: [Pubkey; 3] = [ASSOCIATED, COMPUTE_BUDGET, MEMO];

#[async_trait]
impl TxInspector for Node {
    async fn inspect(&self, transaction: &TxRef) -> Result<Option<TxDetails>, ReadError> {
        // No chain has a transaction whose id is of another length.
        if transaction.bytes.len() != 64 {
            return Ok(None);
        }
        let id = bs58::encode(&transaction.bytes).into_string();
        let asked = self.link.questions.transaction(&id);
        let Some(raw) = self.link.read(Box::pin(asked)).await? else {
            return Ok(None);
        };
        let fee = raw.meta.as_ref().map_or(0, |meta| meta.fee);
        let executed = Executed::join(&transaction.bytes, raw)?;
        let block = self.block_at(executed.slot).await?;
        let unknown = || ReadError::Unavailable("a block is not shown".into());
        let block = block.ok_or_else(unknown)?;
        details(&self.rules, &executed, (fee, block)).map(Some)
    }
}

/// A transaction whose inclusion cost `fee` lamports.
fn details(
    rules: &Rules,
    executed: &Executed,
    (fee, block): (u64, Block),
) -> Result<TxDetails, ReadError> {
    let payer = executed.payer();
    let payer = payer.ok_or_else(|| ReadError::Doubtful("nobody signed".into()))?;
    let signed = || executed.steps.iter().filter(|step| step.signed);
    let main = signed().find(|step| !BESIDE.contains(&step.program));
    let main = main.or_else(|| signed().next());
    let data = main.map(|step| step.data.bytes());
    let data = data.filter(|data| data.len() <= TxDetails::MOST_DATA);
    let spent = executed.lamports_of(&payer).unwrap_or_default();
    let spent = spent.before.saturating_sub(spent.after);
    Ok(TxDetails {
        from: rules.address(&payer),
        to: main.map(|step| rules.address(&target(step))),
        data: data.map(|data| data.to_vec().into()),
        value: Amount::from(spent.saturating_sub(u128::from(fee))),
        fee: Amount::from(fee),
        block,
        success: !executed.failed,
        changes: match executed.failed {
            true => Vec::new(),
            false => changes(rules, executed, fee),
        },
    })
}

/// Whom a transfer pays; else the program that runs.
fn target(step: &Step) -> Pubkey {
    Transfer::of(step).map_or(step.program, |transfer| transfer.to)
}

/// Lamports first, in the order of the transaction's accounts; then tokens, by their owners.
fn changes(rules: &Rules, executed: &Executed, fee: u64) -> Vec<Change> {
    let payer = executed.payer();
    let native = executed.lamports.iter().map(|(account, change)| {
        let paid = if Some(*account) == payer { fee } else { 0 };
        let after = change.after.saturating_add(u128::from(paid));
        (
            rules.address(account),
            rules.native.clone(),
            (change.before, after),
        )
    });
    let tokens = owned(executed)
        .into_iter()
        .map(|((owner, mint), held)| (rules.address(&owner), rules.address(&mint), held));
    let all = native.chain(tokens);
    let all = all.filter_map(|(address, currency, (before, after))| {
        (before != after).then(|| Change {
            address,
            currency,
            diff: Diff {
                negative: after < before,
                amount: Amount::from(before.abs_diff(after)),
            },
        })
    });
    all.take(TxDetails::MOST_CHANGES).collect()
}

/// What each owner held of each mint before and after, over all accounts of the transaction.
fn owned(executed: &Executed) -> Vec<((Pubkey, Pubkey), (u128, u128))> {
    let mut owned: Vec<((Pubkey, Pubkey), (u128, u128))> = Vec::new();
    let before = executed.before.iter().map(|held| (held, true));
    let after = executed.after.iter().map(|held| (held, false));
    for (held, is_before) in before.chain(after) {
        let Holding { owner, mint, .. } = *held;
        let at = owned.iter().position(|(of, _)| *of == (owner, mint));
        let at = at.unwrap_or_else(|| {
            owned.push(((owner, mint), (0, 0)));
            owned.len() - 1
        });
        if let Some((_, (before, after))) = owned.get_mut(at) {
            let sum = if is_before { before } else { after };
            *sum = sum.saturating_add(u128::from(held.amount));
        }
    }
    owned
}
