//! WebSockets (RFC 6455): the handshake over HTTP/1.1, and a socket that closes on silence, on a peer that does not
//! read, on oversized messages, and with the listener.

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

/// A text that many sockets share without copies.
pub use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::{ApiError, Request, addresses::SocketPermit, line::Line};

/// The most bytes of a message, in one frame or several.
const MESSAGE: usize = 16 << 10;
/// Bytes per read; every idle socket has a buffer of this size.
const BUFFER: usize = 1 << 10;
/// The most bytes that wait for the peer to read.
const UNSENT: usize = 256 << 10;
/// Time for a message to leave; a peer that takes longer is slow. Unit tests use a long time, so that a busy machine
/// does not end a socket.
const SENDING: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 10 });
/// Time for the close frame to leave and be answered.
const FAREWELL: Duration = Duration::from_secs(if cfg!(test) { 600 } else { 1 });
/// A peer is gone after this many pauses between pings without a sign of life.
const SILENCES: u32 = 3;

/// What runs on a socket once it is open.
pub struct Upgrade(pub Box<dyn FnOnce(Socket) -> BoxFuture<'static, ()> + Send>);

/// Why a socket ends, with the code of the close frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The peer closed the socket, or the connection broke.
    Gone,
    /// Nothing more comes over the socket; the close frame says why: 1000.
    Done(&'static str),
    /// The listener ends: 1001.
    Listener,
    /// The peer does not read what it subscribed to: 1013.
    Slow,
    /// The peer gives no sign of life: 1008.
    Silent,
    /// The peer broke a rule; the close frame names it: 1008.
    Misused(&'static str),
    /// A message that is not text: 1003.
    Binary,
    /// A message above the limit: 1009.
    TooLarge,
    /// Not a WebSocket frame, or not UTF-8: 1002.
    Malformed,
}

impl End {
    /// The close frame; `None` where the peer is gone.
    fn frame(&self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            Self::Gone => return None,
            Self::Done(what) => (CloseCode::Normal, *what),
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
    /// The pause between pings.
    ping: Duration,
    heard: Instant,
    next_look: Instant,
    permit: Arc<SocketPermit>,
}

impl Socket {
    /// The next message, or why the socket ends. Sends and answers pings meanwhile. Cancel-safe: dropping the future
    /// loses no message.
    pub async fn next(&mut self) -> Result<Utf8Bytes, End> {
        loop {
            let came = tokio::select! {
                // Bytes that have arrived are a sign of life, however late they are read.
                biased;
                () = self.ending.cancelled() => return Err(End::Listener),
                came = self.stream.next() => came,
                () = tokio::time::sleep_until(self.next_look) => {
                    self.look().await?;
                    continue;
                }
            };
            self.heard = Instant::now();
            if !self.permit.count_message() {
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

    /// Sends the close frame and waits up to `FAREWELL` for the peer to answer.
    pub async fn close(mut self, why: End) {
        tracing::debug!(?why, "socket ended");
        let farewell = async {
            let Some(frame) = why.frame() else {
                // The library answers a close frame on flush.
                self.stream.flush().await.ok();
                return;
            };
            if self.stream.close(Some(frame)).await.is_err() {
                return;
            }
            while let Some(Ok(_)) = self.stream.next().await {}
            if matches!(why, End::TooLarge | End::Malformed) {
                // With unread bytes the kernel would reset the connection, and the frame would be lost.
                let stream = self.stream.get_mut();
                stream.shutdown().await.ok();
                let mut rest = [0; BUFFER];
                while let Ok(1..) = stream.read(&mut rest).await {}
            }
        };
        timeout(FAREWELL, farewell).await.ok();
    }
}

/// The answer headers that turn the connection of `request` into a WebSocket. Errors: 426 for a plain request, 400
/// for an invalid handshake or HTTP/2.
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
    // A key is 16 bytes in base64.
    let mut keys = request.headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let key = keys.next().map(HeaderValue::as_bytes);
    let key = key.filter(|key| key.len() == 24 && key.ends_with(b"=="));
    let (Some(key), None) = (key, keys.next()) else {
        return Err(refused("sec-websocket-key: expected 16 bytes in base64"));
    };
    HeaderValue::from_str(&derive_accept_key(key)).map_err(ApiError::internal)
}

/// Whether a comma-separated header contains `word`.
fn names(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name);
    let texts = values.iter().filter_map(|value| value.to_str().ok());
    let mut words = texts.flat_map(|text| text.split(','));
    words.any(|given| given.trim().eq_ignore_ascii_case(word))
}

/// Waits until the connection of `upgraded` is a WebSocket, then runs it.
pub async fn run(
    upgraded: OnUpgrade,
    upgrade: Upgrade,
    ping: Duration,
    ending: CancellationToken,
    permit: Arc<SocketPermit>,
) {
    let Ok(upgraded) = upgraded.await else { return };
    let Ok(mut parts) = downcast::<TokioIo<Line<TcpStream>>>(upgraded) else {
        tracing::error!("the upgraded connection has an unexpected type");
        return;
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(UNSENT)
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let stream = parts.io.into_inner().into_stream();
    // A copy: even an empty slice of the connection's buffer keeps the whole buffer alive.
    let read = Vec::from(&*std::mem::take(&mut parts.read_buf));
    let stream = WebSocketStream::from_partially_read(stream, read, Role::Server, Some(config));
    let now = Instant::now();
    let socket = Socket {
        stream: stream.await,
        ending,
        ping,
        heard: now,
        next_look: now + ping,
        permit,
    };
    (upgrade.0)(socket).await;
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}
