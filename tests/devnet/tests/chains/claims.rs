//! Claims about withdrawals and refunds on chains of any family, and exactly what one oracle signs of them.

use std::time::Duration;

use alloy::primitives::{Address, B256, Bytes, U256};
use devnet::{
    claim,
    world::{Devnet, Payout, SignedOrder, WithdrawalForm},
};
use vm::protocol::action::Action;

use crate::support::{
    chain::{REFUNDS, WITHDRAWALS, finalize_hub},
    daemon::{Answer, Daemon},
};

const POLL: Duration = Duration::from_millis(200);
/// How often an oracle is asked again that has yet to see a block.
const PATIENCE: usize = 100;
/// What a withdrawal's owner asks, who shows no withdrawal.
const OWNED_WITHDRAWALS: &str = "/attestations/depository-withdrawals/v2";
/// What an oracle says that cannot tell.
const DOUBTS: [&str; 2] = ["PROVIDER_UNAVAILABLE", "QUORUM_UNAVAILABLE"];

/// What `ask` gives, once the oracle has seen the newest block.
async fn in_time(ask: impl AsyncFn() -> Answer, is_there: impl Fn(&Answer) -> bool) -> Answer {
    let mut answer = ask().await;
    for _ in 0..PATIENCE {
        if is_there(&answer) {
            break;
        }
        tokio::time::sleep(POLL).await;
        answer = ask().await;
    }
    answer
}

/// One oracle signed this action, and nothing else.
fn check_signed(answer: &Answer, action: &Action) {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.signed_by().len(), 1, "{}", answer.body);
    let execution = claim::execution(&answer.json()).unwrap();
    assert_eq!(execution.actions, [action.encode()], "{}", answer.body);
}

/// Nothing is signed.
fn check_unsigned(answer: &Answer) {
    assert!(answer.json()["execution"].is_null(), "{}", answer.body);
}

/// A withdrawal that an oracle is asked about.
pub struct Withdrawing<'a> {
    pub daemon: &'a Daemon,
    pub payout: Payout<'a>,
    pub form: WithdrawalForm,
}

impl Withdrawing<'_> {
    /// The allocator's record is final when this returns.
    pub async fn record(&self, world: &Devnet) {
        world.allocate_to(&self.payout, &self.form).await.unwrap();
        finalize_hub(world).await;
    }

    /// The same withdrawal address, said to have been paid by another withdrawal.
    pub fn by(&self, form: WithdrawalForm) -> Self {
        Self {
            daemon: self.daemon,
            payout: self.payout.clone(),
            form,
        }
    }

    /// The same withdrawal, said to be for somebody else.
    pub fn to(&self, recipient: String) -> Self {
        Self {
            daemon: self.daemon,
            payout: Payout {
                recipient,
                ..self.payout.clone()
            },
            form: self.form.clone(),
        }
    }

    /// The allocator's signatures, each with its hash, are final when this returns.
    pub async fn sign(&self, world: &Devnet, signatures: Vec<(B256, Bytes)>) {
        let kept = world.sign_to(&self.payout, &self.form, signatures);
        kept.await.unwrap();
        finalize_hub(world).await;
    }

    /// Its owner asks, and the allocator's withdrawal is not whole: nothing is signed, whatever was paid.
    pub async fn is_not_signed_yet(&self, named: Option<&str>) {
        let body = self.payout.owned_status(&self.form, named).unwrap();
        let answer = self.daemon.attest(OWNED_WITHDRAWALS, &body).await;
        check_unsigned(&answer);
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.json()["status"], 0, "{}", answer.body);
    }

    /// What is signed for whoever shows the withdrawal is signed for its owner, who shows none, and for nobody else.
    pub async fn is_signed_for_its_owner(&self, named: Option<&str>) {
        let body = self.payout.owned_status(&self.form, named).unwrap();
        let ask = || self.daemon.attest(OWNED_WITHDRAWALS, &body);
        let owned = in_time(ask, |answer| !answer.json()["execution"].is_null()).await;
        assert_eq!(owned.status, 200, "{}", owned.body);
        assert_eq!(owned.signed_by().len(), 1, "{}", owned.body);
        let shown = self.ask(named).await;
        let (own, first) = (owned.json(), shown.json());
        assert_eq!(own["execution"], first["execution"]);
        assert_eq!(own["status"], first["message"]["result"]["status"]);
        let mut forged = body.clone();
        forged["amount"] = "1".into();
        let refused = self.daemon.attest(OWNED_WITHDRAWALS, &forged).await;
        check_unsigned(&refused);
        assert_eq!(
            refused.code(),
            "OWNER_SIGNATURE_INVALID",
            "{}",
            refused.body
        );
    }

    async fn ask(&self, named: Option<&str>) -> Answer {
        let body = self.payout.status(&self.form, named);
        self.daemon.attest(WITHDRAWALS, &body).await
    }

    /// It may still be paid: nothing is signed.
    pub async fn is_pending(&self, named: Option<&str>) {
        // A head that a reorg took away is doubted for a moment.
        let answer = in_time(|| self.ask(named), |answer| answer.status == 200).await;
        check_unsigned(&answer);
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(status(&answer), 0, "{}", answer.body);
    }

    /// The providers cannot tell what became of it: nothing is signed.
    pub async fn is_undecided(&self, named: Option<&str>) {
        let answer = self.ask(named).await;
        check_unsigned(&answer);
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(DOUBTS.contains(&&*answer.code()), "{}", answer.body);
    }

    /// The claim is refused with this code.
    pub async fn is_refused(&self, named: Option<&str>, code: &str) {
        let ask = || self.ask(named);
        let answer = in_time(ask, |answer| answer.code() == code).await;
        check_unsigned(&answer);
        assert_eq!(answer.code(), code, "{}", answer.body);
        assert_eq!(answer.status, 400, "{}", answer.body);
    }

    /// The depository has paid: the balance is burned.
    pub async fn is_executed(&self, named: Option<&str>) {
        let burned = Action::Burn {
            from: self.payout.account().unwrap(),
            token: self.payout.token_id().unwrap(),
            amount: self.payout.amount,
        };
        self.has_ended(named, (1, burned)).await;
    }

    /// The depository never pays it: the balance goes back to its owner.
    pub async fn is_expired(&self, named: Option<&str>) {
        let back = Action::Transfer {
            from: self.payout.account().unwrap(),
            to: self.payout.alias().unwrap(),
            token: self.payout.token_id().unwrap(),
            amount: self.payout.amount,
        };
        self.has_ended(named, (2, back)).await;
    }

    async fn has_ended(&self, named: Option<&str>, (ended, action): (u64, Action)) {
        let ask = || self.ask(named);
        let answer = in_time(ask, |answer| !answer.json()["execution"].is_null()).await;
        check_signed(&answer, &action);
        assert_eq!(status(&answer), ended, "{}", answer.body);
    }
}

