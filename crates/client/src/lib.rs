//! A typed client of a Longshore server: the job interface, the management API, and the requests of an external worker.
//!
//! Payloads stay JSON text ([`serde_json::value::RawValue`]): numbers keep their digits on the way through.

mod audit;
mod authorities;
mod bulk;
mod code;
mod console;
mod error;
mod explain;
mod external;
mod history;
mod images;
mod jobs;
mod json_text;
mod logs;
mod management;
mod resources;
mod segment;
mod server;
mod transport;
mod upload_body;
mod usage;
mod versions;
mod webhooks;
mod wire;

pub use bulk::BulkTask;
pub use code::{CodeOwner, CodeVersion};
pub use console::ConsoleCode;
pub use error::ClientError;
pub use explain::{Explanation, WaitAction, WaitCause, WaitEstimate};
pub use external::{ExternalWorker, TakenJob};
pub use images::{Build, BuildNews};
pub use jobs::{
    Chunk, Health, HealthJobs, HealthReasons, HealthWorkers, Job, JobLife, JobPage, Purged, StreamPage,
};
pub use json_text::JsonText;
pub use logs::LogLines;
pub use longshore_trust::{Roots, TlsProblem};
pub use management::{Endpoint, EndpointSpec, Template, TemplateSpec};
pub use resources::Collection;
pub use segment::segment;
pub use versions::{DeploySpec, Deployed, VersionEntry};
pub use webhooks::{RedeliveredWebhooks, WebhookPage};

use std::path::Path;

use authorities::Authorities;
use transport::Transport;

/// A connection to one server, with one key. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
}

impl Client {
    /// Returns a client of the server at `base_url` (`http://host:port`, with or without a trailing slash).
    ///
    /// # Errors
    ///
    /// [`ClientError::Unusable`] if the address or the key cannot be used in a request, or if the address is
    /// `https://` and the file in `SSL_CERT_FILE` cannot be read.
    pub fn new(base_url: &str, api_key: &str) -> Result<Self, ClientError> {
        Self::trusting(base_url, api_key, None)
    }

    /// Returns a client that also trusts the certificate authorities in the PEM file `ca_file`. The file is read only
    /// for a server with an `https://` address.
    ///
    /// # Errors
    ///
    /// As [`Client::new`]; also if `ca_file` cannot be read or has no valid certificate.
    pub fn trusting(base_url: &str, api_key: &str, ca_file: Option<&Path>) -> Result<Self, ClientError> {
        Ok(Self { transport: Transport::new(base_url, api_key, Authorities::new(ca_file))? })
    }

    /// The server's address, without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.transport.base_url()
    }
}
