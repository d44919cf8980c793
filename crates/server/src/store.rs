//! `longshore store`: verifies a data directory, or copies its readable records.

use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::ExitCode;

use longshore_cli::{RecoverArgs, StoreCommand, VerifyArgs};
use longshore_store::{Damage, StoreError, UNPROVEN_END};

use crate::startup_error::StartupError;

/// Runs the command. Blocks, because this program does nothing else.
pub(crate) fn run(command: &StoreCommand) -> ExitCode {
    let ended = match command {
        StoreCommand::Verify(args) => verify(args),
        StoreCommand::Recover(args) => recover(args),
    };
    ended.unwrap_or_else(|error| StartupError::Store(error).report())
}

fn verify(args: &VerifyArgs) -> Result<ExitCode, StoreError> {
    expect_log(&args.dir)?;
    let found = longshore_store::verify(&args.dir)?;
    let mut lines: Vec<String> = found.damages.iter().map(Damage::to_string).collect();
    lines.push(format!(
        "read: {} of the log, {} with {}; {}",
        count(found.segments, "file"),
        count(found.frames, "frame"),
        count(found.records, "record"),
        count(found.jobs, "job"),
    ));
    lines.push(format!(
        "read: {} with {}; {} with {}",
        count(found.payloads, "payload"),
        count(found.payload_bytes, "byte"),
        count(found.blobs, "large payload"),
        count(found.blob_bytes, "byte"),
    ));
    if !args.dir.join("log-end").exists() {
        lines.push(format!("there is no `log-end`: {UNPROVEN_END}"));
    }
    let places = found.damages.len() as u64;
    lines.push(if places == 0 {
        "nothing is damaged".into()
    } else {
        format!(
            "damaged: {}; restore the data directory from a backup, or copy the readable records with `longshore store recover`",
            count(places, "place")
        )
    });
    tell(&lines);
    Ok(if places == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn recover(args: &RecoverArgs) -> Result<ExitCode, StoreError> {
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
    if !kept.left.is_empty() {
        lines.push(format!("not copied; copy what you need: {}", kept.left.join(", ")));
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
