//! How withdrawals end, and what looks like it. Each cell ends with an execution that is one, and is signed.

use std::collections::BTreeSet;

use futures::future::join_all;

use crate::{
    cells::{
        Funded, Played, Stop, chain, deposit, ensure,
        lies::{DOWN, SHORT_OF_VOTES},
        within,
    },
    deal::Deal,
    family::{AMOUNT, ExecutionKind, Script, Withdrawing},
    ledger::{Ledger, Tx},
    node::Manner,
    verdict::Verdict,
    withdrawal::{Withdrawal, good},
    world::{AWAY, Seats, Setup, World, asked, ended, settled},
};

const MISMATCH: &str = "WITHDRAWAL_MISMATCH";
const INVALID: &str = "INVALID_REQUEST";
const CONFLICT: &str = "CONFLICTING_STATEMENT";

/// A withdrawal that the allocator has recorded.
struct Case {
    world: World,
    it: Withdrawal,
}

impl Case {
    async fn start(script: &'static dyn Script) -> Result<Self, Stop> {
        Self::with(script, Setup::default(), |_, _| {}).await
    }

    /// The withdrawal, changed with a look at the chain.
    async fn with(
        script: &'static dyn Script,
        setup: Setup,
        change: impl FnOnce(&mut Withdrawing<'_>, &Ledger),
    ) -> Result<Self, Stop> {
        let world = World::with(script, setup).await?;
        let mut asked = good(script);
        change(&mut asked, &world.home.ledger());
        let it = Withdrawal::new(script, &asked);
        it.record(&world);
        Ok(Self { world, it })
    }

    fn script(&self) -> &'static dyn Script {
        self.world.script
    }

    /// A transaction that is final.
    fn put(&self, tx: &Tx) {
        self.world.home.put(tx, self.script().depth() + 1);
    }

    /// The depository executes the withdrawal, which is final.
    fn execute(&self) -> Result<Tx, Stop> {
        let tx = self.it.execution(ExecutionKind::Good)?;
        self.put(&tx);
        Ok(tx)
    }

    /// What executes it is in a block that is not final.
    fn execute_early(&self, script: &dyn Script) -> Result<Tx, Stop> {
        let (depth, tx) = (script.depth(), self.it.execution(ExecutionKind::Good)?);
        self.world.home.all(|ledger| {
            ledger.lag = depth;
            ledger.put(tx.clone());
            ledger.grow(depth - 1);
        });
        Ok(tx)
    }

    async fn claim(&self) -> Verdict {
        self.it.claimed(&self.world, None).await
    }

    /// Asks until the oracle's head is not older than the transaction.
    async fn claim_naming(&self, tx: &Tx) -> Verdict {
        let named = async || self.it.claimed(&self.world, Some(&tx.id)).await;
        let again = |verdict: &Verdict| verdict.is_refused("TRANSACTION_MISSING").is_ok();
        asked(named, again).await
    }

    /// Nothing is signed while it is pending, whether a provider can tell why or not.
    async fn is_pending(&self) -> Played {
        self.claim().await.is_pending()?;
        self.world.is_unsigned().await
    }

    /// The claim is refused with one of these codes, and nothing is signed.
    async fn is_refused(&self, claimed: &Withdrawal, wanted: &[&str]) -> Played {
        let verdict = claimed.claimed(&self.world, None).await;
        verdict.is_refused_as(wanted)?;
        self.world.is_unsigned().await
    }

    /// What was executed is signed, as exactly that.
    async fn is_burned(&self) -> Played {
        let signed = ended(async || self.claim().await).await.signed()?;
        self.it.burned(&self.world, &signed)
    }

    /// The depository executes it, and that is signed.
    async fn ends(&self) -> Played {
        self.execute()?;
        self.is_burned().await
    }
}

