//! One provider of three, or of two, that lies, lags or hangs; nonces that are somebody else's or nobody's; what
//! nodes never take.

use std::{sync::Arc, time::Duration};

use alloy::{
    eips::eip7702::Authorization as Delegation,
    primitives::{B256, U256},
    signers::{SignerSync, local::PrivateKeySigner},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use vm::trade::{Call, Draft, FeeRate, Intent, Jump, Trial};

use super::{
    chain::{FakeChain, GAS, GENESIS, Lies},
    rig::{RICH, Rig, native, network, recipient, refundee},
    waste::native_deposit,
};
use crate::{
    index,
    market::{Caps, PriceHolds},
    request::{
        Request,
        fact::{Deposit, State},
        reason::FailReason,
        status::Status,
    },
    solver::{
        SolverError,
        account::Plan,
        chain::{TradingChainError, providers},
        judge::Next,
        worker::{Pace, Worker},
    },
    store::rows::{attempt::Owner, claim::Stage},
};

const GWEI: u128 = 1_000_000_000;

fn lies() -> [(&'static str, Lies); 10] {
    let none = Lies::default();
    let rate = |base| FeeRate::new(base, base);
    let fees = |base| Some(rate(base));
    [
        ("nonce +1", Lies { nonce: 1, ..none }),
        (
            "nonce +1000",
            Lies {
                nonce: 1_000,
                ..none
            },
        ),
        ("nonce -1", Lies { nonce: -1, ..none }),
        (
            "fees of 0",
            Lies {
                fees: fees(0),
                ..none
            },
        ),
        (
            "10,000 gwei",
            Lies {
                fees: fees(10_000 * GWEI),
                ..none
            },
        ),
        (
            "reverts",
            Lies {
                reverts: true,
                ..none
            },
        ),
        (
            "included",
            Lies {
                included: true,
                ..none
            },
        ),
        ("poor", Lies { poor: true, ..none }),
        (
            "refuses",
            Lies {
                refuses: true,
                ..none
            },
        ),
        (
            "expired",
            Lies {
                expired: true,
                ..none
            },
        ),
    ]
}

impl Rig {
    fn lie(&self, lies: Lies) {
        for chain in [&self.origin, &self.destination] {
            chain.with(|world| world.lies = lies);
        }
    }

    /// Mines and looks after lanes until the nonces that nobody has are done with.
    pub(super) async fn rest(&mut self) {
        let solver = self.solver().await;
        for _ in 0..10 {
            self.mine(1);
            for account in solver.accounts.values() {
                account.sweep(self.now / 1_000).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn one_liar_of_three_changes_no_fill_and_no_refund() {
    for (name, lie) in lies() {
        let mut rig = Rig::new();
        rig.lie(lie);
        let (filled, refunded) = (
            rig.funded(1).await,
            rig.quote(2, |r| {
                r.referrer = Some("debug-force-refund".into());
            })
            .await,
        );
        rig.deposit(&refunded, |_| ()).await;
        rig.settle(&filled).await;
        rig.settle(&refunded).await;
        rig.filled(filled.order_id, 1);
        rig.refunded(refunded.order_id, 2);
        let solver = rig.solver().await;
        for account in solver.accounts.values() {
            let shown = account.summary().await.unwrap();
            assert_eq!(
                (shown.next.as_deref(), shown.gaps),
                (Some("1"), vec![]),
                "{name}"
            );
        }
        let attempts = rig.facts(&filled).await.attempts;
        assert_eq!(attempts.len(), 1, "{name}");
        rig.is_clean().await;
    }
}

/// It says that everything takes less than it does, and that all fails for which less is left than for estimates.
#[tokio::test]
async fn one_liar_of_two_about_gas_fails_no_fill_and_puts_off_no_refund_for_long() {
    for work in [1, 15_000] {
        let mut rig = Rig::new();
        for chain in [&rig.origin, &rig.destination] {
            chain.with(|world| world.pair = true);
        }
        rig.lie(Lies {
            work: Some(work),
            ..Lies::default()
        });
        let filled = rig.funded(1).await;
        let forced = |request: &mut Request| request.referrer = Some("debug-force-refund".into());
        let refunded = rig.quote(2, forced).await;
        rig.deposit(&refunded, |_| ()).await;
        let solver = rig.solver().await;
        for _ in 0..3 {
            for order in [&filled, &refunded] {
                let _waits = solver.advance(&order.id, rig.now).await;
            }
            rig.mine(1);
        }
        assert_eq!(rig.facts(&filled).await.failure, None, "{work}");
        assert_eq!(rig.claim(&refunded).await.pauses, [], "{work}");
        for chain in [&rig.origin, &rig.destination] {
            assert_eq!(chain.with(|world| world.broadcasts.len()), 0, "{work}");
        }
        drop(solver);
        rig.lie(Lies::default());
        rig.settle(&filled).await;
        rig.settle(&refunded).await;
        rig.filled(filled.order_id, 1);
        rig.refunded(refunded.order_id, 2);
        rig.is_clean().await;
    }
}

/// A refund is charged for the gas that it is sent with.
#[tokio::test]
async fn one_liar_of_two_about_gas_makes_no_refund_much_dearer() {
    let sent = async |hundredths: Option<u64>| {
        let rig = Rig::new();
        rig.origin.with(|world| world.pair = true);
        rig.lie(Lies {
            hundredths,
            ..Lies::default()
        });
        let forced = |request: &mut Request| request.referrer = Some("debug-force-refund".into());
        let refunded = rig.quote(1, forced).await;
        rig.deposit(&refunded, |_| ()).await;
        let solver = rig.begun(&refunded).await;
        let attempts = solver.accounts["origin"].attempts().await.unwrap();
        vm::ethereum::trade::priced(&attempts[0].1.own).unwrap()[0].gas
    };
    // With a quarter more.
    let honest = sent(None).await * 4 / 5;
    for hundredths in [51, 60, 61, 79, 80, 100, 150] {
        let gas = sent(Some(hundredths)).await;
        assert!(gas >= honest, "{hundredths}: {gas} of {honest}");
        assert!(gas * 10 <= honest * 17, "{hundredths}: {gas} of {honest}");
    }
}

/// Where what is signed is paid, it is half way to what the dearer one says.
#[tokio::test]
async fn what_one_liar_of_two_makes_a_fill_pay_is_in_what_it_may_cost() {
    for (liar, pays_as_signed, paid) in [
        (1_900, true, 1_460),
        (1_200, true, 1_110),
        (1_900, false, 1_010),
    ] {
        let rig = Rig::new();
        // Two and a half dollars of gas.
        let change = |request: &mut Request| {
            request.fill_work = 2_000_000_000_000;
            request.fill_rate = U256::from(600);
        };
        let request = rig.quote(1, change).await;
        rig.destination.with(|world| {
            (world.base, world.pair) = (1_000, true);
            world.pays_as_signed = pays_as_signed;
            world.lies.fees = Some(FeeRate::new(liar, 10));
        });
        rig.deposit(&request, |_| ()).await;
        let solver = rig.begun(&request).await;
        // Twice of what was charged is too much.
        let filled = usize::from(paid <= 2 * 600);
        assert_eq!(rig.destination.waiting(), filled, "{liar}");
        let account = &solver.accounts["destination"];
        let draft = Draft::call(Call::nothing(&account.owner));
        let fee = account.fee(&draft, 100).await.unwrap();
        assert_eq!(fee.total(), U256::from(100 * paid), "{liar}");
    }
}

#[tokio::test]
async fn one_liar_of_two_has_nothing_approved_again() {
    let mut rig = Rig::new();
    rig.destination.with(|world| world.pair = true);
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    assert_eq!(solver.approve_ahead(account, rig.now).await, Ok(false));
    for _ in 0..10 {
        rig.mine(1);
        account.sweep(rig.now / 1_000).await.unwrap();
    }
    assert_eq!(solver.approve_ahead(account, rig.now).await, Ok(true));
    let sent = rig.destination.with(|world| world.broadcasts.len());
    rig.lie(Lies {
        approved: Some(U256::ZERO),
        ..Lies::default()
    });
    for _ in 0..10 {
        let said = solver.approve_ahead(account, rig.now).await;
        assert!(matches!(said, Err(SolverError::Read(_))), "{said:?}");
        assert_eq!(account.attempts().await.unwrap(), []);
        rig.mine(1);
        account.sweep(rig.now / 1_000).await.unwrap();
    }
    let again = rig.destination.with(|world| world.broadcasts.len());
    assert_eq!(again, sent);
}

/// It would else land whenever a block has room for it, behind its deadline, too.
#[tokio::test]
async fn one_liar_of_two_keeps_no_late_fill_from_being_cancelled() {
    let (fees, work) = (Some(FeeRate::new(GWEI, 0)), Some(1));
    let none = Lies::default();
    for lie in [Lies { fees, ..none }, Lies { work, ..none }] {
        let mut rig = Rig::new();
        rig.pace = 600;
        rig.destination.with(|world| world.pair = true);
        let deadline = u32::try_from(rig.now / 1_000 + 14_401).unwrap();
        let request = rig
            .quote(1, |request| request.order.output.deadline = deadline)
            .await;
        rig.deposit(&request, |_| ()).await;
        let solver = rig.begun(&request).await;
        rig.lie(lie);
        rig.destination.forget();
        // Two hours before its deadline it is no longer wanted. Until then nobody knows what a dearer one should pay.
        for (seconds, cancels) in [(7_199, false), (2, true)] {
            rig.now += seconds * 1_000;
            let _waits = solver.advance(&request.id, rig.now).await;
            let attempts = solver.accounts["destination"].attempts().await.unwrap();
            let [(_, fill)] = &attempts[..] else {
                panic!("{attempts:?}");
            };
            assert_eq!(fill.signed.last().unwrap().cancels, cancels);
            let count = fill.signed.len();
            let alone = !cancels && lie.fees.is_some();
            assert_eq!(count == 1, alone, "{count}");
        }
        drop(solver);
        rig.lie(none);
        rig.settle(&request).await;
        assert_eq!(rig.destination.paid(request.order_id), []);
        let facts = rig.facts(&request).await;
        assert_eq!(facts.failure, Some(FailReason::OrderExpired));
        rig.refunded(request.order_id, 1);
    }
}

/// No block takes the approval: the order waits as for anything else, and the price of then decides.
#[tokio::test]
async fn a_fill_whose_approval_never_comes_ends() {
    let mut rig = Rig::new();
    rig.worth = Ok(crate::solver::repricing::Repriced::Nothing);
    let request = rig.quote(1, |request| super::routed(request, 1)).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.begun(&request).await;
    assert_eq!(rig.destination.waiting(), 1);
    for _ in 0..3 {
        rig.now += 101_000;
        solver.advance(&request.id, rig.now).await.unwrap();
    }
    let failure = rig.facts(&request).await.failure;
    assert_eq!(failure, Some(FailReason::Slippage));
    drop(solver);
    rig.settle(&request).await;
    assert_eq!(rig.destination.paid(request.order_id), []);
    rig.refunded(request.order_id, 1);
}

#[tokio::test]
async fn one_liar_of_three_pays_nobody_twice() {
    // It claims that nonces are used and that transactions are in blocks while none is, for long.
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    let solver = rig.begun(&request).await;
    rig.destination.forget();
    rig.lie(Lies {
        nonce: 5,
        included: true,
        ..Lies::default()
    });
    for _ in 0..40 {
        rig.mine(1);
        solver.advance(&request.id, rig.now).await.unwrap();
        let claim = rig.claim(&request).await;
        assert_eq!(claim.legs.len(), 1);
        assert_ne!(claim.legs[0].stage, Stage::Failed);
    }
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    rig.is_clean().await;
}

#[tokio::test]
async fn a_fill_that_nodes_call_expired_is_replaced_at_once_and_not_refused() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.destination.with(|world| world.everybody_lies = true);
    rig.lie(Lies {
        expired: true,
        ..Lies::default()
    });
    let solver = rig.begun(&request).await;
    let attempts = solver.accounts["destination"].attempts().await.unwrap();
    let [(_, fill)] = &attempts[..] else {
        panic!("{attempts:?}");
    };
    // Each one is replaced, since nobody takes it.
    assert!(fill.signed.len() > 1);
    assert!(fill.refused == 0 && fill.signed.iter().all(|one| !one.cancels));
    rig.lie(Lies::default());
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    rig.is_clean().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_holds_up_nobody() {
    let mut rig = Rig::new();
    rig.lie(Lies {
        hangs: true,
        ..Lies::default()
    });
    let (first, second) = (rig.funded(1).await, rig.funded(2).await);
    let solver = rig.solver().await;
    let started = Instant::now();
    let now = rig.now;
    let (one, other) = tokio::join!(
        solver.advance(&first.id, now),
        solver.advance(&second.id, now)
    );
    assert_eq!((one, other), (Ok(Next::Wait), Ok(Next::Wait)));
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    rig.settle(&first).await;
    rig.settle(&second).await;
    rig.filled(first.order_id, 1);
    rig.filled(second.order_id, 2);
}

/// Honest bids are far apart, since nodes know different memory pools.
#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_is_waited_for_once_where_the_others_bid_differently() {
    let rig = Rig::new();
    rig.lie(Lies {
        hangs: true,
        ..Lies::default()
    });
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    rig.destination
        .with(|world| (world.tips, world.rates) = ([1, 3], 0));
    let draft = Draft::call(Call::nothing(&account.owner));
    let started = Instant::now();
    let tried = account.simulate(&draft).await.unwrap();
    assert!(tried.is_ok(), "{tried:?}");
    // Once of each that answers.
    assert_eq!(rig.destination.with(|world| world.rates), 2);
    let took = started.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_jump_of_nonces_is_bounded_and_healed_by_the_operator() {
    let mut rig = Rig::new();
    let first = rig.funded(1).await;
    rig.settle(&first).await;
    let second = rig.funded(2).await;
    for chain in [&rig.origin, &rig.destination] {
        chain.with(|world| world.everybody_lies = true);
    }
    rig.lie(Lies {
        nonce: 1_000,
        ..Lies::default()
    });
    let solver = rig.solver().await;
    let said = solver.advance(&second.id, rig.now).await;
    assert!(
        matches!(
            said,
            Err(SolverError::Jumped {
                jump: Jump {
                    next: 1,
                    mined: 1_001
                },
                ..
            })
        ),
        "{said:?}"
    );
    rig.lie(Lies::default());
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);

    // The chain is really that far: the operator says so.
    for nonce in 2..40 {
        rig.destination.intrude(&rig.solver_text(), nonce);
    }
    rig.mine(1);
    let third = rig.funded(3).await;
    let solver = rig.solver().await;
    let said = solver.advance(&third.id, rig.now).await;
    assert!(
        matches!(
            said,
            Err(SolverError::Jumped {
                jump: Jump { mined: 40, .. },
                ..
            })
        ),
        "{said:?}"
    );
    let account = &solver.accounts["destination"];
    assert_eq!(account.heal(rig.now / 1_000).await, Ok(vec![]));
    assert_eq!(account.summary().await.unwrap().next, Some("40".into()));
    rig.settle(&third).await;
    rig.filled(third.order_id, 3);
}

#[tokio::test]
async fn a_nonce_that_was_skipped_for_a_lie_is_used_up_when_the_chain_waits_for_it() {
    let mut rig = Rig::new();
    let first = rig.funded(1).await;
    rig.settle(&first).await;
    let second = rig.funded(2).await;
    let solver = rig.solver().await;
    assert_eq!(solver.accounts["destination"].vouch().await, Ok(()));
    rig.destination.with(|world| world.everybody_lies = true);
    rig.lie(Lies {
        nonce: 1,
        ..Lies::default()
    });
    solver.advance(&second.id, rig.now).await.unwrap();
    assert_eq!(
        rig.claim(&second).await.legs[0].attempt[..],
        2_u64.to_be_bytes()
    );
    rig.lie(Lies::default());
    rig.mine(3);
    solver.advance(&second.id, rig.now).await.unwrap();
    assert_eq!(rig.destination.paid(second.order_id), []);
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
    rig.rest().await;
    rig.is_clean().await;
}

/// As the store of yesterday finds the chain: a payment was made since that it does not know of.
#[tokio::test]
async fn an_older_copy_of_the_store_pays_nothing_until_the_operator_says_so() {
    let mut rig = Rig::new();
    let first = rig.funded(1).await;
    rig.settle(&first).await;
    let second = rig.funded(2).await;
    rig.destination.intrude(&rig.solver_text(), 1);
    rig.mine(1);
    // The first payment finds it, if the start has not.
    let solver = rig.solver().await;
    let said = solver.advance(&second.id, rig.now).await;
    let jump = Jump { next: 1, mined: 2 };
    let network = "destination".to_owned();
    let found = [
        SolverError::Behind(network.clone()),
        SolverError::Jumped { network, jump },
    ];
    assert!(found.contains(&said.unwrap_err()));
    let behind = Err(SolverError::Behind("destination".into()));
    assert_eq!(solver.advance(&second.id, rig.now).await, behind);
    // The process looks before it pays. Nothing is given back on the other network either, whatever the time.
    let solver = rig.solver().await;
    let vouched = solver.accounts["destination"].vouch().await;
    assert_eq!(vouched, Err(SolverError::Behind("destination".into())));
    assert_eq!(solver.accounts["origin"].vouch().await, Ok(()));
    assert_eq!(solver.advance(&second.id, rig.now).await, behind);
    let later = rig.now + 10 * 24 * 3_600_000;
    assert!(solver.advance(&second.id, later).await.is_err());
    assert_eq!(solver.behind(), Some("destination"));
    assert_eq!(rig.destination.paid(second.order_id), []);
    assert_eq!(rig.origin.paid(second.order_id), []);
    // It is no copy: the key's owner used it elsewhere.
    let account = &solver.accounts["destination"];
    assert_eq!(account.heal(rig.now / 1_000).await, Ok(vec![]));
    assert_eq!((account.vouch().await, solver.behind()), (Ok(()), None));
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
}

/// A transaction of the settler's has landed on a chain that is only settled on, and is done with.
async fn settled_elsewhere(rig: &mut Rig) -> Arc<FakeChain> {
    let chain = rig.settles_elsewhere();
    let solver = rig.solver().await;
    let account = solver.settling.as_ref().unwrap();
    let plan = Plan {
        owner: Owner::Gap,
        intent: Intent {
            draft: Draft::call(Call::nothing(&account.owner)),
            work: GAS,
            besides: None,
            spends: Vec::new(),
        },
        keeps: false,
    };
    let mut taken = account.take(&plan, rig.now / 1_000).await.unwrap();
    let batch = std::mem::take(&mut taken.batch);
    let (id, attempt) = (taken.id.clone(), taken.attempt.clone());
    assert!(rig.store.commit(batch).await.unwrap().is_applied());
    drop(taken);
    account.send(&id, &attempt).await.unwrap();
    for _ in 0..10 {
        rig.mine(1);
        account.sweep(rig.now / 1_000).await.unwrap();
    }
    assert_eq!(account.attempts().await.unwrap(), []);
    assert_eq!(account.summary().await.unwrap().next, Some("1".into()));
    chain
}

/// What was paid since may be on a chain that counts nothing: the settler's account shows it.
#[tokio::test]
async fn an_older_copy_that_the_settlement_chain_shows_pays_nothing_until_the_operator_says_so() {
    for older in [true, false] {
        let mut rig = Rig::new();
        let chain = settled_elsewhere(&mut rig).await;
        let request = rig.funded(1).await;
        if older {
            chain.intrude(&rig.solver_text(), 1);
        }
        rig.mine(1);
        let solver = rig.solver().await;
        let account = solver.settling.clone().unwrap();
        let behind = SolverError::Behind("settlements".into());
        if older {
            assert_eq!(account.vouch().await, Err(behind.clone()));
            assert_eq!(solver.behind(), Some("settlements"));
            let said = solver.advance(&request.id, rig.now).await;
            assert_eq!(said, Err(behind));
            assert_eq!(rig.claim(&request).await.legs, []);
            rig.mine(3);
            assert_eq!(rig.destination.paid(request.order_id), []);
            // It is no copy: the key's owner used it there.
            assert_eq!(account.heal(rig.now / 1_000).await, Ok(vec![]));
        }
        assert_eq!((account.vouch().await, solver.behind()), (Ok(()), None));
        rig.settle_by(&solver, &request).await;
        rig.filled(request.order_id, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_paid_before_the_settlement_chain_was_asked() {
    for older in [true, false] {
        let mut rig = Rig::new();
        let chain = settled_elsewhere(&mut rig).await;
        let request = rig.funded(1).await;
        if older {
            chain.intrude(&rig.solver_text(), 1);
        }
        rig.mine(1);
        // Its count is known a moment later than everything else.
        chain.with(|world| world.lies.hangs = true);
        let worker = Worker {
            solver: Arc::new(rig.solver().await),
            settler: None,
            pace: Pace::default(),
            clock: || (GENESIS + 130) * 1_000,
        };
        let stop = CancellationToken::new();
        let running = tokio::spawn(worker.run(stop.clone()));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let begun = rig.claim(&request).await.legs.len();
        assert_eq!(begun, usize::from(!older), "{older}");
        stop.cancel();
        running.await.unwrap();
    }
}

/// As the store of a minute ago finds the chain: a payment that is open in it has landed by a version that was signed
/// since. To the process that began a payment, another transaction of its nonce is somebody else's.
#[tokio::test]
async fn a_payment_that_an_older_copy_calls_lost_is_given_back_only_when_the_operator_says_so() {
    for older in [true, false] {
        let mut rig = Rig::new();
        let (request, other) = (rig.funded(1).await, rig.funded(2).await);
        let mut solver = rig.begun(&request).await;
        if older {
            solver = rig.solver().await;
        }
        rig.destination.intrude(&rig.solver_text(), 0);
        rig.mine(10);
        let account = solver.accounts["destination"].clone();
        // The chain counts no more than the store.
        assert_eq!((account.vouch().await, solver.behind()), (Ok(()), None));
        if older {
            for _ in 0..3 {
                let _behind = solver.advance(&request.id, rig.now).await;
                rig.mine(1);
            }
            let claim = rig.claim(&request).await;
            assert_eq!((claim.legs.len(), claim.legs[0].stage), (1, Stage::Open));
            assert_eq!(rig.facts(&request).await.failure, None);
            // The count of the chain does not make the store current again.
            let behind = SolverError::Behind("destination".into());
            assert_eq!(account.vouch().await, Err(behind.clone()));
            assert_eq!(solver.behind(), Some("destination"));
            assert_eq!(solver.advance(&other.id, rig.now).await, Err(behind));
            assert_eq!(rig.claim(&other).await.legs, []);
            rig.mine(3);
            assert_eq!(rig.origin.paid(request.order_id), []);
            // It is no copy: the key's owner used that nonce elsewhere.
            assert_eq!(account.heal(rig.now / 1_000).await, Ok(vec![]));
            assert_eq!((account.vouch().await, solver.behind()), (Ok(()), None));
        }
        rig.settle_by(&solver, &request).await;
        let failure = rig.facts(&request).await.failure;
        assert_eq!(failure, Some(FailReason::TransactionNotIncluded));
        assert_eq!(rig.destination.paid(request.order_id), []);
        rig.refunded(request.order_id, 1);
        rig.settle_by(&solver, &other).await;
        rig.filled(other.order_id, 2);
    }
}

/// What uses up a gap pays nobody: the next process makes nothing of it that somebody else's transaction did.
#[tokio::test]
async fn a_gap_that_somebody_else_closes_shows_no_older_copy() {
    let mut rig = Rig::new();
    let first = rig.funded(1).await;
    rig.settle(&first).await;
    rig.rest().await;
    rig.destination.collapse(24);
    let solver = rig.solver().await;
    let healed = solver.accounts["destination"].heal(rig.now / 1_000).await;
    assert_eq!(healed, Ok(vec!["0".into()]));
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    assert_eq!(account.attempts().await.unwrap().len(), 1);
    rig.destination.intrude(&rig.solver_text(), 0);
    rig.mine(10);
    account.sweep(rig.now / 1_000).await.unwrap();
    assert_eq!(account.attempts().await.unwrap(), []);
    assert_eq!((account.vouch().await, solver.behind()), (Ok(()), None));
}

/// A lie of a moment that enough providers tell, or a provider that is away.
#[tokio::test]
async fn a_store_that_is_current_pays_as_soon_as_the_chain_says_so() {
    let mut rig = Rig::new();
    let first = rig.funded(1).await;
    rig.settle(&first).await;
    let second = rig.funded(2).await;
    rig.destination.with(|world| world.everybody_lies = true);
    rig.lie(Lies {
        nonce: 3,
        ..Lies::default()
    });
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    assert!(account.vouch().await.is_err() && account.is_behind());
    rig.lie(Lies::default());
    assert_eq!((account.vouch().await, solver.behind()), (Ok(()), None));
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
}

#[tokio::test]
async fn a_nonce_that_a_deep_reorg_took_is_used_up_by_the_operator() {
    let mut rig = Rig::new();
    let first = rig.funded(1).await;
    rig.settle(&first).await;
    rig.rest().await;
    rig.destination.collapse(24);
    assert_eq!(rig.destination.paid(first.order_id), []);
    let second = rig.funded(2).await;
    rig.begun(&second).await;
    rig.rest().await;
    let solver = rig.begun(&second).await;
    assert_eq!(rig.destination.paid(second.order_id), []);
    let account = &solver.accounts["destination"];
    assert_eq!(account.summary().await.unwrap().gaps, ["0"]);
    assert_eq!(account.heal(rig.now / 1_000).await, Ok(vec!["0".into()]));
    assert_eq!(account.heal(rig.now / 1_000).await, Ok(vec![]));
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
    rig.rest().await;
    rig.is_clean().await;
}

#[tokio::test]
async fn what_no_node_ever_takes_frees_its_place_at_once_and_costs_its_order() {
    let mut rig = Rig::new();
    rig.destination.with(|world| world.never = true);
    let (first, second) = (rig.funded(1).await, rig.quote(2, |_| ()).await);
    let solver = rig.begun(&first).await;
    // The nonce is being used up already: nobody waits for twenty refusals.
    let attempts = solver.accounts["destination"].attempts().await.unwrap();
    assert!(attempts[0].1.signed.last().unwrap().cancels);
    rig.destination.with(|world| world.never = false);
    rig.deposit(&second, |_| ()).await;
    rig.settle(&second).await;
    rig.filled(second.order_id, 2);
    rig.settle(&first).await;
    let facts = rig.facts(&first).await;
    assert_eq!(facts.failure, Some(FailReason::TransactionSubmissionFailed));
    assert_eq!(rig.status(&first).await, Status::Refund);
    assert_eq!(rig.destination.paid(first.order_id), []);
    rig.is_clean().await;
}

#[tokio::test]
async fn what_is_too_large_for_the_chain_is_given_back_before_it_takes_a_nonce() {
    let mut rig = Rig::new();
    let request = rig
        .quote(1, |request| {
            for _ in 0..40 {
                super::routed(request, 1);
            }
        })
        .await;
    rig.deposit(&request, |_| ()).await;
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::TransactionSubmissionFailed));
    assert_eq!(rig.origin.paid(request.order_id)[0].0, refundee(1));
    let shown = rig.solver().await.accounts["destination"]
        .summary()
        .await
        .unwrap();
    assert_eq!(shown.next, None);
    rig.is_clean().await;
}

#[tokio::test]
async fn a_cancellation_takes_what_its_chain_asks() {
    let mut rig = Rig::new();
    for chain in [&rig.origin, &rig.destination] {
        chain.with(|world| world.plain = 29_000);
    }
    rig.destination.with(|world| world.refuse = true);
    let request = rig.funded(1).await;
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::TransactionSubmissionFailed));
    assert_eq!(rig.status(&request).await, Status::Refund);
    rig.is_clean().await;
}

#[tokio::test]
async fn gas_that_is_burnt_only_when_it_costs_something_is_seen_before_the_fill() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.destination
        .with(|world| world.burners.insert(request.order_id));
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::QuotedGasLimitExceeded));
    assert!(
        facts
            .attempts
            .iter()
            .all(|one| !matches!(one.state, State::Reverted { .. }))
    );
    assert_eq!(
        rig.destination.spent_on_gas(),
        alloy::primitives::U256::ZERO
    );
    assert_eq!(rig.status(&request).await, Status::Refund);
}

#[tokio::test]
async fn a_fill_burns_no_more_gas_than_was_charged_for() {
    let mut rig = Rig::new();
    // 21,000 units were charged for.
    rig.destination
        .with(|world| (world.plain, world.byte) = (33_700, 0));
    let request = rig.funded(1).await;
    rig.settle(&request).await;
    let facts = rig.facts(&request).await;
    assert_eq!(facts.failure, Some(FailReason::QuotedGasLimitExceeded));
    rig.destination.with(|world| world.plain = 33_000);
    let other = rig.funded(2).await;
    let solver = rig.begun(&other).await;
    let attempts = solver.accounts["destination"].attempts().await.unwrap();
    let signed = vm::ethereum::trade::priced(&attempts[0].1.own).unwrap();
    assert_eq!(signed[0].gas, 33_625);
    rig.settle(&other).await;
    rig.filled(other.order_id, 2);
}

#[tokio::test]
async fn nothing_is_traded_where_the_market_file_is_not_what_the_chain_says() {
    type Change = fn(&mut super::chain::World);
    let changes: [(&str, Change); 5] = [
        ("limits.dataFees", |world| world.charges_for_bytes = true),
        ("token has 18", |world| world.decimals = Some(18)),
        ("no token", |world| world.decimals = None),
        ("not what is shown", |world| world.scaled = true),
        ("hand calls", |world| world.router = super::rig::PROXY),
    ];
    for (what, change) in changes {
        let mut rig = Rig::new();
        let request = rig.funded(1).await;
        rig.destination.with(change);
        let solver = rig.solver().await;
        let chain = &solver.accounts["destination"].chain;
        let unsure = solver
            .available("destination", crate::request::fixtures::USDC)
            .await;
        assert!(unsure.is_ok());
        chain.survey.forget();
        let unsure = chain.sound().unwrap_err();
        assert!(unsure.to_string().contains("not confirmed"), "{unsure}");
        // It waits as for a network that is away.
        for later in [0, 301_000] {
            solver.advance(&request.id, rig.now + later).await.unwrap();
            assert_eq!(rig.facts(&request).await.failure, None);
        }
        chain.survey().await.unwrap();
        let wrong = solver
            .available("destination", crate::request::fixtures::USDC)
            .await;
        assert!(wrong.unwrap_err().to_string().contains(what));
        // The order waits as if there were no funds, and is given back.
        solver.advance(&request.id, rig.now).await.unwrap();
        assert_eq!(rig.claim(&request).await.legs, []);
        rig.mine(160);
        solver.advance(&request.id, rig.now).await.unwrap();
        assert_eq!(rig.destination.waiting(), 0);
        rig.settle(&request).await;
        let facts = rig.facts(&request).await;
        assert_eq!(facts.failure, Some(FailReason::SolverBalanceTooLow));
        rig.refunded(request.order_id, 1);
    }
}

#[tokio::test]
async fn one_liar_of_three_stops_no_network() {
    let rig = Rig::new();
    rig.lie(Lies {
        decimals: Some(18),
        ..Lies::default()
    });
    let solver = rig.solver().await;
    for account in solver.accounts.values() {
        account.chain.survey.forget();
        account.chain.survey().await.unwrap();
        assert_eq!(account.chain.sound(), Ok(()));
    }
}

#[tokio::test]
async fn what_a_former_key_promised_and_was_paying_is_kept_by_the_present_one() {
    let mut rig = Rig::new();
    let (paying, promised, refused) = (
        rig.funded(1).await,
        rig.quote(2, |_| ()).await,
        rig.quote(3, |r| r.referrer = Some("debug-force-refund".into()))
            .await,
    );
    rig.begun(&paying).await;
    rig.destination.forget();
    let before = rig.solver_text();
    rig.rotate();
    rig.deposit(&promised, |_| ()).await;
    rig.deposit(&refused, |_| ()).await;
    for request in [&paying, &promised, &refused] {
        rig.settle(request).await;
    }
    rig.filled(paying.order_id, 1);
    rig.filled(promised.order_id, 2);
    rig.refunded(refused.order_id, 3);
    // The first was being paid by the former account and still is, the others are not.
    let spent = |of: &str| {
        let left = rig
            .destination
            .balance_of(of, crate::request::fixtures::USDC);
        alloy::primitives::U256::from(super::rig::USDC) - left
    };
    let each = alloy::primitives::U256::from(super::PAID);
    assert_eq!((spent(&before), spent(&rig.solver_text())), (each, each));
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    assert_eq!(
        (account.name.clone(), account.summary().await.unwrap().next),
        (
            format!("destination/{}", rig.solver_text()),
            Some("1".into())
        )
    );
    assert_eq!(solver.former.len(), 1);
    rig.is_clean().await;
}

/// The recipient's code can deposit for the order in the payment's transaction. Oracles then believe the order's own solver
/// only.
#[tokio::test]
async fn what_a_former_key_promised_is_not_handed_over_to_code() {
    let pays_native = |request: &mut Request| {
        request.order.output.payments[0].currency = native().into();
    };
    for rotated in [false, true] {
        let mut rig = Rig::new();
        let takes_native = |request: &mut Request| {
            pays_native(request);
            native_deposit(request);
        };
        let filled = rig.quote(1, pays_native).await;
        let given_back = rig.quote(2, takes_native).await;
        if rotated {
            rig.rotate();
        }
        rig.deposit(&filled, |_| ()).await;
        rig.settle(&filled).await;
        if rotated {
            rig.refunded(filled.order_id, 1);
        } else {
            rig.filled(filled.order_id, 1);
        }
        let short = |deposit: &mut Deposit| {
            deposit.currency = native().into();
            deposit.amount = U256::from(99_999_999_999_999_999_u64);
        };
        rig.deposit(&given_back, short).await;
        let solver = rig.solver().await;
        for _ in 0..3 {
            let _waits = solver.advance(&given_back.id, rig.now).await;
            rig.mine(10);
        }
        let begun = rig.claim(&given_back).await.legs.len();
        assert_eq!(begun, usize::from(!rotated), "rotated: {rotated}");
    }
}

#[tokio::test]
async fn what_an_unknown_key_promised_is_not_paid() {
    let mut rig = Rig::new();
    let request = rig.funded(1).await;
    rig.rotate();
    rig.former.clear();
    let solver = rig.solver().await;
    let said = solver.advance(&request.id, rig.now).await;
    assert!(matches!(said, Err(SolverError::Elsewhere(_))), "{said:?}");
    // Nor given back: nobody could sign the claim. It is the operator's at the end.
    rig.now = (u64::from(request.order.output.deadline) + 1) * 1_000;
    let _waits = solver.advance(&request.id, rig.now).await;
    assert_eq!(rig.claim(&request).await.legs, []);
    let refund_by = request.order.inputs[0].refunds[0].deadline;
    rig.now = u64::from(refund_by) * 1_000;
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.claim(&request).await.parked.len(), 1);
    assert_eq!(rig.origin.paid(request.order_id), []);
}

