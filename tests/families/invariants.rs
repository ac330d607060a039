//! What holds at the end of every scenario: the solver has paid for each deposit once, by a fill or by a refund; it
//! reserves nothing any more; the store has no defect. No other file of this test reads the store.

use alloy::primitives::U256;
use intentd::{
    request::{
        fact::{Facts, State},
        reason::{FailReason, RefundFailReason},
    },
    store::{
        Kind, Range, Store, check,
        requests::Requests,
        rows::{self, settlement::Settlement},
    },
};

use crate::{deal::Deal, machine::Machine, side::Act};

/// How a deal ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The recipient was paid once, at least what was promised.
    Filled,
    /// The user got the deposit back once, without its cost.
    Refunded,
    /// The user deposited twice: the recipient was paid once, and the user got one deposit back.
    Twice,
    /// The user paid the recipient himself; the solver paid nobody.
    Own,
    /// The user got back what the costs left of a deposit that was worth little.
    Remainder,
    /// The solver paid nobody: giving the deposit back cost more than it.
    Kept,
}

/// Seconds within which every deal ends.
pub const PATIENCE: u64 = 900;
/// Seconds in which blocks include what was sent again.
pub const AGAIN: u64 = 40;

impl Machine {
    /// Waits until a deal has ended and nothing of it is under way; what is wrong with its end.
    pub async fn ends(&mut self, deal: &Deal, wanted: Ending) -> Vec<String> {
        let status = match wanted {
            Ending::Filled | Ending::Twice | Ending::Own => "success",
            Ending::Refunded | Ending::Remainder => "refund",
            Ending::Kept => "failure",
        };
        let ended = self.until(PATIENCE, async |machine: &Machine| {
            let given_back = wanted != Ending::Twice || !machine.refunded(deal).is_empty();
            given_back && machine.status(deal).await == status && open(machine).await.is_empty()
        });
        let mut wrong = Vec::new();
        if !ended.await {
            let (is, open) = (self.status(deal).await, open(self).await);
            wrong.push(format!("{is} instead of {status}, open: {open:?}"));
        }
        for side in [&self.origin, &self.destination] {
            side.blocks().act(Act::Resend);
        }
        self.pass(AGAIN).await;
        wrong.extend(self.balanced(deal, wanted));
        wrong
    }

    fn balanced(&self, deal: &Deal, wanted: Ending) -> Vec<String> {
        let (filled, refunded) = (self.filled(deal), self.refunded(deal));
        let counts = match wanted {
            Ending::Filled => (1, 0),
            Ending::Refunded | Ending::Remainder => (0, 1),
            Ending::Twice => (1, 1),
            Ending::Own | Ending::Kept => (0, 0),
        };
        let mut wrong = Vec::new();
        if (filled.len(), refunded.len()) != counts {
            wrong.push(format!("filled {filled:?}, refunded {refunded:?}"));
        }
        let short = filled.iter().filter(|one| one.amount < deal.minimum);
        wrong.extend(short.map(|one| format!("{} of {}", one.amount, deal.minimum)));
        // Of two deposits the second one may be a little more.
        let tenth = deal.amount / U256::from(10);
        let fair = match wanted {
            Ending::Remainder => U256::ONE..=deal.amount,
            _ => deal.amount - tenth..=deal.amount + tenth / U256::from(100),
        };
        let unfair = refunded.iter().filter(|one| !fair.contains(&one.amount));
        wrong.extend(unfair.map(|one| format!("{} back of {}", one.amount, deal.amount)));
        wrong
    }

    /// How many transactions the solver has signed for the request.
    pub async fn signed(&self, deal: &Deal) -> usize {
        self.attempts(deal).await.len()
    }

    /// How many of them failed in a block.
    pub async fn failed(&self, deal: &Deal) -> usize {
        let attempts = self.attempts(deal).await.into_iter();
        attempts
            .filter(|state| matches!(state, State::Reverted { .. }))
            .count()
    }

    /// Why the order was not filled.
    pub async fn failure(&self, deal: &Deal) -> Option<FailReason> {
        self.facts(deal).await.failure
    }

    /// Why its deposits fill nothing.
    pub async fn reasons(&self, deal: &Deal) -> Vec<FailReason> {
        let endings = self.facts(deal).await.endings.into_iter();
        endings.map(|one| one.reason).collect()
    }

    /// Why the operator has deposits of the request before him.
    pub async fn parked(&self, deal: &Deal) -> Vec<RefundFailReason> {
        let all = self.operator().parked(true).await.unwrap().into_iter();
        let own = all.filter(|left| left.request == deal.request);
        own.map(|left| left.parked.why).collect()
    }

    /// The operator has the solver decide anew about the request's deposits.
    pub async fn release(&mut self, deal: &Deal) {
        let all = self.operator().parked(true).await.unwrap().into_iter();
        for left in all.filter(|left| left.request == deal.request) {
            self.operator().release(left.deposit).await.unwrap();
            self.note(format!("{} is released", left.deposit));
        }
    }

    async fn facts(&self, deal: &Deal) -> Facts {
        let requests = Requests::new(self.store.clone());
        requests.facts(&deal.request).await.unwrap()
    }

    async fn attempts(&self, deal: &Deal) -> Vec<State> {
        let facts = self.facts(deal).await;
        facts
            .attempts
            .into_iter()
            .map(|attempt| attempt.state)
            .collect()
    }
}

/// What is wrong with the rows of the store.
pub async fn check(machine: &Machine) -> Vec<String> {
    let report = check::check(&*machine.store).await.unwrap();
    let defects = report.listed.iter().map(ToString::to_string);
    let reserved = scan(machine, rows::RESERVATION).await.len();
    let reserved = (reserved > 0).then(|| format!("{reserved} reservations are left"));
    defects.chain(reserved).collect()
}

async fn scan(machine: &Machine, kind: Kind) -> Vec<Vec<u8>> {
    let range = Range {
        kind,
        prefix: Vec::new(),
        after: None,
        limit: usize::MAX,
        reverse: false,
    };
    let found = machine.store.scan(range).await.unwrap();
    found.into_iter().map(|(_, value)| value).collect()
}

/// What is still under way, as texts.
pub async fn open(machine: &Machine) -> Vec<String> {
    let attempts = scan(machine, rows::ATTEMPT).await.len();
    let attempts = (attempts > 0).then(|| format!("{attempts} attempts"));
    let settlements = scan(machine, rows::SETTLEMENT).await;
    let settlements = settlements
        .iter()
        .map(|value| Settlement::decode(value).unwrap());
    let settlements = settlements.map(|one| format!("{one:?}"));
    attempts.into_iter().chain(settlements).collect()
}
