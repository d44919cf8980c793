//! The floor of a request: an axum route that answers the body it got, on the runtime that the server uses.

use std::net::TcpListener;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use axum::serve::ListenerExt as _;

/// Serves `POST /echo` for ever.
pub(super) fn serve(listener: TcpListener) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?.tap_io(|stream| {
            // As the server does; without it the kernel may wait for more to send.
            let _ = stream.set_nodelay(true);
        });
        let router = Router::new().route("/echo", post(echo)).layer(DefaultBodyLimit::disable());
        axum::serve(listener, router).await
    });
    served.map_err(|error| error.to_string())
}

async fn echo(body: Bytes) -> Bytes {
    body
}