/// Executed in every currency, asked about again and again, by its transaction or without.
pub async fn executed(script: &'static dyn Script) -> Played {
    for currency in script.currencies() {
        let setup = Setup::default();
        let it = Case::with(script, setup, |asked, _| asked.currency = currency).await?;
        within(currency, it.is_pending().await)?;
        let tx = it.execute()?;
        within(currency, it.is_burned().await)?;
        let signed = it.claim().await.signed()?;
        for _ in 0..3 {
            it.claim().await.is(&signed)?;
            it.claim_naming(&tx).await.is(&signed)?;
        }
        let statements = it.world.statements().await;
        let keys: BTreeSet<_> = statements.iter().collect();
        ensure(keys.len() == 1, || format!("{currency}: {keys:?}"))?;
    }
    Ok(())
}

pub async fn pending(script: &'static dyn Script) -> Played {
    let it = Case::start(script).await?;
    for _ in 0..3 {
        let verdict = it.claim().await;
        ensure(verdict == Verdict::Nothing, || format!("{verdict:?}"))?;
        it.world.home.all(|ledger| ledger.grow(1));
    }
    it.world.is_unsigned().await?;
    it.ends().await
}

/// What executes it is in a block that is not final: below the depth, and above the chain's own final block.
pub async fn early(script: &'static dyn Script) -> Played {
    let it = Case::start(script).await?;
    let tx = it.execute_early(script)?;
    it.is_pending().await?;
    it.claim_naming(&tx).await.is_pending()?;
    it.world.home.all(|ledger| {
        ledger.lag = 0;
        ledger.grow(1);
    });
    it.is_burned().await
}

/// A transaction that looks like an execution and is none, named or not.
pub async fn unproven(script: &'static dyn Script, kind: ExecutionKind) -> Played {
    let it = Case::start(script).await?;
    let tx = it.it.execution(kind)?;
    it.put(&tx);
    let verdict = it.claim().await;
    ensure(verdict == Verdict::Nothing, || format!("{verdict:?}"))?;
    let verdict = it.claim_naming(&tx).await;
    ensure(verdict == Verdict::Nothing, || {
        format!("named: {verdict:?}")
    })?;
    it.world.is_unsigned().await?;
    it.ends().await
}

/// Two transactions execute it: it is burned once.
pub async fn twice(script: &'static dyn Script) -> Played {
    let it = Case::start(script).await?;
    let again = it.it.execution(ExecutionKind::Again)?;
    let first = it.execute()?;
    it.put(&again);
    it.is_burned().await?;
    let signed = it.claim().await.signed()?;
    for tx in [&first, &again] {
        it.claim_naming(tx).await.is(&signed)?;
    }
    let mut statements = it.world.statements().await;
    statements.dedup();
    ensure(statements.len() == 1, || format!("{statements:?}"))
}

/// It was executed in time, and is asked about long after.
pub async fn late(script: &'static dyn Script) -> Played {
    let until = |asked: &mut Withdrawing<'_>, ledger: &Ledger| {
        asked.until = ledger.next_time() + 2 * script.pace();
    };
    let it = Case::with(script, Setup::default(), until).await?;
    it.execute()?;
    it.world.home.all(|ledger| ledger.grow(40));
    it.is_burned().await
}

/// A withdrawal that can be executed no more, and the transaction that shows it where no time does.
async fn over(script: &'static dyn Script) -> Result<(Case, Option<Tx>), Stop> {
    let until = |asked: &mut Withdrawing<'_>, ledger: &Ledger| {
        asked.until = ledger.next_time() + 2 * script.pace();
    };
    let it = Case::with(script, Setup::default(), until).await?;
    it.is_pending().await?;
    let spent = match script.expires() {
        Ok(()) => None,
        Err(_) => Some(it.it.execution(ExecutionKind::Spent)?),
    };
    match &spent {
        Some(tx) => it.put(tx),
        None => it.world.home.all(|ledger| ledger.grow(40)),
    }
    Ok((it, spent))
}

async fn returned(it: &Case, spent: Option<&Tx>) -> Verdict {
    let named = spent.map(|tx| tx.id.as_str());
    ended(async || it.it.claimed(&it.world, named).await).await
}

