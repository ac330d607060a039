//! Chains of other families: deposits there for orders that are filled here, and fills there of orders that were paid
//! for here.

use alloy::primitives::{Address, B256, U256};
use anyhow::{Context, Result, bail};
use solana_signer::Signer as _;
use vm::protocol::order::{InputPayment, Output, OutputPayment, Refund};

use super::{Devnet, Files, Identity, Money, SignedOrder, Terms, WithdrawalForm};
use crate::{
    bitcoin::{self, AllocatorTx, Key, Kind, Spend},
    solana::{self, Paid, Request, keypair, token::memo},
};

/// Confirmations that are asked of Bitcoin.
const CONFIRMATIONS: u64 = 2;
/// Seconds that the depository may take for a withdrawal.
const PATIENCE: i64 = 3_600;

/// A chain of another family, with a user and a solver on it.
#[derive(Debug)]
pub enum Abroad {
    Bitcoin(Box<bitcoin::LocalChain>),
    Solana(Box<solana::LocalChain>),
}

/// A withdrawal that the depository of such a chain can pay.
#[derive(Clone, Debug)]
pub enum Payable {
    Bitcoin(AllocatorTx),
    Solana(Request),
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
        // An index begins so many blocks below the newest one.
        let mut site = solana::LocalChain::aged(lag, 256).await?;
        for name in ["user", "solver"] {
            site.cluster.fund(&keypair(name)?.pubkey())?;
        }
        site.list()?;
        // Whoever starts with the chain asks for what is final.
        site.cluster.advance(2);
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

    /// How the protocol names it.
    pub fn identity(&self) -> Result<Identity> {
        match self {
            Self::Bitcoin(site) => site.identity(),
            Self::Solana(site) => site.identity(),
        }
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
        let user = self.account("user")?;
        Ok(Arrived {
            account: self.identity()?.order_account(&user, time, order)?,
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

    /// What the depository is to pay to the account of `who`: the allocator takes all that the depository holds, and gives
    /// the rest back.
    pub async fn payable(&self, amount: u64, who: &str) -> Result<Payable> {
        match self {
            Self::Bitcoin(site) => {
                let coins = site.node.unspent(site.depository, site.kind).await?;
                let recipient = Key::named(who)?.script(Kind::P2wpkh);
                let tx = AllocatorTx::pays(coins, recipient, sats(amount))?;
                Ok(Payable::Bitcoin(tx))
            }
            Self::Solana(site) => Ok(Payable::Solana(Request {
                domain: [1; 32],
                recipient: keypair(who)?.pubkey(),
                token: None,
                amount,
                nonce: 1,
                expiration: site.cluster.time() + PATIENCE,
            })),
        }
    }

    /// The same in the form of the chain's family.
    pub fn form(&self, payable: &Payable) -> Result<WithdrawalForm> {
        match (self, payable) {
            (Self::Bitcoin(_), Payable::Bitcoin(tx)) => tx.form(&self.identity()?),
            (Self::Solana(site), Payable::Solana(request)) => {
                Ok(request.form(&site.cluster.depository))
            }
            _ => bail!("a withdrawal of another chain"),
        }
    }

    /// The allocator signs, and the depository pays; it is final when this returns. The transaction.
    pub async fn execute(&self, payable: &Payable) -> Result<String> {
        match (self, payable) {
            (Self::Bitcoin(site), Payable::Bitcoin(tx)) => {
                let id = site.node.confirm(&tx.transaction()?).await?;
                site.node.mine(CONFIRMATIONS - 1).await?;
                Ok(id.to_string())
            }
            (Self::Solana(site), Payable::Solana(request)) => {
                let transaction = site.execute(request)?;
                site.cluster.advance(2);
                Ok(transaction.to_string())
            }
            _ => bail!("a withdrawal of another chain"),
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
        let chain = self.identity()?;
        chain.token_id(&chain.native)
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
    /// An order of `user`'s, who pays for it on `chain`, that is filled at the destination.
    pub async fn order_from(
        &self,
        chain: &Identity,
        user: &str,
        amount: u64,
        output: Money,
    ) -> Result<SignedOrder> {
        let mut order = self.order(&self.terms(output, output)).await?.order;
        let input = &mut order.inputs[0];
        input.payment = InputPayment {
            chain_id: chain.id.clone(),
            currency: chain.native.clone(),
            amount: amount.to_string(),
            weight: "1".to_owned(),
        };
        input.refunds = vec![Refund {
            chain_id: chain.id.clone(),
            recipient: user.to_owned(),
            currency: chain.native.clone(),
            minimum_amount: amount.to_string(),
            deadline: order.output.deadline,
            extra_data: "0x".to_owned(),
        }];
        self.sign_with(order, chain)
    }

    /// An order that is paid for at the origin, of which `user` is paid on `chain`.
    pub async fn order_to(
        &self,
        chain: &Identity,
        user: &str,
        input: Money,
        amount: u64,
    ) -> Result<SignedOrder> {
        let mut order = self.order(&self.terms(input, input)).await?.order;
        order.output = Output {
            chain_id: chain.id.clone(),
            payments: vec![OutputPayment {
                recipient: user.to_owned(),
                currency: chain.native.clone(),
                minimum_amount: amount.to_string(),
                expected_amount: amount.to_string(),
            }],
            calls: Vec::new(),
            deadline: order.output.deadline,
            extra_data: "0x".to_owned(),
        };
        self.sign_with(order, chain)
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

    fn sign_with(&self, order: super::order::Order, abroad: &Identity) -> Result<SignedOrder> {
        self.sign_in(order, |chain| {
            let own = self.site(chain).map(|_| super::order::FAMILY);
            own.or_else(|| (chain == abroad.id).then_some(abroad.family))
        })
    }
}
