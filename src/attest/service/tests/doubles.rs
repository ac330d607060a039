//! Orders with more than one deposit, and strangers who claim first.

use super::*;
use crate::attest::statement::Outcome;

/// A salt that requires the solver's signature in every claim.
const OURS: &str = "0xb7064203155a802ad4966746909a304700000000000000000000000000000001";

/// An order with two deposits: the first is filled, the second refunded.
struct Double {
    world: World,
    first: Fixture,
    second: Fixture,
}

impl Double {
    async fn of(fixture: Fixture) -> Self {
        let world = world().playing(&fixture);
        let second = deposited_again(&world, &fixture, 1_000).await;
        Self {
            world,
            first: fixture,
            second,
        }
    }

    /// The claim with the solver's signature.
    async fn by_solver(&self, fixture: &Fixture, outcome: Outcome) -> &'static str {
        let (terms, funded) = fixture.funded().unwrap();
        let word = fixtures::vouch(outcome, &terms, &funded);
        self.claim(fixture, outcome, Some(word)).await
    }

    async fn by_stranger(&self, fixture: &Fixture, outcome: Outcome) -> &'static str {
        self.claim(fixture, outcome, None).await
    }

    async fn claim(
        &self,
        fixture: &Fixture,
        outcome: Outcome,
        vouched: Option<String>,
    ) -> &'static str {
        let oracle = &self.world.oracle;
        word(match outcome {
            Outcome::Fill => {
                let mut claim = fill_claim(fixture);
                claim.order.solver_signature = vouched;
                oracle.fill(&claim, None).await
            }
            Outcome::Refund => {
                let mut claim = refund_claim(fixture);
                claim.order.solver_signature = vouched;
                oracle.refund(&claim, None).await
            }
        })
    }
}

/// An order like those of our own solver, with a fee, so that fill and refund move different amounts.
fn ours() -> Fixture {
    Fixture::ordering(|order| {
        with_fee(order);
        order.salt = OURS.into();
    })
}

#[tokio::test]
async fn nobody_but_the_solver_says_which_deposit_a_payment_is_for() {
    use Outcome::{Fill, Refund};
    // Before the solver's claim of the fill, and after it: each pairing of payment and deposit.
    for before in [true, false] {
        let double = Double::of(ours()).await;
        let (first, second) = (&double.first, &double.second);
        if !before {
            assert_eq!(double.by_solver(first, Fill).await, "OK");
        }
        for (fixture, outcome) in [(first, Refund), (second, Fill), (first, Fill)] {
            let refused = double.by_stranger(fixture, outcome).await;
            assert_eq!(refused, "SOLVER_SIGNATURE_REQUIRED", "{outcome} {before}");
        }
        assert_eq!(double.by_solver(first, Fill).await, "OK", "{before}");
        assert_eq!(double.by_solver(second, Refund).await, "OK", "{before}");
    }
}

#[tokio::test]
async fn one_deposit_of_an_order_without_that_salt_is_claimed_by_anybody() {
    let double = Double::of(Fixture::new()).await;
    let claimed = double.by_stranger(&double.first, Outcome::Fill).await;
    assert_eq!(claimed, "OK");
}

/// What is no id as claims spell it names a deposit all the same.
#[tokio::test]
async fn the_solvers_word_counts_however_its_deposits_are_spelled() {
    let fixture = ours();
    let world = world().playing(&fixture);
    let (terms, funded) = fixture.funded().unwrap();
    let signature = fixtures::vouch(Outcome::Fill, &terms, &funded);
    let wrong = fixtures::vouch(Outcome::Refund, &terms, &funded);
    let spellings: [fn(&str) -> String; 3] = [
        str::to_owned,
        |id| id.replace("0x", "0X"),
        |id| format!("0x{}", id[2..].to_uppercase()),
    ];
    for spelled in spellings {
        for (signature, expected) in [(&signature, "OK"), (&wrong, "SOLVER_SIGNATURE_INVALID")] {
            let mut claim = fill_claim(&fixture);
            for named in &mut claim.order.inputs {
                named.input.onchain_id = spelled(&named.input.onchain_id);
            }
            claim.order.solver_signature = Some(signature.clone());
            let found = word(world.oracle.fill(&claim, None).await);
            assert_eq!(found, expected, "{:?}", claim.order.inputs[0].input);
        }
    }
}

