//! Log lines and metrics of the process: set up once, read by `/metrics`. It names no metric; every
//! module counts its own.

use std::{
    io::{self, IsTerminal},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::{
    EnvFilter, layer::SubscriberExt, util::SubscriberInitExt, util::TryInitError,
};

/// Upper bounds of every metric that ends in `_seconds`.
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
    #[error("metrics: {0}")]
    Metrics(#[from] BuildError),
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// Text on a terminal, JSON elsewhere.
    #[default]
    Auto,
    Text,
    Json,
}

/// Sends log lines to standard error, filtered as `RUST_LOG` writes it (`info` when empty).
pub fn log(lines: Lines, filter: Option<&str>) -> Result<(), Error> {
    let filter = EnvFilter::try_new(filter.unwrap_or("info"))?;
    let json = match lines {
        Lines::Auto => !io::stderr().is_terminal(),
        Lines::Text => false,
        Lines::Json => true,
    };
    let registry = tracing_subscriber::registry().with(filter);
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    if json {
        registry.with(layer.json().flatten_event(true)).try_init()?;
    } else {
        registry.with(layer).try_init()?;
    }
    Ok(())
}

/// The process' metrics.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Takes over the `metrics` macros of the process; a second call gives the same metrics.
    pub fn install() -> Result<Self, Error> {
        static INSTALLED: Mutex<Option<Metrics>> = Mutex::new(None);
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metrics) = &*installed {
            return Ok(metrics.clone());
        }
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
            .install_recorder()?;
        Ok(installed.insert(Self(handle)).clone())
    }

    /// Prometheus' text format.
    pub fn render(&self) -> String {
        self.0.render()
    }

    /// Folds what histograms gathered, until `shutdown`: unread metrics would grow otherwise.
    pub async fn keep(self, shutdown: CancellationToken) {
        let mut tick = tokio::time::interval(UPKEEP);
        while shutdown.run_until_cancelled(tick.tick()).await.is_some() {
            self.0.run_upkeep();
        }
    }
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
    fn bad_filter_is_an_error() {
        assert!(matches!(
            log(Lines::Text, Some("a=b=c")),
            Err(Error::Filter(_))
        ));
    }
}
