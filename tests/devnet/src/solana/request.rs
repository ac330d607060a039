//! A withdrawal as the allocator lets the depository's program execute it (guide: protocol 8.1 and 8.2). Pure.

use alloy::{hex, primitives::Bytes};
use solana_pubkey::Pubkey;

use super::{Depository, Token};
use crate::world::WithdrawalForm;

/// What the depository is to pay.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub domain: [u8; 32],
    pub recipient: Pubkey,
    /// `None` for the native currency.
    pub token: Option<Token>,
    pub amount: u64,
    pub nonce: u64,
    /// Unix seconds.
    pub expiration: i64,
}

impl Request {
    /// The request in Borsh, for a depository.
    pub fn encode(&self, depository: &Depository) -> Vec<u8> {
        let token = self.token.map(|(mint, _)| mint.to_bytes());
        let token = token.map_or(vec![0], |mint| [&[1], &mint[..]].concat());
        [
            &self.domain[..],
            &self.recipient.to_bytes(),
            &token,
            &self.amount.to_le_bytes(),
            &self.nonce.to_le_bytes(),
            &self.expiration.to_le_bytes(),
            &depository.vault().to_bytes(),
        ]
        .concat()
    }

    /// Reads what [`Request::encode`] wrote; the token program is not in it.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, Option<Pubkey>)> {
        let (domain, rest) = bytes.split_first_chunk::<32>()?;
        let (recipient, rest) = rest.split_first_chunk::<32>()?;
        let (mint, rest) = match rest.split_first()? {
            (0, rest) => (None, rest),
            (1, rest) => {
                let (mint, rest) = rest.split_first_chunk::<32>()?;
                (Some(Pubkey::from(*mint)), rest)
            }
            _ => return None,
        };
        let (amount, rest) = rest.split_first_chunk::<8>()?;
        let (nonce, rest) = rest.split_first_chunk::<8>()?;
        let (expiration, rest) = rest.split_first_chunk::<8>()?;
        let request = Self {
            domain: *domain,
            recipient: Pubkey::from(*recipient),
            token: None,
            amount: u64::from_le_bytes(*amount),
            nonce: u64::from_le_bytes(*nonce),
            expiration: i64::from_le_bytes(*expiration),
        };
        (rest.len() == 32).then_some((request, mint))
    }

    /// The withdrawal's id.
    pub fn id(&self, depository: &Depository) -> [u8; 32] {
        super::sha256(&self.encode(depository))
    }

    /// The withdrawal in the form of its family.
    pub fn form(&self, depository: &Depository) -> WithdrawalForm {
        let encoded = Bytes::from(self.encode(depository));
        let mint = self.token.map(|(mint, _)| hex::encode(mint.to_bytes()));
        WithdrawalForm {
            payload: encoded.clone(),
            encoded,
            currency: mint.unwrap_or_default(),
            receiver: hex::encode(self.recipient.to_bytes()),
            data: Bytes::new(),
            additional: None,
        }
    }
}
