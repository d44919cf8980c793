//! Runs the installer of Python packages and shows its progress.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::error::DevError;
use crate::screen::Step;

/// Lines that are shown of a failed installation's log.
const TAIL_LINES: usize = 15;
/// Most lines of the installer that wait to be shown; it waits with the next ones.
const LINES_WAITING_MAX: usize = 64;
/// Most characters of an installer line that the progress line shows.
const DETAIL_CHARS: usize = 60;

/// The program that installs packages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Uv,
    Pip,
}

impl Tool {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Uv => "uv",
            Self::Pip => "pip",
        }
    }

    /// The command line up to the packages. Package indexes come from the user's own pip or uv settings.
    fn command(self, python: &Path) -> Command {
        match self {
            Self::Uv => {
                let mut command = Command::new("uv");
                command.args(["pip", "install", "--python"]).arg(python);
                command
            }
            Self::Pip => {
                let mut command = Command::new(python);
                command.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"]);
                // Python compiles what a handler imports when it is first imported: a small part of what is installed.
                command.args(["--progress-bar", "off", "--no-compile"]);
                command
            }
        }
    }
}

/// Installs `packages` into the environment of `python`. The installer's output goes to `log`.
pub(crate) async fn run(
    tool: Tool,
    python: &Path,
    packages: &[String],
    dir: &Path,
    log: &Path,
    step: &Step,
) -> Result<(), DevError> {
    let mut log_file = File::create(log)
        .map_err(|error| DevError::new(format!("cannot write {}: {error}", log.display())))?;
    let mut child = tool
        .command(python)
        .args(packages)
        .current_dir(dir)
        .env("PYTHONUNBUFFERED", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| DevError::new(format!("cannot run {}: {error}", tool.name())))?;
    let (sender, mut lines) = mpsc::channel(LINES_WAITING_MAX);
    if let Some(stdout) = child.stdout.take() {
        tokio::spawn(forward(stdout, sender.clone()));
    }
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(forward(stderr, sender));
    }
    let mut tail = VecDeque::new();
    while let Some(line) = lines.recv().await {
        // A full disk makes the installation fail, too.
        let _ = writeln!(log_file, "{line}");
        step.detail(progress(&line));
        if !line.trim().is_empty() {
            tail.push_back(line);
        }
        if tail.len() > TAIL_LINES {
            tail.pop_front();
        }
    }
    let status = child
        .wait()
        .await
        .map_err(|error| DevError::new(format!("cannot wait for {}: {error}", tool.name())))?;
    if status.success() {
        return Ok(());
    }
    let message = format!(
        "{} could not install what the handler needs ({status}). Its last lines (all of them: {}):",
        tool.name(),
        log.display()
    );
    Err(DevError::new(message).with_lines(tail))
}

async fn forward(output: impl AsyncRead + Unpin, lines: mpsc::Sender<String>) {
    let mut reader = BufReader::new(output).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        if lines.send(line).await.is_err() {
            return;
        }
    }
}

/// Shortens an installer line: `Collecting aiohttp>=3.9 (from runpod)` → `collecting aiohttp>=3.9`.
fn progress(line: &str) -> String {
    let line = line.trim();
    if let Some(packages) = line.strip_prefix("Installing collected packages: ") {
        return format!("installing {} packages", packages.split(',').count());
    }
    if let Some(file) = line.strip_prefix("Downloading ") {
        // Of `aiohttp-3.14.5-cp311-….whl.metadata (8 kB)`, name and version are shown.
        let name: Vec<&str> = file.splitn(3, '-').take(2).collect();
        return format!("downloading {}", name.join(" "));
    }
    let line = line.split(" (from ").next().unwrap_or(line);
    let mut letters = line.chars();
    let first = letters.next().map(char::to_lowercase).into_iter().flatten();
    first.chain(letters).take(DETAIL_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installers_lines_are_shortened_for_the_moving_line() {
        assert_eq!(progress("Collecting aiohttp>=3.9 (from runpod->-r x)"), "collecting aiohttp>=3.9");
        assert_eq!(progress("Installing collected packages: a, b, c"), "installing 3 packages");
        assert_eq!(
            progress("  Downloading aiohttp-3.14.5-cp311-x.whl.metadata (8 kB)"),
            "downloading aiohttp 3.14.5"
        );
        assert_eq!(progress(""), "");
    }
}
