//! Fills and refunds, and what looks like them. Each cell ends with a payment that is one, and is signed.

use std::collections::BTreeSet;

use alloy::primitives::B256;
use futures::future::join_all;

use crate::{
    cells::{Funded, Played, Stop, chain, deposit, ensure, within},
    deal::{Deal, other},
    family::{LEAST, Paying, PaymentKind, Script},
    ledger::Tx,
    verdict::Verdict,
    world::{AWAY, Setup, World, in_time, settled},
};

pub const SHORT: &str = "FILL_INSUFFICIENT";
pub const SHORT_REFUND: &str = "REFUND_INSUFFICIENT";
const MISSING: &str = "TRANSACTION_MISSING";
/// How an order ends.
pub const OUTCOMES: [&str; 2] = ["fill", "refund"];

/// An order with a signed deposit of its own, and payments for it.
pub struct Case {
    pub world: World,
    pub deal: Deal,
    /// The id of the deposit's transaction.
    pub tx: String,
    /// The deposit's onchain id.
    pub onchain: B256,
}

impl Case {
    pub async fn start(script: &'static dyn Script, deal: Deal) -> Result<Self, Stop> {
        Self::in_world(World::start(script).await?, deal).await
    }

    /// The same in a world that is there already.
    async fn in_world(world: World, deal: Deal) -> Result<Self, Stop> {
        let script = world.script;
        let tx = deposit(script, "deposit", deal.id)?;
        world.home.put(&tx, script.depth() + 1);
        let signed = world.deposit(&tx.id).await.signed()?;
        let onchain = *signed.ids.first().ok_or_else(|| "no deposit".to_owned())?;
        Ok(Self {
            world,
            deal,
            tx: tx.id,
            onchain,
        })
    }

    fn script(&self) -> &'static dyn Script {
        self.world.script
    }

    fn deposit(&self) -> (&str, B256) {
        (&self.tx, self.onchain)
    }

    pub fn put(&self, tx: &Tx) {
        self.world.home.put(tx, self.script().depth() + 1);
    }

    /// What is signed of a fill in this transaction.
    async fn filled(&self, tx: &Tx) -> Verdict {
        self.put(tx);
        let claim = (tx.id.as_str(), false);
        self.deal.filled(&self.world, self.deposit(), claim).await
    }

    /// What is signed of a refund in this transaction, with the solver's word or without.
    async fn refunded(&self, tx: &Tx, vouched: bool) -> Verdict {
        self.put(tx);
        let claim = (tx.id.as_str(), vouched);
        self.deal.refunded(&self.world, self.deposit(), claim).await
    }

    /// What is signed of this outcome by what this transaction pays, with the solver's word for a refund.
    pub async fn ended(&self, outcome: &str, tx: &Tx) -> Verdict {
        let claim = (tx.id.as_str(), outcome == "refund");
        self.claimed(outcome, self.deposit(), claim).await
    }

    /// What is signed of this outcome for some deposit, with the solver's word or without.
    pub async fn claimed(
        &self,
        outcome: &str,
        deposit: (&str, B256),
        claim: (&str, bool),
    ) -> Verdict {
        match outcome {
            "fill" => self.deal.filled(&self.world, deposit, claim).await,
            _ => self.deal.refunded(&self.world, deposit, claim).await,
        }
    }

    /// What the solver pays for this outcome.
    pub fn ends(&self, outcome: &str) -> Result<Tx, Stop> {
        self.ends_with(outcome, LEAST)
    }

    /// The same of another amount.
    pub fn ends_with(&self, outcome: &str, amount: u64) -> Result<Tx, Stop> {
        match outcome {
            "fill" => self.pays(PaymentKind::Good, amount),
            _ => self.refunds(&self.script().accounts().solver, amount),
        }
    }

    /// A payment of the solver's to the order's recipient.
    fn pays(&self, kind: PaymentKind, amount: u64) -> Result<Tx, Stop> {
        let accounts = self.script().accounts();
        let to = &self.deal.order.output.payments[0].recipient;
        let between = (accounts.solver.as_str(), to.as_str(), amount);
        self.deal.pays(self.script(), kind, between)
    }

    /// A payment to the user.
    fn refunds(&self, from: &str, amount: u64) -> Result<Tx, Stop> {
        let between = (from, self.script().accounts().user, amount);
        self.deal.pays(self.script(), PaymentKind::Good, between)
    }

    /// Nothing was signed of how the order ended.
    pub async fn is_open(&self) -> Played {
        let statements = self.world.statements().await;
        let ended = statements.iter().any(|key| key.starts_with("outcome/"));
        ensure(!ended, || format!("signed: {statements:?}"))
    }

    /// A good fill of the order is signed, as exactly what it moves.
    pub async fn is_filled(&self) -> Played {
        let fill = Tx {
            id: self.script().id("the good fill"),
            ..self.deal.fill(self.script(), PaymentKind::Good)?
        };
        let signed = self.filled(&fill).await.signed()?;
        self.deal.moved(&self.world, &self.tx, &signed, "fill")
    }
}

