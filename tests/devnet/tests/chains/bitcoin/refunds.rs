//! The solver pays a deposit back out of its own wallet, which nothing on the chain says is the solver's: its word does.

use alloy::primitives::{Address, B256, U256};
use bitcoin::{Amount, TxOut};
use devnet::{
    bitcoin::{Coin, FEE, Key, Kind, LocalChain, Spend, address, note, pay},
    world::Money,
};

use super::{COIN, DEPOSIT, Fixture};
use crate::claims::Refunding;

impl Fixture {
    /// A final deposit for an order of the user's.
    async fn to_refund(&self) -> Refunding<'_> {
        let chain = self.site.identity().unwrap();
        let user = address(&self.user.script(Kind::P2wpkh)).unwrap();
        let output = Money {
            currency: Address::ZERO,
            amount: U256::from(900),
        };
        let amount = DEPOSIT.to_sat();
        let order = self.world.order_from(&chain, &user, amount, output);
        let order = order.await.unwrap();
        let outputs = self.site.deposit(DEPOSIT, &order.id.to_string()).unwrap();
        let spend = Spend::of(vec![self.coin(Kind::P2wpkh).await], outputs);
        let deposit = self.send(&spend.sign().unwrap()).await;
        self.mine(2).await;
        let node = &self.site.node;
        let block = node.included(deposit).await.unwrap().unwrap();
        let time = node.block(block).await.unwrap().time;
        Refunding {
            daemon: &self.daemon,
            world: &self.world,
            account: chain.order_account(&user, time, order.id).unwrap(),
            token: chain.token_id(&chain.native).unwrap(),
            amount: U256::from(amount),
            deposit: (deposit.to_string(), LocalChain::onchain_id(deposit, 1)),
            order,
        }
    }

    /// What the solver has for one payment.
    async fn own(&self) -> Coin {
        let solver = Key::named("solver").unwrap();
        self.site
            .node
            .fund(solver, Kind::P2wpkh, COIN)
            .await
            .unwrap()
    }

    /// Sends `outputs` out of `coin`; the transaction's id.
    async fn pay(&self, coin: Coin, outputs: Vec<TxOut>) -> String {
        let transaction = Spend::of(vec![coin], outputs).sign().unwrap();
        self.send(&transaction).await.to_string()
    }

    /// `amount` back to the user, for an order.
    fn back(&self, amount: Amount, order: B256) -> Vec<TxOut> {
        let note = note(&order.to_string()).unwrap();
        vec![self.user.output(Kind::P2wpkh, amount), note]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_out_of_the_solvers_wallet_is_attested_once_it_is_confirmed() {
    let fixture = Fixture::start(2).await;
    let refunding = fixture.to_refund().await;
    let back = fixture.back(DEPOSIT, refunding.order.id);
    let paid = fixture.pay(fixture.own().await, back).await;
    let missing = "TRANSACTION_MISSING";
    refunding.is_refused(&paid, missing).await;
    fixture.mine(1).await;
    let early = "TRANSACTION_NOT_FINALIZED";
    refunding.is_refused(&paid, early).await;
    // A reorg takes it back, and it waits once more.
    fixture.site.node.reorg(1).await.unwrap();
    refunding.is_refused(&paid, missing).await;
    fixture.mine(2).await;
    refunding.needs_the_solvers_word(&paid).await;
    refunding.is_refunded(&paid).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_give_the_deposit_back_is_no_refund() {
    let fixture = Fixture::start(2).await;
    let refunding = fixture.to_refund().await;
    let order = refunding.order.id;
    let back = |amount| fixture.back(amount, order);
    let short = back(DEPOSIT - Amount::ONE_SAT);
    let short = fixture.pay(fixture.own().await, short).await;
    let other = Key::named("other").unwrap().script(Kind::P2wpkh);
    let other = vec![pay(other, DEPOSIT), back(DEPOSIT).remove(1)];
    let other = fixture.pay(fixture.own().await, other).await;
    let unnamed = vec![fixture.user.output(Kind::P2wpkh, DEPOSIT)];
    let unnamed = fixture.pay(fixture.own().await, unnamed).await;
    let foreign = fixture.back(DEPOSIT, B256::repeat_byte(7));
    let foreign = fixture.pay(fixture.own().await, foreign).await;
    // The user's own change, and the depository's money.
    let own = fixture.coin(Kind::P2wpkh).await;
    let own = fixture.pay(own, back(DEPOSIT)).await;
    let site = &fixture.site;
    let deposited = site.node.fund(site.depository, Kind::P2wpkh, COIN);
    let deposited = fixture.pay(deposited.await.unwrap(), back(DEPOSIT)).await;
    // Given back, and taken away again before a block has it.
    let coin = fixture.own().await;
    let replaced = fixture.pay(coin.clone(), back(DEPOSIT)).await;
    let solver = Key::named("solver").unwrap();
    let away = Spend {
        fee: FEE * 3,
        ..Spend::of(vec![coin], vec![solver.output(Kind::P2tr, DEPOSIT)])
    };
    fixture.send(&away.sign().unwrap()).await;
    fixture.mine(2).await;
    let insufficient = "REFUND_INSUFFICIENT";
    let unreferenced = "ORDER_NOT_REFERENCED";
    for (payment, code) in [
        (short, insufficient),
        (other, insufficient),
        (unnamed, unreferenced),
        (foreign, unreferenced),
        (own, insufficient),
        (deposited, insufficient),
        (replaced, "TRANSACTION_MISSING"),
    ] {
        refunding.is_refused(&payment, code).await;
    }
    fixture.stop().await;
}
