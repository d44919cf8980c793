//! `backup.json`, the manifest. It is written last, so a backup without it is incomplete.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// Name of the manifest's file.
pub(super) const NAME: &str = "backup.json";
/// Format of backups that this program writes, and the newest that it reads.
const FORMAT: u32 = 1;

/// The manifest of one backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    format: u32,
    /// Version of the program that wrote the backup.
    program: String,
    /// Start time in milliseconds since 1970.
    created_at: u64,
    /// Whether the files in network volumes are included.
    pub(super) volumes: bool,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// SHA-256 of the list, in hexadecimal digits.
    list: String,
}

impl Manifest {
    pub(super) fn new(files: u64, bytes: u64, volumes: bool, list: &[u8]) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: now.as_millis() as u64,
            volumes,
            files,
            bytes,
            list: const_hex::encode(digest(&SHA256, list)),
        }
    }

    pub(super) fn json(&self) -> Vec<u8> {
        // Serializing strings and numbers cannot fail.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// Parses the manifest. The error says why the backup cannot be read.
    pub(super) fn read(json: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| format!("`{NAME}` is damaged: {error}");
        let Form { format } = serde_json::from_slice(json).map_err(unreadable)?;
        if format > FORMAT {
            return Err(format!("written by a newer version (format {format}); upgrade this program"));
        }
        serde_json::from_slice(json).map_err(unreadable)
    }

    /// Whether `list` is the list that the manifest was written with.
    pub(super) fn is_of(&self, list: &[u8]) -> bool {
        self.list == const_hex::encode(digest(&SHA256, list))
    }
}