pub async fn expired(script: &'static dyn Script) -> Played {
    let (it, spent) = over(script).await?;
    let signed = returned(&it, spent.as_ref()).await.signed()?;
    it.it.returned(&it.world, &signed)?;
    returned(&it, spent.as_ref()).await.is(&signed)?;
    // Another one is executed.
    Case::start(script).await?.ends().await
}

/// In its last second it is pending, a second later it is over.
pub async fn last_second(script: &'static dyn Script) -> Played {
    script.expires()?;
    for over in [false, true] {
        let until = |asked: &mut Withdrawing<'_>, ledger: &Ledger| {
            let block = ledger.at(ledger.tip().number - script.depth()).unwrap();
            asked.until = block.time - u64::from(over);
        };
        let it = Case::with(script, Setup::default(), until).await?;
        if !over {
            it.is_pending().await?;
            it.world.home.all(|ledger| ledger.grow(1));
        }
        let signed = returned(&it, None).await.signed()?;
        it.it.returned(&it.world, &signed)?;
    }
    Case::start(script).await?.ends().await
}

/// Providers that show it as over show it as executed later, and the other way round.
pub async fn both(script: &'static dyn Script) -> Played {
    let (it, spent) = over(script).await?;
    let signed = returned(&it, spent.as_ref()).await.signed()?;
    it.it.returned(&it.world, &signed)?;
    let executed = it.it.execution(ExecutionKind::Good)?;
    let number = match &spent {
        Some(tx) => it.world.home.block_of(&tx.id).number,
        None => it.world.home.ledger().tip().number - 20,
    };
    let rewrite = |txs: Vec<Tx>| {
        let edit = |ledger: &mut Ledger| ledger.rewrite(number, txs.clone());
        it.world.home.all(edit);
    };
    rewrite(vec![executed.clone()]);
    it.claim().await.is_refused(CONFLICT)?;
    // What was signed first is signed again.
    rewrite(spent.clone().into_iter().collect());
    returned(&it, spent.as_ref()).await.is(&signed)?;
    let (it, spent) = over(script).await?;
    let number = it.world.home.ledger().tip().number - script.depth() - 1;
    let rewrite = |txs: Vec<Tx>| {
        let edit = |ledger: &mut Ledger| ledger.rewrite(number, txs.clone());
        it.world.home.all(edit);
    };
    rewrite(vec![it.it.execution(ExecutionKind::Good)?]);
    it.is_burned().await?;
    rewrite(spent.clone().into_iter().collect());
    returned(&it, spent.as_ref()).await.is_refused(CONFLICT)
}

/// A reorg drops the execution before anything is signed of it.
pub async fn dropped(script: &'static dyn Script) -> Played {
    let (it, depth) = (Case::start(script).await?, script.depth());
    it.execute_early(script)?;
    it.is_pending().await?;
    it.world.home.all(|ledger| {
        ledger.reorg(depth);
        ledger.lag = 0;
        ledger.grow(depth + 2);
    });
    let gone = settled(async || it.claim().await).await;
    ensure(gone == Verdict::Nothing, || format!("{gone:?}"))?;
    it.world.is_unsigned().await?;
    it.ends().await
}

/// A reorg drops the execution after it was signed.
pub async fn undone(script: &'static dyn Script) -> Played {
    let setup = Setup {
        durable: true,
        ..Setup::default()
    };
    let it = Case::with(script, setup, |_, _| {}).await?;
    let deal = Deal::new(script, 1);
    let older = deposit(script, "older deposit", deal.id)?;
    it.world.home.put(&older, 3);
    let tx = it.execute()?;
    it.is_burned().await?;
    // The execution's block, and those on it.
    let depth = script.depth() + 2;
    it.world.home.all(|ledger| drop(ledger.reorg(depth)));
    it.world.is_halted().await?;
    it.world.home.all(|ledger| {
        ledger.put(tx.clone());
        ledger.grow(script.depth() + 2);
    });
    let again = ended(async || it.claim().await).await;
    within("in another block", again.is_refused(chain::HALTED))?;
    let funded = Funded {
        world: it.world,
        deal,
        tx: older.id.clone(),
    };
    chain::halted(funded, &older).await
}

