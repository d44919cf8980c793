//! The entries of an archive that describe the entry after them: GNU's long names and extended headers of POSIX, each of
//! them no longer than it can need to be.

use std::io::Read;

use longshore_http::CodeError;
use tar::{EntryType, PaxExtensions};

use super::archive::{broken, unusable};

/// Linux takes no longer paths.
const PATH_BYTES_MAX: u64 = 4_096;
/// Room for a path and for times, owners and comments; what archivers write has a few hundred bytes.
const HEADER_BYTES_MAX: u64 = 65_536;

/// What the entries so far say of the next one.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    /// Its path, where the header of the entry has no room for it.
    pub(super) path: Option<Vec<u8>>,
    /// GNU's name wins over that of an extended header.
    has_long_name: bool,
    size: Option<u64>,
}

impl Extensions {
    /// Takes in an entry that describes the next one; false if it is one that stands for itself.
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
            // It speaks of all entries: who packed them, and when.
            EntryType::XGlobalHeader => {
                read(content, HEADER_BYTES_MAX, "an extended header")?;
            }
            // The target of a link, which is refused anyway.
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
                self.size = Some(size.ok_or_else(|| unusable("the archive has a size that is no number"))?);
            } else if key.starts_with(b"GNU.sparse.") {
                return Err(unusable("the archive has a file with holes; pack it without --sparse"));
            }
        }
        Ok(())
    }

    /// Whether they say nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.path.is_none() && self.size.is_none()
    }

    /// The size in an extended header is for files of 8 GiB and more, which are refused; another one that differs from
    /// the entry's own would be two archives in one.
    pub(super) fn agree_with(&self, entry_bytes: u64) -> Result<(), CodeError> {
        match self.size {
            Some(size) if size != entry_bytes => Err(unusable(format!(
                "the archive says {size} bytes of a file in an extended header, and {entry_bytes} in its own"
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
