//! A lean typed client of a Longshore server: the job interface and the part of the management API that the
//! commands need.
//!
//! Payloads stay JSON text ([`serde_json::value::RawValue`]): numbers keep their digits on the way through.

mod error;
mod jobs;
mod management;
mod transport;
mod wire;

pub use error::ClientError;
pub use jobs::{Chunk, Health, HealthJobs, HealthWorkers, Job, StreamPage};
pub use management::{Endpoint, EndpointSpec, Template, TemplateSpec};

use transport::Transport;

/// A connection to one server, with one key. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
}

impl Client {
    /// A client of the server at `base_url` (`http://host:port`, with or without a trailing slash).
    pub fn new(base_url: &str, api_key: &str) -> Result<Self, ClientError> {
        Ok(Self { transport: Transport::new(base_url, api_key)? })
    }

    /// The server's address, without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.transport.base_url()
    }
}
