//! An aggregator in this process that has one way, a recorded one of Jupiter's, and gives it to whoever asks.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use solana_address_lookup_table_interface::program;
use solana_pubkey::{Pubkey, pubkey};

use super::World;
use crate::http::inside;

/// Whose exchange was recorded.
pub const USER: Pubkey = pubkey!("Cm7vjoV12JuVqCduW6rkGGcgN77NPkzqZr66pkVTzb5b");
/// What comes out.
pub const OUTPUT_MINT: Pubkey = pubkey!("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v");
/// Lamports that go in, and smallest units of what comes out.
pub const INPUT: u64 = 51_586_500;
const OUTPUT: u64 = 10_001_081;
/// Where the slippage stands, from the end of the exchange's data: two bytes before that of the service's fee.
const SLIPPAGE: usize = 3;

const RECORDED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/fixtures/recorded/jupiter.json"
));

/// Starts the aggregator; its URL. The chain gets the lookup table that the way names.
pub fn aggregator(world: &World) -> String {
    let all: Value = serde_json::from_str(RECORDED).unwrap_or_default();
    let mut quote = all["quote"].clone();
    quote["inAmount"] = INPUT.to_string().into();
    quote["outAmount"] = OUTPUT.to_string().into();
    let instructions = all["instructions"].clone();
    let key = |text: &Value| text.as_str().and_then(|text| text.parse::<Pubkey>().ok());
    let named = instructions["swapInstruction"]["accounts"].as_array();
    let named = named.into_iter().flatten();
    let named = named.filter_map(|account| key(&account["pubkey"]));
    if let Some(table) = key(&instructions["addressLookupTableAddresses"][0]) {
        world.put(table, program::ID, table_of(named));
    }
    let answer = move |asked: &inside::Asked<'_>| {
        let answer = match asked.path.starts_with("/quote") {
            true => quote.clone(),
            false => limited(&instructions, asked.body),
        };
        Some((200, answer.to_string().into_bytes()))
    };
    let host = format!("{}-exchange{}", world.name, inside::HOST);
    inside::register(&host, Arc::new(answer));
    format!("http://{host}")
}

/// The instructions with the slippage that a question asks for.
fn limited(instructions: &Value, question: &[u8]) -> Value {
    let mut answer = instructions.clone();
    let asked: Value = serde_json::from_slice(question).unwrap_or_default();
    let data = &mut answer["swapInstruction"]["data"];
    let bytes = BASE64_STANDARD.decode(data.as_str().unwrap_or_default());
    let slippage = asked["quoteResponse"]["slippageBps"].as_u64();
    let slippage = slippage.and_then(|points| u16::try_from(points).ok());
    if let (Ok(mut bytes), Some(slippage)) = (bytes, slippage)
        && let Some(at) = bytes.len().checked_sub(SLIPPAGE)
    {
        bytes[at..at + 2].copy_from_slice(&slippage.to_le_bytes());
        *data = json!(BASE64_STANDARD.encode(bytes));
    }
    answer
}

/// A table in use as the program writes it: its kind, the slots of deactivation and of the last addition, the place where
/// those begin, an authority, two bytes of nothing, and the addresses.
fn table_of(addresses: impl Iterator<Item = Pubkey>) -> Vec<u8> {
    let mut data = 1_u32.to_le_bytes().to_vec();
    data.extend(u64::MAX.to_le_bytes());
    data.extend([0; 9]);
    data.push(1);
    data.extend([9; 32]);
    data.extend([0; 2]);
    data.extend(addresses.flat_map(|address| address.to_bytes()));
    data
}
