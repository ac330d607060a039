//! The deadlines of a connection. The connection ends when its first byte does not come, when a head does not end,
//! and when it is silent while no request is being answered; else slow and idle peers would hold memory for ever.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

use super::framing::Framing;

/// State that a connection and its requests share.
#[derive(Debug, Default)]
pub struct Signals {
    ambiguous: AtomicBool,
    answering: AtomicUsize,
}

impl Signals {
    /// Whether a request on this connection declared its length twice.
    pub fn ambiguous(&self) -> bool {
        self.ambiguous.load(Ordering::Acquire)
    }

    /// Marks the connection as busy until the guard is dropped.
    pub fn answering(self: &Arc<Self>) -> Answering {
        self.answering.fetch_add(1, Ordering::AcqRel);
        Answering(self.clone())
    }
}

/// Keeps the connection marked as busy: see [`Signals::answering`].
pub struct Answering(Arc<Signals>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answering.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A stream with the deadlines of an HTTP connection.
pub struct Line<T> {
    stream: T,
    framing: Framing,
    signals: Arc<Signals>,
    head: Duration,
    idle: Duration,
    head_since: Option<Instant>,
    active: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<T> Line<T> {
    /// `head`: time for a request head, and for the first byte; `idle`: longest silence between requests.
    pub fn new(stream: T, signals: Arc<Signals>, head: Duration, idle: Duration) -> Self {
        let now = Instant::now();
        Self {
            stream,
            framing: Framing::default(),
            signals,
            head,
            idle,
            head_since: Some(now),
            active: now,
            timer: Box::pin(tokio::time::sleep_until(now + head.min(idle))),
        }
    }

    /// Returns the stream for a protocol other than HTTP; the deadlines of this type no longer apply.
    pub fn into_stream(self) -> T {
        self.stream
    }

    fn read(&mut self, bytes: &[u8]) {
        let now = Instant::now();
        self.active = now;
        self.framing.feed(bytes);
        if self.framing.ambiguous() {
            self.signals.ambiguous.store(true, Ordering::Release);
        }
        if !self.framing.inside_head() {
            self.head_since = None;
        } else if self.head_since.is_none() {
            self.head_since = Some(now);
            self.timer.as_mut().reset(now + self.head.min(self.idle));
        }
    }

    /// Fails once the current deadline has passed; else wakes the task at that time. The timer may fire early, never
    /// late: it is then set again for the deadline that applies.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let busy = self.signals.answering.load(Ordering::Acquire) > 0;
            let deadline = match self.head_since {
                Some(since) => since + self.head,
                None if busy => now + self.idle,
                None => self.active + self.idle,
            };
            if deadline <= now {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.timer.as_mut().reset(deadline);
        }
        Ok(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Line<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Pending => {
                self.check(cx)?;
                Poll::Pending
            }
            Poll::Ready(result) => {
                self.read(&buf.filled()[before..]);
                Poll::Ready(result)
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Line<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.wrote(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<T> Line<T> {
    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if polled.is_pending() {
            self.check(cx)?;
        }
        let count = ready!(polled)?;
        self.active = Instant::now();
        Poll::Ready(Ok(count))
    }
}
