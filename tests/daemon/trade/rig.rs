//! A chain with a depository, a proxy in front of it, and the family's trading opened over both.

use std::{sync::Arc, time::Duration};

use alloy::primitives::{Address as EvmAddress, B256, U256};
use devnet::{account::Account, artifact::Artifacts, proxy::LyingProxy, world::DevChain};
use vm::{
    Address, ChainEntry, ChainSpec, Endpoint, Family, Provider,
    ethereum::trade::{TransactionCodec, Transactions, Unsealed},
    trade::{Call, Contracts, Simulator, StepBuilder, TradingProvider},
};

pub const CHAIN: u64 = 31_001;
pub const FAMILY: &Family = vm::SETTLEMENT;
pub const ORDER: B256 = B256::repeat_byte(0xb6);
const ETHER: u128 = 10u128.pow(18);

pub struct Rig {
    pub site: DevChain,
    pub user: Account,
    pub solver: Account,
    pub proxy: LyingProxy,
    pub trade: TradingProvider,
    spec: Arc<ChainSpec>,
}

impl Rig {
    pub async fn start() -> Self {
        let artifacts = tokio::task::spawn_blocking(Artifacts::load).await;
        let artifacts = Arc::new(artifacts.unwrap().unwrap());
        let allocator = Account::named("allocator").unwrap();
        let site = DevChain::start("origin", CHAIN, &allocator, artifacts)
            .await
            .unwrap();
        let proxy = LyingProxy::start(&site.node.url).await.unwrap();
        let entry = ChainEntry {
            id: site.id.into(),
            depository: Some(site.depository.to_string()),
            hub_chain_id: Some(CHAIN.to_string()),
            ..ChainEntry::default()
        };
        let spec = entry.spec(FAMILY, false).unwrap();
        let trade = FAMILY.trade.unwrap()(&spec, &endpoint(&proxy)).unwrap();
        let rig = Self {
            user: Account::named("user").unwrap(),
            solver: Account::named("solver").unwrap(),
            site,
            proxy,
            trade,
            spec,
        };
        for account in [&rig.user, &rig.solver] {
            rig.fund(account.address()).await;
        }
        rig
    }

    /// From now on so many bytes of an answer are read.
    pub fn longest(&mut self, bytes: usize) {
        let endpoint = Endpoint {
            longest: bytes,
            ..endpoint(&self.proxy)
        };
        self.trade = FAMILY.trade.unwrap()(&self.spec, &endpoint).unwrap();
    }

    /// 100 of the native currency and a million tokens.
    pub async fn fund(&self, account: EvmAddress) {
        let wei = U256::from(100 * ETHER);
        self.site.node.set_balance(account, wei).await.unwrap();
        let tokens = U256::from(1_000_000_000_000u64);
        let token = self.site.token;
        self.site.mint(token, account, tokens).await.unwrap();
    }

    pub fn contracts(&self) -> Arc<dyn Contracts> {
        self.trade.contracts().unwrap().clone()
    }

    pub fn simulator(&self) -> Arc<dyn Simulator> {
        self.trade.simulator().unwrap().clone()
    }

    /// The oracle's reader of the same chain.
    pub fn reader(&self) -> Provider {
        FAMILY.open.unwrap()(&self.spec, &endpoint(&self.proxy)).unwrap()
    }

    /// The head's height.
    pub async fn height(&self) -> u64 {
        self.trade.scanner.head().await.unwrap().number
    }

    /// A draft of the solver's with room for anything; nonce and fees are the caller's.
    pub fn draft(&self, call: Call, nonce: u64, gwei: u128) -> Unsealed {
        Unsealed {
            call,
            authorizations: Vec::new(),
            nonce,
            gas: 1_000_000,
            max_fee: gwei * 1_000_000_000,
            max_priority_fee: 1_000_000_000.min(gwei * 1_000_000_000),
        }
    }

    /// Bytes and id of the draft, signed by `signer`.
    pub fn sealed(&self, draft: &Unsealed, signer: &Account) -> (vm::Bytes, B256) {
        let digest = Transactions.digest(CHAIN, draft).unwrap();
        let signature = signer.sign_digest(digest).unwrap();
        let signature = <[u8; 65]>::try_from(signature.as_ref()).unwrap();
        Transactions.seal(CHAIN, draft, &signature).unwrap()
    }

    /// Nothing but value from the solver to `to`.
    pub fn payment(&self, to: EvmAddress, wei: u64) -> Call {
        Call {
            from: address(self.solver.address()),
            to: address(to),
            data: vm::Bytes::new(),
            value: U256::from(wei),
        }
    }
}

pub fn steps() -> &'static dyn StepBuilder {
    FAMILY.steps.unwrap()
}

pub fn address(evm: EvmAddress) -> Address {
    FAMILY.address(&evm.to_string()).unwrap()
}

fn endpoint(proxy: &LyingProxy) -> Endpoint {
    Endpoint {
        position: 0,
        url: proxy.url.clone(),
        timeout: Duration::from_secs(10),
        longest: vm::protocol::limits::PROVIDER_ANSWER,
        allows: None,
        client: Endpoint::client().unwrap(),
    }
}
