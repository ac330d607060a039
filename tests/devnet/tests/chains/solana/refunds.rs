//! The solver pays a deposit back on Solana out of an account that no order names: its word says that it was the solver.

use alloy::primitives::{Address, B256, U256};
use devnet::{
    solana::{LocalChain, Paid, keypair, token::memo},
    world::Money,
};
use solana_instruction::Instruction;
use solana_keypair::Keypair;
use solana_pubkey::Pubkey;
use solana_signature::Signature;
use solana_signer::Signer;

use super::{AMOUNT, Fixture};
use crate::claims::Refunding;

impl Fixture {
    /// A final deposit for an order of the user's.
    async fn to_refund(&self) -> Refunding<'_> {
        let (chain, user) = (self.site.identity().unwrap(), self.user.pubkey());
        let name = user.to_string();
        let output = Money {
            currency: Address::ZERO,
            amount: U256::from(900),
        };
        let order = self.world.order_from(&chain, &name, AMOUNT, output);
        let order = order.await.unwrap();
        let paid = Paid {
            depositor: user,
            id: order.id.0,
            ..self.paid()
        };
        let cluster = &self.site.cluster;
        let deposit = self.execute(&[cluster.depository.deposit_native(&paid)]);
        let (_, time) = cluster.placed(&deposit).unwrap();
        let time = u64::try_from(time.unwrap()).unwrap();
        self.finalize();
        let account = chain.order_account(&name, time, order.id);
        Refunding {
            daemon: &self.daemon,
            world: &self.world,
            account: account.unwrap(),
            token: chain.token_id(&chain.native).unwrap(),
            amount: U256::from(AMOUNT),
            deposit: (deposit.to_string(), LocalChain::onchain_id(&deposit, 0)),
            order,
        }
    }

    /// The solver's account here, with money of its own.
    fn solver(&self) -> Keypair {
        let solver = keypair("solver").unwrap();
        self.site.cluster.fund(&solver.pubkey()).unwrap();
        solver
    }

    /// Whoever has `payer` pays `amount` to `to`, and says for which order.
    fn back(&self, payer: &Keypair, (to, amount): (Pubkey, u64), order: B256) -> Signature {
        let transfer = solana_system_interface::instruction::transfer;
        let instructions = [
            transfer(&payer.pubkey(), &to, amount),
            memo(&payer.pubkey(), &order.to_string()),
        ];
        self.by(payer, &instructions)
    }

    fn by(&self, payer: &Keypair, instructions: &[Instruction]) -> Signature {
        let sent = self.site.cluster.execute(instructions, &[payer]);
        sent.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refund_is_attested_once_it_is_final_and_the_solver_vouches_for_it() {
    let fixture = Fixture::start().await;
    let refunding = fixture.to_refund().await;
    // The deposit is attested like any other.
    fixture.signed(&refunding.deposit.0.parse().unwrap()).await;
    let (solver, user) = (fixture.solver(), fixture.user.pubkey());
    let id = fixture.back(&solver, (user, AMOUNT), refunding.order.id);
    let id = id.to_string();
    let missing = "TRANSACTION_MISSING";
    for _ in 0..3 {
        refunding.is_refused(&id, missing).await;
        fixture.site.cluster.advance(1);
    }
    refunding.needs_the_solvers_word(&id).await;
    refunding.is_refunded(&id).await;
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_give_the_deposit_back_is_no_refund() {
    let fixture = Fixture::start().await;
    let refunding = fixture.to_refund().await;
    let (solver, user) = (fixture.solver(), fixture.user.pubkey());
    let order = refunding.order.id;
    let stranger = keypair("stranger").unwrap();
    let cluster = &fixture.site.cluster;
    cluster.fund(&stranger.pubkey()).unwrap();
    let lost = fixture.back(&solver, (user, AMOUNT), order);
    cluster.advance(1);
    cluster.drop_blocks(2);
    assert!(cluster.placed(&lost).is_none());
    let short = fixture.back(&solver, (user, AMOUNT - 1), order);
    let elsewhere = fixture.back(&solver, (stranger.pubkey(), AMOUNT), order);
    let foreign = fixture.back(&solver, (user, AMOUNT), B256::repeat_byte(7));
    let transfer = solana_system_interface::instruction::transfer;
    let unnamed = [transfer(&solver.pubkey(), &user, AMOUNT)];
    let unnamed = fixture.by(&solver, &unnamed);
    // Who signs is paid nothing.
    let own = fixture.back(&fixture.user, (user, AMOUNT), order);
    fixture.finalize();
    let insufficient = "REFUND_INSUFFICIENT";
    let unreferenced = "ORDER_NOT_REFERENCED";
    for (payment, code) in [
        (short, insufficient),
        (elsewhere, insufficient),
        (own, insufficient),
        (foreign, unreferenced),
        (unnamed, unreferenced),
        (lost, "TRANSACTION_MISSING"),
    ] {
        refunding.is_refused(&payment.to_string(), code).await;
    }
    fixture.daemon.stop().await;
}
