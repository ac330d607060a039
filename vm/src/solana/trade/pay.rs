//! Payments: what the solver sends, and what users send straight to a recipient. Pure.
//!
//! A body has only what is paid. The instructions are made of it once it is known what the chain says of the currencies
//! ([`Facts`]): the token program, the decimals, whether transfers cost a fee. First come the accounts that must exist
//! and be the recipients', then the memo, then the transfers: an account that wants a memo wants it right before the
//! transfer.

use alloy::hex;
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;
use solana_system_interface::instruction as system;
use spl_token_2022_interface::instruction as token;

use super::{
    super::programs::{ASSOCIATED, MEMO, SYSTEM, TOKENS},
    body::{Content, Payments, Transfer, key, small},
    memory,
    mint::Mint,
    node::Made,
};
use crate::{
    CodecError,
    trade::{Draft, Fill, FillTerms, PaymentTerms},
    types::{Address, Amount, B256},
};

/// The associated token program's instruction that makes an account where there is none.
pub const CREATE_IDEMPOTENT: u8 = 1;

/// What payments have to know of their chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub mints: Vec<Mint>,
    /// Token accounts that are there: nobody pays for them. What an account that has gone since costs is in no price.
    pub there: Vec<Pubkey>,
}

/// A transfer of tokens with what its mint is.
struct Sent<'a> {
    mint: &'a Mint,
    to: Pubkey,
    /// The recipient's associated account.
    account: Pubkey,
    amount: u64,
}

impl Facts {
    /// What this process knows of the payments' currencies already.
    pub fn known(payments: &Payments) -> Self {
        let mints = payments.mints().into_iter();
        Self {
            mints: mints.filter_map(|mint| memory::known(&mint)).collect(),
            there: Vec::new(),
        }
    }

    fn mint(&self, key: &Pubkey) -> Result<&Mint, CodecError> {
        let found = self.mints.iter().find(|mint| mint.key == *key);
        let found = found.ok_or_else(|| CodecError(format!("no mint is known at {key}")))?;
        match found.unpaid() {
            Some(why) => Err(CodecError(format!("tokens of {key} are not sent: {why}"))),
            None => Ok(found),
        }
    }

    /// Why one of the currencies is not paid in, whatever else is true of the payments.
    pub fn unpaid(&self) -> Option<String> {
        let mut mints = self.mints.iter();
        mints.find_map(|mint| Some(format!("tokens of {}: {}", mint.key, mint.unpaid()?)))
    }
}

impl Payments {
    /// The mints of the tokens that are paid, each once.
    pub fn mints(&self) -> Vec<Pubkey> {
        let tokens = self.transfers.iter().filter(|one| !one.is_native());
        let mut mints: Vec<_> = tokens.map(Transfer::mint).collect();
        mints.sort_unstable();
        mints.dedup();
        mints
    }

    /// Lamports that are paid.
    pub fn native(&self) -> Result<u64, CodecError> {
        let native = self.transfers.iter().filter(|one| one.is_native());
        let mut sums = native.map(|one| one.amount);
        let sum = sums.try_fold(0_u64, u64::checked_add);
        sum.ok_or_else(|| CodecError("more than there can be".into()))
    }

    /// What is taken of each token.
    pub fn tokens(&self, facts: &Facts) -> Result<Vec<(Pubkey, Amount)>, CodecError> {
        let mut sums: Vec<(Pubkey, Amount)> = Vec::new();
        for one in self.transfers.iter().filter(|one| !one.is_native()) {
            let sent = one.sent(facts)?;
            let amount = Amount::from(sent.amount);
            match sums.iter_mut().find(|(mint, _)| *mint == sent.mint.key) {
                Some((_, sum)) => *sum = sum.saturating_add(amount),
                None => sums.push((sent.mint.key, amount)),
            }
        }
        Ok(sums)
    }

    /// The accounts that have to be there, each once.
    pub fn made(&self, facts: &Facts) -> Result<Vec<Made>, CodecError> {
        let mut made: Vec<Made> = Vec::new();
        for one in self.transfers.iter().filter(|one| !one.is_native()) {
            let Sent { mint, account, .. } = one.sent(facts)?;
            if made.iter().all(|known| known.key != account) {
                made.push(Made {
                    key: account,
                    bytes: mint.account_bytes,
                });
            }
        }
        Ok(made)
    }

    /// The instructions by which `payer` makes the payments.
    pub fn instructions(
        &self,
        payer: &Pubkey,
        facts: &Facts,
    ) -> Result<Vec<Instruction>, CodecError> {
        let (mut list, mut transfers) = (Vec::new(), Vec::new());
        let mut made: Vec<Pubkey> = Vec::new();
        for one in &self.transfers {
            if one.is_native() {
                let to = Pubkey::new_from_array(one.to);
                transfers.push(system::transfer(payer, &to, one.amount));
                continue;
            }
            let sent = one.sent(facts)?;
            if !made.contains(&sent.account) {
                made.push(sent.account);
                list.push(match facts.there.contains(&sent.account) {
                    true => check(&sent.to, sent.mint, &sent.account),
                    false => create(payer, &sent.to, sent.mint, &sent.account),
                });
            }
            transfers.push(sent.transfer(payer)?);
        }
        list.extend(self.order.map(|order| memo(B256::new(order))));
        list.extend(transfers);
        Ok(list)
    }

