//! `longshore observability`: prints the files for Prometheus and Grafana, which are part of the program.

use clap::{Args, ValueEnum};

use crate::exit::{CommandExit, CommandResult};
use crate::output::{Output, OutputFormat};

/// Arguments of `longshore observability`.
#[derive(Debug, Args)]
pub struct ObservabilityArgs {
    /// The file to print
    #[arg(value_name = "FILE")]
    file: ObservabilityFile,
}

/// A file for another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ObservabilityFile {
    /// The dashboard for Grafana
    Grafana,
    /// Recording rules and alerts for Prometheus
    Rules,
}

impl ObservabilityFile {
    fn text(self) -> &'static str {
        match self {
            Self::Grafana => include_str!("../../../dist/grafana/longshore.json"),
            Self::Rules => include_str!("../../../dist/prometheus/longshore.rules.yml"),
        }
    }
}

/// Prints one of the files for Prometheus and Grafana that the program has.
pub(crate) fn observability(args: &ObservabilityArgs) -> CommandResult {
    Output::new(OutputFormat::Table).text(args.file.text())?;
    Ok(CommandExit::Success)
}
