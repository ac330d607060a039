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
    document::{differing, unsigned},
    evidence::Claim,
};

/// Comparisons under way; of more, the answers are not compared, and the report says so.
const AT_ONCE: usize = 64;
/// How long the other oracle may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of a request in the report.
const LONGEST: usize = 8 << 10;
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
    places: Arc<Semaphore>,
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
            places: Arc::new(Semaphore::new(AT_ONCE)),
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
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            return self.record(LEFT_OUT, &line(LEFT_OUT, &claim, &own, now));
        };
        let shadow = self.clone();
        tokio::spawn(async move {
            let _place = place;
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
        unsigned(&mut body);
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

/// The line of the report about two answers; `None` where they are the same. Two refusals with one status are, unless
/// both have a code and the codes differ.
fn difference(claim: &Claim, own: &Answered, theirs: &Answered, now: u64) -> Option<Value> {
    let (field, ours, others) = match (own.status, theirs.status) {
        (200, 200) => {
            let found = differing("", &own.body, &theirs.body)?;
            (found.path, found.found, found.wanted)
        }
        (one, other) if one == other => {
            let codes = (code(own)?, code(theirs)?);
            if codes.0 == codes.1 {
                return None;
            }
            ("/code".to_owned(), codes.0.to_owned(), codes.1.to_owned())
        }
        _ => (
            "status".to_owned(),
            own.body.to_string(),
            theirs.body.to_string(),
        ),
    };
    let mut line = line(DIFFERS, claim, own, now);
    line["field"] = field.into();
    line["ours"]["value"] = ours.into();
    line["theirs"] = json!({"status": theirs.status, "value": others});
    Some(line)
}

/// The stable code of a refusal.
fn code(answer: &Answered) -> Option<&str> {
    answer.body["code"].as_str()
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
        for _ in 0..500 {
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
        Some(line["field"].as_str().unwrap().to_owned())
    }

    #[test]
    fn answers_differ_in_what_is_signed_and_not_in_who_signed() {
        let one = json!({"execution": {"actions": ["0x1"], "signatures": [{"oracleSigner": "a"}]}});
        let mut other = one.clone();
        other["execution"]["signatures"] = json!([]);
        let ok = |body: &Value| answered(200, body.clone());
        assert_eq!(field(&ok(&one), &ok(&other)), None);
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
        assert_eq!(
            field(&refused, &answered(400, json!({"message": "b"}))),
            None
        );
    }

    #[test]
    fn refusals_of_one_status_differ_in_their_codes_only() {
        let refused = |body: &Value| answered(400, body.clone());
        let one = refused(&json!({"message": "a", "code": "A"}));
        for (body, differs) in [
            (json!({"message": "b", "code": "A"}), false),
            (json!({"message": "a", "code": "B"}), true),
            (json!({"message": "a"}), false),
            (json!({"message": "a", "code": 1}), false),
            (json!("B"), false),
        ] {
            let wanted = differs.then(|| "/code".to_owned());
            assert_eq!(field(&one, &refused(&body)), wanted, "{body}");
            assert_eq!(field(&refused(&body), &one), wanted, "{body}");
        }
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
        let taken = shadow.places.clone().acquire_many_owned(all).await.unwrap();
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
