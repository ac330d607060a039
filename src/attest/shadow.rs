//! Judging beside another oracle: every claim is judged and recorded, no signature is let out, and what the other
//! oracle answers is compared (guide: evidence).

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use vm::{http, protocol::limits};

use super::{
    document::{Difference, differences, remove_signatures},
    evidence::Claim,
};

/// Comparisons under way; of more, the answers are not compared, and the report says so.
const AT_ONCE: usize = 64;
/// How long the other oracle may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of a request in the report.
const LONGEST: usize = 8 << 10;
/// The most fields of one difference in the report.
const FIELDS: usize = 32;
/// The most characters of each of these fields.
const OF_FIELD: usize = 256;
/// The most bytes of the report, give or take a line.
const MOST: u64 = 256 << 20;

// The kinds of a line of the report, and of results in the metric.
const DIFFERS: &str = "differs";
const LEFT_OUT: &str = "left_out";
const FAILED: &str = "failed";

/// The other oracle, and the report.
#[derive(Debug)]
pub struct Shadow {
    other: Option<Url>,
    client: reqwest::Client,
    permits: Arc<Semaphore>,
    /// The file with a line of JSON for each difference, and for each claim that was not compared.
    report: Mutex<PathBuf>,
}

/// What an oracle answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    pub status: u16,
    pub body: Value,
}

impl Shadow {
    /// Compares with the oracle at `other`, where one is named; differences go to the file `report`.
    pub fn new(other: Option<Url>, report: PathBuf) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE);
        Ok(Self {
            other,
            client: client.build()?,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            report: Mutex::new(report),
        })
    }

    /// Asks the other oracle the same and compares its answer with `own`, in the background. `secret` is the caller's
    /// key as it was sent; `now` is in unix seconds.
    pub fn compare(
        self: &Arc<Self>,
        claim: Claim,
        secret: Option<String>,
        own: Answered,
        now: u64,
    ) {
        let Some(other) = &self.other else {
            return;
        };
        // Appended as to a peer's URL, so that no target names another host.
        let url = format!("{}{}", other.as_str().trim_end_matches('/'), claim.target);
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            return self.record(LEFT_OUT, &line(LEFT_OUT, &claim, &own, now));
        };
        let shadow = self.clone();
        tokio::spawn(async move {
            let _permit = permit;
            match shadow.ask(url, &claim, secret).await {
                Ok(theirs) => shadow.judge(&claim, &own, &theirs, now),
                Err(error) => {
                    tracing::warn!(%error, "the oracle of SHADOW_OF does not answer");
                    let mut unanswered = line(FAILED, &claim, &own, now);
                    unanswered["why"] = error.into();
                    shadow.record(FAILED, &unanswered);
                }
            }
        });
    }

    async fn ask(
        &self,
        url: String,
        claim: &Claim,
        secret: Option<String>,
    ) -> Result<Answered, String> {
        let mut asked = self.client.post(url).body(claim.body.to_vec());
        asked = asked.header("content-type", "application/json");
        if let Some(secret) = secret {
            asked = asked.header("x-api-key", secret);
        }
        let answer = asked.send().await;
        let mut answer = answer.map_err(|error| error.without_url().to_string())?;
        let status = answer.status().as_u16();
        let whole = http::capped(&mut answer, limits::ANSWER).await;
        let whole = whole.map_err(|error| error.what().to_owned())?;
        let mut body = serde_json::from_slice(&whole).unwrap_or_default();
        remove_signatures(&mut body);
        Ok(Answered { status, body })
    }

    fn judge(&self, claim: &Claim, own: &Answered, theirs: &Answered, now: u64) {
        let Some(line) = difference(claim, own, theirs, now) else {
            return self.count("same");
        };
        tracing::warn!(
            target_path = claim.target,
            ours = own.status,
            theirs = theirs.status,
            field = %line["field"],
            "the oracle of SHADOW_OF answers otherwise"
        );
        self.record(DIFFERS, &line);
    }

    /// Writes a line of this kind, then counts it.
    fn record(&self, kind: &'static str, line: &Value) {
        // The others leave half of the report to differences.
        let most = if kind == DIFFERS { MOST } else { MOST / 2 };
        if let Err(error) = self.note(line, most) {
            tracing::error!(%error, "the report of differences cannot be written");
        }
        self.count(kind);
    }

    fn note(&self, line: &Value, most: u64) -> io::Result<()> {
        let path = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = OpenOptions::new().create(true).append(true).open(&*path)?;
        if file.metadata()?.len() > most {
            return Err(io::Error::other("it is full: move it away"));
        }
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn count(&self, result: &'static str) {
        metrics::counter!("intentd_shadow_answers_total", "result" => result).increment(1);
    }
}

