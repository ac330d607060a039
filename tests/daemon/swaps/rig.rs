//! A chain with Uniswap, the market of it, and a user with some of everything.

use std::{sync::Arc, time::Duration};

use alloy::{
    primitives::{Address, U256},
    rpc::types::TransactionReceipt,
    sol,
};
use devnet::{
    account::Account,
    artifact::Artifacts,
    node::Payload,
    world::{DevChain, Pool, Uniswap},
};
use intentd::{market::Market, quote::swaps::Swaps};
use serde_json::{Value, json};
use vm::{
    ChainEntry, Endpoint,
    trade::{
        Choices, HeadCalls, SwapAccess, SwapDraft, SwapError, SwapOffer, SwapOrder, SwapTerms,
    },
};

pub const ETHER: u128 = 10u128.pow(18);
pub const USD: u128 = 10u128.pow(6);

sol! {
    function deposit();
}

pub struct Rig {
    pub site: DevChain,
    pub uniswap: Uniswap,
    /// A token with a pool against the site's token only.
    pub third: Address,
    pub user: Account,
    pub market: Market,
    pub swaps: Swaps,
}

pub fn vm_address(address: Address) -> vm::Address {
    vm::SETTLEMENT.address(&format!("{address:#x}")).unwrap()
}

impl Rig {
    pub async fn start() -> Self {
        let artifacts = tokio::task::spawn_blocking(Artifacts::load).await;
        let artifacts = Arc::new(artifacts.unwrap().unwrap());
        let allocator = Account::named("allocator").unwrap();
        let site = DevChain::start("origin", 31_001, &allocator, artifacts);
        let site = site.await.unwrap();
        let uniswap = site.uniswap().await.unwrap();
        let third = site.deploy_token("Token").await.unwrap();
        let million = U256::from(1_000_000 * USD);
        let pool = Pool {
            holds: [(third, million), (site.token, million)],
            fee: 500,
        };
        site.open_pool(&uniswap, pool).await.unwrap();
        let market = market(&site, &uniswap, third);
        let rig = Self {
            swaps: swaps(&market, &[site.node.url.as_str()]),
            user: Account::named("user").unwrap(),
            site,
            uniswap,
            third,
            market,
        };
        rig.fund().await;
        rig
    }

    async fn fund(&self) {
        let (site, user) = (&self.site, self.user.address());
        let wei = U256::from(10_000 * ETHER);
        site.node.set_balance(user, wei).await.unwrap();
        for token in [site.token, self.third] {
            let amount = U256::from(1_000_000 * USD);
            site.mint(token, user, amount).await.unwrap();
        }
        let wrap = Payload::call(self.uniswap.wrapped, &depositCall {});
        let wrap = wrap.value(U256::from(100 * ETHER));
        site.node.transact(user, wrap).await.unwrap();
    }

    /// `Address::ZERO` is the native currency.
    pub fn terms(&self, from: Address, to: Address, amount: u128, exact_input: bool) -> SwapTerms {
        SwapTerms {
            network: "origin".to_owned(),
            input: vm_address(from),
            output: vm_address(to),
            amount: U256::from(amount),
            exact_input,
            most_pools: None,
        }
    }

    /// The user pays, within ten minutes.
    pub async fn order(&self, recipient: Address, limit: U256) -> SwapOrder {
        SwapOrder {
            payer: vm_address(self.user.address()),
            recipient: vm_address(recipient),
            limit,
            deadline: self.site.node.tip().await.unwrap().time + 600,
            choices: Choices::default(),
        }
    }

    /// Allows the exchange to take everything, and makes it.
    pub async fn send(&self, swap: &SwapDraft) -> TransactionReceipt {
        let contract = |address: &vm::Address| Address::from_slice(address.bytes());
        if let Some(spender) = &swap.spender {
            for token in [self.site.token, self.third, self.uniswap.wrapped] {
                let spender = contract(spender);
                let approved = self.site.approve(&self.user, token, spender, U256::MAX);
                approved.await.unwrap();
            }
        }
        let call = swap.draft.as_call().unwrap();
        let payload = Payload {
            to: Some(contract(&call.to)),
            data: call.data.to_vec(),
            value: call.value,
        };
        self.site
            .node
            .send(self.user.address(), payload)
            .await
            .unwrap()
    }

    pub async fn held(&self, currency: Address, owner: Address) -> U256 {
        if currency.is_zero() {
            return self.site.node.balance(owner).await.unwrap();
        }
        self.site.token_balance(currency, owner).await.unwrap()
    }

