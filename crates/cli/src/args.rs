//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::backup::{BackupArgs, RestoreArgs};
use crate::bench::BenchArgs;
use crate::deploy::{CodeWorkerArgs, DeployArgs};
use crate::doctor::DoctorArgs;
use crate::jobs::{
    HealthArgs, JobsArgs, PurgeArgs, RequestsArgs, RunArgs, RunsyncArgs, StatusArgs, StreamArgs,
};
use crate::login::LoginArgs;
use crate::logs::LogsArgs;
use crate::pages::{CompletionsArgs, ManArgs};
use crate::resources::{EndpointCommand, KeyCommand, TemplateCommand};
use crate::store::{STORE_EXAMPLES, StoreCommand};
use crate::top::TopArgs;
use crate::workers::WorkersArgs;

// Help texts are wrapped by hand to 80 columns; a test below holds every page to it.

const EXAMPLES: &str = "\
Examples:
  longshore dev examples/hello           run a handler here, with one command
  longshore serve --data-dir /var/lib/longshore --listen 0.0.0.0:8080
  longshore login                        store the server's address and key
  longshore deploy examples/hello        make the folder an endpoint there
  longshore run hello '{\"name\": \"Ada\"}' --wait
  longshore top

Exit codes:
  0  it worked                        4  there is no such thing
  1  it failed                        5  the key is missing or not permitted
  2  the command line is wrong        6  the server cannot be reached
  3  the job ended, but not well      7  the wait is over, the job goes on
  130  Ctrl-C";

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

const SECRETS_EXAMPLES: &str = "\
Examples:
  longshore secrets new-key /etc/longshore/secrets.key
  longshore secrets rotate --config /etc/longshore.toml

To change the key: new-key puts a new one in front of the file, rotate (with
the server stopped) seals everything under it, and the old ones can go.";

/// Serverless queue endpoints for AI and ML workers, on your own machines
#[derive(Debug, Parser)]
#[command(name = "longshore", version, after_help = EXAMPLES, max_term_width = 80)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const RUN_EXAMPLES: &str = "\
Examples:
  longshore run hello '{\"name\": \"Ada\"}'
  longshore run hello @input.json --wait
  longshore run hello --whole @test_input.json --wait
  jq -n '{name: \"Ada\"}' | longshore run hello - -o json | jq -r .id

With --wait a terminal shows the job's position in the queue, then its progress;
standard output gets its output alone. Ctrl-C ends the wait and not the job.
Exit code 3: the job ended, but not COMPLETED.";

const RUNSYNC_EXAMPLES: &str = "\
Examples:
  longshore runsync hello '{\"name\": \"Ada\"}'
  longshore runsync hello @input.json --timeout 5m | jq .greeting";

const STATUS_EXAMPLES: &str = "\
Examples:
  longshore status hello 019a2b3c-4d5e-7f60-8123-456789abcdef
  longshore status hello 019a2b3c-4d5e-7f60-8123-456789abcdef --wait";

const STREAM_EXAMPLES: &str = "\
Examples:
  longshore stream hello 019a2b3c-4d5e-7f60-8123-456789abcdef
  longshore stream hello 019a2b3c-4d5e-7f60-8123-456789abcdef --offset 10

Prints what the handler yields: text as it is, other values as JSON. Other
readers are not disturbed.";

const LOGIN_EXAMPLES: &str = "\
Examples:
  longshore login --url https://gpu.example.com
  longshore login --profile lab < keyfile
  longshore run hello --profile lab

The key is typed, piped in, or taken from LONGSHORE_API_KEY. It is stored in
~/.config/longshore/config.toml, readable by you alone. A flag wins over the
environment (LONGSHORE_URL, LONGSHORE_API_KEY), that over the profile.";

const DEPLOY_EXAMPLES: &str = "\
Examples:
  longshore deploy examples/hello
  longshore deploy examples/hello --list
  longshore deploy examples/hello --to 3f9a1c          go back to that version

