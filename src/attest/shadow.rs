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

/// Comparisons under way; of more, the answers are not compared.
const AT_ONCE: usize = 64;
/// How long the other oracle may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of a request in the report.
const LONGEST: usize = 8 << 10;
/// The most bytes of the report.
const MOST: u64 = 256 << 20;

/// The other oracle, and the report.
#[derive(Debug)]
pub struct Shadow {
    other: Option<Url>,
    client: reqwest::Client,
    places: Arc<Semaphore>,
    /// The file with a line of JSON for each difference.
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
            return self.count("left_out");
        };
        let shadow = self.clone();
        tokio::spawn(async move {
            let _place = place;
            match shadow.ask(url, &claim, secret).await {
                Ok(theirs) => shadow.judge(&claim, &own, &theirs, now),
                Err(error) => {
                    tracing::warn!(%error, "the oracle of SHADOW_OF does not answer");
                    shadow.count("failed");
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
        self.count("differs");
        tracing::warn!(
            target_path = claim.target,
            ours = own.status,
            theirs = theirs.status,
            field = %line["field"],
            "the oracle of SHADOW_OF answers otherwise"
        );
        if let Err(error) = self.note(&line) {
            tracing::error!(%error, "the report of differences cannot be written");
        }
    }

    fn note(&self, line: &Value) -> io::Result<()> {
        let path = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = OpenOptions::new().create(true).append(true).open(&*path)?;
        if file.metadata()?.len() > MOST {
            return Err(io::Error::other("it is full: move it away"));
        }
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn count(&self, result: &'static str) {
        metrics::counter!("intentd_shadow_answers_total", "result" => result).increment(1);
    }
}

/// The line of the report about two answers; `None` where they are the same. Two refusals with one status are.
fn difference(claim: &Claim, own: &Answered, theirs: &Answered, now: u64) -> Option<Value> {
    let (field, ours, others) = match (own.status, theirs.status) {
        (200, 200) => {
            let found = differing("", &own.body, &theirs.body)?;
            (found.path, found.found, found.wanted)
        }
        (one, other) if one == other => return None,
        _ => (
            "status".to_owned(),
            own.body.to_string(),
            theirs.body.to_string(),
        ),
    };
    let body = match claim.body.len() <= LONGEST {
        true => String::from_utf8_lossy(&claim.body).into_owned(),
        false => format!("{} bytes", claim.body.len()),
    };
    Some(json!({
        "at": now,
        "target": claim.target,
        "body": body,
        "field": field,
        "ours": {"status": own.status, "value": ours},
        "theirs": {"status": theirs.status, "value": others},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: Value) -> Answered {
        Answered { status, body }
    }

    fn field(own: &Answered, theirs: &Answered) -> Option<String> {
        let claim = Claim {
            target: "/a".into(),
            body: b"{}".to_vec().into(),
            key: None,
        };
        let line = difference(&claim, own, theirs, 7)?;
        assert_eq!((&line["at"], &line["body"]), (&json!(7), &json!("{}")));
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
}
