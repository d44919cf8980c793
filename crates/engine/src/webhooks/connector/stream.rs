//! A connection that knows whether it leads to the receiver or to a proxy.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// An open connection.
pub(in super::super) struct ConnectorStream {
    stream: TokioIo<TcpStream>,
    to_proxy: bool,
}

impl ConnectorStream {
    /// Whoever is at its other end is the target.
    pub fn to_target(stream: TokioIo<TcpStream>) -> Self {
        Self { stream, to_proxy: false }
    }

    /// A proxy is at its other end, and must be told in each request who the target is.
    pub fn to_proxy(stream: TokioIo<TcpStream>) -> Self {
        Self { stream, to_proxy: true }
    }
}

impl Connection for ConnectorStream {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.to_proxy)
    }
}

impl Read for ConnectorStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for ConnectorStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}