fn status(answer: &Answer) -> u64 {
    let status = &answer.json()["message"]["result"]["status"];
    status.as_u64().unwrap_or(u64::MAX)
}

/// A deposit that is to go back to its user, as an oracle is asked about it.
pub struct Refunding<'a> {
    pub daemon: &'a Daemon,
    pub world: &'a Devnet,
    pub order: SignedOrder,
    /// The deposit's transaction, and how claims call the deposit.
    pub deposit: (String, B256),
    /// The hub account that holds the deposit, and what it holds.
    pub account: Address,
    pub token: U256,
    pub amount: U256,
}

impl Refunding<'_> {
    async fn ask(&self, payment: &str, vouched: bool) -> Answer {
        let (transaction, id) = &self.deposit;
        let mut body = claim::refund_of(&self.order, (transaction, *id), payment);
        if vouched {
            let (ended, ids) = (("refund", body), [*id]);
            let named = (self.order.id, &ids[..]);
            body = claim::vouched(ended, named, &self.world.solver).unwrap();
        }
        self.daemon.attest(REFUNDS, &body).await
    }

    /// The payment refunds nothing, although the solver says so.
    pub async fn is_refused(&self, payment: &str, code: &str) {
        self.refused((payment, true), code).await;
    }

    /// The payment refunds nothing for as long as the solver does not say so: no account there is its own.
    pub async fn needs_the_solvers_word(&self, payment: &str) {
        self.refused((payment, false), "REFUND_INSUFFICIENT").await;
    }

    async fn refused(&self, (payment, vouched): (&str, bool), code: &str) {
        let ask = || self.ask(payment, vouched);
        let answer = in_time(ask, |answer| answer.code() == code).await;
        check_unsigned(&answer);
        assert_eq!(answer.code(), code, "{payment}: {}", answer.body);
        assert_eq!(answer.status, 400, "{}", answer.body);
    }

    /// The payment refunds the deposit: the solver has earned it.
    pub async fn is_refunded(&self, payment: &str) {
        let ask = || self.ask(payment, true);
        let answer = in_time(ask, |answer| answer.status == 200).await;
        let destination = &self.world.destination;
        let earned = Action::Transfer {
            from: self.account,
            to: destination.alias(self.world.solver.address()).unwrap(),
            token: self.token,
            amount: self.amount,
        };
        check_signed(&answer, &earned);
    }
}
