//! What the program tells the HTTP edge about the server, for `/v1/server` and the metrics.

use std::collections::BTreeMap;

use serde_json::Value;

use super::certificate_end::CertificateEnd;

/// Facts about the server that only the program knows.
#[derive(Clone, Debug, Default)]
pub struct ServerFacts {
    /// The settings whose value is not the default, by name. No setting has a secret as its value.
    pub changed_settings: BTreeMap<String, Value>,
    /// The address of a trace in the tool that shows traces, with `{trace_id}` in place of its id; empty if there is none.
    pub trace_link: String,
    /// Whether secrets are stored encrypted.
    pub is_sealing: bool,
    /// When the certificate of the listeners ends; `None` without TLS.
    pub certificate_end: Option<CertificateEnd>,
}
