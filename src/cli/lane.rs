//! `intentd lane`: what the accounts of the running daemon's solver have under way.

use std::path::Path;

use super::asked;
use crate::admin::{
    Answer, Question,
    lanes::{self, Healed, Row},
};

/// What the daemon that runs with `data_dir` says to `question`.
pub async fn answer(question: lanes::Question, data_dir: &Path) -> anyhow::Result<String> {
    match asked(data_dir, &Question::Lanes(question)).await? {
        Answer::Lanes(lanes::Answer::Shown { accounts }) => Ok(shown(&accounts)),
        Answer::Lanes(lanes::Answer::Healed { accounts }) => Ok(healed(&accounts)),
        other => Err(super::unexpected(&other)),
    }
}

fn shown(accounts: &[Row]) -> String {
    let text = |row: &Row| {
        let Row {
            network, account, ..
        } = row;
        let next = row.next.as_deref().unwrap_or("-");
        let mined = match &row.mined {
            Ok(mined) => mined.clone(),
            Err(why) => format!("unknown ({why})"),
        };
        let mut lines = vec![format!("{network}  {account}  next {next}  mined {mined}")];
        if !row.gaps.is_empty() {
            lines.push(format!(
                "  MISSING [{}]: intentd lane heal {network}",
                row.gaps.join(", ")
            ));
        }
        for open in &row.open {
            let transaction = open.transaction.as_deref().unwrap_or("-");
            let cancelled = if open.cancelled { "  cancelled" } else { "" };
            lines.push(format!(
                "  {}  {}  {transaction}  versions {}  since {}  refused {}{cancelled}",
                open.attempt, open.of, open.versions, open.since, open.refused
            ));
        }
        lines.join("\n")
    };
    match accounts.is_empty() {
        true => "no lanes".into(),
        false => accounts.iter().map(text).collect::<Vec<_>>().join("\n"),
    }
}

fn healed(accounts: &[Healed]) -> String {
    let text = |healed: &Healed| match healed.used_up.is_empty() {
        true => format!(
            "{}: the store counts as current; nothing had to be used up",
            healed.account
        ),
        false => format!(
            "{}: the store counts as current; used up [{}]",
            healed.account,
            healed.used_up.join(", ")
        ),
    };
    accounts.iter().map(text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Healed, healed, lanes::Question};
    use crate::cli::{Arguments, Command};

    #[test]
    fn each_question_has_its_words() {
        let asked = |line: &str| match Arguments::try_parse_from(line.split(' ')).ok()?.command? {
            Command::Lane(question) => Some(question),
            _ => None,
        };
        let of = |name: &str| Some(name.to_owned());
        let questions = [
            ("show", Question::Show { network: None }),
            (
                "show base",
                Question::Show {
                    network: of("base"),
                },
            ),
            (
                "heal base",
                Question::Heal {
                    network: "base".into(),
                },
            ),
        ];
        for (line, question) in questions {
            assert_eq!(asked(&format!("intentd lane {line}")), Some(question));
        }
        assert_eq!(asked("intentd lane heal"), None);
    }

    #[test]
    fn who_heals_is_told_that_payments_go_on_whatever_was_used_up() {
        let of = |used_up: &[&str]| Healed {
            account: "0x01".to_owned(),
            used_up: used_up.iter().map(|one| (*one).to_owned()).collect(),
        };
        let told = "0x01: the store counts as current; nothing had to be used up\n\
                    0x01: the store counts as current; used up [4, 5]";
        assert_eq!(healed(&[of(&[]), of(&["4", "5"])]), told);
    }
}
