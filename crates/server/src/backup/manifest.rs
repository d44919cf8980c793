//! `backup.json`: what a backup is of. It is written last: without it there is no whole backup.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// The name of the file.
pub(super) const NAME: &str = "backup.json";
/// The form of backups that this program writes, and the newest one that it reads.
const FORMAT: u32 = 1;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    format: u32,
    /// The version of the program that wrote it.
    program: String,
    /// Milliseconds since 1970.
    created_at: u64,
    /// Whether what is in network volumes is in it.
    pub(super) volumes: bool,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// The SHA-256 of the list.
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
        // A struct of texts and numbers can always be written.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    /// What the file says, or why it cannot be used.
    pub(super) fn read(json: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        let unreadable = |error: serde_json::Error| format!("`{NAME}` is damaged: {error}");
        let Form { format } = serde_json::from_slice(json).map_err(unreadable)?;
        if format > FORMAT {
            return Err(format!("a newer version wrote it (format {format}); install that version"));
        }
        serde_json::from_slice(json).map_err(unreadable)
    }

    /// Whether it was written with this list.
    pub(super) fn is_of(&self, list: &[u8]) -> bool {
        self.list == const_hex::encode(digest(&SHA256, list))
    }
}
