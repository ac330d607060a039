//! A transaction in a block, its parts put together: instructions with their accounts, and what accounts held before
//! and after (guide: protocol 4.4). Pure.
//!
//! The instructions of a message and those that programs gave each other are one list: first all of the message, then
//! the others in the order in which they ran. A deposit's index is its position there.

use std::collections::HashSet;

use solana_pubkey::Pubkey;

use super::{
    programs::MEMO,
    raw::{Data, RawInstruction, RawMeta, RawTokenBalance, RawTransaction},
};
use crate::ReadError;

/// The most instructions of a transaction: twice those that the runtime lets run.
const MAX_STEPS: usize = 128;

/// Why an answer shows no transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// It contradicts itself or the question.
    #[error("{0}")]
    Contradiction(&'static str),
    /// The node does not keep what has to be read. An honest one may.
    #[error("the node does not keep {0}")]
    Incomplete(&'static str),
}

impl From<Doubt> for ReadError {
    fn from(doubt: Doubt) -> Self {
        match doubt {
            Doubt::Contradiction(_) => Self::Doubtful(doubt.to_string()),
            Doubt::Incomplete(_) => Self::Unavailable(doubt.to_string()),
        }
    }
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Step {
    pub program: Pubkey,
    pub accounts: Vec<Pubkey>,
    pub data: Data,
    /// Whether it stands in the message, which all signers signed.
    pub signed: bool,
}

impl Step {
    /// The account at a position of its list.
    pub fn account(&self, at: usize) -> Option<Pubkey> {
        self.accounts.get(at).copied()
    }
}

/// What a token account held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    pub account: Pubkey,
    /// The position of the account in the transaction.
    pub position: u8,
    pub owner: Pubkey,
    pub mint: Pubkey,
    pub amount: u64,
}

/// An amount before and after the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub before: u128,
    pub after: u128,
}

impl Change {
    /// By how much it grew; zero if it did not.
    pub fn gain(&self) -> u128 {
        self.after.saturating_sub(self.before)
    }
}

/// A transaction in a block.
#[derive(Clone, Debug)]
pub struct Executed {
    pub slot: u64,
    /// Unix seconds, where the node kept them.
    pub time: Option<u64>,
    pub failed: bool,
    /// Who signed; the first paid the fee. Never empty.
    pub signers: Vec<Pubkey>,
    pub steps: Vec<Step>,
    /// What each account had in lamports; its position is the one in the transaction.
    pub lamports: Vec<(Pubkey, Change)>,
    /// What token accounts held before and after.
    pub before: Vec<Holding>,
    pub after: Vec<Holding>,
}

impl Executed {
    /// Puts the answer about the transaction `asked` together.
    pub fn join(asked: &[u8], raw: RawTransaction) -> Result<Self, Doubt> {
        let contradiction = Doubt::Contradiction;
        let RawTransaction {
            slot,
            block_time,
            meta,
            transaction: signed,
            version: _,
        } = raw;
        let meta = meta.ok_or(Doubt::Incomplete("the effects of the transaction"))?;
        if signed.signatures.first().map(Data::bytes) != Some(asked) {
            return Err(contradiction("another transaction"));
        }
        let message = signed.message;
        let required = usize::from(message.header.num_required_signatures);
        if required != signed.signatures.len() || required > message.account_keys.len() {
            return Err(contradiction("signatures and signers differ in number"));
        }
        let mut keys: Vec<Pubkey> = message.account_keys.iter().map(|key| key.0).collect();
        let signers = keys[..required].to_vec();
        let loaded = meta.loaded_addresses.iter();
        let loaded = loaded.flat_map(|loaded| loaded.writable.iter().chain(&loaded.readonly));
        keys.extend(loaded.map(|key| key.0));
        let mut known = HashSet::new();
        if keys.len() > 256 || !keys.iter().all(|key| known.insert(*key)) {
            return Err(contradiction("an account stands twice in the transaction"));
        }
        let time = block_time.map(u64::try_from).transpose();
        Ok(Self {
            slot,
            time: time.map_err(|_| contradiction("a time before 1970"))?,
            failed: meta.failed,
            signers,
            steps: steps(&keys, &message.instructions, &meta)?,
            lamports: lamports(&keys, &meta)?,
            before: holdings(&keys, meta.pre_token_balances.as_deref())?,
            after: holdings(&keys, meta.post_token_balances.as_deref())?,
        })
    }

    /// Who paid the fee.
    pub fn payer(&self) -> Option<Pubkey> {
        self.signers.first().copied()
    }

    pub fn is_signer(&self, account: &Pubkey) -> bool {
        self.signers.contains(account)
    }

    /// The texts of the message's memos that speak for whoever paid the fee. A memo that a program wrote meanwhile may
    /// hold anything; one that lists signers is theirs.
    pub fn memos(&self) -> impl Iterator<Item = &str> {
        let own = |step: &&Step| {
            step.program == MEMO
                && step.signed
                && (step.accounts.is_empty()
                    || self.payer().is_some_and(|it| step.accounts.contains(&it)))
        };
        let memos = self.steps.iter().filter(own);
        memos.filter_map(|step| std::str::from_utf8(step.data.bytes()).ok())
    }

