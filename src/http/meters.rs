//! The metrics of a listener's requests.

use std::{sync::OnceLock, time::Duration};

use hyper::StatusCode;
use metrics::{Counter, Histogram};

/// The classes of statuses, as the label `status` has them.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// What counts the requests of one route of one listener. Each metric is made at its first use, when the recorder is
/// installed, and kept.
#[derive(Default)]
pub(super) struct Meters {
    /// By class.
    requests: [OnceLock<Counter>; CLASSES.len()],
    seconds: OnceLock<Histogram>,
}

impl Meters {
    /// Counts a request of `route` that `surface` answered with `status` within `elapsed`. Both names are the same in
    /// every call.
    pub(super) fn record(
        &self,
        [route, surface]: [&'static str; 2],
        status: StatusCode,
        elapsed: Duration,
    ) {
        let class = usize::from(status.as_u16() / 100).wrapping_sub(1);
        let mut classes = self.requests.iter().zip(CLASSES);
        let other = CLASSES.len() - 1;
        if let Some((requests, class)) = classes.nth(class.min(other)) {
            let requests = requests.get_or_init(
                || metrics::counter!("intentd_http_requests_total", "route" => route, "status" => class, "surface" => surface),
            );
            requests.increment(1);
        }
        let seconds = self.seconds.get_or_init(
            || metrics::histogram!("intentd_http_request_seconds", "route" => route, "surface" => surface),
        );
        seconds.record(elapsed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_routes_are_counted_apart() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            let meters = Meters::default();
            for status in [200, 204, 404, 503, 799] {
                let status = StatusCode::from_u16(status).unwrap();
                meters.record(["/a", "test"], status, Duration::ZERO);
            }
            Meters::default().record(["/b", "test"], StatusCode::OK, Duration::ZERO);
        });
        let shown = recorder.handle().render();
        for (route, class, count) in [
            ("/a", "2xx", 2),
            ("/a", "4xx", 1),
            ("/a", "5xx", 1),
            ("/a", "other", 1),
            ("/b", "2xx", 1),
        ] {
            let line = format!(
                "intentd_http_requests_total{{route=\"{route}\",status=\"{class}\",surface=\"test\"}} {count}\n"
            );
            assert!(shown.contains(&line), "{line} not in {shown}");
        }
        assert!(!shown.contains("3xx"), "{shown}");
        assert!(
            shown.contains("intentd_http_request_seconds_count{route=\"/a\",surface=\"test\"} 5")
        );
    }
}
