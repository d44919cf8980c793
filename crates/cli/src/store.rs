//! Arguments of `longshore store`, which reads a data directory without a server.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Subcommands of `longshore store`.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Verify every checksum in a data directory or a backup
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Copy the readable records of a damaged data directory
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
}

pub(crate) const STORE_EXAMPLES: &str = "\
Examples:
  longshore store verify /var/lib/longshore
  longshore store recover /var/lib/longshore --to /var/lib/longshore-new

Both commands read local files and do not change DIR.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  longshore store verify /var/lib/longshore
  longshore store verify /backup/monday.tar.zst && echo the backup is complete

Reads the log (frames, records, payloads) and the files of large payloads, and
every file of a backup.
Prints a line for each damaged position. Changes nothing. With a running server,
verify a copy: payloads of jobs that end meanwhile are reported as missing.
Exit code 1: something is damaged.";

const RECOVER_EXAMPLES: &str = "\
Examples:
  longshore store recover /var/lib/longshore --to /var/lib/longshore-new

Prints what is damaged and which jobs are dropped: jobs that have not ended and
whose input or endpoint is lost. A damaged record is replaced by the previous
one, so jobs may return to an earlier state. If you have a backup, restore it.";

/// Arguments of `longshore store verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The data directory, a copy of it, or a backup
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Arguments of `longshore store recover`.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// The data directory of a stopped server
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The new data directory; empty or missing
    #[arg(long, value_name = "NEW")]
    pub to: PathBuf,
}
