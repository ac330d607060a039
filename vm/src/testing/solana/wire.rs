//! Transactions as they are sent, and as users sign them.

use alloy::hex;
use serde_json::Value;
use solana_hash::Hash;
use solana_instruction::{AccountMeta, Instruction};
use solana_message::{VersionedMessage, v0};
use solana_pubkey::Pubkey;

use crate::testing::scripted::Key;

/// A transaction of one signature, without lookup tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub signature: [u8; 64],
    pub message: Vec<u8>,
    /// How many of the accounts sign: the first ones. The first pays.
    pub signers: usize,
    pub keys: Vec<Pubkey>,
    pub blockhash: [u8; 32],
    pub instructions: Vec<Compiled>,
}

/// An instruction whose accounts are named by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    pub program: u8,
    pub accounts: Vec<u8>,
    pub data: Vec<u8>,
}

/// Bytes that are read from the front.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// A number of up to three bytes, of which each has seven bits of it.
    fn short(&mut self) -> Option<usize> {
        let mut number = 0;
        for place in 0..3 {
            let byte = usize::from(self.byte()?);
            number |= (byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let count = self.short()?;
        self.take(count).map(<[u8]>::to_vec)
    }

    fn key(&mut self) -> Option<[u8; 32]> {
        self.take(32)?.try_into().ok()
    }
}

impl Sent {
    /// Reads a transaction of version 0; `None` where it is none that this chain takes.
    pub fn read(raw: &[u8]) -> Option<Self> {
        let mut rest = Rest(raw);
        if rest.short()? != 1 {
            return None;
        }
        let signature = rest.take(64)?.try_into().ok()?;
        let message = rest.0.to_vec();
        if rest.byte()? != 0x80 {
            return None;
        }
        let signers = usize::from(rest.byte()?);
        rest.take(2)?;
        let count = rest.short()?;
        let keys: Option<Vec<_>> = (0..count).map(|_| rest.key()).collect();
        let blockhash = rest.key()?;
        let count = rest.short()?;
        let read = |rest: &mut Rest<'_>| {
            Some(Compiled {
                program: rest.byte()?,
                accounts: rest.bytes()?,
                data: rest.bytes()?,
            })
        };
        let instructions: Option<Vec<_>> = (0..count).map(|_| read(&mut rest)).collect();
        let tables = rest.short()?;
        let whole = tables == 0 && rest.0.is_empty() && signers == 1;
        whole.then_some(Self {
            signature,
            message,
            signers,
            keys: keys?.into_iter().map(Pubkey::new_from_array).collect(),
            blockhash,
            instructions: instructions?,
        })
    }

    /// The text of its id.
    pub fn id(&self) -> String {
        bs58::encode(&self.signature).into_string()
    }

    pub fn payer(&self) -> Pubkey {
        self.keys.first().copied().unwrap_or_default()
    }

    /// Whether the payer signed it.
    pub fn is_signed(&self) -> bool {
        let payer = crate::B256::new(self.payer().to_bytes());
        crate::testing::scripted::is_signed(&payer, &self.message, &self.signature)
    }
}

/// The transaction of a step as its user signs it: the step's data have instructions. `None` where they have none.
pub fn signed(key: &Key, data: &Value, blockhash: [u8; 32]) -> Option<Vec<u8>> {
    let instructions = data["instructions"].as_array()?.iter();
    let instructions: Option<Vec<_>> = instructions.map(instruction).collect();
    let payer = Pubkey::new_from_array(key.bytes().0);
    let hash = Hash::from(blockhash);
    let message = v0::Message::try_compile(&payer, &instructions?, &[], hash).ok()?;
    let message = VersionedMessage::V0(message).serialize();
    let signature = key.signature(&message);
    Some([&[1], &signature[..], &message].concat())
}

fn instruction(shown: &Value) -> Option<Instruction> {
    let account = |shown: &Value| {
        Some(AccountMeta {
            pubkey: shown["pubkey"].as_str()?.parse().ok()?,
            is_signer: shown["isSigner"].as_bool()?,
            is_writable: shown["isWritable"].as_bool()?,
        })
    };
    let accounts: Option<Vec<_>> = shown["keys"].as_array()?.iter().map(account).collect();
    Some(Instruction {
        program_id: shown["programId"].as_str()?.parse().ok()?,
        accounts: accounts?,
        data: hex::decode(shown["data"].as_str()?).ok()?,
    })
}
