//! One connection: its requests one after another, each within bounds of size and time.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::lingering::Lingering;
use crate::stalls::Stalls;

/// How long a connection may be idle between requests, or take to send a later request's head. A worker whose
/// handler blocks for long must find its connection open when it reports: its client library keeps connections
/// for 15 s, others for 90 s, and a result posted into a closed one is lost.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
/// How long a new connection may take to send its first request's head: nobody connects to say nothing, except
/// those who want to use connections up.
const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(20);
/// A request's head in bytes; over it the answer is 431.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves a client's connection until either side ends it, or `closing` says that the server stops.
pub(crate) async fn serve_client(stream: TcpStream, router: Router, closing: watch::Receiver<()>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection closed before its first request");
        return;
    }
    converse(stream, router, closing).await;
}

/// The same over any stream of bytes.
pub(crate) async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    mut closing: watch::Receiver<()>,
) {
    let asked = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        asked.store(true, Ordering::Relaxed);
        router.clone().oneshot(Lingering::body_of(request).map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(HEAD_BYTES_MAX)
        // That is checked when a head is complete; this is what an incomplete one may fill.
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Stalls::around(stream)), service);
    let mut connection = pin!(connection);
    let mut first_head = pin!(tokio::time::sleep(FIRST_HEAD_TIMEOUT));
    let mut is_new = true;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            _ = closing.changed() => {
                connection.as_mut().graceful_shutdown();
                break connection.await;
            }
            () = first_head.as_mut(), if is_new => {
                is_new = false;
                if !asked.load(Ordering::Relaxed) {
                    tracing::debug!("a connection sent no request in time");
                    return;
                }
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
