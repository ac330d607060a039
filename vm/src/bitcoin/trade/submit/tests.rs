mod world;

use bitcoin::{OutPoint, Script};
use serde_json::json;

use self::world::{Key, World, conflict};
use super::*;
use crate::{
    ChainEntry, ChainSpec,
    bitcoin::{FAMILY, network::LOCAL},
    trade::{PaymentTerms, Providers, ProvidersContext, StepBuilder, TradingProvider, Trial},
    types::B256,
};

/// Satoshis per virtual byte that the operator allows.
const MOST: u64 = 50;
const DEPOSITORY: &str = "bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry";
const SHOP: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// One world through three providers, of which two must agree. A block is final once one is on top.
struct Rig {
    world: Arc<World>,
    spec: Arc<ChainSpec>,
    providers: Providers,
    account: crate::trade::Account,
    script: ScriptBuf,
    /// What the store has of the account, and of its open attempts.
    stored: Option<Bytes>,
    held: Vec<Bytes>,
    attempts: Vec<Bytes>,
    /// Payments leave some to others.
    keeps: bool,
}

impl Rig {
    fn new(coins: &[u64]) -> Self {
        Self::through(coins, |world| (0..3).map(|_| world.provider()).collect())
    }

    fn through(coins: &[u64], providers: fn(&Arc<World>) -> Vec<TradingProvider>) -> Self {
        let world = World::new(10);
        let entry = json!({
            "id": "bitcoin", "hubChainId": "7", "depository": DEPOSITORY,
            "additionalData": {"network": "regtest"},
        });
        let entry: ChainEntry = serde_json::from_value(entry).unwrap();
        let spec = entry.spec(&FAMILY, false).unwrap();
        let chain = Chain {
            spec: spec.clone(),
            reader: world.clone(),
            state: None,
        };
        let context = ProvidersContext {
            spec: spec.clone(),
            number: 7,
            required: 2,
            limits: None,
        };
        let providers = crate::bitcoin::trade::providers(context, providers(&world));
        let providers = providers.unwrap().unwrap();
        let key = Arc::new(Key::of(7));
        let account = providers.accounts.account(&chain, key, MOST.into());
        let account = account.unwrap();
        let script = LOCAL.script(account.address.text()).unwrap();
        for coin in coins {
            world.fund(&script, *coin, 5);
        }
        Self {
            world,
            spec,
            providers,
            account,
            script,
            stored: None,
            held: Vec::new(),
            attempts: Vec::new(),
            keeps: false,
        }
    }

    fn intent(&self, satoshis: u64) -> Intent {
        let native = self.spec.family.native().unwrap();
        let draft = LOCAL.send(&PaymentTerms {
            from: &self.account.address,
            to: &self.spec.family.address(SHOP).unwrap(),
            currency: &native,
            amount: Amount::from(satoshis),
            order: B256::repeat_byte(0xee),
        });
        Intent {
            draft: draft.unwrap(),
            work: 500,
            besides: None,
            spends: Vec::new(),
        }
    }

    async fn prepared(&self, intent: &Intent) -> Result<Prepared, SubmitError> {
        let submitter = &self.account.submitter;
        let outlook = submitter.look(Goal::Land(intent), self.stored.is_none());
        let known = Known {
            account: self.stored.as_ref().map(|own| &own[..]),
            held: &self.held,
            attempts: &self.attempts,
            keeps: self.keeps,
        };
        outlook.await?.prepare(known).await
    }

    /// An attempt to pay the shop, kept but not sent.
    async fn kept(&mut self, satoshis: u64) -> Attempt {
        let prepared = self.prepared(&self.intent(satoshis)).await.unwrap();
        self.stored = prepared.account;
        self.held.extend(prepared.attempt.resources.clone());
        self.attempts.push(prepared.attempt.own.clone());
        prepared.attempt
    }

    /// The same, sent.
    async fn pays(&mut self, satoshis: u64) -> Attempt {
        let attempt = self.kept(satoshis).await;
        assert_eq!(self.sends(&attempt).await, Some(Broadcast::Accepted));
        attempt
    }

    async fn sends(&self, attempt: &Attempt) -> Option<Broadcast> {
        self.account.submitter.send(attempt).await.unwrap()
    }

