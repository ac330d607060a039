//! The configuration of a daemon that is to watch this world (guide: protocol 10.4 and 10.5).

use alloy::primitives::Address;
use serde_json::{Value, json};

use super::{DevChain, Devnet, order::text, settlement::ORACLE_VERSION};

/// The contents of `CHAINS_FILE`, `HUB_FILE` and `MARKET_FILE`, and the variables that they refer to.
#[derive(Clone, Debug)]
pub struct Files {
    pub chains: Value,
    pub hub: Value,
    pub market: Value,
    /// `ORIGIN_RPC_URL`, `DESTINATION_RPC_URL`, `RELAY_RPC_URL`, `AURORA_RPC_URL`: point one of
    /// them at a proxy to lie to the daemon.
    pub environment: Vec<(String, String)>,
}

impl Devnet {
    /// What a daemon needs to know about this world.
    pub fn files(&self) -> Files {
        let hub = self.hub.node.url.to_string();
        let environment = [
            ("ORIGIN_RPC_URL", self.origin.node.url.to_string()),
            ("DESTINATION_RPC_URL", self.destination.node.url.to_string()),
            ("RELAY_RPC_URL", hub.clone()),
            ("AURORA_RPC_URL", hub),
        ];
        Files {
            chains: json!([
                self.chain_entry(&self.origin),
                self.chain_entry(&self.destination)
            ]),
            hub: self.hub_entry(),
            market: json!([
                self.market_entry(&self.origin),
                self.market_entry(&self.destination)
            ]),
            environment: environment
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        }
    }

    fn chain_entry(&self, site: &DevChain) -> Value {
        json!({
            "id": site.id,
            "vmType": "ethereum-vm",
            "httpRpcUrl": format!("${}_RPC_URL", site.id.to_uppercase()),
            "hubChainId": site.node.chain_id.to_string(),
            "depository": format!("{:#x}", site.depository),
            "additionalData": self.finality(),
        })
    }

    fn finality(&self) -> Value {
        json!({
            "finalizationBlocks": self.options.finality_blocks,
            "finalizationTime": self.options.finality_seconds,
        })
    }

    /// What can be traded at a site: its native currency at 2,500 dollars and its token at one, and
    /// what its exchange has, which the solver does not hold.
    fn market_entry(&self, site: &DevChain) -> Value {
        let usd = |mut currency: Value, usd: &str| {
            currency["prices"] = json!([{"kind": "peg", "usd": usd}]);
            currency
        };
        let mut currencies = vec![
            usd(
                json!({"address": text(Address::ZERO), "symbol": "ETH", "name": "Ether", "decimals": 18,
                       "group": "eth", "class": "major", "solver": true}),
                "2500",
            ),
            usd(
                json!({"address": text(site.token), "symbol": "USD", "name": "Dollar", "decimals": 6,
                       "group": "usd", "class": "stable", "solver": true}),
                "1",
            ),
        ];
        let mut entry = json!({
            "name": site.id,
            "chainId": site.node.chain_id,
            "displayName": site.id,
            "publicRpcUrl": site.node.url.to_string(),
            "fillRouter": text(site.router),
            "approvalProxy": text(site.proxy),
            "indexFrom": 0,
            "fillConfirmations": 1,
            "blockSeconds": 1,
            "limits": {"authorizations": true},
        });
        if let Some(exchange) = &site.exchange {
            let uniswap = &exchange.uniswap;
            entry["wrappedNative"] = text(uniswap.wrapped).into();
            entry["uniswapV3"] = json!({
                "quoter": text(uniswap.quoter), "router": text(uniswap.router), "fees": [500, 3000],
            });
            currencies.push(usd(
                json!({"address": text(uniswap.wrapped), "symbol": "WETH", "name": "Wrapped Ether",
                       "decimals": 18, "group": "eth", "class": "major"}),
                "2500",
            ));
            currencies.push(usd(
                json!({"address": text(exchange.rare), "symbol": "RARE", "name": "Rare",
                       "decimals": 6, "group": "rare"}),
                "1",
            ));
        }
        entry["currencies"] = currencies.into();
        entry
    }

    fn hub_entry(&self) -> Value {
        let settlement = &self.hub;
        let chain_id = settlement.node.chain_id.to_string();
        let lower = |address| format!("{address:#x}");
        let finality = self.finality();
        json!({
            "id": "relay",
            "evmChainId": chain_id,
            "httpRpcUrl": "$RELAY_RPC_URL",
            "hubAddress": lower(settlement.hub),
            "oracleAddress": lower(settlement.oracle),
            "oracleVersion": ORACLE_VERSION,
            "additionalData": finality,
            "oracleMultisigAddress": lower(settlement.oracle),
            "genericMappingAddress": lower(settlement.mapping),
            "allocatorAddress": lower(settlement.allocator),
            "executorAddress": lower(settlement.executor),
            "depositAddressManagerAddress": lower(settlement.deposit_addresses),
            "auroraHttpRpcUrl": "$AURORA_RPC_URL",
            "auroraEvmChainId": chain_id,
            "auroraAdditionalData": finality,
            "auroraAllocatorAddress": lower(settlement.allocator),
            "auroraAllocatorSpenderAddress": lower(settlement.allocator),
            "auroraOracleMultisigAddress": lower(settlement.oracle),
        })
    }
}
