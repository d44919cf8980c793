//! The other end of a connection, and the progress of its request.
//!
//! A task-local of the connection's task, which handles all of the connection's requests. Carried in each request
//! instead, it would cost three allocations per request.

use std::cell::Cell;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::LazyLock;

use longshore_engine::ClientAddress;

tokio::task_local! {
    /// Boxed: each poll moves it into the task-local's place and out again.
    static CONNECTION: Box<ConnectionContext>;
}

/// What a connection's task knows about its connection.
struct ConnectionContext {
    peer: Peer,
    request: Cell<RequestProgress>,
}

/// The progress of a connection's current request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestProgress {
    /// The request has not arrived, or not all of it.
    #[default]
    Coming,
    /// The whole request has arrived, and its response is being made.
    Whole,
    /// As `Whole`, for a client of HTTP/1.0, which knows no interim response such as `100 Continue`.
    WholeOfOld,
    /// The whole request has arrived, and its response is for connected clients only.
    HandsOver,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) caller: ClientAddress,
    /// The connection is encrypted up to this server.
    pub(crate) is_tls: bool,
}

impl Peer {
    /// A client at this address.
    pub(crate) fn new(address: IpAddr, is_tls: bool) -> Self {
        /// Random per process, so that no client can choose an address whose fingerprint is known.
        static FINGERPRINTS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        // An IPv4 client of a dual-stack socket is the same client.
        let address = address.to_canonical();
        Self { caller: ClientAddress::new(address, FINGERPRINTS.hash_one(address)), is_tls }
    }

    /// The client of the current request; `None` outside of a connection.
    pub(crate) fn current() -> Option<Self> {
        CONNECTION.try_with(|connection| connection.peer).ok()
    }

    /// Runs `connection` as the task of this client's connection.
    pub(crate) fn serve<F: Future>(self, connection: F) -> impl Future<Output = F::Output> {
        CONNECTION.scope(Box::new(ConnectionContext { peer: self, request: Cell::default() }), connection)
    }
}

/// The progress of the current request.
pub(crate) fn request() -> RequestProgress {
    CONNECTION.try_with(|connection| connection.request.get()).unwrap_or_default()
}

/// Sets the progress of the current request. No effect outside of a connection.
pub(crate) fn set_request(request: RequestProgress) {
    let _elsewhere = CONNECTION.try_with(|connection| connection.request.set(request));
}

/// Marks the response of the current request as one that hands something over: a client that has ended its sending
/// counts as disconnected, and must not get it. No effect before the whole request has arrived.
pub(crate) fn hands_over() {
    if request() != RequestProgress::Coming {
        set_request(RequestProgress::HandsOver);
    }
}
