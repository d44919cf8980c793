//! What was copied: counts, and a sum over all bytes that does not depend on their order.

use std::fmt;

use longshore_cli::{count, size};
use longshore_store::Catalog;
use ring::digest::{Context, SHA256};

/// Counts of rows, and of the bytes of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) endpoints: u64,
    /// Templates, keys, settings and other rows of the catalog.
    pub(super) records: u64,
    pub(super) jobs: u64,
    pub(super) webhooks: u64,
    pub(super) chunks: u64,
    pub(super) payload_bytes: u64,
    /// The sum of the first 8 bytes of the hashes of all records, modulo 2⁶⁴.
    sum: u64,
}

impl Tally {
    /// Counts the catalog.
    ///
    /// # Errors
    /// A record that cannot be written as JSON.
    pub(super) fn of_catalog(catalog: &Catalog) -> Result<Self, serde_json::Error> {
        let mut tally = Self { endpoints: catalog.endpoints.len() as u64, ..Self::default() };
        // Without an endpoint, none has a number that another one could get again.
        if !catalog.endpoints.is_empty() {
            tally.hash(&[b"last", &catalog.last_endpoint_no.to_le_bytes()]);
        }
        // The order of creation counts, so that each record is hashed with its place.
        for (at, endpoint) in catalog.endpoints.iter().enumerate() {
            tally.hash(&[b"endpoint", &at.to_le_bytes(), &serde_json::to_vec(endpoint)?]);
        }
        for (at, template) in catalog.templates.iter().enumerate() {
            tally.record(&[b"template", &at.to_le_bytes(), &serde_json::to_vec(template)?]);
        }
        for (at, key) in catalog.keys.iter().enumerate() {
            tally.record(&[b"key", &at.to_le_bytes(), &serde_json::to_vec(key)?]);
        }
        for row in &catalog.json_rows {
            tally.record(&[b"row", &[row.kind.number()], row.id.as_bytes(), &row.json]);
        }
        for (name, value) in &catalog.settings {
            tally.record(&[b"setting", name.as_bytes(), value]);
        }
        Ok(tally)
    }

    fn record(&mut self, parts: &[&[u8]]) {
        self.records += 1;
        self.hash(parts);
    }

    /// Adds a record to the sum. The parts are hashed with their lengths.
    pub(super) fn hash(&mut self, parts: &[&[u8]]) {
        let mut hash = Context::new(&SHA256);
        for part in parts {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finish();
        let first = digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.sum = self.sum.wrapping_add(first);
    }

    /// Adds what another part of the rows has.
    pub(super) fn add(&mut self, other: &Self) {
        self.endpoints += other.endpoints;
        self.records += other.records;
        self.jobs += other.jobs;
        self.webhooks += other.webhooks;
        self.chunks += other.chunks;
        self.payload_bytes += other.payload_bytes;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {}, {} with {} of payloads and {}, {}",
            count(self.endpoints, "endpoint"),
            count(self.records, "other record"),
            count(self.jobs, "job"),
            size(self.payload_bytes),
            count(self.chunks, "chunk"),
            count(self.webhooks, "pending webhook"),
        )
    }
}
