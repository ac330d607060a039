//! Owners of accounts of `lighter-vm`, over the network's own API (guide: protocol 6.3).

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;

use crate::{
    ChainSpec, Codec, Endpoint, KeyReader, Provider, ReadError, SpecError,
    http::PostError,
    owner::{KeyApi, answer, unavailable},
    spec::setting,
    types::{Address, Bytes, EvmAddress},
};

/// What the API says of an index that no account has.
const NOT_FOUND: i64 = 21_100;

/// Opens a provider. Of the entry's `additionalData`, `contractAddress` is the network's contract on Ethereum: indexes
/// are given out anew on every network, so that no provider of another one is believed.
pub fn open(spec: &Arc<ChainSpec>, endpoint: &Endpoint) -> Result<Provider, SpecError> {
    let contract = setting(&spec.additional, "contractAddress")?.map(str::parse::<EvmAddress>);
    let wrong = |_| SpecError("additionalData.contractAddress: expected an address".into());
    let contract = contract.transpose().map_err(wrong)?;
    let api = KeyApi::new(spec, endpoint, contract.map(|it| it.to_string()))?;
    let checks_network = api.checks_network();
    Ok(Provider::of_keys(endpoint, checks_network, Keys(api)))
}

struct Keys(KeyApi);

#[async_trait]
impl KeyReader for Keys {
    async fn owner_key(&self, owner: &Address) -> Result<Option<Bytes>, ReadError> {
        self.0.identify(self.contract()).await?;
        let index = super::address::Addresses.decode_address(owner.bytes());
        let index = index.map_err(|error| unavailable(&error))?;
        let query = [("by", "index".to_owned()), ("value", index.clone())];
        match self.0.get("api/v1/account", &query).await {
            Ok(body) => read(&body, &index),
            Err(PostError::Status { body, .. }) if is_not_found(&body) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }
}

impl Keys {
    async fn contract(&self) -> Result<String, ReadError> {
        let said = self.0.get("info", &[]).await;
        let said = said.map_err(|error| unavailable(&error))?;
        let shown = answer::<Info>(&said)?.contract_address;
        let address = shown.parse::<EvmAddress>();
        Ok(address.map_or(shown, |address| address.to_string()))
    }
}

#[derive(Deserialize)]
struct Info {
    contract_address: String,
}

#[derive(Deserialize)]
struct Accounts {
    accounts: Vec<Account>,
}

#[derive(Deserialize)]
struct Account {
    index: Option<u64>,
    #[serde(default)]
    l1_address: String,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
}

/// The address on Ethereum of the account with this index; `None` where there is none.
fn read(body: &[u8], index: &str) -> Result<Option<Bytes>, ReadError> {
    let said: Accounts = answer(body)?;
    let Some(account) = said
        .accounts
        .first()
        .filter(|one| !one.l1_address.is_empty())
    else {
        return Ok(None);
    };
    if account
        .index
        .is_some_and(|found| found.to_string() != index)
    {
        return Err(ReadError::Doubtful(format!("another account than {index}")));
    }
    let address = account.l1_address.parse::<EvmAddress>();
    let address = address.map_err(|_| ReadError::Doubtful("l1_address is no address".into()))?;
    Ok(Some(address.to_vec().into()))
}

fn is_not_found(body: &[u8]) -> bool {
    serde_json::from_slice::<Failure>(body).is_ok_and(|failure| failure.code == NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

    fn said(account: &str) -> Result<Option<Bytes>, ReadError> {
        read(
            format!(r#"{{"code":200,"accounts":[{account}]}}"#).as_bytes(),
            "17",
        )
    }

    #[test]
    fn an_account_has_its_owners_address() {
        let owner = OWNER.parse::<EvmAddress>().unwrap();
        for index in [r#""index":17,"#, ""] {
            let found = said(&format!(r#"{{{index}"l1_address":"{OWNER}","status":1}}"#));
            assert_eq!(found.unwrap().unwrap()[..], owner[..]);
        }
    }

    #[test]
    fn an_index_without_an_account_has_none() {
        for account in ["", r#"{"index":17}"#, r#"{"index":17,"l1_address":""}"#] {
            assert_eq!(said(account), Ok(None), "{account}");
        }
        assert!(is_not_found(
            br#"{"code":21100,"message":"account not found"}"#
        ));
        for body in ["", "{}", r#"{"code":23000,"message":"Too Many Requests!"}"#] {
            assert!(!is_not_found(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn another_account_or_no_address_is_doubtful() {
        for account in [
            format!(r#"{{"index":18,"l1_address":"{OWNER}"}}"#),
            r#"{"index":17,"l1_address":"0x12"}"#.to_owned(),
        ] {
            assert!(
                matches!(said(&account), Err(ReadError::Doubtful(_))),
                "{account}"
            );
        }
        for body in ["", "{}", r#"{"accounts":7}"#] {
            assert!(
                matches!(read(body.as_bytes(), "17"), Err(ReadError::Unavailable(_))),
                "{body}"
            );
        }
    }
}
