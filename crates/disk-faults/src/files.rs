//! The content of a folder as a value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use tempfile::TempDir;

/// The content of a folder. All names are paths relative to the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Files {
    /// The content of each file, by its name.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The names of all folders below it, parents before children.
    pub folders: Vec<String>,
}

impl Files {
    /// Writes the content to a new temporary folder, in memory if `/dev/shm` exists.
    ///
    /// # Errors
    ///
    /// If a folder or file cannot be created or written.
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
