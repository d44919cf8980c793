//! The command line: its subcommands, arguments and help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::audit::AuditArgs;
use crate::backup::{BackupArgs, RestoreArgs};
use crate::bench::BenchArgs;
use crate::console::{CONSOLE_EXAMPLES, ConsoleArgs};
use crate::database::{COPY_EXAMPLES, CopyArgs, MIGRATE_EXAMPLES, MigrateArgs};
use crate::deploy::{CodeWorkerArgs, DeployArgs};
use crate::doctor::DoctorArgs;
use crate::gpus::GpusArgs;
use crate::image::ImageArgs;
use crate::init::InitArgs;
use crate::jobs::{
    BulkArgs, ExplainArgs, FailuresArgs, HealthArgs, HistoryArgs, JobsArgs, PurgeArgs, RequestsArgs, RunArgs,
    RunsyncArgs, StatusArgs, StreamArgs, WebhooksArgs,
};
use crate::login::LoginArgs;
use crate::logs::LogsArgs;
use crate::nodes::NodesArgs;
use crate::observability::ObservabilityArgs;
use crate::pages::{CompletionsArgs, ManArgs};
use crate::rehearse::RehearseArgs;
use crate::resources::{
    EndpointCommand, KeyCommand, RegistryCommand, SECRET_EXAMPLES, SecretCommand, TemplateCommand,
    VolumeCommand,
};
use crate::server::{DrainArgs, ShowServerArgs};
use crate::sessions::SessionCommand;
use crate::store::{STORE_EXAMPLES, StoreCommand};
use crate::tls::{TLS_EXAMPLES, TlsCommand};
use crate::top::TopArgs;
use crate::usage::UsageArgs;
use crate::workers::WorkersArgs;

// Help texts are wrapped by hand to 80 columns; a test below holds every page to it.

const EXAMPLES: &str = "\
Examples:
  longshore init hello my-worker         make a folder with a handler
  longshore dev my-worker                run a handler on this computer
  longshore serve --data-dir /var/lib/longshore --listen 0.0.0.0:8080
  longshore login                        store the server's address and key
  longshore deploy my-worker             deploy the folder as an endpoint
  longshore run my-worker '{\"name\": \"Ada\"}' --wait
  longshore top

Exit codes:
  0  success                          4  not found
  1  failure                          5  no key, or the key does not permit it
  2  invalid command line             6  the server cannot be reached
  3  the job ended, not COMPLETED     7  the wait timed out; the job continues
  130  Ctrl-C";

const SERVE_EXAMPLES: &str = "\
Examples:
  longshore serve
  longshore serve --listen 0.0.0.0:8080 --data-dir /var/lib/longshore
  longshore serve --config /etc/longshore.toml --log-format json
  LONGSHORE_ADMIN_KEY=$(cat key) longshore serve

A later source overrides an earlier one: the default, the file, the environment
(LONGSHORE_LISTEN for `listen`), the command line. --print-defaults prints every
setting with its default and its reason.";

const INIT_EXAMPLES: &str = "\
Examples:
  longshore init                         list the templates
  longshore init hello                   make the folder hello
  longshore init stream my-worker && longshore dev my-worker

DIR must be new or empty.";

const DEV_EXAMPLES: &str = "\
Examples:
  longshore dev                          run the handler in this folder
  longshore dev examples/hello --port 9000
  longshore dev examples/hello --once    exit 0 if the sample completes, else 1

DIR has a handler.py that calls runpod.serverless.start(...). Optional files:
requirements.txt, test_input.json (the sample job), longshore.toml.
`dev` stores its own files in DIR/.longshore.

While it runs, other commands of yours need no address and no key:
  longshore run hello '{\"name\": \"Ada\"}' --wait

A profile that `login` stored, LONGSHORE_URL and LONGSHORE_API_KEY come first.";

/// Serverless queue endpoints for AI and ML workers, on your own computers
#[derive(Debug, Parser)]
#[command(name = "longshore", version, after_help = EXAMPLES, max_term_width = 80)]
pub struct Arguments {
    /// The subcommand to run, with its arguments.
    #[command(subcommand)]
    pub command: Command,
}

