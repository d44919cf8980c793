//! One connection: its requests one after another, each within bounds of size and time.

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

/// A request's head in bytes; over it the answer is 431.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves a client's connection until either side ends it, or `closing` says that the server stops.
pub(crate) async fn serve_client(
    stream: TcpStream,
    tls: Option<Tls>,
    edge: Edge,
    closing: watch::Receiver<()>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection closed before its first request");
        return;
    }
    match tls {
        None => serve_stream(stream, edge, closing).await,
        // Boxed: it is larger, and all connections would be as large.
        Some(tls) => Box::pin(serve_tls_stream(stream, tls, edge, closing)).await,
    }
}

async fn serve_tls_stream(stream: TcpStream, tls: Tls, edge: Edge, closing: watch::Receiver<()>) {
    match tls.accept(stream).await {
        Ok(stream) => serve_stream(stream, edge, closing).await,
        Err(error) => tracing::debug!(%error, "a client could not agree on an encrypted connection"),
    }
}

/// The same over any stream of bytes.
pub(crate) async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    edge: Edge,
    mut closing: watch::Receiver<()>,
) {
    let turns = &HeadTimeout::new();
    let service = service_fn(|request: Request<Incoming>| {
        turns.answering();
        edge.answer(LingeringBody::body_of(request))
            .map(|answered| answered.map(|response| turns.answer(response)))
    });
    let connection = http1::Builder::new()
        // How long a head may take is seen to below.
        .header_read_timeout(None)
        .max_header_size(HEAD_BYTES_MAX)
        // That is checked when a head is complete; this is what an incomplete one may fill.
        .max_buf_size(HEAD_BYTES_MAX)
        // Whether a client that sends nothing more has gone is seen to by the stream.
        .half_close(true)
        .serve_connection(TokioIo::new(HalfClose::around(WriteTimeout::around(stream))), service);
    let mut connection = pin!(connection);
    let mut patience = pin!(turns.patience_runs_out());
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            _closing = closing.changed(), if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut patience => {
                tracing::debug!("a connection sent no request in time");
                return;
            }
        }
    }
}
