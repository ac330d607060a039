//! A depository pays by the allocator's transaction. What is signed of that follows from what is in final blocks, and
//! from nothing else.

use alloy::primitives::U256;
use bitcoin::{Amount, ScriptBuf, TxOut, Txid, transaction::Version};
use devnet::{
    bitcoin::{AllocatorTx, Coin, FEE, Key, Kind, Spend, address, note, pay},
    world::Payout,
};

use super::{COIN, DEPOSIT, Fixture, ORDER, described};
use crate::claims::Withdrawing;

/// What the hub's balance loses.
const AMOUNT: Amount = Amount::from_sat(2_000_000);

fn script(name: &str) -> ScriptBuf {
    Key::named(name).unwrap().script(Kind::P2tr)
}

impl Fixture {
    /// Money that users deposited before.
    async fn deposited(&self) -> Coin {
        let site = &self.site;
        let coin = site.node.fund(site.depository, site.kind, COIN);
        coin.await.unwrap()
    }

    /// The solver wants [`AMOUNT`] for `recipient`, and the allocator made `tx` of that.
    fn withdrawal(&self, tx: &AllocatorTx, recipient: &str) -> Withdrawing<'_> {
        let chain = self.site.identity().unwrap();
        Withdrawing {
            daemon: &self.daemon,
            form: tx.form(&chain).unwrap(),
            payout: Payout {
                currency: chain.native.clone(),
                chain,
                amount: U256::from(tx.amount().unwrap().to_sat()),
                owner: &self.world.solver,
                owner_chain: self.world.destination.id,
                recipient: address(&script(recipient)).unwrap(),
                nonce: U256::from(1),
            },
        }
    }

    /// Sends what the allocator signed.
    async fn publish(&self, tx: &AllocatorTx) -> Txid {
        self.send(&tx.transaction().unwrap()).await
    }
}

/// Pays [`AMOUNT`] out of `coin`, the fee of which is taken from that.
fn paying(coin: &Coin, recipient: &str) -> AllocatorTx {
    AllocatorTx::pays(vec![coin.clone()], script(recipient), AMOUNT).unwrap()
}

/// The same with an OP_RETURN, by which a replacement is known as one.
fn named(coin: &Coin, recipient: &str) -> AllocatorTx {
    let mut tx = paying(coin, recipient);
    tx.0.outputs.push(note("withdrawal 1").unwrap());
    tx
}

