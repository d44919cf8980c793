//! Who is at the other end of a connection, and what it showed.
//!
//! Known to the connection's task, in which all of its requests are answered: carried in the requests instead, it
//! would cost each of them three allocations.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::LazyLock;

use longshore_engine::ClientAddress;

use crate::gate::credential_cache::CredentialCache;

tokio::task_local! {
    /// Boxed: it moves into the thread's place and out of it with every poll.
    static CONNECTION: Box<ConnectionContext>;
}

/// What is known in a connection's task.
struct ConnectionContext {
    peer: Peer,
    credentials: RefCell<CredentialCache>,
    request: Cell<RequestProgress>,
}

/// How a connection's request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestProgress {
    /// It is not here yet, or not all of it.
    #[default]
    Coming,
    /// It is here as a whole and being answered.
    Whole,
    /// The same, and its client knows no words before the answer, such as `100 Continue`: it speaks HTTP/1.0.
    WholeOfOld,
    /// It is here as a whole, and the answer is for those alone who are still there.
    HandsOver,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) caller: ClientAddress,
    /// Nobody in between can read along.
    pub(crate) is_tls: bool,
}

impl Peer {
    /// A client at this address.
    pub(crate) fn new(address: IpAddr, is_tls: bool) -> Self {
        /// Drawn anew at each start: nobody can choose an address that is taken for a known one.
        static FINGERPRINTS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        // An IPv4 client of a socket for both is the same client.
        let address = address.to_canonical();
        Self { caller: ClientAddress::new(address, FINGERPRINTS.hash_one(address)), is_tls }
    }

    /// The client of the request that is being answered; none outside of a connection.
    pub(crate) fn current() -> Option<Self> {
        CONNECTION.try_with(|connection| connection.peer).ok()
    }

    /// Lets everything in `connection` know that it is about this client.
    pub(crate) fn serve<F: Future>(self, connection: F) -> impl Future<Output = F::Output> {
        CONNECTION.scope(
            Box::new(ConnectionContext {
                peer: self,
                credentials: RefCell::default(),
                request: Cell::default(),
            }),
            connection,
        )
    }
}

/// Passes the connection's cached credential to `look`; none outside of a connection.
pub(crate) fn credential_cache<T>(look: impl FnOnce(&mut CredentialCache) -> T) -> Option<T> {
    CONNECTION.try_with(|connection| look(&mut connection.credentials.borrow_mut())).ok()
}

/// How the request stands that is being answered.
pub(crate) fn request() -> RequestProgress {
    CONNECTION.try_with(|connection| connection.request.get()).unwrap_or_default()
}

/// Says how the connection's request stands; nothing outside of a connection.
pub(crate) fn set_request(request: RequestProgress) {
    let _elsewhere = CONNECTION.try_with(|connection| connection.request.set(request));
}

/// Says that the request that is being answered is one whose answer hands something over: a client that sends nothing
/// more has hung up, and must not be given it. Of no effect before the whole request is here.
pub(crate) fn hands_over() {
    if request() != RequestProgress::Coming {
        set_request(RequestProgress::HandsOver);
    }
}
