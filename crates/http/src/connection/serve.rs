//! Serves the requests of one connection in order, with bounds on size and time.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::connection::answers::Answers;
use crate::connection::half_close::{HalfClose, mark_end};
use crate::connection::head_timer::HeadTimer;
use crate::connection::lingering_body::LingeringBody;
use crate::connection::parser_errors::ParserErrors;
use crate::connection::tls::Tls;
use crate::connection::write_timeout::WriteTimeout;
use crate::gate::interim::InterimStream;
use crate::gate::peer;

/// Largest request head, in bytes; above it the status is 431.
pub(super) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a connection may be idle between requests, or take to send a later request's head. A worker whose handler
/// blocks must find its connection open when it reports: its client library keeps connections for 15 s, others for 90
/// s. A result posted to a closed connection is lost.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
/// How long a new connection may take to send its first request's head. Short, because idle new connections are a way
/// to exhaust the server's connections.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// Serves a client's connection until either side closes it, or until `closing` announces the shutdown and the open
/// request has its response.
pub(crate) async fn serve_client(
    stream: TcpStream,
    tls: Option<Tls>,
    edge: impl Answers,
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

async fn serve_tls_stream(stream: TcpStream, tls: Tls, edge: impl Answers, closing: watch::Receiver<()>) {
    match tls.accept(stream).await {
        Ok(stream) => serve_stream(stream, edge, closing).await,
        Err(error) => tracing::debug!(%error, "TLS handshake failed"),
    }
}

/// Serves a connection over any stream of bytes.
pub(crate) async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    edge: impl Answers,
    mut closing: watch::Receiver<()>,
) {
    let has_request = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        has_request.store(true, Ordering::Relaxed);
        peer::begin_request();
        edge.answer(LingeringBody::body_of(request)).map(|answered| answered.map(mark_end))
    });
    let stream = HalfClose::around(ParserErrors::around(InterimStream::around(WriteTimeout::around(stream))));
    let connection = http1::Builder::new()
        .timer(HeadTimer::default())
        // Runs from when a response has been written to the end of the next request's head.
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(HEAD_BYTES_MAX)
        // hyper checks that limit on a complete head; this one bounds an incomplete head.
        .max_buf_size(HEAD_BYTES_MAX)
        // [`HalfClose`] decides whether a client that has ended its sending is gone.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    let mut first_head_timeout = pin!(sleep(FIRST_HEAD_TIMEOUT));
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended early");
                }
                break;
            }
            _closing = closing.changed(), if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut first_head_timeout, if !has_request.load(Ordering::Relaxed) => {
                // The first request may have arrived since `select!` evaluated the condition above.
                if !has_request.load(Ordering::Relaxed) {
                    tracing::debug!("first request head timed out");
                    return;
                }
            }
        }
    }
    // The connection counts as open for as long as its tunnel is.
    if let Some(tunnel) = peer::take_tunnel() {
        tunnel.await;
    }
}
