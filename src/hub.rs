//! The settlement contracts: their settings (the hub file, guide: protocol 10.5), and their state, read through the
//! same quorum as any chain. This module makes no decisions.

mod allocator;
mod permitted;
mod settings;
mod stated;

use alloy::{
    primitives::Bytes,
    sol,
    sol_types::{SolCall, SolValue},
};
use tokio::sync::OnceCell;
use vm::{
    Address, Amount, B256, Block, Chain, ChainId, EvmAddress, Head, ReadError, StateReader, U256,
    evidence::{self, Answer, Question, Read},
};

use self::permitted::permitted;
use crate::chains::permits::ReadPermits;

pub use allocator::{Allocator, Payload, SignedPayload};
pub use settings::{Settings, SettingsError, Spender};

sol! {
    function HUB() returns (address);
    function balanceOf(address owner, uint256 id) returns (uint256);
    function orderAddressByWithdrawRequestHash(bytes32 hash) returns (address);
    function getEntry(address user, bytes32 id) returns (bytes data, uint256 createdAt);
    function canConsume(string chainId, bytes currency, uint256 amount) returns (bool);
    function isExecuted(bytes32 idempotencyKey) returns (bool);
}

/// A balance at a final block and at the tip, and that block.
type Balances = ((U256, U256), Block);

/// The state of the settlement contracts.
pub struct Hub {
    pub settings: Settings,
    /// The settlement chain, or why it cannot be read.
    chain: Result<Chain, String>,
    allocator: Result<Allocator, String>,
    /// The hub's address by the oracle contract, read once.
    contract: OnceCell<EvmAddress>,
    /// What is read takes permits, since strangers ask for it, too.
    permits: ReadPermits,
}

impl Hub {
    /// A hub without an allocator; see [`Hub::with_allocator`].
    pub fn new(settings: Settings, chain: Result<Chain, String>) -> Self {
        let permits = ReadPermits::default();
        Self {
            settings,
            chain: chain.map(|chain| permitted(chain, &permits)),
            allocator: Err("nobody said where it is".into()),
            contract: OnceCell::new(),
            permits,
        }
    }

    /// The read permits that all claims share.
    pub fn permits(&self) -> &ReadPermits {
        &self.permits
    }

