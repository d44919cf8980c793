//! The baseline of a request: an axum route that returns the request's body, on the server's runtime.

use std::net::TcpListener;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use axum::serve::ListenerExt as _;

/// Serves `POST /echo`; returns only on failure.
pub(super) fn serve(listener: TcpListener) -> Result<(), String> {
    serve_router(listener, Router::new().route("/echo", post(echo)).layer(DefaultBodyLimit::disable()))
}

/// Serves a router as the server does: the same runtime, the same socket options.
pub(super) fn serve_router(listener: TcpListener, router: Router) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|stream| {
            // Without `TCP_NODELAY` the kernel may delay small segments.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await
    });
    served.map_err(|error| error.to_string())
}

async fn echo(body: Bytes) -> Bytes {
    body
}