/// Whose authorizations orders carry.
fn delegator() -> PrivateKeySigner {
    PrivateKeySigner::from_bytes(&B256::repeat_byte(7)).unwrap()
}

/// An order with an authorization for a chain, of a nonce.
fn delegating(request: &mut Request, chain: u64, nonce: u64) {
    let address = recipient(9);
    let delegation = Delegation {
        chain_id: U256::from(chain),
        address: address.parse().unwrap(),
        nonce,
    };
    let signed = delegator().sign_hash_sync(&delegation.signature_hash());
    let signed = signed.unwrap();
    request.authorizations = vec![serde_json::json!({
        "chainId": chain, "address": address, "nonce": nonce,
        "yParity": u8::from(signed.v()), "r": signed.r(), "s": signed.s(),
    })];
}

/// The delegator has sent something since the order was quoted.
fn delegator_acts(rig: &mut Rig) {
    let account = format!("{:#x}", delegator().address());
    rig.destination.give(&account, native(), RICH);
    rig.destination.intrude(&account, 0);
    rig.mine(1);
}

/// The operator's market file says by now that the chain takes none.
fn chain_takes_none(rig: &mut Rig) {
    rig.destination.with(|world| world.authorizations = false);
}

/// What was quoted may be stale when the deposit comes.
#[tokio::test]
async fn a_fill_whose_authorization_no_node_takes_any_more_takes_no_nonce() {
    type Happens = fn(&mut Rig);
    let cases: [(&str, (u64, u64), Happens, bool); 7] = [
        ("as it should be", (31_002, 0), |_| (), true),
        ("of any chain", (0, 0), |_| (), true),
        ("of another chain", (31_001, 0), |_| (), false),
        ("of a later nonce", (31_002, 1), |_| (), false),
        ("of the nonce by now", (31_002, 1), delegator_acts, true),
        ("of a nonce before", (31_002, 0), delegator_acts, false),
        ("on a chain of none", (31_002, 0), chain_takes_none, false),
    ];
    for (name, (chain, nonce), happens, taken) in cases {
        let mut rig = Rig::new();
        let change = |request: &mut Request| delegating(request, chain, nonce);
        let request = rig.quote(1, change).await;
        happens(&mut rig);
        rig.deposit(&request, |_| ()).await;
        rig.settle(&request).await;
        let solver = rig.solver().await;
        let shown = solver.accounts["destination"].summary().await.unwrap();
        assert_eq!(shown.next.is_some(), taken, "{name}");
        let sent = rig.destination.with(|world| world.broadcasts.len());
        assert_eq!(sent > 0, taken, "{name}");
        if taken {
            rig.filled(request.order_id, 1);
            continue;
        }
        let failure = rig.facts(&request).await.failure;
        assert_eq!(failure, Some(FailReason::TransactionSubmissionFailed));
        rig.refunded(request.order_id, 1);
    }
}

