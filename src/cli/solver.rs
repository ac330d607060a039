//! `intentd solver`: the pause, deposits that are parked, payments that are not settled.

use std::path::Path;

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

/// What the daemon that runs with `data_dir` says to `question`.
pub async fn answer(question: Question, data_dir: &Path) -> anyhow::Result<String> {
    match asked(data_dir, &admin::Question::Solver(question)).await? {
        admin::Answer::Solver(answer) => Ok(text(&answer)),
        other => Err(super::unexpected(&other)),
    }
}

fn text(answer: &Answer) -> String {
    match answer {
        Answer::Standing { standing } => status(standing),
        Answer::Resumed { was: true } => "the solver fills again".into(),
        Answer::Resumed { was: false } => "the solver was not paused".into(),
        Answer::Parked { parked, more } => {
            let listed = lines(parked, left, "no deposit is parked");
            match *more {
                0 => listed,
                more => format!("{listed}\n{more} older ones are not shown: see --skip"),
            }
        }
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

#[cfg(test)]
mod tests {
    use alloy::primitives::B256;
    use clap::Parser;

    use super::*;
    use crate::cli::{Arguments, Command};

    fn asked(line: &str) -> Option<Question> {
        let line = format!("intentd solver {line}");
        match Arguments::try_parse_from(line.split(' ')).ok()?.command? {
            Command::Solver(question) => Some(question),
            _ => None,
        }
    }

    #[test]
    fn older_parked_deposits_that_are_not_shown_are_counted() {
        let listed = |more: usize| {
            text(&Answer::Parked {
                parked: Vec::new(),
                more,
            })
        };
        assert_eq!(listed(0), "no deposit is parked");
        let last = "7 older ones are not shown: see --skip";
        assert_eq!(listed(7).lines().last(), Some(last));
    }

    #[test]
    fn each_question_has_its_words() {
        let deposit = B256::repeat_byte(7);
        let pause = |why: &str| Question::Pause { why: why.into() };
        let parked = |all: bool, skip: usize| Question::Parked { all, skip };
        let questions = [
            ("status".into(), Question::Standing {}),
            ("pause".into(), pause("paused by the operator")),
            ("pause funds".into(), pause("funds")),
            ("resume".into(), Question::Resume {}),
            ("parked".into(), parked(false, 0)),
            ("parked --all".into(), parked(true, 0)),
            ("parked --all --skip 1000".into(), parked(true, 1_000)),
            (format!("release {deposit}"), Question::Release { deposit }),
            (format!("dismiss {deposit}"), Question::Dismiss { deposit }),
            ("unsettled".into(), Question::Unsettled {}),
            (format!("retry {deposit}"), Question::Retry { deposit }),
            (
                format!("write-off {deposit}"),
                Question::WriteOff { deposit },
            ),
        ];
        for (line, question) in questions {
            assert_eq!(asked(&line), Some(question), "{line}");
        }
        for line in [
            "standing",
            "pause it now",
            "parked all",
            "parked --skip",
            "release",
            "retry 7",
        ] {
            assert_eq!(asked(line), None, "{line}");
        }
    }
}
