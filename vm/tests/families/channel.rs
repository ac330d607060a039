//! What a channel holds of a provider's answers.

use std::{convert::Infallible, time::Duration};

use http_body_util::Full;
use hyper::{Response, body::Bytes};
use vm::{
    ChainId, Endpoint,
    http::{Channel, PostError},
    protocol::limits::PROVIDER_ANSWER,
};

use super::server::serve;

/// An answer of that length takes one of the permits for the largest, of which a provider has one.
const LONG: usize = (8 << 20) + 1;

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
    let endpoint = Endpoint {
        position: 1,
        url: format!("http://127.0.0.1:{}/", server.port)
            .parse()
            .unwrap(),
        timeout: Duration::from_secs(3),
        longest: PROVIDER_ANSWER,
        allows: None,
        client: Endpoint::client().unwrap(),
    };
    let channel = Channel::new(&ChainId::new("ethereum"), &endpoint);
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