    async fn replaced(&self, attempt: &Attempt, cancel: bool) -> Option<Attempt> {
        let submitter = &self.account.submitter;
        submitter.replace(attempt, cancel).await.unwrap()
    }

    async fn status(&self, attempt: &Attempt) -> Status {
        self.account.submitter.status(attempt).await.unwrap()
    }

    fn paid(&self) -> u64 {
        self.world.paid(&shop())
    }
}

fn shop() -> ScriptBuf {
    LOCAL.script(SHOP).unwrap()
}

fn newest(attempt: &Attempt) -> Transaction {
    let own = Own::read(attempt).unwrap();
    own.signed.last().unwrap().transaction().unwrap()
}

fn given(transaction: &Transaction, script: &Script) -> u64 {
    let own = |output: &&bitcoin::TxOut| *output.script_pubkey == *script;
    let paid = transaction.output.iter().filter(own);
    paid.map(|output| output.value.to_sat()).sum()
}

fn is_included(status: &Status, signed: usize) -> bool {
    matches!(status, Status::Included(seen) if seen.signed == signed && seen.agreed.is_some())
}

#[tokio::test]
async fn a_payment_lands_names_its_order_and_gives_the_rest_back() {
    let mut rig = Rig::new(&[1_000_000]);
    let attempt = rig.pays(60_000).await;
    let made = newest(&attempt);
    assert_eq!(given(&made, &shop()), 60_000);
    let change = given(&made, &rig.script);
    let fee = 1_000_000 - 60_000 - change;
    // Signatures are at most one byte shorter than reckoned with.
    let size = made.weight().to_vbytes_ceil();
    assert!((size * 10..=(size + 1) * 10).contains(&fee), "{fee}");
    let named = made
        .output
        .iter()
        .filter(|it| it.script_pubkey.is_op_return());
    assert_eq!(named.count(), 1);
    assert_eq!(attempt.spends[0].1, Amount::from(60_000 + fee));
    let cost = rig.account.costs.at_most(&attempt, 0).await;
    assert_eq!(cost, Ok(Amount::from(fee)));
    assert_eq!(rig.status(&attempt).await, Status::Waiting { known: true });
    rig.world.mine(0);
    assert!(is_included(&rig.status(&attempt).await, 0));
    assert_eq!(rig.paid(), 60_000);
}

/// What one of them says too low would else wait for days, and what it says too high would be paid.
#[tokio::test]
async fn of_two_rates_that_are_near_the_middle_is_paid_and_the_lower_one_charged() {
    type Both = fn(&Arc<World>) -> Vec<TradingProvider>;
    let cases: [(Both, u128, u64); 4] = [
        (|world| vec![world.provider(), world.asking(3)], 3, 6),
        (|world| vec![world.asking(10), world.provider()], 10, 10),
        (|world| vec![world.asking(40), world.provider()], 10, 25),
        // Of three the middle one is all of it.
        (
            |world| vec![world.asking(40), world.provider(), world.provider()],
            10,
            10,
        ),
    ];
    for (providers, charged, paid) in cases {
        let mut rig = Rig::through(&[1_000_000], providers);
        let rate = rig.providers.failover.rate().await.unwrap();
        assert_eq!(rate.expected(), charged);
        let signed = rig.providers.rate_as_signed(rate);
        assert_eq!(signed.expected(), u128::from(paid));
        let made = newest(&rig.pays(60_000).await);
        let fee = 1_000_000 - 60_000 - given(&made, &rig.script);
        let size = made.weight().to_vbytes_ceil();
        let asked = size * paid..=(size + 1) * paid;
        assert!(asked.contains(&fee), "{paid}: {fee}");
    }
}

#[tokio::test]
async fn two_attempts_never_share_a_coin() {
    let mut rig = Rig::new(&[300_000, 200_000, 100_000]);
    let mut all = Vec::new();
    for _ in 0..3 {
        all.push(rig.pays(50_000).await);
    }
    for (at, one) in all.iter().enumerate() {
        for other in &all[at + 1..] {
            assert!(!conflict(&newest(one), &newest(other)));
            assert!(one.resources.iter().all(|it| !other.resources.contains(it)));
            assert_ne!(one.id, other.id);
        }
    }
    let intent = rig.intent(50_000);
    let short = rig.prepared(&intent).await.unwrap_err();
    let SubmitError::Short { available, needed } = short else {
        panic!("{short}");
    };
    assert_eq!(available, Amount::ZERO);
    assert!(needed > Amount::from(50_000));
    // Change comes back, once its block is final.
    rig.world.mine(0);
    rig.held.clear();
    assert!(rig.prepared(&intent).await.is_err());
    rig.world.mine(0);
    assert!(rig.prepared(&intent).await.is_ok());
    assert_eq!(rig.paid(), 150_000);
}

