//! Gives the errors that hyper answers itself the one shape of errors.
//!
//! hyper refuses a head that it cannot read before there is a request for a service: it writes a head without a body and
//! closes the connection. What is written while all requests have their responses, and these are written, is such a head.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::serve::HEAD_BYTES_MAX;
use crate::gate::parser_error::in_shape;
use crate::gate::peer;

/// A stream that adds a body to hyper's own errors.
pub(crate) struct ParserErrors<S> {
    inner: S,
    /// The number of requests whose responses are in `inner`.
    written: u32,
}

impl<S> ParserErrors<S> {
    pub(crate) fn around(inner: S) -> Self {
        Self { inner, written: 0 }
    }

    /// The bytes to write in place of `head`; `None`: as they are.
    fn in_shape(&self, head: &[u8]) -> Option<Vec<u8>> {
        let is_own = peer::answered_requests() == Some(self.written);
        is_own.then(|| in_shape(head, HEAD_BYTES_MAX)).flatten()
    }
}

impl<S: AsyncWrite + Unpin> ParserErrors<S> {
    /// Writes an error in place of a head of `replaced_bytes`. A part of it breaks the connection, which closes after it anyway.
    fn poll_write_error(
        &mut self,
        context: &mut Context<'_>,
        error: &[u8],
        replaced_bytes: usize,
    ) -> Poll<io::Result<usize>> {
        let bytes = ready!(Pin::new(&mut self.inner).poll_write(context, error))?;
        Poll::Ready(if bytes == error.len() {
            Ok(replaced_bytes)
        } else {
            Err(io::ErrorKind::WriteZero.into())
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ParserErrors<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ParserErrors<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.in_shape(bytes) {
            None => Pin::new(&mut self.inner).poll_write(context, bytes),
            Some(error) => self.poll_write_error(context, &error, bytes.len()),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let only = if let [only] = pieces { self.in_shape(only) } else { None };
        match only {
            None => Pin::new(&mut self.inner).poll_write_vectored(context, pieces),
            Some(error) => self.poll_write_error(context, &error, pieces[0].len()),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// hyper flushes when all that it has written is in the stream.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(requests) = peer::answered_requests() {
            self.written = requests;
        }
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
