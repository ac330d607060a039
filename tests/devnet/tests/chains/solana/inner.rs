//! Deposits that another program makes on its caller's word: inner instructions, which count like those of a message,
//! and only for what came into the vault.

use devnet::solana::{
    Depository, LOOKALIKE, LocalChain, Paid, Request, TOKEN, intermediary, program::SYSTEM,
};
use serde_json::json;
use solana_instruction::Instruction;
use solana_signature::Signature;
use solana_signer::Signer;

use super::{AMOUNT, Fixture, ORDER};

impl Fixture {
    /// The user's transaction has `inner` done by another program.
    fn through(&self, inner: Instruction) -> Signature {
        self.execute(&[intermediary::through(inner)])
    }

    /// A transaction that fails, in a block all the same.
    fn failed(&self, instructions: &[Instruction]) -> Signature {
        let cluster = &self.site.cluster;
        let signed = cluster.sign(instructions, &[&self.user]).unwrap();
        cluster.submit(signed).unwrap()
    }

    /// What the depository's vault holds besides its rent.
    fn held(&self) -> u64 {
        self.site.deposited()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deposit_through_another_program_is_its_depositors() {
    let fixture = Fixture::start().await;
    let token = fixture.token(TOKEN, 0);
    let depository = fixture.site.cluster.depository;
    let of_token = depository.deposit_token(&fixture.paid(), token);
    let native = (fixture.native(), SYSTEM.to_string());
    for (inner, currency) in [native, (of_token, token.0.to_string())] {
        let id = fixture.through(inner);
        fixture.finalize();
        let deposit = &fixture.signed(&id).await["result"];
        assert_eq!(deposit["amount"], AMOUNT.to_string());
        assert_eq!(deposit["currency"], currency);
        // Neither who paid the fee nor who sent the money, nor the program: whom the depository was told.
        assert_eq!(deposit["depositor"], fixture.depositor.to_string());
        assert_eq!(deposit["depositId"], alloy::hex::encode_prefixed(ORDER));
        // The message has one instruction, and the first inner one stands behind it.
        let wanted = LocalChain::onchain_id(&id, 1).to_string();
        assert_eq!(deposit["onchainId"], wanted);
    }
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inner_deposit_counts_beside_one_of_the_message() {
    let fixture = Fixture::start().await;
    let (inner, outer) = (intermediary::through(fixture.native()), fixture.native());
    let id = fixture.execute(&[inner, outer]);
    fixture.finalize();
    let found = fixture.all_signed(&id).await.into_iter();
    let found = found.map(|message| {
        let deposit = &message["result"];
        (deposit["onchainId"].clone(), deposit["amount"].clone())
    });
    // Two instructions of the message, then what the first has called.
    let wanted = [1, 2].map(|index| {
        let onchain_id = LocalChain::onchain_id(&id, index).to_string();
        (json!(onchain_id), json!(AMOUNT.to_string()))
    });
    assert_eq!(found.collect::<Vec<_>>(), wanted);
    fixture.daemon.stop().await;
}

/// The transaction names a deposit, and a withdrawal in it pays some of the vault's out: the hub took that from its owner.
#[tokio::test(flavor = "multi_thread")]
async fn inner_deposit_beside_a_withdrawal_is_signed_in_full() {
    let fixture = Fixture::start().await;
    let (cluster, allocator) = (&fixture.site.cluster, &fixture.site.allocator);
    let depository = cluster.depository;
    fixture.execute(&[fixture.native()]);
    let request = Request {
        domain: [1; 32],
        recipient: fixture.user.pubkey(),
        token: None,
        amount: 1_000_000,
        nonce: 1,
        expiration: cluster.time() + 1_000,
    };
    let encoded = request.encode(&depository);
    let id = request.id(&depository);
    let paying = depository.execute_transfer(&request, allocator.pubkey(), (&encoded, &id));
    let had = fixture.held();
    let instructions = [intermediary::through(fixture.native()), paying];
    let beside = cluster.execute(&instructions, &[&fixture.user, allocator]);
    let beside = beside.unwrap();
    assert_eq!(fixture.held(), had + AMOUNT - request.amount);
    fixture.finalize();
    let deposit = &fixture.signed(&beside).await["result"];
    assert_eq!(deposit["amount"], AMOUNT.to_string());
    fixture.daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inner_call_that_fails_or_goes_elsewhere_is_no_deposit() {
    let fixture = Fixture::start().await;
    let had = fixture.held();
    let paid = Paid {
        amount: u64::MAX / 2,
        ..fixture.paid()
    };
    let depository = fixture.site.cluster.depository;
    let dear = intermediary::through(depository.deposit_native(&paid));
    let failed = fixture.failed(&[dear]);
    // A transaction that fails behind the deposit undoes it.
    let nobodys = intermediary::through(Depository(LOOKALIKE).deposit_native(&paid));
    let undone = fixture.failed(&[intermediary::through(fixture.native()), nobodys]);
    // The same code at another address takes real money, into a vault of its own.
    let elsewhere = fixture.through(Depository(LOOKALIKE).deposit_native(&fixture.paid()));
    let last = fixture.execute(&[fixture.native()]);
    fixture.finalize();
    fixture.signed(&last).await;
    for failed in [failed, undone] {
        let code = fixture.unsigned(&failed).await;
        assert_eq!(code.as_deref(), Some("TRANSACTION_REVERTED"));
    }
    assert_eq!(fixture.unsigned(&elsewhere).await, None);
    assert_eq!(fixture.held(), had + AMOUNT);
    fixture.daemon.stop().await;
}