/// The claim with the inputs of its two deposits exchanged.
fn crosswise(fixture: &Fixture) -> Fixture {
    fixture.clone().with(|fixture| {
        for input in &mut fixture.inputs {
            input.index = 1 - input.index;
        }
    })
}

/// Two inputs of one chain and currency, with deposits that fit either; a stranger may also reuse the solver's
/// signature.
#[tokio::test]
async fn inputs_named_crosswise_bar_no_true_claim() {
    for (salt, second) in [("1", "1000"), (OURS, "1000"), (OURS, "500")] {
        let fixture = Fixture::ordering(|order| {
            with_fee(order);
            order.salt = salt.into();
            let mut again = order.inputs[0].clone();
            again.payment.amount = second.into();
            order.inputs.push(again);
        });
        let (terms, funded) = fixture.funded().unwrap();
        let word = (salt == OURS).then(|| fixtures::vouch(Outcome::Fill, &terms, &funded));
        let claim = |fixture: &Fixture| {
            let mut claim = fill_claim(fixture);
            claim.order.solver_signature = word.clone();
            claim
        };
        let world = world().playing(&fixture);
        let stranger = claim(&crosswise(&fixture));
        let stranger = world.oracle.fill(&stranger, None).await.unwrap();
        let solver = world.oracle.fill(&claim(&fixture), None).await.unwrap();
        assert_eq!(solver.attested, stranger.attested, "{salt} {second}");
        // Two deposits and the fee.
        assert_eq!(solver.attested.execution.actions.len(), 3);
    }
}

/// Without the solver's signature a claim cannot name a deposit for the other input if it fits only one.
#[tokio::test]
async fn a_deposit_that_falls_short_of_an_input_is_not_named_for_it() {
    let fixture = Fixture::ordering(|order| {
        let mut again = order.inputs[0].clone();
        again.payment.amount = "500".into();
        order.inputs.push(again);
    });
    let world = world().playing(&fixture);
    let refused = word(world.fill(&crosswise(&fixture)).await);
    assert_eq!(refused, "SOLVER_SIGNATURE_REQUIRED");
    assert_eq!(word(world.fill(&fixture).await), "OK");
}

/// The order's deposit number `deposit` with its payment number `payment`; payment 0 is the fill.
fn paired(fixture: &Fixture, deposits: &[Fixture], (deposit, payment): (usize, usize)) -> Fixture {
    let mut paired = deposits[deposit].clone();
    paired.refunded[0].tx = fixtures::tx(0xe0 + payment as u8);
    paired.fill = fixture.fill.clone();
    paired
}

/// Whatever strangers claim before, between and after: for an order that requires no signature, every true claim is
/// signed in the end, and no more deposits are moved than were paid for.
#[tokio::test]
async fn no_order_of_claims_bars_a_true_one() {
    for seed in 0..64_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % below
        };
        let fixture = Fixture::new();
        let world = world().playing(&fixture);
        let mut deposits = vec![fixture.clone()];
        for number in 1..4 {
            deposits.push(deposited_as(&world, &fixture, (0x70 + number, 1_000)).await);
        }
        for payment in 1..3 {
            let mut refunded = fixture.refunded[0].clone();
            refunded.tx = fixtures::tx(0xe0 + payment);
            world.ethereum.add(&refunded);
        }
        let claim = async |pair: (usize, usize)| {
            let paired = paired(&fixture, &deposits, pair);
            word(match pair.1 {
                0 => world.fill(&paired).await,
                _ => world.refund(&paired).await,
            })
        };
        // The solver repeats its three claims until each is signed; strangers claim in between. The fourth deposit
        // has no payment.
        let mut open = vec![(0, 0), (1, 1), (2, 2)];
        let mut rounds = 0;
        while !open.is_empty() {
            rounds += 1;
            assert!(rounds < 40, "seed {seed}: {open:?} are never signed");
            if rounds < 12 && next(2) == 0 {
                claim((next(3), next(3))).await;
                continue;
            }
            let at = next(open.len());
            if claim(open[at]).await == "OK" {
                open.remove(at);
            }
        }
        for payment in 0..3 {
            assert_eq!(claim((3, payment)).await, "conflict", "seed {seed}");
        }
    }
}
