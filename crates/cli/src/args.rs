//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

// Help texts are wrapped by hand to 80 columns; a test below holds every page to it.

const EXAMPLES: &str = "\
Examples:
  longshore dev examples/hello           run a handler here, with one command
  longshore dev examples/hello --once    run its sample, print the result, exit
  longshore serve --data-dir /var/lib/longshore --listen 0.0.0.0:8080";

const SERVE_EXAMPLES: &str = "\
Examples:
  longshore serve
  longshore serve --listen 0.0.0.0:8080 --data-dir /var/lib/longshore
  longshore serve --config /etc/longshore.toml --log-format json
  LONGSHORE_ADMIN_KEY=$(cat key) longshore serve

A setting comes from, in rising precedence: its default, the file, the
environment (LONGSHORE_LISTEN for `listen`), the command line.
`longshore serve --print-defaults` shows every setting with its default and
its reason.";

const DEV_EXAMPLES: &str = "\
Examples:
  longshore dev .
  longshore dev examples/hello --port 9000
  longshore dev examples/hello --once    exit 0 if the sample completes, else 1

DIR holds a handler.py that calls runpod.serverless.start(...). Beside it, all
optional: requirements.txt, test_input.json (the sample), longshore.toml.
What `dev` needs for itself it keeps in DIR/.longshore.";

/// Serverless queue endpoints for AI and ML workers, on your own machines
#[derive(Debug, Parser)]
#[command(name = "longshore", version, after_help = EXAMPLES, max_term_width = 80)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the handler in a folder: server, worker and sample in one
    #[command(after_help = DEV_EXAMPLES)]
    Dev(DevArgs),
    /// Run the server
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Run one worker in its own session; the server starts it.
    #[command(hide = true)]
    WorkerShim(ShimArgs),
}

/// Arguments of `longshore dev`.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// The folder with handler.py
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Exit after the sample: 0 if it completes, else 1
    #[arg(long)]
    pub once: bool,
    /// Listen there [default: 8080, or the next free port]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Plain text, also on a terminal
    #[arg(long)]
    pub no_color: bool,
}

/// Arguments of `longshore serve`. What is not given comes from the settings.
#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// Listen there; port 0 picks a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Keep everything there [default: ./longshore-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Read settings from this file [default: `LONGSHORE_CONFIG`, or none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Enforce rate and concurrency limits [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub rate_limits: Option<OnOff>,
    /// Deliver webhooks to private and loopback addresses too
    #[arg(long)]
    pub allow_private_webhooks: bool,
    /// How log lines look [default: pretty]
    #[arg(long, value_name = "pretty|json", hide_possible_values = true)]
    pub log_format: Option<LogFormat>,
    /// Log lines from: error, warn, info, debug, trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Write the chosen port there once the server listens
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// Print every setting with its default, and exit
    #[arg(long)]
    pub print_defaults: bool,
}

/// Arguments of the hidden `worker-shim` command.
#[derive(Debug, Args)]
pub struct ShimArgs {
    /// The worker's folder.
    pub scratch: PathBuf,
}

/// A switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// Enabled.
    On,
    /// Disabled.
    Off,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

impl OnOff {
    /// The word for it in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

impl LogFormat {
    /// The word for it in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pretty => "pretty",
            Self::Json => "json",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_help_page_fits_80_columns() {
        for page in
            [&["longshore", "--help"][..], &["longshore", "serve", "--help"], &["longshore", "dev", "--help"]]
        {
            let help = Arguments::try_parse_from(page).unwrap_err().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
            }
            assert!(help.contains("Examples:"), "{help}");
        }
    }
}
