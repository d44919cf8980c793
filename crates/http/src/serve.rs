//! Accepts connections and hands their requests to the router.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tower::ServiceExt as _;

use crate::lingering::Lingering;

/// How long a connection may be idle between requests, or take to send a request's head. A worker whose handler
/// blocks for long must find its connection open when it reports: its client library keeps connections for
/// 15 s, others for 90 s, and a result posted into a closed one is lost.
const HEAD_TIMEOUT: Duration = Duration::from_mins(2);
/// A request's head in bytes; over it the answer is 431.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// After a failed accept (mostly: out of file descriptors) others get time to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `shutdown` ends, then stops accepting and returns when every open request is answered. The
/// caller bounds how long that may take, by dropping this future.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let (closing, on_closing) = watch::channel(());
    let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = converse(stream, router.clone(), on_closing.clone());
                let open = open.clone();
                tokio::spawn(async move {
                    connection.await;
                    drop(open);
                });
            }
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections at the moment");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    drop(closing);
    drop(open);
    // Ends when the last connection has dropped its sender; nothing is ever sent.
    all_closed.recv().await;
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn converse(stream: TcpStream, router: Router, mut closing: watch::Receiver<()>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "the connection closed before its first request");
        return;
    }
    let service = service_fn(move |request: Request<Incoming>| {
        router.clone().oneshot(Lingering::body_of(request).map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_header_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = closing.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
