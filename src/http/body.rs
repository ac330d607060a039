//! Bodies. Those of requests are whole, within their limits, and never more of them in memory than there is
//! room for: bytes count when they have arrived, so that a sender who is slow holds only what it has sent.
//! Those of answers are whole, too, or come as they happen, or are none because the connection becomes a
//! WebSocket.

use std::fmt;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{ApiError, socket::Upgrade, surface::Limits};

/// How much of a body too large is still read, so that its sender gets to see the answer.
const DRAINED: usize = 8 << 20;

/// The memory for bodies of one listener.
pub struct Bodies {
    room: Semaphore,
    limits: Limits,
}

/// A whole body, or none; the room that it takes is free again when this is dropped.
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

    /// All of `body`: 413 above the limit, 408 when it takes too long, 503 when there is no room.
    pub async fn read(&self, body: Incoming) -> Result<Held<'_>, ApiError> {
        let reading = async {
            let told = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
            if told > self.limits.body {
                drain(body, told).await;
                return Err(ApiError::BodyTooLarge);
            }
            self.whole(body).await
        };
        tokio::time::timeout(self.limits.body_time, reading)
            .await
            .unwrap_or(Err(ApiError::SlowBody))
    }

    async fn whole(&self, mut body: Incoming) -> Result<Held<'_>, ApiError> {
        let mut whole = BytesMut::new();
        let mut room: Option<SemaphorePermit<'_>> = None;
        while let Some(frame) = body.frame().await {
            let cut = |_| ApiError::refused("INVALID_BODY", "The body is cut short");
            let Ok(data) = frame.map_err(cut)?.into_data() else {
                continue;
            };
            if whole.len() + data.len() > self.limits.body {
                return Err(ApiError::BodyTooLarge);
            }
            let more = self.take(data.len())?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            whole.extend_from_slice(&data);
        }
        Ok(Held {
            bytes: whole.freeze(),
            _room: room,
        })
    }

    fn take(&self, bytes: usize) -> Result<SemaphorePermit<'_>, ApiError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let taken = self.room.try_acquire_many(bytes);
        taken.map_err(ApiError::overloaded)
    }
}

/// Reads and forgets a body that is not much too large.
async fn drain(mut body: Incoming, told: usize) {
    if told > DRAINED {
        return;
    }
    while let Some(Ok(_)) = body.frame().await {}
}

/// The body of a [`Response`](super::Response).
pub enum Body {
    Whole(Bytes),
    /// Sent piece by piece; it ends when the stream does, or with the listener.
    Stream(BoxStream<'static, Bytes>),
    /// None: behind the head the connection is a WebSocket.
    Upgrade(Upgrade),
}

impl Body {
    /// The bytes, if they are all there.
    pub fn whole(&self) -> Option<&Bytes> {
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
