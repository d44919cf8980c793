//! Compiling `disk.c`, and loading it into a program.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/disk.c");

/// The compiled library; its file goes with this.
#[derive(Debug)]
pub struct Shim {
    folder: TempDir,
}

impl Shim {
    /// Compiles it with `cc`, which the bundled `SQLite` needs as well.
    pub fn compile() -> io::Result<Self> {
        let folder = TempDir::new()?;
        let arguments = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"];
        let output = Command::new("cc")
            .args(arguments)
            .arg(library(folder.path()))
            .args([SOURCE, "-ldl", "-lpthread"])
            .output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(Self { folder })
    }

    /// Lets the program be recorded: everything below `folder`, which must exist and be empty, goes into `record`.
    pub fn record(&self, program: &mut Command, folder: &Path, record: &Path) {
        program
            .env("LD_PRELOAD", library(self.folder.path()))
            .env("DISK_FAULTS_FOLDER", folder)
            .env("DISK_FAULTS_RECORD", record);
    }

    /// Lets the program's files below its recorded folder fail as `control` says from time to time; see `disk.c`.
    pub fn control(program: &mut Command, control: &Path) {
        program.env("DISK_FAULTS_CONTROL", control);
    }
}

fn library(folder: &Path) -> PathBuf {
    folder.join("disk.so")
}
