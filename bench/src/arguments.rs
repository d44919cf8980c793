//! The command line of the bench.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Default repetitions of each scenario. With five, one slow repetition does not change the median.
const REPS: usize = 5;

/// Where the measured servers keep their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchStore {
    /// In the log of their data directory.
    Embedded,
    /// Each in a database of a PostgreSQL that the bench starts.
    Postgres,
}

/// Measures a Longshore server, and the baselines of this computer.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "cargo xtask bench",
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  cargo xtask bench                                   all scenarios, 5 times
  cargo xtask bench --only submit,runsync --reps 9    two scenarios
  cargo xtask bench --peers                           alternatives, installed from apt, pip and npm
  cargo xtask bench --only submit --store postgres    servers whose rows are in PostgreSQL, beside those with a log
  cargo xtask bench --only soak --store postgres --soak 1800    half an hour of lives with retention
  cargo xtask bench --quick                           a short check without usable figures
  cargo xtask bench --server target/release/longshore an existing program, without building it"
)]
pub struct Arguments {
    /// Only these scenarios, by name; see --list
    #[arg(long, value_name = "SCENARIO", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Repetitions of each scenario; the scenarios take turns
    #[arg(long, default_value_t = REPS)]
    pub reps: usize,
    /// Small and short: checks that everything works; the figures mean nothing
    #[arg(long)]
    pub quick: bool,
    /// Jobs in a crowd, instead of a million
    #[arg(long, value_name = "JOBS")]
    pub crowd: Option<u64>,
    /// The program to measure
    #[arg(long, value_name = "PATH")]
    pub server: Option<PathBuf>,
    /// Folder for the data of servers during the run, on a real disk
    #[arg(long, value_name = "DIR", default_value = "target/bench-data")]
    pub data: PathBuf,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    pub results: PathBuf,
    /// Measure the alternatives in this folder; `cargo xtask bench --peers` installs them and sets it
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
    /// The Python whose packages include the official SDK; `cargo xtask bench` installs one and sets it
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// The Python whose packages include the SDK and those of `worker/requirements.txt`, for `cold-start`; set as `--python` is
    #[arg(long, value_name = "PATH")]
    pub heavy_python: Option<PathBuf>,
    /// Where servers keep their rows: their own log, or a PostgreSQL on the same disk and processor
    #[arg(long, value_enum, default_value_t = BenchStore::Embedded)]
    pub store: BenchStore,
    /// The program that commits to a database without HTTP; `cargo xtask bench --store postgres` builds it and sets it
    #[arg(long, value_name = "PATH")]
    pub store_load: Option<PathBuf>,
    /// Run the scenario `soak` for this time, 180 s by default; it needs --store postgres
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "180")]
    pub soak: Option<u64>,
    /// List the scenarios and exit
    #[arg(long)]
    pub list: bool,
    /// A part of a run that runs as a process of its own.
    #[command(subcommand)]
    pub part: Option<Part>,
}

impl Arguments {
    /// Returns the command line that repeats the run, without this computer's paths.
    pub fn as_typed(&self) -> String {
        let mut words = vec!["cargo xtask bench".to_owned()];
        words.extend(self.peers.as_ref().map(|_| "--peers".to_owned()));
        words.extend((!self.only.is_empty()).then(|| format!("--only {}", self.only.join(","))));
        words.extend((self.reps != REPS).then(|| format!("--reps {}", self.reps)));
        words.extend(self.crowd.map(|jobs| format!("--crowd {jobs}")));
        words.extend((self.store == BenchStore::Postgres).then(|| "--store postgres".to_owned()));
        words.extend(self.soak.map(|seconds| format!("--soak {seconds}")));
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.join(" ")
    }
}

/// Parts of a run that run as processes of their own.
#[derive(Clone, Debug, Subcommand)]
pub enum Part {
    /// The server that measures a baseline.
    #[command(hide = true)]
    Floor {
        /// `echo`, `durable-echo`, `loopback` or `http-worker`.
        which: String,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
        let asked = Arguments::parse_from(["bench", "--only", "submit,runsync", "--reps", "3", "--quick"]);
        assert_eq!((asked.only.join(" "), asked.reps, asked.quick), ("submit runsync".to_owned(), 3, true));
        assert_eq!(asked.as_typed(), "cargo xtask bench --only submit,runsync --reps 3 --quick");
        let crowd = Arguments::parse_from(["bench", "--crowd", "50000"]);
        assert_eq!(crowd.as_typed(), "cargo xtask bench --crowd 50000");
        let asked = Arguments::parse_from(["bench", "--store", "postgres"]);
        assert_eq!(asked.as_typed(), "cargo xtask bench --store postgres");
        let soak = Arguments::parse_from(["bench", "--soak", "--store", "postgres"]);
        assert_eq!(soak.as_typed(), "cargo xtask bench --store postgres --soak 180");
        assert_eq!(Arguments::parse_from(["bench", "--peers", "x"]).as_typed(), "cargo xtask bench --peers");
        assert!(Arguments::parse_from(["bench", "floor", "echo"]).part.is_some());
    }
}
