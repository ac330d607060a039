//! WebSockets (RFC 6455): the handshake over HTTP/1.1, and a socket that ends by itself: on silence, on
//! a peer that does not read, on what is too large, and with the listener.

use std::{fmt, sync::Arc, time::Duration};

use futures::{SinkExt, StreamExt, future::BoxFuture};
use hyper::{
    HeaderMap, Method, Version,
    header::{
        CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT,
        SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE,
    },
    upgrade::OnUpgrade,
};
use hyper_util::{rt::TokioIo, server::conn::auto::upgrade::downcast};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Bytes, Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tokio_util::sync::CancellationToken;

/// A text that many sockets share.
pub use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::{ApiError, Request, crowd::Seat, line::Line};

/// Bytes of a message, whole or in parts.
const MESSAGE: usize = 16 << 10;
/// Bytes that are read at a time; every idle socket has a buffer of this size.
const BUFFER: usize = 1 << 10;
/// Bytes that wait for a peer's kernel to take them.
const UNSENT: usize = 256 << 10;
/// For a message to leave; a peer that takes longer is slow. In unit tests what happens ends a socket, and
/// never how long a busy machine takes for it.
const SENDING: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 10 });
/// For the last message to leave and be answered.
const FAREWELL: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 1 });
/// Times the pause between signs of life after which a peer is gone.
const SILENCES: u32 = 3;

/// What is done with a socket once it is open.
pub struct Upgrade(pub Box<dyn FnOnce(Socket) -> BoxFuture<'static, ()> + Send>);

/// Why a socket ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed it, or the connection broke.
    Gone,
    /// The listener ends: 1001.
    Listener,
    /// The peer does not read what it asked for: 1013.
    Slow,
    /// The peer gives no sign of life: 1008.
    Silent,
    /// The peer does what it may not, and is told what: 1008.
    Misused(&'static str),
    /// A message that is not text: 1003.
    Binary,
    /// A message above the limit: 1009.
    TooLarge,
    /// What is no WebSocket frame, or no UTF-8: 1002.
    Malformed,
}

impl End {
    /// The close frame; `None` where nobody would read it.
    fn frame(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::Listener => (CloseCode::Away, "restarting"),
            Self::Slow => (CloseCode::Again, "slow"),
            Self::Silent => (CloseCode::Policy, "silent"),
            Self::Misused(what) => (CloseCode::Policy, *what),
            Self::Binary => (CloseCode::Unsupported, "text only"),
            Self::TooLarge => (CloseCode::Size, "too large"),
            Self::Malformed => (CloseCode::Protocol, "malformed"),
        };
        let reason = Utf8Bytes::from_static(reason);
        Some(CloseFrame { code, reason })
    }
}

impl From<tungstenite::Error> for End {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            tungstenite::Error::Capacity(_) => Self::TooLarge,
            tungstenite::Error::WriteBufferFull(_) => Self::Slow,
            tungstenite::Error::Protocol(
                tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            ) => Self::Gone,
            tungstenite::Error::Protocol(_) | tungstenite::Error::Utf8(_) => Self::Malformed,
            _ => Self::Gone,
        }
    }
}

/// An open WebSocket to one peer.
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
    ending: CancellationToken,
    /// Between signs of life.
    ping: Duration,
    heard: Instant,
    next_look: Instant,
    seat: Arc<Seat>,
}

