//! The depository's program pays what the allocator asks for, and keeps an account of it. What is signed follows from
//! that account in a final state, and from nothing else.

use alloy::primitives::U256;
use devnet::{
    solana::{Request, TOKEN, TOKEN_2022, Token, keypair},
    world::Payout,
};
use solana_pubkey::Pubkey;
use solana_signer::Signer;

use super::{AMOUNT, Fixture};
use crate::claims::Withdrawing;

/// What the hub's balance loses, less than users have deposited.
const PAID: u64 = 1_000_000;

fn recipient() -> Pubkey {
    keypair("recipient").unwrap().pubkey()
}

impl Fixture {
    /// Money that users deposited before.
    fn funded(&self, token: Option<Token>) {
        let (depository, paid) = (self.site.cluster.depository, self.paid());
        let deposit = match token {
            None => depository.deposit_native(&paid),
            Some(token) => depository.deposit_token(&paid, token),
        };
        self.execute(&[deposit]);
    }

    fn request(&self, token: Option<Token>) -> Request {
        Request {
            domain: [1; 32],
            recipient: recipient(),
            token,
            amount: PAID,
            nonce: 1,
            expiration: self.site.cluster.time() + 1_000,
        }
    }

    /// The solver wants what `request` says, and the oracle is asked about that.
    fn withdrawal(&self, request: &Request) -> Withdrawing<'_> {
        let chain = self.site.identity().unwrap();
        let mint = request.token.map(|(mint, _)| mint.to_string());
        Withdrawing {
            daemon: &self.daemon,
            form: request.form(&self.site.cluster.depository),
            payout: Payout {
                currency: mint.unwrap_or_else(|| chain.native.clone()),
                chain,
                amount: U256::from(request.amount),
                owner: &self.world.solver,
                owner_chain: self.world.destination.id,
                recipient: request.recipient.to_string(),
                nonce: U256::from(1),
            },
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_is_attested_once_its_account_is_in_a_final_state() {
    let fixture = Fixture::start().await;
    fixture.funded(None);
    let request = fixture.request(None);
    let withdrawal = fixture.withdrawal(&request);
    // Of what nobody recorded nothing is known, ...
    withdrawal.is_pending(None).await;
    withdrawal.record(&fixture.world).await;
    // ... and what is recorded may still be paid.
    withdrawal.is_pending(None).await;
    let id = fixture.site.execute(&request).unwrap().to_string();
    let cluster = &fixture.site.cluster;
    assert_eq!(cluster.balance(&recipient()), PAID);
    for _ in 0..3 {
        // In a block, confirmed, and nearly final.
        withdrawal.is_pending(Some(&id)).await;
        cluster.advance(1);
    }
    for named in [Some(&*id), None] {
        withdrawal.is_executed(named).await;
        withdrawal.is_signed_for_its_owner(named).await;
    }
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawals_of_tokens_are_attested_as_their_mints() {
    let fixture = Fixture::start().await;
    for program in [TOKEN, TOKEN_2022] {
        let token = fixture.token(program, 0);
        fixture.funded(Some(token));
        let request = fixture.request(Some(token));
        let withdrawal = fixture.withdrawal(&request);
        withdrawal.record(&fixture.world).await;
        withdrawal.is_pending(None).await;
        fixture.site.execute(&request).unwrap();
        assert_eq!(fixture.site.cluster.tokens(&recipient(), token), PAID);
        fixture.finalize();
        withdrawal.is_executed(None).await;
    }
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn execution_of_another_withdrawal_proves_nothing() {
    let fixture = Fixture::start().await;
    for _ in 0..3 {
        fixture.funded(None);
    }
    let request = fixture.request(None);
    let withdrawal = fixture.withdrawal(&request);
    withdrawal.record(&fixture.world).await;
    let stranger = keypair("stranger").unwrap().pubkey();
    let elsewhere = Request {
        recipient: stranger,
        ..request
    };
    let less = Request {
        amount: PAID - 1,
        ..request
    };
    let mut others = Vec::new();
    for other in [elsewhere, less] {
        others.push(fixture.site.execute(&other).unwrap().to_string());
    }
    fixture.finalize();
    for other in &others {
        withdrawal.is_pending(Some(other)).await;
    }
    // What was paid to another, or less, is no withdrawal of this address, ...
    let mismatch = "WITHDRAWAL_MISMATCH";
    let form = fixture.withdrawal(&elsewhere).form;
    withdrawal.by(form).is_refused(None, mismatch).await;
    withdrawal
        .to(stranger.to_string())
        .is_refused(None, mismatch)
        .await;
    // ... or of none that the allocator has recorded: it was not asked for that amount, nor for another nonce.
    let unrecorded = fixture.withdrawal(&less);
    unrecorded.is_pending(None).await;
    let again = Request {
        nonce: 2,
        ..request
    };
    let again = fixture.withdrawal(&again);
    again.is_refused(None, mismatch).await;
    // Once it is paid, the transactions of others do not show that.
    fixture.site.execute(&request).unwrap();
    fixture.finalize();
    withdrawal.is_executed(None).await;
    let code = "WITHDRAWAL_NOT_IN_TRANSACTION";
    for other in &others {
        withdrawal.is_refused(Some(other), code).await;
    }
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawal_on_a_fork_that_dies_is_not_executed_and_expires() {
    let fixture = Fixture::start().await;
    fixture.funded(None);
    fixture.finalize();
    let cluster = &fixture.site.cluster;
    let request = Request {
        expiration: cluster.time() + 4,
        ..fixture.request(None)
    };
    let withdrawal = fixture.withdrawal(&request);
    withdrawal.record(&fixture.world).await;
    let lost = fixture.site.execute(&request).unwrap();
    cluster.advance(1);
    withdrawal.is_pending(None).await;
    cluster.drop_blocks(2);
    assert!(cluster.placed(&lost).is_none());
    assert_eq!(cluster.balance(&recipient()), 0);
    fixture.finalize();
    withdrawal.is_pending(Some(&lost.to_string())).await;
    // An account that anybody may fill at the same address is none of a withdrawal.
    let account = cluster
        .depository
        .used_request(&request.id(&cluster.depository));
    let transfer = solana_system_interface::instruction::transfer;
    let filling = transfer(&fixture.user.pubkey(), &account, AMOUNT);
    fixture.execute(&[filling]);
    while cluster.time() <= request.expiration {
        cluster.advance(1);
    }
    // What is too late in a block that may go away is not too late yet.
    withdrawal.is_pending(None).await;
    fixture.site.execute(&request).unwrap_err();
    fixture.finalize();
    withdrawal.is_expired(None).await;
    fixture.daemon.stop().await;
}
