//! Takes secrets out of the environment, which every process of the same user can read, handlers among them.
//!
//! The block of memory that `/proc/<pid>/environ` shows is made when a program begins. So a server that finds secrets in
//! it begins again, as the same process, with the secrets on its standard input in place of its environment.

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

/// The variables whose values are secrets.
const VARIABLES: [&str; 3] = ["LONGSHORE_ADMIN_KEY", "LONGSHORE_SECRETS_KEY", "LONGSHORE_API_KEY"];
/// Tells a program that began again that its secrets are on its standard input.
pub(crate) const MARK: &str = "LONGSHORE_SECRETS_ON_STDIN";

static TAKEN: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// The value of one of the secret variables, if it has one.
pub(crate) fn variable(name: &str) -> Option<String> {
    let taken = TAKEN.get().and_then(|taken| taken.get(name).cloned());
    taken.or_else(|| env::var(name).ok()).filter(|text| !text.trim().is_empty())
}

/// Lets no other process of the same user look into this one: not into its memory, its files, its environment. Where
/// that has secrets, the program begins again without them, and this does not return.
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

/// Answers why that was not possible.
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

/// By its path, so that process lists go on showing its name; an upgrade may have removed that.
fn own_program() -> PathBuf {
    env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(|| "/proc/self/exe".into())
}

/// Reads the secrets, and keeps them from whatever this process starts.
fn take_over() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    // Nothing of the text goes into the error: it may be a secret.
    let taken = serde_json::from_slice(&text).map_err(|_| {
        io::Error::other(format!("{MARK} is set, and standard input has no secrets; unset it"))
    })?;
    let _ = TAKEN.set(taken);
    Ok(())
}
