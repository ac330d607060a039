//! `intentd serve`: the runtime, the signals, the daemon.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, LogFormat},
    run::{Daemon, Listeners, Parts},
    telemetry::{self, Lines},
};

pub fn run(variables: impl IntoIterator<Item = (String, String)>) -> anyhow::Result<()> {
    let (config, mistakes) = Config::draft(variables);
    let lines = match config.log_format {
        LogFormat::Auto => Lines::Auto,
        LogFormat::Text => Lines::Text,
        LogFormat::Json => Lines::Json,
    };
    let filter = config.variables.get("RUST_LOG");
    telemetry::log(lines, filter, config.service.as_deref())?;
    for variable in &config.unused {
        tracing::warn!(variable, "this variable is set and not used");
    }
    open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let daemon = Daemon::of(&config, Parts::of(&config, mistakes).await?)?;
        let listeners = Listeners::bind(&config).await?;
        let shutdown = CancellationToken::new();
        let signals = tokio::spawn(cancel_on_signal(shutdown.clone()));
        let served = daemon.serve(listeners, shutdown).await;
        signals.abort();
        served
    })
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

/// SIGTERM and Ctrl-C drain.
async fn cancel_on_signal(shutdown: CancellationToken) {
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = terminate => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    tracing::info!("shutting down: finishing requests under way");
    shutdown.cancel();
}