    /// Adds the allocator's chain, or why it cannot be read.
    #[must_use]
    pub fn with_allocator(self, chain: Result<Chain, String>) -> Self {
        let contract = self.settings.allocator;
        let contract = contract.ok_or("the hub file names no auroraAllocatorAddress");
        let allocator = chain.and_then(|chain| {
            Ok(Allocator {
                chain: permitted(chain, &self.permits),
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
        let hub = self.settlement()?;
        let call = orderAddressByWithdrawRequestHashCall { hash };
        let order = view(state(hub)?, executor, &call, block).await?;
        Ok(Some(order).filter(|order| !order.is_zero()))
    }

    /// The final block at which `owner` holds `amount` of `token` or more; `None` unless it also does at the tip, since
    /// final money may have been spent. A negative answer comes from a fresh tip, because the tracked one may be
    /// older than what the caller knows.
    pub async fn holds(
        &self,
        owner: EvmAddress,
        token: U256,
        amount: Amount,
    ) -> Result<Option<Block>, ReadError> {
        let chain = self.settlement()?;
        let call = &balanceOfCall { owner, id: token };
        let read = |head: Head| async move { self.balances(chain, &head, call).await };
        let holds = |((settled, now), _): &Balances| *settled >= amount && *now >= amount;
        let found = at_head(chain, read, |found: &Option<Balances>| {
            found.as_ref().is_some_and(holds)
        });
        Ok(found.await?.filter(holds).map(|(_, block)| block))
    }

    /// The balance at a final block and at the tip, and that block.
    async fn balances(
        &self,
        chain: &Chain,
        head: &Head,
        call: &balanceOfCall,
    ) -> Result<Option<Balances>, ReadError> {
        let state = state(chain)?;
        let Some(block) = state.settled(head).await? else {
            return Ok(None);
        };
        let read = self
            .contract
            .get_or_try_init(|| self.contract(state, &block));
        let contract = *read.await?;
        evidence::note(|| self.known(chain, contract, &block));
        let (settled, now) = tokio::try_join!(
            view(state, contract, call, &block),
            view(state, contract, call, &head.block),
        )?;
        Ok(Some(((settled, now), block)))
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
        let hub = self.settlement()?;
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
        let hub = self.settlement()?;
        let Some(block) = self.settled().await? else {
            return Ok(false);
        };
        let entry = view(state(hub)?, mapping, &getEntryCall { user, id }, &block).await?;
        Ok(!entry.createdAt.is_zero())
    }

    /// A final block of the settlement chain; `None` while there is none.
    pub async fn settled(&self) -> Result<Option<Block>, ReadError> {
        let hub = self.settlement()?;
        let head = hub.reader.head().await?;
        state(hub)?.settled(&head).await
    }

    /// Whether the oracle contract has applied the execution with this idempotency key, as of `block`.
    pub async fn is_executed(&self, key: B256, block: &Block) -> Result<bool, ReadError> {
        let hub = self.settlement()?;
        let call = isExecutedCall {
            idempotencyKey: key,
        };
        view(state(hub)?, self.settings.oracle_address, &call, block).await
    }

    /// The settlement chain, or why it cannot be read.
    fn settlement(&self) -> Result<&Chain, ReadError> {
        let unread = |why: &String| unavailable(format!("settlement chain: {why}"));
        self.chain.as_ref().map_err(unread)
    }

    /// The hub's address as evidence: an earlier claim may have read it.
    fn known(&self, chain: &Chain, contract: EvmAddress, block: &Block) -> Read {
        let call = HUBCall {}.abi_encode();
        let oracle = named(self.settings.oracle_address);
        Read {
            chain: chain.spec.id.clone(),
            question: Question::view(&oracle, &call.into(), block),
            answer: Answer::View(contract.abi_encode().into()),
            required: 0,
            votes: Vec::new(),
        }
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

/// What `read` finds at the head of `chain`; where that is not `enough`, what it finds at a fresh head.
async fn at_head<T, F>(
    chain: &Chain,
    read: impl Fn(Head) -> F,
    enough: impl Fn(&T) -> bool,
) -> Result<T, ReadError>
where
    F: Future<Output = Result<T, ReadError>>,
{
    let head = chain.reader.head().await?;
    let found = read(head.clone()).await?;
    if enough(&found) {
        return Ok(found);
    }
    let fresh = chain.reader.fresh_head().await?;
    match fresh == head {
        true => Ok(found),
        false => read(fresh).await,
    }
}

fn state(chain: &Chain) -> Result<&dyn StateReader, ReadError> {
    let no_state = || unavailable(format!("chain {} has no state", chain.spec.id));
    chain.state.as_deref().ok_or_else(no_state)
}

fn unavailable(why: String) -> ReadError {
    ReadError::Unavailable(why)
}

/// Whether a question's answer never changes, so that it may have been read for an earlier claim.
pub fn is_constant(question: &Question) -> bool {
    matches!(question, Question::View { data, .. } if data[..] == HUBCall::SELECTOR)
}

fn named(contract: EvmAddress) -> Address {
    Address::from_parts(&format!("{contract:#x}"), contract.to_vec())
}

async fn view<C: SolCall>(
    state: &dyn StateReader,
    contract: EvmAddress,
    call: &C,
    block: &Block,
) -> Result<C::Return, ReadError> {
    let to = named(contract);
    let answer = state
        .view(&to, &Bytes::from(call.abi_encode()), block)
        .await?;
    C::abi_decode_returns(&answer)
        .map_err(|_| ReadError::Doubtful(format!("{} does not answer {}", to, C::SIGNATURE)))
}
