//! The story's acts between families: a deposit abroad that is filled here, what the solver earned by that paid out there,
//! and a deposit here that is filled abroad.

use std::sync::Arc;

use alloy::{
    primitives::{Address, U256, utils::format_units},
    rpc::types::TransactionReceipt,
};
use anyhow::{Result, ensure};
use devnet::{
    claim,
    contracts::Hub,
    tools,
    world::{Abroad, Devnet, Money, Payout},
};

use super::{
    page::Page,
    story::{ETH, Story, USD},
};

/// What is deposited and paid abroad, in the smallest unit of Bitcoin and of Solana.
const AMOUNT: u64 = 2_000_000;
/// What is deposited here for an order that is filled abroad.
pub const DEPOSITED: u64 = ETH / 20;

/// Bitcoin, where there is a bitcoind, and Solana.
pub async fn start(page: &Page) -> Result<Vec<Arc<Abroad>>> {
    page.line("starting Bitcoin and Solana ...")?;
    let bitcoin = bitcoin(tools::has_bitcoind()?, |line| page.line(line)).await?;
    let solana = Abroad::solana().await?;
    Ok(bitcoin.into_iter().chain([solana]).map(Arc::new).collect())
}

/// Bitcoin, where there is a bitcoind. Says what is missing, and why: nobody waits for a build here.
async fn bitcoin(
    has_bitcoind: bool,
    mut say: impl FnMut(&str) -> Result<()>,
) -> Result<Option<Abroad>> {
    if has_bitcoind {
        return Ok(Some(Abroad::bitcoin().await?));
    }
    say("no bitcoind on PATH, and none was built yet (the tests build one, in 3 to 8 minutes):")?;
    say("the story goes on without Bitcoin")?;
    Ok(None)
}

