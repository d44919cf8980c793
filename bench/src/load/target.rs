//! How a connection is made and what is spoken on it.

use std::io;
use std::net::{SocketAddr, TcpStream};

use crate::http::{self, Parsed};

/// Finds the first whole answer in what has come. What is not HTTP counts as status 200 with all of its bytes as the
/// body.
pub type ReplyParser = fn(&[u8]) -> Result<Parsed<'_>, String>;

/// What is said on a new connection before the load, waiting for each answer.
pub type Handshake = fn(&mut TcpStream) -> io::Result<()>;

/// A place to connect to.
#[derive(Clone, Copy)]
pub struct Target {
    address: SocketAddr,
    speech: ReplyParser,
    greeting: Handshake,
}

impl Target {
    /// A place that speaks something of its own.
    pub fn new(address: SocketAddr, speech: ReplyParser) -> Self {
        Self { address, speech, greeting: |_| Ok(()) }
    }

    /// It wants to be greeted.
    #[must_use]
    pub fn greeting(mut self, greeting: Handshake) -> Self {
        self.greeting = greeting;
        self
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it speaks.
    pub(super) fn speech(&self) -> ReplyParser {
        self.speech
    }

    /// A connection that is ready for questions.
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
