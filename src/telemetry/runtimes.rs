//! Separate metrics for each runtime. A daemon has one runtime, and so has each test, so the daemons of one process
//! do not mix their metrics.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SetRecorderError, SharedString,
    Unit,
};
use metrics_exporter_prometheus::{PrometheusHandle, PrometheusRecorder};
use tokio::runtime::{Handle, Id};

/// Makes the recorder of one runtime.
type Make = fn() -> PrometheusRecorder;

/// A recorder that hands every metric to the recorder of the current runtime.
#[derive(Clone)]
pub struct Runtimes {
    make: Make,
    /// The recorder for threads without a runtime: that of the first runtime.
    first: Arc<PrometheusRecorder>,
    known: Arc<ArcSwap<HashMap<Id, Arc<PrometheusRecorder>>>>,
}

impl Runtimes {
    /// Installs this recorder for the `metrics` macros of the process.
    pub fn install(make: Make) -> Result<Self, SetRecorderError<Self>> {
        let first = Arc::new(make());
        let mut known = HashMap::new();
        if let Ok(runtime) = Handle::try_current() {
            known.insert(runtime.id(), first.clone());
        }
        let known = Arc::new(ArcSwap::from_pointee(known));
        let all = Self { make, first, known };
        metrics::set_global_recorder(all.clone())?;
        Ok(all)
    }

    /// The handle to the metrics of the current runtime.
    pub fn handle(&self) -> PrometheusHandle {
        self.current().handle()
    }

    fn current(&self) -> Arc<PrometheusRecorder> {
        let Ok(runtime) = Handle::try_current() else {
            return self.first.clone();
        };
        let id = runtime.id();
        if let Some(found) = self.known.load().get(&id) {
            return found.clone();
        }
        let made = Arc::new((self.make)());
        self.known.rcu(|known| {
            let mut more = HashMap::clone(known);
            more.entry(id).or_insert_with(|| made.clone());
            more
        });
        // Another thread of the runtime may have inserted one first.
        self.known.load().get(&id).cloned().unwrap_or(made)
    }
}

impl Recorder for Runtimes {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, what: SharedString) {
        self.current().describe_counter(key, unit, what);
    }

    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, what: SharedString) {
        self.current().describe_gauge(key, unit, what);
    }

    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, what: SharedString) {
        self.current().describe_histogram(key, unit, what);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.current().register_counter(key, metadata)
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.current().register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.current().register_histogram(key, metadata)
    }
}