/// The lanes here may pay 100,000 for a unit of gas, tip included.
#[tokio::test]
async fn above_the_operators_limit_for_gas_nothing_is_sent() {
    for (base, sent) in [(99_990, 1), (99_991, 0)] {
        let mut rig = Rig::new();
        let request = rig.funded(1).await;
        rig.destination.with(|world| world.base = base);
        let solver = rig.solver().await;
        let _dear = solver.advance(&request.id, rig.now).await;
        assert_eq!(rig.destination.waiting(), sent, "{base}");
        assert_eq!(rig.facts(&request).await.failure, None);
        drop(solver);
        rig.destination.with(|world| world.base = 100);
        rig.settle(&request).await;
        rig.filled(request.order_id, 1);
    }
}

#[tokio::test]
async fn what_bytes_cost_is_paid_up_to_twice_the_charge_and_waited_for_a_while() {
    let charged = 1_000_000_u64;
    for (asked, filled) in [(charged, true), (2 * charged, true), (5 * charged, false)] {
        let mut rig = Rig::new();
        rig.destination.with(|world| world.data_fee = Some(asked));
        let change = |request: &mut Request| {
            request.fill_besides = alloy::primitives::U256::from(charged);
        };
        let request = rig.quote(1, change).await;
        rig.deposit(&request, |_| ()).await;
        rig.begun(&request).await;
        assert_eq!(rig.destination.waiting(), usize::from(filled), "{asked}");
        if filled {
            rig.settle(&request).await;
            rig.filled(request.order_id, 1);
            continue;
        }
        // One bad minute ends no order: the price comes back in time.
        rig.destination.with(|world| world.data_fee = Some(charged));
        rig.settle(&request).await;
        rig.filled(request.order_id, 1);
    }
}

