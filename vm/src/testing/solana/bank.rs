//! What accounts have, and what transactions do to it.

use std::collections::{BTreeMap, BTreeSet};

use solana_pubkey::Pubkey;

use super::wire::{Compiled, Sent};
use crate::solana::programs::{ASSOCIATED, COMPUTE_BUDGET, MEMO, SYSTEM, TOKEN, associated, vault};

/// Lamports that a signature costs, and that a token account has to have.
pub const SIGNATURE_FEE: u64 = 5_000;
pub const RENT: u64 = 2_039_280;
/// `SetComputeUnitLimit` and `SetComputeUnitPrice`.
const UNIT_LIMIT: u8 = 2;
const UNIT_PRICE: u8 = 3;
/// `TransferChecked` of the token program, and the system program's `Transfer`.
const TRANSFER_CHECKED: u8 = 12;
const SYSTEM_TRANSFER: [u8; 4] = [2, 0, 0, 0];
/// `CreateIdempotent` of the associated token program.
const CREATE: u8 = 1;
/// Anchor's discriminators of the depository's deposits.
const DEPOSIT_NATIVE: [u8; 8] = [0x0d, 0x9e, 0x0d, 0xdf, 0x5f, 0xd5, 0x1c, 0x06];
const DEPOSIT_TOKEN: [u8; 8] = [0x0b, 0x9c, 0x60, 0xda, 0x27, 0xa3, 0xb4, 0x13];

/// What accounts have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bank {
    pub lamports: BTreeMap<Pubkey, u64>,
    /// Token accounts: their owner and mint, and what they hold.
    pub tokens: BTreeMap<Pubkey, (Pubkey, Pubkey, u64)>,
}

/// A transaction in a block, with what accounts had before and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub sent: Sent,
    pub success: bool,
    pub fee: u64,
    pub before: Bank,
    pub after: Bank,
}

/// What a transaction pays: to whom, of what, how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paid {
    pub to: Pubkey,
    /// The native currency's is the system program's address.
    pub currency: Pubkey,
    pub amount: u64,
}

/// Who is there besides the accounts.
#[derive(Clone, Debug)]
pub struct Programs {
    pub depository: Pubkey,
    /// Accounts whose payments fail.
    pub closed: BTreeSet<Pubkey>,
}

impl Bank {
    pub fn lamports_of(&self, key: &Pubkey) -> u64 {
        self.lamports.get(key).copied().unwrap_or_default()
    }

    /// Of the native currency or of a mint's tokens.
    pub fn balance(&self, owner: &Pubkey, currency: &Pubkey) -> u64 {
        if *currency == SYSTEM {
            return self.lamports_of(owner);
        }
        let account = associated(owner, currency, &TOKEN);
        let found = account.and_then(|account| self.tokens.get(&account));
        found.map_or(0, |(_, _, amount)| *amount)
    }

    /// Gives an account more.
    pub fn fund(&mut self, owner: &Pubkey, currency: &Pubkey, amount: u64) {
        if *currency == SYSTEM {
            *self.lamports.entry(*owner).or_default() += amount;
        } else if let Some(account) = associated(owner, currency, &TOKEN) {
            self.lamports.entry(account).or_insert(RENT);
            let held = self.tokens.entry(account).or_insert((*owner, *currency, 0));
            held.2 += amount;
        }
    }

    /// Gives the account that `owner` has by its address to `to`. It is made where there is none.
    pub fn give_away(&mut self, owner: &Pubkey, currency: &Pubkey, to: &Pubkey) {
        self.fund(owner, currency, 0);
        let account = associated(owner, currency, &TOKEN);
        let held = account.and_then(|account| self.tokens.get_mut(&account));
        if let Some(held) = held {
            held.0 = *to;
        }
    }

    /// Does a transaction. `None` where its payer cannot pay the fee: no block has it. One that fails costs its fee.
    pub fn execute(&self, sent: &Sent, programs: &Programs) -> Option<Done> {
        let fee = fee(sent);
        let mut charged = self.clone();
        charged.take(&sent.payer(), fee)?;
        let mut after = charged.clone();
        let done = sent.instructions.iter();
        let done = done.map(|one| after.run(sent, one, programs));
        let success = done.collect::<Option<()>>().is_some();
        Some(Done {
            sent: sent.clone(),
            success,
            fee,
            before: self.clone(),
            after: if success { after } else { charged },
        })
    }