DIR is as for `longshore dev`. Hidden files stay here. The server makes the
Python environment when the first worker starts; `longshore logs` shows it.
Workers of the version before finish their jobs first.";

const BENCH_EXAMPLES: &str = "\
Examples:
  longshore bench
  longshore bench -n 10000 -c 32 -o json

Makes an endpoint, sends small jobs through it with /runsync, answers them
itself as its worker, and deletes the endpoint. Rate limits of the server count.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  longshore doctor
  longshore doctor --config /etc/longshore.toml

Exit code 1 if something would keep a server from working.";

const BACKUP_EXAMPLES: &str = "\
Examples:
  longshore backup --data-dir /var/lib/longshore --to /backup/monday
  longshore backup --config /etc/longshore.toml --to /backup/monday.tar.zst
  longshore backup --to /backup/jobs --without-volumes

The backup is read back and checked before it gets its name. Secrets are in it
as they are kept: keep their key elsewhere, and apart from the backup.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  longshore restore /backup/monday --data-dir /var/lib/longshore
  longshore restore /backup/monday.tar.zst --data-dir /srv/longshore

Run it as the user of the server. Nothing is there until all of it is checked.";

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the handler in a folder: server, worker and sample in one
    #[command(after_help = DEV_EXAMPLES)]
    Dev(DevArgs),
    /// Run the server
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Store a server's address and key
    #[command(after_help = LOGIN_EXAMPLES)]
    Login(LoginArgs),
    /// Make a folder with a handler an endpoint of the server
    #[command(after_help = DEPLOY_EXAMPLES)]
    Deploy(DeployArgs),
    /// Hand in a job
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Hand in a job and wait in the same request
    #[command(after_help = RUNSYNC_EXAMPLES)]
    Runsync(RunsyncArgs),
    /// Show a job, or wait for it
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Print what a job yields, as it comes
    #[command(after_help = STREAM_EXAMPLES)]
    Stream(StreamArgs),
    /// End jobs
    #[command(after_help = "Examples:\n  longshore cancel hello 019a2b3c-4d5e-7f60-8123-456789abcdef")]
    Cancel(JobsArgs),
    /// Run jobs that failed once more
    #[command(after_help = "Examples:\n  longshore retry hello 019a2b3c-4d5e-7f60-8123-456789abcdef")]
    Retry(JobsArgs),
    /// Remove what waits in a queue
    #[command(after_help = "Examples:\n  longshore purge hello\n  longshore purge hello --yes")]
    Purge(PurgeArgs),
    /// Show an endpoint's numbers
    #[command(
        after_help = "Examples:\n  longshore health hello\n  longshore health hello -o json | jq .jobs.inQueue"
    )]
    Health(HealthArgs),
    /// List an endpoint's jobs, newest first
    #[command(
        after_help = "Examples:\n  longshore requests hello\n  longshore requests hello --status FAILED --limit 100 -o jsonl"
    )]
    Requests(RequestsArgs),
    /// Make, show, change, pause and delete endpoints
    #[command(subcommand)]
    Endpoint(EndpointCommand),
    /// Make, show, change and delete templates
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Make, show, change and revoke keys
    #[command(subcommand)]
    Keys(KeyCommand),
    /// List the workers of an endpoint
    #[command(after_help = "Examples:\n  longshore workers hello\n  longshore workers hello --all")]
    Workers(WorkersArgs),
    /// Print what workers print
    #[command(
        after_help = "Examples:\n  longshore logs hello\n  longshore logs -f hello\n  longshore logs hello --worker jwfpbqau --tail 1000"
    )]
    Logs(LogsArgs),
    /// Watch queues, workers and rates
    #[command(
        after_help = "Examples:\n  longshore top\n  longshore top --once\n  longshore top --interval 10s -o jsonl"
    )]
    Top(TopArgs),
    /// Look for what keeps a server from working here
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Measure a server with small jobs
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Print a script that completes commands in a shell
    #[command(
        after_help = "Examples:\n  longshore completions bash > /etc/bash_completion.d/longshore\n  longshore completions zsh > ~/.zfunc/_longshore\n  longshore completions fish > ~/.config/fish/completions/longshore.fish"
    )]
    Completions(CompletionsArgs),
    /// Print the manual page
    #[command(
        after_help = "Examples:\n  longshore man | man -l -\n  longshore man --dir /usr/local/share/man/man1"
    )]
    Man(ManArgs),
    /// Copy a data folder, also while its server runs
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Make a data folder from a backup
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Make keys that secrets are sealed under, and move to a new one
    #[command(subcommand, after_help = SECRETS_EXAMPLES)]
    Secrets(SecretsCommand),
    /// Check a data folder, or keep what can be read of a damaged one
    #[command(subcommand, after_help = STORE_EXAMPLES)]
    Store(StoreCommand),
    /// Run one worker in its own session; the server starts it.
    #[command(hide = true)]
    WorkerShim(ShimArgs),
    /// Become the handler of deployed code; the server starts it.
    #[command(hide = true)]
    CodeWorker(CodeWorkerArgs),
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
    /// Answer /v1 and /metrics there, and nowhere else
    #[arg(long, value_name = "ADDR")]
    pub management_listen: Option<String>,
    /// Answer /metrics without a key
    #[arg(long)]
    pub metrics_public: bool,
    /// Speak TLS with the certificate in this file (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Seal secrets under the first key in this file
    #[arg(long, value_name = "FILE")]
    pub secrets_key_file: Option<PathBuf>,
    /// Write the chosen port there once the server listens
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// Print every setting with its default, and exit
    #[arg(long)]
    pub print_defaults: bool,
}

