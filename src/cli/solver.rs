//! `intentd solver`: the pause, deposits that are parked, payments that are not settled.

use std::path::Path;

use alloy::primitives::B256;
use clap::Subcommand;

use super::{asked, lines};
use crate::{
    admin::{
        self,
        solver::{Answer, Question},
    },
    format,
    solver::{
        admin::{Left, Standing, Unsettled},
        reconciliation::Reconciliation,
    },
};

#[derive(Debug, Subcommand)]
pub enum Solver {
    /// Whether it is paused, and what the last reconciliation found.
    Status,
    /// Begin no more fills: quotes are refused, refunds go on, what was begun is finished.
    Pause {
        /// Stands in `status` and in the log.
        #[arg(default_value = "paused by the operator")]
        why: String,
    },
    /// Fill again.
    Resume,
    /// Deposits that are neither filled nor given back, with why.
    Parked {
        /// Dust and unknown tokens, too.
        #[arg(long)]
        all: bool,
    },
    /// Decide about a parked deposit (its onchain id) anew, and give it back if that can be attested.
    Release { deposit: B256 },
    /// A parked deposit was dealt with: list it no longer.
    Dismiss { deposit: B256 },
    /// Payments that the hub has not made good yet, with why.
    Unsettled,
    /// Ask the oracle about the payment of a deposit (its onchain id) at once.
    Retry { deposit: B256 },
    /// Ask about the payment of a deposit no longer: it is lost.
    WriteOff { deposit: B256 },
}

impl Solver {
    /// What the daemon that runs with `data_dir` says to it.
    pub async fn answer(self, data_dir: &Path) -> anyhow::Result<String> {
        let question = match self {
            Self::Status => Question::Standing {},
            Self::Pause { why } => Question::Pause { why },
            Self::Resume => Question::Resume {},
            Self::Parked { all } => Question::Parked { all },
            Self::Release { deposit } => Question::Release { deposit },
            Self::Dismiss { deposit } => Question::Dismiss { deposit },
            Self::Unsettled => Question::Unsettled {},
            Self::Retry { deposit } => Question::Retry { deposit },
            Self::WriteOff { deposit } => Question::WriteOff { deposit },
        };
        let question = admin::Question::Solver(question);
        match asked(data_dir, &question).await? {
            admin::Answer::Solver(answer) => Ok(text(&answer)),
            other => Err(super::unexpected(&other)),
        }
    }
}

fn text(answer: &Answer) -> String {
    match answer {
        Answer::Standing { standing } => status(standing),
        Answer::Resumed { was: true } => "the solver fills again".into(),
        Answer::Resumed { was: false } => "the solver was not paused".into(),
        Answer::Parked { parked } => lines(parked, left, "no deposit is parked"),
        Answer::Unsettled { unsettled } => lines(unsettled, open, "everything is settled"),
        Answer::Done {} => "done".into(),
    }
}

fn status(standing: &Standing) -> String {
    let paused = match &standing.paused {
        None => "fills orders".to_owned(),
        Some(paused) => format!("paused since {}: {}", format::iso(paused.since), paused.why),
    };
    let Some(reconciliation) = &standing.reconciliation else {
        return format!("{paused}\nno reconciliation yet");
    };
    let Reconciliation {
        unsettled,
        refused,
        overdue,
        unpriced,
        unreadable,
        parked,
        minor,
        at,
        ..
    } = reconciliation;
    let usd = |milli: u64| format!("{}.{:03}", milli / 1_000, milli % 1_000);
    let [paid, owed, gap] = [reconciliation.paid, reconciliation.owed, reconciliation.gap].map(usd);
    format!(
        "{paused}\nreconciled {}: paid {paid} USD, owed {owed} USD, gap {gap} USD\n\
         not settled: {unsettled} ({refused} refused, {overdue} overdue, {unpriced} without a price)\n\
         parked: {parked} ({minor} more are dust or unknown tokens)\n\
         rows that cannot be read: {unreadable}",
        format::iso(*at)
    )
}

fn left(left: &Left) -> String {
    let Left {
        request,
        deposit,
        parked,
    } = left;
    let (reason, why) = (parked.reason.text(), parked.why.text());
    format!(
        "{deposit}  {} of {} on {}  since {}  {reason}, {why}: {}  transaction {}  depositor {}  request {request}",
        parked.amount,
        parked.currency,
        parked.network,
        format::iso(parked.since),
        parked.note,
        parked.transaction,
        parked.depositor,
    )
}

fn open(open: &Unsettled) -> String {
    let Unsettled {
        request,
        deposit,
        purpose,
        transaction,
        tries,
        ..
    } = open;
    let at = if open.deposited { "outcome" } else { "deposit" };
    let how = if open.refused { "refused" } else { "waits" };
    let why = open.why.as_deref().unwrap_or("not tried yet");
    format!(
        "{deposit}  {purpose} {transaction}  since {}  {at} {how} after {tries} tries: {why}  request {request}",
        format::iso(open.since)
    )
}