#[tokio::test]
async fn what_a_chain_takes_for_bytes_is_kept_for_them() {
    let mut rig = Rig::new();
    let fee = u64::try_from(super::rig::RICH).unwrap() / 2;
    rig.destination.with(|world| world.data_fee = Some(fee));
    let change = |request: &mut Request| {
        request.fill_besides = alloy::primitives::U256::from(fee);
    };
    let request = rig.quote(1, change).await;
    rig.deposit(&request, |_| ()).await;
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    // Gas and bytes together are more than is there: no nonce is taken for what no node would take.
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(account.attempts().await.unwrap(), []);
    let text = rig.solver_text();
    rig.destination
        .give(&text, super::rig::native(), 4 * super::rig::RICH);
    solver.advance(&request.id, rig.now).await.unwrap();
    assert_eq!(rig.destination.waiting(), 1);
    let reserved = account.reserved(&account.chain.native).await.unwrap();
    assert!(reserved > alloy::primitives::U256::from(super::rig::RICH));
    drop(solver);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
}

#[tokio::test]
async fn a_chain_without_a_market_file_is_asked_what_it_takes_for_bytes() {
    let rig = Rig::new();
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    let draft = Draft::call(Call::nothing(&account.owner));
    let trial = Trial::free(&draft);
    for (charges, wanted) in [(false, 0), (true, 7)] {
        let fees = rig.destination.unlisted_providers().fees;
        rig.destination.with(|world| {
            (world.charges_for_bytes, world.data_fee) = (charges, Some(7));
        });
        let fee = fees.besides(&trial).await.unwrap();
        assert_eq!(fee, alloy::primitives::U256::from(wanted));
        // It is what it is: nothing but the price is asked again.
        rig.destination
            .with(|world| world.charges_for_bytes = !charges);
        assert_eq!(fees.besides(&trial).await.unwrap(), fee);
    }
}

