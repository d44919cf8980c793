//! A server's address and the protocol of its connections.

use std::io;
use std::net::{SocketAddr, TcpStream};

use crate::http::{self, Parsed};

/// Finds the first complete response in received bytes. A response of another protocol than HTTP gets status 200
/// and all of its bytes as the body.
pub type ReplyParser = fn(&[u8]) -> Result<Parsed<'_>, String>;

/// Exchanges the first messages of a new connection, before the load.
pub type Handshake = fn(&mut TcpStream) -> io::Result<()>;

/// A server that connections are made to.
#[derive(Clone, Copy)]
pub struct Target {
    address: SocketAddr,
    speech: ReplyParser,
    greeting: Handshake,
}

impl Target {
    /// A server with a protocol other than HTTP.
    pub fn new(address: SocketAddr, speech: ReplyParser) -> Self {
        Self { address, speech, greeting: |_| Ok(()) }
    }

    /// Adds a handshake to every new connection.
    #[must_use]
    pub fn greeting(mut self, greeting: Handshake) -> Self {
        self.greeting = greeting;
        self
    }

    /// The address that connections are made to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The parser of responses.
    pub(super) fn speech(&self) -> ReplyParser {
        self.speech
    }

    /// Opens a connection and runs its handshake.
    pub(super) fn connect(&self) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        (self.greeting)(&mut stream)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self::new(address, http::parse)
    }
}
