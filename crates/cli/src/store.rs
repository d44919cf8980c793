//! Arguments of `longshore store`, which works on a data folder and asks no server.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What can be done with a data folder.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Check every checksum in a data folder
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArgs),
    /// Write what can be read of a damaged data folder into a new one
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
}

pub(crate) const STORE_EXAMPLES: &str = "\
Examples:
  longshore store verify /var/lib/longshore
  longshore store recover /var/lib/longshore --to /var/lib/longshore-new

No server is asked. Both leave the folder as it is.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  longshore store verify /var/lib/longshore
  longshore store verify /backup/longshore && echo the copy is whole

Reads the log (frames, records, payloads) and the files of large payloads, and
prints a line for each damaged place. Changes nothing. In the folder of a
running server, payloads whose jobs end meanwhile may be missing: check a copy.
Exit code 1: something is damaged.";

const RECOVER_EXAMPLES: &str = "\
Examples:
  longshore store recover /var/lib/longshore --to /var/lib/longshore-new

Prints what is damaged and which jobs are dropped: those that have not ended
and whose input or endpoint is lost. What a damaged record said is as it was
before it. A backup is better, where there is one.";

/// Arguments of `longshore store verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The data folder, or a copy of it
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Arguments of `longshore store recover`.
#[derive(Debug, Args)]
pub struct RecoverArgs {
    /// The data folder of a server that does not run
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// A folder that is empty or not there
    #[arg(long, value_name = "NEW")]
    pub to: PathBuf,
}
