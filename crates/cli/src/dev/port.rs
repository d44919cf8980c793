//! The port of `dev`: the requested one, or the first free one from 8080.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};

use super::error::DevError;

const FIRST: u16 = 8080;
const TRIES: u16 = 100;

/// A TCP port that this process holds until the server takes it.
pub(crate) struct BoundPort {
    pub(crate) listener: TcpListener,
    pub(crate) number: u16,
    /// The preferred port, if it was in use.
    pub(crate) instead_of: Option<u16>,
}

/// Binds `wanted`, or the first free port from 8080.
pub(crate) fn bind(wanted: Option<u16>) -> Result<BoundPort, DevError> {
    let (first, tries) = wanted.map_or((FIRST, TRIES), |port| (port, 1));
    for port in first..first.saturating_add(tries) {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => {
                let number = listener.local_addr().map_or(port, |address| address.port());
                let instead_of = (port != first).then_some(first);
                return Ok(BoundPort { listener, number, instead_of });
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(error) => {
                return Err(DevError::new(format!("cannot listen on 127.0.0.1:{port}: {error}")));
            }
        }
    }
    Err(match wanted {
        Some(port) => DevError::new(format!(
            "port {port} is in use by another program; leave --port out to take the next free one"
        )),
        None => DevError::new(format!("ports {first} to {} are all in use", first + tries - 1)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_asked_for_and_is_taken_is_an_error() {
        let taken = bind(Some(0)).unwrap();
        assert!(bind(Some(taken.number)).err().unwrap().message.contains("is in use"));
    }

    #[test]
    fn without_a_wish_a_taken_port_is_passed_over_and_said() {
        let one = bind(None).unwrap();
        let other = bind(None).unwrap();
        assert_ne!(one.number, other.number);
        assert_eq!(other.instead_of, Some(FIRST));
    }
}
