//! `intentd check-config`: what the daemon would do with this environment. Prints no secret.

use std::time::Duration;

use crate::{
    chains::{Chains, Closed, Loaded, Opened},
    config::{Config, PeerKey, PeerSetting},
    market::Network,
    redact,
    run::{Parts, Trading},
    solver::chain::{self, TradingChain},
};

/// How long a network may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn run(variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
    let runtime = super::runtime()?;
    let (config, mistakes) = Config::draft(variables);
    let compared = |trading: &Trading, chains: &Chains| runtime.block_on(compared(trading, chains));
    let Parts {
        signer,
        chains,
        settings,
        trading,
    } = runtime.block_on(Parts::of(&config, mistakes))?;
    let lines = [
        format!("environment  {}", config.environment),
        format!("listen       {}:{}", config.listen.host, config.listen.port),
        format!("operations   {}", config.listen.ops),
        format!("data         {}", config.data_dir.display()),
        format!("signer       {:#x}", signer.address()),
        format!("finality     {:?}", config.finality_profile),
        format!(
            "keys         {}",
            config.api_keys.as_ref().map_or(0, Vec::len)
        ),
        format!("peers        {}", peers(&config)),
        format!(
            "hub          {}, {}",
            settings.id,
            settlement(chains.attested_hub())
        ),
        format!("allocator    {}", settlement(chains.allocator())),
        format!("integrator   {}", integrator(&config, trading.as_ref())),
        format!("prices       {}", prices(trading.as_ref())),
        format!("caps         {}", caps(trading.as_ref())),
        format!("logs         {}", logs(&config)),
        format!("unused       {}", config.unused.join(" ")),
        format!("chains       {}", chains.list().len()),
        format!("serves       {}", served(&chains)),
    ];
    let market = trading.as_ref().map(|trading| compared(trading, &chains));
    let mut lines = Vec::from(lines);
    lines.extend(chains.list().iter().map(chain));
    lines.extend(market.into_iter().flatten());
    super::say(lines.join("\n"))
}

/// What each network of the market says of itself, after those that cannot say anything.
async fn compared(trading: &Trading, chains: &Chains) -> Vec<String> {
    let networks = trading.market.networks().iter();
    let asked = networks.filter_map(|network| {
        let opened = chains.get(&network.name)?.chain.as_ref().ok()?;
        if opened.trading_providers.is_empty() {
            return None;
        }
        Some(async move {
            let said = tokio::time::timeout(PATIENCE, mismatches(network, opened)).await;
            let said = said.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            let said = match said {
                Ok(wrong) if wrong.is_empty() => "as its chain says".to_owned(),
                Ok(wrong) => format!("WARNING: not traded: {}", wrong.join("; ")),
                Err(why) => format!("not compared with its chain: {why}"),
            };
            let borne_out = network.blooms && opened.chain.spec.family.blooms;
            let lone = match !borne_out && opened.required < 2 {
                true => ", WARNING: one provider's word for what was deposited",
                false => "",
            };
            format!("  market {:<14} {said}{lone}", network.name)
        })
    });
    let said = futures::future::join_all(asked).await;
    let networks = trading.market.networks().iter();
    let unopened = networks.filter_map(|network| unopened(network, chains));
    unopened.chain(said).collect()
}

/// A network of the market that the daemon does not open.
fn unopened(network: &Network, chains: &Chains) -> Option<String> {
    let why = Trading::unopened(network, chains)?;
    // Whoever disables one has taken it out on purpose.
    let warning = if network.disabled { "" } else { "WARNING: " };
    Some(format!(
        "  market {:<14} {warning}not opened: {why}",
        network.name
    ))
}

async fn mismatches(network: &Network, opened: &Opened) -> Result<Vec<String>, String> {
    let trading_providers = opened.trading_providers.clone();
    let providers = chain::providers(network, &opened.chain, trading_providers, opened.required);
    let providers = providers.map_err(|error| error.to_string())?;
    let chain = TradingChain::traded(network, opened.chain.clone(), providers);
    let chain = chain.map_err(|error| error.to_string())?;
    chain.mismatches().await.map_err(|error| error.to_string())
}

/// Where log lines go.
fn logs(config: &Config) -> String {
    let intake = config.log_intake.as_ref();
    let intake = intake.map(|intake| format!(", {}", redact::text(intake.url.as_str())));
    format!("standard error{}", intake.unwrap_or_default())
}

