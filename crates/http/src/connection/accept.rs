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
use crate::connection::serve::serve_client;
use crate::connection::tls::Tls;
use crate::gate::peer::Peer;

/// After a failed accept (mostly: out of file descriptors) others get time to end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The log hears of failed accepts no more often than this.
const COMPLAINT_PAUSE: Duration = Duration::from_secs(10);

/// Serves until `shutdown` ends, then stops accepting and returns when every open request is answered. The
/// caller bounds how long that may take, by dropping this future.
///
/// With `tls` nothing else is spoken. There are never more than `connections_max` connections; more wait to be accepted until others end.
pub async fn serve(
    listener: TcpListener,
    edge: Edge,
    tls: Option<Tls>,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
) {
    let (closing, on_closing) = watch::channel(());
    let (open, mut all_closed) = mpsc::channel::<Infallible>(1);
    let mut accepting = Acceptor::new(listener, connections_max);
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, address, place) = tokio::select! {
            accepted = accepting.next() => accepted,
            () = &mut shutdown => break,
        };
        let peer = Peer::new(address.ip(), tls.is_some());
        let connection = peer.serve(serve_client(stream, tls.clone(), edge.clone(), on_closing.clone()));
        let ended = (place, open.clone());
        // Not an async block that awaits it: that has room for it twice, 1 KB of every connection.
        tokio::spawn(connection.map(move |()| drop(ended)));
    }
    drop(accepting);
    drop(closing);
    drop(open);
    // Ends when the last connection has dropped its sender; nothing is ever sent.
    all_closed.recv().await;
}

/// A listener and the room that is left for connections.
struct Acceptor {
    listener: TcpListener,
    room: Arc<Semaphore>,
    /// When the log last heard of trouble.
    complained: Option<Instant>,
}

impl Acceptor {
    fn new(listener: TcpListener, connections_max: usize) -> Self {
        let room = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
        Self { listener, room, complained: None }
    }

    /// The next connection and its place. Nothing is lost if this is dropped before its end.
    async fn next(&mut self) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
        loop {
            let Ok(place) = Arc::clone(&self.room).acquire_owned().await else {
                // Nobody closes this semaphore.
                return std::future::pending().await;
            };
            match self.listener.accept().await {
                Ok((stream, address)) => return (stream, address, place),
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    self.complain(&error);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn complain(&mut self, error: &io::Error) {
        let now = Instant::now();
        if self.complained.is_none_or(|last| now - last >= COMPLAINT_PAUSE) {
            self.complained = Some(now);
            tracing::error!(%error, "cannot accept connections at the moment");
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