/// All nodes move to a fork without the execution between two calls, whichever: what is signed is of the fork that has
/// it, and halts the chain.
pub async fn during(script: &'static dyn Script) -> Played {
    let moments = (0..=10).chain([1_000]);
    let played = join_all(moments.map(|calls| switching(script, calls))).await;
    played.into_iter().collect()
}

async fn switching(script: &'static dyn Script, calls: usize) -> Played {
    let it = Case::start(script).await?;
    it.execute()?;
    let home = &it.world.home;
    let mut other = home.ledger();
    other.reorg(script.depth() + 3);
    other.grow(script.depth() + 2);
    for node in &home.nodes {
        node.switch(calls, other.clone());
    }
    let part = format!("after {calls} calls");
    let verdict = it.claim().await;
    for node in &home.nodes {
        node.switch(0, other.clone());
    }
    let Verdict::Signed(signed) = &verdict else {
        let known = verdict.is_pending().is_ok() && calls < 1_000;
        ensure(known, || format!("{part}: {verdict:?}"))?;
        let later = settled(async || it.claim().await).await;
        return ensure(later == Verdict::Nothing, || format!("{part}: {later:?}"));
    };
    ensure(calls > 0, || format!("{part}: {verdict:?}"))?;
    within(&part, it.it.burned(&it.world, signed))?;
    within(&part, it.world.is_halted().await)
}

/// One provider says that it is executed, or that it is not, against two.
pub async fn lied(script: &'static dyn Script, is_executed: bool) -> Played {
    for liar in 0..3 {
        for down in [None, Some((liar + 1) % 3)] {
            let it = Case::start(script).await?;
            let tx = it.it.execution(ExecutionKind::Good)?;
            let home = &it.world.home;
            for (at, node) in home.nodes.iter().enumerate() {
                let shown = (at == liar) != is_executed;
                node.edit(|ledger| {
                    ledger.push(shown.then(|| tx.clone()).into_iter().collect());
                    ledger.grow(script.depth() + 1);
                });
            }
            let part = format!("provider {liar} lies, down: {down:?}");
            let Some(down) = down else {
                let verdict = it.claim().await;
                let played = match is_executed {
                    true => it.it.burned(&it.world, &verdict.signed()?),
                    false => ensure(verdict == Verdict::Nothing, || format!("{verdict:?}")),
                };
                within(&part, played)?;
                within(&part, home.is_disputed(liar, true).await)?;
                continue;
            };
            home.nodes[down].behave(DOWN);
            within(&part, it.claim().await.is_refused(SHORT_OF_VOTES))?;
            within(&part, it.world.is_unsigned().await)?;
        }
    }
    Ok(())
}

/// Providers are down: one, two, all of them; then none.
pub async fn lost(script: &'static dyn Script) -> Played {
    for lost in 1..=3 {
        let it = Case::start(script).await?;
        it.execute()?;
        let nodes = &it.world.home.nodes;
        nodes[..lost].iter().for_each(|node| node.behave(DOWN));
        if lost == 1 {
            it.is_burned().await?;
            continue;
        }
        it.claim().await.is_refused(SHORT_OF_VOTES)?;
        it.world.is_unsigned().await?;
        it.world.home.behave(&Manner::Plain);
        it.is_burned().await?;
    }
    Ok(())
}

/// What is shown is executed, and is not what was asked for.
async fn other(
    script: &'static dyn Script,
    change: impl FnOnce(&mut Withdrawal),
    wanted: &[&str],
) -> Played {
    let it = Case::start(script).await?;
    it.execute()?;
    let mut claimed = it.it.clone();
    change(&mut claimed);
    it.is_refused(&claimed, wanted).await?;
    it.is_burned().await
}

