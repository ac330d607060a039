//! The story itself: requests that the daemon serves, then by hand what they are made of: a deposit, a fill, a refund
//! and a withdrawal, and deposits and fills of other families, each read by three oracles, signed, and settled at the
//! hub with two signatures. Nothing here states a balance that was not read back from a chain.

use std::sync::Arc;

use alloy::{
    primitives::{Address, B256, U256},
    rpc::types::TransactionReceipt,
    sol_types::SolCall,
};
use anyhow::{Context, Result, ensure};
use devnet::{
    claim,
    contracts::{FillRouter, Hub, Token},
    world::{Abroad, Deposit, Devnet, Money, SignedOrder, Terms, Withdrawal},
};
use serde_json::Value;
use vm::OrderCall;

use super::{
    oracles::Oracles,
    page::{Ledger, Page, Unit},
};

/// 10^18 and 10^6: one of either currency.
pub const ETH: u64 = 1_000_000_000_000_000_000;
pub const USD: u64 = 1_000_000;

/// Everything a step needs.
pub struct Story<'a> {
    pub world: &'a Devnet,
    /// Chains of other families.
    pub abroad: &'a [Arc<Abroad>],
    pub oracles: &'a Oracles,
    pub page: &'a Page,
    pub ledger: Ledger<'a>,
    /// How many acts there were.
    pub acts: usize,
}

/// What the visitor may ask again.
pub struct Recap {
    /// The ids of the requests: filled, filled, refunded, then those between families.
    pub requests: Vec<String>,
    pub deposit: Value,
    pub fill: Value,
    pub refund: Value,
    pub withdrawal: Value,
}

