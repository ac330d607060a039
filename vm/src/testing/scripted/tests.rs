//! The family by itself: what lands, what never does, and when that is believed.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::*;
use crate::{
    Chain, ChainEntry, ChainSpec, Endpoint,
    quorum::Quorum,
    testing::Manners,
    trade::{
        Account, Attempt, Broadcast, DepositTerms, FillTerms, Goal, Intent, Known, Landing,
        PaymentTerms, Payout, Prepared, Providers, ProvidersContext, Status, StepBuilder, StepFee,
        Trial, numbered,
    },
    types::{Address, Amount, B256, Transaction as Found, U256},
};

const NAMES: [&str; 3] = ["one", "two", "three"];
const TOKEN: B256 = B256::repeat_byte(0x70);
const DEPOSITORY: B256 = B256::repeat_byte(0xd0);
const SHOP: B256 = B256::repeat_byte(0x50);
const ORDER: B256 = B256::repeat_byte(0xee);
/// Blocks below the head from which on a block is final.
const FINAL: u64 = 6;
const NUMBER: u64 = 77;

/// One world through three providers, of which two must agree.
struct Rig {
    world: Arc<World>,
    spec: Arc<ChainSpec>,
    chain: Chain,
    providers: Providers,
    account: Account,
    stored: Option<crate::Bytes>,
}

impl Rig {
    fn new(name: &str) -> Self {
        let world = World::new(name, NUMBER, (2, 1_000));
        register(&world);
        let entry = json!({
            "id": name, "hubChainId": NUMBER.to_string(), "depository": spelled(DEPOSITORY).text(),
            "additionalData": {"finalizationBlocks": FINAL},
        });
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        let spec = entry.spec(&FAMILY, false).unwrap();
        let endpoints = NAMES.map(|provider| endpoint(name, provider));
        let open = endpoints
            .iter()
            .map(|one| registry::open(&spec, one).unwrap());
        let reader = Arc::new(Quorum::new(&spec.id, open.collect(), 2).unwrap());
        let chain = Chain {
            spec: spec.clone(),
            reader,
            state: None,
        };
        let trades = endpoints
            .iter()
            .map(|one| registry::trade(&spec, one).unwrap());
        let context = ProvidersContext {
            spec: spec.clone(),
            number: NUMBER,
            required: 2,
            limits: None,
        };
        let providers = wallet::providers(context, trades.collect())
            .unwrap()
            .unwrap();
        let key = Arc::new(Key::of(1));
        let account = providers.accounts.account(&chain, key, 1_000).unwrap();
        let plenty = U256::from(1_000_000_000);
        world.fund(Key::of(1).bytes(), B256::ZERO, plenty);
        world.fund(Key::of(1).bytes(), TOKEN, plenty);
        let rig = Self {
            world,
            spec,
            chain,
            providers,
            account,
            stored: None,
        };
        rig.pass(40);
        rig
    }

    fn solver(&self) -> B256 {
        Key::of(1).bytes()
    }

    /// So many heights pass.
    fn pass(&self, heights: u64) {
        let to = self.world.height() + heights;
        self.world
            .mine_until(self.world.since + to * self.world.pace);
    }

    fn paid(&self) -> Amount {
        self.world.balance(SHOP, TOKEN)
    }

    /// An attempt to pay the shop, kept and sent.
    async fn pays(&mut self, amount: u64) -> Attempt {
        let prepared = self.prepared(amount, &[]).await;
        self.stored = prepared.account;
        let submitter = &self.account.submitter;
        let said = submitter.send(&prepared.attempt).await.unwrap();
        assert_eq!(said, Some(Broadcast::Accepted));
        prepared.attempt
    }

    /// An attempt to pay the shop, where open ones hold `held`.
    async fn prepared(&self, amount: u64, held: &[crate::Bytes]) -> Prepared {
        let draft = steps::Steps.send(&PaymentTerms {
            from: &self.account.address,
            to: &spelled(SHOP),
            currency: &spelled(TOKEN),
            amount: U256::from(amount),
            order: ORDER,
        });
        let intent = Intent {
            draft: draft.unwrap(),
            work: 1_000,
            besides: None,
            spends: vec![(spelled(TOKEN), U256::from(amount))],
        };
        let submitter = &self.account.submitter;
        let outlook = submitter
            .look(Goal::Land(&intent), self.stored.is_none())
            .await
            .unwrap();
        let known = Known {
            account: self.stored.as_ref().map(|own| &own[..]),
            held,
            attempts: &[],
            keeps: false,
        };
        outlook.prepare(known).await.unwrap()
    }