pub async fn other_recipient(script: &'static dyn Script) -> Played {
    let stranger = script.accounts().stranger;
    other(script, |it| it.recipient = stranger.into(), &[MISMATCH]).await
}

pub async fn other_currency(script: &'static dyn Script) -> Played {
    // A family of one currency has no other.
    let currencies = script.currencies();
    let [_, second, ..] = currencies[..] else {
        return Err(Stop::from("there is one currency"));
    };
    other(script, |it| it.currency = second.into(), &[MISMATCH]).await
}

pub async fn no_bytes(script: &'static dyn Script) -> Played {
    let changes: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes.truncate(bytes.len() - 1),
        |bytes| bytes.push(0),
        |bytes| bytes[0] ^= 1,
        Vec::clear,
    ];
    for change in changes {
        let it = Case::start(script).await?;
        it.execute()?;
        let mut bytes = it.it.encoded.clone();
        change(&mut bytes);
        let claimed = it.it.shown_as(bytes);
        it.is_refused(&claimed, &[INVALID, MISMATCH]).await?;
        it.is_burned().await?;
    }
    Ok(())
}

/// The request is for a withdrawal on another chain.
pub async fn other_chain(script: &'static dyn Script) -> Played {
    let it = Case::start(script).await?;
    it.execute()?;
    let verdict = it.it.claimed_for(&it.world, AWAY, None).await;
    verdict.is_refused(MISMATCH)?;
    it.world.is_unsigned().await?;
    it.is_burned().await
}

pub async fn of_nothing(script: &'static dyn Script) -> Played {
    let it = Case::start(script).await?;
    let nothing = Withdrawing {
        amount: 0,
        ..good(script)
    };
    let claimed = Withdrawal::new(script, &nothing);
    it.put(&claimed.execution(ExecutionKind::Good)?);
    it.is_refused(&claimed, &["WITHDRAWAL_ZERO"]).await?;
    Case::start(script).await?.ends().await
}

/// Its execution would not prove the payment, or it moves more.
pub async fn unsound(script: &'static dyn Script) -> Played {
    for (what, encoded) in script.unsound_withdrawals(&good(script))? {
        let it = Case::start(script).await?;
        let claimed = it.it.shown_as(encoded);
        within(what, it.is_refused(&claimed, &[INVALID]).await)?;
        within(what, it.ends().await)?;
    }
    Ok(())
}

pub async fn foreign(script: &'static dyn Script) -> Played {
    let it = Case::start(script).await?;
    let claimed = it.it.shown_as(script.foreign_withdrawal(&good(script))?);
    // Where the encoding does not name the depository to everybody, its family's readers refuse it.
    it.is_refused(&claimed, &[MISMATCH, INVALID]).await?;
    it.ends().await
}

/// One unit more than the allocator recorded is executed.
pub async fn other_amount(script: &'static dyn Script) -> Played {
    let it = Case::start(script).await?;
    let more = Withdrawing {
        amount: AMOUNT + 1,
        ..good(script)
    };
    let claimed = Withdrawal::new(script, &more);
    it.put(&claimed.execution(ExecutionKind::Good)?);
    let verdict = claimed.claimed(&it.world, None).await;
    ensure(verdict == Verdict::Nothing, || format!("{verdict:?}"))?;
    it.world.is_unsigned().await?;
    // With a record of its own it is one.
    claimed.record(&it.world);
    let signed = claimed.claimed(&it.world, None).await.signed()?;
    claimed.burned(&it.world, &signed)
}

/// The allocator has recorded nothing, then something else under the request.
pub async fn unrecorded(script: &'static dyn Script) -> Played {
    let world = World::start(script).await?;
    let it = Case {
        it: Withdrawal::new(script, &good(script)),
        world,
    };
    it.execute()?;
    let verdict = it.claim().await;
    ensure(verdict == Verdict::Nothing, || format!("{verdict:?}"))?;
    it.world.is_unsigned().await?;
    let second = Withdrawing {
        number: 2,
        ..good(script)
    };
    Withdrawal::new(script, &second).record(&it.world);
    it.is_refused(&it.it, &[MISMATCH]).await?;
    it.it.record(&it.world);
    it.is_burned().await
}