    /// The draft of `from` that makes them.
    pub fn draft(&self, from: &Address) -> Result<Draft, CodecError> {
        let value = Amount::from(self.native()?);
        Content::Payments(self.clone()).draft(from, value)
    }
}

impl Transfer {
    fn of(from: &Address, to: &Address, paid: (&Address, Amount)) -> Result<Self, CodecError> {
        let (currency, amount) = paid;
        // Such a transfer would succeed and pay nobody.
        if from.bytes() == to.bytes() {
            return Err(CodecError("The payer would pay itself".into()));
        }
        let to = key(to)?;
        if to == SYSTEM || TOKENS.contains(&to) {
            return Err(CodecError("Nobody gets what a program is paid".into()));
        }
        Ok(Self {
            to: to.to_bytes(),
            currency: key(currency)?.to_bytes(),
            amount: small(amount)?,
        })
    }

    /// Of lamports: the address of the native currency is the system program's.
    fn is_native(&self) -> bool {
        self.currency == SYSTEM.to_bytes()
    }

    fn mint(&self) -> Pubkey {
        Pubkey::new_from_array(self.currency)
    }

    fn sent<'a>(&self, facts: &'a Facts) -> Result<Sent<'a>, CodecError> {
        let mint = facts.mint(&self.mint())?;
        let to = Pubkey::new_from_array(self.to);
        Ok(Sent {
            mint,
            to,
            account: mint.account_of(&to)?,
            amount: self.amount,
        })
    }
}

impl Sent<'_> {
    fn transfer(&self, payer: &Pubkey) -> Result<Instruction, CodecError> {
        let Mint {
            key,
            program,
            decimals,
            ..
        } = self.mint;
        let from = self.mint.account_of(payer)?;
        let made = token::transfer_checked(
            program,
            &from,
            key,
            &self.account,
            payer,
            &[],
            self.amount,
            *decimals,
        );
        made.map_err(|error| CodecError(error.to_string()))
    }
}

/// Makes the recipient's associated account where there is none (the associated token account program). It fails where
/// the account has another owner: an owner can give its account away, and what is paid into it is the other's then.
pub fn create(payer: &Pubkey, owner: &Pubkey, mint: &Mint, account: &Pubkey) -> Instruction {
    created(AccountMeta::new(*payer, true), owner, mint, account)
}

/// The same for an account that is there. Nobody signs to pay for a new one, which the program asks for only where it
/// makes one: it fails where the account has been closed since.
fn check(owner: &Pubkey, mint: &Mint, account: &Pubkey) -> Instruction {
    created(
        AccountMeta::new_readonly(*owner, false),
        owner,
        mint,
        account,
    )
}

fn created(payer: AccountMeta, owner: &Pubkey, mint: &Mint, account: &Pubkey) -> Instruction {
    Instruction {
        program_id: ASSOCIATED,
        accounts: vec![
            payer,
            AccountMeta::new(*account, false),
            AccountMeta::new_readonly(*owner, false),
            AccountMeta::new_readonly(mint.key, false),
            AccountMeta::new_readonly(SYSTEM, false),
            AccountMeta::new_readonly(mint.program, false),
        ],
        data: vec![CREATE_IDEMPOTENT],
    }
}

/// The memo that names an order (guide: protocol 3.4).
pub fn memo(order: B256) -> Instruction {
    Instruction {
        program_id: MEMO,
        accounts: Vec::new(),
        data: hex::encode_prefixed(order).into_bytes(),
    }
}

/// A payment straight to its recipient, which names its order.
pub fn send(terms: &PaymentTerms<'_>) -> Result<Draft, CodecError> {
    let paid = (terms.currency, terms.amount);
    let payments = Payments {
        order: Some(terms.order.0),
        transfers: vec![Transfer::of(terms.from, terms.to, paid)?],
    };
    payments.draft(terms.from)
}

/// The same transaction, which names an order besides. In a list of instructions the memo is the last one.
pub fn name(draft: &Draft, order: B256) -> Result<Draft, CodecError> {
    let named = match Content::of(draft)? {
        Content::Payments(payments) => Content::Payments(Payments {
            order: Some(order.0),
            ..payments
        }),
        Content::Instructions(mut own) => {
            own.list.push((&memo(order)).into());
            Content::Instructions(own)
        }
    };
    named.draft(&draft.from, draft.value)
}

/// The payments of an order in one transaction of the solver's.
pub fn fill(terms: &FillTerms<'_>) -> Result<Fill, CodecError> {
    let calls = !terms.calls.is_empty() || !terms.authorizations.is_empty();
    if calls || terms.router.is_some() || terms.proxy.is_some() {
        return Err(CodecError("solana-vm makes no calls".into()));
    }
    if terms.payments.is_empty() {
        return Err(CodecError("Nothing to fill".into()));
    }
    let transfers = terms.payments.iter();
    let transfers =
        transfers.map(|paid| Transfer::of(terms.solver, &paid.to, (&paid.currency, paid.amount)));
    let payments = Payments {
        order: Some(terms.order.0),
        transfers: transfers.collect::<Result<_, _>>()?,
    };
    Ok(Fill {
        draft: payments.draft(terms.solver)?,
        routed: false,
        spender: None,
    })
}

#[cfg(test)]
mod tests;
