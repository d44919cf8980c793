//! The sockets that the server listens on.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::startup_error::StartupError;

/// Connections that may wait to be accepted. The usual 128 overflow in a burst of clients, and a dropped client
/// waits 1 s before it retries. The system may allow fewer (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// Listens on `address`.
///
/// # Errors
///
/// `StartupError` if the address is invalid or in use.
pub(crate) async fn listen(address: &str) -> Result<TcpListener, StartupError> {
    first_that_works(address).await.map_err(|cause| {
        let address = address.to_owned();
        match cause.kind() {
            io::ErrorKind::AddrInUse => StartupError::InUse { address },
            io::ErrorKind::InvalidInput => StartupError::Address { address },
            _ => StartupError::Listen { address, cause },
        }
    })
}

/// A host name can have several addresses; the first one that works is used.
async fn first_that_works(address: &str) -> io::Result<TcpListener> {
    let mut failure = io::ErrorKind::InvalidInput.into();
    for address in lookup_host(address).await? {
        match listen_on(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Closed connections of the previous server, which remain for a minute, must not block this start.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
