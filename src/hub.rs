//! The settlement contracts: their settings (the hub file, oracle.md 1.3) and their state, read
//! through the same quorum as any chain. It judges nothing.

use std::sync::Arc;

use alloy::{primitives::Bytes, sol, sol_types::SolCall};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;
use vm::{
    Address, Amount, Chain, ChainId, EvmAddress, Head, ReadError, StateReader, U256,
    protocol::message::Domain,
};

sol! {
    function HUB() returns (address);
    function balanceOf(address owner, uint256 id) returns (uint256);
    function canConsume(string chainId, bytes currency, uint256 amount) returns (bool);
}

/// The hub file, as far as statements need it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub's name among the chains (`relay`).
    pub id: String,
    /// The settlement chain's EVM chain id, decimal, as the file spells it.
    pub chain: String,
    /// The oracle contract as the file spells it.
    pub oracle: String,
    pub oracle_address: EvmAddress,
    /// Where executions are valid.
    pub domain: Domain,
    /// What fast mints name; `None` where the file names no limiter: there is no fast mode then.
    pub rate_limiter: Option<EvmAddress>,
    pub fee_calculator: Option<EvmAddress>,
}

/// A hub file that cannot work; the text names the field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    id: String,
    evm_chain_id: String,
    oracle_address: String,
    oracle_version: String,
    rate_limiter: Option<Contract>,
    fee_calculator: Option<Contract>,
}

#[derive(Deserialize)]
struct Contract {
    address: String,
}

impl Settings {
    /// Reads the hub file's object, variables resolved. Unknown fields are ignored.
    pub fn parse(file: &Map<String, Value>) -> Result<Self, SettingsError> {
        let file: File = serde_path_to_error::deserialize(Value::Object(file.clone()))
            .map_err(|error| SettingsError(error.to_string()))?;
        let number = vm::protocol::text::number(&file.evm_chain_id);
        let chain = number.map_err(|error| wrong("evmChainId", error))?;
        let oracle_address = contract("oracleAddress", &file.oracle_address)?;
        let optional = |field: &'static str, named: &Option<Contract>| {
            let named = named.as_ref().map(|named| contract(field, &named.address));
            named.transpose()
        };
        if file.id.is_empty() {
            return Err(wrong("id", "must not be empty"));
        }
        Ok(Self {
            domain: Domain::oracle(&file.oracle_version, chain, oracle_address),
            rate_limiter: optional("rateLimiter.address", &file.rate_limiter)?,
            fee_calculator: optional("feeCalculator.address", &file.fee_calculator)?,
            id: file.id,
            chain: file.evm_chain_id,
            oracle: file.oracle_address,
            oracle_address,
        })
    }
}

fn contract(field: &'static str, text: &str) -> Result<EvmAddress, SettingsError> {
    let address = vm::protocol::text::evm_address(text).map_err(|error| wrong(field, error))?;
    if address.is_zero() {
        return Err(wrong(field, "must not be the zero address"));
    }
    Ok(address)
}

fn wrong(field: &str, what: impl std::fmt::Display) -> SettingsError {
    SettingsError(format!("{field}: {what}"))
}

/// The state of the settlement contracts.
pub struct Hub {
    pub settings: Settings,
    /// The settlement chain, or why it cannot be read.
    chain: Result<Chain, String>,
    /// What the oracle contract calls its hub: asked for once.
    contract: OnceCell<EvmAddress>,
}

impl Hub {
    pub fn new(settings: Settings, chain: Result<Chain, String>) -> Self {
        Self {
            settings,
            chain,
            contract: OnceCell::new(),
        }
    }

    /// Whether `owner` holds `amount` of `token` at the chain's tip. The tracked tip may be older
    /// than the caller's knowledge, so that a no comes from one read now.
    pub async fn holds(
        &self,
        owner: EvmAddress,
        token: U256,
        amount: Amount,
    ) -> Result<bool, ReadError> {
        let (chain, state) = self.open()?;
        let head = chain.reader.head().await?;
        let contract = self
            .contract
            .get_or_try_init(|| self.contract(state, &head))
            .await?;
        let call = balanceOfCall { owner, id: token };
        if view::<balanceOfCall>(state, *contract, &call, &head).await? >= amount {
            return Ok(true);
        }
        let fresh = chain.reader.fresh_head().await?;
        Ok(
            fresh != head
                && view::<balanceOfCall>(state, *contract, &call, &fresh).await? >= amount,
        )
    }

