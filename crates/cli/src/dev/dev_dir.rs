//! `DIR/.longshore`: the data that `dev` stores beside the handler.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::DevError;
use super::server_host::ServerHost;

/// An existing `.longshore` directory.
pub(crate) struct DevDir {
    path: PathBuf,
}

impl DevDir {
    /// Opens or creates the `.longshore` directory of `dir`.
    pub(crate) fn open(dir: &Path) -> Result<Self, DevError> {
        let path = dir.join(".longshore");
        let cannot = |error: std::io::Error| {
            DevError::new(format!("cannot write to {}: {error}; `dev` keeps its data there", path.display()))
        };
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(cannot(error)),
            _ => {}
        }
        fs::write(path.join(".gitignore"), "*\n").map_err(cannot)?;
        Ok(Self { path })
    }

    /// Opens or creates the directory at `path`.
    pub(crate) fn at(path: PathBuf) -> Result<Self, DevError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| DevError::new(format!("cannot write to {}: {error}", path.display())))?;
        Ok(Self { path })
    }

    /// Lock file of the process that creates the environment.
    pub(crate) fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// The data directory of the server.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path.join("data")
    }

    /// The folder of the handler's virtual Python environment.
    pub(crate) fn venv(&self) -> PathBuf {
        self.path.join("venv")
    }

    /// Output of the last installation.
    pub(crate) fn install_log(&self) -> PathBuf {
        self.path.join("install.log")
    }

    /// The key of this directory's server. It is created at first use and readable by the owner only.
    pub(crate) fn key(&self, host: &dyn ServerHost) -> Result<String, DevError> {
        let path = self.path.join("key");
        let cannot = |what: &str, error: &dyn std::fmt::Display| {
            DevError::new(format!("cannot {what} {}: {error}", path.display()))
        };
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot("read", &error)),
            _ => {}
        }
        let key = host.new_key().map_err(DevError::new)?;
        let mut file = private_file(&path).map_err(|error| cannot("write", &error))?;
        writeln!(file, "{key}").map_err(|error| cannot("write", &error))?;
        Ok(key)
    }
}

fn private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
