//! What makes a chain of another family a network that a solver's daemon trades on: its entry in the market file, money,
//! blocks at their own pace, and wallets that sign and send what a quote's step says.

use std::sync::Arc;

use anyhow::{Context, Result};
use bitcoin::Amount;
use serde::Deserialize;
use serde_json::{Value, json};
use solana_instruction::{AccountMeta, Instruction};
use solana_pubkey::Pubkey;
use tokio::task::JoinHandle;

use super::{Abroad, Files};
use crate::{
    account::Account,
    bitcoin::{self as btc, Key, Kind},
    solana::{self, Listed, keypair},
};

/// Satoshis of each output that somebody is given, and how many there are.
const OUTPUT: Amount = Amount::from_sat(50_000_000);
const OUTPUTS: usize = 4;
/// Whose key the daemon has on Solana.
const SOLVER: &str = "solver";

/// Blocks at their own pace, until it is dropped.
#[derive(Debug)]
pub struct Pace(JoinHandle<()>);

impl Drop for Pace {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Abroad {
    /// The chain's number in the integrator API: what the published clients call the real one.
    pub fn number(&self) -> u64 {
        match self {
            Self::Bitcoin(_) => 8_253_038,
            Self::Solana(_) => 792_703_809,
        }
    }

    /// Adds its native currency to what can be traded: a bitcoin at 100,000 dollars, a SOL at 150; and its tokens.
    pub fn trade(&self, files: &mut Files) -> Result<()> {
        let (name, symbol, decimals) = self.names();
        let mut currency = json!({
            "address": self.identity()?.native, "symbol": symbol, "name": name, "decimals": decimals,
            "group": symbol.to_lowercase(), "class": "major", "solver": true,
        });
        let (usd, seconds) = match self {
            Self::Bitcoin(_) => {
                // A block may come here before a quorum's memory pools are looked at: its own time counts.
                currency["priceHolds"] = json!({"seconds": 300, "spread": 30});
                ("100000", 2)
            }
            Self::Solana(_) => ("150", 1),
        };
        currency["prices"] = json!([{"kind": "peg", "usd": usd}]);
        let mut currencies = vec![currency];
        if let Self::Solana(site) = self {
            currencies.extend(site.tokens.iter().map(Listed::entry));
        }
        let network = json!({
            "name": self.id(), "chainId": self.number(), "displayName": name,
            "publicRpcUrl": self.url().to_string(), "fillConfirmations": 1, "blockSeconds": seconds,
            "currencies": currencies,
        });
        let market = files.market.as_array_mut().context("no market")?;
        market.push(network);
        Ok(())
    }

    /// The variable with the solver's key of the accounts that `SOLVER_PRIVATE_KEY` has none for.
    pub fn solver_key() -> (&'static str, String) {
        ("SOLVER_ED25519_KEY", solana::seed(SOLVER).to_string())
    }

    /// The account of a daemon whose `SOLVER_PRIVATE_KEY` is that of `solver`.
    pub fn solver_account(&self, solver: &Account) -> Result<String> {
        match self {
            Self::Bitcoin(_) => btc::address(&Key::of(solver)?.script(Kind::P2wpkh)),
            Self::Solana(_) => self.account(SOLVER),
        }
    }

    /// Two bitcoins in four outputs, or 1,000 SOL and a million of each token, out of nothing.
    pub async fn endow(&self, account: &str) -> Result<()> {
        match self {
            Self::Bitcoin(site) => {
                let output = btc::pay(btc::script(account)?, OUTPUT);
                site.node.pay(vec![output; OUTPUTS]).await?;
                Ok(())
            }
            Self::Solana(site) => {
                let account = account.parse()?;
                site.cluster.fund(&account)?;
                site.give_tokens(&account)
            }
        }
    }

    /// Has the chain make blocks by itself.
    pub fn run(self: &Arc<Self>) -> Pace {
        let chain = self.clone();
        Pace(tokio::spawn(async move {
            match &*chain {
                Self::Bitcoin(site) => site.node.keep_pace().await,
                Self::Solana(site) => site.cluster.keep_pace().await,
            }
        }))
    }

    /// The wallet of `who` signs what a step's item says, and sends it. The transaction.
    pub async fn follow(&self, who: &str, data: &Value) -> Result<String> {
        match self {
            Self::Bitcoin(site) => site.follow((Key::named(who)?, Kind::P2wpkh), data).await,
            Self::Solana(site) => {
                let step: StepData = serde_json::from_value(data.clone())?;
                let tables = step.address_lookup_table_addresses.iter();
                let tables = tables.map(|table| site.cluster.table(&table.parse()?));
                let tables = tables.collect::<Result<Vec<_>>>()?;
                let all = step.instructions.into_iter().map(StepInstruction::read);
                let all = all.collect::<Result<Vec<_>>>()?;
                let sent = site
                    .cluster
                    .execute_with(&all, &[&keypair(who)?], &tables)?;
                Ok(sent.to_string())
            }
        }
    }

    /// What a driver of the published clients' adapters has to know of the wallet of `who`.
    pub fn wallet(&self, who: &str) -> Result<Value> {
        let (family, rpc, secret) = match self {
            Self::Bitcoin(site) => {
                let secret = Key::named(who)?.secret();
                ("bvm", btc::with_credentials(&site.node.url), secret)
            }
            Self::Solana(site) => ("svm", site.front.url.to_string(), solana::seed(who)),
        };
        Ok(json!({
            "id": self.number(), "name": self.names().0, "vmType": family, "rpc": rpc,
            "address": self.account(who)?, "secret": secret,
        }))
    }

    /// What a transaction paid to an account, in the smallest unit.
    pub async fn paid(&self, transaction: &str, account: &str) -> Result<u64> {
        match self {
            Self::Bitcoin(site) => {
                let (paid, script) = (transaction.parse()?, btc::script(account)?);
                let paid = site.node.transaction(paid).await?;
                let outputs = paid.output.iter();
                let own = outputs.filter(|output| output.script_pubkey == script);
                Ok(own.map(|output| output.value.to_sat()).sum())
            }
            Self::Solana(site) => {
                let (signature, account) = (transaction.parse()?, account.parse()?);
                let gained = site.cluster.gained(&signature, &account);
                gained.context("it paid that account nothing")
            }
        }
    }
}

/// What a step on Solana says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StepData {
    instructions: Vec<StepInstruction>,
    address_lookup_table_addresses: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StepInstruction {
    keys: Vec<StepKey>,
    program_id: String,
    /// Hex without a prefix.
    data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StepKey {
    pubkey: String,
    is_signer: bool,
    is_writable: bool,
}

impl StepInstruction {
    fn read(self) -> Result<Instruction> {
        let keys = self.keys.into_iter().map(|key| {
            Ok(AccountMeta {
                pubkey: key.pubkey.parse::<Pubkey>()?,
                is_signer: key.is_signer,
                is_writable: key.is_writable,
            })
        });
        Ok(Instruction {
            program_id: self.program_id.parse()?,
            accounts: keys.collect::<Result<_>>()?,
            data: alloy::hex::decode(self.data)?,
        })
    }
}