    async fn status(&self, attempt: &Attempt) -> Status {
        self.account.submitter.status(attempt).await.unwrap()
    }

    async fn replaced(&self, attempt: &Attempt, cancel: bool) -> Option<Attempt> {
        self.account
            .submitter
            .replace(attempt, cancel)
            .await
            .unwrap()
    }

    fn id(&self, attempt: &Attempt, at: usize) -> Vec<u8> {
        bs58::decode(&attempt.signed[at].id).into_vec().unwrap()
    }
}

fn endpoint(world: &str, provider: &str) -> Endpoint {
    Endpoint {
        position: 1,
        url: url(world, provider).parse().unwrap(),
        timeout: Duration::from_secs(1),
        longest: 1 << 20,
        allows: None,
        client: Endpoint::client().unwrap(),
    }
}

#[tokio::test]
async fn heights_without_a_block_show_the_one_below() {
    let rig = Rig::new("heights");
    let trade = registry::trade(&rig.spec, &endpoint("heights", "one")).unwrap();
    let (mut skipped, mut before) = (0, None);
    for height in 0..=rig.world.height() {
        let Some(block) = trade.scanner.block(height).await.unwrap() else {
            assert!(height > trade.scanner.head().await.unwrap().number);
            continue;
        };
        skipped += u64::from(block.number < height);
        if let Some(crate::Block { number, hash, .. }) = before
            && number != block.number
        {
            assert_eq!((block.number, block.parent), (height, hash));
        }
        before = Some(block);
    }
    assert!((12..=14).contains(&skipped), "{skipped}");
    rig.world.reorg(10, &mut |_| true);
    let reader = &rig.chain.reader;
    let left = before.unwrap();
    assert!(!reader.contains(&left).await.unwrap());
}

#[tokio::test]
async fn a_payment_lands_once_and_costs_its_bytes() {
    let mut rig = Rig::new("lands");
    let native = rig.world.balance(rig.solver(), B256::ZERO);
    let attempt = rig.pays(500).await;
    assert_eq!(rig.status(&attempt).await, Status::Waiting { known: true });
    rig.pass(2);
    let Status::Included(seen) = rig.status(&attempt).await else {
        panic!("in no block");
    };
    assert!(seen.success && seen.wasted.is_none());
    let Some((Found::Succeeded(receipt), _)) = seen.agreed else {
        panic!("not agreed");
    };
    assert_eq!(receipt.sender, Some(rig.account.address.clone()));
    assert_eq!(receipt.references, [format!("{ORDER:#x}").into()]);
    assert_eq!(receipt.payments.len(), 1);
    assert_eq!(rig.paid(), U256::from(500));
    let left = rig.world.balance(rig.solver(), B256::ZERO);
    let fee = native - left;
    assert!(!fee.is_zero() && fee <= attempt.spends[0].1, "{fee}");
    // What is sent once more is in a block already.
    let again = rig.account.submitter.send(&attempt).await.unwrap();
    assert_eq!(again, Some(Broadcast::Used));
    rig.pass(2);
    assert_eq!(rig.paid(), U256::from(500));
}

#[tokio::test]
async fn payments_that_are_alike_are_two() {
    let mut rig = Rig::new("alike");
    let (one, two) = (rig.pays(500).await, rig.pays(500).await);
    assert_ne!(one.id, two.id);
    assert_ne!(one.signed, two.signed);
    rig.pass(2);
    assert_eq!(rig.paid(), U256::from(1_000));
    let stored = rig.stored.unwrap();
    let landing = attempt::Landing;
    assert!(landing.knows(&stored, &one.id).unwrap() && landing.knows(&stored, &two.id).unwrap());
    // What another one holds depends on what it pays.
    assert_eq!(landing.next(&stored), Ok(None));
    let next = numbered::id(2, B256::ZERO);
    assert!(!landing.knows(&stored, &next).unwrap());
    let standing = landing
        .standing(&stored, &attempt::HEIGHT.bytes(9), &[one.id])
        .unwrap();
    assert_eq!(standing, Default::default());
}

#[tokio::test]
async fn what_an_open_attempt_holds_is_not_taken_again() {
    let rig = Rig::new("held");
    let one = rig.prepared(500, &[]).await.attempt;
    // Nothing is known of the account.
    assert_eq!(
        rig.prepared(500, &[]).await.attempt.resources,
        one.resources
    );
    let two = rig.prepared(500, &one.resources).await;
    assert_ne!(two.attempt.resources, one.resources);
    assert_eq!(two.account, Some(numbered::counted(2)));
    // Another payment holds something else anyway.
    let other = rig.prepared(501, &one.resources).await;
    assert_ne!(other.attempt.resources, one.resources);
    assert_eq!(other.account, Some(numbered::counted(1)));
}