impl Socket {
    /// The next message, or why the socket ends. Nothing is lost when this is dropped before it is
    /// done. Pings are sent and answered meanwhile.
    pub async fn next(&mut self) -> Result<Utf8Bytes, End> {
        loop {
            let came = tokio::select! {
                // What has come already is a sign of life, however late it is looked at.
                biased;
                () = self.ending.cancelled() => return Err(End::Listener),
                came = self.stream.next() => came,
                () = tokio::time::sleep_until(self.next_look) => {
                    self.look().await?;
                    continue;
                }
            };
            self.heard = Instant::now();
            if !self.seat.hear() {
                return Err(End::Misused("too many messages"));
            }
            match came.ok_or(End::Gone)?? {
                Message::Text(text) => return Ok(text),
                Message::Binary(_) => return Err(End::Binary),
                Message::Close(_) => return Err(End::Gone),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    async fn look(&mut self) -> Result<(), End> {
        let now = Instant::now();
        self.next_look = now + self.ping;
        let silent = now.duration_since(self.heard);
        if silent >= self.ping * SILENCES {
            return Err(End::Silent);
        }
        if silent >= self.ping {
            self.put(Message::Ping(Bytes::new())).await?;
        }
        Ok(())
    }

    /// Sends a text; [`End::Slow`] when the peer does not take it in time.
    pub async fn send(&mut self, text: Utf8Bytes) -> Result<(), End> {
        self.put(Message::Text(text)).await
    }

    async fn put(&mut self, message: Message) -> Result<(), End> {
        tokio::select! {
            () = self.ending.cancelled() => Err(End::Listener),
            sent = timeout(SENDING, self.stream.send(message)) => Ok(sent.map_err(|_| End::Slow)??),
        }
    }

    /// Tells the peer why, and gives it a second to hear it.
    pub async fn close(mut self, why: End) {
        tracing::debug!(?why, "socket ended");
        let farewell = async {
            let Some(frame) = why.frame() else {
                // The library answers a close frame when it is asked to flush.
                self.stream.flush().await.ok();
                return;
            };
            if self.stream.close(Some(frame)).await.is_err() {
                return;
            }
            while let Some(Ok(_)) = self.stream.next().await {}
            if matches!(why, End::TooLarge | End::Malformed) {
                // Unread bytes would make the kernel reset the connection, and the frame lost.
                let stream = self.stream.get_mut();
                stream.shutdown().await.ok();
                let mut rest = [0; BUFFER];
                while let Ok(1..) = stream.read(&mut rest).await {}
            }
        };
        timeout(FAREWELL, farewell).await.ok();
    }
}

/// The head of the answer that makes the connection of `request` a WebSocket: 426 for a plain request, 400 for
/// a handshake that is none or comes over HTTP/2.
pub fn handshake(request: &Request) -> Result<HeaderMap, ApiError> {
    let accept = accept(request)?;
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(headers)
}

fn accept(request: &Request) -> Result<HeaderValue, ApiError> {
    let refused = |what: &str| ApiError::refused("INVALID_HANDSHAKE", what);
    if request.version == Version::HTTP_2 {
        let what = "WebSockets are opened over HTTP/1.1, not over HTTP/2";
        return Err(ApiError::refused("HTTP1_REQUIRED", what));
    }
    if !names(&request.headers, UPGRADE, "websocket") {
        return Err(ApiError::UpgradeRequired);
    }
    if request.method != Method::GET || request.version != Version::HTTP_11 {
        return Err(refused("a WebSocket is opened with GET over HTTP/1.1"));
    }
    if !names(&request.headers, CONNECTION, "upgrade") {
        return Err(refused("connection: expected upgrade"));
    }
    if request.header(SEC_WEBSOCKET_VERSION.as_str()) != Some("13") {
        return Err(refused("sec-websocket-version: expected 13"));
    }
    let length = request.headers.get(CONTENT_LENGTH);
    let body = length.is_some_and(|length| length != "0");
    if body || request.headers.contains_key(TRANSFER_ENCODING) {
        return Err(refused("a WebSocket is opened without a body"));
    }
    // 16 bytes in base64.
    let mut keys = request.headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let key = keys.next().map(HeaderValue::as_bytes);
    let key = key.filter(|key| key.len() == 24 && key.ends_with(b"=="));
    let (Some(key), None) = (key, keys.next()) else {
        return Err(refused("sec-websocket-key: expected 16 bytes in base64"));
    };
    HeaderValue::from_str(&derive_accept_key(key)).map_err(ApiError::internal)
}

/// Whether a comma-separated header names `word`.
fn names(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name);
    let texts = values.iter().filter_map(|value| value.to_str().ok());
    let mut words = texts.flat_map(|text| text.split(','));
    words.any(|given| given.trim().eq_ignore_ascii_case(word))
}

/// Waits until the connection of `upgraded` is a WebSocket, and runs it.
pub async fn run(
    upgraded: OnUpgrade,
    upgrade: Upgrade,
    ping: Duration,
    ending: CancellationToken,
    seat: Arc<Seat>,
) {
    let Ok(upgraded) = upgraded.await else { return };
    let Ok(mut parts) = downcast::<TokioIo<Line<TcpStream>>>(upgraded) else {
        tracing::error!("an upgraded connection is of another kind");
        return;
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(UNSENT)
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let stream = parts.io.into_inner().into_stream();
    // Even an empty piece of the connection's buffer keeps all of it.
    let read = Vec::from(&*std::mem::take(&mut parts.read_buf));
    let stream = WebSocketStream::from_partially_read(stream, read, Role::Server, Some(config));
    let now = Instant::now();
    let socket = Socket {
        stream: stream.await,
        ending,
        ping,
        heard: now,
        next_look: now + ping,
        seat,
    };
    (upgrade.0)(socket).await;
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}