/// The claim names a transaction that has not executed it: one of somebody else's, one that nobody knows.
pub async fn named(script: &'static dyn Script) -> Played {
    let it = Case::start(script).await?;
    it.execute()?;
    let deposited = deposit(script, "somebody's deposit", Deal::new(script, 1).id)?;
    it.put(&deposited);
    let verdict = it.claim_naming(&deposited).await;
    verdict.is_refused("WITHDRAWAL_NOT_IN_TRANSACTION")?;
    let unknown = Tx {
        id: script.id("a transaction of nobody's"),
        ..deposited
    };
    let verdict = it.claim_naming(&unknown).await;
    verdict.is_refused("TRANSACTION_MISSING")?;
    it.world.is_unsigned().await?;
    it.is_burned().await
}

/// The claim names the transaction that executed another withdrawal, then one that failed.
pub async fn named_other(script: &'static dyn Script) -> Played {
    script.names_withdrawals()?;
    let it = Case::start(script).await?;
    it.execute()?;
    let second = Withdrawing {
        number: 2,
        ..good(script)
    };
    let second = Withdrawal::new(script, &second);
    let cases = [
        (
            second.execution(ExecutionKind::Good)?,
            "WITHDRAWAL_NOT_IN_TRANSACTION",
        ),
        (
            it.it.execution(ExecutionKind::LookAlike)?,
            "WITHDRAWAL_NOT_IN_TRANSACTION",
        ),
        (
            it.it.execution(ExecutionKind::Failed)?,
            "TRANSACTION_REVERTED",
        ),
    ];
    for (tx, code) in cases {
        it.put(&tx);
        it.claim_naming(&tx).await.is_refused(code)?;
    }
    it.world.is_unsigned().await?;
    it.is_burned().await
}

/// A world that has an index.
fn indexed(seats: Seats) -> Setup {
    Setup {
        seats,
        ..Setup::default()
    }
}

/// An index names what ended a withdrawal: nobody else has to.
pub async fn told_by_index(script: &'static dyn Script) -> Played {
    for seats in [Seats::Index, Seats::Beside] {
        let it = Case::with(script, indexed(seats), |_, _| {}).await?;
        let tx = it.it.execution(ExecutionKind::Good)?;
        it.world.home.put(&tx, script.depth() - 1);
        let verdict = it.claim().await;
        ensure(verdict == Verdict::Nothing, || format!("{verdict:?}"))?;
        it.world.is_unsigned().await?;
        it.world.home.all(|ledger| ledger.grow(1));
        it.is_burned().await?;
        let it = Case::with(script, indexed(seats), |_, _| {}).await?;
        it.put(&it.it.execution(ExecutionKind::Spent)?);
        let signed = returned(&it, None).await.signed()?;
        it.it.returned(&it.world, &signed)?;
    }
    Ok(())
}

/// An index names what no node has: nothing is signed on its word, and what the nodes show is.
pub async fn misled_by_index(script: &'static dyn Script) -> Played {
    let it = Case::with(script, indexed(Seats::Beside), |_, _| {}).await?;
    let spent = it.it.execution(ExecutionKind::Spent)?;
    let executed = it.it.execution(ExecutionKind::Good)?;
    let home = &it.world.home;
    for (at, node) in home.nodes.iter().enumerate() {
        let tx = if at == 2 { &executed } else { &spent };
        node.edit(|ledger| {
            ledger.put(tx.clone());
            ledger.grow(script.depth() + 1);
        });
    }
    it.claim().await.is_refused(SHORT_OF_VOTES)?;
    it.world.is_unsigned().await?;
    let signed = it.claim_naming(&spent).await.signed()?;
    it.it.returned(&it.world, &signed)?;
    home.is_disputed(2, true).await
}