    fn run(&mut self, sent: &Sent, one: &Compiled, programs: &Programs) -> Option<()> {
        let at = |place: usize| {
            let place = usize::from(*one.accounts.get(place)?);
            let key = sent.keys.get(place).copied()?;
            Some((key, place < sent.signers))
        };
        let amount = |from: usize| {
            let bytes = one.data.get(from..from + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let program = *sent.keys.get(usize::from(one.program))?;
        if program == MEMO || program == COMPUTE_BUDGET {
            return Some(());
        }
        if program == SYSTEM && one.data.starts_with(&SYSTEM_TRANSFER) {
            let ((from, signs), (to, _)) = (at(0)?, at(1)?);
            return (signs && !programs.closed.contains(&to))
                .then(|| self.pass(&from, &to, amount(4)?))?;
        }
        if program == ASSOCIATED && one.data == [CREATE] {
            let ((payer, signs), (account, _)) = (at(0)?, at(1)?);
            let payer = signs.then_some(payer);
            return self.create(payer, account, (at(2)?.0, at(3)?.0));
        }
        if program == TOKEN && one.data.first() == Some(&TRANSFER_CHECKED) {
            let ((from, _), (to, _), (owner, signs)) = (at(0)?, at(2)?, at(3)?);
            let closed = self.tokens.get(&to).map(|held| held.0);
            let closed = closed.is_none_or(|owner| programs.closed.contains(&owner));
            return (signs && !closed).then(|| self.move_tokens(&owner, (from, to), amount(1)?))?;
        }
        if program == programs.depository && one.data.starts_with(&DEPOSIT_NATIVE) {
            let ((from, signs), (to, _)) = (at(1)?, at(3)?);
            let right = signs && vault(&program) == Some(to);
            return right.then(|| self.pass(&from, &to, amount(8)?))?;
        }
        if program == programs.depository && one.data.starts_with(&DEPOSIT_TOKEN) {
            let ((owner, signs), (to, _), (mint, _)) = (at(1)?, at(3)?, at(4)?);
            let (from, into) = (at(5)?.0, at(6)?.0);
            let right = signs && vault(&program) == Some(to);
            right.then_some(())?;
            self.create(Some(owner), into, (to, mint))?;
            return self.move_tokens(&owner, (from, into), amount(8)?);
        }
        None
    }

    fn take(&mut self, key: &Pubkey, amount: u64) -> Option<()> {
        let left = self.lamports_of(key).checked_sub(amount)?;
        self.lamports.insert(*key, left);
        Some(())
    }

    fn pass(&mut self, from: &Pubkey, to: &Pubkey, amount: u64) -> Option<()> {
        self.take(from, amount)?;
        *self.lamports.entry(*to).or_default() += amount;
        Some(())
    }

    /// An account is made at its payer's cost, and is left alone where it is its owner's already.
    fn create(
        &mut self,
        payer: Option<Pubkey>,
        account: Pubkey,
        (owner, mint): (Pubkey, Pubkey),
    ) -> Option<()> {
        if associated(&owner, &mint, &TOKEN) != Some(account) {
            return None;
        }
        if let Some(held) = self.tokens.get(&account) {
            return (held.0 == owner).then_some(());
        }
        self.pass(&payer?, &account, RENT)?;
        self.tokens.insert(account, (owner, mint, 0));
        Some(())
    }

    fn move_tokens(
        &mut self,
        owner: &Pubkey,
        (from, to): (Pubkey, Pubkey),
        amount: u64,
    ) -> Option<()> {
        let source = self.tokens.get_mut(&from).filter(|held| held.0 == *owner)?;
        let mint = source.1;
        source.2 = source.2.checked_sub(amount)?;
        let target = self.tokens.get_mut(&to).filter(|held| held.1 == mint)?;
        target.2 += amount;
        Some(())
    }
}

impl Done {
    /// The memo.
    pub fn memo(&self) -> Option<String> {
        let sent = &self.sent;
        let is_memo = |one: &&Compiled| sent.keys.get(usize::from(one.program)) == Some(&MEMO);
        let found = sent.instructions.iter().find(is_memo)?;
        String::from_utf8(found.data.clone()).ok()
    }

    /// What accounts got of the payer's, by owner.
    pub fn paid(&self) -> Vec<Paid> {
        let gained = |before: u64, after: u64| after.saturating_sub(before);
        let lamports = self.after.lamports.iter().map(|(key, after)| Paid {
            to: *key,
            currency: SYSTEM,
            amount: gained(self.before.lamports_of(key), *after),
        });
        let tokens = self
            .after
            .tokens
            .iter()
            .map(|(key, (owner, mint, after))| Paid {
                to: *owner,
                currency: *mint,
                amount: gained(self.before.tokens.get(key).map_or(0, |held| held.2), *after),
            });
        lamports
            .chain(tokens)
            .filter(|one| one.amount > 0)
            .collect()
    }
}

/// For the signature, and for the units that it may take at the price that it bids.
fn fee(sent: &Sent) -> u64 {
    let budget = |kind: u8| {
        let own = sent.instructions.iter().filter(|one| {
            sent.keys.get(usize::from(one.program)) == Some(&COMPUTE_BUDGET)
                && one.data.first() == Some(&kind)
        });
        let data = own.map(|one| one.data[1..].to_vec()).next()?;
        let mut bytes = [0; 8];
        bytes[..data.len().min(8)].copy_from_slice(&data[..data.len().min(8)]);
        Some(u64::from_le_bytes(bytes))
    };
    let units = budget(UNIT_LIMIT).unwrap_or(200_000);
    let price = budget(UNIT_PRICE).unwrap_or_default();
    let work = units.saturating_mul(price).div_ceil(1_000_000);
    SIGNATURE_FEE.saturating_add(work)
}
