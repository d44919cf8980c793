//! Arguments of `longshore backup` and `longshore restore`. The server's program runs both, because they work on
//! files.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `longshore backup`. An option that is not given is read from the settings.
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// A new folder, or a new file that ends with .tar.zst
    #[arg(long, value_name = "DIR|FILE")]
    pub to: PathBuf,
    /// Leave out the files in network volumes
    #[arg(long)]
    pub without_volumes: bool,
    /// The data directory; its server may run
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Read settings from this file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Arguments of `longshore restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A folder or file that `longshore backup` wrote
    #[arg(value_name = "BACKUP")]
    pub from: PathBuf,
    /// The data directory to create; empty or missing
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
}
