//! The content of a folder as a value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use tempfile::TempDir;

/// The content of a folder: files by their name relative to it, and the names of folders in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Files {
    /// The content of each file, by its path in the folder.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The paths of all folders, parents before children.
    pub folders: Vec<String>,
}

impl Files {
    /// Writes the content to a new temporary folder, in memory if `/dev/shm` exists.
    ///
    /// # Errors
    /// Any error of creating or writing a file.
    pub fn rebuild(&self) -> io::Result<TempDir> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let dir = TempDir::new_in::<PathBuf>(place)?;
        for folder in &self.folders {
            fs::create_dir(dir.path().join(folder))?;
        }
        for (name, content) in &self.files {
            fs::write(dir.path().join(name), content)?;
        }
        Ok(dir)
    }
}
