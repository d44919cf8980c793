//! Accepts connections and hands them to the edge.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::Edge;
use crate::connection::answers::Answers;
use crate::connection::serve::serve_client;
use crate::connection::tls::Tls;
use crate::gate::peer::Peer;

/// Pause after a failed accept, usually for lack of file descriptors, so that open connections can end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Least time between two log lines about failed accepts.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Serves until `shutdown` ends, then stops acceptor and returns when every open request has its response. The caller
/// bounds that time by dropping this future.
///
/// With `tls` the listener accepts TLS only. At most `connections_max` connections are open; further ones stay in the
/// listener's backlog until others end.
pub async fn serve(
    listener: TcpListener,
    edge: Edge,
    tls: Option<Tls>,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
) {
    accept(listener, edge, tls, connections_max, shutdown).await;
}

/// As [`serve`], for every type that answers requests.
pub(crate) async fn accept(
    listener: TcpListener,
    edge: impl Answers,
    tls: Option<Tls>,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
) {
    let (closing, on_closing) = watch::channel(());
    let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
    let mut acceptor = Acceptor::new(listener, connections_max);
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, address, permit) = tokio::select! {
            accepted = acceptor.next() => accepted,
            () = &mut shutdown => break,
        };
        let peer = Peer::new(address.ip(), tls.is_some());
        let connection = peer.serve(serve_client(stream, tls.clone(), edge.clone(), on_closing.clone()));
        let ended = (permit, open.clone(), edge.count_connection());
        // No async block: one that awaits the connection reserves its size twice, 1 KB per connection.
        tokio::spawn(connection.map(move |()| drop(ended)));
    }
    drop(acceptor);
    drop(closing);
    drop(open);
    // Ends when the last connection has dropped its sender; nothing is ever sent.
    all_closed.recv().await;
}

/// A listener and its permits for connections.
struct Acceptor {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    /// When the log last got a line about a failed accept.
    last_logged: Option<Instant>,
}

impl Acceptor {
    fn new(listener: TcpListener, connections_max: usize) -> Self {
        let permits = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
        Self { listener, permits, last_logged: None }
    }

    /// Returns the next connection and its permit. Cancel-safe: no connection is lost if the future is dropped.
    async fn next(&mut self) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
        loop {
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else {
                // The semaphore is never closed.
                return std::future::pending().await;
            };
            match self.listener.accept().await {
                Ok((stream, address)) => return (stream, address, permit),
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    self.log_failure(&error);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn log_failure(&mut self, error: &io::Error) {
        let now = Instant::now();
        if self.last_logged.is_none_or(|last| now - last >= LOG_INTERVAL) {
            self.last_logged = Some(now);
            tracing::error!(%error, "cannot accept connections");
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