const RUN_EXAMPLES: &str = "\
Examples:
  longshore run hello '{\"name\": \"Ada\"}'
  longshore run hello @input.json --wait
  longshore run hello --whole @test_input.json --wait
  jq -n '{name: \"Ada\"}' | longshore run hello - -o json | jq -r .id

With --wait, a terminal shows the job's queue position, then its progress;
standard output gets only the job's output. Ctrl-C ends the wait, not the job.
Exit code 3: the job ended, but not COMPLETED.";

const RUNSYNC_EXAMPLES: &str = "\
Examples:
  longshore runsync hello '{\"name\": \"Ada\"}'
  longshore runsync hello @input.json --timeout 5m | jq .greeting";

const STATUS_EXAMPLES: &str = "\
Examples:
  longshore status hello 019a2b3c-4d5e-7f60-8123-456789abcdef
  longshore status hello 019a2b3c-4d5e-7f60-8123-456789abcdef --wait";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  longshore explain hello                why the endpoint's jobs wait
  longshore explain hello 019a2b3c-4d5e-7f60-8123-456789abcdef
  longshore explain 019a2b3c-4d5e-7f60-8123-456789abcdef
  longshore explain hello -o json | jq .cause.code";

const BULK_EXAMPLES: &str = "\
Examples:
  longshore bulk retry hello --last 1h --dry-run
  longshore bulk retry hello --status TIMED_OUT
  longshore bulk cancel hello --text customer-17 --yes
  longshore bulk delete hello --status COMPLETED --no-wait

cancel is for queued and running jobs, retry for failed and timed-out ones,
delete for ended ones. Ctrl-C ends the wait, not the task.";

const STREAM_EXAMPLES: &str = "\
Examples:
  longshore stream hello 019a2b3c-4d5e-7f60-8123-456789abcdef
  longshore stream hello 019a2b3c-4d5e-7f60-8123-456789abcdef --offset 10

Prints text as it is and other values as JSON. Consumes no chunks: other readers
still get all of them.";

const LOGIN_EXAMPLES: &str = "\
Examples:
  longshore login --url https://gpu.example.com
  longshore login --profile lab < keyfile
  longshore run hello --profile lab

Reads the key from the terminal, from a pipe, or from LONGSHORE_API_KEY. Stores
it in ~/.config/longshore/config.toml, which only you can read. Flags override
LONGSHORE_URL and LONGSHORE_API_KEY, which override the profile.";

const DEPLOY_EXAMPLES: &str = "\
Examples:
  longshore deploy examples/hello
  longshore deploy examples/hello --env MODEL=small --secret HF_TOKEN
  longshore deploy examples/hello --list
  longshore deploy examples/hello --to 3               bring version 3 back

DIR is as for `longshore dev`. Hidden files are not uploaded. The server
creates the Python environment when the first worker starts; `longshore logs`
shows the progress. Workers of the old version finish their jobs. What
longshore.toml does not name stays as it is on the server.";

const BENCH_EXAMPLES: &str = "\
Examples:
  longshore bench
  longshore bench -n 10000 -c 32 -o json

Creates an endpoint, sends small jobs with /runsync, runs their workers itself,
and deletes the endpoint. The server's rate limits apply.";

const USAGE_EXAMPLES: &str = "\
Examples:
  longshore usage
  longshore usage hello --by worker --last 24h
  longshore usage --by owner --from 2030-01-01 --to 2030-02-01
  longshore usage --by gpu --last 90d --step week -o json

Worker time runs from a worker's start to its end; the server counts it by the
hour. By owner or key, it is shared out by how long the jobs of each ran.";

const AUDIT_EXAMPLES: &str = "\
Examples:
  longshore audit
  longshore audit --key 0a1b2c3d4e5f6071 --last 7d --all
  longshore audit --resource endpoints --limit 100
  longshore audit --since 2030-01-31T12:00:00Z --all -o jsonl > audit.jsonl

Entries have the names of changed fields, never their values.";

