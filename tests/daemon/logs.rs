//! Log lines that a process sends to an intake over OTLP.

use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper::StatusCode;
use opentelemetry_proto::tonic::{
    collector::logs::v1::ExportLogsServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value},
    logs::v1::LogRecord,
};
use prost::Message;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStderr, Command},
};

use crate::support::{
    daemon::daemon,
    http::{Asked, Server, json, serve},
    world,
};

const KEY: &str = "s3cret-of-the-intake";
const LOST: &str = "the last lines may be missing at the log intake";

type Batches = Arc<Mutex<Vec<Asked>>>;

/// Names and texts.
type Fields = Vec<(String, String)>;

/// An intake that answers this, and what it was sent.
async fn intake(status: StatusCode) -> (Server, Batches) {
    let batches = Batches::default();
    let taken = batches.clone();
    let server = serve(move |asked| {
        taken.lock().unwrap().push(asked);
        async move { Some(json(status, Vec::new())) }
    });
    (server.await, batches)
}

struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    /// All lines so far.
    said: Vec<Value>,
    _directory: TempDir,
    _world: Server,
}

impl Process {
    async fn start(variables: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let world = world::world().await;
        let mut child = Command::new(env!("CARGO_BIN_EXE_intentd"))
            .arg("serve")
            .env_clear()
            .envs(daemon().recorded(&world).environment(directory.path()))
            .env("LOG_FORMAT", "json")
            .env("DATADOG_API_KEY", KEY)
            .envs(variables.iter().copied())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            lines,
            said: Vec::new(),
            _directory: directory,
            _world: world,
        }
    }

    /// Reads lines up to the first that has this in its message.
    async fn says(&mut self, text: &str) {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| line.into());
            let found = line["message"].to_string().contains(text);
            self.said.push(line);
            if found {
                return;
            }
        }
        panic!("{text} is not in {:#?}", self.said);
    }

    /// Ends it with SIGTERM and returns all that it said.
    async fn end(mut self) -> Vec<Value> {
        let id = self.child.id().unwrap().to_string();
        let term = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(term.unwrap().success());
        while let Some(line) = self.lines.next_line().await.unwrap() {
            let line = serde_json::from_str(&line).unwrap_or_else(|_| line.into());
            self.said.push(line);
        }
        assert!(self.child.wait().await.unwrap().success());
        self.said
    }
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        other => format!("{other:?}"),
    }
}

fn pairs(of: Vec<KeyValue>) -> Fields {
    let pairs = of.into_iter();
    pairs.map(|pair| (pair.key, text(pair.value))).collect()
}

/// A line as an intake has it.
struct Received {
    /// The module that logged it, or the crate's name for it where the `log` crate did.
    target: String,
    message: String,
    level: String,
    /// Unix nanoseconds.
    time: u64,
    fields: Fields,
}

impl Received {
    fn new(module: &str, record: LogRecord) -> Self {
        let fields = pairs(record.attributes);
        // Lines of the `log` crate have their target in a field.
        let of_log = fields.iter().find(|(name, _)| name == "log.target");
        let target = of_log.map_or(module, |(_, target)| target.as_str());
        Self {
            target: target.to_owned(),
            message: text(record.body),
            level: record.severity_text,
            time: record.time_unix_nano,
            fields,
        }
    }

    /// The line of this message.
    fn find<'a>(all: &'a [Self], message: &str) -> &'a Self {
        all.iter().find(|line| line.message == message).unwrap()
    }
}

/// The lines of these batches, and for each batch who sent it.
fn opened(batches: &Batches) -> (Vec<Received>, Vec<Fields>) {
    let batches = std::mem::take(&mut *batches.lock().unwrap());
    let (mut lines, mut senders) = (Vec::new(), Vec::new());
    for batch in batches {
        for of_sender in ExportLogsServiceRequest::decode(batch.body)
            .unwrap()
            .resource_logs
        {
            senders.push(pairs(of_sender.resource.unwrap().attributes));
            for of_module in of_sender.scope_logs {
                let module = of_module.scope.unwrap().name;
                let records = of_module.log_records.into_iter();
                lines.extend(records.map(|record| Received::new(&module, record)));
            }
        }
    }
    (lines, senders)
}

/// The messages that the daemon's own code logs, sorted.
fn ours<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<&'a str> {
    let ours =
        lines.filter(|(target, _)| target.starts_with("intentd") || target.starts_with("vm"));
    let mut messages: Vec<_> = ours.map(|(_, message)| message).collect();
    messages.sort_unstable();
    messages
}

