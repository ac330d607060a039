//! Chains of other families: deposits there for orders that are filled here, and fills there of orders that were paid
//! for here.

use alloy::primitives::{Address, B256, U256};
use anyhow::{Context, Result};
use serde_json::Value;
use solana_signer::Signer as _;
use vm::{
    ChainId, Family,
    protocol::{
        hub,
        order::{InputPayment, Output, OutputPayment, Refund},
    },
};

use super::{Devnet, Files, Money, SignedOrder, Terms};
use crate::{
    bitcoin::{self, Key, Kind, Spend},
    solana::{self, Paid, keypair, program::SYSTEM, token::memo},
};

/// Confirmations that are asked of Bitcoin.
const CONFIRMATIONS: u64 = 2;

/// A chain of another family, with a user and a solver on it.
#[derive(Debug)]
pub enum Abroad {
    Bitcoin(Box<bitcoin::LocalChain>),
    Solana(Box<solana::LocalChain>),
}

/// A transaction on such a chain, as claims name it.
#[derive(Clone, Debug)]
pub struct Arrived {
    pub transaction: String,
    pub onchain_id: B256,
    /// The hub account that holds the deposit for its order.
    pub account: Address,
}

impl Abroad {
    pub async fn bitcoin() -> Result<Self> {
        Ok(Self::Bitcoin(Box::new(bitcoin::LocalChain::start().await?)))
    }

    pub async fn solana() -> Result<Self> {
        let lag = solana::Lag {
            confirmed: 1,
            finalized: 2,
        };
        let site = solana::LocalChain::start(lag).await?;
        for name in ["user", "solver"] {
            site.cluster.fund(&keypair(name)?.pubkey())?;
        }
        Ok(Self::Solana(Box::new(site)))
    }

    /// Its name in orders and in the chains file.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Bitcoin(_) => bitcoin::ID,
            Self::Solana(_) => solana::ID,
        }
    }

    /// What people call it, its currency, and the decimals of that.
    pub fn names(&self) -> (&'static str, &'static str, u8) {
        match self {
            Self::Bitcoin(_) => ("Bitcoin", "BTC", 8),
            Self::Solana(_) => ("Solana", "SOL", 9),
        }
    }

    /// Where its node is.
    pub fn url(&self) -> &url::Url {
        match self {
            Self::Bitcoin(site) => &site.node.url,
            Self::Solana(site) => &site.front.url,
        }
    }

    /// Adds it to what a daemon is told.
    pub fn tell(&self, files: &mut Files) -> Result<()> {
        match self {
            Self::Bitcoin(site) => site.tell(files, CONFIRMATIONS)?,
            Self::Solana(site) => site.tell(files),
        }
        Ok(())
    }

    fn entry(&self) -> Result<Value> {
        match self {
            Self::Bitcoin(site) => site.entry(CONFIRMATIONS),
            Self::Solana(site) => Ok(site.entry()),
        }
    }

    /// Its family, on its network.
    fn family(&self) -> Result<&'static Family> {
        let entry = self.entry()?;
        let name = entry["vmType"].as_str().context("no family")?;
        let family = vm::family(name).context("an unknown family")?;
        let settings = entry["additionalData"].as_object().cloned();
        Ok(match family.entry {
            Some(rules) => (rules.network)(&settings.unwrap_or_default())?,
            None => family,
        })
    }

    /// The account of somebody with this name.
    pub fn account(&self, name: &str) -> Result<String> {
        match self {
            Self::Bitcoin(_) => bitcoin::address(&Key::named(name)?.script(Kind::P2wpkh)),
            Self::Solana(_) => Ok(keypair(name)?.pubkey().to_string()),
        }
    }

    /// The user deposits for an order; it is final when this returns.
    pub async fn deposit(&self, amount: u64, order: B256) -> Result<Arrived> {
        let (transaction, onchain_id, time) = match self {
            Self::Bitcoin(site) => {
                let outputs = site.deposit(sats(amount), &order.to_string())?;
                let transaction = spend(site, "user", amount, outputs).await?;
                let block = site.node.included(transaction).await?;
                let block = site.node.block(block.context("in no block")?).await?;
                // The order's id stands behind the money.
                let onchain_id = bitcoin::LocalChain::onchain_id(transaction, 1);
                (transaction.to_string(), onchain_id, block.time)
            }
            Self::Solana(site) => {
                let user = keypair("user")?;
                let paid = Paid {
                    sender: user.pubkey(),
                    depositor: user.pubkey(),
                    amount,
                    id: order.0,
                };
                let deposit = site.cluster.depository.deposit_native(&paid);
                let transaction = site.cluster.execute(&[deposit], &[&user])?;
                let (_, time) = site.cluster.placed(&transaction).context("in no block")?;
                site.cluster.advance(2);
                let onchain_id = solana::LocalChain::onchain_id(&transaction, 0);
                let time = u64::try_from(time.context("no time")?)?;
                (transaction.to_string(), onchain_id, time)
            }
        };
        let account = hub::OrderAccount {
            chain: &ChainId::new(self.id()),
            depositor: &self.family()?.account(&self.account("user")?)?,
            timestamp: U256::from(time),
            deposit: order,
        };
        Ok(Arrived {
            account: account.address(),
            transaction,
            onchain_id,
        })
    }

    /// The solver pays the user for an order; it is final when this returns. The transaction.
    pub async fn pay(&self, amount: u64, order: B256) -> Result<String> {
        match self {
            Self::Bitcoin(site) => {
                let to = Key::named("user")?.output(Kind::P2wpkh, sats(amount));
                let outputs = vec![to, bitcoin::note(&order.to_string())?];
                let transaction = spend(site, "solver", amount, outputs).await?;
                Ok(transaction.to_string())
            }
            Self::Solana(site) => {
                let (solver, user) = (keypair("solver")?, keypair("user")?.pubkey());
                let transfer = solana_system_interface::instruction::transfer;
                let instructions = [
                    transfer(&solver.pubkey(), &user, amount),
                    memo(&solver.pubkey(), &order.to_string()),
                ];
                let transaction = site.cluster.execute(&instructions, &[&solver])?;
                site.cluster.advance(2);
                Ok(transaction.to_string())
            }
        }
    }

    /// What the depository holds of the chain's currency.
    pub async fn held(&self) -> Result<U256> {
        match self {
            Self::Bitcoin(site) => {
                let held = site.node.holds(site.script()).await?;
                Ok(U256::from(held.to_sat()))
            }
            Self::Solana(site) => Ok(U256::from(site.deposited())),
        }
    }

    /// What the hub calls the chain's currency.
    pub fn token_id(&self) -> Result<U256> {
        let native = self.family()?.native()?;
        Ok(hub::token_id(&ChainId::new(self.id()), &native))
    }

    fn currency(&self) -> Result<String> {
        match self {
            Self::Bitcoin(_) => Ok(self.family()?.native()?.text().to_owned()),
            Self::Solana(_) => Ok(SYSTEM.to_string()),
        }
    }
}