/// Strangers' small orders would else stop every other payment until their change is final.
#[tokio::test]
async fn a_quarter_of_the_outputs_stays_free_for_what_matters_more() {
    let mut rig = Rig::new(&[1_000_000; 8]);
    rig.keeps = true;
    for _ in 0..6 {
        rig.pays(10_000).await;
    }
    for small in [10_000, 249_999] {
        let waits = rig.prepared(&rig.intent(small)).await;
        assert!(matches!(waits, Err(SubmitError::Short { .. })), "{small}");
    }
    // Who has others hold so much has to deposit for it.
    assert!(rig.prepared(&rig.intent(250_000)).await.is_ok());
    // A refund takes what it is left for.
    rig.keeps = false;
    rig.pays(10_000).await;
    rig.keeps = true;
    // All is there again once the change is final.
    rig.world.mine(1);
    rig.held.clear();
    rig.attempts.clear();
    assert!(rig.prepared(&rig.intent(10_000)).await.is_ok());
    assert_eq!(rig.paid(), 70_000);
}

/// Refunds of strangers whose orders were over at once take no more than their part, and go when its change is final.
#[tokio::test]
async fn refunds_of_strangers_leave_the_last_output_to_a_payment_with_a_key() {
    let mut rig = Rig::new(&[1_000_000; 4]);
    rig.keeps = true;
    for _ in 0..3 {
        rig.pays(10_000).await;
    }
    let fourth = rig.prepared(&rig.intent(10_000)).await;
    assert!(matches!(fourth, Err(SubmitError::Short { .. })));
    rig.keeps = false;
    rig.pays(20_000).await;
    rig.keeps = true;
    rig.world.mine(1);
    rig.held.clear();
    rig.attempts.clear();
    rig.pays(10_000).await;
    rig.world.mine(1);
    assert_eq!(rig.paid(), 60_000);
}

#[tokio::test]
async fn small_outputs_that_are_held_leave_the_large_one_to_who_needs_it() {
    let mut coins = vec![5_000_000; 6];
    coins.push(1_000_000_000);
    let mut rig = Rig::new(&coins);
    rig.keeps = true;
    for _ in 0..3 {
        rig.pays(1_000_000).await;
    }
    assert!(rig.prepared(&rig.intent(20_000_000)).await.is_ok());
    // What is not written by this family is no reason to pay.
    rig.attempts.push(Bytes::from_static(b"x"));
    let refused = rig.prepared(&rig.intent(20_000_000)).await;
    assert!(matches!(refused, Err(SubmitError::Codec(_))));
}

#[tokio::test]
async fn coins_of_blocks_that_are_not_final_are_not_spent() {
    let rig = Rig::new(&[]);
    rig.world.fund(&rig.script, 500_000, 0);
    let intent = rig.intent(50_000);
    assert!(matches!(
        rig.prepared(&intent).await,
        Err(SubmitError::Short { .. })
    ));
    rig.world.mine(0);
    assert!(rig.prepared(&intent).await.is_ok());
}

#[tokio::test]
async fn a_replacement_spends_the_common_outputs_and_pays_the_same() {
    let mut rig = Rig::new(&[1_000_000]);
    let first = rig.pays(60_000).await;
    // Nobody asks for more.
    assert_eq!(rig.replaced(&first, false).await, None);
    rig.world.state().rate = 25;
    let second = rig.replaced(&first, false).await.unwrap();
    assert_eq!(second.resources, first.resources);
    assert_eq!(second.signed[..1], first.signed[..]);
    let (old, new) = (newest(&first), newest(&second));
    let inputs = |one: &Transaction| -> Vec<OutPoint> {
        one.input.iter().map(|it| it.previous_output).collect()
    };
    assert_eq!(inputs(&old), inputs(&new));
    assert_eq!(given(&new, &shop()), 60_000);
    assert!(second.spends[0].1 > first.spends[0].1);
    assert_eq!(rig.sends(&second).await, Some(Broadcast::Accepted));
    assert_eq!(rig.world.pool(), [new]);
    // The old one was in the block after all.
    rig.world.include(old);
    assert!(is_included(&rig.status(&second).await, 0));
    assert_eq!(rig.sends(&second).await, Some(Broadcast::Used));
    rig.world.mine(3);
    assert_eq!(rig.paid(), 60_000);
}

