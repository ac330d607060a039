use vm::protocol::order::vouched_salt;

use super::*;
use crate::attest::deposit;
use crate::attest::fixtures::{
    self, DEADLINE, DEPOSITOR, Fixture, NATIVE, RECIPIENT, REFUND_DEADLINE, ROUTER, TOKEN,
};

/// The refusal and the change that causes it.
type Case = (&'static str, fn(&mut Trial));

/// A planned payment of `amount` to `recipient` in `currency`.
struct Trial {
    fixture: Fixture,
    chain: &'static str,
    recipient: &'static str,
    currency: &'static str,
    amount: u64,
    by: u64,
    from: Address,
    router: Option<Address>,
    routers: FillRouters,
}

impl Trial {
    fn fill(fixture: Fixture) -> Self {
        Self {
            fixture,
            chain: "base",
            recipient: RECIPIENT,
            currency: NATIVE,
            amount: 900,
            by: DEADLINE,
            from: fixtures::sender(),
            router: None,
            routers: FillRouters::Any,
        }
    }

    fn refund(fixture: Fixture) -> Self {
        Self {
            chain: "ethereum",
            recipient: DEPOSITOR,
            ..Self::fill(fixture)
        }
    }

    fn judge(&self, refund: bool) -> Result<Attestable, Refusal> {
        let deposits = self.fixture.deposits.iter().zip(&self.fixture.inputs);
        let funding = deposits.map(|(read, input)| Funding {
            input: input.index,
            message: deposit::settled(&read.seen()).unwrap().remove(0),
        });
        let funding: Vec<Funding> = funding.collect();
        let plan = Plan {
            order: &self.fixture.order,
            families: &fixtures::families,
            routers: &self.routers,
            deposits: &funding,
            tolerance: Tolerance::default(),
        };
        let (recipient, currency) = (
            fixtures::address(self.recipient),
            fixtures::address(self.currency),
        );
        let due = [Due {
            recipient: &recipient,
            currency: &currency,
            amount: Amount::from(self.amount),
        }];
        let planned = Planned {
            chain: self.chain,
            by: self.by,
            from: &self.from,
            router: self.router.as_ref(),
            payments: &due,
            calls: &[],
        };
        match refund {
            false => plan.fill(&planned),
            true => plan.refund(&self.fixture.refunds, &[planned]),
        }
    }

    fn code(&self, refund: bool) -> &'static str {
        match self.judge(refund) {
            Ok(Attestable { to_sign: None, .. }) => "OK",
            Ok(_) => "SIGN",
            Err(refusal) => refusal.code(),
        }
    }
}

fn filling(change: impl FnOnce(&mut Trial)) -> &'static str {
    let mut trial = Trial::fill(Fixture::new());
    change(&mut trial);
    trial.code(false)
}

fn refunding(change: impl FnOnce(&mut Trial)) -> &'static str {
    let mut trial = Trial::refund(Fixture::new());
    change(&mut trial);
    trial.code(true)
}

#[test]
fn planned_payment_is_judged_as_its_claim_will_be() {
    assert_eq!(filling(|_| {}), "OK");
    assert_eq!(refunding(|_| {}), "OK");
    let router = || Some(fixtures::address(ROUTER));
    assert_eq!(filling(|t| t.router = router()), "OK");
    assert_eq!(
        filling(|t| t.router = Some(fixtures::address(TOKEN))),
        "FILL_INSUFFICIENT"
    );
    let listed = |routers: &[&str]| {
        let routers = routers.iter().map(|it| fixtures::address(it)).collect();
        filling(|t| (t.router, t.routers) = (router(), FillRouters::Listed(routers)))
    };
    assert_eq!(listed(&[TOKEN, ROUTER]), "OK");
    assert_eq!(listed(&[TOKEN]), "FILL_ROUTER_NOT_LISTED");
    assert_eq!(filling(|t| t.amount = 899), "FILL_INSUFFICIENT");
    assert_eq!(filling(|t| t.recipient = DEPOSITOR), "FILL_INSUFFICIENT");
    assert_eq!(filling(|t| t.currency = TOKEN), "FILL_INSUFFICIENT");
    assert_eq!(filling(|t| t.by = DEADLINE + 1), "AFTER_DEADLINE");
    assert_eq!(filling(|t| t.chain = "nochain"), "CHAIN_NOT_AVAILABLE");
    assert_eq!(refunding(|t| t.amount = 899), "REFUND_INSUFFICIENT");
    assert_eq!(refunding(|t| t.by = REFUND_DEADLINE), "OK");
    let late = refunding(|t| t.by = REFUND_DEADLINE + 1);
    assert_eq!(late, "AFTER_DEADLINE");
    assert_eq!(refunding(|t| t.fixture.refunds.clear()), "REFUND_MISSING");
}

#[test]
fn deposit_that_no_claim_can_name_is_not_paid_for() {
    let cases: &[Case] = &[
        ("INPUT_CURRENCY_MISMATCH", |t| {
            t.fixture.deposits[0].deposits()[0].currency = fixtures::address(TOKEN);
        }),
        ("DEPOSIT_NAMED_BY_OTHER", |t| {
            t.fixture.deposits[0].deposits()[0].named_by_other = true;
        }),
        ("INPUT_CHAIN_MISMATCH", |t| {
            t.fixture.deposits[0].spec = fixtures::spec("base");
        }),
        ("INPUT_INVALID", |t| {
            t.fixture.deposits[0].deposits()[0].id = B256::ZERO.to_string().into();
        }),
        ("INPUT_MISSING", |t| t.fixture.inputs[0].index = 1),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        assert_eq!(filling(change), *code, "fill {at}");
        assert_eq!(refunding(change), *code, "refund {at}");
    }
}

