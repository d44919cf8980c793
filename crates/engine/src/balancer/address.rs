//! Where a worker that serves HTTP is reached.

use std::net::{IpAddr, SocketAddr};

use longshore_model::HttpPorts;

/// Where a worker serves HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerAddress {
    /// The socket of the requests.
    pub(crate) requests: SocketAddr,
    /// The socket of the health check.
    pub(crate) health: SocketAddr,
}

impl WorkerAddress {
    pub(crate) fn new(host: IpAddr, ports: HttpPorts) -> Self {
        Self { requests: (host, ports.port).into(), health: (host, ports.health_port).into() }
    }
}
