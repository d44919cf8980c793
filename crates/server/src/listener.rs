//! The socket that the server listens on.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::startup_error::StartupError;

/// How many connections may wait to be accepted. The usual 128 overflow in any burst of clients, and each client that
/// is hit waits a second before it tries again. The system may allow fewer (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// Listens on `address`, or says why that cannot be.
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

/// A name can stand for several addresses.
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
    // Connections of the server before, which linger for a minute, must not keep this one from starting.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