#[tokio::test]
async fn an_expired_payment_is_replaced_once_that_is_final() {
    let mut rig = Rig::new("expires");
    rig.world.hold(rig.solver(), true);
    let attempt = rig.pays(500).await;
    let expires = rig.world.height() + submit::LIFE;
    while rig.world.height() < expires + FINAL {
        assert_eq!(rig.replaced(&attempt, false).await, None);
        rig.pass(1);
    }
    rig.pass(3);
    assert_eq!(rig.status(&attempt).await, Status::Waiting { known: false });
    // Nodes say so, and nobody holds it against the transaction.
    let said = rig.account.submitter.send(&attempt).await.unwrap();
    assert_eq!(said, Some(Broadcast::Expired));
    let next = rig.replaced(&attempt, false).await.unwrap();
    assert_eq!(
        (next.id.clone(), next.resources.clone()),
        (attempt.id, attempt.resources)
    );
    assert_eq!(next.signed[..1], attempt.signed[..]);
    rig.world.hold(rig.solver(), false);
    rig.world.resend(&rig.solver());
    rig.account.submitter.send(&next).await.unwrap();
    rig.pass(3);
    let Status::Included(seen) = rig.status(&next).await else {
        panic!("in no block");
    };
    assert_eq!((seen.signed, rig.paid()), (1, U256::from(500)));
}

#[tokio::test]
async fn a_reorg_below_its_last_height_brings_an_expired_payment_back() {
    let mut rig = Rig::new("back");
    rig.world.hold(rig.solver(), true);
    let attempt = rig.pays(500).await;
    rig.pass(submit::LIFE + 3);
    assert_eq!(rig.replaced(&attempt, false).await, None);
    rig.world.hold(rig.solver(), false);
    rig.world.resend(&rig.solver());
    rig.world.reorg(8, &mut |_| true);
    let Status::Included(seen) = rig.status(&attempt).await else {
        panic!("in no block");
    };
    assert_eq!((seen.signed, rig.paid()), (0, U256::from(500)));
    rig.pass(20);
    assert_eq!(rig.replaced(&attempt, false).await, None);
}

#[tokio::test]
async fn a_cancelled_payment_is_over_once_it_has_expired_for_good() {
    let mut rig = Rig::new("cancelled");
    rig.world.hold(rig.solver(), true);
    let attempt = rig.pays(500).await;
    let cancelled = rig.replaced(&attempt, true).await.unwrap();
    assert_eq!(cancelled.signed, attempt.signed);
    // Once is enough, and it stays so.
    for cancel in [true, false] {
        assert_eq!(rig.replaced(&cancelled, cancel).await, None);
    }
    assert_eq!(rig.account.submitter.send(&cancelled).await.unwrap(), None);
    let expires = rig.world.height() + submit::LIFE;
    while rig.world.height() < expires + FINAL {
        let waits = rig.status(&cancelled).await;
        assert!(matches!(waits, Status::Waiting { .. }), "{waits:?}");
        rig.pass(1);
    }
    rig.pass(3);
    assert_eq!(rig.status(&cancelled).await, Status::Expired);
    rig.world.hold(rig.solver(), false);
    rig.world.resend(&rig.solver());
    rig.pass(10);
    assert_eq!(
        (rig.status(&cancelled).await, rig.paid()),
        (Status::Expired, U256::ZERO)
    );
}

#[tokio::test]
async fn a_cancelled_payment_that_lands_has_landed() {
    let mut rig = Rig::new("too-late");
    let attempt = rig.pays(500).await;
    let cancelled = rig.replaced(&attempt, true).await.unwrap();
    rig.pass(submit::LIFE + 20);
    let seen = rig.status(&cancelled).await;
    assert!(
        matches!(seen, Status::Included(seen) if seen.success),
        "not lost"
    );
    assert_eq!(rig.paid(), U256::from(500));
}