#[tokio::test]
async fn nothing_is_made_above_the_operators_limit() {
    let mut rig = Rig::new(&[1_000_000]);
    let attempt = rig.pays(60_000).await;
    rig.world.state().rate = MOST + 1;
    let intent = rig.intent(60_000);
    assert_eq!(rig.prepared(&intent).await, Err(SubmitError::Dear));
    assert_eq!(rig.replaced(&attempt, false).await, None);
    // What is no longer wanted is taken back all the same: for the least that nodes ask, since nothing lands anyway.
    let cancelled = rig.replaced(&attempt, true).await.unwrap();
    let fee = |attempt: &Attempt| 1_000_000 - given(&newest(attempt), &rig.script);
    let (before, size) = (fee(&attempt) - 60_000, newest(&cancelled).vsize() as u64);
    let least = before + size;
    assert!((least..=least + 2).contains(&fee(&cancelled)), "{least}");
    assert_eq!(rig.sends(&cancelled).await, Some(Broadcast::Accepted));
    assert_eq!(rig.replaced(&cancelled, false).await, None);
    assert_eq!(rig.replaced(&cancelled, true).await, None);
    // It is raised once that helps.
    rig.world.state().rate = MOST;
    let raised = rig.replaced(&cancelled, false).await.unwrap();
    assert!(fee(&raised) >= size * MOST && raised.signed[2].cancels);
}

/// It would else land whenever a block has room for it, behind its deadline, too.
#[tokio::test]
async fn a_payment_is_cancelled_whatever_one_of_two_says_of_rates() {
    let mut rig = Rig::through(&[1_000_000], |world| {
        vec![world.provider(), world.asking(15)]
    });
    let attempt = rig.pays(60_000).await;
    // More than a factor of four apart: there is no rate.
    rig.world.state().rate = 3;
    let dearer = rig.account.submitter.replace(&attempt, false).await;
    assert!(matches!(dearer, Err(SubmitError::Read(_))), "{dearer:?}");
    let cancelled = rig.replaced(&attempt, true).await.unwrap();
    let fee = |attempt: &Attempt| 1_000_000 - given(&newest(attempt), &rig.script);
    let size = newest(&cancelled).vsize() as u64;
    let least = fee(&attempt) - 60_000 + size;
    assert!((least..=least + 2).contains(&fee(&cancelled)), "{least}");
    assert_eq!(rig.sends(&cancelled).await, Some(Broadcast::Accepted));
    // Nothing outbids it: it is left alone.
    rig.world.state().height += 1;
    assert_eq!(rig.replaced(&cancelled, true).await, None);
    // What nodes hold back is raised all the same.
    rig.world.state().pool = vec![newest(&attempt)];
    rig.world.state().pinned = 2_500;
    let raised = rig.replaced(&cancelled, true).await.unwrap();
    assert!(fee(&raised) >= fee(&cancelled) * 5 / 4);
    rig.world.state().pinned = 0;
    assert_eq!(rig.sends(&raised).await, Some(Broadcast::Accepted));
    rig.world.mine(0);
    assert_eq!(rig.paid(), 0);
}

