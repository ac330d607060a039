//! Sends log lines to an intake over OTLP/HTTP (protobuf), in batches, from a thread of its own. A slow or dead intake
//! costs lines there: nothing waits for it, and standard error has every line.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use opentelemetry::{InstrumentationScope, KeyValue, logs::LogRecord};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, Protocol, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{BatchConfigBuilder, BatchLogProcessor, LogProcessor, SdkLogRecord, SdkLoggerProvider},
};
use tracing::{Event, Metadata, Subscriber};
use tracing_log::NormalizeEvent;
use tracing_subscriber::{
    Layer,
    layer::{Context, Filter},
    registry::LookupSpan,
};

/// How long one try to send a batch may take. The last batch is waited for as long.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a line waits for others.
const INTERVAL: Duration = Duration::from_secs(1);
/// Lines that wait while the intake is slow; more are dropped.
const WAITING: usize = 8_192;
/// Lines of one batch: at 8 KB each they are below the 5 MB that Datadog takes.
const BATCH: usize = 512;
/// What the sender itself logs: sent, each batch would make lines for the next one.
const OWN: [&str; 6] = ["hyper", "reqwest", "h2", "rustls", "opentelemetry", "tonic"];

/// Why lines can't be sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    #[error(transparent)]
    Exporter(#[from] ExporterBuildError),
}

/// An intake, and who sends to it.
#[derive(Clone, Copy)]
pub struct Intake<'a> {
    /// Where OTLP log records are taken, whole: no path is added.
    pub url: &'a str,
    /// Sent as `dd-api-key`.
    pub key: &'a str,
    /// `service.name`.
    pub service: &'a str,
    /// `service.version`.
    pub version: &'a str,
    /// `deployment.environment.name`.
    pub environment: &'a str,
    /// Returns the current unix millisecond.
    pub clock: fn() -> u64,
}

/// Sends lines until it is dropped; then it waits for the last batch, at most five seconds, and once more as long for
/// lines that came meanwhile. It must be dropped outside of a runtime.
pub struct Shipping(SdkLoggerProvider);

impl Shipping {
    /// Starts the thread that sends. The headers are those of Datadog's OTLP logs intake
    /// (<https://docs.datadoghq.com/opentelemetry/setup/otlp_ingest/logs/>).
    pub(super) fn to(intake: &Intake<'_>) -> Result<Self, Error> {
        let client = reqwest::blocking::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE);
        // What is sent in clear goes straight there. A proxy may stand before an intake elsewhere.
        let client = match intake.url.starts_with("https:") {
            true => client.build()?,
            false => client.no_proxy().build()?,
        };
        let headers = [("dd-api-key", intake.key), ("dd-protocol", "otlp")];
        let headers = headers.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let exporter = LogExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_headers(HashMap::from(headers))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(intake.url)
            .with_timeout(PATIENCE)
            .build()?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(WAITING)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(INTERVAL)
            .build();
        let processor = BatchLogProcessor::builder(exporter)
            .with_batch_config(batches)
            .build();
        let sender = [
            KeyValue::new("service.name", intake.service.to_owned()),
            KeyValue::new("service.version", intake.version.to_owned()),
            KeyValue::new("deployment.environment.name", intake.environment.to_owned()),
        ];
        let provider = SdkLoggerProvider::builder()
            .with_resource(Resource::builder_empty().with_attributes(sender).build())
            .with_log_processor(Timed(intake.clock))
            .with_log_processor(processor)
            .build();
        Ok(Self(provider))
    }

    /// The layer whose events are sent.
    pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        OpenTelemetryTracingBridge::new(&self.0).with_filter(Others)
    }
}

/// Passes what the sender does not log itself.
struct Others;

impl Others {
    fn passes(target: &str) -> bool {
        !OWN.iter().any(|own| target.starts_with(own))
    }
}

impl<S> Filter<S> for Others {
    fn enabled(&self, event: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        Self::passes(event.target())
    }

    /// Lines of the `log` crate have their target in a field.
    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let of_log = event.normalized_metadata();
        of_log.is_none_or(|event| Self::passes(event.target()))
    }
}

/// Sets the time of each line, which the layer leaves out.
#[derive(Debug)]
struct Timed(fn() -> u64);

impl LogProcessor for Timed {
    fn emit(&self, line: &mut SdkLogRecord, _: &InstrumentationScope) {
        line.set_timestamp(SystemTime::UNIX_EPOCH + Duration::from_millis((self.0)()));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Drop for Shipping {
    fn drop(&mut self) {
        // The sender's end does not say whether the intake took the last batch. A flush does, within five seconds.
        let sent = self.0.force_flush();
        let rest = sent.as_ref().map_or(Duration::ZERO, |()| PATIENCE);
        let ended = self.0.shutdown_with_timeout(rest);
        if let Err(error) = sent.and(ended) {
            tracing::warn!(%error, "the last lines may be missing at the log intake");
        }
    }
}