#[tokio::test]
async fn a_payment_whose_block_is_gone_is_sent_again() {
    let mut rig = Rig::new("gone");
    let attempt = rig.pays(500).await;
    rig.pass(2);
    assert_eq!(rig.paid(), U256::from(500));
    rig.world.reorg(4, &mut |_| false);
    assert_eq!(rig.status(&attempt).await, Status::Waiting { known: false });
    assert_eq!(rig.replaced(&attempt, false).await, None);
    let said = rig.account.submitter.send(&attempt).await.unwrap();
    assert_eq!((said, rig.paid()), (Some(Broadcast::Accepted), U256::ZERO));
    rig.pass(2);
    assert_eq!(rig.paid(), U256::from(500));
}

#[tokio::test]
async fn a_payment_that_fails_in_its_block_costs_its_fee() {
    let mut rig = Rig::new("fails");
    rig.world.close(SHOP, true);
    let attempt = rig.pays(500).await;
    rig.pass(2);
    let Status::Included(seen) = rig.status(&attempt).await else {
        panic!("in no block");
    };
    assert!(!seen.success && seen.wasted.is_some_and(|wasted| !wasted.is_zero()));
    let failed = seen
        .agreed
        .is_some_and(|(found, _)| matches!(found, Found::Failed(_)));
    assert!(failed && rig.paid().is_zero());
}

#[tokio::test]
async fn one_provider_that_lags_or_shows_nothing_decides_nothing() {
    for manners in [
        Manners {
            blind: true,
            ..Manners::default()
        },
        Manners {
            down: true,
            ..Manners::default()
        },
        Manners {
            lag: 9,
            ..Manners::default()
        },
    ] {
        let mut rig = Rig::new("manners");
        let attempt = rig.pays(500).await;
        rig.world.set_manners("two", manners);
        rig.pass(submit::LIFE + FINAL + 9);
        assert_eq!(rig.replaced(&attempt, false).await, None, "{manners:?}");
        let seen = rig.status(&attempt).await;
        assert!(matches!(seen, Status::Included(_)), "{manners:?}: {seen:?}");
    }
}

#[tokio::test]
async fn deposits_are_found_beside_heights_without_a_block() {
    let rig = Rig::new("deposits");
    let user = Key::of(9);
    rig.world
        .fund(user.bytes(), B256::ZERO, U256::from(1_000_000));
    let from = rig.world.height();
    for number in 0..6_u8 {
        let draft = deposit_draft(&user);
        let unsigned = Unsigned {
            chain: NUMBER,
            payer: user.bytes(),
            expires: rig.world.height() + 5,
            salt: [number; SALT],
            payments: Payments::of(&draft).unwrap(),
        };
        let transaction = unsigned.sign(&user).unwrap();
        assert_eq!(rig.world.send(&transaction), Broadcast::Accepted);
        rig.pass(1);
    }
    rig.pass(2);
    let trade = registry::trade(&rig.spec, &endpoint("deposits", "three")).unwrap();
    let head = trade.scanner.head().await.unwrap();
    let found = trade.scanner.deposits(from..=head.number).await.unwrap();
    assert_eq!(found.len(), 6);
    for one in &found {
        let [deposit] = &one.deposits[..] else {
            panic!("not one deposit");
        };
        assert_eq!(deposit.depositor, user.account());
        assert_eq!(&*deposit.id, format!("{ORDER:#x}"));
        let block = trade.scanner.block(one.number).await.unwrap().unwrap();
        assert_eq!((block.number, block.hash), (one.number, one.hash));
        let head = rig.chain.reader.head().await.unwrap();
        let read = rig
            .chain
            .reader
            .transaction(&one.transaction, &head)
            .await
            .unwrap();
        let Found::Succeeded(receipt) = read else {
            panic!("not there");
        };
        assert_eq!(receipt.deposits.as_ref().unwrap(), &one.deposits);
        let draft = Payments::of(&receipt_draft(&rig, &one.transaction.bytes)).unwrap();
        assert_eq!(draft.memo, Some(ORDER));
        assert_eq!(
            receipt.outer_call,
            Some(receipt_draft(&rig, &one.transaction.bytes).digest())
        );
    }
}

/// A user's deposit of 100 for the order.
fn deposit_draft(user: &Key) -> crate::trade::Draft {
    let steps = steps::Steps.deposit(&DepositTerms {
        user: &user.account(),
        depository: &spelled(DEPOSITORY),
        currency: &spelled(B256::ZERO),
        amount: U256::from(100),
        order: ORDER,
        explicit: true,
        approved: Amount::ZERO,
        reset: false,
        funds: &[],
        before: &[],
        choices: &crate::trade::Choices::default(),
    });
    steps.unwrap().pop().unwrap().draft
}

