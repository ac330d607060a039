//! `intentd serve`: the runtime, the signals, the daemon.

use std::io;

use anyhow::Context;
use futures::future::select_all;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use secrecy::ExposeSecret;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, LogFormat},
    redact,
    run::{Daemon, Listeners, Parts, clock::unix_millis},
    telemetry::{self, Intake, Lines, Shipping},
};

/// Who sends log lines, where `SERVICE` is not set.
const SERVICE: &str = "intentd";
/// Its version, where `IMAGE_TAG` is not set.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run(variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
    let (config, mistakes) = Config::draft(variables);
    // Dropped last: it sends what was logged on the way out.
    let shipping = log(&config)?;
    for variable in &config.unused {
        tracing::warn!(variable, "this variable is set and not used");
    }
    open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let daemon = Daemon::of(&config, Parts::of(&config, mistakes).await?)?;
        let listeners = Listeners::bind(&config).await?;
        let shutdown = CancellationToken::new();
        let signals = signals().context("cannot listen for signals")?;
        let signals = tokio::spawn(cancel_on_signal(signals, shutdown.clone()));
        let served = daemon.serve(listeners, shutdown).await;
        signals.abort();
        served
    });
    // Standard error has it from `main`, too late for the intake.
    if let (Err(error), Some(_)) = (&served, &shipping) {
        tracing::error!(
            error = redact::text(&format!("{error:#}")),
            "the daemon ends"
        );
    }
    served
}

fn log(config: &Config) -> Result<Option<Shipping>, telemetry::Error> {
    let lines = match config.log_format {
        LogFormat::Auto => Lines::Auto,
        LogFormat::Text => Lines::Text,
        LogFormat::Json => Lines::Json,
    };
    let filter = config.variables.get("RUST_LOG");
    let service = config.service.as_deref();
    let intake = config.log_intake.as_ref().map(|intake| Intake {
        url: intake.url.as_str(),
        key: intake.key.expose_secret(),
        service: service.unwrap_or(SERVICE),
        version: config.image_tag.as_deref().unwrap_or(VERSION),
        environment: &config.environment,
        clock: unix_millis,
    });
    telemetry::log(lines, filter, service, intake.as_ref())
}

/// As many as the system lets this process have: every connection is one, and the usual soft limit of
/// 1,024 is far below what the listeners let in.
fn open_files() {
    let allowed = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: allowed.maximum,
        ..allowed
    };
    if let Err(error) = setrlimit(Resource::Nofile, all) {
        tracing::warn!(%error, limit = allowed.current, "the limit of open files stays");
    }
}

/// SIGTERM, Ctrl-C, and the end of the terminal. From here on none ends the process by itself: who reads that it listens
/// may send one.
fn signals() -> io::Result<Vec<Signal>> {
    let mut kinds = vec![SignalKind::terminate(), SignalKind::interrupt()];
    if !is_hangup_ignored() {
        kinds.push(SignalKind::hangup());
    }
    kinds.into_iter().map(signal).collect()
}

/// Whether the process was started with SIGHUP ignored, as `nohup` does: a listener would end that. Where the system does not
/// tell, it was not.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // SIGHUP is the first signal.
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// Each of them drains.
async fn cancel_on_signal(mut signals: Vec<Signal>, shutdown: CancellationToken) {
    let each = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
    select_all(each).await;
    tracing::info!("shutting down: finishing requests under way");
    shutdown.cancel();
}