    /// Whether the hub's rate limiter lets `amount` of a currency of `chain` through now (oracle.md
    /// 7.1); without a limiter nothing is let through. The limiter's interface is not published: its
    /// parameters are taken to be spelled as in the hub's other calls, the chain as its name and the
    /// currency as its family's bytes.
    pub async fn can_consume(
        &self,
        chain: &ChainId,
        currency: &Address,
        amount: Amount,
    ) -> Result<bool, ReadError> {
        let Some(limiter) = self.settings.rate_limiter else {
            return Ok(false);
        };
        let (hub, state) = self.open()?;
        let head = hub.reader.head().await?;
        let call = canConsumeCall {
            chainId: chain.to_string(),
            currency: Bytes::copy_from_slice(currency.bytes()),
            amount,
        };
        view(state, limiter, &call, &head).await
    }

    async fn contract(
        &self,
        state: &Arc<dyn StateReader>,
        head: &Head,
    ) -> Result<EvmAddress, ReadError> {
        let oracle = self.settings.oracle_address;
        let contract = view::<HUBCall>(state, oracle, &HUBCall {}, head).await?;
        if contract.is_zero() {
            return Err(ReadError::Doubtful("the oracle contract has no hub".into()));
        }
        Ok(contract)
    }

    fn open(&self) -> Result<(&Chain, &Arc<dyn StateReader>), ReadError> {
        let unavailable = |why: &str| ReadError::Unavailable(format!("settlement chain: {why}"));
        let chain = self.chain.as_ref().map_err(|why| unavailable(why))?;
        let state = chain.state.as_ref();
        Ok((chain, state.ok_or_else(|| unavailable("has no state"))?))
    }
}

async fn view<C: SolCall>(
    state: &Arc<dyn StateReader>,
    contract: EvmAddress,
    call: &C,
    head: &Head,
) -> Result<C::Return, ReadError> {
    let to = Address::from_parts(&format!("{contract:#x}"), contract.to_vec());
    let answer = state
        .view(&to, &Bytes::from(call.abi_encode()), head)
        .await?;
    C::abi_decode_returns(&answer)
        .map_err(|_| ReadError::Doubtful(format!("{} does not answer {}", to, C::SIGNATURE)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(change: impl FnOnce(&mut Value)) -> Result<Settings, String> {
        let mut file = json!({
            "id": "relay", "evmChainId": "31337", "oracleVersion": "2", "httpRpcUrl": "http://x/",
            "oracleAddress": "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9",
        });
        change(&mut file);
        let file = file.as_object().cloned().unwrap_or_default();
        Settings::parse(&file).map_err(|error| error.to_string())
    }

    #[test]
    fn file_without_optional_contracts_is_enough() {
        let settings = parse(|_| {}).unwrap();
        assert_eq!(settings.chain, "31337");
        assert_eq!(
            settings.oracle,
            "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9"
        );
        assert_eq!(settings.rate_limiter, None);
        assert_eq!(
            settings.domain,
            Domain::oracle("2", U256::from(31337), settings.oracle_address)
        );
    }

    #[test]
    fn wrong_fields_are_named() {
        let zero = format!("0x{}", "00".repeat(20));
        for (field, value, wanted) in [
            ("id", json!(""), "id"),
            ("evmChainId", json!("mainnet"), "evmChainId"),
            ("oracleAddress", json!("0x12"), "oracleAddress"),
            ("oracleAddress", json!(zero), "oracleAddress"),
            ("oracleVersion", json!(null), "oracleVersion"),
            ("rateLimiter", json!({"address": "x"}), "rateLimiter"),
        ] {
            let error = parse(|file| file[field] = value).unwrap_err();
            assert!(error.starts_with(wanted), "{field}: {error}");
        }
    }
}
