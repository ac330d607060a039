//! Whether an attempt gained anything: the stranger's wealth, the solver's, and what became of the
//! honest user, beside him and alone.

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use intentd::admin::solver::{Answer, Question};

use super::{
    arena::Arena,
    life::{Life, Outcome, Wish},
    stranger::{Fixture, Stranger},
    table::Attack,
    wealth::{Coin, Wealth, dollars, sum},
};
use crate::demo::page::Page;

/// Gas is not the same to the unit each time (a slot of storage that is new costs more): what the solver
/// may have less than without the stranger. Two cents, in dollars of 24 decimals.
const BOUND: i128 = 20_000_000_000_000_000_000_000;

/// What an honest order comes to when nobody disturbs it.
struct Alone {
    wish: Wish,
    outcome: Outcome,
    /// What the solver earns by it.
    earned: i128,
}

/// Compares what everybody has after an attempt with what they have without it.
pub struct Judge {
    alone: Vec<Alone>,
}

/// What came of an attempt.
pub struct Verdict {
    pub lines: Vec<String>,
    /// What somebody gained or lost by it.
    wrong: Vec<String>,
}

/// What the stranger and the solver have, before or after an attempt.
struct Holdings {
    /// What he has, and what he has paid for gas: gas is nobody's gain.
    stranger: Wealth,
    solver: Wealth,
}

impl Judge {
    /// Sees how honest orders end that nobody disturbs.
    pub async fn alone(arena: &Arc<Arena>, attacks: &[&Attack], page: &Page) -> Result<Self> {
        let mut alone = Vec::new();
        for wish in [Wish::ETHER, Wish::DOLLARS] {
            if !attacks.iter().any(|attack| attack.wish == wish) {
                continue;
            }
            let solver = arena.world.solver.address();
            let before = arena.wealth(solver).await?;
            let mut life = Life::new(arena, arena.somebody()?, wish);
            let outcome = life.filled().await?;
            arena.quiet().await?;
            let earned = arena.richer(&before, &arena.wealth(solver).await?);
            ensure!(outcome.last["status"] == "success", "{}", outcome.last);
            ensure!(
                earned >= -BOUND,
                "an honest order costs the solver {}",
                dollars(-earned)
            );
            page.line(&format!(
                "an honest order alone: {} in {:.1} s, the solver earns {}",
                outcome.states.join(" > "),
                outcome.took.as_secs_f32(),
                dollars(earned)
            ))?;
            alone.push(Alone {
                wish,
                outcome,
                earned,
            });
        }
        Ok(Self { alone })
    }

    /// Lets an attack happen and tells what it came to.
    pub async fn attack(&self, arena: &Arc<Arena>, attack: &Attack) -> Verdict {
        let mut verdict = Verdict {
            lines: Vec::new(),
            wrong: Vec::new(),
        };
        let happened = self.happens(arena, attack, &mut verdict).await;
        for liar in &arena.liars {
            liar.honest();
        }
        if let Err(error) = happened {
            verdict.wrong.push(format!("{error:#}"));
            // What is still under way is not the next one's.
            if arena.quiet().await.is_err() {
                verdict
                    .wrong
                    .push("the solver has not come to rest".to_owned());
            }
        }
        let gained = match verdict.wrong.as_slice() {
            [] => "gained: nothing".to_owned(),
            wrong => format!("GAINED OR CHANGED: {}", wrong.join("; ")),
        };
        verdict.lines.push(gained);
        verdict
    }

    async fn happens(
        &self,
        arena: &Arc<Arena>,
        attack: &Attack,
        verdict: &mut Verdict,
    ) -> Result<()> {
        let mut fixture = Fixture {
            arena: arena.clone(),
            stranger: Stranger {
                arena: arena.clone(),
                account: arena.somebody()?,
            },
            victim: Life::new(arena, arena.somebody()?, attack.wish),
            notes: Vec::new(),
            prop: None,
            other: None,
        };
        (attack.prepare)(&mut fixture).await?;
        let before = Holdings::read(&fixture).await?;
        let acted = (attack.act)(&mut fixture).await;
        verdict.lines.append(&mut fixture.notes);
        acted?;
        let ended = fixture.victim.filled().await;
        arena.quiet().await?;
        self.user(attack.wish, ended?, verdict);
        let (claims, parked) = arena.claimable(fixture.stranger.address()).await?;
        if !parked.is_empty() {
            verdict.lines.push(format!(
                "of his deposits {} are parked: {}",
                parked.len(),
                each_once(&parked)
            ));
        }
        let mut after = Holdings::read(&fixture).await?;
        after.stranger = sum(&after.stranger, &claims);
        self.money(&fixture, attack.wish, [&before, &after], verdict);
        is_at_work(arena).await
    }

    fn user(&self, wish: Wish, outcome: Outcome, verdict: &mut Verdict) {
        let alone = self.alone.iter().find(|alone| alone.wish == wish);
        match alone.and_then(|alone| outcome.differs(&alone.outcome)) {
            Some(differs) => verdict.wrong.push(format!("the user {differs}")),
            None => verdict.lines.push(format!(
                "the user beside him: {} in {:.1} s, has what was promised, settled",
                outcome.states.join(" > "),
                outcome.took.as_secs_f32()
            )),
        }
    }

    fn money(
        &self,
        fixture: &Fixture,
        wish: Wish,
        [before, after]: [&Holdings; 2],
        verdict: &mut Verdict,
    ) {
        let arena = &fixture.arena;
        let gained = arena.richer(&before.stranger, &after.stranger);
        let alone = self.alone.iter().find(|alone| alone.wish == wish);
        let usual = alone.map_or(0, |alone| alone.earned);
        let earned = arena.richer(&before.solver, &after.solver) - usual;
        verdict.lines.push(format!(
            "he is {} richer (his gas apart), the solver {} (the user's order apart)",
            dollars(gained),
            dollars(earned)
        ));
        if gained > 0 {
            verdict
                .wrong
                .push(format!("the stranger gained {}", dollars(gained)));
        }
        if earned < -BOUND {
            verdict
                .wrong
                .push(format!("the solver lost {}", dollars(-earned)));
        }
    }
}

impl Verdict {
    pub fn is_nothing(&self) -> bool {
        self.wrong.is_empty()
    }
}

impl Holdings {
    async fn read(fixture: &Fixture) -> Result<Self> {
        let arena = &fixture.arena;
        let who = fixture.stranger.address();
        let gas = i128::try_from(arena.gas(who)).unwrap_or(i128::MAX);
        let gas = Wealth::from([(Coin::Ether, gas)]);
        Ok(Self {
            stranger: sum(&arena.wealth(who).await?, &gas),
            solver: arena.wealth(arena.world.solver.address()).await?,
        })
    }
}

/// Nobody has made the solver stop, or pay what nobody owes it.
async fn is_at_work(arena: &Arena) -> Result<()> {
    let Answer::Standing { standing } = arena.operator(Question::Standing {}).await? else {
        bail!("no standing");
    };
    ensure!(
        standing.paused.is_none(),
        "the solver is paused: {:?}",
        standing.paused
    );
    Ok(())
}

/// What is said of several, with how often.
fn each_once(texts: &[String]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for text in texts {
        match counted.iter_mut().find(|(known, _)| known == text) {
            Some((_, times)) => *times += 1,
            None => counted.push((text, 1)),
        }
    }
    let counted = counted
        .iter()
        .map(|(text, times)| format!("{times} x {text}"));
    counted.collect::<Vec<_>>().join(", ")
}