/// The line of the report about two answers; `None` where they are the same. Two refusals with one status are the same
/// if their codes are equal or, where one lacks a code, their messages.
fn difference(claim: &Claim, own: &Answered, theirs: &Answered, now: u64) -> Option<Value> {
    // One more than the report lists tells whether there are more.
    let found = match (own.status, theirs.status) {
        (200, 200) => differences(&own.body, &theirs.body, FIELDS + 1),
        (one, other) if one == other => refusals(own, theirs).into_iter().collect(),
        _ => vec![Difference {
            path: "status".to_owned(),
            found: own.body.to_string(),
            wanted: theirs.body.to_string(),
        }],
    };
    let path = |one: &Difference| one.path.chars().take(OF_FIELD).collect::<String>();
    let first = found.first()?;
    let mut line = line(DIFFERS, claim, own, now);
    line["field"] = path(first).into();
    line["fields"] = found.iter().take(FIELDS).map(path).collect();
    line["more"] = (found.len() > FIELDS).into();
    line["ours"]["value"] = first.found.as_str().into();
    line["theirs"] = json!({"status": theirs.status, "value": first.wanted});
    Some(line)
}

/// How two refusals with one status differ.
fn refusals(own: &Answered, theirs: &Answered) -> Option<Difference> {
    let text = |answer: &Answered, name: &str| answer.body[name].as_str().map(str::to_owned);
    let both = |name| (text(own, name), text(theirs, name));
    let (path, (found, wanted)) = match both("code") {
        (None, _) | (_, None) => ("/message", both("message")),
        codes => ("/code", codes),
    };
    (found != wanted).then(|| Difference {
        path: path.to_owned(),
        found: found.unwrap_or_default(),
        wanted: wanted.unwrap_or_default(),
    })
}