impl Story<'_> {
    pub async fn tell(&mut self) -> Result<Recap> {
        let mut requests = self.lives().await?;
        requests.extend(self.across().await?);
        let (swap, deposit, deposit_body) = self.deposit().await?;
        let fill = self.fill(&swap, &deposit).await?;
        let (refund, earned) = self.refund().await?;
        let withdrawal = self.withdrawal(&earned).await?;
        self.abroad().await?;
        self.page.heading("In the end")?;
        self.invariant_abroad().await?;
        self.invariant().await?;
        Ok(Recap {
            requests,
            deposit: deposit_body,
            fill,
            refund,
            withdrawal,
        })
    }

    async fn deposit(&mut self) -> Result<(SignedOrder, Deposit, Value)> {
        let Devnet { origin, user, .. } = self.world;
        self.act("By hand: a deposit")?;
        let swap = self.swap().await?;
        self.ledger
            .watch_hub("app's fee account", origin.alias(user.address())?)
            .await?;
        let receipt = origin
            .deposit_native(user, U256::from(ETH), swap.id)
            .await?;
        self.sent("user deposits 1 ETH", &receipt)?;
        let deposit = origin.deposited(&receipt).await?;
        self.page.fact("order", swap.id)?;
        self.page.fact("order's hub account", deposit.account)?;
        self.ledger
            .watch_hub("order's account", deposit.account)
            .await?;
        let body = claim::with_peers(claim::deposit(origin, deposit.transaction));
        let answer = self
            .attest("depository-deposits/v1", &body, (&origin.node, &receipt))
            .await?;
        self.rejections(&answer).await?;
        self.settle(&answer).await?;
        Ok((swap, deposit, body))
    }

    async fn fill(&mut self, swap: &SignedOrder, deposit: &Deposit) -> Result<Value> {
        let Devnet {
            destination,
            solver,
            ..
        } = self.world;
        self.act("By hand: a fill")?;
        let amount = U256::from(2_500 * USD);
        destination
            .approve(solver, destination.token, destination.router, amount)
            .await?;
        let pay = Token::transferFromCall {
            from: solver.address(),
            to: self.world.user.address(),
            amount,
        };
        let calls = [pay.abi_encode(), self.bonus().abi_encode()].map(|data| FillRouter::Call {
            to: destination.token,
            data: data.into(),
            value: U256::ZERO,
        });
        let receipt = destination.fill(solver, calls.into(), swap.id).await?;
        self.sent("solver pays 2500 USD", &receipt)?;
        let body = claim::fill(
            swap,
            std::slice::from_ref(deposit),
            receipt.transaction_hash,
        );
        let body = claim::with_peers(body);
        let answer = self
            .attest("solver-fills/v1", &body, (&destination.node, &receipt))
            .await?;
        self.settle(&answer).await?;
        Ok(body)
    }

    /// The body, and the settlement that the solver's balance is final with.
    async fn refund(&mut self) -> Result<(Value, TransactionReceipt)> {
        let Devnet {
            origin,
            user,
            solver,
            ..
        } = self.world;
        self.act("By hand: a refund")?;
        let money = Money {
            currency: origin.token,
            amount: U256::from(400 * USD),
        };
        let order = self
            .world
            .order(&terms(money, self.usd(400), user.address()))
            .await?;
        let receipt = origin
            .deposit_erc20(user, origin.token, money.amount, order.id)
            .await?;
        self.sent("user deposits 400 USD", &receipt)?;
        let deposit = origin.deposited(&receipt).await?;
        self.page.fact("order", order.id)?;
        self.page.fact("order's hub account", deposit.account)?;
        self.ledger
            .watch_hub("refunded order's account", deposit.account)
            .await?;
        let body = claim::with_peers(claim::deposit(origin, deposit.transaction));
        let answer = self
            .attest("depository-deposits/v1", &body, (&origin.node, &receipt))
            .await?;
        self.settle(&answer).await?;
        let back = Money {
            currency: origin.token,
            amount: money.amount,
        };
        let receipt = origin
            .pay_erc20(solver, back, user.address(), order.id)
            .await?;
        self.sent("solver pays it back", &receipt)?;
        let body = claim::refund(&order, &[deposit], &[receipt.transaction_hash]);
        let body = claim::with_peers(body);
        let answer = self
            .attest("solver-refunds/v1", &body, (&origin.node, &receipt))
            .await?;
        let earned = self.settle(&answer).await?;
        Ok((body, earned))
    }

    async fn withdrawal(&mut self, earned: &TransactionReceipt) -> Result<Value> {
        let Devnet { origin, solver, .. } = self.world;
        let hub = &self.world.hub.node;
        self.act("By hand: a withdrawal")?;
        let withdrawal = wish(self.world).await?;
        self.ledger
            .watch(origin, "withdrawal's recipient", withdrawal.recipient)
            .await?;
        self.ledger
            .watch_hub("withdrawal's account", withdrawal.account()?)
            .await?;
        self.page
            .fact("solver wants", Unit::Eth.show(withdrawal.money.amount))?;
        let body = claim::with_peers(withdrawal.initiation()?);
        let answer = self
            .attest("withdrawal-initiation/v1", &body, (hub, earned))
            .await?;
        let apart = self.settle(&answer).await?;
        let body = withdrawal.initiated();
        let answer = self
            .attest("withdrawal-initiated/v1", &body, (hub, &apart))
            .await?;
        let proof = &answer["message"]["result"]["proofOfWithdrawalAddressBalance"];
        self.page
            .fact("proof of the balance", proof.as_str().context("no proof")?)?;
        let recorded = self.world.allocate(&withdrawal).await?;
        self.sent("allocator records it", &recorded)?;
        let transaction = self.world.execute(&withdrawal, solver).await?;
        let receipt = origin
            .node
            .receipt(transaction)
            .await?
            .context("no receipt")?;
        self.sent("depository pays", &receipt)?;
        let body = claim::with_peers(withdrawal.status(Some(transaction)));
        self.wait(hub, &recorded).await?;
        let answer = self
            .attest("depository-withdrawals/v1", &body, (&origin.node, &receipt))
            .await?;
        self.settle(&answer).await?;
        Ok(body)
    }

    /// What the contracts hold is what the hub owes, to the last unit.
    async fn invariant(&self) -> Result<()> {
        let Devnet { origin, hub, .. } = self.world;
        let held = [
            (
                Address::ZERO,
                Unit::Eth,
                origin.node.balance(origin.depository).await?,
            ),
            (
                origin.token,
                Unit::Usd,
                origin
                    .token_balance(origin.token, origin.depository)
                    .await?,
            ),
        ];
        for (currency, unit, held) in held {
            let id = origin.token_id(currency)?;
            let owed = hub.node.view(hub.hub, &Hub::totalSupplyCall { id }).await?;
            ensure!(
                owed == held,
                "the hub owes {owed}, the depository holds {held}"
            );
            self.page.fact(
                "depository = hub",
                format!("{} = {}", unit.show(held), unit.show(owed)),
            )?;
        }
        Ok(())
    }

    async fn swap(&self) -> Result<SignedOrder> {
        let money = Money {
            currency: Address::ZERO,
            amount: U256::from(ETH),
        };
        let destination = &self.world.destination;
        let mut terms = terms(money, self.usd(2_500), self.world.user.address());
        terms.fee = U256::from(ETH / 100);
        terms.calls = vec![OrderCall {
            to: devnet::world::order::address(destination.token)?,
            data: self.bonus().abi_encode().into(),
            value: U256::ZERO,
        }];
        self.world.order(&terms).await
    }

    fn usd(&self, whole: u64) -> Money {
        Money {
            currency: self.world.destination.token,
            amount: U256::from(whole * USD),
        }
    }

    /// The call that the swap's order wants made besides the payment.
    fn bonus(&self) -> Token::mintCall {
        Token::mintCall {
            to: self.world.user.address(),
            amount: U256::from(USD),
        }
    }

    /// Begins the next act; its number.
    pub fn act(&mut self, title: &str) -> Result<usize> {
        self.acts += 1;
        self.page.heading(&format!("{}. {title}", self.acts))?;
        Ok(self.acts)
    }

    /// Shows a transaction that must have succeeded.
    pub fn sent(&self, what: &str, receipt: &TransactionReceipt) -> Result<()> {
        ensure!(receipt.status(), "{what}: the transaction failed");
        self.page.fact(what, receipt.transaction_hash)
    }
}

fn terms(input: Money, output: Money, recipient: Address) -> Terms {
    Terms {
        input,
        output,
        recipient,
        calls: Vec::new(),
        fee: U256::ZERO,
        deadline: None,
        salt: 1,
    }
}

/// The solver wants 0.6 of what it has earned.
async fn wish(world: &Devnet) -> Result<Withdrawal<'_>> {
    let site = &world.origin;
    Ok(Withdrawal {
        site,
        money: Money {
            currency: Address::ZERO,
            amount: U256::from(6 * (ETH / 10)),
        },
        owner: &world.solver,
        owner_chain: world.destination.id,
        recipient: Address::repeat_byte(0x5e),
        nonce: U256::from(1),
        expiration: U256::from(site.node.tip().await?.time + 3_600),
    })
}

/// The id of a deposit that belongs to no order.
pub const NO_ORDER: B256 = B256::ZERO;
