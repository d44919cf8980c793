//! Checks of the clock, limits, GPUs and Python.

use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, getrlimit};
use tokio::process::Command;

use super::Finding;

/// Time since 1970. A clock before it is wrong, because this program is newer.
const EARLIEST: Duration = Duration::from_hours(490_896);
/// Open files below which the check warns. Each waiting client and each worker holds one.
const OPEN_FILES_MIN: u64 = 10_000;
/// How long a queried program may run.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn clock() -> Finding {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if now < EARLIEST {
        return Finding::fail("clock", "the clock is years behind: time limits and ids would be wrong");
    }
    match said(&["timedatectl", "show", "-p", "NTPSynchronized", "--value"]).await.as_deref() {
        Some("yes") => Finding::ok("clock", "synchronized"),
        Some("no") => Finding::warn("clock", "not synchronized; ttls and expiry of keys follow it"),
        _ => Finding::ok("clock", "plausible; whether it is synchronized is unknown"),
    }
}

pub(super) fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    // The server raises its own limit up to this maximum.
    match limit.maximum {
        Some(most) if most < OPEN_FILES_MIN => Finding::warn(
            "open files",
            format!("{most} at most: a connection takes one; raise it (LimitNOFILE= or ulimit -Hn)"),
        ),
        Some(most) => Finding::ok("open files", format!("{most} at most")),
        None => Finding::ok("open files", "no limit"),
    }
}

pub(super) async fn gpus() -> Finding {
    match said(&["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]).await {
        Some(list) if !list.is_empty() => {
            let names: Vec<&str> = list.lines().map(str::trim).collect();
            Finding::ok("gpus", format!("{}: {}", names.len(), names.join("; ")))
        }
        _ => Finding::ok("gpus", "none found (no nvidia-smi, or it fails); workers run on the processor"),
    }
}

/// Checks for the programs that create Python environments for `dev` and `deploy`.
pub(super) async fn python() -> Vec<Finding> {
    let version =
        said(&["python3", "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))"]).await;
    let modules = said(&["python3", "-c", "import venv, ensurepip; print('ok')"]).await;
    let uv = said(&["uv", "--version"]).await;
    let python = match (version, modules, &uv) {
        (Some(version), Some(_), _) => Finding::ok("python", version),
        (Some(version), None, Some(_)) => {
            Finding::ok("python", format!("{version}; uv makes the environments"))
        }
        (Some(version), None, None) => {
            Finding::warn("python", format!("{version}, without its venv module: apt install python3-venv"))
        }
        (None, _, Some(_)) => Finding::ok("python", "of uv"),
        (None, _, None) => Finding::warn("python", "not installed: apt install python3 python3-venv"),
    };
    std::iter::once(python).chain(uv.map(|version| Finding::ok("uv", version))).collect()
}

/// Returns what a program prints, trimmed. `None` if the program is missing, fails or runs for too long.
async fn said(command: &[&str]) -> Option<String> {
    let (program, args) = command.split_first()?;
    let output = Command::new(program).args(args).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE, output).await.ok()?.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