/// Sends `outputs` from a coin of somebody's and makes it final.
async fn spend(
    site: &bitcoin::LocalChain,
    who: &str,
    amount: u64,
    outputs: Vec<::bitcoin::TxOut>,
) -> Result<::bitcoin::Txid> {
    let enough = sats(amount) + bitcoin::FEE * 2;
    let coin = site
        .node
        .fund(Key::named(who)?, Kind::P2wpkh, enough)
        .await?;
    let transaction = Spend::of(vec![coin], outputs).sign()?;
    let id = site.node.confirm(&transaction).await?;
    site.node.mine(CONFIRMATIONS - 1).await?;
    Ok(id)
}

fn sats(amount: u64) -> ::bitcoin::Amount {
    ::bitcoin::Amount::from_sat(amount)
}

impl Devnet {
    /// An order that is paid for abroad and filled at the destination.
    pub async fn order_from(
        &self,
        site: &Abroad,
        amount: u64,
        output: Money,
    ) -> Result<SignedOrder> {
        let mut order = self.order(&self.terms(output, output)).await?.order;
        let currency = site.currency()?;
        let input = &mut order.inputs[0];
        input.payment = InputPayment {
            chain_id: site.id().to_owned(),
            currency: currency.clone(),
            amount: amount.to_string(),
            weight: "1".to_owned(),
        };
        input.refunds = vec![Refund {
            chain_id: site.id().to_owned(),
            recipient: site.account("user")?,
            currency,
            minimum_amount: amount.to_string(),
            deadline: order.output.deadline,
            extra_data: "0x".to_owned(),
        }];
        self.sign_with(order, site)
    }

    /// An order that is paid for at the origin and filled abroad.
    pub async fn order_to(&self, site: &Abroad, input: Money, amount: u64) -> Result<SignedOrder> {
        let mut order = self.order(&self.terms(input, input)).await?.order;
        order.output = Output {
            chain_id: site.id().to_owned(),
            payments: vec![OutputPayment {
                recipient: site.account("user")?,
                currency: site.currency()?,
                minimum_amount: amount.to_string(),
                expected_amount: amount.to_string(),
            }],
            calls: Vec::new(),
            deadline: order.output.deadline,
            extra_data: "0x".to_owned(),
        };
        self.sign_with(order, site)
    }

    fn terms(&self, input: Money, output: Money) -> Terms {
        Terms {
            input,
            output,
            recipient: self.user.address(),
            calls: Vec::new(),
            fee: U256::ZERO,
            deadline: None,
            salt: 1,
        }
    }

    fn sign_with(&self, order: super::order::Order, site: &Abroad) -> Result<SignedOrder> {
        let family = site.family()?;
        self.sign_in(order, |chain| {
            let own = self.site(chain).map(|_| super::order::FAMILY);
            own.or_else(|| (chain == site.id()).then_some(family))
        })
    }
}