/// Whoever is paid hangs something on the payment that nobody mines: what replaces it has to pay for that, too.
#[tokio::test]
async fn a_payment_that_is_pinned_is_raised_until_nodes_take_it() {
    for cancel in [false, true] {
        let mut rig = Rig::new(&[1_000_000]);
        let mut attempt = rig.pays(60_000).await;
        rig.world.state().pinned = 2_500;
        rig.world.state().rate = 12;
        attempt = rig.replaced(&attempt, cancel).await.unwrap();
        let mut said = rig.sends(&attempt).await;
        assert_eq!(said, Some(Broadcast::Underpriced));
        for _ in 0..10 {
            if said == Some(Broadcast::Accepted) {
                break;
            }
            // The next block may take what hangs on the other one.
            assert_eq!(rig.replaced(&attempt, cancel).await, None);
            rig.world.state().height += 1;
            attempt = rig.replaced(&attempt, cancel).await.unwrap();
            said = rig.sends(&attempt).await;
        }
        assert_eq!(said, Some(Broadcast::Accepted), "{cancel}");
        // Once they have it, it is left alone.
        assert_eq!(rig.replaced(&attempt, cancel).await, None);
        rig.world.mine(0);
        assert_eq!(rig.paid(), if cancel { 0 } else { 60_000 });
    }
}

/// However much hangs on it, no more than the operator allows is paid.
#[tokio::test]
async fn what_is_pinned_is_raised_to_the_limit_and_no_further() {
    let mut rig = Rig::new(&[1_000_000]);
    let mut attempt = rig.pays(60_000).await;
    rig.world.state().pinned = 1_000_000;
    rig.world.state().rate = 12;
    let mut raised = 0;
    while let Some(next) = rig.replaced(&attempt, false).await {
        attempt = next;
        raised += 1;
        assert!(raised < 20);
        rig.world.state().height += 1;
    }
    let made = newest(&attempt);
    let fee = 940_000 - given(&made, &rig.script);
    let size = made.weight().to_vbytes_ceil();
    assert!(
        (size * (MOST - 2)..=(size + 1) * MOST).contains(&fee),
        "{fee}"
    );
}

#[tokio::test]
async fn a_cancel_pays_nobody_and_says_what_it_cost() {
    let mut rig = Rig::new(&[1_000_000]);
    let attempt = rig.pays(60_000).await;
    let cancelled = rig.replaced(&attempt, true).await.unwrap();
    assert!(cancelled.signed[1].cancels && !cancelled.signed[0].cancels);
    assert_eq!(cancelled.resources, attempt.resources);
    let made = newest(&cancelled);
    assert_eq!(made.output.len(), 1);
    assert!(conflict(&made, &newest(&attempt)));
    // Once cancelled it stays so.
    rig.world.state().rate = 30;
    let again = rig.replaced(&cancelled, false).await.unwrap();
    assert!(again.signed[2].cancels);
    assert_eq!(rig.sends(&cancelled).await, Some(Broadcast::Accepted));
    rig.world.mine(0);
    let Status::Included(seen) = rig.status(&again).await else {
        panic!("not included");
    };
    let fee = 1_000_000 - given(&made, &rig.script);
    assert_eq!((seen.signed, seen.wasted), (1, Some(Amount::from(fee))));
    assert_eq!(rig.paid(), 0);
}

#[tokio::test]
async fn an_attempt_is_lost_once_what_conflicts_with_it_is_final() {
    let mut rig = Rig::new(&[1_000_000]);
    let attempt = rig.pays(60_000).await;
    let at = coin::outpoint(&attempt.resources[0]).unwrap();
    let foreign = Key::of(7);
    let foreign = foreign.spend((at, 1_000_000), (&rig.script, 9_000)).await;
    rig.world.include(foreign);
    assert_eq!(rig.status(&attempt).await, Status::Doubtful);
    rig.world.mine(0);
    assert_eq!(rig.status(&attempt).await, Status::Lost);
    // Where nobody names what spent the output, nothing is final.
    rig.world.state().nameless = true;
    assert_eq!(rig.status(&attempt).await, Status::Doubtful);
    assert_eq!(rig.paid(), 0);
}

#[tokio::test]
async fn an_attempt_is_never_lost_to_its_own_transaction() {
    let mut rig = Rig::new(&[1_000_000]);
    let attempt = rig.pays(60_000).await;
    rig.world.mine(3);
    // It is final, but the first read of it is an old one.
    rig.world.state().late = 1;
    assert_eq!(rig.status(&attempt).await, Status::Doubtful);
    assert!(is_included(&rig.status(&attempt).await, 0));
}

