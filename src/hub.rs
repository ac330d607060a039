//! The settlement contracts: their settings (the hub file, guide: protocol 10.5), and their state, read through the
//! same quorum as any chain. This module makes no decisions.

mod allocator;

use alloy::{primitives::Bytes, sol, sol_types::SolCall};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;
use vm::{
    Address, Amount, B256, Block, Chain, ChainId, EvmAddress, Head, ReadError, StateReader, U256,
    protocol::message::Domain,
};

pub use allocator::{Allocator, Payload, SignedPayload};

sol! {
    function HUB() returns (address);
    function balanceOf(address owner, uint256 id) returns (uint256);
    function orderAddressByWithdrawRequestHash(bytes32 hash) returns (address);
    function getEntry(address user, bytes32 id) returns (bytes data, uint256 createdAt);
    function canConsume(string chainId, bytes currency, uint256 amount) returns (bool);
    function isExecuted(bytes32 idempotencyKey) returns (bool);
}

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
    allocator: Result<Allocator, String>,
    /// The hub's address by the oracle contract, read once.
    contract: OnceCell<EvmAddress>,
}

impl Hub {
    /// A hub without an allocator; see [`Hub::with_allocator`].
    pub fn new(settings: Settings, chain: Result<Chain, String>) -> Self {
        Self {
            settings,
            chain,
            allocator: Err("nobody said where it is".into()),
            contract: OnceCell::new(),
        }
    }

    /// Adds the allocator's chain, or why it cannot be read.
    #[must_use]
    pub fn with_allocator(self, chain: Result<Chain, String>) -> Self {
        let contract = self.settings.allocator;
        let contract = contract.ok_or("the hub file names no auroraAllocatorAddress");
        let allocator = chain.and_then(|chain| {
            Ok(Allocator {
                chain,
                contract: contract?,
            })
        });
        Self { allocator, ..self }
    }

    /// The allocator, or why it cannot be read.
    pub fn allocator(&self) -> Result<&Allocator, &str> {
        self.allocator.as_ref().map_err(String::as_str)
    }

    /// The hub's own allocator, or why it cannot be read.
    pub fn own_allocator(&self) -> Result<Allocator, String> {
        let contract = self.settings.hub_allocator;
        Ok(Allocator {
            chain: self.chain.clone()?,
            contract: contract.ok_or("the hub file names no allocatorAddress")?,
        })
    }

    /// The hub account of the order for which `executor` made the withdraw request with this hash, as of `block`; `None`
    /// where it made none.
    pub async fn order_account(
        &self,
        executor: EvmAddress,
        hash: B256,
        block: &Block,
    ) -> Result<Option<EvmAddress>, ReadError> {
        let unread = |why: &String| unavailable(format!("settlement chain: {why}"));
        let hub = self.chain.as_ref().map_err(unread)?;
        let call = orderAddressByWithdrawRequestHashCall { hash };
        let order = view(state(hub)?, executor, &call, block).await?;
        Ok(Some(order).filter(|order| !order.is_zero()))
    }

    /// The final block at which `owner` holds `amount` of `token`; `None` unless it also holds it at the tip, since
    /// final money may have been spent. A negative answer comes from a fresh tip, because the tracked one may be
    /// older than what the caller knows.
    pub async fn holds(
        &self,
        owner: EvmAddress,
        token: U256,
        amount: Amount,
    ) -> Result<Option<Block>, ReadError> {
        let unread = |why: &String| unavailable(format!("settlement chain: {why}"));
        let chain = self.chain.as_ref().map_err(unread)?;
        let call = balanceOfCall { owner, id: token };
        let head = chain.reader.head().await?;
        if let Some(block) = self.held(chain, &head, (&call, amount)).await? {
            return Ok(Some(block));
        }
        match newer(chain, &head).await? {
            Some(fresh) => self.held(chain, &fresh, (&call, amount)).await,
            None => Ok(None),
        }
    }

    async fn held(
        &self,
        chain: &Chain,
        head: &Head,
        (call, amount): (&balanceOfCall, Amount),
    ) -> Result<Option<Block>, ReadError> {
        let state = state(chain)?;
        let Some(block) = state.settled(head).await? else {
            return Ok(None);
        };
        let contract = self
            .contract
            .get_or_try_init(|| self.contract(state, &block));
        let contract = *contract.await?;
        let (settled, now) = tokio::try_join!(
            view(state, contract, call, &block),
            view(state, contract, call, &head.block),
        )?;
        Ok((settled.min(now) >= amount).then_some(block))
    }

