//! Answers about accounts, and transactions as they come over the wire.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use litesvm::LiteSVM;
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::{Value, json};
use solana_account_decoder::{
    UiAccountEncoding, encode_ui_account,
    parse_account_data::{AccountAdditionalDataV3, SplTokenAdditionalDataV2},
    parse_token::get_token_account_mint,
};
use solana_pubkey::Pubkey;
use solana_transaction::versioned::VersionedTransaction;
use spl_token_2022_interface::{extension::StateWithExtensions, state::Mint};

use super::{Refused, View, as_value};

impl View<'_> {
    pub fn account(&self) -> Result<Value, Refused> {
        let shown = self.shown_account(&self.params[0])?;
        self.in_context(shown)
    }

    pub fn accounts(&self) -> Result<Value, Refused> {
        let asked = self.params[0].as_array();
        let asked = asked.ok_or_else(|| Refused::params("expected accounts"))?;
        let shown = asked.iter().map(|account| self.shown_account(account));
        self.in_context(shown.collect::<Result<_, _>>()?)
    }

    pub fn balance(&self) -> Result<Value, Refused> {
        let balance = self.context()?.state.get_balance(&key(self.text(0)?)?);
        self.in_context(json!(balance.unwrap_or(0)))
    }

    pub fn rent(&self) -> Result<Value, Refused> {
        let length = usize::try_from(self.number(0)?).unwrap_or(usize::MAX);
        let state = &self.context()?.state;
        Ok(json!(state.minimum_balance_for_rent_exemption(length)))
    }

    fn shown_account(&self, named: &Value) -> Result<Value, Refused> {
        let key = key(named.as_str().unwrap_or_default())?;
        let state = &self.context()?.state;
        // An account without lamports does not exist.
        let Some(account) = state.get_account(&key).filter(|found| found.lamports > 0) else {
            return Ok(Value::Null);
        };
        let encoding = option(self.option("encoding"))?.unwrap_or(UiAccountEncoding::Base58);
        let slice = option(self.option("dataSlice"))?;
        let more = unit(state, &account.data);
        as_value(encode_ui_account(&key, &account, encoding, more, slice))
    }
}

/// What a token account's own data do not say: the unit of its tokens.
fn unit(state: &LiteSVM, data: &[u8]) -> Option<AccountAdditionalDataV3> {
    let mint = state.get_account(&get_token_account_mint(data)?)?;
    let mint = StateWithExtensions::<Mint>::unpack(&mint.data).ok()?;
    let unit = SplTokenAdditionalDataV2::with_decimals(mint.base.decimals);
    Some(AccountAdditionalDataV3 {
        spl_token_additional_data: Some(unit),
    })
}

/// The signed transaction in the parameters of `sendTransaction`.
pub fn decode(params: &Value) -> Result<VersionedTransaction, Refused> {
    let text = params[0].as_str().unwrap_or_default();
    let wire = match params[1]["encoding"].as_str().unwrap_or("base58") {
        "base58" => bs58::decode(text).into_vec().ok(),
        "base64" => STANDARD.decode(text).ok(),
        _ => None,
    };
    let decoded = wire.and_then(|wire| wincode::deserialize::<VersionedTransaction>(&wire).ok());
    let decoded = decoded.filter(|transaction| transaction.sanitize().is_ok());
    decoded.ok_or_else(|| Refused::params("failed to deserialize VersionedTransaction"))
}

pub fn key(text: &str) -> Result<Pubkey, Refused> {
    let key = text.parse();
    key.map_err(|_| Refused::params(format!("Invalid param: {text}")))
}

fn option<T: DeserializeOwned>(value: &Value) -> Result<Option<T>, Refused> {
    let read = Option::<T>::deserialize(value);
    read.map_err(|error| Refused::params(error.to_string()))
}
