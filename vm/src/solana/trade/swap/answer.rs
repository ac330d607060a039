//! The service's answers, read strictly where anything rests on them. Pure.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use solana_pubkey::Pubkey;

use super::{super::super::raw::Key, mode, unavailable};
use crate::{protocol::text, trade::SwapError, types::Amount};

/// Basis points of the whole.
const BASIS: u64 = 10_000;
/// The longest note of a way.
const LONGEST_NOTE: usize = 64 << 10;
/// Codes by which the service refuses what it has no way for.
const NO_ROUTE: &[&str] = &[
    "COULD_NOT_FIND_ANY_ROUTE",
    "NO_ROUTES_FOUND",
    "ROUTE_PLAN_DOES_NOT_CONSUME_ALL_THE_AMOUNT",
    "TOKEN_NOT_TRADABLE",
    "CIRCULAR_ARBITRAGE_IS_DISABLED",
    "MARKET_NOT_FOUND",
];

/// What a way gives now (`quote`).
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    pub from: Pubkey,
    pub to: Pubkey,
    pub input: u64,
    pub output: u64,
    pub exact_input: bool,
    pools: u64,
    /// The whole answer: it is the question for the instructions.
    said: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawQuote {
    input_mint: Key,
    output_mint: Key,
    in_amount: String,
    out_amount: String,
    swap_mode: String,
    route_plan: Vec<Value>,
}

impl Quote {
    pub fn read(said: &[u8]) -> Result<Self, SwapError> {
        let said: Value = answer(said)?;
        Self::of(said).ok_or_else(|| unavailable("an answer that is no quote"))
    }

    /// What [`Quote::note`] wrote.
    pub fn noted(note: &[u8]) -> Option<Self> {
        Self::of(serde_json::from_slice(note).ok()?)
    }

    fn of(said: Value) -> Option<Self> {
        let raw: RawQuote = serde_json::from_value(said.clone()).ok()?;
        let exact_input = match raw.swap_mode {
            text if text == mode(true) => true,
            text if text == mode(false) => false,
            _ => return None,
        };
        let [input, output] = [raw.in_amount, raw.out_amount].map(|text| text.parse().ok());
        let quote = Self {
            from: raw.input_mint.0,
            to: raw.output_mint.0,
            input: input?,
            output: output?,
            exact_input,
            pools: u64::try_from(raw.route_plan.len()).ok()?,
            said,
        };
        let is_some = quote.pools > 0 && quote.input > 0 && quote.output > 0;
        (is_some && quote.note().len() <= LONGEST_NOTE).then_some(quote)
    }

    /// The pools that the way leads through, beside and behind each other.
    pub const fn pools(&self) -> u64 {
        self.pools
    }

    /// The answer, to be kept with the offer.
    pub fn note(&self) -> Vec<u8> {
        self.said.to_string().into_bytes()
    }

    /// The answer with the limit of an order in the place of the service's own, and the basis points that it lets be
    /// lost. They are rounded so that no less comes out, and no more goes in, than the order says.
    pub fn limited(mut self, limit: Amount) -> Option<(Value, u16)> {
        let limit = u64::try_from(limit).ok()?;
        let (whole, room) = match self.exact_input {
            true => (self.output, self.output.checked_sub(limit)?),
            false => (self.input, limit.checked_sub(self.input)?),
        };
        let lost = u128::from(room) * u128::from(BASIS) / u128::from(whole);
        let slippage = u16::try_from(lost.min(u128::from(BASIS))).ok()?;
        let part = u128::from(whole) * u128::from(slippage) / u128::from(BASIS);
        let part = u64::try_from(part).ok()?;
        let threshold = match self.exact_input {
            true => whole - part,
            false => whole.checked_add(part)?,
        };
        self.said["slippageBps"] = slippage.into();
        self.said["otherAmountThreshold"] = threshold.to_string().into();
        Some((self.said, slippage))
    }
}

/// The instructions of an exchange (`swap-instructions`). Those about the price of work are left to the wallet.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    #[serde(default)]
    pub token_ledger_instruction: Option<RawInstruction>,
    #[serde(default)]
    pub other_instructions: Vec<RawInstruction>,
    #[serde(default)]
    pub setup_instructions: Vec<RawInstruction>,
    pub swap_instruction: RawInstruction,
    #[serde(default)]
    pub cleanup_instruction: Option<RawInstruction>,
    #[serde(default)]
    pub address_lookup_table_addresses: Vec<Key>,
}

/// One instruction; `data` is base64.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawInstruction {
    pub program_id: Key,
    pub accounts: Vec<RawAccountMeta>,
    pub data: String,
}

/// An account of an instruction.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawAccountMeta {
    pub pubkey: Key,
    pub is_signer: bool,
    pub is_writable: bool,
}

/// Reads a body.
pub fn answer<T: DeserializeOwned>(said: &[u8]) -> Result<T, SwapError> {
    serde_json::from_slice(said).map_err(|error| {
        let what = text::short(&error.to_string());
        unavailable(&format!("unreadable answer: {what}"))
    })
}

/// Whether a body with a status says that there is no way.
pub fn refusal(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Refusal {
        error_code: String,
    }
    let refusal: Option<Refusal> = serde_json::from_slice(body).ok();
    refusal.is_some_and(|refusal| NO_ROUTE.contains(&&*refusal.error_code))
}
