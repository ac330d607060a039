//! What accounts hold and what mints say of themselves, by one node's word.
//!
//! An account's tokens are those of its associated account: nothing else is spent. A mint's name stands in the mint
//! itself (Token-2022's token metadata) or in the account that Metaplex's program derives from it.

use async_trait::async_trait;
use borsh::BorshDeserialize;
use solana_pubkey::{Pubkey, pubkey};
use spl_token_2022_interface::{
    extension::{BaseStateWithExtensions, StateWithExtensions},
    state::Mint as MintState,
};
use spl_token_metadata_interface::state::TokenMetadata;

use super::{
    super::{
        programs::{SYSTEM, TOKENS, associated},
        raw::RawAccount,
    },
    body::key,
    mint::held,
    node::Node,
};
use crate::{
    CodecError, ReadError,
    trade::{Accounts, CurrencyInfo},
    types::{Address, Amount},
};

/// Metaplex's token metadata program.
const METAPLEX: Pubkey = pubkey!("metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s");
/// The first byte of its accounts that name a mint.
const METADATA: u8 = 4;
/// Bytes of a name or a symbol that are read.
const LONGEST: usize = 64;

/// The beginning of Metaplex's metadata account.
#[derive(BorshDeserialize)]
struct Metadata {
    kind: u8,
    _update_authority: [u8; 32],
    mint: [u8; 32],
    name: String,
    symbol: String,
}

#[async_trait]
impl Accounts for Node {
    async fn balance(&self, owner: &Address, currency: &Address) -> Result<Amount, ReadError> {
        let (owner, currency) = (known(key(owner))?, known(key(currency))?);
        let questions = &self.link.questions;
        if currency == SYSTEM {
            let asked = questions.lamports(&owner);
            return Ok(Amount::from(self.link.read(Box::pin(asked)).await?));
        }
        let accounts = TOKENS.map(|program| associated(&owner, &currency, &program));
        let [Some(old), Some(new)] = accounts else {
            return Ok(Amount::ZERO);
        };
        let keys = [currency, old, new];
        let asked = questions.accounts(&keys);
        let found = self.link.read(Box::pin(asked)).await?;
        let [mint, old, new] = &found[..] else {
            return Err(ReadError::Doubtful("an account is missing".into()));
        };
        let mint = mint.as_ref().and_then(|it| self.heard(&currency, it));
        let Some(mint) = mint else {
            return Ok(Amount::ZERO);
        };
        let account = match mint.program == TOKENS[0] {
            true => old,
            false => new,
        };
        let account = account.as_ref();
        let amount = account.map(|account| held(&mint, &owner, account));
        Ok(Amount::from(amount.unwrap_or_default()))
    }

    async fn currency(&self, currency: &Address) -> Result<Option<CurrencyInfo>, ReadError> {
        let currency = known(key(currency))?;
        let Some(metadata) = metadata(&currency) else {
            return Ok(None);
        };
        let keys = [currency, metadata];
        let asked = self.link.questions.accounts(&keys);
        let found = self.link.read(Box::pin(asked)).await?;
        let [Some(account), beside] = &found[..] else {
            return Ok(None);
        };
        let Some(mint) = self.heard(&currency, account) else {
            return Ok(None);
        };
        let said = own(&currency, account).or_else(|| named(&currency, beside.as_ref()?));
        let (name, symbol) = said.unwrap_or_default();
        let [name, symbol] = [name, symbol].map(|text| shown(&text));
        let or = |one: &str, other: &str| match one.is_empty() {
            true => other.to_owned(),
            false => one.to_owned(),
        };
        Ok(Some(CurrencyInfo {
            symbol: or(&symbol, &name),
            name: or(&name, &symbol),
            decimals: mint.decimals,
            scaled: mint.scaled,
        }))
    }
}

/// The account in which Metaplex's program keeps what a mint is called.
pub fn metadata(mint: &Pubkey) -> Option<Pubkey> {
    let seeds = [b"metadata", METAPLEX.as_ref(), mint.as_ref()];
    Pubkey::try_find_program_address(&seeds, &METAPLEX).map(|(address, _)| address)
}

/// Name and symbol that stand in the mint itself. An entry of another mint's is none.
fn own(mint: &Pubkey, account: &RawAccount) -> Option<(String, String)> {
    let data = account.bytes()?;
    let state = StateWithExtensions::<MintState>::unpack(&data).ok()?;
    let said = state.get_variable_len_extension::<TokenMetadata>().ok()?;
    (said.mint == *mint).then_some((said.name, said.symbol))
}

/// Name and symbol by Metaplex's account.
fn named(mint: &Pubkey, account: &RawAccount) -> Option<(String, String)> {
    let data = account.bytes().filter(|_| account.owner.0 == METAPLEX)?;
    let said = Metadata::deserialize(&mut &data[..]).ok()?;
    let own = said.kind == METADATA && said.mint == mint.to_bytes();
    own.then_some((said.name, said.symbol))
}

/// A text without what fills it up, and without what is no text.
fn shown(text: &str) -> String {
    let letters = text.chars().filter(|letter| !letter.is_control());
    let letters: String = letters.take(LONGEST).collect();
    letters.trim().to_owned()
}

fn known(key: Result<Pubkey, CodecError>) -> Result<Pubkey, ReadError> {
    key.map_err(|error| ReadError::Doubtful(error.to_string()))
}

#[cfg(test)]
mod tests;
