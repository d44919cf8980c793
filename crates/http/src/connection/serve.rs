//! Serves the requests of one connection in order, with bounds on size and time.

use std::pin::pin;

use futures_util::FutureExt as _;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::Edge;
use crate::connection::half_close::HalfClose;
use crate::connection::head_timeout::HeadTimeout;
use crate::connection::lingering_body::LingeringBody;
use crate::connection::tls::Tls;
use crate::connection::write_timeout::WriteTimeout;

/// Largest request head, in bytes; above it the status is 431.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves a client's connection until either side closes it, or until `closing` announces the shutdown and the open
/// request has its response.
pub(crate) async fn serve_client(
    stream: TcpStream,
    tls: Option<Tls>,
    edge: Edge,
    closing: watch::Receiver<()>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "connection closed before its first request");
        return;
    }
    match tls {
        None => serve_stream(stream, edge, closing).await,
        // Boxed: a TLS connection is larger, and all connections would get its size.
        Some(tls) => Box::pin(serve_tls_stream(stream, tls, edge, closing)).await,
    }
}

async fn serve_tls_stream(stream: TcpStream, tls: Tls, edge: Edge, closing: watch::Receiver<()>) {
    match tls.accept(stream).await {
        Ok(stream) => serve_stream(stream, edge, closing).await,
        Err(error) => tracing::debug!(%error, "TLS handshake failed"),
    }
}

/// Serves a connection over any stream of bytes.
pub(crate) async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    edge: Edge,
    mut closing: watch::Receiver<()>,
) {
    let head_timeout = &HeadTimeout::new();
    let service = service_fn(|request: Request<Incoming>| {
        head_timeout.pause();
        edge.answer(LingeringBody::body_of(request))
            .map(|answered| answered.map(|response| head_timeout.restart_after(response)))
    });
    let connection = http1::Builder::new()
        // [`HeadTimeout`] bounds the time of a head, below.
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        // hyper checks that limit on a complete head; this one bounds an incomplete head.
        .max_buf_size(HEAD_BYTES_MAX)
        // [`HalfClose`] decides whether a client that has ended its sending is gone.
        .half_close(true)
        .serve_connection(TokioIo::new(HalfClose::around(WriteTimeout::around(stream))), service);
    let mut connection = pin!(connection);
    let mut late_head = pin!(head_timeout.expired());
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended early");
                }
                return;
            }
            _closing = closing.changed(), if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut late_head => {
                tracing::debug!("request head timed out");
                return;
            }
        }
    }
}