/// A payment of this kind is refused with the code; a good one is signed.
pub async fn refused(script: &'static dyn Script, kind: PaymentKind, code: &str) -> Played {
    let currencies = script.currencies();
    let currency = match kind {
        PaymentKind::OtherCurrency | PaymentKind::TwoWays => currencies[0],
        // What a currency records of who gave it is known of the last.
        _ => currencies[currencies.len() - 1],
    };
    let it = Case::start(script, Deal::in_currency(script, 1, currency)).await?;
    let payment = it.pays(kind, LEAST)?;
    it.filled(&payment).await.is_refused(code)?;
    it.is_open().await?;
    it.is_filled().await
}

/// A transaction that names two orders pays for neither.
pub async fn names_both(script: &'static dyn Script) -> Played {
    let one = Deal::new(script, 1);
    let accounts = script.accounts();
    let between = (accounts.solver.as_str(), accounts.recipient, LEAST);
    let payment = one.pays(script, PaymentKind::NamesBoth, between)?;
    for claimed in [one, other(script)] {
        let it = Case::start(script, claimed).await?;
        let verdict = it.filled(&payment).await;
        verdict.is_refused("SEVERAL_ORDERS_REFERENCED")?;
        it.is_open().await?;
        it.is_filled().await?;
    }
    Ok(())
}

pub async fn filled(script: &'static dyn Script) -> Played {
    for currency in script.currencies() {
        let it = Case::start(script, Deal::in_currency(script, 1, currency)).await?;
        within(currency, it.is_filled().await)?;
    }
    Ok(())
}

pub async fn split(script: &'static dyn Script) -> Played {
    for currency in script.currencies() {
        let it = Case::start(script, Deal::in_currency(script, 1, currency)).await?;
        let short = it.pays(PaymentKind::Split, LEAST - 1)?;
        within(currency, it.filled(&short).await.is_refused(SHORT))?;
        it.is_open().await?;
        let payment = Tx {
            id: script.id("another split"),
            ..it.pays(PaymentKind::Split, LEAST)?
        };
        let signed = it.filled(&payment).await.signed()?;
        within(currency, it.deal.moved(&it.world, &it.tx, &signed, "fill"))?;
    }
    Ok(())
}

pub async fn short(script: &'static dyn Script) -> Played {
    for currency in script.currencies() {
        let it = Case::start(script, Deal::in_currency(script, 1, currency)).await?;
        let payment = it.pays(PaymentKind::Good, LEAST - 1)?;
        it.filled(&payment).await.is_refused(SHORT)?;
        it.is_open().await?;
        it.is_filled().await?;
    }
    Ok(())
}

/// The payer is its own recipient: that is change.
pub async fn to_itself(script: &'static dyn Script) -> Played {
    for currency in script.currencies() {
        let solver = script.accounts().solver;
        let deal = Deal::with(script, 1, |order| {
            order.output.payments[0].recipient = solver.clone();
            order.output.payments[0].currency = currency.to_owned();
        });
        let it = Case::start(script, deal).await?;
        let payment = it.pays(PaymentKind::Good, LEAST)?;
        it.filled(&payment).await.is_refused(SHORT)?;
        it.is_open().await?;
        let between = (script.accounts().stranger, solver.as_str(), LEAST);
        let payment = Tx {
            id: script.id("somebody else's payment"),
            ..it.deal.pays(script, PaymentKind::Good, between)?
        };
        let signed = it.filled(&payment).await.signed()?;
        it.deal.moved(&it.world, &it.tx, &signed, "fill")?;
    }
    Ok(())
}

/// In the last second the payment counts, a second later it does not.
pub async fn deadline(script: &'static dyn Script) -> Played {
    for late in [true, false] {
        // The deposit's block, as many as it needs, and the payment's.
        let blocks = 1 + (script.depth() + 1);
        let time = World::start(script).await?.home.ledger().next_time() + blocks * script.pace();
        let deadline = u32::try_from(time).unwrap() - u32::from(late);
        let deal = Deal::with(script, 1, |order| order.output.deadline = deadline);
        let it = Case::start(script, deal).await?;
        let payment = it.pays(PaymentKind::Good, LEAST)?;
        let verdict = it.filled(&payment).await;
        assert_eq!(it.world.home.block_of(&payment.id).time, time);
        match late {
            true => {
                verdict.is_refused("AFTER_DEADLINE")?;
                it.is_open().await?;
            }
            false => it
                .deal
                .moved(&it.world, &it.tx, &verdict.signed()?, "fill")?,
        }
    }
    Ok(())
}

