//! Three chains with everything on them that settlement needs: an origin and a destination with
//! depository, router and token, and the chain where balances are settled.

mod abroad;
mod chain;
mod files;
pub mod order;
mod payout;
mod settlement;
mod traded;
mod uniswap;
mod withdrawal;

use std::sync::Arc;

use alloy::primitives::{Address, U256};
use anyhow::Result;
use tokio::sync::Mutex;

use crate::{account::Account, anvil, artifact::Artifacts, node::Node};

pub use abroad::{Abroad, Arrived, Payable};
pub use chain::DevChain;
pub use files::Files;
pub use order::{Deposit, Money, SignedOrder, Terms};
pub use payout::{Identity, Payout, WithdrawalForm};
pub use settlement::{Execution, ORACLE_VERSION, Refusal, Settlement};
pub use traded::Pace;
pub use uniswap::{Exchange, Pool, Uniswap};
pub use withdrawal::Withdrawal;

/// 10,000 of the native currency, given to every account that a devnet knows.
const FUNDS: u128 = 10_000 * 10u128.pow(18);

/// How the chains behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seconds between blocks; `None` makes a block per transaction and on demand.
    pub block_time: Option<u64>,
    /// `finalizationBlocks` of all chains.
    pub finality_blocks: u64,
    /// `finalizationTime` of all chains, in seconds.
    pub finality_seconds: u64,
    /// Oracles in the signer set, and how many of them must sign.
    pub oracles: usize,
    pub threshold: usize,
    /// Both sites have an exchange.
    pub exchange: bool,
    /// Users besides the first.
    pub customers: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            block_time: None,
            finality_blocks: 2,
            finality_seconds: 0,
            oracles: 3,
            threshold: 2,
            exchange: false,
            customers: 0,
        }
    }
}

/// The running world. Dropping it ends its chains.
#[derive(Debug)]
pub struct Devnet {
    pub origin: DevChain,
    pub destination: DevChain,
    pub hub: Settlement,
    /// The signer set of the settlement contracts, in order.
    pub oracles: Vec<Account>,
    pub user: Account,
    pub customers: Vec<Account>,
    pub solver: Account,
    /// Whose signature the depositories obey.
    pub allocator: Account,
    pub options: Options,
}

impl Devnet {
    /// Starts with automatic blocks, two blocks of finality, and 2 of 3 oracles.
    pub async fn start() -> Result<Self> {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Result<Self> {
        let artifacts = Arc::new(tokio::task::spawn_blocking(Artifacts::load).await??);
        let oracles = (1..=options.oracles)
            .map(|number| Account::named(&format!("oracle {number}")))
            .collect::<Result<Vec<_>>>()?;
        let allocator = Account::named("allocator")?;
        let signers: Vec<_> = oracles.iter().map(Account::address).collect();
        let (mut origin, mut destination, hub) = tokio::try_join!(
            DevChain::start("origin", 31_001, &allocator, artifacts.clone()),
            DevChain::start("destination", 31_002, &allocator, artifacts.clone()),
            Settlement::start(31_000, &signers, options.threshold, &artifacts),
        )?;
        if options.exchange {
            tokio::try_join!(origin.open_exchange(), destination.open_exchange())?;
        }
        let world = Self {
            origin,
            destination,
            hub,
            oracles,
            user: Account::named("user")?,
            customers: (1..=options.customers)
                .map(|number| Account::named(&format!("customer {number}")))
                .collect::<Result<_>>()?,
            solver: Account::named("solver")?,
            allocator,
            options,
        };
        world.fund().await?;
        Ok(world)
    }

    /// The site called `id` in orders and in the chains file.
    pub fn site(&self, id: &str) -> Option<&DevChain> {
        [&self.origin, &self.destination]
            .into_iter()
            .find(|site| site.id == id)
    }

    /// Native currency and the site's token for user and solver, gas for the solver at the hub, then
    /// blocks at their own pace.
    async fn fund(&self) -> Result<()> {
        let solver = self.solver.address();
        self.hub.node.set_balance(solver, U256::from(FUNDS)).await?;
        for site in [&self.origin, &self.destination] {
            for account in [&self.user, &self.solver]
                .into_iter()
                .chain(&self.customers)
            {
                site.endow(account.address()).await?;
            }
        }
        for node in [&self.origin.node, &self.destination.node, &self.hub.node] {
            if let Some(seconds) = self.options.block_time {
                node.mine_every(seconds).await?;
            }
        }
        Ok(())
    }
}

impl DevChain {
    /// 10,000 of the native currency and a million of the site's tokens; one account after the other, since a node gives two
    /// transactions of the minter at once the same nonce when it is slow.
    pub async fn endow(&self, account: Address) -> Result<()> {
        static TURN: Mutex<()> = Mutex::const_new(());
        let _turn = TURN.lock().await;
        self.node.set_balance(account, U256::from(FUNDS)).await?;
        let tokens = U256::from(1_000_000_000_000u64);
        if let Some(exchange) = &self.exchange {
            self.mint(exchange.rare, account, tokens).await?;
        }
        self.mint(self.token, account, tokens).await
    }
}

/// A chain that makes blocks by itself, and an account that may deploy there.
async fn founded(chain_id: u64) -> Result<(Node, Address)> {
    let node = Node::start(&anvil::Options {
        chain_id,
        block_time: None,
    })
    .await?;
    let deployer = Account::named("deployer")?.address();
    node.set_balance(deployer, U256::from(FUNDS)).await?;
    Ok((node, deployer))
}
