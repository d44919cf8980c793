//! What is in a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use tempfile::TempDir;

/// The content of a folder: files by their name relative to it, and the names of folders in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Files {
    /// The files.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The folders, those above before those below.
    pub folders: Vec<String>,
}

impl Files {
    /// Makes the folder real, in memory where there is such a place: it need not survive anything.
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
