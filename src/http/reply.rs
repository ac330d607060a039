//! What an answer is made of: bytes that are all there, bytes that come as they happen, or a connection
//! that from now on is a WebSocket.

use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use http_body_util::Full;
use hyper::body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::{crowd::Member, limit::Tally, socket::Upgrade};

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

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Whole(bytes.into())
    }
}

/// The place of one who stays: a stream or a WebSocket.
pub struct Seat {
    surface: &'static str,
    _place: (OwnedSemaphorePermit, Member),
    tally: Tally,
}

impl Seat {
    pub fn new(
        surface: &'static str,
        place: (OwnedSemaphorePermit, Member),
        tally: Tally,
    ) -> Arc<Self> {
        metrics::gauge!("intentd_http_sockets", "surface" => surface).increment(1.0);
        Arc::new(Self {
            surface,
            _place: place,
            tally,
        })
    }

    /// Counts a message of its peer; whether it may send it.
    pub fn hear(&self) -> bool {
        self.tally.count()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        metrics::gauge!("intentd_http_sockets", "surface" => self.surface).decrement(1.0);
    }
}

/// A body on its way to the transport.
pub enum Outgoing {
    Whole(Full<Bytes>),
    Stream(BoxStream<'static, Bytes>),
}

impl Outgoing {
    pub fn whole(bytes: Bytes) -> Self {
        Self::Whole(Full::new(bytes))
    }

    /// `pieces` until `ending`; the seat is free again when it is dropped.
    pub fn stream(
        pieces: BoxStream<'static, Bytes>,
        seat: Arc<Seat>,
        ending: CancellationToken,
    ) -> Self {
        let seated = pieces.map(move |piece| {
            let _seat = &seat;
            piece
        });
        Self::Stream(seated.take_until(ending.cancelled_owned()).boxed())
    }
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::whole(Bytes::new())
    }
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(cx),
            Self::Stream(pieces) => {
                let polled = pieces.poll_next_unpin(cx);
                polled.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
