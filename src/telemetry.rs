//! Sets up log lines and metrics of the process; `/metrics` reads them. It defines no metric: each module has its
//! own.

mod runtimes;
mod shipping;

use std::{
    fmt,
    io::{self, IsTerminal},
    panic::PanicHookInfo,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tokio_util::sync::CancellationToken;
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer,
    fmt::{
        FmtContext, MakeWriter,
        format::{FormatEvent, FormatFields, Writer},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
    util::TryInitError,
};

use self::runtimes::Runtimes;
pub use self::shipping::{Intake, Shipping};

/// The histogram buckets of every metric that ends in `_seconds`.
const SECONDS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0,
];
const UPKEEP: Duration = Duration::from_secs(5);

/// Why telemetry was not set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("RUST_LOG: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    #[error("log: {0}")]
    Log(#[from] TryInitError),
    #[error("log intake: {0}")]
    Intake(#[from] shipping::Error),
    #[error("metrics: {0}")]
    Metrics(#[from] BuildError),
    #[error("metrics: another recorder is installed")]
    Taken,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    Text,
    Json,
}

/// Sends log lines to standard error, filtered as `RUST_LOG` specifies (`info` when empty). Each line has the field
/// `service`, if it is given. A panic in any thread or task is logged too. With an intake the lines are sent there too,
/// until what is returned is dropped. An intake must not be given inside a runtime.
pub fn log(
    lines: Lines,
    filter: Option<&str>,
    service: Option<&str>,
    intake: Option<&Intake<'_>>,
) -> Result<Option<Shipping>, Error> {
    let filter = EnvFilter::try_new(filter.unwrap_or("info"))?;
    let json = match lines {
        Lines::Auto => !io::stderr().is_terminal(),
        Lines::Text => false,
        Lines::Json => true,
    };
    let layer = layer(json, service, io::stderr);
    let shipping = intake.map(Shipping::to).transpose()?;
    tracing_subscriber::registry()
        .with(filter)
        .with(layer)
        .with(shipping.as_ref().map(Shipping::layer))
        .try_init()?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(shipping)
}

/// Logs a panic: nobody awaits most tasks.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    let said = panic.payload_as_str().unwrap_or("no text");
    metrics::counter!("intentd_panics_total").increment(1);
    tracing::error!(place = location, said, "panic");
}

fn layer<S, W>(json: bool, service: Option<&str>, to: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(to);
    if json {
        let layer = layer.json().flatten_event(true);
        layer
            .map_event_format(|lines| Named::new(lines, service, json))
            .boxed()
    } else {
        layer
            .map_event_format(|lines| Named::new(lines, service, json))
            .boxed()
    }
}

/// Puts the field `service` in front of each line of another format.
struct Named<F> {
    lines: F,
    /// The text in front; for JSON it replaces the opening brace.
    front: String,
    json: bool,
}

impl<F> Named<F> {
    fn new(lines: F, service: Option<&str>, json: bool) -> Self {
        let front = match (service, json) {
            (None, true) => "{".into(),
            (None, false) => String::new(),
            (Some(service), true) => {
                format!("{{\"service\":{},", serde_json::Value::from(service))
            }
            (Some(service), false) => format!("service={service} "),
        };
        Self { lines, front, json }
    }
}

impl<S, N, F> FormatEvent<S, N> for Named<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        writer.write_str(&self.front)?;
        if !self.json {
            return self.lines.format_event(context, writer, event);
        }
        let mut line = String::new();
        let json = Writer::new(&mut line);
        self.lines.format_event(context, json, event)?;
        writer.write_str(line.strip_prefix('{').unwrap_or(&line))
    }
}

/// The metrics of the daemon that runs in the current runtime.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Installs the recorder of the `metrics` macros; a second call in the same runtime returns the same metrics.
    pub fn install() -> Result<Self, Error> {
        static INSTALLED: Mutex<Option<Runtimes>> = Mutex::new(None);
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtimes) = &*installed {
            return Ok(Self(runtimes.handle()));
        }
        builder()?;
        let runtimes = Runtimes::install(recorder).map_err(|_| Error::Taken)?;
        Ok(Self(installed.insert(runtimes).handle()))
    }

    /// The metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Compacts the histograms regularly until `shutdown`, because unread ones would grow.
    pub async fn keep(self, shutdown: CancellationToken) {
        let mut tick = tokio::time::interval(UPKEEP);
        while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
            self.0.run_upkeep();
        }
    }
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
}