#[test]
fn short_deposit_and_strange_payer_need_the_solvers_word() {
    let short = |t: &mut Trial| t.fixture.deposits[0].deposits()[0].amount = Amount::from(989);
    assert_eq!(filling(short), "SIGN");
    assert_eq!(refunding(short), "SIGN");
    let tolerated = |t: &mut Trial| t.fixture.deposits[0].deposits()[0].amount = Amount::from(990);
    assert_eq!(filling(tolerated), "OK");
    let strange = |t: &mut Trial| t.from = fixtures::address(TOKEN);
    assert_eq!(filling(strange), "OK");
    assert_eq!(refunding(strange), "SIGN");
    let fixture = Fixture::new().with(|s| s.deposits[0].deposits()[0].amount = Amount::from(500));
    let attestable = Trial::fill(fixture.clone()).judge(false).unwrap();
    let (terms, funded) = fixture.funded().unwrap();
    let claim = backing::claim_id(Outcome::Fill, &terms, &funded);
    assert_eq!(attestable.to_sign, Some(claim));
    let asked = |order: &mut Order| order.salt = vouched_salt([1; 16]).to_string();
    let ours = Trial::fill(Fixture::ordering(asked));
    assert_eq!(
        (
            ours.code(false),
            refunding(|t| t.fixture = Fixture::ordering(asked))
        ),
        ("SIGN", "SIGN")
    );
    assert_eq!(attestable.difference.to_string(), "-500000000000000000");
}

/// The oracle's judgement of a trial's payment in a block, with the solver's signature if the plan requires it.
fn attested(trial: &Trial, refund: bool, word: bool) -> Result<(), Refusal> {
    let mut fixture = trial.fixture.clone();
    fixture.vouched = word;
    let id = fixture.id();
    let mut read = fixtures::Read::new(trial.chain, 0xaa);
    let native = trial.currency == NATIVE;
    let kind = match &trial.router {
        Some(router) if native => PaymentKind::Router(router.clone()),
        Some(router) => PaymentKind::TransferBy(router.clone()),
        None if native => PaymentKind::Direct { order: id },
        None => PaymentKind::Transfer,
    };
    read.receipt().references = vec![id.to_string().into()];
    read.receipt().sender = Some(trial.from.clone());
    read.receipt().block.time = trial.by;
    read.head.block.time = trial.by + 1_000;
    read.pay(kind, trial.recipient, trial.currency, trial.amount);
    match refund {
        false => fixture.fill = read,
        true => fixture.refunded = vec![read],
    }
    match refund {
        false => fixture.judge_fill().map(drop),
        true => fixture.judge_refund().map(drop),
    }
}

/// The oracle judges a payment as its plan was judged.
#[test]
fn what_is_planned_is_attested_and_nothing_else() {
    let asking = |order: &mut Order| order.salt = vouched_salt([1; 16]).to_string();
    let deposited = |fixture: &Fixture, amount: u64| {
        let amount = Amount::from(amount);
        let change = |s: &mut Fixture| s.deposits[0].deposits()[0].amount = amount;
        fixture.clone().with(change)
    };
    let variants = [Fixture::new(), Fixture::ordering(asking)];
    let variants = variants
        .iter()
        .flat_map(|fixture| [1, 989, 990, 1_000, 2_000].map(|n| deposited(fixture, n)));
    let senders = [fixtures::sender(), fixtures::address(TOKEN)];
    let routers = [
        None,
        Some(fixtures::address(ROUTER)),
        Some(fixtures::address(TOKEN)),
    ];
    let (mut paid, mut refused) = (0, 0);
    for fixture in variants {
        for case in 0..5 * 2 * 2 * 2 * 2 * 3 {
            let (amount, rest) = ([1, 899, 900, 1_000, 1_800][case % 5], case / 5);
            let mut trial = Trial::fill(fixture.clone());
            trial.amount = amount;
            trial.from = senders[rest % 2].clone();
            trial.recipient = [RECIPIENT, DEPOSITOR][rest / 2 % 2];
            trial.currency = [NATIVE, TOKEN][rest / 4 % 2];
            trial.router = routers[rest / 16 % 3].clone();
            for refund in [false, true] {
                let (chain, by) = match refund {
                    true => ("ethereum", REFUND_DEADLINE),
                    false => ("base", DEADLINE),
                };
                (trial.chain, trial.by) = (chain, by + (rest / 8 % 2) as u64);
                let planned = trial.judge(refund);
                let word = planned.as_ref().is_ok_and(|it| it.to_sign.is_some());
                let verdict = attested(&trial, refund, word);
                let code = |refusal: &Refusal| refusal.code();
                assert_eq!(
                    planned.as_ref().err().map(code),
                    verdict.as_ref().err().map(code),
                    "{case} {refund}"
                );
                match verdict {
                    Ok(()) => paid += 1,
                    // The refusal does not come from a missing solver signature.
                    Err(_) => {
                        refused += 1;
                        assert!(attested(&trial, refund, true).is_err(), "{case} {refund}");
                    }
                }
            }
        }
    }
    assert!(paid > 100 && refused > 100, "{paid} {refused}");
}