/// The depository's key signs something else with the same coin.
fn rival(coin: &Coin, outputs: Vec<TxOut>) -> Spend {
    Spend {
        fee: FEE * 3,
        version: Version::ONE,
        ..Spend::of(vec![coin.clone()], outputs)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_is_attested_once_it_is_recorded_and_confirmed() {
    let fixture = Fixture::start(2).await;
    let coins = vec![fixture.deposited().await, fixture.deposited().await];
    let tx = AllocatorTx::pays(coins, script("recipient"), AMOUNT).unwrap();
    let withdrawal = fixture.withdrawal(&tx, "recipient");
    // Of what nobody recorded nothing is known, ...
    withdrawal.is_pending(None).await;
    withdrawal.record(&fixture.world).await;
    // ... and what is recorded may still be sent.
    withdrawal.is_pending(None).await;
    let id = fixture.publish(&tx).await;
    let name = id.to_string();
    let name = Some(&*name);
    withdrawal.is_pending(name).await;
    fixture.mine(1).await;
    for named in [None, name] {
        withdrawal.is_undecided(named).await;
    }
    fixture.mine(1).await;
    for named in [name, None] {
        withdrawal.is_executed(named).await;
        withdrawal.is_not_signed_yet(named).await;
    }
    let signatures = tx.signatures().unwrap();
    withdrawal.sign(&fixture.world, signatures).await;
    withdrawal.is_signed_for_its_owner(name).await;
    let received = fixture.site.node.holds(script("recipient")).await.unwrap();
    assert_eq!(received, AMOUNT - FEE);
    fixture.stop().await;
}

/// What a caller says besides the truth, while the withdrawal is executed.
#[tokio::test(flavor = "multi_thread")]
async fn execution_of_a_withdrawal_proves_no_other() {
    let fixture = Fixture::start(1).await;
    let coin = fixture.deposited().await;
    let tx = paying(&coin, "recipient");
    let withdrawal = fixture.withdrawal(&tx, "recipient");
    withdrawal.record(&fixture.world).await;
    let paid = fixture.publish(&tx).await.to_string();
    let paid = Some(&*paid);
    fixture.mine(1).await;
    withdrawal.is_executed(None).await;
    let mismatch = "WITHDRAWAL_MISMATCH";
    let other = address(&script("other")).unwrap();
    withdrawal.to(other).is_refused(None, mismatch).await;
    // The same amount, of which the network has more. It is never paid, since its coin is spent, but the allocator has
    // recorded another transaction.
    let mut dearer = paying(&coin, "recipient");
    dearer.0.fee = FEE * 2;
    dearer.0.outputs[0].value -= FEE;
    let other = fixture.withdrawal(&dearer, "recipient");
    other.is_refused(paid, mismatch).await;
    // Another amount has another record, which there is none of.
    let less = AllocatorTx::pays(vec![coin.clone()], script("recipient"), AMOUNT / 2).unwrap();
    let other = fixture.withdrawal(&less, "recipient");
    other.is_pending(paid).await;
    // A transaction in which the depository pays nothing shows no withdrawal.
    let deposit = fixture.spend(vec![fixture.coin(Kind::P2wpkh).await]);
    let deposit = fixture.send(&deposit.sign().unwrap()).await.to_string();
    fixture.mine(1).await;
    let code = "WITHDRAWAL_NOT_IN_TRANSACTION";
    withdrawal.is_refused(Some(&deposit), code).await;
    // One more output, and it is no withdrawal at all.
    let mut more = paying(&coin, "recipient");
    more.0.outputs.push(pay(script("other"), DEPOSIT));
    let other = fixture.withdrawal(&more, "recipient");
    other.is_refused(None, "INVALID_REQUEST").await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replacement_for_a_higher_fee_executes_the_withdrawal() {
    let fixture = Fixture::start(1).await;
    let coin = fixture.deposited().await;
    let tx = named(&coin, "recipient");
    let withdrawal = fixture.withdrawal(&tx, "recipient");
    withdrawal.record(&fixture.world).await;
    fixture.publish(&tx).await;
    // The recipient gets as much, the depository less change.
    let bumped = rival(&coin, tx.0.outputs.clone()).sign().unwrap();
    let bumped = fixture.send(&bumped).await;
    assert_eq!(fixture.site.node.waiting().await.unwrap(), [bumped]);
    let name = bumped.to_string();
    withdrawal.is_pending(Some(&name)).await;
    fixture.mine(1).await;
    // A node does not know what spent a coin: who asks has to name it.
    withdrawal.is_undecided(None).await;
    withdrawal.is_executed(Some(&name)).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replacement_that_pays_less_or_another_executes_nothing() {
    let fixture = Fixture::start(1).await;
    let [short, elsewhere] = [fixture.deposited().await, fixture.deposited().await];
    let tx = named(&short, "recipient");
    let cheated = fixture.withdrawal(&tx, "recipient");
    cheated.record(&fixture.world).await;
    fixture.publish(&tx).await;
    let mut outputs = tx.0.outputs.clone();
    outputs[0].value -= Amount::ONE_SAT;
    let less = rival(&short, outputs).sign().unwrap();
    let less = fixture.send(&less).await.to_string();
    // Of the other coin another recipient is paid as much. The withdrawal can never be executed.
    let tx = named(&elsewhere, "second recipient");
    let lost = fixture.withdrawal(&tx, "second recipient");
    lost.record(&fixture.world).await;
    fixture.publish(&tx).await;
    let paid = tx.0.outputs[0].value;
    let other = rival(&elsewhere, vec![pay(script("other"), paid)]);
    let other = fixture.send(&other.sign().unwrap()).await.to_string();
    lost.is_pending(Some(&other)).await;
    fixture.mine(1).await;
    for named in [None, Some(&*less)] {
        cheated.is_undecided(named).await;
    }
    lost.is_undecided(None).await;
    lost.is_expired(Some(&other)).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_that_a_reorg_takes_away_is_not_executed() {
    let fixture = Fixture::start(2).await;
    let (node, coin) = (&fixture.site.node, fixture.deposited().await);
    let tx = paying(&coin, "recipient");
    let withdrawal = fixture.withdrawal(&tx, "recipient");
    withdrawal.record(&fixture.world).await;
    let id = fixture.publish(&tx).await;
    let name = id.to_string();
    fixture.mine(1).await;
    assert!(node.included(id).await.unwrap().is_some());
    node.reorg(1).await.unwrap();
    assert_eq!(node.included(id).await.unwrap(), None);
    withdrawal.is_pending(Some(&name)).await;
    // On the fork that lives another transaction has the coin.
    let other = rival(&coin, vec![pay(script("other"), DEPOSIT)]);
    let other = other.sign().unwrap();
    node.mine_only(&[&other]).await.unwrap();
    withdrawal.is_undecided(Some(&name)).await;
    fixture.mine(1).await;
    assert_eq!(node.included(id).await.unwrap(), None);
    let other = other.compute_txid().to_string();
    withdrawal.is_undecided(Some(&name)).await;
    withdrawal.is_expired(Some(&other)).await;
    fixture.stop().await;
}

/// Its signatures do not cover the values of what they spend: those are read.
#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_from_a_key_hash_is_attested_where_its_values_are_true() {
    let fixture = Fixture::with(1, Kind::P2pkh).await;
    let [coin, mut lie] = [fixture.deposited().await, fixture.deposited().await];
    let tx = paying(&coin, "recipient");
    let withdrawal = fixture.withdrawal(&tx, "recipient");
    withdrawal.record(&fixture.world).await;
    withdrawal.is_pending(None).await;
    let id = fixture.publish(&tx).await.to_string();
    fixture.mine(1).await;
    for named in [None, Some(&*id)] {
        withdrawal.is_executed(named).await;
    }
    let signatures = tx.signatures().unwrap();
    withdrawal.sign(&fixture.world, signatures).await;
    withdrawal.is_signed_for_its_owner(Some(&id)).await;
    let received = fixture.site.node.holds(script("recipient")).await.unwrap();
    assert_eq!(received, AMOUNT - FEE);
    // A satoshi that the record does not name is the miner's.
    lie.output.value -= Amount::ONE_SAT;
    let tx = paying(&lie, "second recipient");
    let cheated = fixture.withdrawal(&tx, "second recipient");
    cheated.record(&fixture.world).await;
    let id = fixture.publish(&tx).await.to_string();
    fixture.mine(1).await;
    for named in [None, Some(&*id)] {
        cheated.is_refused(named, "OUTPUTS_DIFFERENT").await;
    }
    fixture.stop().await;
}

/// The allocator signs for accounts of P2WPKH and P2PKH only: of a P2TR input nobody could tell the transaction's id
/// beforehand.
#[tokio::test(flavor = "multi_thread")]
async fn taproot_depository_takes_deposits_and_its_withdrawals_are_refused() {
    let fixture = Fixture::with(1, Kind::P2tr).await;
    let deposit = fixture.spend(vec![fixture.coin(Kind::P2wpkh).await]);
    let deposit = fixture.send(&deposit.sign().unwrap()).await;
    fixture.mine(1).await;
    let answer = fixture.signed(deposit).await;
    let depository = address(&fixture.site.script()).unwrap();
    assert_eq!(described(&answer)["depository"], depository);
    assert_eq!(described(&answer)["depositId"], ORDER);
    let coin = fixture.deposited().await;
    let tx = paying(&coin, "recipient");
    let withdrawal = fixture.withdrawal(&tx, "recipient");
    withdrawal.record(&fixture.world).await;
    fixture.publish(&tx).await;
    fixture.mine(1).await;
    withdrawal.is_refused(None, "INVALID_REQUEST").await;
    let received = fixture.site.node.holds(script("recipient")).await.unwrap();
    assert_eq!(received, AMOUNT - FEE);
    fixture.stop().await;
}
