//! Keys of wallets of `ton-vm`, over the JSON-RPC of toncenter's API, version 2 (guide: protocol 6.3).

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    ChainSpec, Codec, Endpoint, KeyReader, Provider, ReadError, SpecError,
    http::PostError,
    owner::{KeyApi, answer, unavailable},
    spec::setting,
    types::{Address, Bytes, U256},
};

/// Opens a provider. Of the entry's `additionalData`, `genesisHash` is the root hash of the network's zero state as the
/// API writes it (base64): no provider of another network is believed.
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Provider, SpecError> {
    if setting(&spec.additional, "signDataDomain")?.is_none() {
        let what = "expected the domain of the apps that ask for signatures";
        return Err(SpecError(format!("additionalData.signDataDomain: {what}")));
    }
    let genesis = setting(&spec.additional, "genesisHash")?.map(str::to_owned);
    let api = KeyApi::new(spec, endpoint, genesis)?;
    let checks_network = api.checks_network();
    Ok(Provider::of_keys(endpoint, checks_network, Keys(api)))
}

struct Keys(KeyApi);

#[async_trait]
impl KeyReader for Keys {
    async fn owner_key(&self, owner: &Address) -> Result<Option<Bytes>, ReadError> {
        self.0.identify(self.genesis()).await?;
        let account = super::address::Addresses.decode_address(owner.bytes());
        let account = account.map_err(|error| unavailable(&error))?;
        let wanted = json!({ "address": account, "method": "get_public_key", "stack": [] });
        match self.0.post(&question("runGetMethod", &wanted)).await {
            Ok(body) => Ok(key(&result::<Run>(&body)?)),
            Err(PostError::Status { body, .. }) if has_no_getter(&body) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl Keys {
    async fn genesis(&self) -> Result<String, ReadError> {
        let question = question("getMasterchainInfo", &json!({}));
        let said = self.0.post(&question).await;
        let said = said.map_err(|error| unavailable(&error))?;
        Ok(result::<Masterchain>(&said)?.init.root_hash)
    }
}

/// Some servers take texts as ids only.
fn question(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "1", "method": method, "params": params })
}

#[derive(Deserialize)]
struct Answer<T> {
    ok: bool,
    result: Option<T>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Masterchain {
    init: ZeroState,
}

#[derive(Deserialize)]
struct ZeroState {
    root_hash: String,
}

/// What a getter came to.
#[derive(Deserialize)]
struct Run {
    exit_code: i64,
    stack: Vec<Value>,
}

fn result<T: DeserializeOwned>(body: &[u8]) -> Result<T, ReadError> {
    let said: Answer<T> = answer(body)?;
    let why = said.error.unwrap_or_else(|| "no result".into());
    said.result
        .filter(|_| said.ok)
        .ok_or_else(|| unavailable(&why))
}

/// The key that a getter gave; `None` where the contract has none, or it gives no number of 256 bits.
fn key(run: &Run) -> Option<Bytes> {
    let first = run.stack.first().filter(|_| run.exit_code == 0)?;
    // `["num", "0x…"]`, without leading zeros.
    let digits = match (first.get(0)?.as_str()?, first.get(1)?.as_str()?) {
        ("num", text) => text.strip_prefix("0x")?,
        _ => return None,
    };
    let number = U256::from_str_radix(digits, 16).ok()?;
    Some(number.to_be_bytes::<32>().to_vec().into())
}

/// The API's documentation has a status for a getter that fails; its servers answer with an exit code.
fn has_no_getter(body: &[u8]) -> bool {
    let answer = serde_json::from_slice::<Answer<Value>>(body);
    let error = answer.ok().and_then(|answer| answer.error);
    error.is_some_and(|error| error.starts_with("Exit code "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<Option<Bytes>, ReadError> {
        Ok(key(&result(body)?))
    }

    fn said(result: &Value) -> Result<Option<Bytes>, ReadError> {
        read(
            json!({ "ok": true, "result": result })
                .to_string()
                .as_bytes(),
        )
    }

    fn run(exit_code: i64, stack: Value) -> Value {
        json!({ "@type": "smc.runResult", "gas_used": 549, "exit_code": exit_code, "stack": stack })
    }

    #[test]
    fn a_getter_gives_a_number_of_256_bits() {
        let stack = json!([["num", "0xab00ff"], ["num", "0x1"]]);
        let key = said(&run(0, stack)).unwrap().unwrap();
        assert!(key.len() == 32 && key[..29].iter().all(|byte| *byte == 0));
        assert_eq!(key[29..], [0xab, 0, 0xff]);
        let full = format!("0x{}", "f".repeat(64));
        assert_eq!(
            said(&run(0, json!([["num", full]]))).unwrap().unwrap()[..],
            [0xff; 32]
        );
    }

    #[test]
    fn a_contract_without_such_a_number_has_no_key() {
        let long = format!("0x1{}", "0".repeat(64));
        for result in [
            run(11, json!([["num", "0x1"]])),
            run(-13, json!([])),
            run(0, json!([])),
            run(0, json!([["num", "-0x1"]])),
            run(0, json!([["num", "17"]])),
            run(0, json!([["num", "0xzz"]])),
            run(0, json!([["num", long]])),
            run(0, json!([["cell", "0x1"]])),
            run(0, json!([{ "num": "0x1" }])),
        ] {
            assert_eq!(said(&result), Ok(None), "{result}");
        }
        assert!(has_no_getter(
            br#"{"ok":false,"code":500,"error":"Exit code 11 != 0"}"#
        ));
    }

    #[test]
    fn what_is_no_answer_says_nothing_about_a_key() {
        for body in [
            "",
            "[]",
            r#"{"ok":false,"code":429,"error":"Ratelimit exceeded"}"#,
            r#"{"ok":false,"result":{"exit_code":0,"stack":[["num","0x1"]]}}"#,
            r#"{"ok":true}"#,
            r#"{"ok":true,"result":{"stack":[["num","0x1"]]}}"#,
        ] {
            assert!(
                matches!(read(body.as_bytes()), Err(ReadError::Unavailable(_))),
                "{body}"
            );
            assert!(!has_no_getter(body.as_bytes()), "{body}");
        }
    }

    /// Evidence keeps why a provider failed.
    #[test]
    fn what_a_provider_says_of_a_failure_is_cut() {
        let long = "x".repeat(1 << 20);
        for body in [
            json!({ "ok": false, "error": long }),
            json!({ "ok": true, "result": { "exit_code": long } }),
        ] {
            let Err(ReadError::Unavailable(why)) = read(body.to_string().as_bytes()) else {
                panic!("an answer");
            };
            assert!(why.len() < 100);
        }
    }
}