    /// Whether the hub's rate limiter now lets `amount` of a currency of `chain` pass (guide: protocol 7.1); false
    /// without a limiter. The limiter's interface is not published: this call assumes the hub's spelling, the chain
    /// as its name and the currency as its family's bytes.
    pub async fn can_consume(
        &self,
        chain: &ChainId,
        currency: &Address,
        amount: Amount,
    ) -> Result<bool, ReadError> {
        let Some(limiter) = self.settings.rate_limiter else {
            return Ok(false);
        };
        let unread = |why: &String| unavailable(format!("settlement chain: {why}"));
        let hub = self.chain.as_ref().map_err(unread)?;
        let head = hub.reader.head().await?;
        let call = canConsumeCall {
            chainId: chain.to_string(),
            currency: Bytes::copy_from_slice(currency.bytes()),
            amount,
        };
        view(state(hub)?, limiter, &call, &head.block).await
    }

    /// Whether `user` has an entry under `id` in the generic mapping, as of a final block; false where the hub file
    /// names no such contract.
    pub async fn is_mapped(&self, user: EvmAddress, id: B256) -> Result<bool, ReadError> {
        let Some(mapping) = self.settings.generic_mapping else {
            return Ok(false);
        };
        let unread = |why: &String| unavailable(format!("settlement chain: {why}"));
        let hub = self.chain.as_ref().map_err(unread)?;
        let Some(block) = self.settled().await? else {
            return Ok(false);
        };
        let entry = view(state(hub)?, mapping, &getEntryCall { user, id }, &block).await?;
        Ok(!entry.createdAt.is_zero())
    }

    /// A final block of the settlement chain; `None` while there is none.
    pub async fn settled(&self) -> Result<Option<Block>, ReadError> {
        let unread = |why: &String| unavailable(format!("settlement chain: {why}"));
        let hub = self.chain.as_ref().map_err(unread)?;
        let head = hub.reader.head().await?;
        state(hub)?.settled(&head).await
    }

    /// Whether the oracle contract has applied the execution with this idempotency key, as of `block`.
    pub async fn is_executed(&self, key: B256, block: &Block) -> Result<bool, ReadError> {
        let unread = |why: &String| unavailable(format!("settlement chain: {why}"));
        let hub = self.chain.as_ref().map_err(unread)?;
        let call = isExecutedCall {
            idempotencyKey: key,
        };
        view(state(hub)?, self.settings.oracle_address, &call, block).await
    }

    async fn contract(
        &self,
        state: &dyn StateReader,
        block: &Block,
    ) -> Result<EvmAddress, ReadError> {
        let oracle = self.settings.oracle_address;
        let contract = view(state, oracle, &HUBCall {}, block).await?;
        if contract.is_zero() {
            return Err(ReadError::Doubtful("the oracle contract has no hub".into()));
        }
        Ok(contract)
    }
}

/// A freshly read head; `None` if it equals `head`.
async fn newer(chain: &Chain, head: &Head) -> Result<Option<Head>, ReadError> {
    let fresh = chain.reader.fresh_head().await?;
    Ok((fresh != *head).then_some(fresh))
}

fn state(chain: &Chain) -> Result<&dyn StateReader, ReadError> {
    let no_state = || unavailable(format!("chain {} has no state", chain.spec.id));
    chain.state.as_deref().ok_or_else(no_state)
}

fn unavailable(why: String) -> ReadError {
    ReadError::Unavailable(why)
}

async fn view<C: SolCall>(
    state: &dyn StateReader,
    contract: EvmAddress,
    call: &C,
    block: &Block,
) -> Result<C::Return, ReadError> {
    let to = Address::from_parts(&format!("{contract:#x}"), contract.to_vec());
    let answer = state
        .view(&to, &Bytes::from(call.abi_encode()), block)
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
        assert_eq!((settings.rate_limiter, settings.allocator), (None, None));
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
            ("auroraAllocatorAddress", json!(""), "auroraAllocator"),
            ("oracleVersion", json!(null), "oracleVersion"),
            ("rateLimiter", json!({"address": "x"}), "rateLimiter"),
        ] {
            let error = parse(|file| file[field] = value).unwrap_err();
            assert!(error.starts_with(wanted), "{field}: {error}");
        }
    }
}
