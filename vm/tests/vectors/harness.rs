//! Runs the known answers of a directory, one trial per file, and prints how many cases it held.
//!
//! `VECTORS_DIR` names another directory with files of the same functions.

mod files;
mod strict;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

/// One known answer.
#[allow(dead_code)]
pub struct Case {
    pub id: String,
    pub note: String,
    pub input: Value,
    /// What the reference answers; null where it refuses.
    pub expected: Value,
    /// The reference's words where it refuses.
    pub refusal: Option<String>,
}

/// What we answer to a case, or why we refuse it.
pub type Answer = Result<Value, String>;

/// The file's name and how its cases are answered.
pub type Row = (&'static str, fn(&Case) -> Answer);

/// Whose files a runner answers for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)]
pub enum Side {
    Wire,
    Daemon,
}

/// Runs every file of the directory that is on `side`, or on none.
pub fn run(side: Side, rows: &[&[Row]]) -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = match names() {
        Ok(names) => names
            .into_iter()
            .filter(|name| belongs(side, name))
            .map(|name| trial(name, rows))
            .collect(),
        Err(why) => vec![Trial::test("directory", move || Err(why.into()))],
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A file of the directory that is no known answer, else the crate's own file of that name.
#[allow(dead_code)]
pub fn settings(name: &str) -> Result<Value, String> {
    let here = directory().join(name);
    read(&if here.is_file() {
        here
    } else {
        own().join(name)
    })
}

fn belongs(side: Side, name: &str) -> bool {
    let other = match side {
        Side::Wire => files::DAEMON,
        Side::Daemon => files::WIRE,
    };
    !other.contains(&name) && !files::SETTINGS.contains(&name)
}

fn workspace() -> &'static Path {
    let krate = Path::new(env!("CARGO_MANIFEST_DIR"));
    if krate.ends_with("vm") {
        krate.parent().unwrap_or(krate)
    } else {
        krate
    }
}

fn own() -> PathBuf {
    workspace().join("vm/fixtures/vectors")
}

/// Cargo starts a test in its crate's directory; a relative `VECTORS_DIR` is meant from the root.
fn directory() -> PathBuf {
    std::env::var_os("VECTORS_DIR").map_or_else(own, |named| workspace().join(named))
}

fn names() -> Result<Vec<String>, String> {
    let directory = directory();
    let say = |e: std::io::Error| format!("{}: {e}", directory.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(say)? {
        let name = entry
            .map_err(say)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if name.ends_with(".json") {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Err(format!("{}: no known answers", directory.display()));
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn trial(name: String, rows: &[&[Row]]) -> Trial {
    let row = rows
        .iter()
        .flat_map(|rows| rows.iter())
        .find(|(file, _)| *file == name)
        .map(|(_, answer)| *answer);
    match (cases(&name), row) {
        (Err(why), _) => Trial::test(name, move || Err(why.into())),
        (Ok(cases), None) => {
            let label = format!("{name} ({} cases)", cases.len());
            Trial::test(label, || Err("no runner answers for this file".into()))
        }
        (Ok(cases), Some(answer)) => {
            let strict = cases
                .iter()
                .filter(|c| strict::refused(&name, &c.note, &c.input));
            let label = match strict.count() {
                0 => format!("{name} ({} cases)", cases.len()),
                n => format!("{name} ({} cases, {n} refused on purpose)", cases.len()),
            };
            let name: Arc<str> = name.into();
            Trial::test(label, move || judge(&name, &cases, answer))
        }
    }
}

fn cases(name: &str) -> Result<Vec<Case>, String> {
    let file = read(&directory().join(name))?;
    let cases = file
        .get("cases")
        .and_then(Value::as_array)
        .ok_or("no cases in it")?;
    let text = |case: &Value, key| {
        case.get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let case = |case: &Value| Case {
        id: text(case, "id"),
        note: text(case, "note"),
        input: case.get("input").cloned().unwrap_or_default(),
        expected: case.get("expected").cloned().unwrap_or_default(),
        refusal: case
            .get("throws")
            .is_some_and(|throws| throws == true)
            .then(|| text(case, "errorMessage")),
    };
    Ok(cases.iter().map(case).collect())
}

fn judge(file: &str, cases: &[Case], answer: fn(&Case) -> Answer) -> Result<(), Failed> {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let why = compare(file, case, answer(case)).err()?;
            Some(format!("{} {}: {why}", case.id, case.note))
        })
        .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let shown = wrong.iter().take(20).cloned().collect::<Vec<_>>();
    let head = format!("{} of {} cases differ", wrong.len(), cases.len());
    Err(format!("{head}\n{}", shown.join("\n")).into())
}

fn compare(file: &str, case: &Case, answer: Answer) -> Result<(), String> {
    let strict = strict::refused(file, &case.note, &case.input);
    match (answer, &case.refusal) {
        (Ok(ours), _) if strict => Err(format!("should be refused, answered {ours}")),
        (Err(_), _) if strict => Ok(()),
        (Ok(ours), Some(theirs)) => Err(format!("should be refused ({theirs}), answered {ours}")),
        (Ok(ours), None) if ours == case.expected => Ok(()),
        (Ok(ours), None) => Err(format!("expected {}, answered {ours}", case.expected)),
        (Err(ours), None) => Err(format!("expected {}, refused: {ours}", case.expected)),
        (Err(ours), Some(theirs)) if files::WORDED.contains(&file) && ours != *theirs => Err(
            format!("should be refused with {theirs:?}, is with {ours:?}"),
        ),
        (Err(_), Some(_)) => Ok(()),
    }
}