#[tokio::test]
async fn an_order_whose_bytes_stay_too_dear_is_given_back() {
    let mut rig = Rig::new();
    rig.destination
        .with(|world| world.data_fee = Some(5_000_000));
    rig.worth = Ok(crate::solver::repricing::Repriced::Nothing);
    let request = rig.funded(1).await;
    rig.begun(&request).await;
    assert_eq!(rig.destination.waiting(), 0);
    // The price decides, with what they cost then.
    rig.now += 301_000;
    rig.settle(&request).await;
    let failure = rig.facts(&request).await.failure;
    assert_eq!(failure, Some(FailReason::Slippage));
    assert_eq!(rig.destination.paid(request.order_id), []);
    rig.refunded(request.order_id, 1);
}

#[tokio::test]
async fn nobody_is_allowed_anything_before_the_chain_confirms_the_market_file() {
    let rig = Rig::new();
    let solver = rig.solver().await;
    let account = &solver.accounts["destination"];
    account.chain.survey.forget();
    assert_eq!(solver.approve_ahead(account, rig.now).await, Ok(false));
    rig.destination
        .with(|world| world.router = super::rig::PROXY);
    account.chain.survey().await.unwrap();
    assert_eq!(solver.approve_ahead(account, rig.now).await, Ok(true));
    assert_eq!(rig.destination.waiting(), 0);
    rig.destination
        .with(|world| world.router = super::rig::ROUTER);
    account.chain.survey().await.unwrap();
    assert_eq!(solver.approve_ahead(account, rig.now).await, Ok(false));
    assert_eq!(rig.destination.waiting(), 1);
}