const DRAIN_EXAMPLES: &str = "\
Examples:
  longshore drain --wait && systemctl reboot
  longshore drain --wait --timeout 10m
  longshore drain --end

While the server drains, it accepts jobs and keeps them, running jobs end, and
managed workers end after their jobs. A restart ends the drain. Exit code 7: the
timeout was over first.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  longshore doctor
  longshore doctor --config /etc/longshore.toml

Exit code 1: a server cannot work on this computer.";

const BACKUP_EXAMPLES: &str = "\
Examples:
  longshore backup --data-dir /var/lib/longshore --to /backup/monday
  longshore backup --config /etc/longshore.toml --to /backup/monday.tar.zst
  longshore backup --to /backup/jobs --without-volumes

The backup is read back and verified before it gets its name. Secrets in it are
encrypted only if a secrets key is configured. Store that key elsewhere.";

const RESTORE_EXAMPLES: &str = "\
Examples:
  longshore restore /backup/monday --data-dir /var/lib/longshore
  longshore restore /backup/monday.tar.zst --data-dir /srv/longshore

Run it as the user of the server. DIR appears only after everything is verified.";

/// The subcommands of `longshore`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a folder with a handler from a template
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Run the handler in a folder with a server and a sample job
    #[command(after_help = DEV_EXAMPLES)]
    Dev(DevArgs),
    /// Run the server on this computer
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Store a server's address and key
    #[command(after_help = LOGIN_EXAMPLES)]
    Login(LoginArgs),
    /// Deploy a folder with a handler as an endpoint
    #[command(after_help = DEPLOY_EXAMPLES)]
    Deploy(DeployArgs),
    /// Submit a job to an endpoint
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Submit a job and wait for its result in the same request
    #[command(after_help = RUNSYNC_EXAMPLES)]
    Runsync(RunsyncArgs),
    /// Show a job, or wait for its end
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Print the chunks of a job as they arrive
    #[command(after_help = STREAM_EXAMPLES)]
    Stream(StreamArgs),
    /// Cancel queued and running jobs
    #[command(after_help = "Examples:\n  longshore cancel hello 019a2b3c-4d5e-7f60-8123-456789abcdef")]
    Cancel(JobsArgs),
    /// Queue failed or timed-out jobs again
    #[command(after_help = "Examples:\n  longshore retry hello 019a2b3c-4d5e-7f60-8123-456789abcdef")]
    Retry(JobsArgs),
    /// Cancel, retry or delete all jobs that match
    #[command(after_help = BULK_EXAMPLES)]
    Bulk(BulkArgs),
    /// Cancel all queued jobs
    #[command(after_help = "Examples:\n  longshore purge hello\n  longshore purge hello --yes")]
    Purge(PurgeArgs),
    /// Show job and worker counts of an endpoint
    #[command(
        after_help = "Examples:\n  longshore health hello\n  longshore health hello -o json | jq .jobs.inQueue"
    )]
    Health(HealthArgs),
    /// Tell why a job waits, and what to do about it
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Show what an endpoint did over time: jobs, times, cold starts
    #[command(
        after_help = "Examples:\n  longshore history hello\n  longshore history hello --last 30d --step 1d\n  longshore history hello --last 15m -o json | jq .total"
    )]
    History(HistoryArgs),
    /// Show why jobs of an endpoint failed, in groups
    #[command(
        after_help = "Examples:\n  longshore failures hello\n  longshore failures hello --last 30d -o json | jq '.[0].message'"
    )]
    Failures(FailuresArgs),
    /// List the calls of webhooks, and deliver failed ones again
    #[command(
        after_help = "Examples:\n  longshore webhooks\n  longshore webhooks hello --state FAILED --last 1h\n  longshore webhooks hello -o json | jq '.[0].attempts'\n  longshore webhooks redeliver hello --last 1h"
    )]
    Webhooks(WebhooksArgs),
    /// Try other scaling settings on jobs of the past
    #[command(
        after_help = "Examples:\n  longshore rehearse hello\n  longshore rehearse hello --last 30d --set workersMax=4 --set idleTimeout=30\n  longshore rehearse hello --set scalerType=IDLE_GAPS\n  longshore rehearse hello --trace jobs.csv --start 40s --price 2.5"
    )]
    Rehearse(RehearseArgs),
    /// List the jobs of an endpoint, newest first
    #[command(
        after_help = "Examples:\n  longshore requests hello\n  longshore requests hello --status FAILED --limit 100 -o jsonl"
    )]
    Requests(RequestsArgs),
    /// Create, show, change, pause and delete endpoints
    #[command(subcommand)]
    Endpoint(EndpointCommand),
    /// Create, show, change and delete templates
    #[command(subcommand)]
    Template(TemplateCommand),
    /// Create, show, change and revoke keys
    #[command(subcommand)]
    Keys(KeyCommand),
    /// Create, show, change and delete network volumes
    #[command(subcommand, alias = "volumes")]
    Volume(VolumeCommand),
    /// Store, show and delete credentials for image registries
    #[command(subcommand, alias = "registries")]
    Registry(RegistryCommand),
    /// Show how long workers ran, and what that cost
    #[command(after_help = USAGE_EXAMPLES)]
    Usage(UsageArgs),
    /// List who changed what, newest first
    #[command(after_help = AUDIT_EXAMPLES)]
    Audit(AuditArgs),
    /// List browsers that are signed in at the console, or end them
    #[command(subcommand)]
    Sessions(SessionCommand),
    /// List, drain and stop the workers of an endpoint
    #[command(
        after_help = "Examples:\n  longshore workers hello\n  longshore workers hello --all\n  longshore workers stop hello --all"
    )]
    Workers(WorkersArgs),
    /// Print the logs of workers
    #[command(
        after_help = "Examples:\n  longshore logs hello\n  longshore logs -f hello\n  longshore logs hello --worker jwfpbqau --tail 1000"
    )]
    Logs(LogsArgs),
    /// Show queues, workers and rates, repeatedly
    #[command(
        after_help = "Examples:\n  longshore top\n  longshore top --once\n  longshore top --interval 10s -o jsonl"
    )]
    Top(TopArgs),
    /// List the GPUs, their workers, and what is wrong with them
    #[command(after_help = "Examples:\n  longshore gpus\n  longshore gpus -o json")]
    Gpus(GpusArgs),
    /// List the servers that share the database
    #[command(after_help = "Examples:\n  longshore nodes\n  longshore nodes -o json")]
    Nodes(NodesArgs),
    /// Show the server: its version, its state and its workers
    #[command(after_help = "Examples:\n  longshore server\n  longshore server -o json | jq -r .state")]
    Server(ShowServerArgs),
    /// Hand out no more jobs, before the server's computer is rebooted
    #[command(after_help = DRAIN_EXAMPLES)]
    Drain(DrainArgs),
    /// Print an address that signs the browser in at the console
    #[command(after_help = CONSOLE_EXAMPLES)]
    Console(ConsoleArgs),
    /// Check whether a server can work on this computer
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Print the dashboard for Grafana, or the rules for Prometheus
    #[command(
        after_help = "Examples:\n  longshore observability rules > longshore.rules.yml\n  longshore observability grafana > longshore.json"
    )]
    Observability(ObservabilityArgs),
    /// Measure a server with small jobs
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  longshore completions bash > /etc/bash_completion.d/longshore\n  longshore completions zsh > ~/.zfunc/_longshore\n  longshore completions fish > ~/.config/fish/completions/longshore.fish"
    )]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for every command
    #[command(
        after_help = "Examples:\n  longshore man | man -l -\n  longshore man --dir /usr/local/share/man/man1"
    )]
    Man(ManArgs),
    /// Back up a data directory, also while its server runs
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Create a data directory from a backup
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Store secrets for workers, and the keys that encrypt them
    #[command(subcommand, alias = "secrets", after_help = SECRET_EXAMPLES)]
    Secret(SecretCommand),
    /// Create certificates for a server in a private network
    #[command(subcommand, after_help = TLS_EXAMPLES)]
    Tls(TlsCommand),
    /// Verify a data directory, or recover a damaged one
    #[command(subcommand, after_help = STORE_EXAMPLES)]
    Store(StoreCommand),
    /// Bring the tables of the database up to date
    #[command(after_help = MIGRATE_EXAMPLES)]
    Migrate(MigrateArgs),
    /// Copy everything between a data directory and a database
    #[command(after_help = COPY_EXAMPLES)]
    Copy(CopyArgs),
    /// Run one worker in its own session; the server starts it.
    #[command(hide = true)]
    WorkerShim(ShimArgs),
    /// Run the handler of deployed code in this process; the server starts it.
    #[command(hide = true)]
    CodeWorker(CodeWorkerArgs),
}

