//! Passes interim responses of a server behind this one on to the client: `103 Early Hints`, `102 Processing`, `100
//! Continue`.
//!
//! hyper reads them as a client, and writes none as a server. So they are written below hyper, between its own bytes:
//!
//! ```text
//!   upstream ──► Interims ──relay──► peer: at most one ──► InterimStream ──► client
//!                bounded             waits to be written    at a flush
//! ```
//!
//! hyper flushes a stream when all that it has written is in the stream, and each time that it is polled. A flush is the only
//! place where nothing of a previous response and nothing of the final one can be torn.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use http::header::{CONTENT_LENGTH, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, Request, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::gate::peer;

/// Interim responses of one request that may wait for the client to read. Further ones are dropped.
const WAITING_MAX: usize = 8;

/// The interim responses to one request to an upstream.
#[derive(Default)]
pub(crate) struct Interims {
    waiting: Mutex<VecDeque<(StatusCode, HeaderMap)>>,
    /// Whether one has come.
    has_any: AtomicBool,
    /// The task that relays them.
    relay: AtomicWaker,
}

impl Interims {
    /// Collects the interim responses to `request`, which is not sent yet.
    pub(crate) fn of<B>(request: &mut Request<B>) -> Arc<Self> {
        let interims = Arc::<Self>::default();
        let collecting = Arc::clone(&interims);
        hyper::ext::on_informational(request, move |response| {
            collecting.push(response.status(), response.headers());
        });
        interims
    }

    /// Whether an interim response has come.
    pub(crate) fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Acquire)
    }

    fn push(&self, status: StatusCode, headers: &HeaderMap) {
        self.has_any.store(true, Ordering::Release);
        {
            let mut waiting = self.waiting();
            if waiting.len() >= WAITING_MAX {
                return;
            }
            waiting.push_back((status, headers.clone()));
        }
        self.relay.wake();
    }

    /// Awaits the final response, and sends the interim ones before it to the client. `rewrite` makes their headers those
    /// that the client gets. Must be awaited in the task of the client's connection.
    pub(crate) async fn relay<T>(
        &self,
        mut answered: Pin<&mut impl Future<Output = T>>,
        rewrite: impl Fn(&mut HeaderMap),
    ) -> T {
        loop {
            let answer = poll_fn(|context| {
                self.relay.register(context.waker());
                match answered.as_mut().poll(context) {
                    Poll::Ready(answer) => Poll::Ready(Some(answer)),
                    Poll::Pending if self.waiting().is_empty() => Poll::Pending,
                    Poll::Pending => Poll::Ready(None),
                }
            });
            let answer = answer.await;
            loop {
                let next = self.waiting().pop_front();
                let Some((status, mut headers)) = next else { break };
                rewrite(&mut headers);
                peer::write_interim(written(status, headers)).await;
            }
            if let Some(answer) = answer {
                return answer;
            }
        }
    }

    /// A poisoned queue is valid, because every change is one call.
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(StatusCode, HeaderMap)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of an interim response, which has no body.
fn written(status: StatusCode, mut headers: HeaderMap) -> Vec<u8> {
    for name in [CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER] {
        headers.remove(name);
    }
    let reason = status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    for (name, value) in &headers {
        for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(piece);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// A client's stream that writes the interim response of its task at a flush.
pub(crate) struct InterimStream<S> {
    inner: S,
    /// What is left of an interim response that was begun.
    begun: Vec<u8>,
}

impl<S> InterimStream<S> {
    pub(crate) fn around(inner: S) -> Self {
        Self { inner, begun: Vec::new() }
    }
}

impl<S: AsyncWrite + Unpin> InterimStream<S> {
    /// Writes the rest of a begun interim response.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.begun.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(context, &self.begun))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.begun.drain(..written);
            if self.begun.is_empty() {
                self.begun = Vec::new();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InterimStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InterimStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rest(context))?;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rest(context))?;
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(context))?;
        if let Some(interim) = peer::take_interim() {
            self.begun = interim;
            // The response that follows waits until this one is in the stream.
            context.waker().wake_by_ref();
            ready!(self.poll_rest(context))?;
        }
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(context))?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use http::HeaderValue;

    use super::*;

    #[test]
    fn an_interim_response_has_no_body() {
        let mut headers = HeaderMap::new();
        headers.append("link", HeaderValue::from_static("</a.css>; rel=preload"));
        headers.append("link", HeaderValue::from_static("</b.js>; rel=preload"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("5"));
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        let bytes = written(StatusCode::EARLY_HINTS, headers);
        let expected =
            "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\nlink: </b.js>; rel=preload\r\n\r\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[tokio::test]
    async fn an_upstream_that_sends_them_for_ever_fills_no_memory() {
        let interims = Interims::default();
        for _ in 0..10_000 {
            interims.push(StatusCode::PROCESSING, &HeaderMap::new());
        }
        assert_eq!(interims.waiting().len(), WAITING_MAX);
        // Outside of a connection there is no client to write to.
        assert_eq!(interims.relay(pin!(async { 7 }), |_| ()).await, 7);
        assert!(interims.waiting().is_empty());
    }
}
