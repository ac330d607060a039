use std::{net::TcpListener, sync::mpsc, thread, time::Instant};

use tracing_subscriber::layer::SubscriberExt;

use super::*;

#[test]
fn more_lines_than_a_dead_intake_takes_hold_up_nobody() {
    // Connections are taken and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let (connected, connections) = mpsc::channel();
    thread::spawn(move || {
        silent
            .incoming()
            .try_for_each(|stream| connected.send(stream))
    });
    let shipping = Shipping::to(&Intake {
        url: &format!("http://{address}/"),
        key: "k",
        service: "s",
        version: "1",
        environment: "test",
        clock: || 0,
    })
    .unwrap();
    let subscriber = tracing_subscriber::registry().with(shipping.layer());
    let begun = Instant::now();
    tracing::subscriber::with_default(subscriber, || {
        for number in 0..4 * WAITING {
            tracing::info!(number, "line");
        }
    });
    // Lines that waited for room would take as long as 48 batches may.
    assert!(begun.elapsed() < 12 * PATIENCE);
    let begun = Instant::now();
    drop(shipping);
    // All lines that are still there would take as long as 16.
    assert!(begun.elapsed() < 12 * PATIENCE);
    assert!(connections.try_recv().is_ok(), "a batch was on its way");
}

#[test]
fn an_intake_without_a_url_is_refused() {
    let bad = Shipping::to(&Intake {
        url: "no url",
        key: "k",
        service: "s",
        version: "1",
        environment: "test",
        clock: || 0,
    });
    assert!(matches!(bad, Err(Error::Exporter(_))));
}

#[test]
fn what_the_sender_logs_is_not_sent_whichever_crate_logs_it() {
    #[derive(Clone, Default)]
    struct Passed(std::sync::Arc<std::sync::Mutex<Vec<String>>>);
    impl<S: Subscriber> Layer<S> for Passed {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let of_log = event.normalized_metadata();
            let metadata = of_log.as_ref().unwrap_or(event.metadata());
            self.0.lock().unwrap().push(metadata.target().to_owned());
        }
    }
    let passed = Passed::default();
    let subscriber = tracing_subscriber::registry().with(passed.clone().with_filter(Others));
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!(target: "reqwest::connect", "of tracing");
        tracing::info!(target: "intentd::run", "of tracing");
        for target in ["reqwest::connect", "sled::pagecache"] {
            let line = tracing_log::log::Record::builder()
                .level(tracing_log::log::Level::Info)
                .target(target)
                .args(format_args!("of log"))
                .build();
            tracing_log::format_trace(&line).unwrap();
        }
    });
    assert_eq!(
        *passed.0.lock().unwrap(),
        ["intentd::run", "sled::pagecache"]
    );
}