#[tokio::test]
async fn a_network_on_which_the_solver_does_not_work_is_not_sound() {
    let solver = Rig::new().solver().await;
    assert_eq!(solver.sound("origin"), Ok(()));
    assert!(matches!(
        solver.sound("nowhere"),
        Err(SolverError::Elsewhere(_))
    ));
}

#[test]
fn a_price_that_holds_by_sightings_needs_memory_pools() {
    let script = vm::testing::Script::at(1);
    let chain = index::fixtures::chain("origin", &script);
    let mut origin = network("origin", 31_001, Caps::default());
    for (waiting, traded) in [(None, true), (Some(600), false)] {
        origin.currencies[0].price_holds = Some(PriceHolds {
            seconds: 60,
            waiting,
            spread: 0,
        });
        let opened = providers(&origin, &chain, vec![script.trading()], 1);
        let refused = matches!(opened, Err(TradingChainError::NoMempool(_)));
        assert_eq!((opened.is_ok(), refused), (traded, !traded));
    }
}

/// Where nobody's code runs, a payment takes what the solver has at hand: strangers' orders may hold the better part.
#[tokio::test]
async fn a_payment_whose_work_is_the_solvers_own_affair_waits_until_it_takes_less() {
    let mut rig = Rig::new();
    rig.destination.with(|world| {
        (world.plain, world.byte) = (33_700, 0);
        world.without_code = true;
    });
    let request = rig.funded(1).await;
    let solver = rig.solver().await;
    for _ in 0..5 {
        solver.advance(&request.id, rig.now).await.unwrap();
        rig.mine(1);
    }
    assert_eq!(rig.facts(&request).await.failure, None);
    rig.destination.with(|world| world.plain = 33_000);
    rig.settle(&request).await;
    rig.filled(request.order_id, 1);
    // It does not wait for ever.
    rig.destination.with(|world| world.plain = 33_700);
    let other = rig.funded(2).await;
    rig.solver()
        .await
        .advance(&other.id, rig.now)
        .await
        .unwrap();
    rig.now += 300_000;
    rig.settle(&other).await;
    let facts = rig.facts(&other).await;
    assert_eq!(facts.failure, Some(FailReason::QuotedGasLimitExceeded));
    assert_eq!(rig.status(&other).await, Status::Refund);
}