impl Story<'_> {
    /// Both ways with every chain abroad.
    pub async fn abroad(&mut self) -> Result<()> {
        let sites = self.abroad;
        for site in sites {
            let earned = self.coming(site).await?;
            self.paid_out(site, &earned).await?;
            self.going(site).await?;
        }
        Ok(())
    }

    /// The user deposits abroad, and the solver pays at the destination. The settlement by which the solver earns.
    async fn coming(&mut self, site: &Abroad) -> Result<TransactionReceipt> {
        let (name, ..) = site.names();
        let title = format!("By hand: a deposit on {name}, filled on an EVM chain");
        self.act(&title)?;
        let Devnet {
            destination,
            user,
            solver,
            ..
        } = self.world;
        let paid = Money {
            currency: destination.token,
            amount: U256::from(5 * USD),
        };
        let (chain, owner) = (site.identity()?, site.account("user")?);
        let order = self.world.order_from(&chain, &owner, AMOUNT, paid).await?;
        self.page.fact("order", order.id)?;
        let deposit = site.deposit(AMOUNT, order.id).await?;
        let what = format!("user deposits {}", shown(site, U256::from(AMOUNT)));
        self.page.fact(&what, &deposit.transaction)?;
        let body = claim::deposit_of(site.id(), &deposit.transaction);
        let answer = self
            .ask_everybody("depository-deposits/v1", &claim::with_peers(body))
            .await?;
        self.settle(&answer).await?;
        let payment = destination.pay_erc20(solver, paid, user.address(), order.id);
        let receipt = payment.await?;
        self.sent("solver pays 5 USD", &receipt)?;
        let transaction = receipt.transaction_hash.to_string();
        let named = (deposit.transaction.as_str(), deposit.onchain_id);
        let body = claim::with_peers(claim::fill_of(&order, named, &transaction));
        let place = (&destination.node, &receipt);
        let answer = self.attest("solver-fills/v1", &body, place).await?;
        let settled = self.settle(&answer).await?;
        let token = site.token_id()?;
        let left = self.world.hub.balance(deposit.account, token).await?;
        ensure!(left.is_zero(), "the order's account still holds {left}");
        let earned = destination.alias(solver.address())?;
        let earned = self.world.hub.balance(earned, token).await?;
        self.page.fact("hub, solver", shown(site, earned))?;
        Ok(settled)
    }

    /// The solver wants a half of what it `earned` abroad.
    async fn paid_out(&mut self, site: &Abroad, earned: &TransactionReceipt) -> Result<()> {
        let (name, ..) = site.names();
        let number = self.act(&format!("By hand: a withdrawal on {name}"))?;
        let (world, hub) = (self.world, &self.world.hub.node);
        let payable = site.payable(AMOUNT / 2, "solver").await?;
        let form = site.form(&payable)?;
        let chain = site.identity()?;
        let payout = Payout {
            currency: chain.native.clone(),
            chain,
            amount: U256::from(AMOUNT / 2),
            owner: &world.solver,
            owner_chain: world.destination.id,
            recipient: site.account("solver")?,
            nonce: U256::from(number),
        };
        self.page.fact("solver wants", shown(site, payout.amount))?;
        let body = claim::with_peers(payout.initiation()?);
        let route = "withdrawal-initiation/v1";
        let answer = self.attest(route, &body, (hub, earned)).await?;
        self.settle(&answer).await?;
        let recorded = world.allocate_to(&payout, &form).await?;
        self.sent("allocator records it", &recorded)?;
        let transaction = site.execute(&payable).await?;
        self.page.fact("depository pays", &transaction)?;
        self.wait(hub, &recorded).await?;
        let body = claim::with_peers(payout.status(&form, Some(&transaction)));
        let answer = self
            .ask_everybody("depository-withdrawals/v1", &body)
            .await?;
        self.settle(&answer).await?;
        let left = world.hub.balance(payout.account()?, payout.token_id()?);
        ensure!(
            left.await?.is_zero(),
            "the withdrawal's account is not empty"
        );
        Ok(())
    }

    /// The user deposits at the origin, and the solver pays abroad.
    async fn going(&mut self, site: &Abroad) -> Result<()> {
        let (name, ..) = site.names();
        let title = format!("By hand: a deposit on an EVM chain, filled on {name}");
        self.act(&title)?;
        let Devnet { origin, user, .. } = self.world;
        let input = Money {
            currency: Address::ZERO,
            amount: U256::from(DEPOSITED),
        };
        let (chain, owner) = (site.identity()?, site.account("user")?);
        let order = self.world.order_to(&chain, &owner, input, AMOUNT).await?;
        self.page.fact("order", order.id)?;
        let receipt = origin.deposit_native(user, input.amount, order.id).await?;
        self.sent("user deposits 0.05 ETH", &receipt)?;
        let deposit = origin.deposited(&receipt).await?;
        let body = claim::with_peers(claim::deposit(origin, deposit.transaction));
        let place = (&origin.node, &receipt);
        let answer = self.attest("depository-deposits/v1", &body, place).await?;
        self.settle(&answer).await?;
        let transaction = site.pay(AMOUNT, order.id).await?;
        let what = format!("solver pays {}", shown(site, U256::from(AMOUNT)));
        self.page.fact(&what, &transaction)?;
        let named = deposit.transaction.to_string();
        let named = (named.as_str(), deposit.onchain_id);
        let body = claim::with_peers(claim::fill_of(&order, named, &transaction));
        let answer = self.ask_everybody("solver-fills/v1", &body).await?;
        self.settle(&answer).await?;
        Ok(())
    }

    /// What the depositories abroad hold is what the hub owes, to the last unit.
    pub async fn invariant_abroad(&self) -> Result<()> {
        let hub = &self.world.hub;
        for site in self.abroad {
            let (held, id) = (site.held().await?, site.token_id()?);
            let owed = hub.node.view(hub.hub, &Hub::totalSupplyCall { id }).await?;
            ensure!(
                owed == held,
                "the hub owes {owed}, the depository holds {held}"
            );
            let both = format!("{} = {}", shown(site, held), shown(site, owed));
            self.page.fact("depository = hub", both)?;
        }
        Ok(())
    }
}

pub fn shown(site: &Abroad, amount: U256) -> String {
    let (_, symbol, decimals) = site.names();
    let text = format_units(amount, decimals).unwrap_or_default();
    format!(
        "{} {symbol}",
        text.trim_end_matches('0').trim_end_matches('.')
    )
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[tokio::test]
    async fn where_there_is_no_bitcoind_that_is_said_and_nothing_is_started() {
        let mut told = Vec::new();
        let say = |line: &str| {
            told.push(line.to_owned());
            Ok(())
        };
        assert!(bitcoin(false, say).await.unwrap().is_none());
        assert!(told[0].starts_with("no bitcoind on PATH, and none was built yet"));
        assert_eq!(told[1..], ["the story goes on without Bitcoin"]);
        // Nobody reads it.
        assert!(bitcoin(false, |_| bail!("closed")).await.is_err());
    }
}