fn integrator(config: &Config, trading: Option<&Trading>) -> String {
    match (&config.integrator, trading) {
        (Some(wanted), Some(trading)) => format!(
            "{}:{}, {} networks, solver {:#x} on {}, {}",
            config.listen.host,
            wanted.http_port,
            trading.market.networks().len(),
            trading.keys.secp256k1.address(),
            trading.solver_chain,
            match &trading.oracle {
                Some(oracle) => format!("settled through {}", redact::url(oracle.url.as_str())),
                None => "not settled: no SOLVER_ORACLE_URL".to_owned(),
            },
        ),
        _ => "off".to_owned(),
    }
}

/// How many peers there are, and whether nobody asks them. A peer without a key of ours counts all who ask here as one
/// caller.
fn peers(config: &Config) -> String {
    let all = config.peers.len();
    let multisig = config.multisig.as_ref();
    if all > 0 && multisig.is_some_and(|multisig| multisig.threshold == 0) {
        return format!("{all}, none asked: ORACLE_SIGNERS_THRESHOLD is 0");
    }
    let own = |peer: &&PeerSetting| matches!(peer.key, PeerKey::Own(_));
    match all - config.peers.iter().filter(own).count() {
        0 => all.to_string(),
        without => format!(
            "{all}, WARNING: {without} without a key of ours: strangers take our part of its limit, and their claims \
             of several inputs do not reach it"
        ),
    }
}

/// In production each price needs two sources.
fn prices(trading: Option<&Trading>) -> String {
    let Some(trading) = trading else {
        return "off".to_owned();
    };
    let lonely = trading.market.lonely();
    if lonely.is_empty() || !trading.production {
        return "enough sources".to_owned();
    }
    let lonely = lonely
        .iter()
        .map(|(network, currency)| format!("{network} {currency}"));
    let lonely = lonely.collect::<Vec<_>>().join(", ");
    format!("WARNING: no second source, not quoted: {lonely}")
}

fn caps(trading: Option<&Trading>) -> String {
    let Some(trading) = trading else {
        return "off".to_owned();
    };
    match trading.market.uncapped() {
        none if none.is_empty() => "on every network".to_owned(),
        uncapped => format!("WARNING: no hourly cap: {}", uncapped.join(", ")),
    }
}

fn served(chains: &Chains) -> String {
    let served = chains.list().iter().filter(|loaded| loaded.served);
    let names = served.map(|loaded| loaded.id.as_str()).collect::<Vec<_>>();
    names.join(", ")
}

fn settlement(chain: Result<&Opened, Closed>) -> String {
    match chain {
        Ok(chain) => votes(chain),
        Err(why) => why.to_string(),
    }
}

fn chain(loaded: &Loaded) -> String {
    let state = match loaded.attested() {
        Ok(chain) => format!(
            "{}, {} blocks, {} s{}",
            votes(chain),
            chain.chain.spec.finality.blocks,
            chain.chain.spec.finality.seconds,
            match chain.lacks_routers() {
                true => " (WARNING: no fillRouters: no fill through a router is attested)",
                false => "",
            }
        ),
        Err(why) => match &loaded.keys {
            None => why.to_string(),
            Some(Err(why)) => format!("keys of owners only: {why}"),
            Some(Ok(keys)) => match &keys.few {
                None => format!("keys of owners only, {}", votes(keys)),
                Some(few) => format!("keys of owners only: {few}"),
            },
        },
    };
    let network = match loaded.lacks_network() {
        true => {
            " (WARNING: no genesisHash or contractAddress: a node of another network is not \
             noticed)"
        }
        false => "",
    };
    format!(
        "  {:<14} {:<14} {state}{network}",
        loaded.id, loaded.vm_type
    )
}

