//! `longshore store`: verifies a data directory, or copies its readable records.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;

use longshore_cli::{RecoverArgs, StoreCommand, VerifyArgs, size};
use longshore_store::{Damage, StoreError, UNPROVEN_END, Verified};

use crate::startup_error::StartupError;
use crate::{backup, reserve};

/// Runs the command. Blocks, because this program does nothing else.
pub(crate) fn run(command: &StoreCommand) -> ExitCode {
    let ended = match command {
        StoreCommand::Verify(args) => verify(args),
        StoreCommand::Recover(args) => recover(args),
    };
    ended.unwrap_or_else(|error| error.report())
}

fn verify(args: &VerifyArgs) -> Result<ExitCode, StartupError> {
    if backup::is_backup(&args.dir) {
        return verify_backup(&args.dir);
    }
    expect_log(&args.dir)?;
    let found = longshore_store::verify(&args.dir)?;
    let mut lines: Vec<String> = found.damages.iter().map(Damage::to_string).collect();
    let places = lines.len();
    lines.extend(counts(&found));
    if !args.dir.join("log-end").exists() {
        lines.push(format!("there is no `log-end`: {UNPROVEN_END}"));
    }
    let advice = "restore the data directory from a backup, or copy the readable records with `longshore store recover`";
    Ok(conclude(lines, places, advice))
}

fn verify_backup(path: &Path) -> Result<ExitCode, StartupError> {
    let found = backup::check(path)?;
    let mut lines = found.damages;
    let places = lines.len();
    lines.push(format!("read: backup with {} and {}", count(found.files, "file"), size(found.bytes)));
    lines.extend(counts(&found.verified));
    Ok(conclude(lines, places, "use another backup; `longshore restore` refuses this one"))
}

/// Returns what was read of a data directory.
fn counts(found: &Verified) -> [String; 2] {
    let log = format!(
        "read: {} of the log, {} with {}; {}",
        count(found.segments, "file"),
        count(found.frames, "frame"),
        count(found.records, "record"),
        count(found.jobs, "job"),
    );
    let payloads = format!(
        "read: {} with {}; {} with {}",
        count(found.payloads, "payload"),
        size(found.payload_bytes),
        count(found.blobs, "large payload"),
        size(found.blob_bytes),
    );
    [log, payloads]
}

/// Prints the lines and whether there are damaged places.
fn conclude(mut lines: Vec<String>, places: usize, advice: &str) -> ExitCode {
    lines.push(match places {
        0 => "nothing is damaged".into(),
        places => format!("damaged: {}; {advice}", count(places as u64, "place")),
    });
    tell(&lines);
    if places == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn recover(args: &RecoverArgs) -> Result<ExitCode, StartupError> {
    expect_log(&args.dir)?;
    let kept = longshore_store::salvage(&args.dir, &args.to)?;
    let mut lines: Vec<String> = kept.damages.iter().map(|damage| format!("damaged: {damage}")).collect();
    lines.extend(kept.dropped.iter().map(|(job, why)| format!("dropped: job {job}: {why}")));
    lines.push(format!(
        "copied to {}: {}, {}",
        args.to.display(),
        count(kept.jobs, "job"),
        count(kept.blobs, "large payload")
    ));
    // The new directory gets a reserve of its own.
    let left: Vec<&str> =
        kept.left.iter().map(String::as_str).filter(|name| *name != reserve::NAME).collect();
    if !left.is_empty() {
        lines.push(format!("not copied; copy what you need: {}", left.join(", ")));
    }
    tell(&lines);
    Ok(ExitCode::SUCCESS)
}

/// A mistyped path must not be reported as damage.
fn expect_log(dir: &Path) -> Result<(), StoreError> {
    if dir.join("log").is_dir() || dir.join("log-end").exists() {
        return Ok(());
    }
    let dir = dir.display();
    Err(StoreError::Unusable(format!("{dir} is not a data directory: it has no `log`")))
}

fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// If standard output is closed, the exit code still shows the result.
fn tell(lines: &[String]) {
    let mut out = BufWriter::new(io::stdout().lock());
    let _ = lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
}
