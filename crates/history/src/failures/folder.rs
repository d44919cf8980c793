//! The files of failures: one for each endpoint, replaced as a whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use longshore_model::EndpointId;

use super::groups::Groups;

/// A larger file is none: 100 groups with all their hours have about 1 MB.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// The folder with the files. One server at a time has it open.
#[derive(Debug)]
pub(super) struct FailureFolder {
    path: PathBuf,
}

impl FailureFolder {
    /// Opens the folder, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// The folder cannot be made.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        Ok(Self { path: path.to_owned() })
    }

    /// Reads all files. One that is no file of failures is logged, and gets the end `.foreign`.
    ///
    /// # Errors
    ///
    /// The folder cannot be listed.
    pub(super) fn load(&self) -> io::Result<BTreeMap<EndpointId, Groups>> {
        let mut endpoints = BTreeMap::new();
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            let Some(endpoint) = path.file_name().and_then(|name| endpoint_of(name.to_str()?)) else {
                continue;
            };
            match read(&path).and_then(|bytes| Groups::decode(&bytes)) {
                Ok(groups) => drop(endpoints.insert(endpoint, groups)),
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "file of failures set aside");
                    let _ = fs::rename(&path, path.with_extension("foreign"));
                }
            }
        }
        Ok(endpoints)
    }

    /// Replaces the file of an endpoint, or removes it.
    ///
    /// # Errors
    ///
    /// The file is as it was.
    pub(super) fn put(&self, endpoint: &EndpointId, bytes: Option<&[u8]>) -> io::Result<()> {
        let path = self.path.join(format!("{endpoint}.json"));
        let Some(bytes) = bytes else {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        let draft = path.with_extension("draft");
        let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            // A draft that is not complete takes space of a full disk.
            let _ = fs::remove_file(&draft);
        }
        written
    }
}

fn endpoint_of(name: &str) -> Option<EndpointId> {
    name.strip_suffix(".json")?.parse().ok()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
