//! Decides what the end of a client's sending means.
//!
//! A client may send its whole request, shut down its side (as `nc -N` does), and then wait for the response. A client
//! that has disconnected looks the same until the server writes to it. The kind of response decides:
//!
//! - A response that hands something over is for connected clients only, so the end of sending counts as a disconnect.
//!   Such responses are a worker's take, the chunks that a plain `stream` consumes, and those under `openai`, where a
//!   disconnect cancels the job. See [`crate::gate::peer::hands_over`].
//! - Every other response is made and sent. Meanwhile a client of HTTP/1.1 gets a `100 Continue` from time to time, which
//!   it skips. A client that has disconnected answers it with a reset. HTTP/1.0 has no such response, so its clients get
//!   none.
//!
//! A connection that breaks is noticed in either case: immediately, or after the end of sending at the next probe.
//! hyper reads nothing while it waits for a response, so this stream does.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body as HttpBody;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::gate::peer::{self, RequestProgress};

/// Bytes of the next request that are read ahead to detect the end of sending.
const AHEAD_BYTES: usize = 64;

/// Written to a client that has ended its sending, to learn whether it is still connected.
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Time from the end of sending to the first probe; most responses are sooner. Each further probe waits twice as long.
const PROBE_AFTER: Duration = Duration::from_secs(1);
/// Longest time between two probes.
const PROBE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Sets the progress of the connection's request to [`RequestProgress::Coming`] when it is dropped.
struct ResponseEnd {
    /// What follows is no further request, but a tunnel.
    is_upgrade: bool,
}

impl Drop for ResponseEnd {
    fn drop(&mut self) {
        peer::set_request(RequestProgress::Coming);
        if !self.is_upgrade {
            peer::end_response();
        }
    }
}

/// Returns the same response, whose end [`HalfClose`] notices: hyper drops the body when it has all of it.
pub(crate) fn mark_end(
    response: Response<Body>,
) -> Response<impl HttpBody<Data = Bytes, Error = axum::Error>> {
    let end = ResponseEnd { is_upgrade: response.status() == StatusCode::SWITCHING_PROTOCOLS };
    response.map(|body| {
        body.map_err(move |error| {
            let _dropped_with_the_body = &end;
            error
        })
    })
}

/// A stream that notices its end while a request waits for its response.
pub(crate) struct HalfClose<S> {
    inner: S,
    /// Bytes of the next request, read while the current one was handled.
    ahead: Vec<u8>,
    /// The client has ended its sending.
    has_ended: bool,
    /// The response has begun, so that no probe may be written.
    has_responded: bool,
    /// Runs while a client that has ended its sending waits; boxed, because few clients do.
    probing: Option<Box<Probing>>,
}

struct Probing {
    /// When the next probe is due.
    due: Pin<Box<Sleep>>,
    /// The pause before that probe.
    pause: Duration,
}

impl<S> HalfClose<S> {
    pub(crate) fn around(inner: S) -> Self {
        Self { inner, ahead: Vec::new(), has_ended: false, has_responded: false, probing: None }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> HalfClose<S> {
    /// Checks whether the client is still connected, and registers for a wake-up when that changes.
    ///
    /// # Errors
    ///
    /// `ConnectionAborted` if the response hands something over and the client has ended its sending.
    fn check_connected(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let request = peer::request();
        if request == RequestProgress::Coming {
            self.has_responded = false;
            self.probing = None;
            return Ok(());
        }
        if !self.has_ended && self.ahead.is_empty() {
            let mut space = [0; AHEAD_BYTES];
            let mut buffer = ReadBuf::new(&mut space);
            if Pin::new(&mut self.inner).poll_read(context, &mut buffer)?.is_pending() {
                return Ok(());
            }
            self.ahead.extend_from_slice(buffer.filled());
            self.has_ended = self.ahead.is_empty();
        }
        match request {
            RequestProgress::HandsOver if self.has_ended => Err(io::ErrorKind::ConnectionAborted.into()),
            RequestProgress::Whole if self.has_ended && !self.has_responded => self.probe(context),
            _ => Ok(()),
        }
    }

    /// Sends a probe when one is due. Fails if the connection does not take it.
    fn probe(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let first = || Box::new(Probing { due: Box::pin(sleep(PROBE_AFTER)), pause: PROBE_AFTER });
        let probing = self.probing.get_or_insert_with(first);
        while probing.due.as_mut().poll(context).is_ready() {
            match Pin::new(&mut self.inner).poll_write(context, PROBE)? {
                Poll::Ready(bytes) if bytes == PROBE.len() => {}
                // The client has not read the bytes that were written before.
                _ => return Err(io::ErrorKind::ConnectionAborted.into()),
            }
            probing.pause = (probing.pause * 2).min(PROBE_PAUSE_MAX);
            probing.due = Box::pin(sleep(probing.pause));
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HalfClose<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let taken = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead[..taken]);
            self.ahead.drain(..taken);
            return Poll::Ready(Ok(()));
        }
        if self.has_ended {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for HalfClose<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.has_responded = true;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.has_responded = true;
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// hyper flushes each time it is polled, even with nothing to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_connected(context)?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
