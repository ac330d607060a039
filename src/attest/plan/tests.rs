use super::*;
use crate::attest::scene::{self, DEADLINE, DEPOSITOR, NATIVE, RECIPIENT, ROUTER, Scene, TOKEN};

/// The refusal and the change that causes it.
type Case = (&'static str, fn(&mut Trial));

/// What the planned payment of `amount` to `recipient` of `currency` would be refused with.
struct Trial {
    scene: Scene,
    chain: &'static str,
    recipient: &'static str,
    currency: &'static str,
    amount: u64,
    by: u64,
    from: Address,
    router: Option<Address>,
}

impl Trial {
    fn fill(scene: Scene) -> Self {
        Self {
            scene,
            chain: "base",
            recipient: RECIPIENT,
            currency: NATIVE,
            amount: 900,
            by: DEADLINE,
            from: scene::sender(),
            router: None,
        }
    }

    fn refund(scene: Scene) -> Self {
        Self {
            chain: "ethereum",
            recipient: DEPOSITOR,
            ..Self::fill(scene)
        }
    }

    fn judge(&self, refund: bool) -> Result<Attestable, Refusal> {
        let funding: Vec<Funding<'_>> = self
            .scene
            .deposits
            .iter()
            .zip(&self.scene.inputs)
            .map(|(read, input)| Funding {
                input: input.index,
                onchain_id: input.onchain_id.parse().unwrap(),
                seen: read.seen(),
            })
            .collect();
        let plan = Plan {
            order: &self.scene.order,
            signature: &self.scene.signature,
            families: &scene::families,
            deposits: &funding,
            tolerance: Tolerance::default(),
        };
        let (recipient, currency) = (
            scene::address(self.recipient),
            scene::address(self.currency),
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
            true => plan.refund(&self.scene.refunds, &[planned]),
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
    let mut trial = Trial::fill(Scene::new());
    change(&mut trial);
    trial.code(false)
}

fn refunding(change: impl FnOnce(&mut Trial)) -> &'static str {
    let mut trial = Trial::refund(Scene::new());
    change(&mut trial);
    trial.code(true)
}

#[test]
fn planned_payment_is_judged_as_its_claim_will_be() {
    assert_eq!(filling(|_| {}), "OK");
    assert_eq!(refunding(|_| {}), "OK");
    let router = || Some(scene::address(ROUTER));
    assert_eq!(filling(|t| t.router = router()), "OK");
    assert_eq!(
        filling(|t| t.router = Some(scene::address(TOKEN))),
        "FILL_INSUFFICIENT"
    );
    assert_eq!(filling(|t| t.amount = 899), "FILL_INSUFFICIENT");
    assert_eq!(filling(|t| t.recipient = DEPOSITOR), "FILL_INSUFFICIENT");
    assert_eq!(filling(|t| t.currency = TOKEN), "FILL_INSUFFICIENT");
    assert_eq!(filling(|t| t.by = DEADLINE + 1), "AFTER_DEADLINE");
    assert_eq!(filling(|t| t.chain = "nochain"), "CHAIN_NOT_AVAILABLE");
    assert_eq!(refunding(|t| t.amount = 899), "REFUND_INSUFFICIENT");
    assert_eq!(refunding(|t| t.by = DEADLINE + 1), "AFTER_DEADLINE");
    assert_eq!(refunding(|t| t.scene.refunds.clear()), "REFUND_MISSING");
    let unsigned = |t: &mut Trial| t.scene.signature = "0x".into();
    assert_eq!(filling(unsigned), "ORDER_SIGNATURE_INVALID");
    assert_eq!(refunding(unsigned), "ORDER_SIGNATURE_INVALID");
}

#[test]
fn deposit_that_no_claim_can_name_is_not_paid_for() {
    let cases: &[Case] = &[
        ("INPUT_CURRENCY_MISMATCH", |t| {
            t.scene.deposits[0].deposits()[0].currency = scene::address(TOKEN);
        }),
        ("INPUT_CHAIN_MISMATCH", |t| {
            t.scene.deposits[0].spec = scene::spec("base");
        }),
        ("TRANSACTION_NOT_FINALIZED", |t| {
            t.scene.deposits[0].head.block.number = 19;
        }),
        ("TRANSACTION_REVERTED", |t| {
            t.scene.deposits[0].found = scene::failed();
        }),
        ("INPUT_INVALID", |t| {
            t.scene.inputs[0].onchain_id = B256::ZERO.to_string();
        }),
        ("INPUT_MISSING", |t| t.scene.inputs[0].index = 1),
    ];
    for (at, (code, change)) in cases.iter().enumerate() {
        assert_eq!(filling(change), *code, "fill {at}");
        assert_eq!(refunding(change), *code, "refund {at}");
    }
}

#[test]
fn short_deposit_and_strange_payer_need_the_solvers_word() {
    let short = |t: &mut Trial| t.scene.deposits[0].deposits()[0].amount = Amount::from(989);
    assert_eq!(filling(short), "SIGN");
    assert_eq!(refunding(short), "SIGN");
    let tolerated = |t: &mut Trial| t.scene.deposits[0].deposits()[0].amount = Amount::from(990);
    assert_eq!(filling(tolerated), "OK");
    let strange = |t: &mut Trial| t.from = scene::address(TOKEN);
    assert_eq!(filling(strange), "OK");
    assert_eq!(refunding(strange), "SIGN");
    let scene = Scene::new().with(|s| s.deposits[0].deposits()[0].amount = Amount::from(500));
    let attestable = Trial::fill(scene.clone()).judge(false).unwrap();
    let (terms, funded) = scene.funded().unwrap();
    let claim = backing::claim_id(Outcome::Fill, &terms, &funded);
    assert_eq!(attestable.to_sign, Some(claim));
    assert_eq!(attestable.difference.to_string(), "-500000000000000000");
}
