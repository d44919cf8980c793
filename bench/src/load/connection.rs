//! One connection: what is still to be written, what has come in part.

use std::io::{self, ErrorKind, Read as _, Write as _};

use mio::net::TcpStream;

use super::target::Target;

/// A connection with at most one question open at a time.
pub(super) struct Connection {
    pub dial: Target,
    pub role: usize,
    pub stream: TcpStream,
    /// Whether a question is open.
    pub asked: bool,
    /// Its answer goes on and on, and is handed out as it comes.
    pub listens: bool,
    unwritten: Vec<u8>,
    written: usize,
    /// The part of an answer that has come.
    pub part: Vec<u8>,
    /// How many bytes it will at least have.
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

    /// Puts a new connection in the place of this one.
    pub fn reconnect(&mut self) -> io::Result<()> {
        *self = Self::connect(self.dial, self.role)?;
        Ok(())
    }

    /// Sends what the connection takes now and keeps the rest.
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

    /// Sends on what was kept.
    pub fn send_rest(&mut self) -> io::Result<()> {
        if self.written < self.unwritten.len() {
            self.written += write(&mut self.stream, &self.unwritten[self.written..])?;
        }
        Ok(())
    }

    /// Reads what has come, at most a buffer full. None: nothing has.
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