#[tokio::test]
async fn a_conflict_that_a_reorg_undoes_loses_nothing() {
    let mut rig = Rig::new(&[1_000_000]);
    let attempt = rig.pays(60_000).await;
    let at = coin::outpoint(&attempt.resources[0]).unwrap();
    let foreign = Key::of(7);
    let foreign = foreign.spend((at, 1_000_000), (&rig.script, 9_000)).await;
    rig.world.include(foreign);
    assert_eq!(rig.status(&attempt).await, Status::Doubtful);
    rig.world.reorg(1);
    rig.world.state().pool.clear();
    assert_eq!(rig.status(&attempt).await, Status::Waiting { known: false });
    assert_eq!(rig.sends(&attempt).await, Some(Broadcast::Accepted));
    rig.world.mine(0);
    assert!(is_included(&rig.status(&attempt).await, 0));
}

#[tokio::test]
async fn a_reorg_of_two_blocks_pays_once() {
    let mut rig = Rig::new(&[1_000_000]);
    let attempt = rig.pays(60_000).await;
    rig.world.mine(1);
    assert!(is_included(&rig.status(&attempt).await, 0));
    rig.world.reorg(2);
    assert_eq!(rig.status(&attempt).await, Status::Waiting { known: true });
    rig.world.mine(3);
    assert!(is_included(&rig.status(&attempt).await, 0));
    assert_eq!(rig.paid(), 60_000);
}

#[tokio::test]
async fn what_was_kept_before_a_crash_is_sent_after_it() {
    let mut rig = Rig::new(&[1_000_000, 900_000]);
    let attempt = rig.kept(60_000).await;
    assert_eq!(rig.world.state().sent, 0);
    // After the restart.
    assert_eq!(rig.status(&attempt).await, Status::Waiting { known: false });
    let other = rig.kept(70_000).await;
    assert!(!conflict(&newest(&attempt), &newest(&other)));
    for _ in 0..2 {
        assert_eq!(rig.sends(&attempt).await, Some(Broadcast::Accepted));
        assert_eq!(rig.sends(&other).await, Some(Broadcast::Accepted));
    }
    rig.world.mine(2);
    assert_eq!(rig.paid(), 130_000);
    assert_eq!(rig.sends(&attempt).await, Some(Broadcast::Used));
}

#[tokio::test]
async fn what_is_too_little_is_said_to_the_satoshi() {
    // One input, the payment, the order's id: 10.5 + 68 + 31 + 77 virtual bytes.
    let exact = 50_000 + 187 * 10;
    assert!(
        Rig::new(&[exact])
            .prepared(&Rig::new(&[]).intent(50_000))
            .await
            .is_ok()
    );
    let rig = Rig::new(&[exact - 1]);
    let short = rig.prepared(&rig.intent(50_000)).await.unwrap_err();
    let SubmitError::Short { available, needed } = short else {
        panic!("{short}");
    };
    assert_eq!(available, Amount::from(exact - 1));
    assert!(needed > available);
}

#[tokio::test]
async fn dust_is_refused_before_anything_is_signed() {
    let rig = Rig::new(&[1_000_000]);
    let dust = rig.intent(293);
    let trial = Trial {
        draft: &dust.draft,
        rate: Some(crate::trade::FeeRate::new(10, 0)),
        most: None,
    };
    let verdict = rig.providers.wallet.simulate(&trial).await.unwrap();
    assert!(verdict.unwrap_err().reason.contains("294"));
    assert!(matches!(
        rig.prepared(&dust).await,
        Err(SubmitError::Codec(_))
    ));
    assert!(rig.prepared(&rig.intent(294)).await.is_ok());
}

#[tokio::test]
async fn more_outputs_than_the_fee_was_told_for_are_not_spent() {
    let rig = Rig::new(&[20_000; 12]);
    let intent = rig.intent(150_000);
    let waits = rig.prepared(&intent).await;
    assert!(matches!(waits, Err(SubmitError::Read(_))), "{waits:?}");
    let roomy = Intent {
        work: 2_000,
        ..intent
    };
    assert!(rig.prepared(&roomy).await.is_ok());
}

#[tokio::test]
async fn nothing_is_used_up_and_heights_are_told() {
    let rig = Rig::new(&[1_000_000]);
    let submitter = &rig.account.submitter;
    let refused = submitter.look(Goal::UseUp(&[1]), false).await;
    assert!(matches!(refused.err(), Some(SubmitError::Codec(_))));
    assert_eq!(submitter.reached().await, Ok(HEIGHT.bytes(100)));
}
