//! The contracts' bytecode, compiled once per version of their sources.

use std::{collections::BTreeMap, fs};

use alloy::primitives::Bytes;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::tools;

const SOURCES: [(&str, &str); 10] = [
    ("Attacks.sol", include_str!("../contracts/Attacks.sol")),
    (
        "Depository.sol",
        include_str!("../contracts/Depository.sol"),
    ),
    ("Feed.sol", include_str!("../contracts/Feed.sol")),
    (
        "FillRouter.sol",
        include_str!("../contracts/FillRouter.sol"),
    ),
    (
        "Settlement.sol",
        include_str!("../contracts/Settlement.sol"),
    ),
    ("Till.sol", include_str!("../contracts/Till.sol")),
    ("Tokens.sol", include_str!("../contracts/Tokens.sol")),
    ("Typed.sol", include_str!("../contracts/Typed.sol")),
    ("Views.sol", include_str!("../contracts/Views.sol")),
    ("Weth.sol", include_str!("../contracts/Weth.sol")),
];

/// Creation bytecode by contract name.
#[derive(Clone, Debug)]
pub struct Artifacts(BTreeMap<String, Bytes>);

impl Artifacts {
    /// Reads the cache, or compiles into it (about 15 s, once). Blocking.
    pub fn load() -> Result<Self> {
        let input = input().to_string();
        let directory = tools::build_once("contracts", input.as_bytes(), |directory| {
            tracing::info!("compiling the devnet contracts (once)");
            let bytecode = bytecode(&serde_json::from_str(&tools::compile(&input)?)?)?;
            let text = serde_json::to_string(&bytecode)?;
            Ok(fs::write(directory.join("bytecode.json"), text)?)
        })?;
        let text = fs::read_to_string(directory.join("bytecode.json"))?;
        Ok(Self(serde_json::from_str(&text)?))
    }

    /// The creation bytecode of `contract`, without constructor arguments.
    pub fn bytecode(&self, contract: &str) -> Result<&Bytes> {
        self.0
            .get(contract)
            .with_context(|| format!("there is no contract {contract}"))
    }
}

/// The creation bytecode in an artifact that an npm package ships. Blocking.
pub fn published(path: &str) -> Result<Bytes> {
    let artifact: Value = serde_json::from_str(&tools::packaged(path)?)?;
    let code = artifact["bytecode"].as_str();
    Ok(code
        .with_context(|| format!("no bytecode in {path}"))?
        .parse()?)
}

fn input() -> Value {
    let sources: BTreeMap<_, _> = SOURCES
        .iter()
        .map(|(name, content)| (name, json!({ "content": content })))
        .collect();
    json!({
        "language": "Solidity",
        "sources": sources,
        "settings": {
            "optimizer": { "enabled": true, "runs": 200 },
            "evmVersion": "prague",
            "metadata": { "bytecodeHash": "none" },
            "outputSelection": { "*": { "*": ["evm.bytecode.object"] } },
        },
    })
}

fn bytecode(output: &Value) -> Result<BTreeMap<String, String>> {
    let messages: Vec<_> = output["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|error| error["formattedMessage"].as_str())
        .collect();
    ensure!(messages.is_empty(), "solc says:\n{}", messages.join("\n"));
    let files = output["contracts"]
        .as_object()
        .context("solc answered no contracts")?;
    Ok(files
        .values()
        .filter_map(Value::as_object)
        .flatten()
        .filter_map(|(name, contract)| {
            let object = contract["evm"]["bytecode"]["object"].as_str()?;
            (!object.is_empty()).then(|| (name.clone(), format!("0x{object}")))
        })
        .collect())
}