/// The recorder of [`builder`], whose settings [`Metrics::install`] has already checked.
fn recorder() -> PrometheusRecorder {
    builder().unwrap_or_default().build_recorder()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_installed_once_and_rendered() {
        let first = Metrics::install().unwrap();
        let second = Metrics::install().unwrap();
        metrics::counter!("telemetry_test_total", "kind" => "a").increment(3);
        metrics::histogram!("telemetry_test_seconds").record(0.02);
        for text in [first.render(), second.render()] {
            assert!(
                text.contains("telemetry_test_total{kind=\"a\"} 3"),
                "{text}"
            );
            assert!(
                text.contains("telemetry_test_seconds_bucket{le=\"0.025\"} 1"),
                "{text}"
            );
            assert!(
                text.contains("telemetry_test_seconds_bucket{le=\"0.01\"} 0"),
                "{text}"
            );
        }
    }

    #[test]
    fn each_runtime_has_metrics_of_its_own() {
        let runtime = || {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .build()
        };
        let (one, other) = (runtime().unwrap(), runtime().unwrap());
        let count = |name: &'static str| async move {
            let metrics = Metrics::install().unwrap();
            let counted = async move { metrics::counter!(name).increment(1) };
            tokio::spawn(counted).await.unwrap();
            let blocking = move || metrics::counter!(name).increment(1);
            tokio::task::spawn_blocking(blocking).await.unwrap();
            metrics
        };
        let one = one.block_on(count("telemetry_one_total")).render();
        let other = other.block_on(count("telemetry_other_total")).render();
        assert!(
            one.contains("telemetry_one_total 2") && !one.contains("telemetry_other"),
            "{one}"
        );
        assert!(
            other.contains("telemetry_other_total 2") && !other.contains("telemetry_one"),
            "{other}"
        );
    }

    #[test]
    fn bad_filter_is_an_error() {
        assert!(matches!(
            log(Lines::Text, Some("a=b=c"), None, None),
            Err(Error::Filter(_))
        ));
    }

    #[derive(Clone, Default)]
    struct Sink(std::sync::Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(json: bool, service: Option<&str>) -> String {
        let sink = Sink::default();
        let to = sink.clone();
        let layer = layer(json, service, move || to.clone());
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!(chain = "base", "halted");
            tracing::error!("again");
        });
        String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn every_line_names_the_service() {
        let text = logged(true, Some("oracle \"a\""));
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(lines.len(), 2, "{text}");
        for line in &lines {
            assert_eq!(line["service"], "oracle \"a\"");
        }
        assert_eq!(
            (&lines[0]["chain"], &lines[0]["message"]),
            (&"base".into(), &"halted".into())
        );
        let text = logged(false, Some("oracle-a"));
        assert!(
            text.lines()
                .all(|line| line.starts_with("service=oracle-a ")),
            "{text}"
        );
    }

    #[test]
    fn a_panic_is_a_line() {
        let sink = Sink::default();
        let to = sink.clone();
        let layer = layer(true, None, move || to.clone());
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(log_panic));
        let subscriber = tracing_subscriber::registry().with(layer);
        let panicked = tracing::subscriber::with_default(subscriber, || {
            std::panic::catch_unwind(|| panic!("on {}", "purpose"))
        });
        std::panic::set_hook(before);
        assert!(panicked.is_err());
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&line["level"], &line["said"]),
            (&"ERROR".into(), &"on purpose".into())
        );
        assert!(line["place"].as_str().unwrap().contains("telemetry.rs"));
    }

    #[test]
    fn lines_without_a_service_are_whole() {
        let text = logged(true, None);
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line.get("service").is_none());
        }
        assert!(!logged(false, None).contains("service"));
    }
}
