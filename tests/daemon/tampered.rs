//! What `intentd verify` holds of a signed statement's document: each leaf of the oracle's answer, and of each answer that
//! was read for it.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use intentd::{
    attest::{
        document::{Asked, Document},
        evidence::Claim,
    },
    config::{Config, Mistakes},
    run::{
        judging::{Judged, Judging},
        rules::Rules,
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::evidence::{SIGNER, elsewhere};
use crate::support::daemon::Setup;

/// How verify calls a claim that is refused when it is judged again.
const REFUSED: &str = "the claim is refused: ";

/// Changes documents, one leaf at a time, and expects that each change is refused with its place. Nothing in the two
/// parts is left out: a document has no peers' signatures, and the order of what it lists counts.
pub struct Tampering {
    config: Config,
    rules: Rules,
    /// The kinds of statements so far.
    kinds: BTreeSet<String>,
    /// Changed documents, and why they are refused: some of each kind.
    kept: Vec<(Value, String)>,
}

impl Tampering {
    /// Judges as daemons of `setup` do.
    pub fn of(setup: &Setup) -> Self {
        let directory = TempDir::new().unwrap();
        let config = Config::from_variables(setup.environment(directory.path())).unwrap();
        Self {
            rules: Rules::of(&config, Mistakes::default()).unwrap(),
            config,
            kinds: BTreeSet::new(),
            kept: Vec::new(),
        }
    }

    /// Changes each leaf of the answer in a document, and of each answer that was read. The claim is judged once, and
    /// again only where nothing else is wrong: the rest of what verify does is called for every leaf.
    pub async fn check(&mut self, kind: &str, sound: &Value) {
        let document: Document = serde_json::from_value(sound.clone()).unwrap();
        let judged = self.judged(&document).await;
        assert!(judged.status.is_success(), "{kind}: {}", judged.answer);
        assert_eq!(self.flaws(&document, &judged), [""; 0], "{kind}: {sound}");
        let answer = leaves("/answer", &sound["answer"]);
        let reads = (0..document.reads.len()).flat_map(|at| {
            let read = &sound["reads"][at]["answer"];
            leaves(&format!("/reads/{at}/answer"), read)
        });
        let paths: Vec<_> = answer.iter().cloned().chain(reads).collect();
        let mut refused = Vec::new();
        for path in &paths {
            let changed = changed(sound, path);
            let why = self.refused(&changed, &judged).await;
            let places = places(path);
            let is_named = |why: &String| places.iter().any(|place| why.starts_with(place));
            let named = why.iter().position(is_named);
            let named = named.unwrap_or_else(|| panic!("{kind} {path}: {why:?}\n{changed}"));
            refused.push(why[named].clone());
        }
        if self.kinds.insert(kind.to_owned()) {
            // The first and the last of the answer, and of what was read.
            let ends = [0, answer.len() - 1, answer.len(), paths.len() - 1];
            let ends = BTreeSet::from(ends)
                .into_iter()
                .filter(|at| *at < paths.len());
            let kept = ends.map(|at| (changed(sound, &paths[at]), refused[at].clone()));
            self.kept.extend(kept);
        }
    }

    /// Expects the command itself to refuse what was kept, for the same reasons.
    pub async fn told(self, setup: &Setup) {
        let words = ["verify", "--signer", SIGNER, "-"];
        let told = self.kept.iter().map(|(changed, why)| async move {
            let told = elsewhere(setup, &[], &words, &changed.to_string()).await;
            let told = told.expect_err(why);
            assert!(told.contains(why), "{why}: {told}");
        });
        stream::iter(told).for_each_concurrent(4, |told| told).await;
    }

    /// What its claim is judged to be over the evidence in a document.
    async fn judged(&self, document: &Document) -> Judged {
        let (reads, at) = (&document.reads, document.signed_at);
        let judging = Judging::over(&self.config, &self.rules, reads, at).unwrap();
        let Asked { target, key, body } = document.request.clone();
        let body = body.into_bytes().into();
        judging.judge(&Claim { target, body, key }).await.unwrap()
    }

    /// What is wrong with a document whose claim is judged to be `judged`.
    fn flaws(&self, document: &Document, judged: &Judged) -> Vec<String> {
        let mut flaws = document.check_votes(|chain| self.rules.chains.required(chain));
        if flaws.is_empty() {
            let statements = judged.statements.iter();
            let digests: Vec<_> = statements.map(|statement| statement.digest).collect();
            flaws.extend(document.check_signatures(&judged.answer, &digests));
            flaws.extend(document.check_answer(&judged.answer));
        }
        flaws.iter().map(ToString::to_string).collect()
    }

    /// Why a changed document is refused; `judged` is what its claim was before.
    async fn refused(&self, changed: &Value, judged: &Judged) -> Vec<String> {
        let document = match serde_path_to_error::deserialize::<_, Document>(changed) {
            Ok(document) => document,
            Err(unread) => return vec![unread.to_string()],
        };
        let flaws = self.flaws(&document, judged);
        if !flaws.is_empty() {
            return flaws;
        }
        let judged = self.judged(&document).await;
        match judged.status.is_success() {
            true => self.flaws(&document, &judged),
            false => {
                let status = judged.status.as_u16();
                vec![format!("{REFUSED}{status} {}", judged.answer)]
            }
        }
    }
}

/// How the refusal of a change at `path` may begin.
fn places(path: &str) -> Vec<String> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match &parts[..] {
        // What is no answer at all is refused where it is read, and what needs no votes where the claim is judged.
        ["reads", at, ..] => vec![
            format!("reads/{at}: "),
            format!("reads[{at}].answer"),
            REFUSED.to_owned(),
        ],
        // One makes the other wrong.
        [list @ .., "oracleSigner" | "signature"] => vec![format!("{}: ", list.join("/"))],
        all => vec![format!("{}: ", all.join("/"))],
    }
}

/// The paths of all parts of `value`, which is at `path`, that have no parts themselves.
fn leaves(path: &str, value: &Value) -> Vec<String> {
    let inside: Vec<_> = match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            fields.map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, item)| (at.to_string(), item)).collect()
        }
        _ => return vec![path.to_owned()],
    };
    let inside = inside.into_iter();
    let inside = inside.flat_map(|(name, value)| leaves(&format!("{path}/{name}"), value));
    inside.collect()
}

/// The document with another value of the same kind at `path`.
fn changed(sound: &Value, path: &str) -> Value {
    let mut changed = sound.clone();
    let leaf = changed.pointer_mut(path).unwrap();
    *leaf = match &*leaf {
        Value::String(text) => {
            let mut text = text.clone();
            let last = text.pop();
            text.push(if last == Some('1') { '2' } else { '1' });
            text.into()
        }
        Value::Number(number) => json!(number.as_u64().unwrap() + 1),
        Value::Bool(holds) => json!(!holds),
        _ => json!(1),
    };
    changed
}

#[test]
fn each_leaf_is_found_and_changed_alone() {
    let value = json!({"a": [{"b": "0x11"}, 7, ["0x"]], "c": true, "d": null, "e": "", "f": []});
    let found = leaves("", &value);
    assert_eq!(found, ["/a/0/b", "/a/1", "/a/2/0", "/c", "/d", "/e"]);
    for path in &found {
        let changed = changed(&value, path);
        assert_eq!(leaves("", &changed), found);
        let others = found.iter();
        let differ = others.filter(|path| changed.pointer(path) != value.pointer(path));
        assert_eq!(differ.collect::<Vec<_>>(), [path]);
    }
}
