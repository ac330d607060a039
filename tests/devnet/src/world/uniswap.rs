//! Uniswap V3 as it is deployed everywhere: the published bytecode of its npm packages.

use alloy::{
    primitives::{
        Address, U160, U256,
        aliases::{I24, U24},
    },
    sol_types::{SolCall, SolValue},
};
use anyhow::{Context, Result};

use super::DevChain;
use crate::{
    artifact,
    contracts::{Positions, Token},
    node::Payload,
};

const FACTORY: &str = "v3-core/artifacts/contracts/UniswapV3Factory.sol/UniswapV3Factory";
const POSITIONS: &str =
    "v3-periphery/artifacts/contracts/NonfungiblePositionManager.sol/NonfungiblePositionManager";
const QUOTER: &str = "swap-router-contracts/artifacts/contracts/lens/QuoterV2.sol/QuoterV2";
const ROUTER: &str = "swap-router-contracts/artifacts/contracts/SwapRouter02.sol/SwapRouter02";

/// The ticks between which prices can be (TickMath).
const TICKS: i32 = 887_272;

/// The contracts on one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniswap {
    pub factory: Address,
    /// The native currency as a token (WETH9).
    pub wrapped: Address,
    /// QuoterV2.
    pub quoter: Address,
    /// SwapRouter02.
    pub router: Address,
    positions: Address,
}

/// A new pool: its two tokens, how much of each it holds, which makes its price, and its fee in
/// hundredths of a basis point (500, 3000 or 10000).
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    pub holds: [(Address, U256); 2],
    pub fee: u32,
}

/// Uniswap, and a token that can be had there only.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub uniswap: Uniswap,
    /// Six decimals, worth a dollar, with a pool against the site's token.
    pub rare: Address,
}

impl DevChain {
    /// Opens the exchange: Uniswap as [`DevChain::uniswap`] deploys it, and the rare token's pool of a
    /// million against a million, with a fee of 500.
    pub async fn open_exchange(&mut self) -> Result<()> {
        let uniswap = self.uniswap().await?;
        let rare = self.deploy_token("Token").await?;
        let million = U256::from(1_000_000_000_000u64);
        let pool = Pool {
            holds: [(rare, million), (self.token, million)],
            fee: 500,
        };
        self.open_pool(&uniswap, pool).await?;
        self.exchange = Some(Exchange { uniswap, rare });
        Ok(())
    }

    /// Deploys Uniswap V3 and a pool of 1,000 of the native currency against 2,500,000 of the site's
    /// token, with a fee of 3000.
    pub async fn uniswap(&self) -> Result<Uniswap> {
        let wrapped = self.deploy("Weth", &[]).await?;
        let factory = self.deploy_published(FACTORY, &[]).await?;
        let none = Address::ZERO;
        let positions = (factory, wrapped, none).abi_encode();
        let positions = self.deploy_published(POSITIONS, &positions).await?;
        let quoter = (factory, wrapped).abi_encode();
        let quoter = self.deploy_published(QUOTER, &quoter).await?;
        let router = (none, factory, positions, wrapped).abi_encode();
        let router = self.deploy_published(ROUTER, &router).await?;
        let uniswap = Uniswap {
            factory,
            wrapped,
            quoter,
            router,
            positions,
        };
        let ether = U256::from(10).pow(U256::from(18)) * U256::from(1_000);
        let dollars = U256::from(2_500_000_000_000u64);
        let pool = Pool {
            holds: [(wrapped, ether), (self.token, dollars)],
            fee: 3000,
        };
        self.open_pool(&uniswap, pool).await?;
        Ok(uniswap)
    }

    /// Creates a pool and fills it over all prices; a token must be one of `Tokens.sol`.
    pub async fn open_pool(&self, uniswap: &Uniswap, pool: Pool) -> Result<()> {
        let Pool { mut holds, fee } = pool;
        holds.sort_by_key(|(token, _)| *token);
        let [(token0, amount0), (token1, amount1)] = holds;
        let create = Positions::createAndInitializePoolIfNecessaryCall {
            token0,
            token1,
            fee: U24::from(fee),
            sqrtPriceX96: U160::from(root(amount1, amount0)),
        };
        self.transact(uniswap.positions, &create, U256::ZERO)
            .await?;
        let mut value = U256::ZERO;
        for (token, amount) in holds {
            if token == uniswap.wrapped {
                value = amount;
                continue;
            }
            self.mint(token, self.deployer, amount).await?;
            let spender = uniswap.positions;
            let approve = Token::approveCall { spender, amount };
            self.transact(token, &approve, U256::ZERO).await?;
        }
        let spacing = i32::try_from(fee / 50)?;
        let edge = I24::try_from(TICKS / spacing * spacing)?;
        let params = Positions::MintParams {
            token0,
            token1,
            fee: U24::from(fee),
            tickLower: -edge,
            tickUpper: edge,
            amount0Desired: amount0,
            amount1Desired: amount1,
            amount0Min: U256::ZERO,
            amount1Min: U256::ZERO,
            recipient: self.deployer,
            deadline: U256::MAX,
        };
        let mint = Positions::mintCall { params };
        self.transact(uniswap.positions, &mint, value).await
    }

    async fn deploy_published(&self, artifact: &str, arguments: &[u8]) -> Result<Address> {
        let path = format!("@uniswap/{artifact}.json");
        let code = tokio::task::spawn_blocking(move || artifact::published(&path)).await??;
        self.node
            .create(self.deployer, &code, arguments)
            .await
            .with_context(|| format!("cannot deploy {artifact}"))
    }

    async fn transact(&self, to: Address, call: &impl SolCall, value: U256) -> Result<()> {
        let call = Payload::call(to, call).value(value);
        self.node.transact(self.deployer, call).await.map(drop)
    }
}

/// The square root of a price with 96 binary digits behind the point, of amounts below 2^128.
fn root(price: U256, of: U256) -> U256 {
    ((price << 128usize) / of).root(2) << 32usize
}
