//! Removes secrets from the process's environment, which every process of the same user can read, handlers
//! included.
//!
//! The memory behind `/proc/<pid>/environ` is fixed when a program starts. So a server with secrets in its
//! environment executes itself again in the same process, and passes the secrets on standard input.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

/// Variables whose values are secrets.
const VARIABLES: [&str; 3] = ["LONGSHORE_ADMIN_KEY", "LONGSHORE_SECRETS_KEY", "LONGSHORE_API_KEY"];
/// Variable that tells the restarted program to read the secrets from standard input.
pub(crate) const MARK: &str = "LONGSHORE_SECRETS_ON_STDIN";

static TAKEN: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Returns the value of one of the secret variables, if it is set.
pub(crate) fn variable(name: &str) -> Option<String> {
    let taken = TAKEN.get().and_then(|taken| taken.get(name).cloned());
    taken.or_else(|| env::var(name).ok()).filter(|text| !text.trim().is_empty())
}

/// Denies other processes of the same user access to this process's memory, files and environment. If the
/// environment has secrets, executes the program again without them and does not return.
pub(crate) fn hide() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    if env::var_os(MARK).is_some() {
        return take_over();
    }
    if VARIABLES.iter().all(|name| env::var_os(name).is_none()) {
        return Ok(());
    }
    let values = VARIABLES.iter().filter_map(|name| Some((*name, env::var(name).ok()?)));
    Err(begin_again(&values.collect()))
}

/// Returns why the program could not be executed again.
fn begin_again(secrets: &BTreeMap<&str, String>) -> io::Error {
    let handed_over = || -> io::Result<File> {
        let mut file = File::from(memfd_create("secrets", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(secrets)?)?;
        file.rewind()?;
        Ok(file)
    };
    let secrets = match handed_over() {
        Ok(file) => file,
        Err(error) => return error,
    };
    let mut arguments = env::args_os();
    let mut command = Command::new(own_program());
    if let Some(shown_as) = arguments.next() {
        command.arg0(shown_as);
    }
    command.args(arguments).stdin(Stdio::from(secrets)).env(MARK, "1");
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.exec()
}

/// The program's path, so that process lists show the name; `/proc/self/exe` if an upgrade has removed the file.
fn own_program() -> PathBuf {
    env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| "/proc/self/exe".into())
}

/// Reads the secrets. Child processes do not inherit them.
fn take_over() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // The error must not contain the text, which may be a secret.
    let taken = serde_json::from_slice(&text).map_err(|_| {
        io::Error::other(format!("{MARK} is set, and standard input has no secrets; unset it"))
    })?;
    let _ = TAKEN.set(taken);
    Ok(())
}
