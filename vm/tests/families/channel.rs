//! What a channel holds of a provider's answers, and when it sends nothing.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use http_body_util::Full;
use hyper::{HeaderMap, Response, body::Bytes};
use vm::{
    ChainId, Endpoint,
    http::{Allows, Channel, PostError},
    protocol::limits::PROVIDER_ANSWER,
};

use super::server::{Server, serve};

/// An answer of that length takes one of the permits for the largest, of which a provider has one.
const LONG: usize = (8 << 20) + 1;

fn channel(server: &Server, allows: Option<Allows>) -> Channel {
    let url = format!("http://127.0.0.1:{}/", server.port);
    let endpoint = Endpoint {
        position: 1,
        url: url.parse().unwrap(),
        timeout: Duration::from_secs(3),
        longest: PROVIDER_ANSWER,
        allows,
        client: Endpoint::client().unwrap(),
    };
    Channel::new(&ChainId::new("ethereum"), &endpoint)
}

#[tokio::test]
async fn a_long_refusal_takes_the_memory_of_an_answer_for_as_long_as_it_is_held() {
    let text = Bytes::from(vec![b' '; LONG]);
    let server = serve(move |_| {
        let refused = Response::builder()
            .status(500)
            .body(Full::new(text.clone()));
        async move { Ok::<_, Infallible>(refused.unwrap()) }
    })
    .await;
    let channel = channel(&server, None);
    let refusal = async || match channel.post(Vec::new()).await {
        Err(PostError::Status { body, .. }) => Ok(body),
        Err(PostError::Failed(why)) => Err(why),
        _ => panic!("a status"),
    };
    let held = refusal().await.unwrap();
    assert_eq!(held.len(), LONG);
    let second = refusal().await.map(|body| body.len());
    let full = "no memory for an answer of this size in time";
    assert_eq!(second, Err(full.to_owned()));
    drop(held);
    assert_eq!(refusal().await.map(|body| body.len()), Ok(LONG));
}

#[tokio::test]
async fn a_provider_that_asks_for_time_gets_no_question_of_any_kind() {
    let asked = Arc::new(AtomicUsize::new(0));
    let heard = asked.clone();
    let server = serve(move |_| {
        heard.fetch_add(1, SeqCst);
        let busy = Response::builder().status(429).header("retry-after", "20");
        async move { Ok::<_, Infallible>(busy.body(Full::<Bytes>::default()).unwrap()) }
    })
    .await;
    let counted = Arc::new(AtomicUsize::new(0));
    let counts = counted.clone();
    let allows: Allows = Arc::new(move |calls| counts.fetch_add(calls as usize, SeqCst) < 9);
    let channel = channel(&server, Some(allows));
    channel.admit(1).unwrap();
    let busy = channel.get("one", HeaderMap::new()).await;
    assert!(matches!(busy, Err(PostError::Status { status: 429, .. })));
    let waits = PostError::Failed("asked to wait".into());
    assert_eq!(
        channel.get("one", HeaderMap::new()).await,
        Err(waits.clone())
    );
    assert_eq!(channel.post(Vec::new()).await, Err(waits.clone()));
    let below = channel.post_below("one", HeaderMap::new(), Vec::new());
    assert_eq!(below.await, Err(waits.clone()));
    // What is not sent is not counted.
    assert_eq!(channel.admit(1), Err(waits));
    assert_eq!((asked.load(SeqCst), counted.load(SeqCst)), (1, 1));
}