    /// Uniswap as these providers show it.
    pub fn seen_through(&self, urls: &[&str]) -> Swaps {
        swaps(&self.market, urls)
    }

    /// Uniswap with another quoter.
    pub fn quoted_by(&self, quoter: Address) -> Swaps {
        let mut uniswap = self.uniswap;
        uniswap.quoter = quoter;
        let market = market(&self.site, &uniswap, self.third);
        swaps(&market, &[self.site.node.url.as_str()])
    }

    /// A contract that gives `answer` to whatever it is asked, or reverts with it.
    pub async fn contract_that_says(&self, answer: &[u8], reverts: bool) -> Address {
        let contract = program(if reverts { REVERT } else { RETURN }, answer);
        let creation = program(RETURN, &contract);
        let (node, deployer) = (&self.site.node, self.site.deployer);
        node.create(deployer, &creation, &[]).await.unwrap()
    }
}

const RETURN: u8 = 0xf3;
const REVERT: u8 = 0xfd;

/// Bytecode that ends with `data` in the way that the last instruction says.
fn program(last: u8, data: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(data.len()).unwrap().to_be_bytes();
    // PUSH2 length, PUSH1 12, PUSH0, CODECOPY, PUSH2 length, PUSH0, and the last: 12 bytes.
    let copy = [0x61, high, low, 0x60, 12, 0x5f, 0x39];
    [&copy[..], &[0x61, high, low, 0x5f, last], data].concat()
}

/// The exchanges of a market as these providers show them.
pub fn swaps(market: &Market, urls: &[&str]) -> Swaps {
    let access = SwapAccess {
        head_calls: head_calls(urls),
        keyed: || false,
    };
    Swaps::open(market, |_| Some(access.clone())).unwrap()
}

/// The one offer of the exchange of that name.
pub async fn offer_of(
    swaps: &Swaps,
    name: &str,
    terms: &SwapTerms,
) -> Result<SwapOffer, SwapError> {
    let mut offers = swaps.offers(terms, |one| one == name).await?;
    assert_eq!(offers.len(), 1);
    Ok(offers.remove(0))
}

fn head_calls(urls: &[&str]) -> HeadCalls {
    let entry = ChainEntry {
        id: "origin".into(),
        depository: Some(format!("{:#x}", Address::repeat_byte(0xdd))),
        hub_chain_id: Some("31001".to_owned()),
        ..ChainEntry::default()
    };
    let spec = entry.spec(vm::SETTLEMENT, false).unwrap();
    let contracts = |url: &&str| {
        let endpoint = Endpoint {
            position: 0,
            url: url.parse().unwrap(),
            timeout: Duration::from_secs(5),
            longest: vm::protocol::limits::PROVIDER_ANSWER,
            allows: None,
            client: Endpoint::client().unwrap(),
        };
        let provider = vm::SETTLEMENT.trade.unwrap()(&spec, &endpoint);
        provider.unwrap().contracts().unwrap().clone()
    };
    HeadCalls {
        family: vm::SETTLEMENT,
        contracts: urls.iter().map(contracts).collect(),
    }
}

/// The market of a rig with second choices and no first one.
pub fn with_fallbacks(rig: &Rig, exchanges: Value) -> Market {
    let mut entry = entry(&rig.site, &rig.uniswap, rig.third);
    entry.as_object_mut().unwrap().remove("uniswapV3");
    entry["fallbackExchanges"] = exchanges;
    parsed(&entry)
}

fn market(site: &DevChain, uniswap: &Uniswap, third: Address) -> Market {
    parsed(&entry(site, uniswap, third))
}

fn parsed(entry: &Value) -> Market {
    let text = json!([entry]).to_string();
    Market::parse(&text, |_| Some(vm::SETTLEMENT)).unwrap()
}

fn entry(site: &DevChain, uniswap: &Uniswap, third: Address) -> Value {
    let currency = |address: Address, symbol: &str, decimals: u8, solver: bool| {
        json!({
            "address": address, "symbol": symbol, "name": symbol, "decimals": decimals,
            "group": symbol, "solver": solver, "class": if solver { "stable" } else { "other" },
        })
    };
    json!({
        "name": "origin", "chainId": 31_001, "displayName": "Origin",
        "wrappedNative": uniswap.wrapped,
        "uniswapV3": {
            "quoter": uniswap.quoter, "router": uniswap.router, "fees": [500, 3000, 10_000],
        },
        "currencies": [
            currency(Address::ZERO, "ETH", 18, false),
            currency(uniswap.wrapped, "WETH", 18, false),
            currency(site.token, "USD", 6, true),
            currency(third, "THIRD", 6, false),
        ],
    })
}
