//! One nonblocking connection with its unsent and partly received bytes.

use std::io::{self, ErrorKind, Read as _, Write as _};

use mio::net::TcpStream;

use super::target::Target;

/// A connection with at most one request in flight.
pub(super) struct Connection {
    pub dial: Target,
    pub role: usize,
    pub stream: TcpStream,
    /// Whether a request is in flight.
    pub asked: bool,
    /// Whether the response is a stream, passed on as it arrives.
    pub listens: bool,
    unwritten: Vec<u8>,
    written: usize,
    /// The received part of a response.
    pub part: Vec<u8>,
    /// Bytes that the response has at least.
    pub part_bytes: usize,
}

impl Connection {
    pub fn connect(dial: Target, role: usize) -> io::Result<Self> {
        let stream = TcpStream::from_std(dial.connect()?);
        Ok(Self {
            dial,
            role,
            stream,
            asked: false,
            listens: false,
            unwritten: Vec::new(),
            written: 0,
            part: Vec::new(),
            part_bytes: 0,
        })
    }

    /// Replaces the connection by a new one.
    pub fn reconnect(&mut self) -> io::Result<()> {
        *self = Self::connect(self.dial, self.role)?;
        Ok(())
    }

    /// Writes what the socket accepts and stores the rest.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.asked = true;
        let sent = write(&mut self.stream, bytes)?;
        if sent < bytes.len() {
            self.unwritten.clear();
            self.unwritten.extend_from_slice(&bytes[sent..]);
            self.written = 0;
        }
        Ok(())
    }

    /// Writes bytes that an earlier send has stored.
    pub fn send_rest(&mut self) -> io::Result<()> {
        if self.written < self.unwritten.len() {
            self.written += write(&mut self.stream, &self.unwritten[self.written..])?;
        }
        Ok(())
    }

    /// Reads at most one buffer. `None` if no bytes have arrived.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            return match self.stream.read(buffer) {
                Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => Ok(Some(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }
}

fn write(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