/// One payment, and two deposits of the order that it was for.
pub async fn twice(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let again = deposit(script, "the same deposit again", it.deal.id)?;
    it.put(&again);
    let signed = it.world.deposit(&again.id).await.signed()?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    it.filled(&fill).await.signed()?;
    let claim = (fill.id.as_str(), false);
    let verdict = it
        .deal
        .filled(&it.world, (&again.id, signed.ids[0]), claim)
        .await;
    verdict.is_refused("CONFLICTING_STATEMENT")?;
    let next = Tx {
        id: script.id("another fill"),
        ..it.deal.fill(script, PaymentKind::Good)?
    };
    it.put(&next);
    let claim = (next.id.as_str(), false);
    let deposit = (again.id.as_str(), signed.ids[0]);
    it.deal.filled(&it.world, deposit, claim).await.signed()?;
    Ok(())
}

/// The same claim has the same signature, however often it is made.
pub async fn repeated(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    let first = it.filled(&fill).await.signed()?;
    let claim = (fill.id.as_str(), false);
    for _ in 0..3 {
        let again = it.deal.filled(&it.world, it.deposit(), claim).await;
        again.is(&first)?;
    }
    let statements = it.world.statements().await;
    let ended = statements.iter().filter(|key| key.starts_with("outcome/"));
    let keys: BTreeSet<_> = ended.collect();
    ensure(keys.len() == 1, || format!("{keys:?}"))
}

/// A fill on another chain than the order's.
pub async fn other_chain(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    it.world.away.put(&fill, script.depth() + 1);
    let claim = (fill.id.as_str(), false);
    let verdict = it.deal.filled(&it.world, it.deposit(), claim).await;
    verdict.is_refused("TRANSACTION_MISSING")?;
    it.is_open().await?;
    // The other chain has it: an order to be filled there is filled.
    let there = Deal::with(script, 2, |order| order.output.chain_id = AWAY.into());
    let it = Case::start(script, there).await?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    it.world.away.put(&fill, script.depth() + 1);
    let claim = (fill.id.as_str(), false);
    let verdict = it.deal.filled(&it.world, it.deposit(), claim).await;
    it.deal.moved(&it.world, &it.tx, &verdict.signed()?, "fill")
}

/// The fill is signed, then a true refund is claimed; and the other way round.
pub async fn both(script: &'static dyn Script) -> Played {
    for fill_first in [true, false] {
        let it = Case::start(script, Deal::new(script, 1)).await?;
        let solver = script.accounts().solver;
        let fill = Tx {
            id: script.id("the fill"),
            ..it.deal.fill(script, PaymentKind::Good)?
        };
        let refund = it.refunds(&solver, LEAST)?;
        let (first, second) = match fill_first {
            true => (it.filled(&fill).await, it.refunded(&refund, true).await),
            false => {
                let first = it.refunded(&refund, true).await;
                (first, it.filled(&fill).await)
            }
        };
        let outcome = if fill_first { "fill" } else { "refund" };
        it.deal
            .moved(&it.world, &it.tx, &first.signed()?, outcome)?;
        second.is_refused("CONFLICTING_STATEMENT")?;
    }
    Ok(())
}

/// A refund that is one unit short, then one that is not.
pub async fn partial(script: &'static dyn Script) -> Played {
    for currency in script.currencies() {
        let it = Case::start(script, Deal::in_currency(script, 1, currency)).await?;
        let solver = script.accounts().solver;
        let short = it.refunds(&solver, LEAST - 1)?;
        it.refunded(&short, true).await.is_refused(SHORT_REFUND)?;
        it.is_open().await?;
        let refund = Tx {
            id: script.id("the refund"),
            ..it.refunds(&solver, LEAST)?
        };
        let signed = it.refunded(&refund, true).await.signed()?;
        it.deal.moved(&it.world, &it.tx, &signed, "refund")?;
    }
    Ok(())
}

/// A reorg drops a fill, or a refund, before anything is signed of it: it counts once it is back.
pub async fn dropped(script: &'static dyn Script) -> Played {
    let played = join_all(OUTCOMES.map(|outcome| dropped_once(script, outcome))).await;
    played.into_iter().collect()
}