    /// What `account` had in lamports; `None` where it is not of the transaction.
    pub fn lamports_of(&self, account: &Pubkey) -> Option<Change> {
        let mut found = self.lamports.iter().filter(|(of, _)| of == account);
        found.next().map(|(_, change)| *change)
    }

    /// What the token account `account` of `owner` held of `mint`; `None` where no balance of it is shown.
    pub fn tokens_of(&self, account: &Pubkey, owner: &Pubkey, mint: &Pubkey) -> Option<Change> {
        let held = |holdings: &[Holding]| {
            let of = (*account, *owner, *mint);
            let mut holdings = holdings.iter();
            let held = holdings.find(|it| (it.account, it.owner, it.mint) == of);
            held.map(|holding| u128::from(holding.amount))
        };
        match (held(&self.before), held(&self.after)) {
            (None, None) => None,
            (before, after) => Some(Change {
                before: before.unwrap_or_default(),
                after: after.unwrap_or_default(),
            }),
        }
    }

    /// The balance that is shown of a token account before the transaction, or else after it: an account that is made in the
    /// transaction holds nothing before, one that is closed nothing after.
    pub fn holding(&self, account: &Pubkey) -> Option<&Holding> {
        let mut shown = self.before.iter().chain(&self.after);
        shown.find(|holding| holding.account == *account)
    }

    /// Whether the answer has balances in lamports. On every real chain whoever paid the fee had it before; where all
    /// balances are zero, nothing was kept of them, and they prove nothing for or against a movement.
    pub fn shows_lamports(&self) -> bool {
        let mut all = self.lamports.iter();
        all.any(|(_, change)| *change != Change::default())
    }

    /// Whether the answer has balances of tokens: wherever lamports are kept, they are too.
    pub fn shows_tokens(&self) -> bool {
        self.shows_lamports() || !self.before.is_empty() || !self.after.is_empty()
    }
}

fn steps(
    keys: &[Pubkey],
    instructions: &[RawInstruction],
    meta: &RawMeta,
) -> Result<Vec<Step>, Doubt> {
    let inner = meta.inner_instructions.as_ref();
    let inner = inner.ok_or(Doubt::Incomplete("what programs called"))?;
    let mut least = 0;
    for caused in inner {
        let by = usize::from(caused.index);
        if by < least || by >= instructions.len() {
            return Err(Doubt::Contradiction("inner instructions out of order"));
        }
        least = by + 1;
    }
    let inner = inner.iter().flat_map(|caused| &caused.instructions);
    if instructions.len() + inner.clone().count() > MAX_STEPS {
        return Err(Doubt::Contradiction("more instructions than can run"));
    }
    let signed = instructions.iter().map(|raw| step(keys, raw, true));
    signed
        .chain(inner.map(|raw| step(keys, raw, false)))
        .collect()
}

fn step(keys: &[Pubkey], raw: &RawInstruction, signed: bool) -> Result<Step, Doubt> {
    let key = |at: u8| {
        let key = keys.get(usize::from(at)).copied();
        key.ok_or(Doubt::Contradiction("an instruction of an unknown account"))
    };
    Ok(Step {
        program: key(raw.program_id_index)?,
        accounts: raw
            .accounts
            .iter()
            .map(|at| key(*at))
            .collect::<Result<_, _>>()?,
        data: raw.data.clone(),
        signed,
    })
}

fn lamports(keys: &[Pubkey], meta: &RawMeta) -> Result<Vec<(Pubkey, Change)>, Doubt> {
    let (before, after) = (&meta.pre_balances, &meta.post_balances);
    if before.len() != after.len() || before.len() > keys.len() {
        return Err(Doubt::Contradiction("balances of other accounts"));
    }
    let changes = before.iter().zip(after).map(|(before, after)| Change {
        before: u128::from(*before),
        after: u128::from(*after),
    });
    Ok(keys.iter().copied().zip(changes).collect())
}

fn holdings(keys: &[Pubkey], raw: Option<&[RawTokenBalance]>) -> Result<Vec<Holding>, Doubt> {
    let raw = raw.ok_or(Doubt::Incomplete("balances of tokens"))?;
    let mut known = HashSet::new();
    let mut holdings = Vec::with_capacity(raw.len());
    for held in raw {
        let account = keys.get(usize::from(held.account_index)).copied();
        let account = account.filter(|_| known.insert(held.account_index));
        let amount = held.ui_token_amount.amount.parse();
        let (Some(account), Ok(amount)) = (account, amount) else {
            return Err(Doubt::Contradiction("a balance of tokens that is none"));
        };
        // Nodes of 2021 name no owner: nobody's holding.
        if let Some(owner) = held.owner {
            holdings.push(Holding {
                account,
                position: held.account_index,
                owner: owner.0,
                mint: held.mint.0,
                amount,
            });
        }
    }
    Ok(holdings)
}
