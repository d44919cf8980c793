//! Runs a test of the current test program in a process of its own, on a recorded disk.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::record::{MARKS, Step, read};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/disk.c");
// These names and this length are defined in `disk.c`, too.
const FOLDER: &str = "DISK_FAULTS_FOLDER";
const RECORD: &str = "DISK_FAULTS_RECORD";
const CONTROL: &str = "DISK_FAULTS_CONTROL";
const CONTROL_BYTES: usize = 256;

/// Runs a test of the current test program in a process of its own, in which [`Recorded::here`] returns a handle. The
/// process has `environment` in addition to the inherited one. Returns the steps of the recorded folder, in order.
///
/// # Errors
///
/// If `disk.c` cannot be compiled or the test fails; the text is the output of the compiler or of the test.
pub fn record(test: &str, environment: &[(&str, String)]) -> io::Result<Vec<Step>> {
    let dir = TempDir::new()?;
    let parent = dir.path().canonicalize()?;
    let (folder, log, control) = (parent.join("folder"), parent.join("record"), parent.join("control"));
    fs::create_dir(&folder)?;
    fs::write(&control, [0; CONTROL_BYTES])?;
    let output = Command::new(std::env::current_exe()?)
        .args([test, "--exact", "--test-threads=1"])
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("LD_PRELOAD", compile(&parent)?)
        .envs([(FOLDER, &folder), (RECORD, &log), (CONTROL, &control)])
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    read(&log)
}

/// Compiles `disk.c` with `cc`, which the build of `ring` needs as well.
fn compile(folder: &Path) -> io::Result<PathBuf> {
    let library = folder.join("disk.so");
    let arguments = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", SOURCE, "-o"];
    let output = Command::new("cc").args(arguments).arg(&library).args(["-ldl", "-lpthread"]).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(library)
}

/// The recorded program's handle: its folder, marks in the record, and faults of its disk.
#[derive(Debug)]
pub struct Recorded {
    /// The path of the recorded folder, which is empty at first.
    pub folder: PathBuf,
    marks: fs::File,
    control: fs::File,
    log: PathBuf,
}

impl Recorded {
    /// Returns the handle; `None` in a program that is not recorded. The inner error is that of opening a file.
    pub fn here() -> Option<io::Result<Self>> {
        let path = |name| std::env::var_os(name).map(PathBuf::from);
        let (folder, control, log) = (path(FOLDER)?, path(CONTROL)?, path(RECORD)?);
        let open = || {
            let marks = fs::File::create(folder.join(MARKS))?;
            let control = fs::File::options().write(true).open(control)?;
            Ok(Self { folder: folder.clone(), marks, control, log: log.clone() })
        };
        Some(open())
    }

    /// Adds a mark to the record. [`Recorded::fail`] does not affect it.
    ///
    /// # Errors
    ///
    /// If the mark cannot be written.
    pub fn mark(&self, remark: &str) -> io::Result<()> {
        (&self.marks).write_all(remark.as_bytes())
    }

    /// Returns the steps so far.
    ///
    /// # Errors
    ///
    /// If the record cannot be read, or its last entry is being written.
    pub fn so_far(&self) -> io::Result<Vec<Step>> {
        read(&self.log)
    }

    /// Makes these operations fail from now on, and no others: lines as described in `disk.c`, such as `sync EIO .log`.
    /// An empty text ends all failures.
    ///
    /// # Errors
    ///
    /// If the lines are longer than 256 bytes or cannot be written.
    pub fn fail(&self, lines: &str) -> io::Result<()> {
        let mut bytes = [0; CONTROL_BYTES];
        let text = bytes.get_mut(..lines.len()).ok_or(io::ErrorKind::InvalidInput)?;
        text.copy_from_slice(lines.as_bytes());
        self.control.write_all_at(&bytes, 0)
    }
}