async fn dropped_once(script: &'static dyn Script, outcome: &str) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let tx = it.ends(outcome)?;
    it.world.home.put(&tx, script.depth() - 1);
    let early = it.ended(outcome, &tx).await;
    within(outcome, early.is_refused(chain::EARLY))?;
    // The payment's block, and those on it.
    it.world.home.all(|ledger| {
        ledger.reorg(script.depth());
        ledger.grow(script.depth() + 2);
    });
    let gone = settled(async || it.ended(outcome, &tx).await).await;
    within(outcome, gone.is_refused(MISSING))?;
    it.is_open().await?;
    it.put(&tx);
    let back = in_time(async || it.ended(outcome, &tx).await).await;
    let signed = back.signed()?;
    within(outcome, it.deal.moved(&it.world, &it.tx, &signed, outcome))
}

/// A reorg drops a fill, or a refund, after it was signed.
pub async fn undone(script: &'static dyn Script) -> Played {
    let played = join_all(OUTCOMES.map(|outcome| undone_once(script, outcome))).await;
    played.into_iter().collect()
}

async fn undone_once(script: &'static dyn Script, outcome: &str) -> Played {
    let setup = Setup {
        durable: true,
        ..Setup::default()
    };
    let world = World::with(script, setup).await?;
    let deal = Deal::new(script, 1);
    let older = deposit(script, "older deposit", deal.id)?;
    world.home.put(&older, 3);
    let it = Case::in_world(world, deal).await?;
    let tx = it.ends(outcome)?;
    it.put(&tx);
    let signed = it.ended(outcome, &tx).await.signed()?;
    within(outcome, it.deal.moved(&it.world, &it.tx, &signed, outcome))?;
    // The payment's block, and those on it: the deposit stays.
    let depth = script.depth() + 2;
    it.world.home.all(|ledger| drop(ledger.reorg(depth)));
    within(outcome, it.world.is_halted().await)?;
    it.put(&tx);
    let again = in_time(async || it.ended(outcome, &tx).await).await;
    within(outcome, again.is_refused(chain::HALTED))?;
    let Case { world, deal, .. } = it;
    let funded = Funded {
        world,
        deal,
        tx: older.id.clone(),
    };
    within(outcome, chain::halted(funded, &older).await)
}

/// Somebody else gives the user as much, without the solver's word and with it.
pub async fn by_stranger(script: &'static dyn Script) -> Played {
    for currency in script.currencies() {
        let it = Case::start(script, Deal::in_currency(script, 1, currency)).await?;
        let refund = it.refunds(script.accounts().stranger, LEAST)?;
        let verdict = it.refunded(&refund, false).await;
        verdict.is_refused(SHORT_REFUND)?;
        it.is_open().await?;
        let claim = (refund.id.as_str(), true);
        let verdict = it.deal.refunded(&it.world, it.deposit(), claim).await;
        it.deal
            .moved(&it.world, &it.tx, &verdict.signed()?, "refund")?;
    }
    Ok(())
}

/// The transaction that funds the order is claimed as its fill.
pub async fn own_deposit(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let claim = (it.tx.as_str(), false);
    let verdict = it.deal.filled(&it.world, it.deposit(), claim).await;
    // Some families name the order of a deposit where no payment names its own.
    verdict.is_refused_as(&["TRANSACTION_FUNDS_ORDER", "ORDER_NOT_REFERENCED"])?;
    it.is_open().await?;
    it.is_filled().await
}

/// The transaction that funds the order is claimed as its refund, with the solver's word and without.
pub async fn own_refund(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    for vouched in [false, true] {
        let claim = (it.tx.as_str(), vouched);
        let verdict = it.deal.refunded(&it.world, it.deposit(), claim).await;
        // Some families name the order of a deposit where no payment names its own.
        let codes = [
            "TRANSACTION_FUNDS_ORDER",
            "ORDER_NOT_REFERENCED",
            SHORT_REFUND,
        ];
        verdict.is_refused_as(&codes)?;
    }
    it.is_open().await?;
    it.is_filled().await
}

/// A stranger signs the order in its solver's place.
pub async fn unsigned(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    it.put(&fill);
    let claim = (fill.id.as_str(), false);
    let forged = it.deal.signed_by_another();
    let verdict = forged.filled(&it.world, it.deposit(), claim).await;
    verdict.is_refused("ORDER_SIGNATURE_INVALID")?;
    it.is_open().await?;
    let verdict = it.deal.filled(&it.world, it.deposit(), claim).await;
    it.deal.moved(&it.world, &it.tx, &verdict.signed()?, "fill")
}

