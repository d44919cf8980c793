//! Who is at the other end of a connection, and what it showed.
//!
//! Known to the connection's task, in which all of its requests are answered: carried in the requests instead, it
//! would cost each of them three allocations.

use std::cell::RefCell;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::LazyLock;

use longshore_engine::Caller;

use crate::shown::Shown;

tokio::task_local! {
    /// Boxed: it moves into the thread's place and out of it with every poll.
    static CONNECTION: Box<Connection>;
}

/// What is known in a connection's task.
struct Connection {
    peer: Peer,
    shown: RefCell<Shown>,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) caller: Caller,
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
        Self { caller: Caller::new(address, FINGERPRINTS.hash_one(address)), is_tls }
    }

    /// The client of the request that is being answered; none outside of a connection.
    pub(crate) fn current() -> Option<Self> {
        CONNECTION.try_with(|connection| connection.peer).ok()
    }

    /// Lets everything in `connection` know that it is about this client.
    pub(crate) fn serve<F: Future>(self, connection: F) -> impl Future<Output = F::Output> {
        CONNECTION.scope(Box::new(Connection { peer: self, shown: RefCell::default() }), connection)
    }
}

/// Looks at what the client of the request that is being answered showed last; none outside of a connection.
pub(crate) fn shown<T>(look: impl FnOnce(&mut Shown) -> T) -> Option<T> {
    CONNECTION.try_with(|connection| look(&mut connection.shown.borrow_mut())).ok()
}
