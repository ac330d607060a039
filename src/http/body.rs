//! Bodies of requests and answers. A request body is read into memory as a whole, within its limits and within the
//! listener's memory budget. Bytes count against the budget when they arrive, so a slow sender holds only what it has
//! sent. An answer's body is bytes, a stream, or an upgrade to a WebSocket.

use std::fmt;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{ApiError, socket::Upgrade, surface::Limits};

/// Bytes of an oversized body that the server still reads, so that its sender receives the answer.
const DRAINED: usize = 8 << 20;

/// The memory budget for request bodies of one listener.
pub struct Bodies {
    room: Semaphore,
    limits: Limits,
}

/// A request body; dropping it returns its bytes to the budget.
#[derive(Default)]
pub struct Held<'a> {
    pub bytes: Bytes,
    _room: Option<SemaphorePermit<'a>>,
}

impl Bodies {
    pub fn new(limits: Limits) -> Self {
        Self {
            room: Semaphore::new(limits.bodies.min(Semaphore::MAX_PERMITS)),
            limits,
        }
    }

    /// Reads all of `body`. Errors: 413 above the limit, 408 when it takes too long, 503 when the budget is used up.
    pub async fn read(&self, body: Incoming) -> Result<Held<'_>, ApiError> {
        let reading = async {
            let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
            if declared > self.limits.body {
                drain(body, declared).await;
                return Err(ApiError::BodyTooLarge);
            }
            self.collect(body).await
        };
        tokio::time::timeout(self.limits.body_time, reading)
            .await
            .unwrap_or(Err(ApiError::SlowBody))
    }

    async fn collect(&self, mut body: Incoming) -> Result<Held<'_>, ApiError> {
        let mut collected = BytesMut::new();
        let mut room: Option<SemaphorePermit<'_>> = None;
        while let Some(frame) = body.frame().await {
            let cut = |_| ApiError::refused("INVALID_BODY", "The body is cut short");
            let Ok(data) = frame.map_err(cut)?.into_data() else {
                continue;
            };
            if collected.len() + data.len() > self.limits.body {
                return Err(ApiError::BodyTooLarge);
            }
            let more = self.take(data.len())?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            collected.extend_from_slice(&data);
        }
        Ok(Held {
            bytes: collected.freeze(),
            _room: room,
        })
    }

    fn take(&self, bytes: usize) -> Result<SemaphorePermit<'_>, ApiError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let taken = self.room.try_acquire_many(bytes);
        taken.map_err(ApiError::overloaded)
    }
}

/// Reads and discards a body that is at most [`DRAINED`] bytes.
async fn drain(mut body: Incoming, declared: usize) {
    if declared > DRAINED {
        return;
    }
    while let Some(Ok(_)) = body.frame().await {}
}

/// The body of a [`Response`](super::Response).
pub enum Body {
    Whole(Bytes),
    /// The server sends it piece by piece; it ends when the stream or the listener ends.
    Stream(BoxStream<'static, Bytes>),
    /// No body: after the head the connection becomes a WebSocket.
    Upgrade(Upgrade),
}

impl Body {
    /// The bytes; `None` for a stream or an upgrade.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Whole(bytes) => Some(bytes),
            Self::Stream(_) | Self::Upgrade(_) => None,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(bytes) => bytes.fmt(f),
            Self::Stream(_) => f.write_str("stream"),
            Self::Upgrade(_) => f.write_str("upgrade"),
        }
    }
}