/// What every line of the report says: when the claim was made, of what kind the line is, the claim, and our status. The
/// body stands only beside a difference: claims that are not compared come in any number.
fn line(kind: &str, claim: &Claim, own: &Answered, now: u64) -> Value {
    let body = match claim.body.len() <= LONGEST && kind == DIFFERS {
        true => String::from_utf8_lossy(&claim.body).into_owned(),
        false => format!("{} bytes", claim.body.len()),
    };
    json!({
        "at": now,
        "kind": kind,
        "target": claim.target,
        "body": body,
        "ours": {"status": own.status},
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn claim() -> Claim {
        Claim {
            target: "/a".into(),
            body: b"{}".to_vec().into(),
            key: None,
        }
    }

    /// Beside an oracle that does not answer, with a report in `directory`.
    fn shadow(directory: &Path) -> Arc<Shadow> {
        let _installed_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let other = Url::parse("http://127.0.0.1:1/").unwrap();
        Arc::new(Shadow::new(Some(other), directory.join("report")).unwrap())
    }

    /// The first line of the report, once it is there; the report is empty afterwards.
    async fn reported(directory: &Path) -> Value {
        let path = directory.join("report");
        for _ in 0..6_000 {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if let Some((line, rest)) = text.split_once('\n') {
                assert_eq!(rest, "");
                fs::remove_file(&path).unwrap();
                return serde_json::from_str(line).unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("nothing is reported");
    }

    fn answered(status: u16, body: Value) -> Answered {
        Answered { status, body }
    }

    fn field(own: &Answered, theirs: &Answered) -> Option<String> {
        let line = difference(&claim(), own, theirs, 7)?;
        assert_eq!((&line["at"], &line["body"]), (&json!(7), &json!("{}")));
        assert_eq!(line["kind"], "differs");
        assert_eq!(
            (&line["field"], &line["more"]),
            (&line["fields"][0], &json!(false))
        );
        Some(line["field"].as_str().unwrap().to_owned())
    }

    #[test]
    fn answers_differ_in_what_is_signed_and_not_in_who_signed() {
        let one = json!({"execution": {"actions": ["0x1"], "signatures": [{"oracleSigner": "a"}]}});
        let mut other = one.clone();
        other["execution"]["signatures"] = json!([]);
        let ok = |body: &Value| answered(200, body.clone());
        assert_eq!(field(&ok(&one), &ok(&other)), None);
        let mut without = one.clone();
        let execution = without["execution"].as_object_mut().unwrap();
        execution.remove("signatures");
        assert_eq!(
            field(&ok(&one), &ok(&without)).unwrap(),
            "/execution/signatures"
        );
        other["execution"]["actions"][0] = json!("0x2");
        assert_eq!(
            field(&ok(&one), &ok(&other)).unwrap(),
            "/execution/actions/0"
        );
        other["execution"]["actions"] = json!([]);
        assert_eq!(field(&ok(&one), &ok(&other)).unwrap(), "/execution/actions");
        let (refused, gone) = (
            answered(400, json!({"message": "a"})),
            answered(503, json!({})),
        );
        assert_eq!(field(&ok(&one), &refused).unwrap(), "status");
        assert_eq!(field(&gone, &refused).unwrap(), "status");
        let again = answered(400, json!({"message": "a"}));
        assert_eq!(field(&refused, &again), None);
    }

    #[test]
    fn every_field_that_differs_is_listed_up_to_a_bound() {
        let of = |body: Value| answered(200, body);
        let compared = |own: Value, theirs: Value| {
            let line = difference(&claim(), &of(own), &of(theirs), 7).unwrap();
            let fields = line["fields"].as_array().unwrap().clone();
            (fields, line["more"].as_bool().unwrap(), line)
        };
        let (fields, more, line) = compared(
            json!({"a": 1, "b": {"c": 2, "d": [3, 4]}, "e": 5, "signatures": [6]}),
            json!({"a": 2, "b": {"c": 2, "d": [3, 5]}, "f": 5, "signatures": [7]}),
        );
        assert_eq!(Value::Array(fields), json!(["/a", "/b/d/1", "/e", "/f"]));
        assert!(!more);
        assert_eq!(line["ours"], json!({"status": 200, "value": "1"}));
        assert_eq!(line["theirs"], json!({"status": 200, "value": "2"}));
        let many = |count: usize| Value::from_iter((0..count).map(|at| (at.to_string(), at)));
        for (count, listed, more) in [(FIELDS, FIELDS, false), (FIELDS + 1, FIELDS, true)] {
            let (fields, is_more, _) = compared(many(count), json!({}));
            assert_eq!((fields.len(), is_more), (listed, more), "{count}");
        }
        let (fields, ..) = compared(json!({("x".repeat(OF_FIELD)): 1}), json!({}));
        assert_eq!(fields[0].as_str().unwrap().len(), OF_FIELD);
    }

    #[test]
    fn refusals_of_one_status_differ_in_their_codes_or_else_in_their_messages() {
        let refused = |body: &Value| answered(400, body.clone());
        let one = refused(&json!({"message": "a", "code": "A"}));
        for (body, differs) in [
            (json!({"message": "b", "code": "A"}), None),
            (json!({"message": "a", "code": "B"}), Some("/code")),
            (json!({"message": "a"}), None),
            (json!({"message": "a", "code": 1}), None),
            (json!({"message": "b"}), Some("/message")),
            (json!({"message": "b", "code": 1}), Some("/message")),
            (json!({}), Some("/message")),
            (json!("B"), Some("/message")),
        ] {
            let wanted = differs.map(str::to_owned);
            assert_eq!(field(&one, &refused(&body)), wanted, "{body}");
            assert_eq!(field(&refused(&body), &one), wanted, "{body}");
        }
        // The other oracle has no codes, and neither has what is no answer of an oracle.
        let bare = |message: &str| refused(&json!({"message": message}));
        assert_eq!(field(&bare("a"), &bare("b")).unwrap(), "/message");
        assert_eq!(field(&bare("a"), &bare("a")), None);
        assert_eq!(field(&refused(&json!(null)), &refused(&json!("B"))), None);
        let line = difference(&claim(), &one, &refused(&json!({"code": "B"})), 7).unwrap();
        assert_eq!(line["ours"], json!({"status": 400, "value": "A"}));
        assert_eq!(line["theirs"], json!({"status": 400, "value": "B"}));
    }

    #[tokio::test]
    async fn claims_that_are_not_compared_are_reported_with_their_kind() {
        let directory = tempfile::tempdir().unwrap();
        let shadow = shadow(directory.path());
        let own = answered(200, json!({"a": 1}));
        let all = u32::try_from(AT_ONCE).unwrap();
        let taken = shadow
            .permits
            .clone()
            .acquire_many_owned(all)
            .await
            .unwrap();
        shadow.compare(claim(), None, own.clone(), 7);
        let mut line = json!({
            "at": 7, "kind": "left_out", "target": "/a", "body": "2 bytes", "ours": {"status": 200},
        });
        assert_eq!(reported(directory.path()).await, line);
        drop(taken);
        shadow.compare(claim(), None, own, 8);
        let failed = reported(directory.path()).await;
        assert!(!failed["why"].as_str().unwrap().is_empty(), "{failed}");
        line["at"] = 8.into();
        line["kind"] = "failed".into();
        line["why"] = failed["why"].clone();
        assert_eq!(failed, line);
    }

    #[test]
    fn the_report_ends_at_its_bound_whatever_the_kind() {
        let directory = tempfile::tempdir().unwrap();
        let shadow = shadow(directory.path());
        let file = fs::File::create(directory.path().join("report")).unwrap();
        for kind in [DIFFERS, LEFT_OUT, FAILED] {
            // Differences have the other half for themselves.
            let most = if kind == DIFFERS { MOST } else { MOST / 2 };
            for (size, longer) in [(most, true), (most + 1, false)] {
                file.set_len(size).unwrap();
                shadow.record(kind, &json!({}));
                assert_eq!(file.metadata().unwrap().len() > size, longer, "{kind}");
            }
        }
    }
}
