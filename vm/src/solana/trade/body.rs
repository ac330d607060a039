//! What the drafts of this family have in their bodies. Pure.

use borsh::{BorshDeserialize, BorshSerialize};
use solana_instruction::AccountMeta;
use solana_pubkey::Pubkey;

use crate::{
    CodecError,
    trade::{Body, Draft},
    types::{Address, Amount},
};

/// The first byte of a body.
const FORMAT: u8 = 1;

/// What a transaction does.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Content {
    /// What is paid. The instructions are made when it is signed: they depend on what the chain says of the currencies.
    Payments(Payments),
    /// Instructions that whoever compiles the message takes as they are.
    Instructions(Instructions),
}

/// Payments that all happen or none of them does.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Payments {
    /// The order that the transaction names.
    pub order: Option<[u8; 32]>,
    pub transfers: Vec<Transfer>,
}

/// One payment.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Transfer {
    pub to: [u8; 32],
    /// The mint, or the native currency's address.
    pub currency: [u8; 32],
    /// What has to arrive, in the currency's smallest unit.
    pub amount: u64,
}

/// The instructions of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Instructions {
    pub list: Vec<Instruction>,
    /// The addresses of the lookup tables that shorten the message.
    pub tables: Vec<[u8; 32]>,
    /// Who pays the fee, where it is not the sender.
    pub fee_payer: Option<[u8; 32]>,
    /// Whether an instruction that limits the compute units stands before the others.
    pub work_limit: bool,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Instruction {
    pub program: [u8; 32],
    pub accounts: Vec<Account>,
    pub data: Vec<u8>,
}

/// An account of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Account {
    pub key: [u8; 32],
    pub signs: bool,
    pub writable: bool,
}

impl Account {
    pub const fn key(&self) -> Pubkey {
        Pubkey::new_from_array(self.key)
    }
}

impl Content {
    /// What a draft of this family does.
    pub fn of(draft: &Draft) -> Result<Self, CodecError> {
        let foreign = || CodecError("Not a transaction of a Solana chain".into());
        match &draft.body {
            Body::Own(bytes) => match &bytes[..] {
                [FORMAT, rest @ ..] => Self::try_from_slice(rest).map_err(|_| foreign()),
                _ => Err(foreign()),
            },
            Body::Call { .. } => Err(CodecError("solana-vm makes no calls".into())),
        }
    }

    /// The draft of `from` that does it, and takes `value` lamports besides its fee.
    pub fn draft(&self, from: &Address, value: Amount) -> Result<Draft, CodecError> {
        let mut bytes = vec![FORMAT];
        self.serialize(&mut bytes)
            .map_err(|error| CodecError(error.to_string()))?;
        Ok(Draft {
            from: from.clone(),
            value,
            body: Body::Own(bytes.into()),
        })
    }
}

impl From<&solana_instruction::Instruction> for Instruction {
    fn from(made: &solana_instruction::Instruction) -> Self {
        let accounts = made.accounts.iter().map(|meta| Account {
            key: meta.pubkey.to_bytes(),
            signs: meta.is_signer,
            writable: meta.is_writable,
        });
        Self {
            program: made.program_id.to_bytes(),
            accounts: accounts.collect(),
            data: made.data.clone(),
        }
    }
}

impl From<&Instruction> for solana_instruction::Instruction {
    fn from(kept: &Instruction) -> Self {
        let accounts = kept.accounts.iter().map(|account| AccountMeta {
            pubkey: Pubkey::new_from_array(account.key),
            is_signer: account.signs,
            is_writable: account.writable,
        });
        Self {
            program_id: Pubkey::new_from_array(kept.program),
            accounts: accounts.collect(),
            data: kept.data.clone(),
        }
    }
}

/// The key that an address of this family has.
pub fn key(address: &Address) -> Result<Pubkey, CodecError> {
    let wrong = |_| CodecError(format!("Not 32 bytes of solana-vm: {address}"));
    Pubkey::try_from(address.bytes()).map_err(wrong)
}

/// The address that has a key.
pub fn address(key: &Pubkey) -> Address {
    Address::from_parts(&key.to_string(), key.to_bytes())
}

/// An amount as programs have it. An error where it has more than 64 bits.
pub fn small(amount: Amount) -> Result<u64, CodecError> {
    let large = |_| CodecError(format!("More than there can be: {amount}"));
    u64::try_from(amount).map_err(large)
}

impl Instructions {
    /// The addresses of the lookup tables.
    pub fn keys(&self) -> Vec<Pubkey> {
        let tables = self.tables.iter();
        tables.map(|table| Pubkey::new_from_array(*table)).collect()
    }
}
