//! Makes a [`Channel`] the transport of bitcoincore-rpc, whose calls block: only for threads made for blocking.

use std::fmt;

use bitcoincore_rpc::jsonrpc::{self, Request, Response, client::Transport};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio::{
    runtime::Handle,
    time::{Instant, timeout_at},
};

use crate::http::{Body, Channel, PostError};

/// A blocking transport over a [`Channel`].
pub struct Blocking {
    pub channel: Channel,
    /// The node's wallet that is asked.
    pub wallet: Option<String>,
    pub runtime: Handle,
    /// The end of the whole read, which bounds how long it holds a thread.
    pub deadline: Instant,
}

impl Blocking {
    fn exchange<Q: serde::Serialize, A: serde::de::DeserializeOwned>(
        &self,
        question: &Q,
        calls: usize,
    ) -> Result<A, jsonrpc::Error> {
        let failed = |error: PostError| jsonrpc::Error::Transport(Box::new(error));
        self.channel.admit(calls).map_err(failed)?;
        let body = serde_json::to_vec(question)?;
        let answer = async { timeout_at(self.deadline, self.post(body)).await };
        let late = |_| Err(PostError::Failed("timed out".into()));
        let answer = match self.runtime.block_on(answer).unwrap_or_else(late) {
            // Bitcoin Core sends its errors with an HTTP status of their own.
            Ok(body) => serde_json::from_slice(&body)?,
            Err(PostError::Status {
                status: 404 | 500,
                body,
            }) => serde_json::from_slice(&body)?,
            Err(error) => return Err(failed(error)),
        };
        Ok(answer)
    }
}

impl Blocking {
    async fn post(&self, body: Vec<u8>) -> Result<Body, PostError> {
        let Some(wallet) = &self.wallet else {
            return self.channel.post(body).await;
        };
        let json = HeaderValue::from_static("application/json");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        let path = format!("wallet/{wallet}");
        self.channel.post_below(&path, headers, body).await
    }
}

impl Transport for Blocking {
    fn send_request(&self, request: Request<'_>) -> Result<Response, jsonrpc::Error> {
        self.exchange(&request, 1)
    }

    fn send_batch(&self, requests: &[Request<'_>]) -> Result<Vec<Response>, jsonrpc::Error> {
        self.exchange(&requests, requests.len())
    }

    fn fmt_target(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.channel.provider())
    }
}
