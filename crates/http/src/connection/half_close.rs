//! What it means that a client sends nothing more.
//!
//! A client may say with its whole request that this was all (`shutdown` of its side, as `nc -N` does), and then wait for
//! the answer. A client that has hung up looks the same from here, until something is written to it. So the answer
//! decides:
//!
//! - One that hands something over goes to those alone who are still there, and the end of sending counts as hanging up:
//!   a worker's question for jobs, the chunks that a plain `stream` takes out, the answers under `openai`, whose callers
//!   cancel their jobs by hanging up. See [`crate::gate::peer::hands_over`].
//! - Every other one is made and sent. While it is waited for, such a client is told `100 Continue` now and then, which
//!   every client of HTTP/1.1 skips: one that has hung up answers that with a reset.
//!
//! A connection that breaks is noticed in any case, at once or, after the end of sending, with such a word. hyper reads
//! nothing while a request is being answered, so that is done here.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::gate::peer::{self, RequestProgress};

/// How much is read ahead to learn whether there is more: the beginning of a next request.
const AHEAD_BYTES: usize = 64;

/// What asks a client that sends nothing more whether it is still there.
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// How long after the end of sending the first comes. Most answers are sooner; each further one comes twice as late.
const PROBE_AFTER: Duration = Duration::from_secs(1);
/// The longest time between two.
const PROBE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// A stream that notices its end while a request is being answered.
pub(crate) struct HalfClose<S> {
    inner: S,
    /// Read while the request before was being answered.
    ahead: Vec<u8>,
    has_ended: bool,
    /// The answer has begun: nothing may come in between.
    has_answered: bool,
    /// Runs while a client that sends nothing more waits; boxed, because next to none does.
    probing: Option<Box<Probing>>,
}

struct Probing {
    due: Pin<Box<Sleep>>,
    pause: Duration,
}

impl<S> HalfClose<S> {
    pub(crate) fn around(inner: S) -> Self {
        Self { inner, ahead: Vec::new(), has_ended: false, has_answered: false, probing: None }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> HalfClose<S> {
    /// Looks whether the client is still there, and asks to be woken when that changes. Fails where nobody is there for
    /// an answer that hands something over.
    fn look(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let request = peer::request();
        if request == RequestProgress::Coming {
            self.has_answered = false;
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
            RequestProgress::Whole if self.has_ended && !self.has_answered => self.probe(context),
            _ => Ok(()),
        }
    }

    /// Sends a probe when one is due; fails where nobody is there to read it.
    fn probe(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let first = || Box::new(Probing { due: Box::pin(sleep(PROBE_AFTER)), pause: PROBE_AFTER });
        let probing = self.probing.get_or_insert_with(first);
        while probing.due.as_mut().poll(context).is_ready() {
            match Pin::new(&mut self.inner).poll_write(context, PROBE)? {
                Poll::Ready(bytes) if bytes == PROBE.len() => {}
                // It has not taken what was sent before.
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
        self.has_answered = true;
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.has_answered = true;
        Pin::new(&mut self.inner).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// hyper flushes in each of its turns, also where there is nothing to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look(context)?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