/// Arguments of `longshore dev`.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// Folder of the handler or the image's sample [default: this folder]
    #[arg(value_name = "DIR", default_value = ".", hide_default_value = true)]
    pub dir: PathBuf,
    /// The image that is run in place of a handler.
    #[command(flatten)]
    pub image: ImageArgs,
    /// Exit after the sample: 0 if it completed, else 1
    #[arg(long)]
    pub once: bool,
    /// Port to serve on [default: 8080 or the next free]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Print plain text, without colours
    #[arg(long)]
    pub no_color: bool,
}

/// Arguments of `longshore serve`. An option that is not given is read from the settings.
#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0: any free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// The data directory [default: ./longshore-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep large payloads and code there, such as `s3://bucket/prefix`
    #[arg(long, value_name = "URL")]
    pub blobs: Option<String>,
    /// Read settings from this file [default: `LONGSHORE_CONFIG`, or none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Enforce rate and concurrency limits [default: on]
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    pub rate_limits: Option<OnOff>,
    /// Allow webhooks to private and loopback addresses
    #[arg(long)]
    pub allow_private_webhooks: bool,
    /// Format of log lines [default: pretty]
    #[arg(long, value_name = "pretty|json", hide_possible_values = true)]
    pub log_format: Option<LogFormat>,
    /// Log level: error, warn, info, debug, trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Serve /v1, /graphql, /metrics and /console only on this address
    #[arg(long, value_name = "ADDR")]
    pub management_listen: Option<String>,
    /// Serve /metrics without a key
    #[arg(long)]
    pub metrics_public: bool,
    /// Use TLS with the certificate chain in this file (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// File with the key of the certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Encrypt stored secrets with the first key in this file
    #[arg(long, value_name = "FILE")]
    pub secrets_key_file: Option<PathBuf>,
    /// Write the port to this file when the server listens
    #[arg(long, value_name = "FILE")]
    pub port_file: Option<PathBuf>,
    /// Print every setting with its default, and exit
    #[arg(long)]
    pub print_defaults: bool,
}

/// Arguments of `longshore secret new-key`.
#[derive(Debug, Args)]
pub struct NewKeyArgs {
    /// The file with the keys; created if it does not exist
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Arguments of `longshore secret rotate`. An option that is not given is read from the settings.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// The data directory of a stopped server
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Read settings from this file [default: `LONGSHORE_CONFIG`, or none]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The file with the keys
    #[arg(long, value_name = "FILE")]
    pub secrets_key_file: Option<PathBuf>,
}

/// Arguments of the hidden `worker-shim` command.
#[derive(Debug, Args)]
pub struct ShimArgs {
    /// The directory of the worker, with its instructions for the shim.
    pub scratch: PathBuf,
}

/// The value of a flag that takes `on` or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// The feature is enabled (`on`).
    On,
    /// The feature is disabled (`off`).
    Off,
}

/// The format of log lines on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text for a terminal.
    Pretty,
    /// One JSON object per line.
    Json,
}

impl OnOff {
    /// Returns the name of the value in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

impl LogFormat {
    /// Returns the name of the value in the settings.
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

    /// Returns every page that `--help` prints, with the command line that prints it.
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

    /// `UPDATE_EXPECT=1 cargo test -p longshore-cli help` rewrites the file.
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