/// What can be done about the keys of secrets.
#[derive(Debug, Subcommand)]
pub enum SecretsCommand {
    /// Make a key: put it in front of those in FILE, or print it
    #[command(
        after_help = "Examples:\n  longshore secrets new-key\n  longshore secrets new-key /etc/longshore/secrets.key"
    )]
    NewKey(NewKeyArgs),
    /// Seal everything in a data folder under the first key
    #[command(
        after_help = "Examples:\n  longshore secrets rotate\n  longshore secrets rotate --config /etc/longshore.toml"
    )]
    Rotate(RotateArgs),
}

/// Arguments of `longshore secrets new-key`.
#[derive(Debug, Args)]
pub struct NewKeyArgs {
    /// The file of keys, made if it is not there
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Arguments of `longshore secrets rotate`. What is not given comes from the settings.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// The data folder of a server that does not run
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Read settings from this file [default: `LONGSHORE_CONFIG`, or none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The file of keys
    #[arg(long, value_name = "FILE")]
    pub secrets_key_file: Option<PathBuf>,
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

    /// Every page that `--help` prints, by what is typed before it.
    fn pages() -> Vec<(String, String)> {
        fn collect(command: &clap::Command, words: &[&str], pages: &mut Vec<(String, String)>) {
            let typed = words.iter().copied().chain(["--help"]);
            let page = Arguments::try_parse_from(typed).unwrap_err().to_string();
            pages.push((words.join(" "), page));
            for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
                collect(inner, &[words, &[inner.get_name()]].concat(), pages);
            }
        }
        let mut pages = Vec::new();
        collect(&Arguments::command(), &["longshore"], &mut pages);
        pages
    }

    /// `UPDATE_EXPECT=1 cargo test -p longshore-cli help` writes the file anew.
    #[test]
    fn help_reads_as_it_was_reviewed() {
        let page = |(typed, page): (String, String)| format!("=== {typed}\n{}\n\n", page.trim_end());
        let all: String = pages().into_iter().map(page).collect();
        expect_test::expect_file!["help.txt"].assert_eq(&all);
    }

    #[test]
    fn every_help_page_fits_80_columns_and_has_examples() {
        for (typed, page) in pages() {
            for line in page.lines() {
                assert!(line.chars().count() <= 80, "{typed}: {} columns: {line}", line.chars().count());
            }
            assert!(page.contains("Examples:"), "{typed}: {page}");
        }
    }
}