fn votes(chain: &Opened) -> String {
    let votes = format!("{} of {} providers", chain.required, chain.providers);
    if chain.minority_decides() {
        return format!("{votes} (WARNING: no majority)");
    }
    votes
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn checked(fast_mode: Value, limiter: Value) -> Result<(), String> {
        let directory = tempfile::TempDir::new().unwrap();
        let chain = |id: &str, fast_mode: Value| {
            json!({
                "id": id, "vmType": "ethereum-vm", "httpRpcUrl": "http://127.0.0.1:1",
                "hubChainId": "1", "additionalData": { "fastMode": fast_mode },
            })
        };
        let chains = json!([chain("one", fast_mode), chain("two", Value::Null)]);
        let hub = json!({
            "id": "relay", "evmChainId": "31337", "oracleVersion": "2",
            "httpRpcUrl": "http://127.0.0.1:1", "rateLimiter": limiter,
            "oracleAddress": "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9",
        });
        let write = |name: &str, file: &Value| {
            let path = directory.path().join(name);
            std::fs::write(&path, file.to_string()).unwrap();
            path.display().to_string()
        };
        let key = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
        let variables = [
            ("ENVIRONMENT", "test".to_owned()),
            ("ECDSA_PRIVATE_KEY", format!("0x{key}")),
            ("CHAINS_FILE", write("chains.json", &chains)),
            ("HUB_FILE", write("hub.json", &hub)),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        run(variables).map_err(|error| error.to_string())
    }

    #[test]
    fn networks_of_the_market_that_are_not_opened_are_told() {
        let directory = tempfile::TempDir::new().unwrap();
        let chains = json!([
            { "id": "one", "vmType": "ethereum-vm", "hubChainId": "1", "httpRpcUrl": "http://127.0.0.1:1" },
            { "id": "two", "vmType": "ethereum-vm", "hubChainId": "2" },
        ]);
        let path = directory.path().join("chains.json");
        std::fs::write(&path, chains.to_string()).unwrap();
        let variables = [
            ("ENVIRONMENT", "test".to_owned()),
            ("CHAINS_FILE", path.display().to_string()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let (config, mut mistakes) = Config::draft(variables);
        let chains = Chains::gather(&config, &mut mistakes).unwrap();
        let said = |name: &str, disabled: bool| {
            let network = json!({
                "name": name, "chainId": 1, "displayName": name, "disabled": disabled,
                "currencies": [],
            });
            unopened(&serde_json::from_value(network).unwrap(), &chains)
        };
        assert_eq!(said("one", false), None);
        let why = said("two", false).unwrap();
        assert!(
            why.contains("two") && why.contains("WARNING: not opened: "),
            "{why}"
        );
        let why = said("two", true).unwrap();
        assert!(
            why.contains("not opened") && !why.contains("WARNING"),
            "{why}"
        );
    }

    #[test]
    fn peers_that_nobody_asks_are_told() {
        let said = |listed: &str, set: &[(&str, &str)]| {
            let fixed = [("ENVIRONMENT", "test"), ("PEERS", listed)];
            let all = fixed.iter().chain(set);
            let all = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            peers(&Config::draft(all).0)
        };
        let two = "http://one|k;http://two|k";
        let signers = (
            "ORACLE_SIGNERS",
            "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
        );
        let threshold = |text| ("ORACLE_SIGNERS_THRESHOLD", text);
        let none = "2, none asked: ORACLE_SIGNERS_THRESHOLD is 0";
        assert_eq!(said(two, &[signers]), none);
        assert_eq!(said(two, &[signers, threshold("0")]), none);
        for set in [&[signers, threshold("1")][..], &[threshold("0")], &[]] {
            assert_eq!(said(two, set), "2", "{set:?}");
        }
        assert_eq!(said("", &[signers]), "0");
    }

    #[test]
    fn fast_mode_that_cannot_be_followed_is_reported_with_all_that_is_wrong() {
        let native = "0x0000000000000000000000000000000000000000";
        let limiter = json!({ "address": "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512" });
        let tiers = |row: Value| json!({ "finalityTiers": { native: [row] } });
        let good = tiers(json!({ "maxAmount": "1", "finalizationBlocks": 1 }));
        assert_eq!(checked(good.clone(), limiter.clone()), Ok(()));
        assert_eq!(checked(Value::Null, Value::Null), Ok(()));
        let why = checked(good, Value::Null).unwrap_err();
        assert!(
            why.contains("HUB_FILE: rateLimiter: chain one has"),
            "{why}"
        );
        let fee = tiers(json!({ "maxAmount": "1", "feeBps": 5 }));
        let why = checked(fee, limiter).unwrap_err();
        assert!(why.contains("chain one: fastMode.feeRecipient"), "{why}");
        let number = tiers(json!({ "maxAmount": "1e3" }));
        let why = checked(number, json!({ "address": "x" })).unwrap_err();
        assert!(why.contains("CHAINS_FILE: chain one: fastMode."), "{why}");
        assert!(why.contains("HUB_FILE: rateLimiter.address"), "{why}");
    }
}
