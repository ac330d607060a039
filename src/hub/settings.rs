//! The part of the hub file that statements need (guide: protocol 10.5).

use serde::Deserialize;
use serde_json::{Map, Value};
use vm::{EvmAddress, protocol::message::Domain};

/// The part of the hub file that statements need.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hub's name among the chains (`relay`).
    pub id: String,
    /// The settlement chain's EVM chain id, decimal, as the file spells it.
    pub chain: String,
    /// The oracle contract as the file spells it.
    pub oracle: String,
    pub oracle_address: EvmAddress,
    /// The EIP-712 domain of executions.
    pub domain: Domain,
    /// The limiter that fast mints name; `None` where the file names none, which turns the fast mode off.
    pub rate_limiter: Option<EvmAddress>,
    pub fee_calculator: Option<EvmAddress>,
    /// The contract that records the withdrawals that depositories may make; it is on another chain.
    pub allocator: Option<EvmAddress>,
    /// The contract in which hub accounts leave entries; `None` where the file names none.
    pub generic_mapping: Option<EvmAddress>,
    /// The hub's own allocator, of withdraw requests.
    pub hub_allocator: Option<EvmAddress>,
    /// The contract that swaps an order's balance at the hub and requests its withdrawal.
    pub executor: Option<EvmAddress>,
    /// The contract that knows which order a payment to a deposit address is for.
    pub deposit_address_manager: Option<EvmAddress>,
    /// The contract that submits withdraw requests to the allocator on its own chain.
    pub allocator_spender: Option<Spender>,
}

/// A contract on the allocator's own chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spender {
    pub contract: EvmAddress,
    /// The EVM chain id, decimal, as the file spells it.
    pub chain: String,
    /// The EIP-712 domain of payload params.
    pub domain: Domain,
}

/// An unusable hub file; the text names the field.
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
    aurora_allocator_address: Option<String>,
    generic_mapping_address: Option<String>,
    allocator_address: Option<String>,
    executor_address: Option<String>,
    deposit_address_manager_address: Option<String>,
    aurora_evm_chain_id: Option<String>,
    aurora_allocator_spender_address: Option<String>,
}

#[derive(Deserialize)]
struct Contract {
    address: String,
}

impl Settings {
    /// Reads the hub file's object after variables are resolved; ignores unknown fields.
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
        let named = |field: &'static str, text: &Option<String>| {
            let named = text.as_ref().map(|text| contract(field, text));
            named.transpose()
        };
        let mapping = named("genericMappingAddress", &file.generic_mapping_address)?;
        let spender = named(
            "auroraAllocatorSpenderAddress",
            &file.aurora_allocator_spender_address,
        )?;
        if file.id.is_empty() {
            return Err(wrong("id", "must not be empty"));
        }
        Ok(Self {
            domain: Domain::oracle(&file.oracle_version, chain, oracle_address),
            rate_limiter: optional("rateLimiter.address", &file.rate_limiter)?,
            fee_calculator: optional("feeCalculator.address", &file.fee_calculator)?,
            allocator: named("auroraAllocatorAddress", &file.aurora_allocator_address)?,
            generic_mapping: mapping,
            hub_allocator: named("allocatorAddress", &file.allocator_address)?,
            executor: named("executorAddress", &file.executor_address)?,
            deposit_address_manager: named(
                "depositAddressManagerAddress",
                &file.deposit_address_manager_address,
            )?,
            allocator_spender: spender
                .zip(file.aurora_evm_chain_id)
                .map(Spender::new)
                .transpose()?,
            id: file.id,
            chain: file.evm_chain_id,
            oracle: file.oracle_address,
            oracle_address,
        })
    }
}

impl Spender {
    fn new((contract, chain): (EvmAddress, String)) -> Result<Self, SettingsError> {
        let number = vm::protocol::text::number(&chain);
        let number = number.map_err(|error| wrong("auroraEvmChainId", error))?;
        Ok(Self {
            domain: Domain::allocator_spender(number, contract),
            contract,
            chain,
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vm::U256;

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
        assert_eq!((settings.rate_limiter, settings.allocator), (None, None));
        assert_eq!(
            settings.domain,
            Domain::oracle("2", U256::from(31337), settings.oracle_address)
        );
    }

    #[test]
    fn spender_is_known_with_its_chain() {
        let spender = format!("0x{}", "03".repeat(20));
        let with = |chain: Value| {
            parse(|file| {
                file["auroraAllocatorSpenderAddress"] = json!(spender);
                file["auroraEvmChainId"] = chain;
            })
        };
        let found = with(json!("1313161554"))
            .unwrap()
            .allocator_spender
            .unwrap();
        assert_eq!(found.domain.chain(), U256::from(1_313_161_554));
        assert_eq!(found.domain.contract(), found.contract);
        assert_eq!(with(Value::Null).unwrap().allocator_spender, None);
        let wrong = with(json!("aurora")).unwrap_err();
        assert!(wrong.starts_with("auroraEvmChainId"), "{wrong}");
    }

    #[test]
    fn wrong_fields_are_named() {
        let zero = format!("0x{}", "00".repeat(20));
        for (field, value, wanted) in [
            ("id", json!(""), "id"),
            ("evmChainId", json!("mainnet"), "evmChainId"),
            ("oracleAddress", json!("0x12"), "oracleAddress"),
            ("oracleAddress", json!(zero), "oracleAddress"),
            ("auroraAllocatorAddress", json!(""), "auroraAllocator"),
            ("genericMappingAddress", json!("0x12"), "genericMapping"),
            ("executorAddress", json!(zero), "executorAddress"),
            (
                "depositAddressManagerAddress",
                json!("x"),
                "depositAddressManager",
            ),
            (
                "auroraAllocatorSpenderAddress",
                json!("x"),
                "auroraAllocatorSpender",
            ),
            ("oracleVersion", json!(null), "oracleVersion"),
            ("rateLimiter", json!({"address": "x"}), "rateLimiter"),
        ] {
            let error = parse(|file| file[field] = value).unwrap_err();
            assert!(error.starts_with(wanted), "{field}: {error}");
        }
    }
}