fn word<'a>(line: &'a Value, field: &str) -> &'a str {
    line[field].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_reaches_the_intake_up_to_the_last() {
    let (server, batches) = intake(StatusCode::OK).await;
    let url = format!("http://{}/", server.address);
    // The HTTP client logs each batch that it sends.
    let mut process = Process::start(&[("DATADOG_ENDPOINT", &url), ("RUST_LOG", "trace")]).await;
    process.says("oracle listening").await;
    // Several batches, so that what the sender logs of one could be in the next. The lines are read meanwhile:
    // a full pipe would stop it.
    let never = process.says("what no line says");
    let more = tokio::time::timeout(Duration::from_secs(3), never).await;
    assert!(more.is_err());
    let said = process.end().await;
    let (received, senders) = opened(&batches);
    assert!(senders.len() > 1);
    let here = ours(
        said.iter()
            .map(|line| (word(line, "target"), word(line, "message"))),
    );
    let there = received.iter();
    let there = ours(there.map(|line| (line.target.as_str(), line.message.as_str())));
    assert_eq!(there, here);
    assert!(here.contains(&"stopped"), "{here:?}");
    for own in ["hyper", "reqwest", "opentelemetry"] {
        let sent = |line: &Received| line.target.starts_with(own);
        assert!(!received.iter().any(sent), "{own}");
    }
    for own in ["reqwest", "opentelemetry"] {
        let logged = |line: &Value| word(line, "target").starts_with(own);
        assert!(said.iter().any(logged), "{own}");
    }
    assert!(!said.iter().any(|line| line.to_string().contains(KEY)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_at_the_intake_says_what_it_says_here_and_who_sent_it() {
    let (server, batches) = intake(StatusCode::OK).await;
    let url = format!("http://{}/in/logs?tag=a", server.address);
    let named = [("SERVICE", "oracle-a"), ("IMAGE_TAG", "1.2.3")];
    let mut process = Process::start(&[("DATADOG_ENDPOINT", &url), named[0], named[1]]).await;
    process.says("oracle listening").await;
    let said = process.end().await;
    for batch in batches.lock().unwrap().iter() {
        assert_eq!(batch.target, "/in/logs?tag=a");
        for (name, value) in [
            ("dd-api-key", KEY),
            ("dd-protocol", "otlp"),
            ("content-type", "application/x-protobuf"),
        ] {
            assert_eq!(batch.headers[name], value);
        }
    }
    let (received, senders) = opened(&batches);
    for (name, value) in [
        ("service.name", "oracle-a"),
        ("service.version", "1.2.3"),
        ("deployment.environment.name", "test"),
    ] {
        let field = (name.to_owned(), value.to_owned());
        assert!(
            senders.iter().all(|sender| sender.contains(&field)),
            "{senders:?}"
        );
    }
    assert!(
        received
            .iter()
            .all(|line| line.time > 1_700_000_000_000_000_000)
    );
    let listening = Received::find(&received, "oracle listening");
    let here = said
        .iter()
        .find(|line| line["message"] == "oracle listening");
    let here = here.unwrap();
    assert_eq!(
        (listening.level.as_str(), listening.target.as_str()),
        (word(here, "level"), word(here, "target"))
    );
    let address = ("address".to_owned(), word(here, "address").to_owned());
    assert!(
        listening.fields.contains(&address),
        "{:?}",
        listening.fields
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusing_intake_is_told_on_standard_error_and_stops_nothing() {
    let (server, batches) = intake(StatusCode::FORBIDDEN).await;
    let url = format!("http://{}/", server.address);
    // Nobody answers there: lines that are sent in clear go to no proxy.
    let proxy = ("http_proxy", "http://127.0.0.1:1");
    let mut process = Process::start(&[("DATADOG_ENDPOINT", &url), proxy]).await;
    process.says("oracle listening").await;
    let said = process.end().await;
    assert!(!batches.lock().unwrap().is_empty());
    let refused = said
        .iter()
        .find(|line| word(line, "error").contains("status code: 403"));
    assert_eq!(refused.unwrap()["level"], "ERROR", "{said:#?}");
    assert!(said.iter().any(|line| line["message"] == "stopped"));
    assert!(!said.iter().any(|line| line.to_string().contains(KEY)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intake_that_hangs_delays_the_end_by_seconds_only() {
    let hanging = serve(|_| std::future::pending()).await;
    let url = format!("http://{}/", hanging.address);
    let mut process = Process::start(&[("DATADOG_ENDPOINT", &url)]).await;
    process.says("oracle listening").await;
    let ended = tokio::time::timeout(Duration::from_secs(30), process.end());
    let said = ended.await.unwrap();
    assert!(said.iter().any(|line| line["message"] == LOST), "{said:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_intake_refuses_at_the_end_is_said_to_be_missing() {
    for (status, missing) in [(StatusCode::FORBIDDEN, true), (StatusCode::OK, false)] {
        let (server, _) = intake(status).await;
        let url = format!("http://{}/", server.address);
        let mut process = Process::start(&[("DATADOG_ENDPOINT", &url)]).await;
        process.says("oracle listening").await;
        let said = process.end().await;
        let lost = said.iter().any(|line| line["message"] == LOST);
        assert_eq!(lost, missing, "{said:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_development_stay_here() {
    let (server, batches) = intake(StatusCode::OK).await;
    let url = format!("http://{}/", server.address);
    let development = ("ENVIRONMENT", "development");
    let mut process = Process::start(&[("DATADOG_ENDPOINT", &url), development]).await;
    process.says("oracle listening").await;
    let said = process.end().await;
    let unused = |name: &str| said.iter().any(|line| line["variable"] == name);
    assert!(unused("DATADOG_API_KEY") && unused("DATADOG_ENDPOINT"));
    assert!(batches.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_daemon_ends_reaches_the_intake() {
    let (server, batches) = intake(StatusCode::OK).await;
    let url = format!("http://{}/", server.address);
    let wrong = ("HUB_FILE", "/nowhere/hub.json");
    let mut process = Process::start(&[("DATADOG_ENDPOINT", &url), wrong]).await;
    assert!(!process.child.wait().await.unwrap().success());
    let (received, _) = opened(&batches);
    let why = &Received::find(&received, "the daemon ends").fields;
    assert!(
        why.iter().any(|(_, why)| why.contains("/nowhere/hub.json")),
        "{why:?}"
    );
}
