//! Archive entries that describe the next entry: GNU long names and POSIX extended headers. Their lengths are
//! limited.

use std::io::Read;

use longshore_http::CodeError;
use tar::{EntryType, PaxExtensions};

use super::archive::{broken, unusable};

/// Linux limits paths to this length (`PATH_MAX`).
const PATH_BYTES_MAX: u64 = 4_096;
/// Most bytes of an extended header. Headers that archivers write have a few hundred bytes.
const HEADER_BYTES_MAX: u64 = 65_536;

/// What the preceding entries said of the next one.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    /// Path of the next entry, if it does not fit its own header.
    pub(super) path: Option<Vec<u8>>,
    /// A GNU long name takes precedence over an extended header's path.
    has_long_name: bool,
    size: Option<u64>,
}

impl Extensions {
    /// Reads an entry that describes the next one. Returns false for an ordinary entry.
    pub(super) fn take(&mut self, kind: EntryType, content: &mut impl Read) -> Result<bool, CodeError> {
        match kind {
            EntryType::GNULongName => {
                if self.has_long_name {
                    return Err(unusable("the archive has two long names for one entry"));
                }
                let mut path = read(content, PATH_BYTES_MAX, "a name")?;
                if path.last() == Some(&0) {
                    path.pop();
                }
                (self.path, self.has_long_name) = (Some(path), true);
            }
            EntryType::XHeader => {
                let header = read(content, HEADER_BYTES_MAX, "an extended header")?;
                self.read_header(&header)?;
            }
            // A global header describes all entries, for example their packer and time. Ignored.
            EntryType::XGlobalHeader => {
                read(content, HEADER_BYTES_MAX, "an extended header")?;
            }
            // The target of a link. Links are refused when their entry follows.
            EntryType::GNULongLink => {
                read(content, PATH_BYTES_MAX, "the target of a link")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_header(&mut self, header: &[u8]) -> Result<(), CodeError> {
        for record in PaxExtensions::new(header) {
            let record = record.map_err(|error| broken(&error))?;
            let (key, value) = (record.key_bytes(), record.value_bytes());
            if key == b"path" && !self.has_long_name {
                if value.len() as u64 > PATH_BYTES_MAX {
                    return Err(too_long("a name", PATH_BYTES_MAX));
                }
                self.path = Some(value.to_vec());
            } else if key == b"size" {
                let size = std::str::from_utf8(value).ok().and_then(|size| size.parse().ok());
                self.size =
                    Some(size.ok_or_else(|| unusable("the archive has a size that is not a number"))?);
            } else if key.starts_with(b"GNU.sparse.") {
                return Err(unusable("the archive has a sparse file; pack it without --sparse"));
            }
        }
        Ok(())
    }

    /// Whether no entry described the next one.
    pub(super) fn is_empty(&self) -> bool {
        self.path.is_none() && self.size.is_none()
    }

    /// Refuses an extended header's size that differs from the entry's own size: two readers could see two
    /// different archives. Such sizes are meant for files of 8 GiB and more, which are refused anyway.
    pub(super) fn agree_with(&self, entry_bytes: u64) -> Result<(), CodeError> {
        match self.size {
            Some(size) if size != entry_bytes => Err(unusable(format!(
                "an extended header says {size} bytes, the entry's own header {entry_bytes}"
            ))),
            _ => Ok(()),
        }
    }
}

fn read(content: &mut impl Read, bytes_max: u64, what: &str) -> Result<Vec<u8>, CodeError> {
    let mut bytes = Vec::new();
    content.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| broken(&error))?;
    if bytes.len() as u64 > bytes_max { Err(too_long(what, bytes_max)) } else { Ok(bytes) }
}

fn too_long(what: &str, bytes_max: u64) -> CodeError {
    unusable(format!("{what} in the archive has more than {bytes_max} bytes"))
}