/// The deposit of another order is claimed for this one.
pub async fn other_deposit(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let foreign = deposit(script, "another order's deposit", other(script).id)?;
    it.put(&foreign);
    let signed = it.world.deposit(&foreign.id).await.signed()?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    it.put(&fill);
    let (deposit, claim) = (
        (foreign.id.as_str(), signed.ids[0]),
        (fill.id.as_str(), false),
    );
    let verdict = it.deal.filled(&it.world, deposit, claim).await;
    verdict.is_refused("INPUT_INVALID")?;
    it.is_open().await?;
    it.is_filled().await
}

/// The deposit's order stands where another than its payer wrote it.
pub async fn named_by_other(script: &'static dyn Script) -> Played {
    let it = Case::start(script, Deal::new(script, 1)).await?;
    let named = Tx {
        id: script.id("a deposit that another named"),
        body: script.named_by_other(it.deal.id)?,
    };
    it.put(&named);
    let signed = it.world.deposit(&named.id).await.signed()?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    it.put(&fill);
    let (deposit, claim) = (
        (named.id.as_str(), signed.ids[0]),
        (fill.id.as_str(), false),
    );
    let verdict = it.deal.filled(&it.world, deposit, claim).await;
    verdict.is_refused("DEPOSIT_NAMED_BY_OTHER")?;
    it.is_open().await?;
    it.is_filled().await
}

/// Calls that are out of order, missing, or made once where the order has one twice.
pub async fn calls(script: &'static dyn Script) -> Played {
    let known = script.calls()?;
    let cases: [(&[usize], &[usize]); 4] = [
        (&[0, 1], &[1, 0]),
        (&[0, 1], &[0]),
        (&[0, 1], &[]),
        (&[0, 0], &[0, 1]),
    ];
    for (ordered, made) in cases {
        let deal = Deal::with(script, 1, |order| {
            order.output.calls = ordered.iter().map(|at| known[*at].clone()).collect();
        });
        let it = Case::start(script, deal).await?;
        let accounts = script.accounts();
        let orders = [it.deal.id, other(script).id];
        let paying = Paying {
            from: &accounts.solver,
            to: accounts.recipient,
            currency: script.currencies()[0],
            amount: LEAST,
            orders,
        };
        let called = |name: &str, calls: &[usize]| -> Result<Tx, Stop> {
            Ok(Tx {
                id: script.id(name),
                body: script.called(&paying, calls)?,
            })
        };
        let part = format!("{ordered:?} ordered, {made:?} made");
        let verdict = it.filled(&called("calls", made)?).await;
        within(&part, verdict.is_refused("CALLS_MISSING"))?;
        it.is_open().await?;
        // Others in between do not matter.
        let mut all = ordered.to_vec();
        all.insert(1, 1);
        let verdict = it.filled(&called("all calls", &all)?).await;
        let signed = verdict.signed()?;
        within(&part, it.deal.moved(&it.world, &it.tx, &signed, "fill"))?;
    }
    Ok(())
}

/// A contract that is not listed says that the order was paid.
pub async fn unlisted(script: &'static dyn Script) -> Played {
    let extra_data = script.other_extra_data()?;
    let deal = Deal::with(script, 1, |order| order.output.extra_data = extra_data);
    let it = Case::start(script, deal).await?;
    let payment = it.pays(PaymentKind::OtherRouter, LEAST)?;
    let verdict = it.filled(&payment).await;
    verdict.is_refused("FILL_ROUTER_NOT_LISTED")?;
    it.is_open().await?;
    // What the transaction itself pays needs no contract's word.
    it.is_filled().await
}

/// A fill is final where its deposit is not: nothing is signed until both are.
pub async fn early_deposit(script: &'static dyn Script) -> Played {
    let it = Funded::start(script).await?;
    let (_, onchain) = it.signed().await?;
    let fill = it.deal.fill(script, PaymentKind::Good)?;
    it.world.home.put(&fill, script.depth() + 1);
    // The same deposit once more, too young.
    let young = deposit(script, "young deposit", it.deal.id)?;
    it.world.home.put(&young, 0);
    let at = it.world.home.block_of(&young.id).number;
    assert_eq!(at, it.world.home.ledger().tip().number);
    let verdict = it.world.deposit(&young.id).await;
    verdict.is_refused("TRANSACTION_NOT_FINALIZED")?;
    let claim = (fill.id.as_str(), false);
    let verdict = it.deal.filled(&it.world, (&young.id, onchain), claim).await;
    verdict.is_refused("TRANSACTION_NOT_FINALIZED")?;
    let deposit = (it.tx.as_str(), onchain);
    let signed = it.deal.filled(&it.world, deposit, claim).await.signed()?;
    it.deal.moved(&it.world, &it.tx, &signed, "fill")
}