fn receipt_draft(rig: &Rig, id: &[u8]) -> crate::trade::Draft {
    let found = rig.world.find(id).unwrap();
    let unsigned = found.done.transaction.unsigned;
    unsigned.payments.draft(&spelled(unsigned.payer)).unwrap()
}

#[tokio::test]
async fn a_transaction_takes_no_more_than_it_is_said_to() {
    let mut rig = Rig::new("takes");
    rig.world.set_rate(25);
    let attempt = rig.pays(500).await;
    let found = rig.world.pool().pop().unwrap();
    let draft = found.unsigned.payments.draft(&rig.account.address).unwrap();
    let fee = rig.providers.fee(&draft).await.unwrap().unwrap();
    rig.pass(2);
    let done = rig.world.find(&rig.id(&attempt, 0)).unwrap().done;
    assert!(
        done.fee <= fee.total() && fee.total() <= done.fee * U256::from(2),
        "{fee:?}"
    );
    let at_most = rig.account.costs.at_most(&attempt, 0).await.unwrap();
    assert_eq!(at_most, done.fee);
    let short = Trial {
        most: Some(10),
        ..Trial::free(&draft)
    };
    assert!(
        rig.providers
            .wallet
            .simulate(&short)
            .await
            .unwrap()
            .is_err()
    );
}

#[test]
fn several_payments_are_one_transaction_and_calls_are_none() {
    let solver = Key::of(1).account();
    let payout = |byte: u8| Payout {
        to: spelled(B256::repeat_byte(byte)),
        currency: spelled(TOKEN),
        amount: U256::from(byte),
    };
    let payments = [payout(5), payout(6)];
    let terms = FillTerms {
        solver: &solver,
        router: None,
        proxy: None,
        payments: &payments,
        calls: &[],
        authorizations: &[],
        order: ORDER,
    };
    let fill = steps::Steps.fill(&terms).unwrap();
    assert!(!fill.routed && fill.spender.is_none());
    let shown = StepFee {
        number: NUMBER,
        work: 600,
        limit: None,
        rate: Default::default(),
    };
    let shown = steps::Steps.render(&fill.draft, shown).unwrap();
    let transfers = shown["instructions"]["transfers"].as_array().unwrap();
    assert_eq!((transfers.len(), &transfers[1]["amount"]), (2, &json!("6")));
    let call = crate::OrderCall {
        to: solver.clone(),
        data: Default::default(),
        value: U256::ZERO,
    };
    let calls = [call];
    assert!(
        steps::Steps
            .fill(&FillTerms {
                calls: &calls,
                ..terms
            })
            .is_err()
    );
    let own = [
        payout(5),
        Payout {
            to: solver.clone(),
            ..payout(6)
        },
    ];
    assert!(
        steps::Steps
            .fill(&FillTerms {
                payments: &own,
                ..terms
            })
            .is_err()
    );
}

#[test]
fn texts_have_a_case() {
    let account = Key::of(1).account();
    assert_eq!(FAMILY.account(account.text()).unwrap(), account);
    let other = account.text().to_ascii_lowercase();
    assert!(
        FAMILY.account(&other).is_err_and(|_| true) || FAMILY.account(&other).unwrap() != account
    );
    assert_eq!(FAMILY.native().unwrap().bytes(), [0; 32]);
    assert!(
        FAMILY
            .account("0x00000000000000000000000000000000000000a1")
            .is_err()
    );
    assert_eq!(address(&account).unwrap(), Key::of(1).bytes());
    let short = Address::from_parts("x", vec![1]);
    assert!(address(&short).is_err());
}

#[tokio::test]
async fn what_is_not_registered_is_not_opened() {
    let rig = Rig::new("registered");
    assert!(registry::open(&rig.spec, &endpoint("registered", "one")).is_ok());
    let elsewhere = endpoint("nowhere", "one");
    assert!(registry::open(&rig.spec, &elsewhere).is_err());
    assert!(registry::trade(&rig.spec, &elsewhere).is_err());
    let mut http = endpoint("registered", "one");
    http.url = "http://127.0.0.1:8545".parse().unwrap();
    assert!(registry::open(&rig.spec, &http).is_err());
}

#[test]
fn limits_are_read_strictly() {
    let read = |json: serde_json::Value| wallet::limits(json.as_object().unwrap());
    let limits = read(json!({"maxRate": 7, "rent": 3})).unwrap();
    assert_eq!((limits.rate, limits.besides), (7, true));
    assert!(!read(json!({})).unwrap().besides);
    for wrong in [
        json!({"gas": 1}),
        json!({"maxRate": "7"}),
        json!({"rent": -1}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}
